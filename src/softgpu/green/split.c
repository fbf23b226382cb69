/* Querying resources, splitting them, and describing what a green context will have. */
#include "softgpu/context/context.h"
#include "softgpu/core/calls.h"
#include "softgpu/device/device.h"
#include "softgpu/green/resource.h"

#include <stdlib.h>
#include <string.h>

static CUresult give_all(int device, CUdevResource *resource) {
    struct sg_multiprocessors all;
    if (!sg_multiprocessors_all(device, &all))
        return CUDA_ERROR_NOT_SUPPORTED;
    sg_resource_write(resource, &all, 0);
    return CUDA_SUCCESS;
}

CUresult sg_cuDeviceGetDevResource(CUdevice device, CUdevResource *resource,
                                   CUdevResourceType type) {
    if (!resource)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sg_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    if (type != CU_DEV_RESOURCE_TYPE_SM)
        return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    return give_all(device, resource);
}

/* NULL does not stand for the current context here. */
CUresult sg_cuCtxGetDevResource(CUcontext hCtx, CUdevResource *resource, CUdevResourceType type) {
    struct sg_context *context;
    if (!resource)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = hCtx ? sg_context_from_handle(hCtx, &context) : CUDA_ERROR_INVALID_CONTEXT;
    if (result != CUDA_SUCCESS)
        return result;
    if (type != CU_DEV_RESOURCE_TYPE_SM)
        return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    if (!context->green)
        return give_all(context->device, resource);
    sg_resource_write(resource, &context->green->of, 0);
    return CUDA_SUCCESS;
}

/* ---- Splitting ------------------------------------------------------------------------------- */

/* The whole device has multiprocessors that share no cluster with enough others, which limits the
 * number of partitions of the least size: 15 on H200, where 132 multiprocessors would give 16. */
static unsigned most_parts(const struct sg_multiprocessors *of, struct sg_partition_rule rule,
                           unsigned flags) {
    const struct sg_device *device = sg_device(of->device);
    unsigned total = sg_multiprocessors_count(of), most = 0;
    bool whole = total == (unsigned)device->attributes[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT];
    if (!whole || device->kernels.group_count == 0 ||
        (flags & CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING))
        return total / rule.least;
    for (unsigned i = 0; i < device->kernels.group_count; i++)
        most += device->kernels.groups[i] / rule.least;
    return most;
}

struct plan {
    unsigned size, groups; /* multiprocessors per group, and the number of groups possible */
};

/* Refuses flags that exclude each other; ignores unknown ones. */
static CUresult plan_split(const struct sg_multiprocessors *of, unsigned flags, unsigned least,
                           struct plan *plan) {
    const unsigned both = CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING |
                          CU_DEV_SM_RESOURCE_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE;
    if ((flags & both) == both)
        return CUDA_ERROR_INVALID_VALUE;
    struct sg_partition_rule rule = sg_partition_rule(of->device, flags);
    unsigned total = sg_multiprocessors_count(of);
    if (least > total)
        return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    plan->size = (least + rule.step - 1) / rule.step * rule.step;
    if (plan->size < rule.least)
        plan->size = rule.least;
    if (plan->size > total)
        plan->size = total;
    unsigned most = most_parts(of, rule, flags);
    plan->groups = plan->size ? total / plan->size : 0;
    if (plan->groups > most && plan->size < total)
        plan->groups = most;
    return plan->groups > 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
}

/* Moves `count` multiprocessors from one set to another, empty one. */
static void take(struct sg_multiprocessors *from, unsigned count, struct sg_multiprocessors *to) {
    *to = (struct sg_multiprocessors){.device = from->device};
    for (unsigned i = 0; i < SG_RESOURCE_WORDS * 32 && count > 0; i++) {
        uint32_t bit = (uint32_t)1 << i % 32;
        if (!(from->set[i / 32] & bit))
            continue;
        from->set[i / 32] &= ~bit;
        to->set[i / 32] |= bit;
        count--;
    }
}

CUresult sg_cuDevSmResourceSplitByCount(CUdevResource *result, unsigned int *nbGroups,
                                        const CUdevResource *input, CUdevResource *remaining,
                                        unsigned int useFlags, unsigned int minCount) {
    static uint64_t last_split;
    struct sg_multiprocessors rest, part;
    uint64_t split;
    struct plan plan;
    if (!nbGroups || !input || (result && *nbGroups == 0))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult answer = sg_resource_read(input, &rest, &split);
    if (answer == CUDA_SUCCESS && split != 0)
        answer = CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    if (answer == CUDA_SUCCESS)
        answer = plan_split(&rest, useFlags, minCount, &plan);
    if (answer != CUDA_SUCCESS)
        return answer;
    if (!result || *nbGroups > plan.groups)
        *nbGroups = plan.groups;
    if (!result)
        return CUDA_SUCCESS;
    split = ++last_split;
    for (unsigned i = 0; i < *nbGroups; i++) {
        take(&rest, plan.size, &part);
        sg_resource_write(&result[i], &part, split);
    }
    if (remaining)
        sg_resource_write(remaining, &rest, split);
    return CUDA_SUCCESS;
}

/* ---- Descriptions ---------------------------------------------------------------------------- */

/* No call ends a description, so equal ones are shared: a program that makes them again and again
 * does not grow. */
struct description {
    struct description *next;
    uint64_t handle;
    struct sg_multiprocessors of;
};

static struct description *descriptions;

static CUresult describe(const struct sg_multiprocessors *of, CUdevResourceDesc *handle) {
    struct description *made = descriptions;
    while (made && memcmp(&made->of, of, sizeof *of) != 0)
        made = made->next;
    if (!made) {
        made = calloc(1, sizeof *made);
        if (!made)
            return CUDA_ERROR_OUT_OF_MEMORY;
        made->handle = sg_handle_new(SG_KIND_RESOURCE_DESCRIPTION, made);
        if (!made->handle) {
            free(made);
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        made->of = *of;
        made->next = descriptions;
        descriptions = made;
    }
    *handle = SG_HANDLE_POINTER(CUdevResourceDesc, made->handle);
    return CUDA_SUCCESS;
}

const struct sg_multiprocessors *sg_description_get(CUdevResourceDesc handle) {
    const struct description *found =
        sg_handle_get(SG_KIND_RESOURCE_DESCRIPTION, SG_HANDLE_VALUE(handle));
    return found ? &found->of : NULL;
}

/* Several must come from one split. With none, an H200's driver crashes. */
CUresult sg_cuDevResourceGenerateDesc(CUdevResourceDesc *phDesc, CUdevResource *resources,
                                      unsigned int nbResources) {
    struct sg_multiprocessors all = {0}, one;
    uint64_t first = 0, split;
    if (!phDesc || !resources || nbResources == 0)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < nbResources; i++) {
        CUresult result = sg_resource_read(&resources[i], &one, &split);
        if (result != CUDA_SUCCESS)
            return result;
        if (i > 0 && (split == 0 || split != first))
            return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
        first = split;
        all.device = one.device;
        for (unsigned word = 0; word < SG_RESOURCE_WORDS; word++)
            all.set[word] |= one.set[word];
    }
    return describe(&all, phDesc);
}
