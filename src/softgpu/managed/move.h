/* Prefetching and discarding: ranges that are checked together and queued as one operation. */
#ifndef SG_MANAGED_MOVE_H
#define SG_MANAGED_MOVE_H

#include "softgpu/managed/managed.h"
#include "softgpu/stream/stream.h"

struct sg_move {
    CUdeviceptr address;
    size_t size;
    bool discard;
    CUmemLocation to;       /* prefetch target; type CU_MEM_LOCATION_TYPE_INVALID for none */
    struct sg_pages *pages; /* found by sg_moves_add */
    uint64_t buffer_id;
};

struct sg_moves;

/* Room for `count`; NULL when out of memory. */
struct sg_moves *sg_moves_new(size_t count);
/* INVALID_VALUE for anything but managed memory of one allocation. */
CUresult sg_moves_add(struct sg_moves *moves, struct sg_move move);
/* Queues the operation, and updates the pages' facts at once. All or nothing; ends `moves`. */
CUresult sg_moves_submit(struct sg_moves *moves, struct sg_stream *stream);
/* For moves that are not submitted. */
void sg_moves_drop(struct sg_moves *moves);

#endif
