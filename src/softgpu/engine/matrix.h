/*
 * Matrix fragments: which element is in which register of which lane. Lanes form eight rows of four
 * (`lane / 4`, `lane % 4`), from which follow all layouts that PTX documents for mma, ldmatrix and
 * the like. wmma's layouts are not documented; they are those of the mma instructions to which the
 * assembler translates wmma for sm_90.
 */
#ifndef SG_ENGINE_MATRIX_H
#define SG_ENGINE_MATRIX_H

#include "softgpu/engine/inside.h"

/* How the elements of a matrix are distributed over the registers of a warp. */
enum sg_matrix_order {
    SG_MATRIX_ROWS,      /* A: elements packed along k, blocks of 16 rows, or of 8 */
    SG_MATRIX_COLUMNS,   /* B: elements packed along k, blocks of 8 columns */
    SG_MATRIX_SUM,       /* C and D: two columns of a row, blocks of 16 rows and 8 columns */
    SG_MATRIX_SUM_ACROSS /* the same with rows and columns exchanged */
};

struct sg_matrix {
    unsigned char order;     /* enum sg_matrix_order */
    unsigned char type;      /* enum sg_type of an element */
    unsigned char bits;      /* of an element */
    unsigned char registers; /* per lane; of 64 bits for f64, else of 32 */
    unsigned char distinct;  /* the registers after these repeat them */
    unsigned char each;      /* elements in a register */
    /* A: rows and k; B: columns and k; C and D: rows and columns. */
    uint16_t lines, length;
    bool wide; /* registers of 64 bits */
};

/* The matrices of an mma or wmma: A, B, C, D. */
enum { SG_MATRIX_A, SG_MATRIX_B, SG_MATRIX_C, SG_MATRIX_D, SG_MATRICES };
void sg_matrix_of(const struct sg_instruction *instruction, unsigned which,
                  struct sg_matrix *matrix);

/* The position of an element in its matrix. A and B: the line and the index along k; C and D: row
 * and column. */
struct sg_matrix_place {
    unsigned line, at;
};
static inline struct sg_matrix_place sg_matrix_at(const struct sg_matrix *matrix, unsigned lane,
                                                  unsigned reg, unsigned element) {
    unsigned eighth = lane / 4, quarter = lane % 4, each = matrix->each;
    reg %= matrix->distinct;
    if (matrix->order >= SG_MATRIX_SUM) { /* elements are numbered across registers */
        unsigned number = reg * each + element, block = number / 4;
        unsigned row = eighth + 8 * (number >> 1 & 1), column = 2 * quarter + (number & 1);
        bool across = matrix->order == SG_MATRIX_SUM_ACROSS;
        if (across || matrix->lines > 16) /* blocks one below another */
            row += 16 * block;
        else
            column += 8 * block;
        return across ? (struct sg_matrix_place){column, row}
                      : (struct sg_matrix_place){row, column};
    }
    unsigned chunk = 4 * each, chunks = matrix->length / chunk;
    unsigned of_block = matrix->order == SG_MATRIX_ROWS && matrix->lines > 8 ? 2 : 1;
    unsigned block = reg / (chunks * of_block), inside = reg % (chunks * of_block);
    return (struct sg_matrix_place){8 * of_block * block + eighth + 8 * (inside % of_block),
                                    inside / of_block * chunk + quarter * each + element};
}

/* An element of mma.m8n8k4 in half precision, which is four products: one of lanes 0 to 3 and 16 to
 * 19, and so on. `column`: A and B are column-major, which matters for this shape only. */
struct sg_matrix_place sg_matrix_quarter_at(unsigned which, unsigned type, bool column,
                                            unsigned lane, unsigned element);

/* matrix_memory.c */
sg_run sg_run_ldmatrix, sg_run_stmatrix, sg_run_movmatrix, sg_run_wmma_load, sg_run_wmma_store;
/* converge.c: waits until all lanes that have not exited are at this step with one call stack. */
sg_run sg_run_converge;

#endif
