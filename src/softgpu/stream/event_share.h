/* The part of interprocess events that processes share. Needs the lock. */
#ifndef SG_STREAM_EVENT_SHARE_H
#define SG_STREAM_EVENT_SHARE_H

#include "softgpu/process/process.h"
#include "softgpu/stream/event.h"

/* Where another process finds it: plain bytes. */
struct sg_event_name {
    struct sg_process_fd table;
    uint64_t generation;
    uint32_t slot;
};

CUresult sg_event_share_create(struct sg_event *event);
void sg_event_share_end(struct sg_event *event);
/* Number of the record that a wait made now waits for; 0 when nothing was recorded. */
uint64_t sg_event_share_mark(const struct sg_event *event);
bool sg_event_share_reached(const struct sg_event *event, uint64_t number);
uint64_t sg_event_share_record(struct sg_event *event);
void sg_event_share_complete(const struct sg_event *event, uint64_t number);

/* For an event made by this process. OPERATING_SYSTEM when the table's file was closed. */
CUresult sg_event_share_name(const struct sg_event *event, struct sg_event_name *name);
/* Maps what another process named, setting *share and *map, for an event of this process.
 * MAP_FAILED; INVALID_HANDLE when the event no longer exists. */
CUresult sg_event_share_open(const struct sg_event_name *name, struct sg_event_share **share,
                             void **map);
void sg_event_share_close(void *map);

#endif
