/* cuMemset*: widths, alignments, pitches, ends of memory, twins. */
#include "../parity.h"

#define N ((size_t)4096)

static void show(CUdeviceptr d, size_t at) {
    uint32_t word = 0;
    SETUP(cuMemcpyDtoH_v2, (&word, d + at, sizeof(word)));
    par_see("content", "+%zu 0x%08x", at, word);
}

SCENARIO(widths, "set/widths", par_context) {
    CUdeviceptr d = par_alloc(N);
    CALL(cuMemsetD8_v2, "ok", (d, 0x5a, N));
    show(d, 8);
    CALL(cuMemsetD16_v2, "ok", (d, 0x1234, N / 2));
    show(d, 8);
    CALL(cuMemsetD32_v2, "ok", (d, 0xdeadbeef, N / 4));
    show(d, N - 4);
    CALL(cuMemsetD8_v2, "zero-count", (d, 1, 0));
    CALL(cuMemsetD8_v2, "zero-count-null", (0, 1, 0));
    CALL(cuMemsetD32_v2, "zero-count-random", (0x1000, 1, 0));
    CALL(cuMemsetD8_v2, "odd-address", (d + 1, 1, 5));
    CALL(cuMemsetD16_v2, "misaligned", (d + 1, 1, 4));
    CALL(cuMemsetD32_v2, "misaligned", (d + 1, 1, 4));
    CALL(cuMemsetD32_v2, "misaligned", (d + 2, 1, 4));
    CALL(cuMemsetD32_v2, "misaligned-zero-count", (d + 2, 1, 0));
    CALL(cuMemsetD8_v2, "one-past-end", (d, 1, N + 1));
    CALL(cuMemsetD16_v2, "one-past-end", (d, 1, N / 2 + 1));
    CALL(cuMemsetD32_v2, "one-past-end", (d, 1, N / 4 + 1));
    CALL(cuMemsetD8_v2, "null", (0, 1, 16));
    CALL(cuMemsetD8_v2, "random", (0x1000, 1, 16));
    CALL(cuMemsetD32_v2, "huge-count", (d, 1, (size_t)1 << 62));
    CALL(cuCtxSynchronize, "after-refusals", ());
}

SCENARIO(places, "set/places", par_context) {
    int on_stack;
    CUdeviceptr freed = par_alloc(4 * PAR_2M);
    SETUP(cuMemFree_v2, (freed));
    void *pinned = par_pinned(N);
    CALL(cuMemsetD8_v2, "freed", (freed, 1, 16));
    CALL(cuMemsetD8_v2, "pinned", ((CUdeviceptr)(uintptr_t)pinned, 9, 16));
    par_see("pinned-content", "%d", ((char *)pinned)[15]);
    CALL(cuMemsetD8_v2, "plain-host", ((CUdeviceptr)(uintptr_t)&on_stack, 9, 4));
    CALL(cuMemsetD8_v2, "mapped", (par_mapped(PAR_2M), 9, 16));
    CALL(cuMemsetD8_v2, "reserved", (par_reserve(PAR_2M), 9, 16));
    CALL(cuCtxSynchronize, "after", ());
}

SCENARIO(asynchronous, "set/asynchronous", par_context) {
    CUdeviceptr d = par_alloc(N);
    CUstream s = par_stream();
    CALL(cuMemsetD8Async, "ok", (d, 1, N, s));
    CALL(cuMemsetD16Async, "ok", (d, 1, N / 2, s));
    CALL(cuMemsetD32Async, "ok", (d, 1, N / 4, s));
    CALL(cuMemsetD8Async, "null-stream", (d, 1, N, NULL));
    CALL(cuMemsetD8Async, "one-past-end", (d, 1, N + 1, s));
    CALL(cuMemsetD16Async, "misaligned", (d + 1, 1, 4, s));
    CALL(cuMemsetD32Async, "misaligned", (d + 2, 1, 4, s));
    CALL(cuMemsetD8Async, "null", (0, 1, 16, s));
    CALL(cuMemsetD2D8Async, "ok", (d, 128, 1, 64, 8, s));
    CALL(cuMemsetD2D16Async, "ok", (d, 128, 1, 32, 8, s));
    CALL(cuMemsetD2D32Async, "ok", (d, 128, 1, 16, 8, s));
    CALL(cuMemsetD2D8Async, "pitch-below-width", (d, 32, 1, 64, 8, s));
    CALL(cuMemsetD2D16Async, "misaligned", (d + 1, 128, 1, 32, 8, s));
    CALL(cuMemsetD2D32Async, "one-past-end", (d, 128, 1, 16, 33, s));
    CALL(cuStreamSynchronize, "after", (s));
}

