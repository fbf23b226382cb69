/* Advice, prefetch and discard for ranges of managed memory, and queries. */
#include "base/cancel.h"
#include "base/options.h"
#include "memory/copy/copy.h"
#include "memory/host/numa.h"
#include "memory/virtual/virtual_resource.h"

#include <gpumem/managed.h>

_Static_assert((int)GPUMEM_ADVICE_SET_READ_MOSTLY == (int)CU_MEM_ADVISE_SET_READ_MOSTLY &&
                   (int)GPUMEM_ADVICE_UNSET_ACCESSED_BY == (int)CU_MEM_ADVISE_UNSET_ACCESSED_BY,
               "the numbers are the driver's");

/* ---- What was asked -------------------------------------------------------------------------- */

static gpumem_status find_place(gpumem_device *device, gpumem_location location, int id,
                                const char *call, CUmemLocation *place) {
    static const CUmemLocationType types[] = {
        [GPUMEM_LOCATION_DEVICE] = CU_MEM_LOCATION_TYPE_DEVICE,
        [GPUMEM_LOCATION_HOST] = CU_MEM_LOCATION_TYPE_HOST,
        [GPUMEM_LOCATION_HOST_NUMA] = CU_MEM_LOCATION_TYPE_HOST_NUMA,
        [GPUMEM_LOCATION_HOST_NUMA_CURRENT] = CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT,
    };
    GM_REQUIRE((unsigned)location <= GPUMEM_LOCATION_HOST_NUMA_CURRENT, "%s: unknown location %d",
               call, (int)location);
    if (location == GPUMEM_LOCATION_DEVICE)
        return gm_virtual_locate(device, id, 0, call, place);
    *place = (CUmemLocation){.type = types[location], .id = id};
    if (location == GPUMEM_LOCATION_HOST_NUMA)
        return gm_numa_check(id, call);
    GM_REQUIRE(id == 0, "%s: location %s takes no number, but %d is given", call,
               gpumem_location_name(location), id);
    return GPUMEM_OK;
}

/* The device's context is current. */
static gpumem_status require_managed(const gpumem_buffer *buffer, const char *call) {
    CUdeviceptr at = buffer->allocation.pointer;
    const gpumem_driver_api *cu = buffer->resource->device->cu;
    unsigned managed = 0;
    CUresult result = cu->cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, at);
    if (result != CUDA_SUCCESS)
        return gm_cu_fail(cu, result, "cuPointerGetAttribute",
                          "%s: cannot get the attributes of 0x%llx", call, at);
    GM_REQUIRE(managed, "%s: the buffer at 0x%llx is not managed memory", call, at);
    return GPUMEM_OK;
}

/* ---- Advice ---------------------------------------------------------------------------------- */

static int looks_at_place(gpumem_advice advice) {
    return advice == GPUMEM_ADVICE_SET_PREFERRED_LOCATION ||
           advice == GPUMEM_ADVICE_SET_ACCESSED_BY || advice == GPUMEM_ADVICE_UNSET_ACCESSED_BY;
}

static gpumem_status check_advice(gpumem_advice advice, gpumem_location location) {
    static const char call[] = "gpumem_buffer_advise";
    GM_REQUIRE(advice >= GPUMEM_ADVICE_SET_READ_MOSTLY && advice <= GPUMEM_ADVICE_UNSET_ACCESSED_BY,
               "%s: unknown advice %d", call, (int)advice);
    GM_REQUIRE(!looks_at_place(advice) || advice == GPUMEM_ADVICE_SET_PREFERRED_LOCATION ||
                   location == GPUMEM_LOCATION_DEVICE || location == GPUMEM_LOCATION_HOST,
               "%s: access is by a device or the host, not %s", call,
               gpumem_location_name(location));
    return GPUMEM_OK;
}

/* A place in the form of drivers before 12.2, which do not know nodes. */
static gpumem_status old_place(const CUmemLocation *place, const char *call, CUdevice *device) {
    *device = place->type == CU_MEM_LOCATION_TYPE_DEVICE ? place->id : CU_DEVICE_CPU;
    if (place->type == CU_MEM_LOCATION_TYPE_DEVICE || place->type == CU_MEM_LOCATION_TYPE_HOST)
        return GPUMEM_OK;
    return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED,
                   "%s: the driver is older than 12.2 and does not support host nodes", call);
}

