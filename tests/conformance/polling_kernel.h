/*
 * A kernel that polls: it waits for the number of a round in a flag, compares the payload word by
 * word with what the round must have, and answers with the number. So it sees memory while the CPU
 * writes it, and not between launches. It ends at the last round, when the flag is POLLING_STOP, or
 * when nothing has come for the limit: a failure never occupies the device.
 */
#ifndef CONFORMANCE_POLLING_KERNEL_H
#define CONFORMANCE_POLLING_KERNEL_H

#include "harness.h"

#define POLLING_STOP     0xffffffffu
#define POLLING_LIMIT_NS 20000000000ull
#define POLLING_THREADS  128 /* at most */

/* Word `i` of round `sequence`. */
static inline uint32_t polling_word(uint32_t sequence, uint32_t i) {
    return sequence * 0x9e3779b1u + i * 40503u;
}

/* What the kernel writes, in pinned memory. */
struct polling_answer {
    uint32_t sequence;               /* of the last round that it has seen; released */
    uint32_t end;                    /* 0: all rounds; 1: nothing came; 2: stopped */
    uint32_t round, word, value;     /* one that was wrong */
    uint32_t unused[11];             /* to byte 64 */
    uint32_t wrong[POLLING_THREADS]; /* words, that each thread has counted */
};

/* Where a round is: slot `sequence & mask`, with these offsets in it. */
struct polling_layout {
    uint32_t mask, stride, payload, words, flag;
};

