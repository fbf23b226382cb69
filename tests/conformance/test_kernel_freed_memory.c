/*
 * Memory that is freed in stream order while kernels that use it are still queued: they run as if
 * it were not freed yet, whatever was allocated at its addresses meanwhile.
 */
#include "kernels.h"

static const char text[] = KERNELS_HEAD
    ".visible .entry probe() { ret; }\n"
    /* when *flag is not 0: q[i] = i for each thread, then out[i] = q[n - 1 - i] */
    ".visible .entry reversed(.param .u64 flag, .param .u64 q, .param .u64 out) {\n"
    ".reg .pred %q; .reg .b32 %r<5>; .reg .b64 %d<7>; ld.param.u64 %d1, [flag];\n"
    "AGAIN: ld.acquire.sys.global.u32 %r1, [%d1]; setp.eq.u32 %q, %r1, 0; @%q bra AGAIN;\n"
    "ld.param.u64 %d2, [q]; mov.u32 %r2, %tid.x; mul.wide.u32 %d3, %r2, 4; add.u64 %d4, %d2, %d3;\n"
    "st.global.u32 [%d4], %r2; bar.sync 0; mov.u32 %r3, %ntid.x; sub.u32 %r3, %r3, %r2;\n"
    "sub.u32 %r3, %r3, 1; mul.wide.u32 %d5, %r3, 4; add.u64 %d4, %d2, %d5;\n"
    "ld.global.u32 %r4, [%d4]; ld.param.u64 %d6, [out]; add.u64 %d6, %d6, %d3;\n"
    "st.global.u32 [%d6], %r4; ret; }\n";

enum { THREADS = 256, SMALL = 64, KERNELS = 3 };

/* Word 0 is the flag; kernel k's results begin at THREADS * (k + 1). */
static struct shared_words words;

static void begin(void) {
    kernels_open(text);
    words = words_make(THREADS * (KERNELS + 1));
}

static CUdeviceptr allocate(CUstream stream, unsigned count) {
    return MADE_CU(CUdeviceptr, cuMemAllocAsync, 4 * (size_t)count, stream);
}

static void launch(CUstream stream, unsigned k, CUdeviceptr memory, unsigned threads) {
    CUdeviceptr out = words.device + 4 * (CUdeviceptr)THREADS * (k + 1);
    void *params[] = {&words.device, &memory, &out};
    OK_CU(cu.cuLaunchKernel(kernel("reversed"), 1, 1, 1, threads, 1, 1, 0, stream, params, NULL));
}

static void let_go(void) {
    __atomic_store_n(&words.host[0], 1, __ATOMIC_RELEASE);
    OK_CU(cu.cuCtxSynchronize());
}

static void expect_reversed(unsigned k, unsigned threads) {
    for (unsigned i = 0; i < threads; i++)
        assert_int_equal(words.host[THREADS * (k + 1) + i], threads - 1 - i);
}

TEST(a_queued_kernel_uses_memory_freed_after_it) {
    begin();
    CUdeviceptr memory = allocate(NULL, THREADS);
    launch(NULL, 0, memory, THREADS);
    OK_CU(cu.cuMemFreeAsync(memory, NULL));
    let_go();
    expect_reversed(0, THREADS);
}

/* The second and third allocation have the first one's address, and are smaller and larger. */
TEST(queued_kernels_use_freed_memory_whose_addresses_are_reused) {
    begin();
    const unsigned counts[KERNELS] = {THREADS, SMALL, THREADS};
    CUdeviceptr first = 0;
    CUstream stream = new_stream();
    for (unsigned k = 0; k < KERNELS; k++) {
        CUdeviceptr memory = allocate(stream, counts[k]);
        first = k == 0 ? memory : first;
        assert_int_equal(memory, first);
        launch(stream, k, memory, counts[k]);
        OK_CU(cu.cuMemFreeAsync(memory, stream));
    }
    let_go();
    for (unsigned k = 0; k < KERNELS; k++)
        expect_reversed(k, counts[k]);
}

TEST(another_stream_may_free_a_kernels_memory_after_an_event) {
    begin();
    CUstream stream = new_stream(), other = new_stream();
    CUevent event = new_event();
    CUdeviceptr memory = allocate(stream, THREADS);
    OK_CU(cu.cuStreamSynchronize(stream));
    launch(other, 0, memory, THREADS);
    order_streams(other, event, stream);
    OK_CU(cu.cuMemFreeAsync(memory, stream));
    CUdeviceptr next = allocate(stream, SMALL);
    launch(stream, 1, next, SMALL);
    OK_CU(cu.cuMemFreeAsync(next, stream));
    let_go();
    expect_reversed(0, THREADS);
    expect_reversed(1, SMALL);
}
