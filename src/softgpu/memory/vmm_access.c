/* Who may access a mapping. */
#include "softgpu/address/object.h"
#include "softgpu/address/pagetable.h"
#include "softgpu/context/context.h"
#include "softgpu/core/calls.h"
#include "softgpu/device/device.h"
#include "softgpu/memory/vmm.h"

/* What a call requests, merged from its descriptions; later ones win. */
struct wish {
    sg_rights mask, rights; /* devices */
    bool cpu;
    unsigned cpu_rights;
};

static bool rights_of_flags(CUmemAccess_flags flags, unsigned *rights) {
    switch (flags) {
    case CU_MEM_ACCESS_FLAGS_PROT_NONE:
        *rights = 0;
        return true;
    case CU_MEM_ACCESS_FLAGS_PROT_READ:
        *rights = SG_READ;
        return true;
    case CU_MEM_ACCESS_FLAGS_PROT_READWRITE:
        *rights = SG_READ | SG_WRITE;
        return true;
    default:
        return false;
    }
}

/* Whether `device` (which exists) can reach this memory at all. */
static bool reaches(int device, const struct sg_range *range) {
    if (range->phys->ops)
        return range->phys->ops->reaches(range->phys, device);
    return range->device < 0 || sg_device_reaches(device, range->device);
}

