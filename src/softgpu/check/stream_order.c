#include "softgpu/check/stream_order.h"

#include "base/growing_array.h"

#include <stdlib.h>

/* Operations of a stream starting at `from` come after those of another stream up to `upto`. */
struct edge {
    uint64_t from, stream, upto;
};

struct track {
    struct track *next;
    uint64_t stream;
    uint64_t host; /* the host's `changes` when its knowledge was last added */
    struct edge *edges;
    size_t count, room;
};

#define BUCKETS 256u
/* Beyond this a stream counts as having waited for everything: races may be missed then, but none
 * is invented. */
#define EDGES_MOST 65536u

static struct track *tracks[BUCKETS];
static struct sg_race_after *host; /* what the host has waited for */
static size_t host_count, host_room;
static uint64_t host_changes, floor_serial;

static struct track *find(uint64_t stream) {
    struct track *track = tracks[stream % BUCKETS];
    while (track && track->stream != stream)
        track = track->next;
    return track;
}

static struct track *track_of(uint64_t stream) {
    struct track *track = find(stream);
    if (track)
        return track;
    track = calloc(1, sizeof *track);
    if (!track)
        return NULL;
    track->stream = stream;
    track->next = tracks[stream % BUCKETS];
    tracks[stream % BUCKETS] = track;
    return track;
}

/* Adds an edge from an operation on, unless an edge of the same streams covers it. */
static void add_edge(struct track *track, uint64_t from, uint64_t stream, uint64_t upto,
                     uint64_t serial) {
    if (stream == track->stream || upto == 0)
        return;
    for (size_t i = track->count; i-- > 0;)
        if (track->edges[i].stream == stream) {
            if (track->edges[i].upto >= upto)
                return;
            break;
        }
    if (track->count < EDGES_MOST && GM_RESERVE(track->edges, track->room, track->count + 1))
        track->edges[track->count++] = (struct edge){from, stream, upto};
    else
        floor_serial = serial;
}

static bool is_blocking(const struct sg_stream *stream) {
    return !(stream->flags & CU_STREAM_NON_BLOCKING);
}

static void after_all(struct track *track, const struct sg_op *op, const struct sg_stream *list) {
    for (; list; list = list->next)
        if (is_blocking(list))
            add_edge(track, op->number, list->id, list->submitted, op->serial);
}

/* Work in the legacy stream waits for all blocking streams, and their work for it. */
static void default_stream(struct track *track, const struct sg_op *op) {
    const struct sg_context *context = op->stream->context;
    const struct sg_stream *legacy = context->legacy;
    if (op->stream == legacy) {
        after_all(track, op, context->streams);
        after_all(track, op, context->per_thread);
    } else if (legacy && is_blocking(op->stream)) {
        add_edge(track, op->number, legacy->id, legacy->submitted, op->serial);
    }
}

static void queued(const struct sg_op *op) {
    struct track *track = track_of(op->stream->id);
    if (!track) {
        floor_serial = op->serial;
        return;
    }
    for (unsigned i = 0; i < op->wait_count; i++)
        add_edge(track, op->number, op->waits[i].stream->id, op->waits[i].number, op->serial);
    default_stream(track, op);
    for (size_t i = 0; track->host != host_changes && i < host_count; i++)
        add_edge(track, op->number, host[i].stream, host[i].number, op->serial);
    track->host = host_changes;
}

static void reached(const struct sg_stream *stream, uint64_t number) {
    size_t i = 0;
    while (i < host_count && host[i].stream != stream->id)
        i++;
    if (i < host_count && host[i].number >= number)
        return;
    if (i == host_count) {
        if (!GM_RESERVE(host, host_room, host_count + 1)) {
            floor_serial = UINT64_MAX;
            return;
        }
        host_count++;
    }
    host[i] = (struct sg_race_after){stream->id, number};
    host_changes++;
}

/* The edges of work submitted since then must still be looked at. */
static void reached_all(uint64_t serial) {
    if (serial > floor_serial)
        floor_serial = serial;
}

void sg_stream_order_begin(void) {
    static const struct sg_stream_watch watch = {
        .queued = queued, .reached = reached, .reached_all = reached_all};
    sg_stream_watch = &watch;
}

/* ---- everything before an operation ---------------------------------------------------------- */

struct closure {
    struct sg_race_after *list;
    size_t count, room;
};

/* False: out of memory. */
static bool add(struct closure *closure, uint64_t stream, uint64_t upto) {
    for (size_t i = 0; i < closure->count; i++)
        if (closure->list[i].stream == stream) {
            if (closure->list[i].number >= upto)
                return true;
            /* Moves it to the end, to be looked at again. */
            closure->list[i] = closure->list[--closure->count];
            break;
        }
    if (!GM_RESERVE(closure->list, closure->room, closure->count + 1))
        return false;
    closure->list[closure->count++] = (struct sg_race_after){stream, upto};
    return true;
}

static bool add_before(struct closure *closure, uint64_t stream, uint64_t number) {
    const struct track *track = find(stream);
    for (size_t i = 0; track && i < track->count; i++)
        if (track->edges[i].from <= number &&
            !add(closure, track->edges[i].stream, track->edges[i].upto))
            return false;
    return true;
}

bool sg_stream_order_of(const struct sg_op *op, struct sg_race_operation *operation) {
    struct closure known = {0}, looked = {0};
    bool good = add_before(&known, op->stream->id, op->number);
    while (good && known.count > 0) {
        struct sg_race_after next = known.list[--known.count];
        size_t before = looked.count;
        bool new = true;
        for (size_t i = 0; i < before; i++)
            new = new &&
                  !(looked.list[i].stream == next.stream && looked.list[i].number >= next.number);
        if (new)
            good = add(&looked, next.stream, next.number) &&
                   add_before(&known, next.stream, next.number);
    }
    free(known.list);
    if (!good) {
        free(looked.list);
        return false;
    }
    *operation = (struct sg_race_operation){.stream = op->stream->id,
                                            .number = op->number,
                                            .serial = op->serial,
                                            .floor = floor_serial,
                                            .after = looked.list,
                                            .after_count = looked.count};
    return true;
}
