/* Attributes of kernel nodes. */
#include "softgpu/core/calls.h"
#include "softgpu/device/device.h"
#include "softgpu/graph/node_type.h"
#include "softgpu/graph/nodes.h"
#include "softgpu/launch/launch.h"
#include "softgpu/module/function.h"
#include "softgpu/stream/stream.h"

#include <stdlib.h>
#include <string.h>

static bool make_room(struct sg_node *node) {
    if (!node->attributes)
        node->attributes = calloc(CU_LAUNCH_ATTRIBUTE_MAX, sizeof *node->attributes);
    if (!node->attribute_set)
        node->attribute_set = calloc(CU_LAUNCH_ATTRIBUTE_MAX, sizeof *node->attribute_set);
    return node->attributes && node->attribute_set;
}

bool sg_node_attributes_copy(struct sg_node *to, const struct sg_node *from) {
    if (!from->attributes || !from->attribute_set)
        return true;
    if (!make_room(to))
        return false;
    memcpy(to->attributes, from->attributes, CU_LAUNCH_ATTRIBUTE_MAX * sizeof *to->attributes);
    memcpy(to->attribute_set, from->attribute_set,
           CU_LAUNCH_ATTRIBUTE_MAX * sizeof *to->attribute_set);
    if (sg_node_is_updatable(to))
        to->attributes[CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE]
            .deviceUpdatableKernelNode.devNode = SG_HANDLE_POINTER(CUgraphDeviceNode, to->handle);
    return true;
}

static bool is_kernel(const struct sg_node *node) {
    return node && sg_type_of(&node->params)->has_attributes;
}

bool sg_node_is_updatable(const struct sg_node *node) {
    const int id = CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE;
    return node->attribute_set && node->attribute_set[id] &&
           node->attributes[id].deviceUpdatableKernelNode.deviceUpdatable;
}

#define MEMBER(member) sizeof(((CUkernelNodeAttrValue *)0)->member)

/* Size in bytes of an attribute that graph nodes have; 0 for attributes of streams and for unknown
 * ones. All as recorded on H200. */
static size_t size_of(CUkernelNodeAttrID attr) {
    switch (attr) {
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
        return MEMBER(accessPolicyWindow);
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
        return MEMBER(cooperative);
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
        return MEMBER(clusterDim);
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        return MEMBER(clusterSchedulingPolicyPreference);
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
        return MEMBER(priority);
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
        return MEMBER(memSyncDomainMap);
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
        return MEMBER(memSyncDomain);
    case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
        return MEMBER(deviceUpdatableKernelNode);
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        return MEMBER(sharedMemCarveout);
    default:
        return 0;
    }
}

static CUkernelNodeAttrValue value_of(const struct sg_node *node, CUkernelNodeAttrID attr) {
    if (node->attribute_set && node->attribute_set[attr])
        return node->attributes[attr];
    CUkernelNodeAttrValue fresh = {.pad = {0}};
    if (attr == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP)
        fresh.memSyncDomainMap.remote = 1;
    return fresh;
}

/* Only the bytes of the attribute are written. */
CUresult sg_cuGraphKernelNodeGetAttribute(CUgraphNode hNode, CUkernelNodeAttrID attr,
                                          CUkernelNodeAttrValue *value_out) {
    const struct sg_node *node = sg_node_get(hNode);
    size_t size = size_of(attr);
    if (!is_kernel(node) || !value_out || size == 0)
        return CUDA_ERROR_INVALID_VALUE;
    const CUkernelNodeAttrValue value = value_of(node, attr);
    if (attr == CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE) { /* with a hole that is kept */
        value_out->deviceUpdatableKernelNode.deviceUpdatable =
            value.deviceUpdatableKernelNode.deviceUpdatable;
        value_out->deviceUpdatableKernelNode.devNode = value.deviceUpdatableKernelNode.devNode;
    } else {
        memcpy(value_out, &value, size);
    }
    return CUDA_SUCCESS;
}

/* ---- Setting -------------------------------------------------------------------------------- */

static CUresult check_cluster(const struct sg_node *node, const CUkernelNodeAttrValue *value) {
    const CUDA_KERNEL_NODE_PARAMS_v3 *kernel = &node->params.kernel;
    const unsigned grid[3] = {kernel->gridDimX, kernel->gridDimY, kernel->gridDimZ};
    unsigned x = value->clusterDim.x, y = value->clusterDim.y, z = value->clusterDim.z;
    struct sg_cluster cluster = {.size = {x, y, z}, .given = true};
    struct sg_function *function;
    if (x == 0 && y == 0 && z == 0)
        return CUDA_SUCCESS;
    CUresult result = sg_function_from_handle(kernel->func, &function);
    return result == CUDA_SUCCESS ? sg_cluster_check(function, grid, &cluster) : result;
}

