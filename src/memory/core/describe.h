/* What a resource adds to the snapshot beside what the library knows of every one. */
#ifndef GM_MEMORY_DESCRIBE_H
#define GM_MEMORY_DESCRIBE_H

#include "base/json.h"
#include "base/spans.h"
#include "memory/core/objects.h"

#include <gpumem/snapshot.h>

/*
 * Each adds members to an object that is open, and makes no driver call; either may be NULL. Names
 * of members are those of docs/snapshot.md: adding one is no new version, changing one is.
 */
struct gm_describe_ops {
    /* Members of the resource, as far as the options want them. No lock is held; locks of its own
     * may be taken. */
    void (*resource)(gpumem_resource *resource, struct gm_json *json,
                     const gpumem_snapshot_options *options);
    /* Members of one of its buffers, whose roll is locked: it stays, and so does its cookie. Only
     * locks under which nothing else is locked may be taken. */
    void (*buffer)(const gpumem_buffer *buffer, struct gm_json *json);
};

/* When all that the functions look at is in place: a snapshot may come at once. */
void gm_describe_set(gpumem_resource *resource, const struct gm_describe_ops *ops);

/* A member "pieces": the range cut up, neighbours of one size and state together. `state` names
 * the state of a piece. The lock of the spans is held. */
void gm_describe_pieces(struct gm_json *json, const struct gm_spans *spans,
                        const char *(*state)(const struct gm_span *));

/* "free" or "in_use". */
const char *gm_describe_piece(const struct gm_span *span);

#endif
