/*
 * atom and red: lane by lane, by the host's atomic operations, on global and shared memory. A block
 * stays on one thread, so its shared memory would not need them, but shares the code.
 */
#include "softgpu/engine/lanes/lanes.h"

static unsigned space_of(uint64_t *address) {
    uint64_t window = *address & ~(uint64_t)UINT32_MAX;
    unsigned space = window == SG_SHARED_WINDOW  ? SG_IN_SHARED
                     : window == SG_LOCAL_WINDOW ? SG_IN_LOCAL
                                                 : SG_IN_GLOBAL;
    if (space != SG_IN_GLOBAL)
        *address &= UINT32_MAX;
    if (space == SG_IN_SHARED)
        *address = sg_shared_offset(*address);
    return space;
}

static unsigned char *reach(struct sg_warp *warp, const struct sg_step *step, unsigned *space,
                            unsigned lane, uint64_t address, uint64_t size) {
    if (address & (size - 1))
        return sg_warp_fault(warp, step, SG_FAULT_MISALIGNED, lane, address, size);
    if (*space == SG_IN_GENERIC)
        *space = space_of(&address);
    if (*space == SG_IN_SHARED) {
        if (size <= warp->shared_size && address <= warp->shared_size - size)
            return warp->shared + address;
        return sg_reach_shared(warp, step, lane, address, size);
    }
    if (*space == SG_IN_LOCAL) /* hardware has no atomics there */
        return sg_warp_fault(warp, step, SG_FAULT_SPACE, lane, address, size);
    const struct sg_range_cache *cache = &warp->caches[step->cache];
    uint64_t offset = address - cache->low;
    if (size <= cache->length && offset <= cache->length - size)
        return (unsigned char *)(uintptr_t)(address + cache->distance);
    return sg_reach_global(warp, step, lane, address, size);
}

static uint64_t address_of(const struct sg_warp *warp, const struct sg_step *step, unsigned l) {
    if (step->flags & SG_STEP_WIDE)
        return ((const u64 *)sg_place(warp, step->a))[l] + (uint64_t)step->value;
    return (uint32_t)(((const u32 *)sg_place(warp, step->a))[l] + (uint32_t)step->value);
}

static uint32_t float_sum(uint32_t a, uint32_t b, bool flush) {
    float sum =
        flush ? sg_float(sg_flush_bits(a)) + sg_float(sg_flush_bits(b)) : sg_float(a) + sg_float(b);
    return sg_canonical(flush ? sg_flush(sum) : sum);
}

static uint16_t half_of(double value, bool brain) {
    return brain ? SG_LEVEL(sg_bfloat_from_double)(value, SG_ROUND_RN)
                 : SG_LEVEL(sg_half_from_double)(value, SG_ROUND_RN);
}

static uint16_t half_sum(uint16_t a, uint16_t b, bool brain) {
    double x = brain ? (double)sg_bfloat_to_float(a) : (double)SG_LEVEL(sg_half_to_float)(a);
    double y = brain ? (double)sg_bfloat_to_float(b) : (double)SG_LEVEL(sg_half_to_float)(b);
    return half_of(SG_LEVEL(sg_fma_odd)(x, 1.0, y), brain);
}

static bool is_nan64(uint64_t bits) {
    return (bits & INT64_MAX) > UINT64_C(0x7ff0000000000000);
}

/* In global memory a NaN operand is returned unchanged, preferably b; in shared memory it is made
 * quiet. */
static uint64_t double_sum(uint64_t a, uint64_t b, bool global) {
    if (global && is_nan64(b))
        return b;
    if (is_nan64(a))
        return global ? a : a | UINT64_C(0x0008000000000000);
    return sg_bits64(sg_double(a) + sg_double(b));
}

