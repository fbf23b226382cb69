/* Matrix products, compiled for each level: what the files matrix_*.c share. */
#ifndef SG_ENGINE_MATRIX_LANES_H
#define SG_ENGINE_MATRIX_LANES_H

#include "softgpu/engine/lanes/lanes.h"
#include "softgpu/engine/matrix.h"

#define SG_MATRIX_LINES 32   /* of A, B, C */
#define SG_MATRIX_MOST  1024 /* elements; for bits, words */
#define SG_MATRIX_SUMS  256  /* elements of C and D */
#define SG_MATRIX_EIGHT 8u   /* columns computed together */

/* The matrices of a product, read from registers: elements as their bits. */
struct sg_matrix_work {
    const struct sg_instruction *in;
    struct sg_matrix shape[SG_MATRICES];
    const uint32_t *list[SG_MATRICES]; /* places of registers */
    const uint32_t *words;             /* sparse: the metadata of 32 lanes */
    unsigned selector;
    unsigned m, n, k; /* k: elements in a line of B; a sparse A has half as many */
    uint32_t a[SG_MATRIX_MOST], b[SG_MATRIX_MOST], c[SG_MATRIX_SUMS], d[SG_MATRIX_SUMS];
};

/* Which elements of a line of B are multiplied with those of a line of A: `pick[i]` with the
 * i-th. */
void SG_LEVEL(sg_matrix_pick)(const struct sg_matrix_work *work, unsigned line,
                              unsigned char pick[64]);

/* matrix_float.c */
void SG_LEVEL(sg_matrix_floats)(struct sg_matrix_work *work);
/* The quarter-warp products of mma.m8n8k4, by scalar instructions. */
void SG_LEVEL(sg_matrix_quarter)(struct sg_matrix_work *work);
/* matrix_integer.c */
void SG_LEVEL(sg_matrix_integers)(struct sg_matrix_work *work);
void SG_LEVEL(sg_matrix_bits)(struct sg_matrix_work *work);

/* ---- matrix_sum.c: how tensor cores add ------------------------------------------------------ */

/*
 * Sums of products: 8 elements of D, from one line of A and eight of B. A factor is `value` times 2
 * to the power of `exponent` - `digits`; zero has the exponent SG_MATRIX_ZERO.
 */
struct sg_matrix_factors {
    unsigned count;
    unsigned digits; /* fraction bits in a factor's value */
    const int32_t *a_value, *a_exponent;
    const int32_t (*b_value)[SG_MATRIX_EIGHT], (*b_exponent)[SG_MATRIX_EIGHT];
    const unsigned char *a, *b; /* the factors of the i-th product */
};
#define SG_MATRIX_ZERO (-4096)

/* `value` is in units of 2 to the power of `exponent` - SG_MATRIX_KEPT. */
struct sg_matrix_sums {
    int64_t value[SG_MATRIX_EIGHT];
    int32_t exponent[SG_MATRIX_EIGHT]; /* the largest of the terms */
};
/* Fraction bits kept of each term, after alignment to the largest exponent of all terms. */
#define SG_MATRIX_KEPT 25

/* c: values with `c_digits` fraction bits, added without a product. */
void SG_LEVEL(sg_matrix_sum)(const struct sg_matrix_factors *factors, const int32_t *c_value,
                             const int32_t *c_exponent, unsigned c_digits,
                             struct sg_matrix_sums *sums);
uint32_t SG_LEVEL(sg_matrix_single)(int64_t value, int exponent);
uint16_t SG_LEVEL(sg_matrix_half)(int64_t value, int exponent);

#endif
