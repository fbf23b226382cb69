/* Checks of an instruction that the table of rules cannot express: sizes that depend on each
 * other. */
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
    {SG_TYPE_E4M3, {{16, 8, 16}, {16, 8, 32}}},
    {SG_TYPE_E5M2, {{16, 8, 16}, {16, 8, 32}}},
    {0, {{0}}},
};

static const struct shapes sparse[] = {
    {SG_TYPE_F16, {{16, 8, 16}, {16, 8, 32}}},
    {SG_TYPE_BF16, {{16, 8, 16}, {16, 8, 32}}},
    {SG_TYPE_TF32, {{16, 8, 8}, {16, 8, 16}}},
    {SG_TYPE_S8, {{16, 8, 32}, {16, 8, 64}}},
    {SG_TYPE_U8, {{16, 8, 32}, {16, 8, 64}}},
    {SG_TYPE_S4, {{16, 8, 64}, {16, 8, 128}}},
    {SG_TYPE_U4, {{16, 8, 64}, {16, 8, 128}}},
    {SG_TYPE_E4M3, {{16, 8, 64}}},
    {SG_TYPE_E5M2, {{16, 8, 64}}},
    {0, {{0}}},
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
    {0, {{0}}},
};

/* What wmma loads as C and stores as D; a type that does not fit in one row has two. */
static const struct shapes accumulators[] = {
    {SG_TYPE_F16, {{16, 16, 16}, {8, 32, 16}, {32, 8, 16}}},
    {SG_TYPE_F32, {{16, 16, 16}, {8, 32, 16}, {32, 8, 16}, {16, 16, 8}}},
    {SG_TYPE_F32, {{8, 8, 32}, {8, 8, 128}}},
    {SG_TYPE_S32, {{16, 16, 16}, {8, 32, 16}, {32, 8, 16}, {8, 8, 32}}},
    {SG_TYPE_S32, {{8, 8, 128}}},
    {SG_TYPE_F64, {{8, 8, 4}}},
    {0, {{0}}},
};

static bool same_shape(const uint16_t *left, const uint16_t *right) {
    return left[0] == right[0] && left[1] == right[1] && left[2] == right[2];
}

static bool has_shape(const struct shapes *list, unsigned type, const uint16_t *shape) {
    for (; list->type; list++) {
        for (size_t j = 0; list->type == type && j < 4 && list->shapes[j][0]; j++) {
            if (same_shape(list->shapes[j], shape))
                return true;
        }
    }
    return false;
}

enum matrix { MATRIX_A, MATRIX_B, MATRIX_C };

static bool of_quarters(const struct sg_instruction *one) {
    return one->op == SG_OP_mma && one->shape[0] == 8 && one->type2 == SG_TYPE_F16;
}

/* Registers that a thread needs for its fragment of a matrix: of 64 bits for f64, else of 32. */
static unsigned registers_of(const struct sg_instruction *one, enum matrix matrix, unsigned type) {
    const unsigned m = one->shape[0], n = one->shape[1], k = one->shape[2];
    unsigned elements = matrix == MATRIX_A ? m * k : matrix == MATRIX_B ? k * n : m * n;
    /* wmma holds each half-precision element in several threads. */
    if (one->op == SG_OP_wmma && type == SG_TYPE_F16 && matrix != MATRIX_C)
        return 8;
    if (matrix == MATRIX_A && (one->modifiers & SG_MOD(SPARSE)))
        elements /= 2;
    /* Four products, one per quarter warp. */
    if (of_quarters(one))
        elements *= 4;
    return type == SG_TYPE_F64 ? elements / 32 : elements * sg_type_bits(type) / 1024;
}

