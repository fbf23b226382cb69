/*
 * Matrices as their elements' bits, and their product by plain C: what tests of matrix instructions
 * compare with. Nothing here is shared with the engine.
 */
#ifndef HARNESS_MATRIX_VALUES_H
#define HARNESS_MATRIX_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum matrix_type {
    M_F16,
    M_BF16,
    M_TF32,
    M_F32,
    M_F64,
    M_E4M3,
    M_E5M2,
    M_S8,
    M_U8,
    M_S4,
    M_U4,
    M_B1,
    M_S32,
    M_TYPES
};
const char *matrix_type_name(enum matrix_type type); /* "f16" */
unsigned matrix_type_bits(enum matrix_type type);
bool matrix_type_is_float(enum matrix_type type); /* not f64 */

#define MATRIX_M 32
#define MATRIX_N 32
#define MATRIX_K 256

struct matrix_data {
    uint64_t a[MATRIX_M][MATRIX_K], b[MATRIX_K][MATRIX_N], c[MATRIX_M][MATRIX_N];
    uint64_t d[MATRIX_M][MATRIX_N];
};

/* What a product is: everything but where its elements lie. */
struct matrix_product {
    unsigned m, n, k;
    enum matrix_type d, a, b, c;
    bool saturates;
    const char *rounding; /* "", "rn", "rz", "rm", "rp": of f64 */
    const char *popc;     /* "", "xor", "and" */
};

/* The bits of a number that the type has exactly, and the number of bits that are no NaN. */
uint64_t matrix_encode(enum matrix_type type, double value);
double matrix_decode(enum matrix_type type, uint64_t bits);

/* Elements to multiply: of floats either whole numbers so small that every sum is exact (`exact`),
 * or any; of integers and f64 any. */
void matrix_fill(const struct matrix_product *product, struct matrix_data *data, bool exact,
                 uint32_t *seed);
uint32_t matrix_random(uint32_t *seed);

/*
 * Compares data->d with the product: bit by bit, or, of floats that were not filled with exact
 * numbers, within the bound that is stated in matrix_values.c. False: `why` says which element.
 */
bool matrix_holds(const struct matrix_product *product, const struct matrix_data *data, bool exact,
                  char *why, size_t size);

#endif
