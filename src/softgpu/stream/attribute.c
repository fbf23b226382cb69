/* Stream attributes: stored and returned; only priority has an effect here. */
#include "softgpu/core/calls.h"
#include "softgpu/device/device.h"
#include "softgpu/stream/capture.h"
#include "softgpu/stream/schedule.h"

#include <string.h>

void sg_stream_attributes_begin(struct sg_stream_attributes *attributes) {
    memset(attributes, 0, sizeof *attributes);        /* it is compared bytewise */
    attributes->policy = (CUsynchronizationPolicy)-1; /* what H200 reports when never set */
    attributes->domain_map.remote = 1;
}

CUresult sg_cuStreamGetAttribute(CUstream hStream, CUstreamAttrID attr, CUstreamAttrValue *value) {
    struct sg_stream *stream;
    CUresult result = sg_stream_find_valid(hStream, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (!value)
        return CUDA_ERROR_INVALID_VALUE;
    /* Only the member itself is written, as seen on H200. */
    const struct sg_stream_attributes *attributes = &stream->attributes;
    switch ((int)attr) {
    case CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW:
        value->accessPolicyWindow = attributes->window;
        return CUDA_SUCCESS;
    case CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY:
        value->syncPolicy = attributes->policy;
        return CUDA_SUCCESS;
    case CU_STREAM_ATTRIBUTE_PRIORITY:
        value->priority = stream->priority;
        return CUDA_SUCCESS;
    case CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
        value->memSyncDomainMap = attributes->domain_map;
        return CUDA_SUCCESS;
    case CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN:
        value->memSyncDomain = attributes->domain;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

static int device_has(const struct sg_stream *stream, CUdevice_attribute attribute) {
    return sg_device(stream->context->device)->attributes[attribute];
}

static bool window_valid(const struct sg_stream *stream, const CUaccessPolicyWindow *window) {
    int limit = device_has(stream, CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE);
    return window->hitRatio >= 0.0f && window->hitRatio <= 1.0f &&
           window->missProp != CU_ACCESS_PROPERTY_PERSISTING &&
           window->num_bytes <= (size_t)(limit > 0 ? limit : 0);
}

static bool map_valid(const struct sg_stream *stream, const CUlaunchMemSyncDomainMap *map) {
    int domains = device_has(stream, CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT);
    return map->default_ < domains && map->remote < domains;
}

CUresult sg_cuStreamSetAttribute(CUstream hStream, CUstreamAttrID attr,
                                 const CUstreamAttrValue *param) {
    struct sg_stream *stream;
    CUresult result = sg_stream_find_valid(hStream, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (!param)
        return CUDA_ERROR_INVALID_VALUE;
    struct sg_stream_attributes *attributes = &stream->attributes;
    switch ((int)attr) {
    case CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW:
        if (!window_valid(stream, &param->accessPolicyWindow))
            return CUDA_ERROR_INVALID_VALUE;
        attributes->window = param->accessPolicyWindow;
        return CUDA_SUCCESS;
    case CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY:
        if (param->syncPolicy < CU_SYNC_POLICY_AUTO ||
            param->syncPolicy > CU_SYNC_POLICY_BLOCKING_SYNC)
            return CUDA_ERROR_INVALID_VALUE;
        attributes->policy = param->syncPolicy;
        return CUDA_SUCCESS;
    case CU_STREAM_ATTRIBUTE_PRIORITY:
        stream->priority = sg_stream_priority(param->priority);
        return CUDA_SUCCESS;
    case CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
        if (!map_valid(stream, &param->memSyncDomainMap))
            return CUDA_ERROR_INVALID_VALUE;
        attributes->domain_map = param->memSyncDomainMap;
        return CUDA_SUCCESS;
    case CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN:
        if ((unsigned)param->memSyncDomain > CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE)
            return CUDA_ERROR_INVALID_VALUE;
        attributes->domain = param->memSyncDomain;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult sg_cuStreamCopyAttributes(CUstream dst, CUstream src) {
    struct sg_stream *to, *from;
    CUresult result = sg_stream_find_valid(dst, &to);
    if (result == CUDA_SUCCESS)
        result = sg_stream_find_valid(src, &from);
    if (result != CUDA_SUCCESS)
        return result;
    if (to->context != from->context)
        return CUDA_ERROR_INVALID_VALUE;
    to->attributes = from->attributes;
    to->priority = from->priority;
    return CUDA_SUCCESS;
}
