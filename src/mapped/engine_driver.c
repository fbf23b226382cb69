/* The driver's copy, on a stream that nothing else is ordered with. */
#include "mapped/engine.h"
#include "memory/core/current_context.h"
#include "memory/core/driver_error.h"

void gm_engine_open(struct gm_engine *engine, gpumem_device *device, gpumem_mapped_method method,
                    bool coherent) {
    engine->device = device;
    engine->coherent = coherent;
    engine->plans = gm_plans_of(device, method);
    for (size_t i = 0; i < GM_ENGINE_STREAMS; i++)
        atomic_init(&engine->streams[i], NULL);
}

/* ---- Streams --------------------------------------------------------------------------------- */

static void end_stream(gpumem_device *device, CUstream stream) {
    if (stream && device->cu->cuStreamDestroy_v2(stream) != CUDA_SUCCESS)
        gm_meter_quarantine(&device->meter, 0);
}

/* NULL, with the error on record, if there is none. */
static CUstream take_stream(struct gm_engine *engine) {
    const gpumem_driver_api *cu = engine->device->cu;
    for (size_t i = 0; i < GM_ENGINE_STREAMS; i++) {
        CUstream stream = atomic_exchange(&engine->streams[i], NULL);
        if (stream)
            return stream;
    }
    CUstream made = NULL;
    CUresult result = cu->cuStreamCreate(&made, CU_STREAM_NON_BLOCKING);
    if (result == CUDA_SUCCESS)
        return made;
    end_stream(engine->device, made); /* a refused call may still have made it */
    (void)gm_cu_fail(cu, result, "cuStreamCreate", "no stream for a copy of mapped memory");
    return NULL;
}

static void give_stream(struct gm_engine *engine, CUstream stream) {
    for (size_t i = 0; i < GM_ENGINE_STREAMS; i++) {
        CUstream none = NULL;
        if (atomic_compare_exchange_strong(&engine->streams[i], &none, stream))
            return;
    }
    end_stream(engine->device, stream);
}

void gm_engine_close(struct gm_engine *engine) {
    struct gm_current current;
    struct gm_error_record saved;
    bool entered = false, tried = false;
    for (size_t i = 0; i < GM_ENGINE_STREAMS; i++) {
        CUstream stream = atomic_exchange(&engine->streams[i], NULL);
        if (!stream)
            continue;
        if (!tried) {
            gm_error_save(&saved);
            entered = gm_current_enter(&current, engine->device) == GPUMEM_OK;
            tried = true;
        }
        if (entered)
            end_stream(engine->device, stream);
        else
            gm_meter_quarantine(&engine->device->meter, 0);
    }
    if (entered)
        gm_current_leave(&current);
    if (tried)
        gm_error_restore(&saved);
}

/* ---- The copy -------------------------------------------------------------------------------- */

/* A refusal may report an earlier failure, and the next call may succeed. */
static CUresult wait_for(const gpumem_driver_api *cu, CUstream stream) {
    CUresult result = cu->cuStreamSynchronize(stream);
    if (result != CUDA_SUCCESS && !gm_code_is_sticky(result))
        result = cu->cuStreamSynchronize(stream);
    return result;
}

/* Waits even after a refusal, which may have started a copy: afterwards the caller may reuse its
 * memory, or the CPU may write the same bytes. */
static enum gm_engine_outcome copy_on(const gpumem_driver_api *cu, CUstream stream,
                                      unsigned direction, void *host, CUdeviceptr device,
                                      size_t bytes, gpumem_status *status) {
    bool store = direction == GM_COPY_STORE;
    CUresult begun = store ? cu->cuMemcpyHtoDAsync_v2(device, host, bytes, stream)
                           : cu->cuMemcpyDtoHAsync_v2(host, device, bytes, stream);
    CUresult ended = wait_for(cu, stream);
    if (ended != CUDA_SUCCESS) {
        *status = gm_cu_fail(cu, ended, "cuStreamSynchronize",
                             "a copy of %zu bytes of mapped memory may be under way", bytes);
        return GM_ENGINE_FAILED;
    }
    if (begun != CUDA_SUCCESS) {
        *status = gm_cu_fail(cu, begun, store ? "cuMemcpyHtoDAsync" : "cuMemcpyDtoHAsync",
                             "%zu bytes of mapped memory", bytes);
        return GM_ENGINE_NOT_DONE;
    }
    return GM_ENGINE_DONE;
}

static enum gm_engine_outcome copy(struct gm_engine *engine, unsigned direction, void *host,
                                   CUdeviceptr device, size_t bytes, gpumem_status *status) {
    CUstream stream = take_stream(engine);
    if (!stream) {
        *status = gpumem_last_error()->status;
        return GM_ENGINE_NOT_DONE;
    }
    enum gm_engine_outcome outcome =
        copy_on(engine->device->cu, stream, direction, host, device, bytes, status);
    if (outcome != GM_ENGINE_FAILED)
        give_stream(engine, stream);
    else
        end_stream(engine->device, stream);
    return outcome;
}

enum gm_engine_outcome gm_engine_by_driver(struct gm_engine *engine, unsigned direction, void *host,
                                           CUdeviceptr device, size_t bytes,
                                           gpumem_status *status) {
    struct gm_current current;
    *status = gm_current_enter(&current, engine->device);
    if (*status != GPUMEM_OK)
        return GM_ENGINE_NOT_DONE;
    enum gm_engine_outcome outcome = copy(engine, direction, host, device, bytes, status);
    gm_current_leave(&current);
    return outcome;
}

/* ---- Whether it is the faster way ------------------------------------------------------------ */

/* Costs some 0.1 us, and is called only between the two cut-overs, where copies take much longer.
 */
static bool is_pinned(const gpumem_driver_api *cu, const void *host) {
    unsigned type = 0;
    return cu->cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                     (CUdeviceptr)(uintptr_t)host) == CUDA_SUCCESS &&
           type == CU_MEMORYTYPE_HOST;
}

static bool is_faster(struct gm_engine *engine, const struct gm_copy_cutover *cutover,
                      const void *host, size_t bytes) {
    bool if_pinned = bytes >= cutover->pinned, if_pageable = bytes >= cutover->pageable;
    if (if_pinned == if_pageable)
        return if_pinned;
    return is_pinned(engine->device->cu, host) ? if_pinned : if_pageable;
}

enum gm_engine_outcome gm_engine_cut_over(struct gm_engine *engine, unsigned direction, void *host,
                                          CUdeviceptr device, size_t bytes, gpumem_status *status) {
    const struct gm_copy_plan *plan = &gm_plan_now(engine->plans)->plan;
    const struct gm_copy_cutover *cutover = direction == GM_COPY_STORE ? &plan->store : &plan->load;
    struct gm_current current;
    *status = gm_current_enter(&current, engine->device);
    if (*status != GPUMEM_OK)
        return GM_ENGINE_NOT_DONE;
    enum gm_engine_outcome outcome = GM_ENGINE_NOT_DONE;
    if (is_faster(engine, cutover, host, bytes))
        outcome = copy(engine, direction, host, device, bytes, status);
    gm_current_leave(&current);
    return outcome;
}
