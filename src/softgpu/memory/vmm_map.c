/* Mappings: handles at addresses. */
#include "softgpu/address/epoch.h"
#include "softgpu/address/memfile.h"
#include "softgpu/address/object.h"
#include "softgpu/address/pagetable.h"
#include "softgpu/core/calls.h"
#include "softgpu/memory/vmm.h"

#include <stdlib.h>
#include <sys/mman.h>

struct sg_range *sg_mapping_first(CUdeviceptr address, size_t size) {
    struct sg_range *range = sg_range_find(address);
    if (!range)
        range = sg_range_from(address);
    return range && range->start < address + size ? range : NULL;
}

struct sg_range *sg_mapping_next(struct sg_range *range, CUdeviceptr end) {
    struct sg_range *next = sg_range_next(range);
    return next && next->start < end ? next : NULL;
}

static unsigned char *application_bytes(const struct sg_range *range) {
    return (unsigned char *)(uintptr_t)range->start;
}

/* The device uses the application's own addresses while the CPU may write there too, so that a
 * ThreadSanitizer in the application sees both sides; otherwise softgpu's view of the memory. */
bool sg_mapping_cpu_give(struct sg_range *range, unsigned rights) {
    int prot = PROT_READ | (rights & SG_WRITE ? PROT_WRITE : 0);
    if (!sg_view_map_at(range->phys->host, application_bytes(range), range->size, prot))
        return false;
    range->cpu_rights = rights;
    range->cpu_mark = 0;
    if (rights & SG_WRITE)
        sg_table_move(range->start, range->size, application_bytes(range));
    return true;
}

void sg_mapping_cpu_take(struct sg_range *range) {
    if (!range->cpu_rights)
        return;
    sg_addresses_clear(application_bytes(range), range->size);
    range->cpu_rights = 0;
    range->cpu_mark = 0;
}

bool sg_mappings_leave_cpu(CUdeviceptr address, size_t size) {
    uint64_t last = 0;
    for (struct sg_range *range = sg_mapping_first(address, size); range;
         range = sg_mapping_next(range, address + size)) {
        if (range->cpu_rights && !range->cpu_mark) {
            sg_table_move(range->start, range->size, range->phys->host);
            range->cpu_mark = sg_epoch_mark();
        }
        if (range->cpu_mark > last)
            last = range->cpu_mark;
    }
    if (last == 0 || sg_epoch_passed(last))
        return false;
    sg_epoch_wait(last);
    return true;
}

/* Requires reserved addresses without a mapping in the way, and all of a handle: cuMemMap on H200
 * accepts neither an offset nor a part. */
static CUresult check_map(CUdeviceptr ptr, size_t size, size_t offset,
                          const struct sg_memory *memory) {
    if (!memory || size == 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (offset != 0 || size != memory->phys->size)
        return CUDA_ERROR_NOT_SUPPORTED;
    /* Tile pools are for arrays only. */
    if (memory->phys->prop.allocFlags.usage & CU_MEM_CREATE_USAGE_TILE_POOL)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sg_page_aligned(ptr, size) || !sg_reserved(ptr, size) || sg_mapping_first(ptr, size))
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

CUresult sg_cuMemMap(CUdeviceptr ptr, size_t size, size_t offset,
                     CUmemGenericAllocationHandle handle, unsigned long long flags) {
    struct sg_memory *memory;
    bool told = false;
    if (flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    do {
        memory = sg_memory_from_handle(handle);
        CUresult result = atomic_load(&sg_exiting) ? CUDA_ERROR_DEINITIALIZED
                                                   : check_map(ptr, size, offset, memory);
        if (result != CUDA_SUCCESS)
            return result;
    } while (memory->phys->ops && !memory->phys->ops->ready(memory->phys, &told));
    struct sg_range *range = malloc(sizeof *range);
    if (!range)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *range = (struct sg_range){.start = ptr,
                               .size = size,
                               .ops = &sg_mapping_ops,
                               .device = memory->phys->device,
                               .phys = memory->phys,
                               .owner = memory};
    sg_range_insert(range);
    if (memory->phys->ops)
        sg_object_map(memory->phys, ptr, size);
    else
        sg_table_map(ptr, size, memory->phys->host, 0);
    memory->mappings++;
    return CUDA_SUCCESS;
}

/* Whole mappings only, any number of them; a reservation without one counts as already unmapped.
 * Exceeding the reservation is not an error on H200, as long as no mapping is cut. */
static bool may_unmap(CUdeviceptr ptr, size_t size) {
    CUdeviceptr end = ptr + size;
    if (!sg_page_aligned(0, size) || end < ptr || !sg_reservation_at(ptr))
        return false;
    if (!sg_page_aligned(ptr, size))
        return !sg_mapping_first(ptr, size); /* any address is valid where nothing is mapped */
    for (struct sg_range *range = sg_mapping_first(ptr, size); range;
         range = sg_mapping_next(range, end))
        if (range->ops != &sg_mapping_ops || range->start < ptr || range->start + range->size > end)
            return false;
    return true;
}

static void unmap_one(struct sg_range *range) {
    struct sg_memory *memory = range->owner;
    sg_table_unmap(range->start, range->size);
    sg_mapping_cpu_take(range);
    sg_range_remove(range);
    free(range);
    memory->mappings--;
    sg_memory_settle(memory);
}

CUresult sg_cuMemUnmap(CUdeviceptr ptr, size_t size) {
    do {
        if (!may_unmap(ptr, size))
            return CUDA_ERROR_INVALID_VALUE;
    } while (sg_mappings_leave_cpu(ptr, size));
    struct sg_range *range = sg_mapping_first(ptr, size);
    while (range) {
        struct sg_range *next = sg_mapping_next(range, ptr + size);
        unmap_one(range);
        range = next;
    }
    return CUDA_SUCCESS;
}
