/* Forms of wmma: through memory and back, in every order of rows and columns. */
#ifndef HARNESS_MATRIX_WIDE_H
#define HARNESS_MATRIX_WIDE_H

#include "matrix_values.h"

struct wide_form {
    struct matrix_product product;
    bool column[4]; /* A, B, C, D */
};

#define WIDE_FORMS 200  /* there are fewer */
#define WIDE_PART  4096 /* bytes of a matrix in memory */

size_t wide_forms(struct wide_form *forms, size_t room);
/* An entry `name(in, out)` for one warp: A, B and C lie in parts of `in`, D in `out`. */
void wide_kernel(const struct wide_form *form, const char *name, char *text, size_t size);
void wide_words(const struct wide_form *form, char *words, size_t size);
void wide_prepare(const struct wide_form *form, struct matrix_data *data, bool exact,
                  uint32_t *seed, unsigned char in[3 * WIDE_PART]);
void wide_collect(const struct wide_form *form, const unsigned char out[WIDE_PART],
                  struct matrix_data *data);

/*
 * An entry that loads A, B or C (which: 0, 1, 2) and writes each lane's registers, eight of 32
 * bits; and what they must be where a lane has the elements that it has for mma.
 */
void wide_fragment_kernel(const struct wide_form *form, unsigned which, const char *name,
                          char *text, size_t size);
void wide_fragment(const struct wide_form *form, unsigned which, const struct matrix_data *data,
                   uint32_t registers[32][8]);
unsigned wide_registers(const struct wide_form *form, unsigned which);

#endif
