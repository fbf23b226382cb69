/*
 * Sums whose result says how a tensor core adds: what it keeps of small terms beside large ones,
 * which terms it adds together, what it does with zeros, subnormal numbers, infinities and NaNs.
 * Each case is one element of D: a line of A times a column of B, and C.
 */
#ifndef HARNESS_MATRIX_EDGES_H
#define HARNESS_MATRIX_EDGES_H

#include "matrix_forms.h"

struct matrix_edge {
    char name[64]; /* "f32.f16.k16 kept-25" */
    struct matrix_form form;
    uint64_t a[MATRIX_K], b[MATRIX_K], c;
};

#define MATRIX_EDGES 1500 /* there are fewer */

size_t matrix_edges(struct matrix_edge *edges, size_t room);
/* The registers of a case, in the first line and column; the others are zero. */
void matrix_edge_pack(const struct matrix_edge *edge, struct matrix_data *data,
                      uint64_t in[32][MATRIX_IN]);
/* False for a case with infinities, NaNs or a result out of range; else the exact sum and how far
 * from it an answer may be (as in matrix_values.c). */
bool matrix_edge_bound(const struct matrix_edge *edge, double *sum, double *bound);

#endif
