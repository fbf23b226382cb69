/* mma and wmma.mma: reads the fragments from registers, multiplies, and writes the result back. */
#include "softgpu/engine/lanes/matrix_lanes.h"

#include <math.h>

/* ---- fragments ------------------------------------------------------------------------------- */

static void prepare(const struct sg_warp *warp, const struct sg_step *step,
                    struct sg_matrix_work *work) {
    static const unsigned order[] = {SG_MATRIX_D, SG_MATRIX_A, SG_MATRIX_B, SG_MATRIX_C};
    const uint32_t *list = warp->grid->code->list + step->list;
    work->in = &warp->grid->code->program->instructions[step->instruction];
    for (unsigned i = 0; i < SG_MATRICES; i++) {
        struct sg_matrix *shape = &work->shape[order[i]];
        sg_matrix_of(work->in, order[i], shape);
        work->list[order[i]] = list;
        list += shape->registers;
        if (shape->bits == 1) { /* words of bits have the same layout as elements */
            shape->bits = 32;
            shape->each = 1;
            shape->length /= 32;
        }
    }
    bool half = (work->in->modifiers & SG_MOD(SPARSE)) != 0;
    work->words = half ? sg_place(warp, *list) : NULL;
    work->selector = step->choice;
    work->m = work->in->shape[0];
    work->n = work->in->shape[1];
    work->k = work->shape[SG_MATRIX_B].length;
}

static unsigned index_of(const struct sg_matrix *shape, struct sg_matrix_place place) {
    return place.line * shape->length + place.at;
}

/* Positions of a register's elements, affine in lane / 4, lane % 4 and the element. */
struct steps {
    unsigned first, eighth, quarter, element;
};

static struct steps steps_of(const struct sg_matrix *shape, unsigned reg) {
    unsigned first = index_of(shape, sg_matrix_at(shape, 0, reg, 0));
    return (struct steps){first, index_of(shape, sg_matrix_at(shape, 4, reg, 0)) - first,
                          index_of(shape, sg_matrix_at(shape, 1, reg, 0)) - first,
                          index_of(shape, sg_matrix_at(shape, 0, reg, 1)) - first};
}

static void take(const struct sg_warp *warp, const struct sg_matrix_work *work, unsigned which,
                 uint32_t *to) {
    const struct sg_matrix *shape = &work->shape[which];
    uint32_t mask = shape->bits == 32 ? UINT32_MAX : (1u << shape->bits) - 1;
    for (unsigned reg = 0; reg < shape->distinct; reg++) {
        const u32 *from = SG_SLOT(warp, work->list[which][reg]);
        const struct steps steps = steps_of(shape, reg);
        for (unsigned lane = 0; lane < SG_LANES; lane++) {
            uint32_t *at = to + steps.first + lane / 4 * steps.eighth + lane % 4 * steps.quarter;
            for (unsigned e = 0; e < shape->each; e++)
                at[e * steps.element] = from[lane] >> (e * shape->bits) & mask;
        }
    }
}

static void put(const struct sg_warp *warp, const struct sg_matrix_work *work) {
    const struct sg_matrix *shape = &work->shape[SG_MATRIX_D];
    for (unsigned reg = 0; reg < shape->registers; reg++) {
        u32 *to = SG_SLOT(warp, work->list[SG_MATRIX_D][reg]);
        const struct steps steps = steps_of(shape, reg);
        for (unsigned lane = 0; lane < SG_LANES; lane++) {
            const uint32_t *at =
                work->d + steps.first + lane / 4 * steps.eighth + lane % 4 * steps.quarter;
            uint32_t word = 0;
            for (unsigned e = 0; e < shape->each; e++)
                word |= at[e * steps.element] << (e * shape->bits);
            to[lane] = warp->mask >> lane & 1 ? word : to[lane];
        }
    }
}

/* ---- sparse ones ----------------------------------------------------------------------------- */

/*
 * Two-bit field `number` of the metadata of a line of A. For floats of 16 bits and more a lane's
 * word has eight fields of a line and eight of the line 8 below; otherwise sixteen of a line, and
 * the neighbouring lane has those of the line 8 below.
 */
static unsigned field(const struct sg_matrix_work *work, unsigned line, unsigned number) {
    unsigned below = line / 8, lane = line % 8 * 4, fields = work->shape[SG_MATRIX_A].length;
    unsigned bits = work->shape[SG_MATRIX_A].bits;
    if (bits >= 16) {
        fields *= bits / 16; /* tf32: each position takes four bits */
        lane += work->selector * (fields / 8) + number / 8;
        return work->words[lane] >> (16 * below + 2 * (number % 8)) & 3;
    }
    fields /= bits == 4 ? 2 : 1;
    lane += work->selector * 2 * (fields / 16) + number / 16 * 2 + below;
    return work->words[lane] >> (2 * (number % 16)) & 3;
}

