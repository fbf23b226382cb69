/*
 * atom and red of vectors (.v2, .v4, .v8) in global memory: each element is a separate atomic
 * operation, in order.
 */
#include "softgpu/engine/access.h"
#include "softgpu/engine/lanes/lanes.h"

static double widened(uint16_t bits, bool brain) {
    return brain ? (double)sg_bfloat_to_float(bits) : (double)SG_LEVEL(sg_half_to_float)(bits);
}

static bool is_nan(uint16_t bits, bool brain) {
    return (bits & 0x7fff) > (brain ? 0x7f80 : 0x7c00);
}

/* Like min and max: a number is preferred to a NaN, and -0 is less than +0. */
static uint16_t extreme(uint16_t a, uint16_t b, bool most, bool brain) {
    if (is_nan(a, brain))
        return is_nan(b, brain) ? 0x7fff : b;
    if (is_nan(b, brain))
        return a;
    int x = a & 0x8000 ? -(a & 0x7fff) - 1 : a, y = b & 0x8000 ? -(b & 0x7fff) - 1 : b;
    return (x > y) == most ? a : b;
}

static uint16_t half(uint16_t a, uint16_t b, unsigned operation, bool brain) {
    if (operation != SG_DO_ADD)
        return extreme(a, b, operation == SG_DO_MAX, brain);
    double sum = SG_LEVEL(sg_fma_odd)(widened(a, brain), 1.0, widened(b, brain));
    return brain ? SG_LEVEL(sg_bfloat_from_double)(sum, SG_ROUND_RN)
                 : SG_LEVEL(sg_half_from_double)(sum, SG_ROUND_RN);
}

/* f32 sums flush subnormal numbers in global memory. */
static uint32_t word(const struct sg_step *step, uint32_t a, uint32_t b) {
    if (step->type == SG_TYPE_F32)
        return sg_canonical(sg_flush(sg_float(sg_flush_bits(a)) + sg_float(sg_flush_bits(b))));
    bool brain = step->type == SG_TYPE_BF16X2;
    return (uint32_t)half((uint16_t)(a >> 16), (uint16_t)(b >> 16), step->choice, brain) << 16 |
           half((uint16_t)a, (uint16_t)b, step->choice, brain);
}

static uint32_t word_swap(const struct sg_step *step, unsigned char *at, uint32_t b) {
    u32 *memory = (u32 *)(void *)at, old = __atomic_load_n(memory, __ATOMIC_RELAXED), next;
    do
        next = word(step, old, b);
    while (!__atomic_compare_exchange_n(memory, &old, next, false, __ATOMIC_SEQ_CST,
                                        __ATOMIC_RELAXED));
    return old;
}

static uint16_t half_swap(const struct sg_step *step, unsigned char *at, uint16_t b) {
    bool brain = step->type == SG_TYPE_BF16;
    u16 *memory = (u16 *)(void *)at, old = __atomic_load_n(memory, __ATOMIC_RELAXED), next;
    do
        next = half(old, b, step->choice, brain);
    while (!__atomic_compare_exchange_n(memory, &old, next, false, __ATOMIC_SEQ_CST,
                                        __ATOMIC_RELAXED));
    return old;
}

/* list: places of the results, then of the operands; count: elements; second: bytes of an
 * element. */
static const struct sg_step *elements(struct sg_warp *warp, const struct sg_step *step) {
    const uint32_t *list = warp->grid->code->list + step->list;
    unsigned count = step->count, size = step->second;
    bool seen = false; /* a result: without one nobody waits for others */
    for (uint32_t left = warp->mask; left; left &= left - 1) {
        unsigned l = (unsigned)__builtin_ctz(left), space;
        unsigned char *at = sg_access(warp, step, l, (uint64_t)count * size, &space);
        uint32_t old[8];
        if (!at)
            return NULL;
        if (space != SG_IN_GLOBAL)
            return sg_warp_fault(warp, step, SG_FAULT_SPACE, l, sg_access_address(warp, step, l),
                                 (uint64_t)count * size);
        for (unsigned i = 0; i < count; i++) {
            const void *b = sg_place(warp, list[count + i]);
            old[i] = size == 2 ? half_swap(step, at + i * size, ((const u16 *)b)[l])
                               : word_swap(step, at + i * size, ((const u32 *)b)[l]);
        }
        for (unsigned i = 0; i < count; i++) {
            if (list[i] == SG_NOWHERE)
                continue;
            seen = true;
            void *d = sg_place(warp, list[i]);
            if (size == 2)
                ((u16 *)d)[l] = (uint16_t)old[i];
            else
                ((u32 *)d)[l] = old[i];
        }
    }
    warp->polls |= seen;
    return step + 1;
}

bool SG_LEVEL(sg_theme_vector_atomic)(const struct sg_instruction *in, struct sg_form *form) {
    bool halves = in->type == SG_TYPE_F16 || in->type == SG_TYPE_BF16 ||
                  in->type == SG_TYPE_F16X2 || in->type == SG_TYPE_BF16X2;
    if ((in->op != SG_OP_atom && in->op != SG_OP_red) || in->vector < 2 ||
        (!halves && in->type != SG_TYPE_F32) ||
        (in->operation != SG_DO_ADD &&
         !(halves && (in->operation == SG_DO_MIN || in->operation == SG_DO_MAX))))
        return false;
    unsigned bits = sg_type_bits(in->type);
    form->run = elements;
    form->choice = (unsigned char)in->operation;
    form->second = (unsigned char)(bits / 8);
    form->type = in->type;
    form->source[1] = bits == 16 ? SG_W_16 : SG_W_32;
    form->dest = in->op == SG_OP_atom ? form->source[1] : SG_W_NONE;
    return true;
}
