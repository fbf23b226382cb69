/*
 * Legacy inter-process memory: the handle names the exporting process and the place of the bytes in
 * one of its memory files, which the importer opens through /proc. Nothing is passed or kept alive
 * by the handle, as with the real ones: it can be sent over any channel that carries 64 bytes.
 */
#include "softgpu/ipc/memory.h"

#include "softgpu/core/calls.h"
#include "softgpu/core/config.h"
#include "softgpu/device/device.h"
#include "softgpu/memory/allocation.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC 0x31676d73u /* "smg1" */

struct place {
    uint32_t magic;
    uint32_t pid;
    uint64_t started; /* clock ticks since boot: tells a reused pid apart */
    uint64_t inode;
    uint32_t fd; /* in the exporting process */
    uint32_t pages, first_page;
    uint32_t inner; /* offset of the allocation in its pages */
    uint64_t size;
    uint64_t buffer_id;
    uint64_t device; /* folded uuid: ordinals differ between processes */
};

_Static_assert(sizeof(struct place) == CU_IPC_HANDLE_SIZE, "the handle is exactly full");

struct opened {
    struct sg_range range;
    struct sg_segment segment;
    unsigned opens;
    struct place place;
};

static uint64_t fold(const CUuuid *uuid) {
    uint64_t halves[2];
    memcpy(halves, uuid, sizeof halves);
    return halves[0] ^ halves[1];
}

/* Field 22 of /proc/PID/stat; 0 when there is no such process. The name in field 2 may hold blanks
 * and brackets, so counting begins behind its last bracket. */
static uint64_t start_time(uint32_t pid) {
    char path[40], text[1024];
    snprintf(path, sizeof path, "/proc/%u/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t length = read(fd, text, sizeof text - 1);
    close(fd);
    if (length <= 0)
        return 0;
    text[length] = '\0';
    char *field = strrchr(text, ')');
    for (int i = 2; field && i < 22; i++)
        field = strchr(field + 1, ' ');
    return field ? strtoull(field + 1, NULL, 10) : 0;
}

CUresult sg_cuIpcGetMemHandle(CUipcMemHandle *pHandle, CUdeviceptr dptr) {
    struct sg_context *context;
    if (!pHandle)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = sg_context_current(&context);
    if (result != CUDA_SUCCESS)
        return result;
    /* Any address of the allocation names it, but not memory that is itself another process's. */
    const struct sg_range *range = sg_range_find(dptr);
    struct stat status;
    if (!range || range->kind != SG_RANGE_DEVICE || fstat(range->phys->file, &status) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    uint32_t pid = (uint32_t)getpid();
    struct place place = {.magic = MAGIC,
                          .pid = pid,
                          .started = start_time(pid),
                          .inode = status.st_ino,
                          .fd = (uint32_t)range->phys->file,
                          .pages = (uint32_t)(range->phys->size / SG_PAGE),
                          .first_page = (uint32_t)(range->phys->file_offset / SG_PAGE),
                          .inner = (uint32_t)range->phys_offset,
                          .size = range->size,
                          .buffer_id = range->buffer_id,
                          .device = fold(&sg_device(range->device)->uuid)};
    memcpy(pHandle, &place, sizeof place);
    return CUDA_SUCCESS;
}

static int device_of(const struct place *place) {
    for (int i = 0; i < sg_device_count(); i++)
        if (fold(&sg_device(i)->uuid) == place->device)
            return i;
    return -1;
}

static bool is_sound(const struct place *place) {
    uint64_t bytes = (uint64_t)place->pages * SG_PAGE;
    return place->magic == MAGIC && place->size != 0 && place->inner < bytes &&
           place->size <= bytes - place->inner;
}

/* The exporter's memory file, opened here; -1 when it is gone or another's. */
static int open_file(const struct place *place) {
    char path[64];
    struct stat status;
    if (start_time(place->pid) != place->started)
        return -1;
    snprintf(path, sizeof path, "/proc/%u/fd/%u", place->pid, place->fd);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) {
        sg_log(1, "cannot open the memory of process %u: %s", place->pid, strerror(errno));
        return -1;
    }
    uint64_t end = ((uint64_t)place->first_page + place->pages) * SG_PAGE;
    if (fstat(fd, &status) == 0 && status.st_ino == place->inode && (uint64_t)status.st_size >= end)
        return fd;
    close(fd);
    return -1;
}

static CUresult map_file(struct opened *opened, int device) {
    CUmemAllocationProp prop = sg_plain_prop(device);
    const struct place *place = &opened->place;
    struct sg_phys *phys;
    int fd = open_file(place);
    if (fd < 0)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = sg_phys_create_in(fd, (uint64_t)place->first_page * SG_PAGE, &prop,
                                        (size_t)place->pages * SG_PAGE, true, &phys);
    if (result == CUDA_SUCCESS) {
        result = sg_segment_map(phys, (1u << SG_MAX_DEVICES) - 1, &opened->segment);
        sg_phys_unref(phys);
    }
    close(fd);
    return result;
}

static CUresult open_new(struct sg_context *context, const struct place *place, int device,
                         struct opened **out) {
    struct opened *opened = calloc(1, sizeof *opened);
    if (!opened)
        return CUDA_ERROR_OUT_OF_MEMORY;
    opened->place = *place;
    opened->opens = 1;
    CUresult result = map_file(opened, device);
    if (result != CUDA_SUCCESS) {
        free(opened);
        return result;
    }
    opened->range = (struct sg_range){.start = opened->segment.address + place->inner,
                                      .size = (size_t)place->size,
                                      .kind = SG_RANGE_IPC,
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

/* The same handle opened again in the same context is the same address. */
static struct opened *find_opened(const struct sg_context *context, const struct place *place) {
    for (struct sg_range *range = sg_range_from(0); range; range = sg_range_next(range)) {
        if (range->kind != SG_RANGE_IPC || range->context != context)
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
    if (place.pid == (uint32_t)getpid() && place.started == start_time(place.pid))
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

/* As on H200: what is open is not opened once more by the first version. */
CUresult sg_cuIpcOpenMemHandle(CUdeviceptr *pdptr, CUipcMemHandle handle, unsigned int Flags) {
    return open_handle(pdptr, handle, Flags, false);
}

void sg_ipc_memory_end(struct sg_range *range) {
    struct opened *opened = range->owner;
    sg_range_remove(range);
    sg_segment_unmap(&opened->segment);
    sg_context_unref(range->context);
    free(opened);
}

CUresult sg_cuIpcCloseMemHandle(CUdeviceptr dptr) {
    struct sg_context *context;
    CUresult result = sg_context_current(&context);
    if (result != CUDA_SUCCESS)
        return result;
    struct sg_range *range = sg_range_at(dptr, SG_RANGE_IPC);
    if (!range)
        return CUDA_ERROR_INVALID_VALUE;
    struct opened *opened = range->owner;
    if (opened->opens == 1)
        result = sg_allocation_wait(&range);
    if (result != CUDA_SUCCESS)
        return result;
    /* It may have been opened again meanwhile. */
    opened = range->owner;
    if (--opened->opens == 0)
        sg_ipc_memory_end(range);
    return CUDA_SUCCESS;
}