/* The new value in memory, in all bits of the width; b and c are the operands. */
static uint64_t combined(const struct sg_step *step, uint64_t old, uint64_t b, uint64_t c,
                         bool flush) {
    bool wide = sg_type_bits(step->type) == 64;
    bool has_sign = step->type == SG_TYPE_S32 || step->type == SG_TYPE_S64;
    int64_t x = wide ? (int64_t)old : (int32_t)(uint32_t)old;
    int64_t y = wide ? (int64_t)b : (int32_t)(uint32_t)b;
    switch (step->choice) {
    case SG_DO_ADD:
        switch (step->type) {
        case SG_TYPE_F32:
            return float_sum((uint32_t)old, (uint32_t)b, flush);
        case SG_TYPE_F64:
            return double_sum(old, b, flush);
        case SG_TYPE_F16:
        case SG_TYPE_BF16:
            return half_sum((uint16_t)old, (uint16_t)b, step->type == SG_TYPE_BF16);
        case SG_TYPE_F16X2:
        case SG_TYPE_BF16X2: {
            bool brain = step->type == SG_TYPE_BF16X2;
            return (uint64_t)half_sum((uint16_t)(old >> 16), (uint16_t)(b >> 16), brain) << 16 |
                   half_sum((uint16_t)old, (uint16_t)b, brain);
        }
        default:
            return old + b;
        }
    case SG_DO_MIN:
        return has_sign ? (x < y ? old : b) : old < b ? old : b;
    case SG_DO_MAX:
        return has_sign ? (x > y ? old : b) : old > b ? old : b;
    case SG_DO_AND:
        return old & b;
    case SG_DO_OR:
        return old | b;
    case SG_DO_XOR:
        return old ^ b;
    case SG_DO_EXCH:
        return b;
    case SG_DO_CAS:
        return old == b ? c : old;
    case SG_DO_INC:
        return old >= b ? 0 : old + 1;
    default:
        return old == 0 || old > b ? b : old - 1; /* dec */
    }
}

