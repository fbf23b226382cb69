/* Options of the compiler: which there are, which values they take, and what they are answered. */
#include "softgpu/core/state.h"
#include "softgpu/image/loading.h"

#include <stdint.h>

static unsigned number(const void *value) {
    return (unsigned)(uintptr_t)value;
}

static CUresult read_one(struct sg_jit *jit, CUjit_option option, void *value) {
    switch (option) {
    case CU_JIT_MAX_REGISTERS:
        jit->max_registers = number(value);
        return CUDA_SUCCESS;
    case CU_JIT_THREADS_PER_BLOCK:
        jit->threads = number(value);
        return CUDA_SUCCESS;
    case CU_JIT_INFO_LOG_BUFFER:
        jit->info = value;
        return CUDA_SUCCESS;
    case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
        jit->info_size = number(value);
        return CUDA_SUCCESS;
    case CU_JIT_ERROR_LOG_BUFFER:
        jit->error = value;
        return CUDA_SUCCESS;
    case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
        jit->error_size = number(value);
        return CUDA_SUCCESS;
    case CU_JIT_OPTIMIZATION_LEVEL:
        return number(value) <= 4 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_JIT_TARGET:
        jit->target = (int)number(value);
        return CUDA_SUCCESS;
    case CU_JIT_FALLBACK_STRATEGY:
        return number(value) <= CU_PREFER_BINARY ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_JIT_CACHE_MODE:
        return number(value) <= CU_JIT_CACHE_OPTION_CA ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    default:
        return option >= 0 && option < CU_JIT_NUM_OPTIONS ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult sg_jit_read(struct sg_jit *jit, unsigned count, CUjit_option *options, void **values) {
    *jit = (struct sg_jit){.options = options, .values = values, .count = count};
    if (count > 0 && (!options || !values))
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count; i++) {
        CUresult result = read_one(jit, options[i], values[i]);
        if (result != CUDA_SUCCESS)
            return result;
    }
    return CUDA_SUCCESS;
}

struct sg_image_log sg_jit_log(const struct sg_jit *jit) {
    return (struct sg_image_log){.info = jit->info,
                                 .error = jit->error,
                                 .info_size = jit->info ? jit->info_size : 0,
                                 .error_size = jit->error ? jit->error_size : 0};
}

/* A float in the place of a pointer's low bits. */
static void *time_value(uint64_t started) {
    union {
        float milliseconds;
        uint32_t bits;
    } time = {.milliseconds = (float)(sg_now() - started) / 1e6F};
    return (void *)(uintptr_t)time.bits;
}

void sg_jit_answer(const struct sg_jit *jit, const struct sg_image_log *log, uint64_t started) {
    for (unsigned i = 0; i < jit->count; i++) {
        if (jit->options[i] == CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES)
            jit->values[i] = (void *)log->info_used;
        else if (jit->options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES)
            jit->values[i] = (void *)log->error_used;
        else if (jit->options[i] == CU_JIT_WALL_TIME)
            jit->values[i] = time_value(started);
    }
}
