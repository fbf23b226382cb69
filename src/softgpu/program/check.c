/* What the table of rules cannot say of an instruction: sizes that depend on each other. */
#include "softgpu/program/build.h"

/* ---- matrices -------------------------------------------------------------------------------- */

struct shapes {
    unsigned char type; /* of A */
    uint16_t shapes[4][3];
};

static const struct shapes multiplied[] = {
    {SG_TYPE_F16, {{8, 8, 4}, {16, 8, 8}, {16, 8, 16}}},
    {SG_TYPE_BF16, {{16, 8, 8}, {16, 8, 16}}},
    {SG_TYPE_TF32, {{16, 8, 4}, {16, 8, 8}}},
    {SG_TYPE_F64, {{8, 8, 4}, {16, 8, 4}, {16, 8, 8}, {16, 8, 16}}},
    {SG_TYPE_S8, {{8, 8, 16}, {16, 8, 16}, {16, 8, 32}}},
    {SG_TYPE_U8, {{8, 8, 16}, {16, 8, 16}, {16, 8, 32}}},
    {SG_TYPE_S4, {{8, 8, 32}, {16, 8, 32}, {16, 8, 64}}},
    {SG_TYPE_U4, {{8, 8, 32}, {16, 8, 32}, {16, 8, 64}}},
    {SG_TYPE_B1, {{8, 8, 128}, {16, 8, 128}, {16, 8, 256}}},
    {SG_TYPE_E4M3, {{16, 8, 32}}},
    {SG_TYPE_E5M2, {{16, 8, 32}}},
};

static const struct shapes warp_wide[] = {
    {SG_TYPE_F16, {{16, 16, 16}, {8, 32, 16}, {32, 8, 16}}},
    {SG_TYPE_BF16, {{16, 16, 16}, {8, 32, 16}, {32, 8, 16}}},
    {SG_TYPE_TF32, {{16, 16, 8}}},
    {SG_TYPE_F64, {{8, 8, 4}}},
    {SG_TYPE_S8, {{16, 16, 16}, {8, 32, 16}, {32, 8, 16}}},
    {SG_TYPE_U8, {{16, 16, 16}, {8, 32, 16}, {32, 8, 16}}},
    {SG_TYPE_S4, {{8, 8, 32}}},
    {SG_TYPE_U4, {{8, 8, 32}}},
    {SG_TYPE_B1, {{8, 8, 128}}},
};

static bool same_shape(const uint16_t *left, const uint16_t *right) {
    return left[0] == right[0] && left[1] == right[1] && left[2] == right[2];
}

static bool has_shape(const struct shapes *list, size_t count, unsigned type,
                      const uint16_t *shape) {
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; list[i].type == type && j < 4 && list[i].shapes[j][0]; j++) {
            if (same_shape(list[i].shapes[j], shape))
                return true;
        }
    }
    return false;
}

enum matrix { MATRIX_A, MATRIX_B, MATRIX_C };

/* Registers of a thread for its part of a matrix; 64-bit ones of f64, else of 32 bits. */
static unsigned registers_of(const struct sg_instruction *one, enum matrix matrix, unsigned type) {
    const unsigned m = one->shape[0], n = one->shape[1], k = one->shape[2];
    unsigned elements = matrix == MATRIX_A ? m * k : matrix == MATRIX_B ? k * n : m * n;
    /* Each thread of wmma holds elements of half precision twice. */
    if (one->op == SG_OP_wmma && type == SG_TYPE_F16 && matrix != MATRIX_C)
        return 8;
    /* Four products of quarter warps. */
    if (one->op == SG_OP_mma && m == 8 && k == 4 && one->type2 == SG_TYPE_F16)
        elements *= 4;
    return type == SG_TYPE_F64 ? elements / 32 : elements * sg_type_bits(type) / 1024;
}

static const char *fragment(const struct sg_program *program, const struct sg_instruction *one,
                            const struct sg_operand *operand, enum matrix matrix, unsigned type) {
    unsigned bits = type == SG_TYPE_F64 ? 64 : 32;
    if (operand->count != registers_of(one, matrix, type))
        return "another number of registers than its matrix has";
    for (uint32_t i = 0; i < operand->count; i++) {
        if (sg_type_bits(program->operands[operand->first + i].type) != bits)
            return "registers of another size than its matrix has";
    }
    return NULL;
}

static const char *product(const struct sg_program *program, const struct sg_instruction *one,
                           const struct sg_operand *operands, unsigned a, unsigned b, unsigned c) {
    const enum matrix which[] = {MATRIX_C, MATRIX_A, MATRIX_B, MATRIX_C};
    const unsigned types[] = {one->type, a, b, c};
    const char *why = NULL;
    for (unsigned i = 0; i < 4 && !why; i++)
        why = fragment(program, one, &operands[i], which[i], types[i]);
    return why;
}

static bool family(unsigned a, unsigned b) {
    bool eights = (a == SG_TYPE_S8 || a == SG_TYPE_U8) && (b == SG_TYPE_S8 || b == SG_TYPE_U8);
    bool fours = (a == SG_TYPE_S4 || a == SG_TYPE_U4) && (b == SG_TYPE_S4 || b == SG_TYPE_U4);
    bool floats =
        (a == SG_TYPE_E4M3 || a == SG_TYPE_E5M2) && (b == SG_TYPE_E4M3 || b == SG_TYPE_E5M2);
    return a == b || eights || fours || floats;
}

