/* What the current context is and how it is configured. */
#include "softgpu/context/lifetime.h"
#include "softgpu/core/calls.h"

/* Works in an ended or poisoned context too, but not in one that was destroyed before it was made
 * current, because its device is no longer known. */
CUresult sg_cuCtxGetDevice_v2(CUdevice *device, CUcontext ctx) {
    struct sg_context *context;
    if (!device)
        return CUDA_ERROR_INVALID_VALUE;
    if (!atomic_load(&sg_initialized))
        return CUDA_ERROR_NOT_INITIALIZED;
    CUresult result = sg_context_find(ctx, &context);
    if (result == CUDA_SUCCESS && context->lost)
        result = CUDA_ERROR_CONTEXT_IS_DESTROYED;
    if (result == CUDA_SUCCESS)
        *device = context->device;
    return result;
}

CUresult sg_cuCtxGetDevice(CUdevice *device) {
    return sg_cuCtxGetDevice_v2(device, NULL);
}

CUresult sg_cuCtxGetId(CUcontext ctx, unsigned long long *ctxId) {
    struct sg_context *context;
    if (!ctxId)
        return CUDA_ERROR_INVALID_VALUE;
    if (!atomic_load(&sg_initialized))
        return CUDA_ERROR_NOT_INITIALIZED;
    CUresult result = sg_context_from_handle(ctx, &context);
    if (result == CUDA_SUCCESS)
        result = ctx ? CUDA_SUCCESS : context->sticky;
    if (result == CUDA_SUCCESS)
        *ctxId = context->id;
    return result;
}

CUresult sg_cuCtxGetApiVersion(CUcontext ctx, unsigned int *version) {
    struct sg_context *context;
    CUresult result = sg_context_from_handle(ctx, &context);
    if (result == CUDA_SUCCESS)
        result = ctx ? CUDA_SUCCESS : context->sticky;
    if (result == CUDA_SUCCESS && !version)
        return CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        *version = context->api_version;
    /* Seen on H200: "destroyed" for the current context only. */
    return ctx && result == CUDA_ERROR_CONTEXT_IS_DESTROYED ? CUDA_ERROR_INVALID_CONTEXT : result;
}

/* ---- Flags ----------------------------------------------------------------------------------- */

/* Works in an ended or poisoned context too. */
CUresult sg_cuCtxGetFlags(unsigned int *flags) {
    struct sg_context *context;
    if (!flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (!atomic_load(&sg_initialized))
        return CUDA_ERROR_NOT_INITIALIZED;
    CUresult result = sg_context_find(NULL, &context);
    if (result == CUDA_SUCCESS)
        *flags = context->flags;
    return result;
}

/* Mapped host memory and core dumps are decided when the context is made. */
CUresult sg_cuCtxSetFlags(unsigned int flags) {
    const unsigned fixed = CU_CTX_MAP_HOST | CU_CTX_COREDUMP_ENABLE | CU_CTX_USER_COREDUMP_ENABLE;
    struct sg_context *context;
    if (!sg_context_flags_valid(flags))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = sg_context_from_handle(NULL, &context);
    if (result != CUDA_SUCCESS)
        return result;
    context->flags = (context->flags & fixed) | (flags & ~fixed);
    if (context->primary)
        sg_device(context->device)->primary_flags = flags & ~fixed;
    return CUDA_SUCCESS;
}

/* ---- Limits ---------------------------------------------------------------------------------- */

static size_t within(size_t value, size_t least, size_t most) {
    if (most < least)
        most = least;
    return value < least ? least : value > most ? most : value;
}

static bool limit_known(const struct sg_context *context, CUlimit limit, CUresult *refusal) {
    unsigned number = (unsigned)limit;
    bool known = number < CU_LIMIT_MAX && sg_device(context->device)->context.has_limit[number];
    *refusal = known                   ? CUDA_SUCCESS
               : number < CU_LIMIT_MAX ? CUDA_ERROR_UNSUPPORTED_LIMIT
                                       : CUDA_ERROR_INVALID_VALUE;
    return known;
}

CUresult sg_cuCtxGetLimit(size_t *pvalue, CUlimit limit) {
    struct sg_context *context;
    CUresult result = sg_context_current(&context);
    if (result == CUDA_SUCCESS && !pvalue)
        return CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS && limit_known(context, limit, &result))
        *pvalue = context->limits[limit];
    return result;
}

