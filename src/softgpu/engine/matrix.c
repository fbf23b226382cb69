/* The matrices of an instruction: order, registers, sizes. */
#include "softgpu/engine/matrix.h"

static unsigned type_of(const struct sg_instruction *in, unsigned which) {
    bool loads = in->op == SG_OP_wmma && in->operation != SG_DO_MMA;
    /* wmma in half precision gives only the types of D and C. */
    bool half = in->op == SG_OP_wmma && in->operation == SG_DO_MMA && !in->type3;
    switch (which) {
    case SG_MATRIX_A:
        return loads ? in->type : half ? (unsigned)SG_TYPE_F16 : in->type2;
    case SG_MATRIX_B:
        return loads ? in->type : half ? (unsigned)SG_TYPE_F16 : in->type3;
    case SG_MATRIX_C:
        return loads ? in->type : half ? in->type2 : in->type4;
    default:
        return in->type;
    }
}

void sg_matrix_of(const struct sg_instruction *in, unsigned which, struct sg_matrix *matrix) {
    unsigned m = in->shape[0], n = in->shape[1], k = in->shape[2];
    unsigned type = type_of(in, which), bits = sg_type_bits(type);
    bool across = m == 8 && n == 32; /* as m32n8 with A and B exchanged */
    *matrix = (struct sg_matrix){.type = (unsigned char)type, .bits = (unsigned char)bits};
    matrix->wide = bits == 64;
    matrix->each = (unsigned char)(bits == 64 ? 1 : 32 / bits);
    if (which >= SG_MATRIX_C) {
        matrix->order = across ? SG_MATRIX_SUM_ACROSS : SG_MATRIX_SUM;
        matrix->lines = (uint16_t)m;
        matrix->length = (uint16_t)n;
    } else {
        matrix->order = (which == SG_MATRIX_A) != across ? SG_MATRIX_ROWS : SG_MATRIX_COLUMNS;
        matrix->lines = (uint16_t)(which == SG_MATRIX_A ? m : n);
        matrix->length = (uint16_t)k;
        if (which == SG_MATRIX_A && (in->modifiers & SG_MOD(SPARSE)))
            matrix->length = (uint16_t)(k / 2);
    }
    matrix->distinct = (unsigned char)(matrix->lines * matrix->length / SG_LANES / matrix->each);
    matrix->registers = matrix->distinct;
    if (in->op == SG_OP_wmma && type == SG_TYPE_F16 && which < SG_MATRIX_C)
        matrix->registers = 8;
    if (in->op == SG_OP_mma && m == 8 && k == 4 && type_of(in, SG_MATRIX_A) == SG_TYPE_F16)
        matrix->registers = which < SG_MATRIX_C ? 2 : type == SG_TYPE_F16 ? 4 : 8;
}

struct sg_matrix_place sg_matrix_quarter_at(unsigned which, unsigned type, bool column,
                                            unsigned lane, unsigned element) {
    unsigned upper = lane / 16 * 4, four = lane % 4;
    if (which < SG_MATRIX_C) {
        /* The lane has a line of four elements, or one element in each of four lines. */
        bool whole = (which == SG_MATRIX_A) != column;
        return whole ? (struct sg_matrix_place){four + upper, element}
                     : (struct sg_matrix_place){element + upper, four};
    }
    if (type == SG_TYPE_F16)
        return (struct sg_matrix_place){four + upper, element};
    return (struct sg_matrix_place){(lane & 1) + (element & 2) + upper,
                                    (element & 4) + (lane & 2) + (element & 1)};
}
