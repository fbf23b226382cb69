/* Handles of interprocess events. */
#include "softgpu/core/calls.h"
#include "softgpu/stream/event_share.h"

#include <string.h>

#define HANDLE_MAGIC 0x45564e54u

struct handle {
    uint32_t magic, flags;
    struct sg_event_name name;
};
_Static_assert(sizeof(struct handle) <= sizeof(CUipcEventHandle), "fits the driver's handle");

CUresult sg_cuIpcGetEventHandle(CUipcEventHandle *pHandle, CUevent event) {
    if (!pHandle || !event)
        return CUDA_ERROR_INVALID_VALUE;
    const struct sg_event *found = sg_event_get(event);
    memset(pHandle, 0, sizeof *pHandle);
    /* Only its creator can pass an event on. */
    if (!found || !found->share || found->share_map)
        return CUDA_ERROR_INVALID_HANDLE;
    struct handle handle = {.magic = HANDLE_MAGIC, .flags = found->flags};
    CUresult result = sg_event_share_name(found, &handle.name);
    if (result == CUDA_SUCCESS)
        memcpy(pHandle, &handle, sizeof handle);
    return result;
}

CUresult sg_cuIpcOpenEventHandle(CUevent *phEvent, CUipcEventHandle handle) {
    if (!phEvent)
        return CUDA_ERROR_INVALID_VALUE;
    struct sg_context *context;
    CUresult result = sg_context_current(&context);
    if (result != CUDA_SUCCESS)
        return result;
    struct handle named;
    memcpy(&named, &handle, sizeof named);
    if (named.magic != HANDLE_MAGIC)
        return CUDA_ERROR_MAP_FAILED;
    if (sg_process_fd_own(&named.name.table))
        return CUDA_ERROR_INVALID_CONTEXT; /* events can be opened only in other processes */
    struct sg_event_share *share;
    void *map;
    result = sg_event_share_open(&named.name, &share, &map);
    if (result != CUDA_SUCCESS)
        return result;
    struct sg_event *event = sg_event_new(context, named.flags);
    if (!event) {
        sg_event_share_close(map);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    event->share = share;
    event->share_map = map;
    return sg_event_publish(event, phEvent);
}
