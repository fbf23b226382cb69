/*
 * Accesses of 128 bits that must not tear: relaxed and stronger loads and stores, atom.exch and
 * atom.cas. A 128-bit register has two places, the low words first.
 */
#include "softgpu/engine/quad.h"

#include "softgpu/engine/access.h"

#include <string.h>

#if defined __x86_64__
/* Every x86-64-v2 processor has this instruction. The compiler's builtin calls a library, which
 * chooses at run time. */
static bool swap(uint64_t *at, uint64_t *old, const uint64_t *new) {
    bool same;
    __asm__ volatile("lock cmpxchg16b %1"
                     : "=@cce"(same), "+m"(*(uint64_t(*)[2])at), "+a"(old[0]), "+d"(old[1])
                     : "b"(new[0]), "c"(new[1])
                     : "memory");
    return same;
}

/* With AVX aligned loads are atomic, as both manufacturers document. Without it, reads until two
 * agree. A load must not write, as memory may be read-only. */
static void load(const unsigned char *at, uint64_t *value) {
    uint64_t again[2];
    if (__builtin_cpu_supports("avx")) {
        __asm__ volatile("vmovdqa %1, %%xmm0\n\tvmovdqu %%xmm0, %0"
                         : "=m"(*(uint64_t(*)[2])value)
                         : "m"(*(const unsigned char(*)[16])at)
                         : "xmm0");
        return;
    }
    memcpy(again, at, sizeof again);
    do {
        memcpy(value, again, sizeof again);
        __asm__ volatile("" ::: "memory");
        memcpy(again, at, sizeof again);
    } while (memcmp(value, again, sizeof again) != 0);
}
#elif defined __aarch64__
/* The compiler's builtin calls a library, which may take a lock that the host's other accesses do
 * not know of. A pair of exclusive loads is atomic only if the store succeeds, so if the comparison
 * fails the words are stored unchanged. */
static bool swap(uint64_t *at, uint64_t *old, const uint64_t *new) {
    uint64_t low, high, next_low, next_high;
    uint32_t failed;
    __asm__ volatile("1: ldaxp %[low], %[high], [%[at]]\n\t"
                     "cmp %[low], %[old_low]\n\t"
                     "ccmp %[high], %[old_high], #0, eq\n\t"
                     "csel %[next_low], %[new_low], %[low], eq\n\t"
                     "csel %[next_high], %[new_high], %[high], eq\n\t"
                     "stlxp %w[failed], %[next_low], %[next_high], [%[at]]\n\t"
                     "cbnz %w[failed], 1b"
                     : [low] "=&r"(low), [high] "=&r"(high), [next_low] "=&r"(next_low),
                       [next_high] "=&r"(next_high), [failed] "=&r"(failed)
                     : [at] "r"(at), [old_low] "r"(old[0]), [old_high] "r"(old[1]),
                       [new_low] "r"(new[0]), [new_high] "r"(new[1])
                     : "cc", "memory");
    bool same = low == old[0] && high == old[1];
    old[0] = low;
    old[1] = high;
    return same;
}

/* Reads until two agree: older processors have no atomic 128-bit load that does not write. */
static void load(const unsigned char *at, uint64_t *value) {
    const uint64_t *words = (const uint64_t *)(const void *)at;
    uint64_t again[2] = {__atomic_load_n(&words[0], __ATOMIC_SEQ_CST),
                         __atomic_load_n(&words[1], __ATOMIC_SEQ_CST)};
    do {
        memcpy(value, again, sizeof again);
        again[0] = __atomic_load_n(&words[0], __ATOMIC_SEQ_CST);
        again[1] = __atomic_load_n(&words[1], __ATOMIC_SEQ_CST);
    } while (memcmp(value, again, sizeof again) != 0);
}
#else
static bool swap(uint64_t *at, uint64_t *old, const uint64_t *new) {
    __extension__ typedef unsigned __int128 quad __attribute__((may_alias));
    quad expected, desired;
    memcpy(&expected, old, sizeof expected);
    memcpy(&desired, new, sizeof desired);
    bool same = __atomic_compare_exchange_n((quad *)at, &expected, desired, false, __ATOMIC_SEQ_CST,
                                            __ATOMIC_SEQ_CST);
    memcpy(old, &expected, sizeof expected);
    return same;
}