#define WIDTH(BITS)                                                                                \
    static uint64_t swap_##BITS(const struct sg_step *step, void *at, uint64_t b, uint64_t c,      \
                                bool flush) {                                                      \
        u##BITS *word = at, old = __atomic_load_n(word, __ATOMIC_RELAXED), next;                   \
        do                                                                                         \
            next = (uint##BITS##_t)combined(step, old, b, c, flush);                               \
        while (!__atomic_compare_exchange_n(word, &old, next, false, __ATOMIC_SEQ_CST,             \
                                            __ATOMIC_RELAXED));                                    \
        return old;                                                                                \
    }                                                                                              \
    static const struct sg_step *warp_##BITS(struct sg_warp *warp, const struct sg_step *step) {   \
        const u##BITS *b = SG_SLOT(warp, step->b), *c = SG_SLOT(warp, step->c);                    \
        u##BITS result[SG_LANES];                                                                  \
        u##BITS *d = SG_SLOT(warp, step->d);                                                       \
        bool plain = step->choice == SG_DO_ADD && step->type < SG_TYPE_F16;                        \
        uint32_t todo = warp->mask;                                                                \
        bool same = false; /* nothing changed: a look, as of one who waits for a lock */           \
        if (plain && step->space == SG_IN_SHARED && !(step->flags & SG_STEP_WIDE)) {               \
            uint32_t offset[SG_LANES], limit = (uint32_t)warp->shared_size;                        \
            const u32 *base = SG_SLOT(warp, step->a);                                              \
            uint32_t bad = limit < BITS / 8, last = limit - BITS / 8;                              \
            SG_LOOP {                                                                              \
                offset[l] = base[l] + (uint32_t)step->value;                                       \
                bad |=                                                                             \
                    (todo >> l & 1) & ((offset[l] > last) | ((offset[l] & (BITS / 8 - 1)) != 0));  \
            }                                                                                      \
            for (uint32_t left = bad ? 0 : todo; left; left &= left - 1) {                         \
                unsigned l = (unsigned)__builtin_ctz(left);                                        \
                u##BITS *word = (u##BITS *)(warp->shared + offset[l]);                             \
                result[l] = *word;                                                                 \
                *word = (uint##BITS##_t)(result[l] + b[l]);                                        \
            }                                                                                      \
            todo = bad ? todo : 0;                                                                 \
        }                                                                                          \
        for (uint32_t left = todo; left; left &= left - 1) {                                       \
            unsigned l = (unsigned)__builtin_ctz(left), space = step->space;                       \
            void *at = reach(warp, step, &space, l, address_of(warp, step, l), BITS / 8);          \
            if (!at)                                                                               \
                return NULL;                                                                       \
            if (plain && space == SG_IN_SHARED) {                                                  \
                u##BITS *word = at;                                                                \
                result[l] = *word;                                                                 \
                *word = (uint##BITS##_t)(*word + b[l]);                                            \
            } else if (plain) {                                                                    \
                result[l] = __atomic_fetch_add((u##BITS *)at, b[l], __ATOMIC_SEQ_CST);             \
            } else {                                                                               \
                result[l] =                                                                        \
                    (uint##BITS##_t)swap_##BITS(step, at, b[l], c[l], space != SG_IN_SHARED);      \
                same |= result[l] == (uint##BITS##_t)combined(step, result[l], b[l], c[l],         \
                                                              space != SG_IN_SHARED);              \
            }                                                                                      \
        }                                                                                          \
        for (unsigned l = 0; plain && l < SG_LANES; l++)                                           \
            same |= (warp->mask >> l & 1) && b[l] == 0;                                            \
        if (step->d != SG_NOWHERE)                                                                 \
            for (unsigned l = 0; l < SG_LANES; l++)                                                \
                d[l] = warp->mask >> l & 1 ? result[l] : d[l];                                     \
        warp->polls |= same;                                                                       \
        return step + 1;                                                                           \
    }                                                                                              \
    static const struct sg_step *atom_##BITS(struct sg_warp *warp, const struct sg_step *step) {   \
        if (!warp->together)                                                                       \
            return warp_##BITS(warp, step);                                                        \
        sg_read(warp, step->a, step->flags &SG_STEP_WIDE ? 8 : 4);                                 \
        sg_read(warp, step->b, BITS / 8);                                                          \
        if (step->choice == SG_DO_CAS)                                                             \
            sg_read(warp, step->c, BITS / 8);                                                      \
        sg_write(warp, step->d, BITS / 8);                                                         \
        for (unsigned g = 0; g < warp->together; g++)                                              \
            if (warp[g].mask && !warp_##BITS(&warp[g], step)) {                                    \
                warp->stop = SG_STOP_FAULT;                                                        \
                return NULL;                                                                       \
            }                                                                                      \
        return step + 1;                                                                           \
    }
WIDTH(16)
WIDTH(32)
WIDTH(64)

static bool can(unsigned operation, unsigned type) {
    bool integer = type < SG_TYPE_F16;
    switch (operation) {
    case SG_DO_ADD:
        return sg_type_bits(type) >= 16;
    case SG_DO_CAS:
    case SG_DO_EXCH:
        return integer;
    case SG_DO_MIN:
    case SG_DO_MAX:
    case SG_DO_AND:
    case SG_DO_OR:
    case SG_DO_XOR:
        return integer && sg_type_bits(type) >= 32;
    case SG_DO_INC:
    case SG_DO_DEC:
        return type == SG_TYPE_U32;
    default:
        return false;
    }
}

bool SG_LEVEL(sg_theme_atomic)(const struct sg_instruction *in, struct sg_form *form) {
    if ((in->op != SG_OP_atom && in->op != SG_OP_red) || in->vector > 1 ||
        !can(in->operation, in->type))
        return false;
    switch (sg_type_bits(in->type)) {
    case 16:
        form->run = atom_16;
        form->source[1] = SG_W_16;
        break;
    case 32:
        form->run = atom_32;
        form->source[1] = SG_W_32;
        break;
    case 64:
        form->run = atom_64;
        form->source[1] = SG_W_64;
        break;
    default:
        return false;
    }
    if (in->op == SG_OP_atom)
        form->dest = form->source[1];
    if (in->operation == SG_DO_CAS)
        form->source[2] = form->source[1];
    form->choice = (unsigned char)in->operation;
    form->type = in->type;
    form->gang = true;
    return true;
}