/* One thread polls for its block. What it sees holds for the others behind the barrier. */
#define POLLING_ENTRY(name, load_flag, load_word)                                                  \
    ".visible .entry " name "(.param .u64 p_slots, .param .u64 p_answer, .param .u64 p_limit,\n"   \
    "    .param .u32 p_first, .param .u32 p_last, .param .u32 p_mask, .param .u32 p_stride,\n"     \
    "    .param .u32 p_payload, .param .u32 p_words, .param .u32 p_flag)\n"                        \
    "{\n"                                                                                          \
    "    .reg .pred %lead, %yes;\n"                                                                \
    "    .reg .b32 %sequence, %last, %mask, %stride, %payload, %words, %flag;\n"                   \
    "    .reg .b32 %me, %threads, %i, %is, %want, %mixed, %wrong, %state;\n"                       \
    "    .reg .b64 %slots, %answer, %limit, %slot, %from, %at, %now, %end;\n"                      \
    "    .shared .align 4 .b32 verdict;\n"                                                         \
    "    ld.param.u64 %slots, [p_slots];\n"                                                        \
    "    ld.param.u64 %answer, [p_answer];\n"                                                      \
    "    ld.param.u64 %limit, [p_limit];\n"                                                        \
    "    ld.param.u32 %sequence, [p_first];\n"                                                     \
    "    ld.param.u32 %last, [p_last];\n"                                                          \
    "    ld.param.u32 %mask, [p_mask];\n"                                                          \
    "    ld.param.u32 %stride, [p_stride];\n"                                                      \
    "    ld.param.u32 %payload, [p_payload];\n"                                                    \
    "    ld.param.u32 %words, [p_words];\n"                                                        \
    "    ld.param.u32 %flag, [p_flag];\n"                                                          \
    "    cvta.to.global.u64 %slots, %slots;\n"                                                     \
    "    cvta.to.global.u64 %answer, %answer;\n"                                                   \
    "    mov.u32 %me, %tid.x;\n"                                                                   \
    "    mov.u32 %threads, %ntid.x;\n"                                                             \
    "    setp.eq.u32 %lead, %me, 0;\n"                                                             \
    "    mov.u32 %wrong, 0;\n"                                                                     \
    "    mov.u32 %state, 0;\n"                                                                     \
    "round:\n"                                                                                     \
    "    setp.gt.u32 %yes, %sequence, %last;\n"                                                    \
    "    @%yes bra over;\n"                                                                        \
    "    and.b32 %i, %sequence, %mask;\n"                                                          \
    "    mul.wide.u32 %slot, %i, %stride;\n"                                                       \
    "    add.u64 %slot, %slot, %slots;\n"                                                          \
    "    @!%lead bra told;\n"                                                                      \
    "    cvt.u64.u32 %at, %flag;\n"                                                                \
    "    add.u64 %at, %at, %slot;\n"                                                               \
    "    mov.u64 %end, %globaltimer;\n"                                                            \
    "    add.u64 %end, %end, %limit;\n"                                                            \
    "look:\n"                                                                                      \
    "    " load_flag " %is, [%at];\n"                                                              \
    "    mov.u32 %state, 0;\n"                                                                     \
    "    setp.eq.u32 %yes, %is, %sequence;\n"                                                      \
    "    @%yes bra tell;\n"                                                                        \
    "    mov.u32 %state, 2;\n"                                                                     \
    "    setp.eq.u32 %yes, %is, 0xffffffff;\n"                                                     \
    "    @%yes bra tell;\n"                                                                        \
    "    mov.u32 %state, 1;\n"                                                                     \
    "    mov.u64 %now, %globaltimer;\n"                                                            \
    "    setp.lt.u64 %yes, %now, %end;\n"                                                          \
    "    @%yes bra look;\n"                                                                        \
    "tell:\n"                                                                                      \
    "    st.shared.u32 [verdict], %state;\n"                                                       \
    "told:\n"                                                                                      \
    "    bar.sync 0;\n"                                                                            \
    "    ld.shared.u32 %state, [verdict];\n"                                                       \
    "    setp.ne.u32 %yes, %state, 0;\n"                                                           \
    "    @%yes bra over;\n"                                                                        \
    "    mul.lo.u32 %mixed, %sequence, 0x9e3779b1;\n"                                              \
    "    cvt.u64.u32 %from, %payload;\n"                                                           \
    "    add.u64 %from, %from, %slot;\n"                                                           \
    "    mov.u32 %i, %me;\n"                                                                       \
    "check:\n"                                                                                     \
    "    setp.ge.u32 %yes, %i, %words;\n"                                                          \
    "    @%yes bra checked;\n"                                                                     \
    "    mul.wide.u32 %at, %i, 4;\n"                                                               \
    "    add.u64 %at, %at, %from;\n"                                                               \
    "    " load_word " %is, [%at];\n"                                                              \
    "    mad.lo.u32 %want, %i, 40503, %mixed;\n"                                                   \
    "    setp.eq.u32 %yes, %is, %want;\n"                                                          \
    "    @%yes bra next;\n"                                                                        \
    "    add.u32 %wrong, %wrong, 1;\n"                                                             \
    "    st.volatile.global.u32 [%answer+8], %sequence;\n"                                         \
    "    st.volatile.global.u32 [%answer+12], %i;\n"                                               \
    "    st.volatile.global.u32 [%answer+16], %is;\n"                                              \
    "next:\n"                                                                                      \
    "    add.u32 %i, %i, %threads;\n"                                                              \
    "    bra check;\n"                                                                             \
    "checked:\n"                                                                                   \
    "    bar.sync 0;\n" /* all have read, and the slot may be written */                           \
    "    @!%lead bra answered;\n"                                                                  \
    "    st.release.sys.global.u32 [%answer], %sequence;\n"                                        \
    "answered:\n"                                                                                  \
    "    add.u32 %sequence, %sequence, 1;\n"                                                       \
    "    bra round;\n"                                                                             \
    "over:\n"                                                                                      \
    "    mul.wide.u32 %at, %me, 4;\n"                                                              \
    "    add.u64 %at, %at, %answer;\n"                                                             \
    "    st.volatile.global.u32 [%at+64], %wrong;\n"                                               \
    "    @%lead st.volatile.global.u32 [%answer+4], %state;\n"                                     \
    "    ret;\n"                                                                                   \
    "}\n"