static gpumem_status tell(gpumem_device *device, CUdeviceptr at, size_t bytes, gpumem_advice advice,
                          CUmemLocation place) {
    const gpumem_driver_api *cu = device->cu;
    CUmem_advise what = (CUmem_advise)advice;
    CUresult result;
    if (gpumem_driver_has(device->library->driver, GPUMEM_FN_cuMemAdvise_v2)) {
        result = cu->cuMemAdvise_v2(at, bytes, what, place);
    } else {
        CUdevice old;
        gpumem_status status = old_place(&place, "gpumem_buffer_advise", &old);
        if (status != GPUMEM_OK)
            return status;
        result = cu->cuMemAdvise(at, bytes, what, old);
    }
    if (result == CUDA_SUCCESS)
        return GPUMEM_OK;
    return gm_cu_fail(
        cu, result, "cuMemAdvise", "advice %d about %zu bytes%s", (int)advice, bytes,
        result == CUDA_ERROR_NOT_SUPPORTED
            ? "; the driver takes no advice about memory of a pool: choose the pool's place"
            : "");
}

gpumem_status gpumem_buffer_advise(gpumem_buffer *buffer, size_t offset, size_t bytes,
                                   gpumem_advice advice, gpumem_location location, int id) {
    GM_UNCANCELLED;
    static const char call[] = "gpumem_buffer_advise";
    GM_CHECK(buffer, call);
    gpumem_device *device = buffer->resource->device;
    CUmemLocation place = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device->handle};
    gpumem_status status = check_advice(advice, location);
    if (status == GPUMEM_OK && looks_at_place(advice))
        status = find_place(device, location, id, call, &place);
    if (status == GPUMEM_OK)
        status = gm_buffer_range(buffer, offset, bytes, call);
    struct gm_current current;
    if (status == GPUMEM_OK)
        status = gm_current_enter(&current, device);
    if (status != GPUMEM_OK)
        return status;
    CUdeviceptr at = buffer->allocation.pointer + offset;
    status = require_managed(buffer, call);
    if (status == GPUMEM_OK && bytes)
        status = tell(device, at, bytes, advice, place);
    gm_current_leave(&current);
    return status;
}

/* ---- Moving and giving up -------------------------------------------------------------------- */

struct move {
    const char *call;
    gpumem_buffer *buffer;
    CUdeviceptr at;
    size_t bytes;
    int discards;
    const CUmemLocation *to; /* NULL: is not moved */
    CUstream stream;
};

/* The driver refuses both, and would invalidate the capture that the first is part of. */
static gpumem_status stream_allows(const struct move *move) {
    const gpumem_driver_api *cu = move->buffer->resource->device->cu;
    switch (gm_capture_state(cu, move->stream, NULL)) {
    case GM_CAPTURE_UNDER_WAY:
        return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED,
                       "%s: the stream is capturing, and the driver cannot make a graph node of "
                       "this; do it before the capture",
                       move->call);
    case GM_CAPTURE_IMPLICIT:
        return gm_cu_fail(
            cu, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, "cuStreamGetCaptureInfo",
            "%s: the legacy stream must not be used while a blocking stream is capturing",
            move->call);
    default:
        return GPUMEM_OK;
    }
}

static gpumem_status prefetch(const struct move *move) {
    const gpumem_device *device = move->buffer->resource->device;
    const gpumem_driver_api *cu = device->cu;
    CUresult result;
    if (gpumem_driver_has(device->library->driver, GPUMEM_FN_cuMemPrefetchAsync_v2)) {
        result = cu->cuMemPrefetchAsync_v2(move->at, move->bytes, *move->to, 0, move->stream);
    } else {
        CUdevice old;
        gpumem_status status = old_place(move->to, move->call, &old);
        if (status != GPUMEM_OK)
            return status;
        result = cu->cuMemPrefetchAsync(move->at, move->bytes, old, move->stream);
    }
    if (result == CUDA_SUCCESS)
        return GPUMEM_OK;
    return gm_cu_fail(cu, result, "cuMemPrefetchAsync", "cannot prefetch %zu bytes", move->bytes);
}

static gpumem_status discard(const struct move *move) {
    const gpumem_driver_api *cu = move->buffer->resource->device->cu;
    CUdeviceptr at = move->at;
    size_t bytes = move->bytes, first = 0;
    CUmemLocation to = move->to ? *move->to : (CUmemLocation){0};
    const char *what = move->to ? "cuMemDiscardAndPrefetchBatchAsync" : "cuMemDiscardBatchAsync";
    CUresult result = move->to ? cu->cuMemDiscardAndPrefetchBatchAsync(&at, &bytes, 1, &to, &first,
                                                                       1, 0, move->stream)
                               : cu->cuMemDiscardBatchAsync(&at, &bytes, 1, 0, move->stream);
    if (result == CUDA_SUCCESS)
        return GPUMEM_OK;
    return gm_cu_fail(cu, result, what, "cannot discard %zu bytes", move->bytes);
}