/* The accumulator that goes with the type of A. */
static bool accumulates(unsigned a, unsigned c) {
    switch (a) {
    case SG_TYPE_F16:
    case SG_TYPE_E4M3:
    case SG_TYPE_E5M2:
        return c == SG_TYPE_F16 || c == SG_TYPE_F32;
    case SG_TYPE_BF16:
    case SG_TYPE_TF32:
        return c == SG_TYPE_F32;
    case SG_TYPE_F64:
        return c == SG_TYPE_F64;
    default:
        return c == SG_TYPE_S32;
    }
}

static const char *check_mma(const struct sg_program *program, const struct sg_instruction *one,
                             const struct sg_operand *operands) {
    if (!family(one->type2, one->type3) || !accumulates(one->type2, one->type) ||
        !accumulates(one->type2, one->type4))
        return "types that do not go together";
    if (!has_shape(multiplied, sizeof multiplied / sizeof multiplied[0], one->type2, one->shape))
        return "a shape that there is not for its types";
    if ((one->type2 == SG_TYPE_B1) != (one->operation2 != SG_DO_NONE))
        return "bits are multiplied with .xor.popc or .and.popc, and no others";
    bool columns = (one->modifiers & SG_MOD(A_COLUMN)) || !(one->modifiers & SG_MOD(B_COLUMN));
    if (columns && !(one->shape[0] == 8 && one->shape[2] == 4 && one->type2 == SG_TYPE_F16))
        return "a layout that there is not for its shape";
    return product(program, one, operands, one->type2, one->type3, one->type4);
}

static const char *check_wmma(const struct sg_program *program, const struct sg_instruction *one,
                              const struct sg_operand *operands) {
    const size_t count = sizeof warp_wide / sizeof warp_wide[0];
    bool half = one->type2 == SG_TYPE_F16 || (one->type2 == SG_TYPE_F32 && !one->type3);
    unsigned a = half ? SG_TYPE_F16 : one->type2;
    switch (one->operation) {
    case SG_DO_LOAD_A:
    case SG_DO_LOAD_B:
        if (!has_shape(warp_wide, count, one->type, one->shape))
            return "a shape that there is not for its type";
        return fragment(program, one, &operands[0],
                        one->operation == SG_DO_LOAD_A ? MATRIX_A : MATRIX_B, one->type);
    case SG_DO_LOAD_C:
        return fragment(program, one, &operands[0], MATRIX_C, one->type);
    case SG_DO_STORE_D:
        return fragment(program, one, &operands[1], MATRIX_C, one->type);
    default:
        break;
    }
    if (!has_shape(warp_wide, count, a, one->shape))
        return "a shape that there is not for its types";
    if (half) /* .dtype.ctype */
        return product(program, one, operands, a, a, one->type2);
    if (!family(one->type2, one->type3) || !accumulates(a, one->type) ||
        !accumulates(a, one->type4))
        return "types that do not go together";
    return product(program, one, operands, one->type2, one->type3, one->type4);
}

/* ---- others ---------------------------------------------------------------------------------- */

static bool is_float(unsigned type) {
    return type == SG_TYPE_F16 || type == SG_TYPE_BF16 || type == SG_TYPE_F32 ||
           type == SG_TYPE_F64;
}

/* Where a float becomes narrower, somebody must have said how it is rounded. */
static const char *check_cvt(const struct sg_instruction *one) {
    bool floats = is_float(one->type) && is_float(one->type2);
    bool narrower = sg_type_bits(one->type) < sg_type_bits(one->type2);
    if (floats && narrower && one->rounding == SG_ROUND_NONE)
        return "a narrower float without a rounding";
    return NULL;
}

static const char *check_vector(const struct sg_instruction *one) {
    if (one->vector * sg_type_bits(one->type) > 128)
        return "a vector of more than 128 bits, which needs a device after sm_90";
    return NULL;
}

/* ldmatrix and stmatrix: .x1, .x2 or .x4 registers */
static const char *check_matrices(const struct sg_instruction *one,
                                  const struct sg_operand *operands) {
    const struct sg_operand *registers = &operands[one->op == SG_OP_stmatrix ? 1 : 0];
    return registers->count == one->vector ? NULL : "another number of registers than matrices";
}

const char *sg_build_check(const struct sg_program *program,
                           const struct sg_instruction *instruction,
                           const struct sg_operand *operands) {
    switch (instruction->op) {
    case SG_OP_mma:
        return check_mma(program, instruction, operands);
    case SG_OP_wmma:
        return check_wmma(program, instruction, operands);
    case SG_OP_cvt:
        return check_cvt(instruction);
    case SG_OP_ld:
    case SG_OP_ldu:
    case SG_OP_st:
    case SG_OP_atom:
    case SG_OP_red:
        return check_vector(instruction);
    case SG_OP_ldmatrix:
    case SG_OP_stmatrix:
        return check_matrices(instruction, operands);
    default:
        return NULL;
    }
}