static bool is_window(const CUaccessPolicyWindow *window) {
    int most = sg_device(0)->attributes[CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE];
    return window->hitRatio >= 0 && window->hitRatio <= 1 &&
           window->missProp != CU_ACCESS_PROPERTY_PERSISTING &&
           window->num_bytes <= (size_t)(most > 0 ? most : 0);
}

static CUresult check_value(const struct sg_node *node, CUkernelNodeAttrID attr,
                            const CUkernelNodeAttrValue *value) {
    const int domains = sg_device(0)->attributes[CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT];
    bool valid = true;
    switch (attr) {
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
        valid = is_window(&value->accessPolicyWindow);
        break;
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
        return check_cluster(node, value);
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
        valid =
            value->memSyncDomainMap.default_ < domains && value->memSyncDomainMap.remote < domains;
        break;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
        valid = value->memSyncDomain <= CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE;
        break;
    case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
        valid = (unsigned)value->deviceUpdatableKernelNode.deviceUpdatable <= 1;
        if (valid && sg_node_is_updatable(node) &&
            !value->deviceUpdatableKernelNode.deviceUpdatable)
            return CUDA_ERROR_NOT_SUPPORTED; /* once set, it cannot be cleared */
        break;
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        valid = value->sharedMemCarveout <= 100;
        break;
    default:
        break;
    }
    return valid ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* The fault of the context that the function belongs to. */
static CUresult fault_of(const struct sg_node *node) {
    struct sg_function *function;
    CUresult result = sg_function_from_handle(node->params.kernel.func, &function);
    if (result == CUDA_ERROR_INVALID_HANDLE)
        return CUDA_SUCCESS; /* unloaded meanwhile: the launch will detect it */
    return result == CUDA_SUCCESS ? function->context->sticky : result;
}

/* Priorities outside the range are clamped; an updatable node gets the handle that device code
 * would use. */
static void take(struct sg_node *node, CUkernelNodeAttrID attr,
                 const CUkernelNodeAttrValue *value) {
    CUkernelNodeAttrValue *kept = &node->attributes[attr];
    memcpy(kept, value, size_of(attr));
    if (attr == CU_LAUNCH_ATTRIBUTE_PRIORITY) {
        if (kept->priority < SG_PRIORITY_GREATEST)
            kept->priority = SG_PRIORITY_GREATEST;
        if (kept->priority > SG_PRIORITY_LEAST)
            kept->priority = SG_PRIORITY_LEAST;
    } else if (attr == CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE) {
        bool updatable = kept->deviceUpdatableKernelNode.deviceUpdatable;
        kept->deviceUpdatableKernelNode.devNode =
            updatable ? SG_HANDLE_POINTER(CUgraphDeviceNode, node->handle) : NULL;
    }
    node->attribute_set[attr] = true;
}

CUresult sg_cuGraphKernelNodeSetAttribute(CUgraphNode hNode, CUkernelNodeAttrID attr,
                                          const CUkernelNodeAttrValue *value) {
    struct sg_node *node = sg_node_get(hNode);
    if (!is_kernel(node) || !value)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = fault_of(node);
    if (result != CUDA_SUCCESS)
        return result;
    /* It can be set but not read: there are no links to consider where kernels run. */
    if (attr == CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING &&
        value->nvlinkUtilCentricScheduling <= 1)
        return CUDA_SUCCESS;
    if (size_of(attr) == 0)
        return CUDA_ERROR_INVALID_VALUE;
    result = check_value(node, attr, value);
    if (result == CUDA_SUCCESS && !make_room(node))
        result = CUDA_ERROR_OUT_OF_MEMORY;
    if (result == CUDA_SUCCESS)
        take(node, attr, value);
    return result;
}

CUresult sg_cuGraphKernelNodeCopyAttributes(CUgraphNode dst, CUgraphNode src) {
    struct sg_node *to = sg_node_get(dst);
    const struct sg_node *from = sg_node_get(src);
    if (!is_kernel(to) || !is_kernel(from))
        return CUDA_ERROR_INVALID_VALUE;
    if (to == from)
        return CUDA_SUCCESS;
    if (!from->attributes && to->attribute_set)
        memset(to->attribute_set, 0, CU_LAUNCH_ATTRIBUTE_MAX * sizeof *to->attribute_set);
    return sg_node_attributes_copy(to, from) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
