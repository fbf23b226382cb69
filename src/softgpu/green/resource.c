/* Sets of multiprocessors, and the structs in which the application holds them. */
#include "softgpu/green/resource.h"

#include "softgpu/device/device.h"

#include <string.h>
#include <sys/random.h>

/* In CUdevResource's internal bytes. The seal covers the rest and what the application can read, so
 * that a struct that was made up or changed is detected. */
struct record {
    uint64_t seal;
    uint64_t split;
    struct sg_multiprocessors of;
};

_Static_assert(sizeof(struct record) <= sizeof((CUdevResource *)0)->_internal_padding,
               "a resource holds the record");

static uint64_t mix(uint64_t value) {
    value ^= value >> 32;
    value *= 0xd6e8feb86659fd93u;
    value ^= value >> 32;
    value *= 0xd6e8feb86659fd93u;
    return value ^ value >> 32;
}

/* Differs between processes: a struct of one process means nothing in another. */
static uint64_t key(void) {
    static uint64_t drawn;
    if (!drawn && getrandom(&drawn, sizeof drawn, GRND_NONBLOCK) != (ssize_t)sizeof drawn)
        drawn = sg_now();
    return drawn |= 1;
}

static uint64_t seal_of(const struct record *record, const CUdevSmResource *shown) {
    uint64_t seal = mix(key() ^ record->split);
    seal = mix(seal ^ (uint64_t)record->of.device);
    for (unsigned i = 0; i < SG_RESOURCE_WORDS; i++)
        seal = mix(seal ^ record->of.set[i]);
    seal = mix(seal ^ shown->smCount);
    seal = mix(seal ^ shown->minSmPartitionSize);
    return mix(seal ^ shown->smCoscheduledAlignment);
}

unsigned sg_multiprocessors_count(const struct sg_multiprocessors *of) {
    unsigned count = 0;
    for (unsigned i = 0; i < SG_RESOURCE_WORDS; i++)
        count += (unsigned)__builtin_popcount(of->set[i]);
    return count;
}

bool sg_multiprocessors_all(int device, struct sg_multiprocessors *all) {
    unsigned count =
        (unsigned)sg_device(device)->attributes[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT];
    if (count > SG_RESOURCE_WORDS * 32)
        return false;
    *all = (struct sg_multiprocessors){.device = device};
    for (unsigned i = 0; i < count; i++)
        all->set[i / 32] |= (uint32_t)1 << i % 32;
    return true;
}

/* The documentation's table; the effect of the flag on 9.x was seen on H200: pairs, as for 7.x. */
struct sg_partition_rule sg_partition_rule(int device, unsigned flags) {
    int major = sg_device(device)->attributes[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR];
    if (major < 7)
        return (struct sg_partition_rule){1, 1};
    if (major < 8 || (flags & CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING))
        return (struct sg_partition_rule){2, 2};
    if (major < 9)
        return (struct sg_partition_rule){4, 2};
    return (struct sg_partition_rule){8, 8};
}

/* H200 omits the rule from the results of a split. */
void sg_resource_write(CUdevResource *resource, const struct sg_multiprocessors *of,
                       uint64_t split) {
    struct record record = {.split = split, .of = *of};
    struct sg_partition_rule rule = sg_partition_rule(of->device, 0);
    memset(resource, 0, sizeof *resource);
    unsigned count = sg_multiprocessors_count(of);
    if (count == 0)
        return; /* no resource: CU_DEV_RESOURCE_TYPE_INVALID */
    resource->type = CU_DEV_RESOURCE_TYPE_SM;
    resource->sm.smCount = count;
    resource->sm.minSmPartitionSize = split ? 0 : rule.least;
    resource->sm.smCoscheduledAlignment = split ? 0 : rule.step;
    record.seal = seal_of(&record, &resource->sm);
    memcpy(resource->_internal_padding, &record, sizeof record);
}

CUresult sg_resource_read(const CUdevResource *resource, struct sg_multiprocessors *of,
                          uint64_t *split) {
    struct record record;
    if (resource->type != CU_DEV_RESOURCE_TYPE_SM)
        return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    memcpy(&record, resource->_internal_padding, sizeof record);
    if (record.seal != seal_of(&record, &resource->sm))
        return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    *of = record.of;
    *split = record.split;
    return CUDA_SUCCESS;
}
