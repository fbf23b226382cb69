/* Attaching managed memory to a stream. */
#include "../parity.h"

#include <sys/mman.h>

#define PAGE ((size_t)4096)

static CUdeviceptr managed(size_t size) {
    return PAR_MADE(CUdeviceptr, cuMemAllocManaged, size, CU_MEM_ATTACH_GLOBAL);
}

SCENARIO(flags, "attach/flags", par_context) {
    CUstream s = par_stream();
    CUdeviceptr m = managed(2 * PAGE);
    for (unsigned f = 0; f <= 8; f++) {
        par_note("flags=%u", f);
        CALL(cuStreamAttachMemAsync, "stream", (s, m, 0, f));
        par_note("flags=%u", f);
        CALL(cuStreamAttachMemAsync, "null-stream", (NULL, m, 0, f));
        par_note("flags=%u", f);
        CALL(cuStreamAttachMemAsync, "legacy-stream", (CU_STREAM_LEGACY, m, 0, f));
        par_note("flags=%u", f);
        CALL(cuStreamAttachMemAsync, "per-thread-stream", (CU_STREAM_PER_THREAD, m, 0, f));
        par_note("flags=%u", f);
        CALL(cuStreamAttachMemAsync_ptsz, "null-stream", (NULL, m, 0, f));
    }
    CALL(cuStreamSynchronize, "after", (s));
}

SCENARIO(lengths, "attach/lengths", par_context) {
    CUstream s = par_stream();
    CUstream gone = par_blocking_stream();
    SETUP(cuStreamDestroy_v2, (gone));
    CUdeviceptr m = managed(2 * PAGE + 100);
    CUdeviceptr f = managed(PAGE);
    SETUP(cuMemFree_v2, (f));
    CALL(cuStreamAttachMemAsync, "whole", (s, m, 2 * PAGE + 100, CU_MEM_ATTACH_SINGLE));
    CALL(cuStreamAttachMemAsync, "to-page-end", (s, m, 3 * PAGE, CU_MEM_ATTACH_SINGLE));
    CALL(cuStreamAttachMemAsync, "one-less", (s, m, 2 * PAGE + 99, CU_MEM_ATTACH_SINGLE));
    CALL(cuStreamAttachMemAsync, "one-more", (s, m, 2 * PAGE + 101, CU_MEM_ATTACH_SINGLE));
    CALL(cuStreamAttachMemAsync, "page", (s, m, PAGE, CU_MEM_ATTACH_GLOBAL));
    CALL(cuStreamAttachMemAsync, "mapping", (s, m, PAR_2M, CU_MEM_ATTACH_GLOBAL));
    CALL(cuStreamAttachMemAsync, "interior-zero", (s, m + PAGE, 0, CU_MEM_ATTACH_GLOBAL));
    CALL(cuStreamAttachMemAsync, "interior-rest", (s, m + PAGE, PAGE + 100, CU_MEM_ATTACH_GLOBAL));
    CALL(cuStreamAttachMemAsync, "interior-all", (s, m + PAGE, 2 * PAGE + 100, 1));
    CALL(cuStreamAttachMemAsync, "freed", (s, f, 0, CU_MEM_ATTACH_GLOBAL));
    CALL(cuStreamAttachMemAsync, "stale-stream", (gone, m, 0, CU_MEM_ATTACH_GLOBAL));
    CALL(cuStreamAttachMemAsync, "stale-stream-bad-flags", (gone, m, 0, 8));
    CALL(cuStreamAttachMemAsync, "stale-stream-null", (gone, 0, 0, CU_MEM_ATTACH_GLOBAL));
    CALL(cuStreamSynchronize, "after", (s));
}

SCENARIO(kinds, "attach/kinds", par_context) {
    static char global[8192];
    char *heap = malloc(8192);
    char *registered = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CUstream s = par_stream();
    CUdeviceptr pooled = PAR_MADE(CUdeviceptr, cuMemAllocAsync, 8192, NULL);
    SETUP(cuMemHostRegister_v2, (registered, 8192, 0));
    struct {
        const char *cls;
        CUdeviceptr at;
    } all[] = {
        {"device", par_alloc(8192)},
        {"pinned", (CUdeviceptr)(uintptr_t)par_pinned(8192)},
        {"registered", (CUdeviceptr)(uintptr_t)registered},
        {"heap", (CUdeviceptr)(uintptr_t)heap},
        {"global", (CUdeviceptr)(uintptr_t)global},
        {"pool", pooled},
        {"mapped", par_mapped(PAR_2M)},
        {"random", 0x1000},
    };
    for (size_t i = 0; i < COUNT(all); i++) {
        CUdeviceptr p = all[i].at;
        CALL(cuStreamAttachMemAsync, all[i].cls, (s, p, 0, CU_MEM_ATTACH_GLOBAL));
        CALL(cuStreamAttachMemAsync, all[i].cls, (s, p, 8192, CU_MEM_ATTACH_GLOBAL));
        CALL(cuStreamAttachMemAsync, all[i].cls, (s, p, 8192, CU_MEM_ATTACH_HOST));
        CALL(cuStreamAttachMemAsync, all[i].cls, (s, p, 8192, CU_MEM_ATTACH_SINGLE));
    }
    CALL(cuStreamSynchronize, "after", (s));
    free(heap);
}

SCENARIO(order, "attach/order", par_context) {
    CUstream s = par_stream();
    CUstream t = par_stream();
    CUdeviceptr m = managed(2 * PAGE);
    *(unsigned char *)(uintptr_t)m = 3;
    par_hold(s);
    CALL(cuStreamAttachMemAsync, "held", (s, m, 0, CU_MEM_ATTACH_SINGLE));
    CALL(cuStreamQuery, "held", (s));
    par_see("read-by-cpu", "%d", *(unsigned char *)(uintptr_t)m);
    CALL(cuMemsetD8Async, "other-stream", (m, 5, PAGE, t));
    CALL(cuStreamSynchronize, "other-stream", (t));
    par_see("read-by-cpu", "%d", *(unsigned char *)(uintptr_t)m);
    PAR_DRAIN("after", s);
    CALL(cuStreamAttachMemAsync, "other-stream", (t, m, 0, CU_MEM_ATTACH_SINGLE));
    CALL(cuStreamDestroy_v2, "attached", (t));
    CALL(cuMemsetD8Async, "after-destroy", (m, 6, PAGE, s));
    CALL(cuStreamSynchronize, "after", (s));
    par_see("read-by-cpu", "%d", *(unsigned char *)(uintptr_t)m);
    CALL(cuStreamAttachMemAsync, "attached", (s, m, 0, CU_MEM_ATTACH_SINGLE));
    CALL(cuMemFree_v2, "attached", (m));
    CALL(cuStreamDestroy_v2, "of-freed", (s));
}

SCENARIO(other_context, "attach/other-context", par_context) {
    CUdeviceptr m = managed(2 * PAGE);
    CUcontext other = par_new_context();
    CUstream s = par_stream();
    CALL(cuStreamAttachMemAsync, "foreign-ctx", (s, m, 0, CU_MEM_ATTACH_SINGLE));
    SETUP(cuCtxSetCurrent, (par.primary));
    CALL(cuStreamAttachMemAsync, "stream-of-other-ctx", (s, m, 0, CU_MEM_ATTACH_GLOBAL));
    CALL(cuMemPrefetchAsync, "stream-of-other-ctx", (m, PAGE, 0, s));
    SETUP(cuCtxDestroy_v2, (other));
    CALL(cuStreamAttachMemAsync, "stream-of-destroyed-ctx", (s, m, 0, CU_MEM_ATTACH_GLOBAL));
}