/* By an acquire load and plain ones, and by volatile loads of both. A module each, since a string
 * of all would be longer than compilers must take. */
#define POLLING_HEAD ".version 7.0\n.target sm_70\n.address_size 64\n"
static const struct polling_way {
    const char *name, *image;
} polling_ways[] = {
    {"by_acquire",
     POLLING_HEAD POLLING_ENTRY("by_acquire", "ld.acquire.sys.global.u32", "ld.global.u32")},
    {"by_volatile",
     POLLING_HEAD POLLING_ENTRY("by_volatile", "ld.volatile.global.u32", "ld.volatile.global.u32")},
};

struct polling {
    CUmodule module[COUNT(polling_ways)];
    CUfunction function[COUNT(polling_ways)];
    CUstream stream;
    struct polling_answer *answer;
    CUdeviceptr answer_address;
};

/* Rounds `first` to `last`, of which there are none where first > last. */
static inline CUresult polling_start(struct polling *polling, size_t way, CUdeviceptr slots,
                                     const struct polling_layout *layout, uint32_t first,
                                     uint32_t last, unsigned threads) {
    struct polling_layout l = *layout;
    uint64_t limit = POLLING_LIMIT_NS;
    void *params[] = {&slots,    &polling->answer_address,
                      &limit,    &first,
                      &last,     &l.mask,
                      &l.stride, &l.payload,
                      &l.words,  &l.flag};
    memset(polling->answer, 0, sizeof *polling->answer);
    return cu.cuLaunchKernel(polling->function[way], 1, 1, 1, threads, 1, 1, 0, polling->stream,
                             params, NULL);
}

static inline void polling_free(struct polling *polling) {
    OK_CU(cu.cuStreamSynchronize(polling->stream));
    OK_CU(cu.cuStreamDestroy_v2(polling->stream));
    OK_CU(cu.cuMemFreeHost(polling->answer));
    for (size_t i = 0; i < COUNT(polling_ways); i++)
        OK_CU(cu.cuModuleUnload(polling->module[i]));
}

/* Skips the test where nothing runs kernels: softgpu says NOT_SUPPORTED; hardware must run them. */
static inline void polling_make(struct polling *polling) {
    const struct polling_layout none = {.stride = 4};
    void *memory = NULL;
#ifdef __SANITIZE_THREAD__
    SKIP("ThreadSanitizer does not know that two mappings are one memory");
#endif
    if (device_attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) < 7)
        SKIP("the device is older than acquire and release in PTX (compute capability 7.0)");
    for (size_t i = 0; i < COUNT(polling_ways); i++) {
        OK_CU(cu.cuModuleLoadData(&polling->module[i], polling_ways[i].image));
        OK_CU(cu.cuModuleGetFunction(&polling->function[i], polling->module[i],
                                     polling_ways[i].name));
    }
    OK_CU(cu.cuStreamCreate(&polling->stream, CU_STREAM_NON_BLOCKING));
    OK_CU(cu.cuMemHostAlloc(&memory, sizeof *polling->answer,
                            CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP));
    OK_CU(cu.cuMemHostGetDevicePointer_v2(&polling->answer_address, memory, 0));
    polling->answer = memory;
    CUresult result = polling_start(polling, 0, polling->answer_address, &none, 1, 0, 1);
    if (no_kernels(result)) {
        polling_free(polling);
        SKIP("the driver runs no kernels: SOFTGPU_KERNELS=0");
    }
    OK_CU(result);
    OK_CU(cu.cuStreamSynchronize(polling->stream));
}

/* The last round that the kernel has seen. */
static inline uint32_t polling_seen(const struct polling *polling) {
    return __atomic_load_n(&polling->answer->sequence, __ATOMIC_ACQUIRE);
}

/* After its end: wrong words. */
static inline uint64_t polling_wrong(const struct polling *polling) {
    uint64_t wrong = 0;
    for (size_t i = 0; i < POLLING_THREADS; i++)
        wrong += polling->answer->wrong[i];
    return wrong;
}

#endif
