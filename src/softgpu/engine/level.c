/* The instruction set that the interpreter uses, and the CPU's floating-point modes. */
#include "softgpu/engine/lanes/lanes.h"

#if !defined __x86_64__
#include <fenv.h>
#endif

#if defined SG_WITHOUT_V4 /* builds with a sanitizer */
#define HAS_V4 false
#else
#define HAS_V4 true
#endif

bool sg_level_usable(enum sg_level level) {
#if defined __x86_64__
    __builtin_cpu_init();
    switch (level) {
    case SG_LEVEL_GENERIC:
        return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt");
    case SG_LEVEL_V3:
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") &&
               __builtin_cpu_supports("fma");
    case SG_LEVEL_V4:
        return HAS_V4 && sg_level_usable(SG_LEVEL_V3) && __builtin_cpu_supports("avx512f") &&
               __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    default:
        return false;
    }
#else
    return level == SG_LEVEL_GENERIC;
#endif
}

enum sg_level sg_level_best(void) {
    for (int level = SG_LEVEL_COUNT - 1; level > 0; level--)
        if (sg_level_usable((enum sg_level)level))
            return (enum sg_level)level;
    return SG_LEVEL_GENERIC;
}

const char *sg_level_name(enum sg_level level) {
    static const char *const names[] = {"generic", "x86-64-v3", "x86-64-v4"};
    return level < SG_LEVEL_COUNT ? names[level] : "";
}

const struct sg_lanes *sg_level_lanes(enum sg_level level) {
#if defined __x86_64__
#if !defined SG_WITHOUT_V4
    if (level == SG_LEVEL_V4)
        return &sg_lanes_v4;
#endif
    if (level == SG_LEVEL_V3)
        return &sg_lanes_v3;
#endif
    (void)level;
    return &sg_lanes_generic;
}

/* Returned for the rounding that is always set: nothing was changed. */
#define UNCHANGED UINT32_MAX

unsigned sg_round_set(unsigned rounding) {
    if (rounding != SG_ROUND_RZ && rounding != SG_ROUND_RM && rounding != SG_ROUND_RP)
        return UNCHANGED;
#if defined __x86_64__
    unsigned before = __builtin_ia32_stmxcsr();
    unsigned mode = rounding == SG_ROUND_RM ? 1 : rounding == SG_ROUND_RP ? 2 : 3;
    __builtin_ia32_ldmxcsr((before & ~0x6000u) | mode << 13);
#else
    unsigned before = (unsigned)fegetround();
    fesetround(rounding == SG_ROUND_RM   ? FE_DOWNWARD
               : rounding == SG_ROUND_RP ? FE_UPWARD
                                         : FE_TOWARDZERO);
#endif
    /* Later computations read memory, so the compiler cannot move them before this. */
    __asm__ volatile("" ::: "memory");
    return before;
}

void sg_round_restore(unsigned before) {
    if (before == UNCHANGED)
        return;
    __asm__ volatile("" ::: "memory");
#if defined __x86_64__
    __builtin_ia32_ldmxcsr(before);
#else
    fesetround((int)before);
#endif
}
