/*
 * What a stream comes after because it waited for events, even when what it waited for is already
 * complete and no queue mentions it any more. Streams are named by their ids, which are never
 * reused, so no stream is kept alive just to be remembered. Forgetting is harmless: a pool then
 * does not hand out a block that it could have handed out.
 */
#include "softgpu/stream/schedule.h"

#include <stdlib.h>

#define REMEMBERED 32

struct sg_followed {
    struct entry {
        uint64_t from; /* operations with this number or a higher one */
        uint64_t id;   /* come after those of this stream */
        uint64_t upto; /* up to this one */
    } entries[REMEMBERED];
    unsigned count;
};

/* For each stream the last wait is remembered; when there are too many streams, those waited for
 * last. */
static struct entry *place_for(struct sg_followed *followed, uint64_t id) {
    struct entry *oldest = followed->entries;
    for (unsigned i = 0; i < followed->count; i++) {
        struct entry *entry = &followed->entries[i];
        if (entry->id == id)
            return entry;
        if (entry->from < oldest->from)
            oldest = entry;
    }
    return followed->count < REMEMBERED ? &followed->entries[followed->count++] : oldest;
}

static void remember(struct sg_stream *stream, uint64_t id, uint64_t upto) {
    if (id == stream->id)
        return;
    struct entry *entry = place_for(stream->followed, id);
    if (entry->id == id && entry->upto >= upto)
        return;
    *entry = (struct entry){stream->submitted + 1, id, upto};
}

bool sg_stream_joins_context(const struct sg_stream *stream) {
    const struct sg_stream *legacy = stream->context->legacy;
    return legacy && (stream == legacy->gather || stream == legacy->barriers);
}

void sg_stream_follow(struct sg_stream *stream, struct sg_token token) {
    const struct sg_stream *earlier = token.stream;
    if (!earlier || earlier == stream || sg_stream_joins_context(earlier))
        return;
    if (!stream->followed)
        stream->followed = calloc(1, sizeof *stream->followed);
    if (!stream->followed)
        return;
    remember(stream, earlier->id, token.number);
    for (unsigned i = 0; earlier->followed && i < earlier->followed->count; i++) {
        const struct entry *entry = &earlier->followed->entries[i];
        if (entry->from <= token.number)
            remember(stream, entry->id, entry->upto);
    }
}

uint64_t sg_stream_followed(const struct sg_stream *stream, uint64_t number, uint64_t id) {
    for (unsigned i = 0; stream->followed && i < stream->followed->count; i++) {
        const struct entry *entry = &stream->followed->entries[i];
        if (entry->id == id)
            return entry->from <= number ? entry->upto : 0;
    }
    return 0;
}
