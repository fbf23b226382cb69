/* What steps tell a watcher (watch.h). All of it does nothing where there is none. */
#ifndef SG_ENGINE_WATCHING_H
#define SG_ENGINE_WATCHING_H

#include "softgpu/engine/async.h"
#include "softgpu/engine/watch.h"

/* Before an access and behind it. The access is the next step. choice: kind; second: order;
 * rounding: scope; count: bytes of a lane's; the address as the access has it. */
sg_run sg_run_probe, sg_run_probed;
/* choice: order; rounding: scope */
sg_run sg_run_watched_fence;

/* Of one lane; true: it shall not access. The address is a generic one where the space is. */
bool sg_watch_lane(struct sg_warp *warp, const struct sg_step *step, unsigned lane,
                   uint64_t address, uint32_t size, unsigned kind, unsigned space);
/* Of all lanes that execute, at what sg_where_address says, in shared memory. */
void sg_watch_shared(struct sg_warp *warp, const struct sg_step *step, const uint32_t *where,
                     unsigned kind, unsigned order);
/* Of a copy at its own moment; true: it shall not take place. */
bool sg_watch_copy(struct sg_warp *warp, const struct sg_pending *what);

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
void sg_watch_exits(struct sg_warp *warp, uint32_t lanes);
void sg_watch_begins(const struct sg_block *block);
void sg_watch_ends(const struct sg_block *block);

#endif