void SG_LEVEL(sg_matrix_pick)(const struct sg_matrix_work *work, unsigned line,
                              unsigned char pick[64]) {
    const struct sg_matrix *a = &work->shape[SG_MATRIX_A];
    for (unsigned i = 0; i < a->length; i++) {
        unsigned at = i;
        if (work->words && a->bits == 32) /* one of two: 0100 is the first, 1110 the second */
            at = 2 * i + (field(work, line, 2 * i) >> 1);
        else if (work->words && a->bits == 4) /* two pairs of four */
            at = i / 4 * 8 + 2 * field(work, line, i / 2) + i % 2;
        else if (work->words) /* two of four */
            at = i / 2 * 4 + field(work, line, i);
        pick[i] = (unsigned char)at;
    }
}

/* ---- by types -------------------------------------------------------------------------------- */

static const struct sg_step *floats(struct sg_warp *warp, const struct sg_step *step) {
    struct sg_matrix_work work;
    prepare(warp, step, &work);
    take(warp, &work, SG_MATRIX_A, work.a);
    take(warp, &work, SG_MATRIX_B, work.b);
    take(warp, &work, SG_MATRIX_C, work.c);
    SG_LEVEL(sg_matrix_floats)(&work);
    put(warp, &work);
    return step + 1;
}

static const struct sg_step *integers(struct sg_warp *warp, const struct sg_step *step) {
    struct sg_matrix_work work;
    prepare(warp, step, &work);
    take(warp, &work, SG_MATRIX_A, work.a);
    take(warp, &work, SG_MATRIX_B, work.b);
    take(warp, &work, SG_MATRIX_C, work.c);
    if (work.in->operation2 == SG_DO_XOR_POPC || work.in->operation2 == SG_DO_AND_POPC)
        SG_LEVEL(sg_matrix_bits)(&work);
    else
        SG_LEVEL(sg_matrix_integers)(&work);
    put(warp, &work);
    return step + 1;
}

/* ---- m8n8k4 of half precision ---------------------------------------------------------------- */

/* A lane's element: `to` is its register, `shift` the position in it. */
static u32 *quarter_word(const struct sg_warp *warp, const struct sg_matrix_work *work,
                         unsigned which, unsigned element, unsigned *shift) {
    bool half = work->shape[which].type == SG_TYPE_F16;
    *shift = half ? 16 * (element & 1) : 0;
    return SG_SLOT(warp, work->list[which][half ? element / 2 : element]);
}

static struct sg_matrix_place quarter_place(const struct sg_matrix_work *work, unsigned which,
                                            unsigned lane, unsigned element) {
    uint64_t flag = which == SG_MATRIX_A ? SG_MOD(A_COLUMN) : SG_MOD(B_COLUMN);
    return sg_matrix_quarter_at(which, work->shape[which].type, (work->in->modifiers & flag) != 0,
                                lane, element);
}

static void quarter_take(const struct sg_warp *warp, const struct sg_matrix_work *work,
                         unsigned which, unsigned number, uint32_t *to) {
    bool half = work->shape[which].type == SG_TYPE_F16, factor = which < SG_MATRIX_C;
    for (unsigned lane = 0; lane < SG_LANES; lane++)
        for (unsigned e = 0; lane / 4 % 4 == number && e < (factor ? 4 : 8); e++) {
            struct sg_matrix_place place = quarter_place(work, which, lane, e);
            unsigned shift;
            uint32_t word = quarter_word(warp, work, which, e, &shift)[lane];
            to[place.line * (factor ? 4 : 8) + place.at] = word >> shift & (half ? 0xffff : ~0u);
        }
}

static const struct sg_step *quarters(struct sg_warp *warp, const struct sg_step *step) {
    struct sg_matrix_work work;
    uint32_t sums[4][64];
    prepare(warp, step, &work);
    for (unsigned number = 0; number < 4; number++) {
        quarter_take(warp, &work, SG_MATRIX_A, number, work.a);
        quarter_take(warp, &work, SG_MATRIX_B, number, work.b);
        quarter_take(warp, &work, SG_MATRIX_C, number, work.c);
        SG_LEVEL(sg_matrix_quarter)(&work);
        memcpy(sums[number], work.d, sizeof sums[number]);
    }
    for (uint32_t left = warp->mask; left; left &= left - 1) {
        unsigned lane = (unsigned)__builtin_ctz(left);
        for (unsigned e = 0; e < 8; e++) {
            struct sg_matrix_place place = quarter_place(&work, SG_MATRIX_D, lane, e);
            unsigned shift;
            u32 *to = quarter_word(warp, &work, SG_MATRIX_D, e, &shift) + lane;
            uint32_t kept = work.shape[SG_MATRIX_D].type == SG_TYPE_F16 ? 0xffff0000u >> shift : 0;
            *to = (*to & kept) | sums[lane / 4 % 4][place.line * 8 + place.at] << shift;
        }
    }
    return step + 1;
}

