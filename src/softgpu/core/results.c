/* Names and texts of results. */
#include "softgpu/core/results.h"
#include "softgpu/core/calls.h"

#include <stddef.h>
#include <string.h>

static const struct {
    CUresult value;
    const char *name;
    const char *text;
} results[] = {
#define SG_RESULT(value, text) {value, #value, text},
#include "softgpu/core/results.def"
};

#define RESULT_COUNT (sizeof results / sizeof results[0])

/* The index of a value, or RESULT_COUNT. */
static size_t find(CUresult result) {
    size_t i = 0;
    while (i < RESULT_COUNT && results[i].value != result)
        i++;
    return i;
}

const char *sg_result_name(CUresult result) {
    size_t i = find(result);
    return i < RESULT_COUNT ? results[i].name : NULL;
}

const char *sg_result_string(CUresult result) {
    size_t i = find(result);
    return i < RESULT_COUNT ? results[i].text : NULL;
}

bool sg_result_parse(const char *name, CUresult *result) {
    for (size_t i = 0; i < RESULT_COUNT; i++) {
        const char *full = results[i].name;
        const char *brief = full + strlen(i == 0 ? "CUDA_" : "CUDA_ERROR_");
        if (strcmp(name, full) == 0 || strcmp(name, brief) == 0) {
            *result = results[i].value;
            return true;
        }
    }
    return false;
}

/* For a value that is not a CUresult, the output is set to NULL. */
static CUresult answer(const char *text, const char **pStr) {
    *pStr = text;
    return text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult sg_cuGetErrorName(CUresult error, const char **pStr) {
    return pStr ? answer(sg_result_name(error), pStr) : CUDA_ERROR_INVALID_VALUE;
}

CUresult sg_cuGetErrorString(CUresult error, const char **pStr) {
    return pStr ? answer(sg_result_string(error), pStr) : CUDA_ERROR_INVALID_VALUE;
}
