/*
 * cuMemGetHandleForAddressRange: the pages of memory files as a DMA buffer. The kernel makes one
 * through /dev/udmabuf, if that exists and the process may open it. If it does not, and the device
 * says that the CPU can map DMA buffers, a memory file takes its place (dma_file.h).
 */
#include "softgpu/address/dma_file.h"
#include "softgpu/address/range.h"
#include "softgpu/context/context.h"
#include "softgpu/core/calls.h"
#include "softgpu/core/config.h"
#include "softgpu/device/device.h"
#include "softgpu/device/udmabuf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The memory at an address, and where its bytes end: small allocations share pages and are exported
 * together. */
struct place {
    struct sg_phys *phys;
    size_t offset;
    CUdeviceptr end;
};

/* As documented: what this process allocated or mapped. The files of legacy IPC and of external
 * memory are closed once they are mapped; a multicast object has no bytes of its own. */
static bool find_place(CUdeviceptr address, struct place *place) {
    const struct sg_range *range = sg_range_find(address);
    if (!range || range->device < 0 || range->ops->foreign || !range->phys ||
        range->phys->device < 0 || range->phys->ops)
        return false;
    place->phys = sg_range_phys_at(range, address, &place->offset);
    place->end = address + place->phys->size - place->offset;
    return true;
}

/* As documented: memory exported together is on one device and has the same properties. */
static bool alike(const struct sg_phys *a, const struct sg_phys *b) {
    const CUmemAllocationProp *p = &a->prop, *q = &b->prop;
    return a->device == b->device && p->type == q->type &&
           p->requestedHandleTypes == q->requestedHandleTypes &&
           p->allocFlags.compressionType == q->allocFlags.compressionType &&
           p->allocFlags.gpuDirectRDMACapable == q->allocFlags.gpuDirectRDMACapable &&
           p->allocFlags.usage == q->allocFlags.usage;
}

/* The bytes at [address, end): returns the number of pieces, or 0 when they cannot be exported
 * together. Fills `list` unless it is NULL. */
static size_t collect(CUdeviceptr address, CUdeviceptr end, struct udmabuf_create_list *list) {
    const struct sg_phys *before = NULL;
    struct place at;
    size_t count = 0;
    while (address < end) {
        if (!find_place(address, &at) || (before && !alike(before, at.phys)))
            return 0;
        before = at.phys;
        size_t size = (size_t)((at.end < end ? at.end : end) - address);
        if (list)
            list->list[count] =
                (struct udmabuf_create_item){.memfd = (uint32_t)at.phys->file.fd,
                                             .offset = at.phys->file_offset + at.offset,
                                             .size = size};
        count++;
        address += size;
    }
    return count;
}

struct asked {
    CUdeviceptr address, end;
    const struct sg_dma_piece *pieces;
    size_t count;
};

/* The same as pieces of physical memory; contiguous ones are merged. There is room for `most`. */
static size_t collect_pieces(CUdeviceptr address, CUdeviceptr end, struct sg_dma_piece *pieces,
                             size_t most) {
    struct place at;
    size_t count = 0;
    while (address < end && count < most && find_place(address, &at)) {
        size_t size = (size_t)((at.end < end ? at.end : end) - address);
        struct sg_dma_piece *last = count ? &pieces[count - 1] : NULL;
        if (last && last->phys == at.phys && last->offset + last->size == at.offset)
            last->size += size;
        else
            pieces[count++] =
                (struct sg_dma_piece){.phys = at.phys, .offset = at.offset, .size = size};
        address += size;
    }
    return count;
}

/* Other threads may have freed or unmapped something while the lock was released. */
static bool is_unchanged(void *user) {
    const struct asked *asked = user;
    size_t most = collect(asked->address, asked->end, NULL);
    struct sg_dma_piece *now = most ? malloc(most * sizeof *now) : NULL;
    if (!now)
        return false;
    size_t count = collect_pieces(asked->address, asked->end, now, most);
    bool same = count == asked->count;
    for (size_t i = 0; same && i < count; i++)
        same = now[i].phys == asked->pieces[i].phys && now[i].offset == asked->pieces[i].offset &&
               now[i].size == asked->pieces[i].size;
    free(now);
    return same;
}

static void unref_all(struct sg_dma_piece *pieces, size_t count) {
    for (size_t i = 0; i < count; i++)
        sg_phys_unref(pieces[i].phys);
    free(pieces);
}

