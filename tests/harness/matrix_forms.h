/*
 * Every form of mma that is run: its text, a kernel around it, and where PTX says that a lane has
 * which element. The same kernels run on the engine alone and on a driver.
 */
#ifndef HARNESS_MATRIX_FORMS_H
#define HARNESS_MATRIX_FORMS_H

#include "matrix_values.h"

struct matrix_form {
    struct matrix_product product;
    bool sparse;
    unsigned selector;       /* of sparse ones */
    bool quarters;           /* mma.m8n8k4 of f16: four products */
    bool a_column, b_column; /* of quarters */
};

#define MATRIX_FORMS    400 /* there are fewer */
#define MATRIX_PRODUCTS 4

/* Each lane reads its registers of A, B, C and the sparse word from 32 words of 64 bits, and writes
 * those of D to 8. */
#define MATRIX_IN  32
#define MATRIX_OUT 8

size_t matrix_forms(struct matrix_form *forms, size_t room);
/* An entry `name(in, out)` for one warp, without a module's head; "mma.sync.…" alone. */
void matrix_kernel(const struct matrix_form *form, const char *name, char *text, size_t size);
void matrix_words(const struct matrix_form *form, char *words, size_t size);

/* Data to multiply, one for each product: filled, and for a sparse form with half of A zero. */
void matrix_prepare(const struct matrix_form *form, struct matrix_data *data, bool exact,
                    uint32_t *seed, uint64_t in[32][MATRIX_IN]);
/* Of a sparse form whose groups keep their first halves: the line of B for an element of A. */
unsigned matrix_partner(const struct matrix_form *form, unsigned kept);
/* The registers of data that is there; of a sparse form A has the kept elements only. */
void matrix_pack(const struct matrix_form *form, const struct matrix_data *data,
                 uint64_t in[32][MATRIX_IN]);
/* The registers of D to data->d. */
void matrix_collect(const struct matrix_form *form, const uint64_t out[32][MATRIX_OUT],
                    struct matrix_data *data);
unsigned matrix_products(const struct matrix_form *form);

/* Where PTX says an element of A, B or C lies: lane, register, first bit. */
struct matrix_spot {
    unsigned lane, reg, shift;
};
struct matrix_spot matrix_spot_a(unsigned m, unsigned bits, unsigned i, unsigned k);
struct matrix_spot matrix_spot_b(unsigned bits, unsigned k, unsigned j);
struct matrix_spot matrix_spot_c(bool half, unsigned i, unsigned j);

#endif