/* ---- f64 ------------------------------------------------------------------------------------- */

#if defined __FMA__ || defined __ARM_FEATURE_FMA
#define fused(a, b, c) __builtin_fma(a, b, c)
#else
#define fused(a, b, c) fma(a, b, c) /* the library's is exact */
#endif

struct doubles {
    double a[16 * 16], b[8 * 16], c[16 * 8];
};

static void take_doubles(const struct sg_warp *warp, const struct sg_matrix_work *work,
                         unsigned which, double *to) {
    const struct sg_matrix *shape = &work->shape[which];
    for (unsigned reg = 0; reg < shape->registers; reg++) {
        const f64 *from = SG_SLOT(warp, work->list[which][reg]);
        for (unsigned lane = 0; lane < SG_LANES; lane++)
            to[index_of(shape, sg_matrix_at(shape, lane, reg, 0))] = from[lane];
    }
}

static bool is_nan(double value) {
    return value != value;
}

/* The payload is preserved as in fma.f64 (double.c): b's, else c's, else a's. */
static double nan_of(double a, double b, double c) {
    double from = is_nan(b) ? b : is_nan(c) ? c : a;
    return sg_double(is_nan(from) ? sg_bits64(from) | UINT64_C(0x0008000000000000)
                                  : UINT64_C(0xfff8000000000000));
}

/* Fused multiply-adds starting with C, the products in order, each rounded. */
static uint64_t chain(const struct doubles *all, unsigned i, unsigned j, unsigned n, unsigned k) {
    double sum = all->c[i * n + j];
    for (unsigned p = 0; p < k; p++) {
        double a = all->a[i * k + p], b = all->b[j * k + p], next = fused(a, b, sum);
        sum = is_nan(next) ? nan_of(a, b, sum) : next;
    }
    return sg_bits64(sum);
}

static const struct sg_step *doubles(struct sg_warp *warp, const struct sg_step *step) {
    struct sg_matrix_work work;
    struct doubles all;
    prepare(warp, step, &work);
    take_doubles(warp, &work, SG_MATRIX_A, all.a);
    take_doubles(warp, &work, SG_MATRIX_B, all.b);
    take_doubles(warp, &work, SG_MATRIX_C, all.c);
    const struct sg_matrix *shape = &work.shape[SG_MATRIX_D];
    unsigned before = sg_round_set(step->rounding);
    for (unsigned reg = 0; reg < shape->registers; reg++) {
        u64 *to = SG_SLOT(warp, work.list[SG_MATRIX_D][reg]);
        for (uint32_t left = warp->mask; left; left &= left - 1) {
            unsigned lane = (unsigned)__builtin_ctz(left);
            struct sg_matrix_place place = sg_matrix_at(shape, lane, reg, 0);
            to[lane] = chain(&all, place.line, place.at, work.n, work.k);
        }
    }
    sg_round_restore(before);
    return step + 1;
}

/* ---- which ----------------------------------------------------------------------------------- */

bool SG_LEVEL(sg_theme_matrix)(const struct sg_instruction *in, struct sg_form *form) {
    if (in->op != SG_OP_mma && (in->op != SG_OP_wmma || in->operation != SG_DO_MMA))
        return false;
    struct sg_matrix a;
    sg_matrix_of(in, SG_MATRIX_A, &a);
    switch (a.type) {
    case SG_TYPE_F16:
        form->run = in->op == SG_OP_mma && in->shape[0] == 8 ? quarters : floats;
        return true;
    case SG_TYPE_BF16:
    case SG_TYPE_TF32:
    case SG_TYPE_E4M3:
    case SG_TYPE_E5M2:
        form->run = floats;
        return true;
    case SG_TYPE_F64:
        form->run = doubles;
        return true;
    case SG_TYPE_S8:
    case SG_TYPE_U8:
    case SG_TYPE_S4:
    case SG_TYPE_U4:
    case SG_TYPE_B1:
        form->run = integers;
        return true;
    default:
        return false;
    }
}