static gpumem_status run(const struct move *move) {
    struct gm_current current;
    gpumem_status status = gm_current_enter(&current, move->buffer->resource->device);
    if (status != GPUMEM_OK)
        return status;
    status = require_managed(move->buffer, move->call);
    if (status == GPUMEM_OK && move->bytes)
        status = stream_allows(move);
    if (status == GPUMEM_OK && move->bytes)
        status = move->discards ? discard(move) : prefetch(move);
    gm_current_leave(&current);
    return status;
}

gpumem_status gpumem_buffer_prefetch(gpumem_buffer *buffer, size_t offset, size_t bytes,
                                     gpumem_location location, int id, CUstream stream) {
    GM_UNCANCELLED;
    static const char call[] = "gpumem_buffer_prefetch";
    CUmemLocation to;
    GM_CHECK(buffer, call);
    gpumem_status status = find_place(buffer->resource->device, location, id, call, &to);
    if (status == GPUMEM_OK)
        status = gm_copy_reads(buffer, offset, bytes, stream, call);
    if (status != GPUMEM_OK)
        return status;
    const struct move move = {.call = call,
                              .buffer = buffer,
                              .at = buffer->allocation.pointer + offset,
                              .bytes = bytes,
                              .to = &to,
                              .stream = stream};
    return run(&move);
}

static gpumem_status begin_discard(gpumem_buffer *buffer, size_t offset, size_t bytes,
                                   CUstream stream, const char *call, struct move *move) {
    GM_REQUIRE(!gm_is_legacy(stream),
               "%s: the driver cannot discard on the legacy default stream; name another stream",
               call);
    gpumem_status status = gm_copy_writes(buffer, offset, bytes, stream, call);
    *move = (struct move){.call = call,
                          .buffer = buffer,
                          .at = buffer->allocation.pointer + offset,
                          .bytes = bytes,
                          .discards = 1,
                          .stream = stream};
    return status;
}

gpumem_status gpumem_buffer_discard(gpumem_buffer *buffer, size_t offset, size_t bytes,
                                    const gpumem_discard_options *given, CUstream stream) {
    GM_UNCANCELLED;
    static const char call[] = "gpumem_buffer_discard";
    gpumem_discard_options options;
    struct move move;
    CUmemLocation to;
    GM_CHECK(buffer, call);
    gpumem_status status = GM_OPTIONS_READ(gpumem_discard_options, given, &options);
    if (status == GPUMEM_OK && options.prefetch)
        status = find_place(buffer->resource->device, options.location, options.ordinal_or_node,
                            call, &to);
    if (status == GPUMEM_OK)
        status = begin_discard(buffer, offset, bytes, stream, call, &move);
    if (status != GPUMEM_OK)
        return status;
    if (options.prefetch)
        move.to = &to;
    return run(&move);
}

/* ---- What the driver tells ------------------------------------------------------------------- */

#define MOST_ACCESSORS 65 /* 64 devices and the CPU */

struct answers {
    int read_mostly;
    int accessors[MOST_ACCESSORS];
    int preferred_type, preferred_ordinal_or_node;
    int prefetched_type, prefetched_ordinal_or_node;
};

enum { QUESTIONS = 6 };

static CUresult ask(const gpumem_driver_api *cu, CUdeviceptr at, size_t bytes,
                    struct answers *answers) {
    CUmem_range_attribute which[QUESTIONS] = {
        CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY,
        CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY,
        CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE,
        CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID,
        CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE,
        CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID,
    };
    void *data[QUESTIONS] = {&answers->read_mostly,     answers->accessors,
                             &answers->preferred_type,  &answers->preferred_ordinal_or_node,
                             &answers->prefetched_type, &answers->prefetched_ordinal_or_node};
    size_t sizes[QUESTIONS] = {
        sizeof(int), sizeof answers->accessors, sizeof(int), sizeof(int), sizeof(int), sizeof(int)};
    return cu->cuMemRangeGetAttributes(data, sizes, which, QUESTIONS, at, bytes);
}

