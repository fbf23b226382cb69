/* Options of the compiler: which values an H200 refuses, and what it answers. Most are for a
 * compiler that does not run here: they are checked and have no effect. */
#include "softgpu/core/state.h"
#include "softgpu/module/loading.h"

#include <stdint.h>
#include <string.h>

static unsigned number(const void *value) {
    return (unsigned)(uintptr_t)value;
}

/* Architectures that the modelled driver's compiler generates code for, without its marks for "a"
 * (0x10000) and "f" (0x20000). */
static bool target_known(unsigned target) {
    static const unsigned char known[] = {75, 80, 86, 87, 88, 89, 90, 100, 101, 103, 110, 120, 121};
    for (size_t i = 0; i < sizeof known; i++)
        if ((target & 0xffffu) == known[i])
            return true;
    return false;
}

/* The answer to compiling for a target; INVALID_VALUE comes at once, the others with an image.
 * Older targets still have names in the API, but no compiler. */
static CUresult read_target(struct sg_jit *jit, unsigned target) {
    jit->target = target & 0xffffu;
    jit->has_target = true;
    if (target_known(target))
        return CUDA_SUCCESS;
    jit->target_result = target < 50 ? CUDA_ERROR_INVALID_IMAGE : CUDA_ERROR_INVALID_PTX;
    return target <= 72 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Numbers that the compiler interprets as positive. */
static CUresult read_positive(struct sg_jit *jit, const void *value) {
    jit->ptx_refused |= (int)number(value) < 0;
    return CUDA_SUCCESS;
}

static CUresult some(bool good) {
    return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult read_one(struct sg_jit *jit, CUjit_option option, void *value) {
    switch ((int)option) {
    case CU_JIT_MAX_REGISTERS:
    case CU_JIT_THREADS_PER_BLOCK: /* an H200's driver divides by it */
        return some(number(value) != 0);
    case CU_JIT_INFO_LOG_BUFFER:
        jit->info = value;
        return some(value != NULL);
    case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
        jit->info_size = number(value);
        jit->info_sized = true;
        return CUDA_SUCCESS;
    case CU_JIT_ERROR_LOG_BUFFER:
        jit->error = value;
        return some(value != NULL);
    case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
        jit->error_size = number(value);
        jit->error_sized = true;
        return CUDA_SUCCESS;
    case CU_JIT_OPTIMIZATION_LEVEL:
        jit->unoptimized = number(value) == 0;
        return read_positive(jit, value);
    case CU_JIT_MIN_CTA_PER_SM:
    case CU_JIT_MAX_THREADS_PER_BLOCK:
    case CU_JIT_SPLIT_COMPILE:
        return read_positive(jit, value);
    case CU_JIT_TARGET:
        return read_target(jit, number(value));
    case CU_JIT_FALLBACK_STRATEGY:
        jit->fallback = true;
        jit->prefer_ptx = number(value) == CU_PREFER_PTX;
        return CUDA_SUCCESS;
    case CU_JIT_CACHE_MODE:
        return some(number(value) <= CU_JIT_CACHE_OPTION_CA);
    case CU_JIT_NEW_SM3X_OPT:
        jit->ptx_refused = true;
        return CUDA_SUCCESS;
    case CU_JIT_GLOBAL_SYMBOL_NAMES:
    case CU_JIT_GLOBAL_SYMBOL_ADDRESSES:
    case CU_JIT_GLOBAL_SYMBOL_COUNT:
        return CUDA_ERROR_INVALID_VALUE;
    case CU_JIT_REFERENCED_KERNEL_NAMES:
    case CU_JIT_REFERENCED_VARIABLE_NAMES:
        return some(value != NULL);
    default:
        return some(option >= 0 && option < CU_JIT_NUM_OPTIONS);
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
    /* A buffer and its size must be given together. */
    return some((jit->info != NULL) == jit->info_sized && (jit->error != NULL) == jit->error_sized);
}

CUresult sg_jit_image(const struct sg_jit *jit, const struct sg_image *image, int device_target,
                      bool link) {
    if (jit->target_result != CUDA_SUCCESS)
        return jit->target_result;
    /* The output of a link is machine code, whatever it was made from. */
    bool ptx = image->source == SG_IMAGE_PTX && !image->machine;
    if (ptx && jit->ptx_refused)
        return CUDA_ERROR_INVALID_PTX;
    if (link || !jit->has_target || jit->target == (unsigned)device_target)
        return CUDA_SUCCESS;
    return ptx ? CUDA_ERROR_INVALID_SOURCE : CUDA_ERROR_NO_BINARY_FOR_GPU;
}

struct sg_image_log sg_jit_log(const struct sg_jit *jit) {
    if (jit->info && jit->info_size)
        jit->info[0] = 0;
    if (jit->error && jit->error_size)
        jit->error[0] = 0;
    return (struct sg_image_log){.info = jit->info,
                                 .error = jit->error,
                                 .info_size = jit->info ? jit->info_size : 0,
                                 .error_size = jit->error ? jit->error_size : 0};
}

/* A float in the low bits of a pointer. */
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
            jit->values[i] = (void *)(uintptr_t)log->info_used;
        else if (jit->options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES)
            jit->values[i] = (void *)(uintptr_t)log->error_used;
        else if (jit->options[i] == CU_JIT_WALL_TIME)
            jit->values[i] = time_value(started);
    }
}