SCENARIO(two_dimensions, "set/two-dimensions", par_context) {
    CUdeviceptr d = par_alloc(N);
    CALL(cuMemsetD2D8_v2, "ok", (d, 128, 1, 64, 8));
    CALL(cuMemsetD2D16_v2, "ok", (d, 128, 1, 32, 8));
    CALL(cuMemsetD2D32_v2, "ok", (d, 128, 1, 16, 8));
    CALL(cuMemsetD2D8_v2, "zero-width", (d, 128, 1, 0, 8));
    CALL(cuMemsetD2D8_v2, "zero-height", (d, 128, 1, 64, 0));
    CALL(cuMemsetD2D8_v2, "zero-pitch", (d, 0, 1, 64, 8));
    CALL(cuMemsetD2D8_v2, "zero-pitch-one-row", (d, 0, 1, 64, 1));
    CALL(cuMemsetD2D8_v2, "pitch-below-width", (d, 32, 1, 64, 8));
    CALL(cuMemsetD2D16_v2, "pitch-below-width", (d, 32, 1, 32, 8));
    CALL(cuMemsetD2D32_v2, "pitch-below-width", (d, 32, 1, 16, 8));
    CALL(cuMemsetD2D16_v2, "pitch-misaligned", (d, 129, 1, 32, 8));
    CALL(cuMemsetD2D32_v2, "pitch-misaligned", (d, 130, 1, 16, 8));
    CALL(cuMemsetD2D16_v2, "misaligned", (d + 1, 128, 1, 32, 8));
    CALL(cuMemsetD2D32_v2, "misaligned", (d + 2, 128, 1, 16, 8));
    CALL(cuMemsetD2D8_v2, "last-row-ends-at-end", (d, 128, 1, 128, 32));
    CALL(cuMemsetD2D8_v2, "one-row-past-end", (d, 128, 1, 128, 33));
    CALL(cuMemsetD2D8_v2, "short-last-row", (d + 64, 128, 1, 64, 32));
    CALL(cuMemsetD2D8_v2, "null", (0, 128, 1, 64, 8));
    CALL(cuMemsetD2D32_v2, "random", (0x1000, 128, 1, 16, 8));
    CALL(cuCtxSynchronize, "after", ());
}

SCENARIO(twins, "set/twins", par_context) {
    CUdeviceptr d = par_alloc(N);
    CALL(cuMemsetD8_v2_ptds, "ok", (d, 1, N));
    CALL(cuMemsetD16_v2_ptds, "ok", (d, 1, N / 2));
    CALL(cuMemsetD32_v2_ptds, "ok", (d, 1, N / 4));
    CALL(cuMemsetD8Async_ptsz, "ok", (d, 1, N, NULL));
    CALL(cuMemsetD16Async_ptsz, "ok", (d, 1, N / 2, NULL));
    CALL(cuMemsetD32Async_ptsz, "ok", (d, 1, N / 4, NULL));
    CALL(cuMemsetD2D8_v2_ptds, "ok", (d, 128, 1, 64, 8));
    CALL(cuMemsetD2D16_v2_ptds, "ok", (d, 128, 1, 32, 8));
    CALL(cuMemsetD2D32_v2_ptds, "ok", (d, 128, 1, 16, 8));
    CALL(cuMemsetD2D8Async_ptsz, "ok", (d, 128, 1, 64, 8, NULL));
    CALL(cuMemsetD2D16Async_ptsz, "ok", (d, 128, 1, 32, 8, NULL));
    CALL(cuMemsetD2D32Async_ptsz, "ok", (d, 128, 1, 16, 8, NULL));
    CALL(cuMemsetD8_v2_ptds, "null", (0, 1, 16));
    CALL(cuMemsetD32Async_ptsz, "misaligned", (d + 1, 1, 4, NULL));
    CALL(cuMemsetD8, "v1-random", (0x1000, 1, 16));
    CALL(cuMemsetD16, "v1-random", (0x1000, 1, 16));
    CALL(cuMemsetD32, "v1-random", (0x1000, 1, 16));
    CALL(cuMemsetD2D8, "v1-random", (0x1000, 128, 1, 64, 8));
    CALL(cuMemsetD2D16, "v1-random", (0x1000, 128, 1, 32, 8));
    CALL(cuMemsetD2D32, "v1-random", (0x1000, 128, 1, 16, 8));
    CALL(cuMemsetD8, "v1-zero-count", (0, 1, 0));
    CALL(cuCtxSynchronize, "after", ());
}

SCENARIO(without_context, "set/without-context", par_context) {
    CUdeviceptr d = par_alloc(N);
    CUstream s = par_stream();
    SETUP(cuCtxSetCurrent, (NULL));
    CALL(cuMemsetD8_v2, "no-context", (d, 1, N));
    CALL(cuMemsetD8Async, "no-context", (d, 1, N, s));
    CALL(cuMemsetD8Async, "no-context-null-stream", (d, 1, N, NULL));
}
