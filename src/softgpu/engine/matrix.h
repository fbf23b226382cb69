/*
 * Matrices that a warp holds in its registers: which lane's which register has which element.
 * Lanes are four to a row of eight rows (`lane / 4`, `lane % 4`): that is the whole of the layouts
 * that PTX documents for mma, ldmatrix and the like. Those of wmma are not documented; they are
 * those of the mma instructions that the assembler makes of them for sm_90.
 */
#ifndef SG_ENGINE_MATRIX_H
#define SG_ENGINE_MATRIX_H

#include "softgpu/engine/inside.h"

/* How the elements of a matrix lie in the registers of a warp. */
enum sg_matrix_order {
    SG_MATRIX_ROWS,      /* A: elements side by side along k, blocks of 16 rows, or of 8 */
    SG_MATRIX_COLUMNS,   /* B: elements side by side along k, blocks of 8 columns */
    SG_MATRIX_SUM,       /* C and D: two columns of a row, blocks of 16 rows and 8 columns */
    SG_MATRIX_SUM_ACROSS /* the same with rows and columns exchanged */
};

struct sg_matrix {
    unsigned char order;     /* enum sg_matrix_order */
    unsigned char type;      /* enum sg_type of an element */
    unsigned char bits;      /* of an element */
    unsigned char registers; /* of a lane; 64-bit ones of f64, else of 32 bits */
    unsigned char distinct;  /* the registers behind these hold the same once more */
    unsigned char each;      /* elements of a register */
    /* Of A rows and k, of B columns and k, of C and D rows and columns. */
    uint16_t lines, length;
    bool wide; /* registers of 64 bits */
};

/* The matrices of an mma or wmma: A, B, C, D. */
enum { SG_MATRIX_A, SG_MATRIX_B, SG_MATRIX_C, SG_MATRIX_D, SG_MATRICES };
void sg_matrix_of(const struct sg_instruction *instruction, unsigned which,
                  struct sg_matrix *matrix);

/* Where an element is that a lane has in a register: of A and B its line and its place along k, of
 * C and D row and column. */
struct sg_matrix_place {
    unsigned line, at;
};
static inline struct sg_matrix_place sg_matrix_at(const struct sg_matrix *matrix, unsigned lane,
                                                  unsigned reg, unsigned element) {
    unsigned eighth = lane / 4, quarter = lane % 4, each = matrix->each;
    reg %= matrix->distinct;
    if (matrix->order >= SG_MATRIX_SUM) { /* elements are counted through the registers */
        unsigned number = reg * each + element, block = number / 4;
        unsigned row = eighth + 8 * (number >> 1 & 1), column = 2 * quarter + (number & 1);
        bool across = matrix->order == SG_MATRIX_SUM_ACROSS;
        if (across || matrix->lines > 16) /* blocks one below the other */
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

/* The element of mma.m8n8k4 of half precision: four products, of lanes 0 to 3 and 16 to 19, and so
 * on. `column`: A and B lie by columns, which matters to no other shape. */
struct sg_matrix_place sg_matrix_quarter_at(unsigned which, unsigned type, bool column,
                                            unsigned lane, unsigned element);

/* matrix_memory.c */
sg_run sg_run_ldmatrix, sg_run_stmatrix, sg_run_movmatrix, sg_run_wmma_load, sg_run_wmma_store;
/* converge.c: waits until all lanes that have not exited are at this step, with one call stack. */
sg_run sg_run_converge;

#endif
