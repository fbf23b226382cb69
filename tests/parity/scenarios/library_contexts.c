/* Libraries and kernels, asked again: without a context, with arguments that are otherwise right.
 */
#include "../parity.h"
#include "images.h"
#include "module_texts.h"

static CUlibrary load(const void *image) {
    return PAR_MADE(CUlibrary, cuLibraryLoadData, image, NULL, NULL, 0, NULL, NULL, 0);
}

/* library/no-context#004 passed a NULL offset. */
static void param_info(const char *cls, CUkernel k) {
    size_t offset, size;
    CALLO(cuKernelGetParamInfo, cls, (k, 7, &offset, &size), OUT_U(offset), OUT_U(size));
    par_note("no size");
    CALLO(cuKernelGetParamInfo, cls, (k, 7, &offset, NULL), OUT_U(offset));
    par_note("no such parameter");
    CALLO(cuKernelGetParamInfo, cls, (k, 99, &offset, &size), OUT_U(offset), OUT_U(size));
    par_note("no offset");
    CALLO(cuKernelGetParamInfo, cls, (k, 7, NULL, &size), OUT_U(size));
    par_note("no kernel");
    CALLO(cuKernelGetParamInfo, cls, (NULL, 7, &offset, &size), OUT_U(offset), OUT_U(size));
}

SCENARIO(param_info_no_context, "library-again/param-info-no-context", par_init) {
    CUlibrary l = load(image_kernels_cubin);
    CUkernel k = PAR_MADE(CUkernel, cuLibraryGetKernel, l, "types");
    param_info("no-ctx", k);
}

SCENARIO(param_info_context_gone, "library-again/param-info-context-gone", par_context) {
    CUlibrary l = load(image_kernels_cubin);
    CUkernel k = PAR_MADE(CUkernel, cuLibraryGetKernel, l, "types");
    param_info("ok", k);
    CUcontext gone = par_new_context();
    SETUP(cuCtxPopCurrent_v2, (&gone));
    SETUP(cuCtxPushCurrent_v2, (gone));
    SETUP(cuCtxPushCurrent_v2, (gone));
    SETUP(cuCtxDestroy_v2, (gone));
    param_info("destroyed-ctx", k);
}

SCENARIO(param_info_poisoned, "library-again/param-info-poisoned", par_context) {
    CUlibrary l = load(image_kernels_cubin);
    CUkernel k = PAR_MADE(CUkernel, cuLibraryGetKernel, l, "types");
    CUstream s = par_stream();
    CUdeviceptr gone = par_mapped(PAR_2M);
    par_hold(s);
    SETUP(cuMemsetD8Async, (gone, 1, PAR_2M, s));
    SETUP(cuMemUnmap, (gone, PAR_2M));
    PAR_DRAIN("faulted", s);
    param_info("faulted", k);
}

/* What else library/no-context left out. */
SCENARIO(others_no_context, "library-again/others-no-context", par_init) {
    CUlibrary back;
    CUkernel k, list[20] = {NULL};
    CUdeviceptr p;
    size_t bytes;
    const char *name;
    int value;
    CUlibrary l = load(image_kernels_cubin), managed = load(TEXT_MANAGED);
    SETUP(cuLibraryGetKernel, (&k, l, "types"));
    CALLO(cuKernelGetLibrary, "no-ctx", (&back, k), OUT_C(back));
    CALLO(cuKernelGetName, "no-ctx", (&name, k), OUT_Z(name));
    CALLO(cuLibraryEnumerateKernels, "no-ctx", (list, 20, l), OUT_C(list[0]), OUT_C(list[8]),
          OUT_C(list[9]));
    CALLO(cuLibraryGetManaged, "no-ctx", (&p, &bytes, managed, "managed_one"), OUT_C(p),
          OUT_U(bytes));
    CALLO(cuLibraryGetManaged, "no-ctx-no-address", (NULL, &bytes, managed, "managed_one"),
          OUT_U(bytes));
    CALLO(cuLibraryGetManaged, "no-ctx-not-managed", (&p, &bytes, managed, "plain_one"), OUT_C(p),
          OUT_U(bytes));
    CALLO(cuLibraryGetGlobal, "no-ctx-no-size", (&p, NULL, managed, "plain_one"), OUT_C(p));
    CALLO(cuLibraryGetGlobal, "no-ctx-no-such", (&p, &bytes, managed, "nothing"), OUT_C(p),
          OUT_U(bytes));
    CALLO(cuKernelGetAttribute, "no-ctx-bad-device",
          (&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, k, 99), OUT_I(value));
    CALLO(cuLibraryGetKernel, "no-ctx-no-such", (&k, l, "nothing"), OUT_C(k));
    CALL(cuLibraryUnload, "no-ctx", (managed));
}

/* A function is of a context, and knows its own: module/no-context had no size. */
SCENARIO(function_param_info_no_context, "library-again/function-no-context", par_context) {
    size_t offset, size;
    CUmodule m = par_module(image_kernels_cubin);
    CUfunction f = par_function(m, "types");
    SETUP(cuCtxSetCurrent, (NULL));
    CALLO(cuFuncGetParamInfo, "no-ctx-both", (f, 7, &offset, &size), OUT_U(offset), OUT_U(size));
    CALLO(cuFuncGetParamInfo, "no-ctx-no-such", (f, 99, &offset, &size), OUT_U(offset),
          OUT_U(size));
}
