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
/* A texel of a texture or surface, of memory or of an array; true: it shall not be accessed. */
bool sg_watch_texel(struct sg_warp *warp, const struct sg_step *step, unsigned lane,
                    uint64_t address, uint32_t size, bool array);
/* Of all lanes that execute, at what sg_where_address says, in shared memory. */
void sg_watch_shared(struct sg_warp *warp, const struct sg_step *step, const uint32_t *where,
                     unsigned kind, unsigned order);
/* A copy, when it is performed; true: it must not take place. */
bool sg_watch_copy(struct sg_warp *warp, const struct sg_pending *what);

/* Of a lane's copy, before it is handed over; its mbarrier's parity is read here. */
void sg_watch_issues_bulk(struct sg_warp *warp, const struct sg_pending *what, unsigned lane);
/* Of the lanes that execute, whose mbarriers are where sg_where_address says. */
void sg_watch_hands_over(struct sg_warp *warp, const struct sg_step *step, const uint32_t *where);
/* The same, with the parity that each has asked for. */
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
/* Lanes have begun a function, whose path is in use. */
void sg_watch_enters(struct sg_warp *warp, uint32_t lanes);
void sg_watch_exits(struct sg_warp *warp, uint32_t lanes);
void sg_watch_begins(const struct sg_block *block);
void sg_watch_ends(const struct sg_block *block);

#endif
