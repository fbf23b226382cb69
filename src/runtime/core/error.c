/* The last error of a thread, and what errors are called. */
#include "runtime/core/runtime.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__thread struct rt_thread rt_self;

static const struct text {
    int value;
    const char *name, *text;
} texts[] = {
#define RT_ERROR(value, name, text) {value, #name, text},
#if RT_ABI == 12
#define RT_ERROR13(value, name, text)
#else
#define RT_ERROR13(value, name, text) {value, #name, text},
#endif
#include "runtime/core/errors.def"
};

static int by_value(const void *left, const void *right) {
    return *(const int *)left - ((const struct text *)right)->value;
}

static const struct text *find(cudaError_t error) {
    static const struct text unknown = {0, "unrecognized error code", "unrecognized error code"};
    int value = (int)error;
    if (value < 0)
        return &unknown;
    const struct text *found =
        bsearch(&value, texts, sizeof texts / sizeof *texts, sizeof *texts, by_value);
    return found ? found : &unknown;
}

RT_EXPORT const char *cudaGetErrorName(cudaError_t error);
RT_EXPORT const char *cudaGetErrorString(cudaError_t error);

const char *cudaGetErrorName(cudaError_t error) {
    return find(error)->name;
}

const char *cudaGetErrorString(cudaError_t error) {
    return find(error)->text;
}

cudaError_t rt_cudaGetLastError(void) {
    cudaError_t last = rt_self.last;
    rt_self.last = cudaSuccess;
    return last;
}

cudaError_t rt_cudaPeekAtLastError(void) {
    return rt_self.last;
}

void rt_log(const char *format, ...) {
    const char *level = getenv("GPUMEM_RUNTIME_LOG");
    if (level && strcmp(level, "off") == 0)
        return;
    char line[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    fprintf(stderr, "gpumem runtime: %s\n", line);
}

cudaError_t rt_refuse(const char *name, _Atomic(bool) *said) {
    if (!atomic_exchange(said, true))
        rt_log("%s is not supported", name);
    return cudaErrorNotSupported;
}
