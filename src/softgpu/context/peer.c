/* Which contexts may access which contexts' memory. */
#include "softgpu/address/pagetable.h"
#include "softgpu/context/lifetime.h"
#include "softgpu/core/calls.h"

#include <stdlib.h>

struct sg_peer {
    struct sg_peer *next;
    struct sg_context *context; /* referenced */
};

static struct sg_peer **find(struct sg_context *context, const struct sg_context *peer) {
    struct sg_peer **link = &context->peers;
    while (*link && (*link)->context != peer)
        link = &(*link)->next;
    return link;
}

static void forget(struct sg_peer **link) {
    struct sg_peer *peer = *link;
    *link = peer->next;
    sg_table_changed(); /* kernels that run keep the ranges that they have found */
    sg_context_unref(peer->context);
    free(peer);
}

bool sg_context_may_access(const struct sg_context *context, const struct sg_context *peer) {
    if (context->device == peer->device)
        return true;
    context = context->owner ? context->owner : context;
    peer = peer->owner ? peer->owner : peer;
    for (const struct sg_peer *at = context->peers; at; at = at->next)
        if (at->context == peer)
            return true;
    return false;
}

CUresult sg_cuCtxEnablePeerAccess(CUcontext peerContext, unsigned int Flags) {
    struct sg_context *context, *peer;
    CUresult result = sg_context_current(&context);
    if (result == CUDA_SUCCESS)
        result =
            peerContext ? sg_context_from_handle(peerContext, &peer) : CUDA_ERROR_INVALID_CONTEXT;
    if (result != CUDA_SUCCESS)
        return result;
    if (Flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    /* The documentation names INVALID_CONTEXT for the context itself; H200 returns the same as for
     * another context of the same device. */
    int can = 0;
    result = sg_cuDeviceCanAccessPeer(&can, context->device, peer->device);
    if (result != CUDA_SUCCESS || !can)
        return result != CUDA_SUCCESS ? result : CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;

    peer = sg_context_owner(peer);
    struct sg_peer **end = find(context, peer);
    if (*end)
        return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
    struct sg_peer *added = calloc(1, sizeof *added);
    if (!added)
        return CUDA_ERROR_OUT_OF_MEMORY;
    sg_context_ref(peer);
    added->context = peer;
    *end = added;
    return CUDA_SUCCESS;
}

CUresult sg_cuCtxDisablePeerAccess(CUcontext peerContext) {
    struct sg_context *context, *peer;
    CUresult result = sg_context_current(&context);
    if (result == CUDA_SUCCESS)
        result =
            peerContext ? sg_context_from_handle(peerContext, &peer) : CUDA_ERROR_INVALID_CONTEXT;
    if (result != CUDA_SUCCESS)
        return result;
    struct sg_peer **link = find(context, sg_context_owner(peer));
    if (!*link)
        return CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
    forget(link);
    return CUDA_SUCCESS;
}

static void forget_from(uint64_t handle, void *object, void *user) {
    (void)handle;
    struct sg_peer **link = find(object, user);
    if (*link)
        forget(link);
}

void sg_peers_context_end(struct sg_context *context) {
    while (context->peers)
        forget(&context->peers);
    sg_handle_each(SG_KIND_CONTEXT, forget_from, context);
}
