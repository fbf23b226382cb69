/* Modules of PTX with kernels, for tests that run them; and what they print. */
#ifndef CONFORMANCE_KERNEL_MODULE_H
#define CONFORMANCE_KERNEL_MODULE_H

#include "harness.h"
#include "temporary.h"

#define KERNEL_MODULE_HEAD ".version 7.0\n.target sm_70\n.address_size 64\n"

/* The module's text: the strings as variables s0, s1, …, and what follows them. Free it. */
static inline char *kernel_module_text(const char *const *strings, const char *rest) {
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    fputs(KERNEL_MODULE_HEAD, out);
    for (unsigned i = 0; strings && strings[i]; i++) {
        fprintf(out, ".global .align 1 .b8 s%u[%zu] = {", i, strlen(strings[i]) + 1);
        for (const char *at = strings[i]; *at; at++)
            fprintf(out, "%d, ", (unsigned char)*at);
        fputs("0};\n", out);
    }
    fputs(rest, out);
    fclose(out);
    return text;
}

static inline CUmodule kernel_module(const char *const *strings, const char *rest) {
    char *text = kernel_module_text(strings, rest);
    CUmodule module = MADE_CU(CUmodule, cuModuleLoadData, text);
    free(text);
    return module;
}

static inline CUresult kernel_launch(CUfunction function, unsigned blocks, unsigned threads,
                                     void **params) {
    return cu.cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, 0, NULL, params, NULL);
}

/* Skips where the driver runs no kernels. */
#define NEEDS_KERNELS()                                                                            \
    do {                                                                                           \
        if (!kernels_run())                                                                        \
            SKIP("the driver runs no kernels: SOFTGPU_KERNELS=0");                                 \
    } while (0)
static inline bool kernels_run(void) {
    CUmodule module = kernel_module(NULL, ".visible .entry nothing() { ret; }\n");
    CUresult result = kernel_launch(function_of(module, "nothing"), 1, 1, NULL);
    OK_CU(cu.cuCtxSynchronize());
    OK_CU(cu.cuModuleUnload(module));
    if (!no_kernels(result))
        OK_CU(result);
    return result == CUDA_SUCCESS;
}

/* From here on what is written to a descriptor lies in a file: its own descriptor. */
static inline int output_begin(int descriptor) {
    char name[TEMPORARY_ROOM];
    int file = temporary_file(name, "output");
    assert_true(file >= 0);
    assert_int_equal(unlink(name), 0);
    fflush(stdout);
    assert_true(dup2(file, descriptor) >= 0);
    return file;
}

/* All that has been written so far, with a zero behind it. */
static inline char *output_so_far(int file) {
    fflush(stdout);
    off_t size = lseek(file, 0, SEEK_END);
    assert_true(size >= 0);
    char *text = calloc(1, (size_t)size + 1);
    assert_non_null(text);
    assert_int_equal(pread(file, text, (size_t)size, 0), size);
    return text;
}

#endif