/* A place as reported by older drivers: an ordinal, the CPU, or none. */
static void split(int device, int *type, int *id) {
    *type = device == CU_DEVICE_CPU       ? CU_MEM_LOCATION_TYPE_HOST
            : device == CU_DEVICE_INVALID ? CU_MEM_LOCATION_TYPE_INVALID
                                          : CU_MEM_LOCATION_TYPE_DEVICE;
    *id = device;
}

static CUresult ask_older(const gpumem_driver_api *cu, CUdeviceptr at, size_t bytes,
                          struct answers *answers) {
    int preferred = CU_DEVICE_INVALID, prefetched = CU_DEVICE_INVALID;
    CUmem_range_attribute which[] = {
        CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY,
        CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION};
    void *data[] = {&answers->read_mostly, answers->accessors, &preferred, &prefetched};
    size_t sizes[] = {sizeof(int), sizeof answers->accessors, sizeof(int), sizeof(int)};
    CUresult result = cu->cuMemRangeGetAttributes(data, sizes, which, 4, at, bytes);
    split(preferred, &answers->preferred_type, &answers->preferred_ordinal_or_node);
    split(prefetched, &answers->prefetched_type, &answers->prefetched_ordinal_or_node);
    return result;
}

/* Whether all have the same place. */
static int place_of(int type, int id, gpumem_location *location, int *number) {
    *location = GPUMEM_LOCATION_DEVICE;
    *number = -1;
    switch ((CUmemLocationType)type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
        *number = id;
        return 1;
    case CU_MEM_LOCATION_TYPE_HOST:
        *location = GPUMEM_LOCATION_HOST;
        return 1;
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
        *location = GPUMEM_LOCATION_HOST_NUMA;
        *number = id;
        return 1;
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
        *location = GPUMEM_LOCATION_HOST_NUMA_CURRENT;
        return 1;
    default:
        return 0;
    }
}

static gpumem_managed_range read_answers(const struct answers *answers) {
    gpumem_managed_range range = {.size = sizeof range, .read_mostly = answers->read_mostly != 0};
    range.has_preferred = place_of(answers->preferred_type, answers->preferred_ordinal_or_node,
                                   &range.preferred, &range.preferred_ordinal_or_node);
    range.has_prefetched = place_of(answers->prefetched_type, answers->prefetched_ordinal_or_node,
                                    &range.prefetched, &range.prefetched_ordinal_or_node);
    for (int i = 0; i < MOST_ACCESSORS; i++) {
        int who = answers->accessors[i];
        if (who == CU_DEVICE_CPU)
            range.accessed_by_host = 1;
        else if (who >= 0 && who < 64)
            range.accessed_by |= (uint64_t)1 << who;
    }
    return range;
}

static gpumem_status ask_range(gpumem_buffer *buffer, CUdeviceptr at, size_t bytes,
                               const char *call, struct answers *answers) {
    const gpumem_driver_api *cu = buffer->resource->device->cu;
    struct gm_current current;
    gpumem_status status = gm_current_enter(&current, buffer->resource->device);
    if (status != GPUMEM_OK)
        return status;
    status = require_managed(buffer, call);
    if (status == GPUMEM_OK) {
        CUresult result = ask(cu, at, bytes, answers);
        if (result == CUDA_ERROR_INVALID_VALUE) /* or it does not know types and numbers */
            result = ask_older(cu, at, bytes, answers);
        if (result != CUDA_SUCCESS)
            status =
                gm_cu_fail(cu, result, "cuMemRangeGetAttributes", "%zu bytes at 0x%llx", bytes, at);
    }
    gm_current_leave(&current);
    return status;
}

gpumem_status gpumem_buffer_get_managed_range(gpumem_buffer *buffer, size_t offset, size_t bytes,
                                              gpumem_managed_range *range) {
    GM_UNCANCELLED;
    static const char call[] = "gpumem_buffer_get_managed_range";
    GM_CHECK(buffer, call);
    GM_REQUIRE(bytes, "%s: 0 bytes have nothing in common", call);
    gpumem_status status = gm_buffer_range(buffer, offset, bytes, call);
    struct answers answers = {.preferred_type = 0};
    for (int i = 0; i < MOST_ACCESSORS; i++)
        answers.accessors[i] = CU_DEVICE_INVALID;
    if (status == GPUMEM_OK)
        status = ask_range(buffer, buffer->allocation.pointer + offset, bytes, call, &answers);
    if (status != GPUMEM_OK)
        return status;
    gpumem_managed_range filled = read_answers(&answers);
    return GM_RESULT_WRITE(gpumem_managed_range, range, &filled);
}