static void load(const unsigned char *at, uint64_t *value) {
    __extension__ typedef unsigned __int128 quad __attribute__((may_alias));
    quad seen = __atomic_load_n((const quad *)(const void *)at, __ATOMIC_SEQ_CST);
    memcpy(value, &seen, sizeof seen);
}
#endif

static bool global(unsigned space) {
    return space == SG_IN_GLOBAL;
}

/* list: places of the low and of the high words. */
const struct sg_step *sg_run_quad_load(struct sg_warp *warp, const struct sg_step *step) {
    const uint32_t *list = warp->grid->code->list + step->list;
    uint64_t *low = sg_place(warp, list[0]), *high = sg_place(warp, list[1]);
    for (uint32_t left = warp->mask; left; left &= left - 1) {
        unsigned l = (unsigned)__builtin_ctz(left), space;
        unsigned char *at = sg_access(warp, step, l, 16, &space);
        uint64_t value[2] = {0, 0};
        if (!at)
            return NULL;
        if (global(space))
            load(at, value);
        else
            memcpy(value, at, sizeof value);
        low[l] = value[0];
        high[l] = value[1];
    }
    warp->polls = true;
    return step + 1;
}

const struct sg_step *sg_run_quad_store(struct sg_warp *warp, const struct sg_step *step) {
    const uint32_t *list = warp->grid->code->list + step->list;
    const uint64_t *low = sg_place(warp, list[0]), *high = sg_place(warp, list[1]);
    for (uint32_t left = warp->mask; left; left &= left - 1) {
        unsigned l = (unsigned)__builtin_ctz(left), space;
        unsigned char *at = sg_access(warp, step, l, 16, &space);
        const uint64_t value[2] = {low[l], high[l]};
        uint64_t old[2];
        if (!at)
            return NULL;
        if (!global(space)) {
            memcpy(at, value, sizeof value);
            continue;
        }
        memcpy(old, at, sizeof old);
        while (!swap((uint64_t *)(void *)at, old, value))
            ;
    }
    return step + 1;
}

/* list: places of the result, of b and of c, low and high words each. */
const struct sg_step *sg_run_quad_atomic(struct sg_warp *warp, const struct sg_step *step) {
    const uint32_t *list = warp->grid->code->list + step->list;
    uint64_t *place[6];
    bool same = false; /* nothing changed: a look */
    for (unsigned i = 0; i < 6; i++)
        place[i] = list[i] == SG_NOWHERE ? NULL : sg_place(warp, list[i]);
    for (uint32_t left = warp->mask; left; left &= left - 1) {
        unsigned l = (unsigned)__builtin_ctz(left), space;
        unsigned char *at = sg_access(warp, step, l, 16, &space);
        if (!at)
            return NULL;
        if (space != SG_IN_GLOBAL && space != SG_IN_SHARED)
            return sg_warp_fault(warp, step, SG_FAULT_SPACE, l, sg_access_address(warp, step, l),
                                 16);
        uint64_t b[2] = {place[2][l], place[3][l]}, old[2];
        memcpy(old, at, sizeof old);
        if (step->choice == SG_DO_CAS) {
            const uint64_t c[2] = {place[4][l], place[5][l]};
            memcpy(old, b, sizeof old);
            swap((uint64_t *)(void *)at, old, c);
        } else {
            while (!swap((uint64_t *)(void *)at, old, b))
                ;
        }
        same |= (memcmp(old, b, sizeof old) == 0) != (step->choice == SG_DO_CAS);
        if (place[0])
            place[0][l] = old[0];
        if (place[1])
            place[1][l] = old[1];
    }
    warp->polls |= same;
    return step + 1;
}