/*
 * The value that a request becomes, or a refusal: bounds and steps as seen on H200. Memory that the
 * request would need is not reserved before a kernel needs it.
 */
static CUresult settle(const struct sg_device *device, CUlimit limit, size_t *value) {
    size_t persisting =
        (size_t)device->attributes[CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE];
    switch ((int)limit) {
    case CU_LIMIT_STACK_SIZE: /* local memory of a thread ends at 512 KiB */
        if (*value > (size_t)512 << 10)
            return CUDA_ERROR_INVALID_VALUE;
        *value = (*value + 15) / 16 * 16;
        return CUDA_SUCCESS;
    case CU_LIMIT_PRINTF_FIFO_SIZE:
        *value = within(*value, (size_t)512 << 10, (size_t)2 << 30);
        return CUDA_SUCCESS;
    case CU_LIMIT_MALLOC_HEAP_SIZE:
        *value = within(*value, (size_t)4 << 20, device->total_memory);
        return CUDA_SUCCESS;
    case CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT:
        *value = within(*value, 32, 599186);
        return CUDA_SUCCESS;
    case CU_LIMIT_MAX_L2_FETCH_GRANULARITY:
        return *value <= 128 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_LIMIT_PERSISTING_L2_CACHE_SIZE: /* in tenths of the maximum */
        if (*value > persisting)
            return CUDA_ERROR_INVALID_VALUE;
        if (persisting >= 10)
            *value = (*value + persisting / 10 - 1) / (persisting / 10) * (persisting / 10);
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_NOT_PERMITTED; /* read-only */
    }
}

CUresult sg_cuCtxSetLimit(CUlimit limit, size_t value) {
    struct sg_context *context;
    CUresult result = sg_context_current(&context);
    if (result != CUDA_SUCCESS || !limit_known(context, limit, &result))
        return result;
    result = settle(sg_device(context->device), limit, &value);
    /* The documentation has this error for the heap and for printf's buffer. */
    if (result == CUDA_SUCCESS && context->limit_fixed[limit])
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        context->limits[limit] = value;
    return result;
}

/* ---- Preferences for caches: stored and returned, as on devices where they have no effect -----
 */

CUresult sg_cuCtxGetCacheConfig(CUfunc_cache *pconfig) {
    struct sg_context *context;
    CUresult result = sg_context_current(&context);
    if (result == CUDA_SUCCESS && !pconfig)
        return CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        *pconfig = context->cache_config;
    return result;
}

CUresult sg_cuCtxSetCacheConfig(CUfunc_cache config) {
    struct sg_context *context;
    if ((unsigned)config > CU_FUNC_CACHE_PREFER_EQUAL)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = sg_context_current(&context);
    if (result == CUDA_SUCCESS)
        context->cache_config = config;
    return result;
}

/* Banks of shared memory are 4 bytes wide since Maxwell, whatever is requested. */
CUresult sg_cuCtxGetSharedMemConfig(CUsharedconfig *pConfig) {
    struct sg_context *context;
    CUresult result = sg_context_current(&context);
    if (result == CUDA_SUCCESS && !pConfig)
        return CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        *pConfig = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
    return result;
}

CUresult sg_cuCtxSetSharedMemConfig(CUsharedconfig config) {
    struct sg_context *context;
    if ((unsigned)config > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE)
        return CUDA_ERROR_INVALID_VALUE;
    return sg_context_current(&context);
}

/* softgpu's memory is never in a device cache, so every line is already as this call leaves it. */
CUresult sg_cuCtxResetPersistingL2Cache(void) {
    struct sg_context *context;
    return sg_context_current(&context);
}

/* The SM_COUNT parameter is what MPS gave to the context: without MPS, all of them. */
CUresult sg_cuCtxGetExecAffinity(CUexecAffinityParam *pExecAffinity, CUexecAffinityType type) {
    struct sg_context *context;
    CUresult result = sg_context_current_part(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (!pExecAffinity)
        return CUDA_ERROR_INVALID_VALUE;
    if (context->owner)
        return CUDA_ERROR_INVALID_CONTEXT; /* as on H200 */
    const int *attributes = sg_device(context->device)->attributes;
    pExecAffinity->type = type;
    if (type != CU_EXEC_AFFINITY_TYPE_SM_COUNT)
        return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
    pExecAffinity->param.smCount.val =
        (unsigned)attributes[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT];
    return CUDA_SUCCESS;
}
