/*
 * Events that a launch records before it has ended: when all its blocks have begun
 * (CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT), or when each block has released dependent launches
 * (CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT). Everything here requires the lock.
 *
 * Such a record is a marker in a hidden stream of its own, which waits until the launch's operation
 * reports that point.
 */
#ifndef SG_LAUNCH_LAUNCH_EVENTS_H
#define SG_LAUNCH_LAUNCH_EVENTS_H

#include "softgpu/launch/launch.h"

#define SG_LAUNCH_EVENTS 8u

/* The progress of a launch, shared by its operation and the records. */
struct sg_launch_progress;
void sg_launch_progress_set(struct sg_launch_progress *progress, bool begun, bool triggered);
void sg_launch_progress_unref(struct sg_launch_progress *progress);

struct sg_launch_events {
    struct sg_launch_progress *progress; /* NULL: the launch records no event */
    unsigned count;
    struct sg_launch_event {
        struct sg_event *event;
        struct sg_stream *stream;
        struct sg_op *op;
    } list[SG_LAUNCH_EVENTS];
};

/* Makes the records that the attributes of a launch request, in streams of its context. All or
 * nothing: INVALID_VALUE for more than SG_LAUNCH_EVENTS, OUT_OF_MEMORY. */
CUresult sg_launch_events_make(struct sg_context *context, const struct sg_launch *launch,
                               struct sg_launch_events *events);
/* Another reference to the progress, for the launch's operation; or NULL. */
struct sg_launch_progress *sg_launch_events_progress(const struct sg_launch_events *events);
/* One of these must follow: queues the records, which cannot fail, or frees them. */
void sg_launch_events_queue(struct sg_launch_events *events);
void sg_launch_events_discard(struct sg_launch_events *events);

#endif
