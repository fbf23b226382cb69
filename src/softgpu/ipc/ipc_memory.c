/*
 * Legacy inter-process memory: the handle names the exporting process and where the bytes are in
 * one of its memory files, which the importer opens through /proc. The handle keeps nothing alive,
 * as with the real ones: it can be sent over any channel that carries 64 bytes.
 */
#include "softgpu/context/where.h"
#include "softgpu/core/calls.h"
#include "softgpu/core/config.h"
#include "softgpu/device/device.h"
#include "softgpu/memory/allocation.h"
#include "softgpu/process/process.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC 0x33676d73u /* "smg3" */

struct place {
    struct sg_process_fd file;  /* that holds the bytes */
    uint32_t pages, first_page; /* in the file */
    uint32_t inner;             /* offset of the allocation in its pages */
    struct sg_live live;
    uint64_t size;
    uint32_t device; /* digest of its UUID: ordinals differ between processes */
    uint32_t magic;
};

_Static_assert(sizeof(struct place) == CU_IPC_HANDLE_SIZE, "the handle is exactly full");

struct opened {
    struct sg_range range;
    struct sg_segment segment;
    unsigned opens;
    struct place place;
};

/* A sum of the words would be equal for UUIDs that differ only in the position of a number, and
 * people who set UUIDs like to count. */
static uint32_t digest(const CUuuid *uuid) {
    uint32_t value = 2166136261u; /* FNV-1a */
    for (size_t i = 0; i < sizeof uuid->bytes; i++)
        value = (value ^ (unsigned char)uuid->bytes[i]) * 16777619u;
    return value;
}