static const char *fragment(const struct sg_program *program, const struct sg_instruction *one,
                            const struct sg_operand *operand, enum matrix matrix, unsigned type) {
    unsigned bits = type == SG_TYPE_F64 ? 64 : 32;
    if (operand->count != registers_of(one, matrix, type))
        return "another number of registers than its matrix has";
    for (uint32_t i = 0; i < operand->count; i++) {
        const struct sg_operand *each = &program->operands[operand->first + i];
        if (each->kind != SG_OPERAND_NONE && sg_type_bits(each->type) != bits)
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

/* Whether an accumulator's type goes with the type of A. */
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

static bool is_integer(unsigned type) {
    return type == SG_TYPE_S8 || type == SG_TYPE_U8 || type == SG_TYPE_S4 || type == SG_TYPE_U4;
}

static bool saturates_floats(const struct sg_instruction *one, unsigned a) {
    return (one->modifiers & SG_MOD(SATFINITE)) && !is_integer(a);
}

/*
 * Metadata has two bits for each element of A, and the last operand selects which threads of each
 * four hold them: the more metadata, the fewer the choices.
 */
static const char *check_sparse(const struct sg_instruction *one,
                                const struct sg_operand *operands) {
    unsigned bits = sg_type_bits(one->type2);
    unsigned choices = (bits >= 16 ? 2u : 1u) * (one->shape[2] * bits <= 256 ? 2u : 1u);
    if (one->type == SG_TYPE_F16 && one->type2 != SG_TYPE_F16)
        return "types that do not go together";
    if ((uint64_t)operands[5].value >= choices)
        return "a selector that there is not for its shape";
    return NULL;
}

static const char *check_mma(const struct sg_program *program, const struct sg_instruction *one,
                             const struct sg_operand *operands) {
    bool half = one->modifiers & SG_MOD(SPARSE);
    bool widens = of_quarters(one) && one->type == SG_TYPE_F32;
    if (!family(one->type2, one->type3) || !accumulates(one->type2, one->type) ||
        !accumulates(one->type2, one->type4) || (one->type != one->type4 && !widens))
        return "types that do not go together";
    if (!has_shape(half ? sparse : multiplied, one->type2, one->shape))
        return "a shape that there is not for its types";
    if ((one->type2 == SG_TYPE_B1) != (one->operation2 != SG_DO_NONE))
        return "bits are multiplied with .xor.popc or .and.popc, and no others";
    bool columns = (one->modifiers & SG_MOD(A_COLUMN)) || !(one->modifiers & SG_MOD(B_COLUMN));
    if (columns && !of_quarters(one))
        return "a layout that there is not for its shape";
    if (saturates_floats(one, one->type2))
        return "a saturation that there is not for its types";
    const char *why = half ? check_sparse(one, operands) : NULL;
    return why ? why : product(program, one, operands, one->type2, one->type3, one->type4);
}

/* Matrices of elements smaller than a byte have one layout only. */
static bool layout_of_bits(const struct sg_instruction *one, unsigned type, bool a, bool b) {
    bool small = type == SG_TYPE_S4 || type == SG_TYPE_U4 || type == SG_TYPE_B1;
    bool a_column = (one->modifiers & SG_MOD(A_COLUMN)) != 0;
    bool b_column = (one->modifiers & (a ? SG_MOD(B_COLUMN) : SG_MOD(A_COLUMN))) != 0;
    return !small || ((!a || !a_column) && (!b || b_column));
}

static const char *check_wmma_memory(const struct sg_program *program,
                                     const struct sg_instruction *one,
                                     const struct sg_operand *operands) {
    bool a = one->operation == SG_DO_LOAD_A, b = one->operation == SG_DO_LOAD_B;
    bool store = one->operation == SG_DO_STORE_D;
    if (!has_shape(a || b ? warp_wide : accumulators, one->type, one->shape))
        return "a shape that there is not for its type";
    if (!layout_of_bits(one, one->type, a, b))
        return "a layout that there is not for its type";
    return fragment(program, one, &operands[store],
                    a   ? MATRIX_A
                    : b ? MATRIX_B
                        : MATRIX_C,
                    one->type);
}

static const char *check_wmma(const struct sg_program *program, const struct sg_instruction *one,
                              const struct sg_operand *operands) {
    bool half = !one->type3;
    unsigned a = half ? SG_TYPE_F16 : one->type2;
    if (one->operation != SG_DO_MMA)
        return check_wmma_memory(program, one, operands);
    if (!has_shape(warp_wide, a, one->shape))
        return "a shape that there is not for its types";
    if (half) /* .dtype.ctype */
        return product(program, one, operands, a, a, one->type2);
    if (one->type2 != one->type3 || !accumulates(a, one->type) || !accumulates(a, one->type4))
        return "types that do not go together";
    if (!layout_of_bits(one, a, true, true))
        return "a layout that there is not for its types";
    if (saturates_floats(one, a))
        return "a saturation that there is not for its types";
    return product(program, one, operands, one->type2, one->type3, one->type4);
}

/* ---- others ---------------------------------------------------------------------------------- */

static bool is_float(unsigned type) {
    return type == SG_TYPE_F16 || type == SG_TYPE_BF16 || type == SG_TYPE_F32 ||
           type == SG_TYPE_F64;
}

/* A conversion to a narrower float must say how it rounds. */
static const char *check_cvt(const struct sg_instruction *one) {
    bool floats = is_float(one->type) && is_float(one->type2);
    bool narrower = sg_type_bits(one->type) < sg_type_bits(one->type2);
    if (floats && narrower && one->rounding == SG_ROUND_NONE)
        return "a narrower float without a rounding";
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
    case SG_OP_ldmatrix:
    case SG_OP_stmatrix:
        return check_matrices(instruction, operands);
    default:
        return NULL;
    }
}
