/* Events, as stream/ and ipc/ know them. Everything wants the lock. */
#ifndef SG_STREAM_EVENT_H
#define SG_STREAM_EVENT_H

#include "softgpu/stream/stream.h"

/* What processes share of an interprocess event; stream/event_share.c maps it. */
struct sg_event_share {
    _Atomic uint64_t generation; /* odd while the event lives */
    _Atomic uint64_t recorded;   /* number of the last record, by any process */
    _Atomic uint64_t completed;  /* number of the last record that is complete */
    _Atomic uint64_t recorder;   /* the last record's maker, as sg_process_self names it */
};

struct sg_event {
    uint64_t handle;
    unsigned refs;
    struct sg_context *context; /* referenced */
    unsigned flags;
    uint64_t record;              /* number of the last record in this process; 0 for none */
    uint64_t done;                /* number of the last complete one */
    uint64_t time;                /* of the last record's completion, sg_now */
    struct sg_token token;        /* of the last record, also when that is complete */
    struct sg_event_share *share; /* NULL when not interprocess */
    void *share_map;              /* the maker's table, mapped for an event that was opened here */
    struct sg_capture *capture;   /* in which it was recorded last, referenced; or NULL */
    struct sg_dependencies dependencies; /* with `capture`: what who waits for it depends on */
};

/* One reference, no handle. NULL when out of memory. */
struct sg_event *sg_event_new(struct sg_context *context, unsigned flags);
/* Gives it a handle, or drops it and answers OUT_OF_MEMORY. */
CUresult sg_event_publish(struct sg_event *event, CUevent *handle);
void sg_event_ref(struct sg_event *event);
void sg_event_unref(struct sg_event *event);
struct sg_event *sg_event_get(CUevent handle);

/*
 * For work that is queued as a whole or not at all. The first call makes `op`, a marker, record the
 * event, and must be followed by sg_stream_enqueue and the second call, with nothing that fails
 * between them. The third makes `op` wait for the event's last record; it has room for one token
 * (sg_op_reserve_waits).
 */
void sg_event_record_begin(struct sg_event *event, struct sg_op *op);
void sg_event_record_queued(struct sg_event *event, struct sg_stream *stream, uint64_t number);
void sg_event_wait_begin(struct sg_event *event, struct sg_op *op);

#endif
