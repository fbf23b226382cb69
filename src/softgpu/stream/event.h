/* Events, as stream/ and ipc/ see them. Everything needs the lock. */
#ifndef SG_STREAM_EVENT_H
#define SG_STREAM_EVENT_H

#include "softgpu/stream/stream.h"

/* The part of an interprocess event that processes share; stream/event_share.c maps it. */
struct sg_event_share {
    _Atomic uint64_t generation; /* odd while the event lives */
    _Atomic uint64_t recorded;   /* number of the last record, by any process */
    _Atomic uint64_t completed;  /* number of the last record that is complete */
    _Atomic uint64_t recorder;   /* maker of the last record, by sg_process_self */
};

struct sg_event {
    uint64_t handle;
    unsigned refs;
    struct sg_context *context; /* referenced */
    unsigned flags;
    uint64_t record;                     /* number of the last record in this process; 0 for none */
    uint64_t done;                       /* number of the last complete one */
    uint64_t time;                       /* when the last record completed, by sg_now */
    struct sg_token token;               /* of the last record, kept after it is complete */
    struct sg_event_share *share;        /* NULL when not interprocess */
    void *share_map;                     /* the maker's table, mapped for an event opened here */
    struct sg_capture *capture;          /* in which it was last recorded, referenced; or NULL */
    struct sg_dependencies dependencies; /* with `capture`: what a waiter for it depends on */
};

/* One reference, no handle. NULL when out of memory. */
struct sg_event *sg_event_new(struct sg_context *context, unsigned flags);
/* Gives it a handle, or drops it and returns OUT_OF_MEMORY. */
CUresult sg_event_publish(struct sg_event *event, CUevent *handle);
void sg_event_ref(struct sg_event *event);
void sg_event_unref(struct sg_event *event);
struct sg_event *sg_event_get(CUevent handle);

/*
 * For work that is queued all or nothing. The first call makes `op`, a marker, record the event;
 * sg_stream_enqueue and the second call must follow, with nothing between them that can fail. The
 * third makes `op` wait for the event's last record; it has room for one token
 * (sg_op_reserve_waits).
 */
void sg_event_record_begin(struct sg_event *event, struct sg_op *op);
void sg_event_record_queued(struct sg_event *event, struct sg_stream *stream, uint64_t number);
void sg_event_wait_begin(struct sg_event *event, struct sg_op *op);

#endif