/* At most `most` pieces, as counted by collect. */
static CUresult export_file(CUdeviceptr address, CUdeviceptr end, size_t most, int *fd) {
    struct sg_dma_piece *pieces = malloc(most * sizeof *pieces);
    if (!pieces)
        return CUDA_ERROR_OUT_OF_MEMORY;
    size_t count = collect_pieces(address, end, pieces, most);
    for (size_t i = 0; i < count; i++)
        sg_phys_ref(pieces[i].phys);
    struct asked asked = {.address = address, .end = end, .pieces = pieces, .count = count};
    CUresult result = sg_dma_file_export(pieces, count, is_unchanged, &asked, fd);
    unref_all(pieces, count);
    return result;
}

/* A holder of the buffer keeps the pages as long as it likes: later allocations get others. */
static void hold(CUdeviceptr address, CUdeviceptr end) {
    struct place at;
    for (; address < end && find_place(address, &at); address = at.end)
        at.phys->pages_held = true;
}

/* Whether everything to be sealed is still ours. */
static bool all_open(CUdeviceptr address, CUdeviceptr end) {
    struct place at;
    for (; address < end && find_place(address, &at); address = at.end)
        if (!gm_kept_file_is_open(&at.phys->file))
            return false;
    return true;
}

static bool seal_all(const struct udmabuf_create_list *list, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (!sg_udmabuf_seal((int)list->list[i].memfd))
            return false;
    return true;
}

/* As recorded on an H200, of a pool: what begins with a step of its memory, however much, or a
 * whole allocation. Other ranges are refused, also those within a step. */
static bool may_begin(CUdeviceptr address, size_t size) {
    const struct sg_range *range = sg_range_find(address);
    size_t offset, page = (size_t)sysconf(_SC_PAGESIZE);
    if (!range || !range->ops->phys_at)
        return true;
    (void)sg_range_phys_at(range, address, &offset);
    return offset == 0 ||
           (address == range->start && size >= range->size && size - range->size < page);
}

static CUresult export_range(CUdeviceptr address, size_t size, bool over_pcie, int *fd) {
    size_t count = may_begin(address, size) ? collect(address, address + size, NULL) : 0;
    if (count == 0)
        return CUDA_ERROR_INVALID_VALUE;
    const int *attributes = sg_device(sg_range_find(address)->device)->attributes;
    bool mapped = attributes[SG_ATTRIBUTE_DMA_BUF_MMAP_SUPPORTED] != 0;
    if ((over_pcie && !mapped) || !attributes[CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED])
        return CUDA_ERROR_NOT_SUPPORTED;
    if (!sg_udmabuf_usable())
        return export_file(address, address + size, count, fd);
    struct udmabuf_create_list *list = sg_udmabuf_list(count);
    if (!list)
        return CUDA_ERROR_OUT_OF_MEMORY;
    collect(address, address + size, list);
    bool sealed = all_open(address, address + size) && seal_all(list, count);
    int made = sealed ? sg_udmabuf_make(list, count) : -1;
    free(list);
    if (made < 0) {
        const char *hint =
            errno == EINVAL ? " (/sys/module/udmabuf/parameters has the kernel's limits)" : "";
        sg_log(SG_LOG_ERROR, "making a DMA buffer of %zu bytes: %s%s", size, strerror(errno), hint);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    hold(address, address + size);
    *fd = made;
    return CUDA_SUCCESS;
}

/* As recorded: the numbers are checked first, and then the descriptor is set to -1. */
CUresult sg_cuMemGetHandleForAddressRange(void *handle, CUdeviceptr dptr, size_t size,
                                          CUmemRangeHandleType handleType,
                                          unsigned long long flags) {
    struct sg_context *context;
    size_t mask = (size_t)sysconf(_SC_PAGESIZE) - 1;
    bool over_pcie = (flags & CU_MEM_RANGE_FLAG_DMA_BUF_MAPPING_TYPE_PCIE) != 0;
    if (!handle)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = sg_context_current(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (handleType != CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD || (flags && !over_pcie) || dptr == 0 ||
        size == 0 || dptr + size < dptr || ((dptr | size) & mask) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    int fd = -1;
    result = export_range(dptr, size, over_pcie, &fd);
    if (result == CUDA_SUCCESS)
        sg_range_expose(dptr, size);
    memcpy(handle, &fd, sizeof fd);
    return result;
}
