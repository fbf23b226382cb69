/* cuMemRangeGetAttribute: what the pages of a range have in common. */
#include "softgpu/core/calls.h"
#include "softgpu/device/device.h"
#include "softgpu/managed/managed.h"

#include <string.h>

/* What the runs of a range have in common so far. */
struct common {
    bool any;
    struct sg_page_facts facts;
};

static void keep_equal(CUmemLocation *common, const CUmemLocation *other) {
    if (common->type != other->type || common->id != other->id)
        *common = (CUmemLocation){0};
}

static void add(const struct sg_page_facts *facts, void *user) {
    struct common *common = user;
    if (!common->any) {
        common->any = true;
        common->facts = *facts;
        return;
    }
    common->facts.read_mostly &= facts->read_mostly;
    common->facts.accessed_by &= facts->accessed_by;
    keep_equal(&common->facts.preferred, &facts->preferred);
    keep_equal(&common->facts.prefetched, &facts->prefetched);
}

static int ordinal_of(const CUmemLocation *location) {
    switch (location->type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
        return location->id;
    case CU_MEM_LOCATION_TYPE_INVALID:
        return CU_DEVICE_INVALID;
    default:
        return CU_DEVICE_CPU;
    }
}

static int id_of(const CUmemLocation *location) {
    return location->type == CU_MEM_LOCATION_TYPE_INVALID ? CU_DEVICE_INVALID : location->id;
}

/* Devices first, then the CPU, then nothing. */
static void list_accessors(uint32_t accessed_by, int *list, size_t room) {
    size_t count = 0;
    for (int device = 0; device < SG_MAX_DEVICES && count < room; device++)
        if (accessed_by >> device & 1u)
            list[count++] = device;
    if (accessed_by & SG_ACCESSED_BY_CPU && count < room)
        list[count++] = CU_DEVICE_CPU;
    while (count < room)
        list[count++] = CU_DEVICE_INVALID;
}

static int number_of(CUmem_range_attribute attribute, const struct sg_page_facts *facts) {
    switch (attribute) {
    case CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY:
        return facts->read_mostly;
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION:
        return ordinal_of(&facts->preferred);
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE:
        return (int)facts->preferred.type;
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID:
        return id_of(&facts->preferred);
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION:
        return ordinal_of(&facts->prefetched);
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE:
        return (int)facts->prefetched.type;
    default: /* CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID */
        return id_of(&facts->prefetched);
    }
}

static void answer(CUmem_range_attribute attribute, const struct sg_page_facts *facts, void *data,
                   size_t size) {
    if (attribute == CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY) {
        list_accessors(facts->accessed_by, data, size / sizeof(int));
        return;
    }
    int number = number_of(attribute, facts);
    memcpy(data, &number, sizeof number);
}

static bool fits(CUmem_range_attribute attribute, const void *data, size_t size) {
    if (!data || attribute < CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY ||
        attribute > CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID)
        return false;
    if (attribute == CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY)
        return size > 0 && size % sizeof(int) == 0;
    return size == sizeof(int);
}

/* All or nothing: every attribute is checked before the first answer is written. */
static CUresult query(void **data, const size_t *sizes, const CUmem_range_attribute *attributes,
                      size_t count, CUdeviceptr address, size_t size) {
    for (size_t i = 0; i < count; i++)
        if (!fits(attributes[i], data[i], sizes[i]))
            return CUDA_ERROR_INVALID_VALUE;
    const struct sg_pages *pages = sg_managed_pages(address, size);
    if (!pages)
        return CUDA_ERROR_INVALID_VALUE;
    struct common common = {0};
    sg_pages_look(pages, address, size, add, &common);
    if (pages->opened_to) /* on H200 a pool's access counts as advice */
        common.facts.accessed_by |= *pages->opened_to;
    for (size_t i = 0; i < count; i++)
        answer(attributes[i], &common.facts, data[i], sizes[i]);
    return CUDA_SUCCESS;
}

CUresult sg_cuMemRangeGetAttribute(void *data, size_t dataSize, CUmem_range_attribute attribute,
                                   CUdeviceptr devPtr, size_t count) {
    struct sg_context *context;
    CUresult result = sg_context_current(&context);
    return result == CUDA_SUCCESS ? query(&data, &dataSize, &attribute, 1, devPtr, count) : result;
}

CUresult sg_cuMemRangeGetAttributes(void **data, size_t *dataSizes,
                                    CUmem_range_attribute *attributes, size_t numAttributes,
                                    CUdeviceptr devPtr, size_t count) {
    struct sg_context *context;
    CUresult result = sg_context_current(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (!data || !dataSizes || !attributes || numAttributes == 0)
        return CUDA_ERROR_INVALID_VALUE;
    return query(data, dataSizes, attributes, numAttributes, devPtr, count);
}
