/* Steps' calls to the watcher (watch.h). Without a watcher they do nothing. */
#ifndef SG_ENGINE_WATCHING_H
#define SG_ENGINE_WATCHING_H

#include "softgpu/engine/async.h"
#include "softgpu/engine/watch.h"

/* Before an access, which is the next step, and after it. choice: kind; second: order; rounding:
 * scope; count: bytes per lane; the address as in the access. */
sg_run sg_run_probe, sg_run_probed;
/* choice: order; rounding: scope */
sg_run sg_run_watched_fence;

/* One lane's access; true: it must not take place. The address is generic if the space is. */
bool sg_watch_lane(struct sg_warp *warp, const struct sg_step *step, unsigned lane,
                   uint64_t address, uint32_t size, unsigned kind, unsigned space);
/* A texel of a texture or surface, in memory or a CUDA array; true: it must not be accessed. */
bool sg_watch_texel(struct sg_warp *warp, const struct sg_step *step, unsigned lane,
                    uint64_t address, uint32_t size, bool array);
/* An access to shared memory by all executing lanes, at the addresses of sg_where_address. */
void sg_watch_shared(struct sg_warp *warp, const struct sg_step *step, const uint32_t *where,
                     unsigned kind, unsigned order);
/* A copy, when it is performed; true: it must not take place. */
bool sg_watch_copy(struct sg_warp *warp, const struct sg_pending *what);

/* A lane issues a bulk copy, which has not been queued yet; reads the parity of its mbarrier. */
void sg_watch_issues_bulk(struct sg_warp *warp, const struct sg_pending *what, unsigned lane);
/* The executing lanes hand their copies to mbarriers at the addresses of sg_where_address. */
void sg_watch_hands_over(struct sg_warp *warp, const struct sg_step *step, const uint32_t *where);
/* The executing lanes test phases; parity: those that they ask for, by lane. */
void sg_watch_looks(struct sg_warp *warp, const struct sg_step *step, const uint32_t *where,
                    uint32_t parity, uint32_t over);
void sg_watch_depends(struct sg_warp *warp, uint32_t lanes);
void sg_watch_turns(struct sg_warp *warp, uint64_t address);

void sg_watch_fence(struct sg_warp *warp, const struct sg_step *step, unsigned order,
                    unsigned scope);
void sg_watch_arrives(struct sg_warp *warp, const struct sg_step *step, uint32_t lanes,
                      unsigned number, bool waits);
void sg_watch_beyond(struct sg_warp *warp, const struct sg_step *step, uint32_t lanes,
                     uint32_t number);
void sg_watch_completes(const struct sg_block *block, unsigned number);
void sg_watch_meet(struct sg_warp *warp, const struct sg_step *step, uint32_t lanes);
void sg_watch_issues(struct sg_warp *warp, const struct sg_step *step, const uint32_t *where);
void sg_watch_gathers(struct sg_warp *warp, const struct sg_step *step, uint32_t lanes,
                      const uint32_t *members);
/* Lanes have begun a function; the warp's path is that function's. */
void sg_watch_enters(struct sg_warp *warp, uint32_t lanes);
void sg_watch_exits(struct sg_warp *warp, uint32_t lanes);
void sg_watch_begins(const struct sg_block *block);
void sg_watch_ends(const struct sg_block *block);

#endif
