/* Reductions in bulk of every operation and type: what becomes of 64 bytes. */
#ifndef TESTS_HARNESS_ASYNC_REDUCTIONS_H
#define TESTS_HARNESS_ASYNC_REDUCTIONS_H

#include "async_cases.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define ASYNC_REDUCTION 4096

/* The kernel that reduces the 64 bytes at `in` into those at `out`. */
static inline void async_reduction(char text[ASYNC_REDUCTION], const char *operation) {
    static const char form[] = ASYNC(
        "@!%%q bra end; mov.u32 %%r4, 0;\n"
        "more: cvt.u64.u32 %%rd4, %%r4; add.u64 %%rd4, %%rd4, %%rd3;\n"
        "ld.global.u32 %%r5, [%%rd4]; add.u32 %%r6, %%r4, %%r10; st.shared.u32 [%%r6], %%r5;\n"
        "add.u32 %%r4, %%r4, 4; setp.lt.u32 %%p, %%r4, 64; @%%p bra more;\n"
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.%s [%%rd1], [%%r10], 64;\n"
        "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;\nend:");
    /* The head has percent signs of its own. */
    size_t head = sizeof ASYNC_HEAD - 1;
    memcpy(text, form, head);
    snprintf(text + head, ASYNC_REDUCTION - head, form + head, operation);
}

/* Holds that `old`, reduced with `with`, is `wanted`; each of 64 bytes. */
typedef void reduces_of(const char *operation, const void *old, const void *with,
                        const void *wanted);

static inline uint64_t reduced(const char *name, uint64_t a, uint64_t b, unsigned bits, bool sign) {
    int64_t x = bits == 64 ? (int64_t)a : (int32_t)a, y = bits == 64 ? (int64_t)b : (int32_t)b;
    if (strcmp(name, "min") == 0)
        return (sign ? x < y : a < b) ? a : b;
    if (strcmp(name, "max") == 0)
        return (sign ? x > y : a > b) ? a : b;
    if (strcmp(name, "inc") == 0)
        return a >= b ? 0 : a + 1;
    if (strcmp(name, "dec") == 0)
        return a == 0 || a > b ? b : a - 1;
    return strcmp(name, "add") == 0   ? a + b
           : strcmp(name, "and") == 0 ? (a & b)
           : strcmp(name, "or") == 0  ? (a | b)
                                      : (a ^ b);
}

static inline void integers_are_reduced(reduces_of *reduces) {
    static const char *const names[] = {"add", "min", "max", "inc", "dec", "and", "or", "xor"};
    static const char *const types[] = {"u32", "s32", "u64", "s64", "b32", "b64"};
    static const uint64_t values[8] = {0,
                                       1,
                                       UINT64_C(0x8000000080000000),
                                       5,
                                       UINT64_MAX,
                                       UINT64_C(0x7fffffff7fffffff),
                                       77,
                                       UINT64_C(0xffffffff00000000)};
    for (size_t n = 0; n < 8; n++)
        for (size_t t = 0; t < 6; t++) {
            bool logic = n >= 5, wide = types[t][1] == '6', sign = types[t][0] == 's';
            if (logic != (types[t][0] == 'b') || ((n == 3 || n == 4) && t != 0) ||
                (n == 0 && t == 3))
                continue;
            uint64_t old[8], with[8], wanted[8];
            for (size_t i = 0; i < 8; i++) {
                old[i] = values[i];
                with[i] = values[(i * 3 + 1) % 8];
                wanted[i] =
                    wide ? reduced(names[n], old[i], with[i], 64, sign)
                         : reduced(names[n], (uint32_t)old[i], (uint32_t)with[i], 32, sign) %
                                   (UINT64_C(1) << 32) |
                               reduced(names[n], old[i] >> 32, with[i] >> 32, 32, sign) << 32;
            }
            char operation[16];
            snprintf(operation, sizeof operation, "%s.%s", names[n], types[t]);
            reduces(operation, old, with, wanted);
        }
}

static inline void floats_are_reduced(reduces_of *reduces) {
    float old[16], with[16], wanted[16];
    double old64[8], with64[8], wanted64[8];
    for (int i = 0; i < 16; i++) {
        old[i] = (float)i * 0.1f;
        with[i] = 1e6f / (float)(i + 3);
        wanted[i] = old[i] + with[i];
    }
    for (int i = 0; i < 8; i++) {
        old64[i] = i * 0.1;
        with64[i] = 1e6 / (i + 3);
        wanted64[i] = old64[i] + with64[i];
    }
    old[0] = 1e-45f; /* not flushed */
    with[0] = -0x1p-130f;
    wanted[0] = 0x1p-149f - 0x1p-130f;
    reduces("add.f32", old, with, wanted);
    reduces("add.f64", old64, with64, wanted64);
    uint16_t half[32], other[32], sum[32], least[32];
    for (int i = 0; i < 32; i++) {
        half[i] = 0x3c00;                               /* 1 */
        other[i] = (uint16_t)(i % 2 ? 0xc000 : 0x3800); /* -2, 0.5 */
        sum[i] = (uint16_t)(i % 2 ? 0xbc00 : 0x3e00);
        least[i] = other[i];
    }
    other[0] = 0x7e00; /* NaN */
    sum[0] = 0x7fff;
    least[0] = 0x3c00;
    half[1] = 0x0001; /* 2^-24 + 2^-24 */
    other[1] = 0x0001;
    sum[1] = 0x0002;
    least[1] = 0x0001;
    reduces("add.noftz.f16", half, other, sum);
    reduces("min.f16", half, other, least);
    for (int i = 0; i < 32; i++) {
        half[i] = 0x3f80; /* 1 in bf16 */
        other[i] = 0x4000;
        sum[i] = 0x4040;
    }
    reduces("add.noftz.bf16", half, other, sum);
    reduces("max.bf16", half, other, other);
}

#endif
