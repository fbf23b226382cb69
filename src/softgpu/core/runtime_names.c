/* What the runtime's functions and errors are called, by the runtime's own tables. */
#include "softgpu/core/runtime_calls.h"

#include <string.h>

static const char *const functions[] = {
#define RT_PLAIN(name, ...) #name,
#define RT_FN(name, ...)    #name,
#define RT_LATER(name, ...) #name,
#define RT_RAW(...)
#include "runtime/runtime.def"
};

static const struct {
    int value;
    const char *name, *text;
} errors[] = {
#define RT_ERROR(value, name, text)   {value, #name, text},
#define RT_ERROR13(value, name, text) {value, #name, text},
#include "runtime/core/errors.def"
};
#define ERROR_COUNT (sizeof errors / sizeof *errors)

bool sg_runtime_has_function(const char *name) {
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (strcmp(functions[i], name) == 0)
            return true;
    return false;
}

bool sg_runtime_returns_last_error(const char *function) {
    return strcmp(function, "cudaGetLastError") == 0 ||
           strcmp(function, "cudaPeekAtLastError") == 0;
}

bool sg_runtime_error_parse(const char *name, int *value) {
    for (size_t i = 0; i < ERROR_COUNT; i++)
        if (strcmp(errors[i].name, name) == 0) {
            *value = errors[i].value;
            return true;
        }
    return false;
}

const char *sg_runtime_error_name(int value) {
    for (size_t i = 0; i < ERROR_COUNT; i++)
        if (errors[i].value == value)
            return errors[i].name;
    return NULL;
}

const char *sg_runtime_error_text(int value) {
    for (size_t i = 0; i < ERROR_COUNT; i++)
        if (errors[i].value == value)
            return errors[i].text;
    return NULL;
}
