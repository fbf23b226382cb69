/* What a resource adds to the snapshot besides what the library knows of every resource. */
#ifndef GM_MEMORY_DESCRIBE_H
#define GM_MEMORY_DESCRIBE_H

#include "base/json.h"
#include "base/spans.h"
#include "memory/core/objects.h"

#include <gpumem/snapshot.h>

/*
 * Each adds members to an object that is open, and makes no driver call; either may be NULL. Names
 * of members are those of docs/snapshot.md: adding one needs no new version, changing one does.
 */
struct gm_describe_ops {
    /* Members of the resource, as requested by the options. No lock is held; it may take its own
     * locks. */
    void (*resource)(gpumem_resource *resource, struct gm_json *json,
                     const gpumem_snapshot_options *options);
    /* Members of one of its buffers, whose roll is locked, so that it and its cookie cannot go
     * away. Only leaf locks may be taken. */
    void (*buffer)(const gpumem_buffer *buffer, struct gm_json *json);
};

/* Called when everything that the functions read is in place: a snapshot may happen at once. */
void gm_describe_set(gpumem_resource *resource, const struct gm_describe_ops *ops);

/* A member "pieces": the division of the range, with neighbours of the same size and state
 * combined. `state` names
 * the state of a piece. The lock of the spans is held. */
void gm_describe_pieces(struct gm_json *json, const struct gm_spans *spans,
                        const char *(*state)(const struct gm_span *));

/* "free" or "in_use". */
const char *gm_describe_piece(const struct gm_span *span);

#endif