static CUresult add_wish(struct wish *wish, const CUmemAccessDesc *desc,
                         const struct sg_range *range) {
    unsigned rights;
    if (!rights_of_flags(desc->flags, &rights))
        return CUDA_ERROR_INVALID_VALUE;
    switch (desc->location.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
        if (!sg_device(desc->location.id) || !reaches(desc->location.id, range))
            return CUDA_ERROR_INVALID_VALUE;
        sg_rights both = sg_rights_of(desc->location.id, SG_READ | SG_WRITE);
        wish->mask |= both;
        wish->rights = (wish->rights & ~both) | sg_rights_of(desc->location.id, rights);
        return CUDA_SUCCESS;
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
        if (range->device >= 0)
            return CUDA_ERROR_NOT_SUPPORTED;
        wish->cpu = true;
        wish->cpu_rights = rights;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

/* Whole mappings from the first byte to the last; H200 ignores holes between them. */
static bool covers_mappings(CUdeviceptr ptr, size_t size) {
    CUdeviceptr end = ptr + size;
    if (!sg_page_aligned(ptr, size) || end < ptr)
        return false;
    struct sg_range *first = sg_mapping_first(ptr, size), *last = sg_range_find(end - 1);
    if (!first || first->start != ptr || !last || last->start + last->size != end)
        return false;
    for (struct sg_range *range = first; range; range = sg_mapping_next(range, end))
        if (range->ops != &sg_mapping_ops)
            return false;
    return true;
}

static CUresult make_wish(struct wish *wish, CUdeviceptr ptr, size_t size,
                          const CUmemAccessDesc *desc, size_t count) {
    *wish = (struct wish){0};
    if (!desc || count == 0 || !covers_mappings(ptr, size))
        return CUDA_ERROR_INVALID_VALUE;
    for (struct sg_range *range = sg_mapping_first(ptr, size); range;
         range = sg_mapping_next(range, ptr + size)) {
        for (size_t i = 0; i < count; i++) {
            CUresult result = add_wish(wish, &desc[i], range);
            if (result != CUDA_SUCCESS)
                return result;
        }
    }
    return CUDA_SUCCESS;
}

/* While a call is in progress, the CPU's previous rights are kept beside the current ones. */
#define OLD_SHIFT 4
#define NOW_MASK  3u

static void settle_cpu(CUdeviceptr ptr, CUdeviceptr end) {
    for (struct sg_range *range = sg_mapping_first(ptr, (size_t)(end - ptr)); range;
         range = sg_mapping_next(range, end))
        range->cpu_rights &= NOW_MASK;
}

/* Replacing a mapping by one of the same size needs no further limited resource, so this works. */
static void take_cpu_back(CUdeviceptr ptr, CUdeviceptr end) {
    for (struct sg_range *range = sg_mapping_first(ptr, (size_t)(end - ptr)); range;
         range = sg_mapping_next(range, end)) {
        unsigned old = range->cpu_rights >> OLD_SHIFT;
        if (old == 0)
            sg_mapping_cpu_take(range);
        else
            sg_mapping_cpu_give(range, old);
    }
}

/* All or nothing. */
static bool give_cpu(CUdeviceptr ptr, size_t size, unsigned rights) {
    for (struct sg_range *range = sg_mapping_first(ptr, size); range;
         range = sg_mapping_next(range, ptr + size)) {
        unsigned old = range->cpu_rights;
        if (old != rights && !sg_mapping_cpu_give(range, rights)) {
            if (range->start > ptr)
                take_cpu_back(ptr, range->start);
            return false;
        }
        range->cpu_rights = rights | old << OLD_SHIFT;
    }
    settle_cpu(ptr, ptr + size);
    return true;
}

static void take_cpu(CUdeviceptr ptr, size_t size) {
    for (struct sg_range *range = sg_mapping_first(ptr, size); range;
         range = sg_mapping_next(range, ptr + size))
        sg_mapping_cpu_take(range);
}

CUresult sg_cuMemSetAccess(CUdeviceptr ptr, size_t size, const CUmemAccessDesc *desc,
                           size_t count) {
    struct wish wish;
    do {
        CUresult result = make_wish(&wish, ptr, size, desc, count);
        if (result != CUDA_SUCCESS)
            return result;
        /* Running work must not be caught writing after the CPU's right to write ends. */
    } while (wish.cpu && !(wish.cpu_rights & SG_WRITE) && sg_mappings_leave_cpu(ptr, size));
    if (wish.cpu && wish.cpu_rights && !give_cpu(ptr, size, wish.cpu_rights))
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (wish.cpu && !wish.cpu_rights)
        take_cpu(ptr, size);
    sg_table_rights(ptr, size, wish.mask, wish.rights);
    return CUDA_SUCCESS;
}

static unsigned long long flags_of_rights(unsigned rights) {
    if (rights & SG_WRITE)
        return CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    return rights & SG_READ ? CU_MEM_ACCESS_FLAGS_PROT_READ : CU_MEM_ACCESS_FLAGS_PROT_NONE;
}

/* Plain allocations and pinned memory have no access rights to report: H200 returns success and
 * NONE. A failed lookup zeroes the output. */
CUresult sg_cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location,
                           CUdeviceptr ptr) {
    if (!flags || !location || ptr == 0)
        return CUDA_ERROR_INVALID_VALUE;
    bool host = location->type == CU_MEM_LOCATION_TYPE_HOST ||
                location->type == CU_MEM_LOCATION_TYPE_HOST_NUMA;
    if (!host && (location->type != CU_MEM_LOCATION_TYPE_DEVICE || !sg_device(location->id)))
        return CUDA_ERROR_INVALID_DEVICE;
    struct sg_range *range = sg_range_find(ptr);
    *flags = 0;
    if (!range)
        return CUDA_ERROR_INVALID_VALUE;
    if (range->ops != &sg_mapping_ops)
        return CUDA_SUCCESS;
    *flags = host ? flags_of_rights(range->cpu_rights)
                  : flags_of_rights(sg_table_get(ptr, NULL) >> (2 * location->id) & NOW_MASK);
    return CUDA_SUCCESS;
}

/* ---- The range of a mapping ----------------------------------------------------------------- */

static bool page_allows(CUdeviceptr address, int device, int owner, unsigned rights) {
    sg_rights all = sg_table_get(address, NULL);
    sg_rights need = sg_rights_of(device, rights), owners = sg_rights_of(owner, rights);
    return (all & need) == need || (all & owners) == owners;
}

static bool pages_allow(CUdeviceptr address, size_t size, int device, int owner, unsigned rights) {
    for (CUdeviceptr at = address & ~(CUdeviceptr)(SG_PAGE - 1); at < address + size; at += SG_PAGE)
        if (!page_allows(at, device, owner, rights))
            return false;
    return true;
}

static bool mapped(int device, CUdeviceptr address, size_t size, unsigned rights) {
    return pages_allow(address, size, device, device, rights);
}

static bool allows(const struct sg_range *range, CUdeviceptr address, size_t size,
                   unsigned rights) {
    /* The result of a load through a multicast mapping is undefined. */
    if (range->phys->ops && (rights & SG_READ))
        return false;
    const struct sg_context *context = sg_context_peek();
    int device = context ? context->device : range->device < 0 ? 0 : range->device;
    int owner = range->device < 0 ? device : range->device;
    return pages_allow(address, size, device, owner, rights);
}

static bool seen(const struct sg_context *context, const struct sg_range *range) {
    return (sg_table_get(range->start, NULL) >> (2 * context->device) & NOW_MASK) != 0;
}

static bool reachable(const struct sg_context *context, const struct sg_range *range,
                      CUdeviceptr address, size_t size, unsigned rights) {
    (void)range;
    return mapped(context->device, address, size, rights);
}

/* As recorded: a mapping of host memory has a size, but 0 for its base and no host pointer,
 * whatever the CPU's rights. */
static void describe(const struct sg_range *range, struct sg_range_facts *facts) {
    const struct sg_reservation *reservation = sg_reservation_at(range->start);
    const CUmemAllocationProp *prop = &range->phys->prop;
    facts->start = reservation->node.key;
    facts->size = reservation->size;
    if (range->device < 0)
        facts->base = 0;
    facts->host_pointer = false;
    facts->rdma = range->device >= 0 && prop->allocFlags.gpuDirectRDMACapable;
    facts->decompress =
        range->device >= 0 && (prop->allocFlags.usage & CU_MEM_CREATE_USAGE_HW_DECOMPRESS) != 0;
}

const struct sg_range_ops sg_mapping_ops = {
    .seen = seen,
    .allows = allows,
    .mapped = mapped,
    .reachable = reachable,
    .describe = describe,
    .joins = true,
    .bindable = true,
};
