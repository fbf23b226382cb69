/* Attributes of a launch: the values that an H200 refuses, and clusters. */
#include "softgpu/core/calls.h"
#include "softgpu/launch/launch.h"
#include "softgpu/stream/schedule.h"

#include <string.h>

#define DOMAINS 2u /* CU_LAUNCH_MEM_SYNC_DOMAIN_DEFAULT and _REMOTE */

static bool event_known(CUevent event) {
    return sg_handle_get(SG_KIND_EVENT, SG_HANDLE_VALUE(event)) != NULL;
}

static CUresult check_one(const CUlaunchAttribute *attribute, bool *cooperative) {
    const CUlaunchAttributeValue *value = &attribute->value;
    bool good = true;
    switch ((int)attribute->id) {
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
        good = value->accessPolicyWindow.hitRatio >= 0.0F &&
               value->accessPolicyWindow.hitRatio <= 1.0F;
        break;
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
        *cooperative = value->cooperative != 0;
        break;
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY: /* for streams only, whatever its value */
        good = false;
        break;
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        good =
            value->clusterSchedulingPolicyPreference <= CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING;
        break;
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
        return event_known(value->programmaticEvent.event) ? CUDA_SUCCESS
                                                           : CUDA_ERROR_INVALID_HANDLE;
    case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
        return event_known(value->launchCompletionEvent.event) ? CUDA_SUCCESS
                                                               : CUDA_ERROR_INVALID_HANDLE;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
        good = (unsigned)value->memSyncDomain < DOMAINS;
        break;
    case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
        good = (unsigned)value->deviceUpdatableKernelNode.deviceUpdatable <= 1;
        break;
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        good = value->sharedMemCarveout <= 100 || value->sharedMemCarveout == (unsigned)-1;
        break;
    default:
        good = attribute->id >= 0 && attribute->id < CU_LAUNCH_ATTRIBUTE_MAX;
        break;
    }
    return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult sg_attributes_check(const CUlaunchAttribute *attributes, unsigned count,
                             bool *cooperative) {
    if (count > 0 && !attributes)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count; i++) {
        CUresult result = check_one(&attributes[i], cooperative);
        if (result != CUDA_SUCCESS)
            return result;
    }
    return CUDA_SUCCESS;
}

bool sg_attributes_priority(const CUlaunchAttribute *attributes, unsigned count, int *priority) {
    bool found = false;
    for (unsigned i = 0; i < count; i++)
        if (attributes[i].id == CU_LAUNCH_ATTRIBUTE_PRIORITY) {
            *priority = sg_stream_priority(attributes[i].value.priority);
            found = true;
        }
    return found;
}

/* ---- Clusters -------------------------------------------------------------------------------- */

#define PORTABLE     8u
#define NOT_PORTABLE 16u

/* As the documentation has it: greater than zero, in each dimension. */
static bool is_multiple(const CUlaunchAttributeValue *preferred, const struct sg_cluster *cluster) {
    const unsigned sizes[3] = {preferred->preferredClusterDim.x, preferred->preferredClusterDim.y,
                               preferred->preferredClusterDim.z};
    for (int i = 0; i < 3; i++)
        if (sizes[i] == 0 || cluster->size[i] == 0 || sizes[i] % cluster->size[i] != 0)
            return false;
    return cluster->given;
}

CUresult sg_cluster_read(const CUlaunchAttribute *attributes, unsigned count,
                         struct sg_cluster *cluster) {
    const CUlaunchAttributeValue *preferred = NULL;
    *cluster = (struct sg_cluster){.given = false};
    if (count > 0 && !attributes)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count; i++) {
        if (attributes[i].id == CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION)
            preferred = &attributes[i].value;
        if (attributes[i].id != CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
            continue;
        cluster->given = true;
        cluster->size[0] = attributes[i].value.clusterDim.x;
        cluster->size[1] = attributes[i].value.clusterDim.y;
        cluster->size[2] = attributes[i].value.clusterDim.z;
    }
    /* A preference applies to a cluster that is given; here blocks are grouped by that one. */
    return !preferred || is_multiple(preferred, cluster) ? CUDA_SUCCESS
                                                         : CUDA_ERROR_INVALID_CLUSTER_SIZE;
}

static unsigned most_blocks(const struct sg_function *function) {
    bool any = sg_function_value(function, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED);
    unsigned most = any ? NOT_PORTABLE : PORTABLE, own = function->image->max_cluster_rank;
    return own && own < most ? own : most;
}

CUresult sg_cluster_check(const struct sg_function *function, const unsigned grid[3],
                          struct sg_cluster *cluster) {
    static const CUfunction_attribute names[] = {CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH,
                                                 CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT,
                                                 CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH};
    bool must = sg_function_value(function, CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET);
    uint64_t blocks = 1;
    for (int i = 0; i < 3; i++) {
        unsigned required = (unsigned)sg_function_value(function, names[i]);
        if (!cluster->given)
            cluster->size[i] = required;
        else if (required && cluster->size[i] != required)
            return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    }
    bool some = cluster->given || cluster->size[0] || cluster->size[1] || cluster->size[2];
    if (!some)
        return must ? CUDA_ERROR_INVALID_CLUSTER_SIZE : CUDA_SUCCESS;
    for (int i = 0; i < 3; i++) {
        if (!cluster->given && cluster->size[i] == 0)
            cluster->size[i] = 1;
        if (cluster->size[i] == 0 || grid[i] % cluster->size[i] != 0)
            return CUDA_ERROR_INVALID_CLUSTER_SIZE;
        blocks *= cluster->size[i];
        if (blocks > most_blocks(function))
            return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    }
    return CUDA_SUCCESS;
}