/* Announced as live for as long as the allocation is. */
static CUresult announce(struct sg_allocation *allocation) {
    if (allocation->exported)
        return CUDA_SUCCESS;
    allocation->exported = sg_live_begin(&allocation->live);
    return allocation->exported ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult sg_cuIpcGetMemHandle(CUipcMemHandle *pHandle, CUdeviceptr dptr) {
    struct sg_context *context;
    if (!pHandle)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = sg_context_current(&context);
    if (result != CUDA_SUCCESS)
        return result;
    /* Any address of the allocation names it, except in memory of another process. */
    const struct sg_range *range = sg_range_find(dptr);
    struct place place = {.magic = MAGIC};
    struct sg_allocation *allocation = range ? sg_device_allocation_of(range) : NULL;
    if (!allocation || !sg_process_fd_name(&range->phys->file, &place.file))
        return CUDA_ERROR_INVALID_VALUE;
    if (range->phys->moved) {
        sg_log(SG_LOG_WARNING,
               "the memory was exported as a DMA buffer, and is not where others look for it");
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    result = announce(allocation);
    if (result != CUDA_SUCCESS)
        return result;
    range->phys->named = true;
    sg_range_expose(range->start, range->size);
    place.live = allocation->live;
    place.pages = (uint32_t)(range->phys->size / SG_PAGE);
    place.first_page = (uint32_t)(range->phys->file_offset / SG_PAGE);
    place.inner = (uint32_t)range->phys_offset;
    place.size = range->size;
    place.device = digest(&sg_device(range->device)->uuid);
    memcpy(pHandle, &place, sizeof place);
    return CUDA_SUCCESS;
}

static int device_of(const struct place *place) {
    for (int i = 0; i < sg_device_count(); i++)
        if (digest(&sg_device(i)->uuid) == place->device)
            return i;
    return -1;
}

static bool is_sound(const struct place *place) {
    uint64_t bytes = (uint64_t)place->pages * SG_PAGE;
    return place->magic == MAGIC && place->size != 0 && place->inner < bytes &&
           place->size <= bytes - place->inner;
}

/* Opens the exporter's memory file; -1 when it is gone or another one. */
static int open_file(const struct place *place) {
    struct stat status;
    int fd = sg_process_fd_open(&place->file);
    if (fd < 0)
        return -1;
    uint64_t end = ((uint64_t)place->first_page + place->pages) * SG_PAGE;
    if (fstat(fd, &status) == 0 && (uint64_t)status.st_size >= end)
        return fd;
    close(fd);
    return -1;
}

static CUresult map_file(struct opened *opened, int device) {
    CUmemAllocationProp prop = sg_plain_prop(device);
    const struct place *place = &opened->place;
    struct sg_phys *phys;
    struct gm_kept_file file;
    if (!gm_kept_file_set(open_file(place), &file))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = sg_phys_create_in(&file, (uint64_t)place->first_page * SG_PAGE, &prop,
                                        (size_t)place->pages * SG_PAGE, true, &phys);
    if (result == CUDA_SUCCESS) {
        result = sg_segment_map(phys, (1u << SG_MAX_DEVICES) - 1, &opened->segment);
        sg_phys_unref(phys);
    }
    gm_kept_file_close(&file);
    return result;
}

/* Closes it, whatever its open count. */
static void end(struct sg_range *range) {
    struct opened *opened = range->owner;
    sg_range_remove(range);
    sg_segment_unmap(&opened->segment);
    sg_context_unref(range->context);
    free(opened);
}

static void describe(const struct sg_range *range, struct sg_range_facts *facts) {
    (void)range;
    facts->rdma = true;
}

static const struct sg_range_ops opened_ops = {
    .name = "opened allocation of another process",
    .end = end,
    .seen = sg_range_seen_by_peers,
    .describe = describe,
    .foreign = true,
};

static CUresult open_new(struct sg_context *context, const struct place *place, int device,
                         struct opened **out) {
    struct opened *opened = calloc(1, sizeof *opened);
    if (!opened)
        return CUDA_ERROR_OUT_OF_MEMORY;
    opened->place = *place;
    opened->opens = 1;
    CUresult result = map_file(opened, device);
    /* Checked once the bytes are mapped: from here on they are held. */
    if (result == CUDA_SUCCESS && !sg_live_is(&place->file, &place->live)) {
        sg_segment_unmap(&opened->segment);
        result = CUDA_ERROR_INVALID_VALUE;
    }
    if (result != CUDA_SUCCESS) {
        free(opened);
        return result;
    }
    opened->range = (struct sg_range){.start = opened->segment.address + place->inner,
                                      .size = (size_t)place->size,
                                      .ops = &opened_ops,
                                      .device = device,
                                      .context = context,
                                      .phys = opened->segment.phys,
                                      .phys_offset = place->inner,
                                      .owner = opened};
    sg_range_insert(&opened->range);
    sg_context_ref(context);
    *out = opened;
    return CUDA_SUCCESS;
}

/* Opening the same handle again in the same context returns the same address. */
static struct opened *find_opened(const struct sg_context *context, const struct place *place) {
    for (struct sg_range *range = sg_range_from(0); range; range = sg_range_next(range)) {
        if (range->ops != &opened_ops || range->context != context)
            continue;
        struct opened *opened = range->owner;
        if (memcmp(&opened->place, place, sizeof *place) == 0)
            return opened;
    }
    return NULL;
}

static CUresult open_handle(CUdeviceptr *pdptr, CUipcMemHandle handle, unsigned Flags,
                            bool counts) {
    struct sg_context *context;
    if (!pdptr)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = sg_context_current(&context);
    if (result != CUDA_SUCCESS)
        return result;
    struct place place;
    memcpy(&place, &handle, sizeof place);
    if (Flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS || !is_sound(&place))
        return CUDA_ERROR_INVALID_VALUE;
    int device = device_of(&place);
    if (device < 0)
        return CUDA_ERROR_INVALID_DEVICE;
    if (sg_process_fd_own(&place.file))
        return CUDA_ERROR_INVALID_CONTEXT;
    struct opened *opened = find_opened(context, &place);
    if (opened && !counts)
        return CUDA_ERROR_ALREADY_MAPPED;
    if (opened)
        opened->opens++;
    else
        result = open_new(context, &place, device, &opened);
    if (result == CUDA_SUCCESS)
        *pdptr = opened->range.start;
    return result;
}

CUresult sg_cuIpcOpenMemHandle_v2(CUdeviceptr *pdptr, CUipcMemHandle handle, unsigned int Flags) {
    return open_handle(pdptr, handle, Flags, true);
}

/* As on H200: the first version does not open a handle that is already open. */
CUresult sg_cuIpcOpenMemHandle(CUdeviceptr *pdptr, CUipcMemHandle handle, unsigned int Flags) {
    return open_handle(pdptr, handle, Flags, false);
}

CUresult sg_cuIpcCloseMemHandle(CUdeviceptr dptr) {
    struct sg_context *context;
    CUresult result = sg_context_current(&context);
    if (result != CUDA_SUCCESS)
        return result;
    struct sg_range *range = sg_range_at(dptr, &opened_ops);
    if (!range)
        return CUDA_ERROR_INVALID_VALUE;
    struct opened *opened = range->owner;
    if (opened->opens == 1)
        result = sg_allocation_wait(&range);
    if (result != CUDA_SUCCESS)
        return result;
    /* It may have been opened again in the meantime. */
    opened = range->owner;
    if (--opened->opens == 0)
        end(range);
    return CUDA_SUCCESS;
}
