/* Products of matrices, compiled for each level: what the files matrix_*.c share. */
#ifndef SG_ENGINE_MATRIX_LANES_H
#define SG_ENGINE_MATRIX_LANES_H

#include "softgpu/engine/lanes/lanes.h"
#include "softgpu/engine/matrix.h"

#define SG_MATRIX_LINES 32   /* of A, B, C */
#define SG_MATRIX_MOST  1024 /* elements; bits count by words */
#define SG_MATRIX_SUMS  256  /* elements of C and D */
#define SG_MATRIX_EIGHT 8u   /* columns that are computed together */

/* A product's matrices out of the registers: elements as their bits. */
struct sg_matrix_work {
    const struct sg_instruction *in;
    struct sg_matrix shape[SG_MATRICES];
    const uint32_t *list[SG_MATRICES]; /* places of registers */
    const uint32_t *words;             /* of sparse ones: 32 lanes */
    unsigned selector;
    unsigned m, n, k; /* k: elements of B's lines; of A's half of them where it is sparse */
    uint32_t a[SG_MATRIX_MOST], b[SG_MATRIX_MOST], c[SG_MATRIX_SUMS], d[SG_MATRIX_SUMS];
};

/* Which elements of a line of B belong to those of a line of A: `pick[i]` to the i-th. */
void SG_LEVEL(sg_matrix_pick)(const struct sg_matrix_work *work, unsigned line,
                              unsigned char pick[64]);

/* matrix_float.c */
void SG_LEVEL(sg_matrix_floats)(struct sg_matrix_work *work);
/* The quarter products of mma.m8n8k4: all by scalar instructions. */
void SG_LEVEL(sg_matrix_quarter)(struct sg_matrix_work *work);
/* matrix_integer.c */
void SG_LEVEL(sg_matrix_integers)(struct sg_matrix_work *work);
void SG_LEVEL(sg_matrix_bits)(struct sg_matrix_work *work);

/* ---- matrix_sum.c: how tensor cores add ------------------------------------------------------ */

/*
 * One sum of products: 8 elements of D, of one line of A and eight of B. A factor is `value` times
 * 2 to the power of `exponent` - `digits`; what is zero has the exponent SG_MATRIX_ZERO.
 */
struct sg_matrix_factors {
    unsigned count;
    unsigned digits; /* bits after the point of a factor's value */
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
/* Bits after the point that are kept of a term, with the largest exponent of all terms. */
#define SG_MATRIX_KEPT 25

/* c: factors with `c_digits` bits after the point, which are added as they are. */
void SG_LEVEL(sg_matrix_sum)(const struct sg_matrix_factors *factors, const int32_t *c_value,
                             const int32_t *c_exponent, unsigned c_digits,
                             struct sg_matrix_sums *sums);
uint32_t SG_LEVEL(sg_matrix_single)(int64_t value, int exponent);
uint16_t SG_LEVEL(sg_matrix_half)(int64_t value, int exponent);

#endif
