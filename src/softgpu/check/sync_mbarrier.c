/* mbarriers: which exist, and which threads wait for them. */
#include "softgpu/check/sync_inside.h"

#include "base/growing_array.h"

#include <stdlib.h>

static size_t find(const struct sg_sync_cluster *cluster, uint64_t address, uint64_t size) {
    size_t i = 0;
    while (i < cluster->mbarrier_count && !(cluster->mbarriers[i].address < address + size &&
                                            address < cluster->mbarriers[i].address + 8))
        i++;
    return i;
}

static struct sg_sync_mbarrier *exactly(const struct sg_sync_cluster *cluster, uint64_t address) {
    size_t i = find(cluster, address, 8);
    return i < cluster->mbarrier_count && cluster->mbarriers[i].address == address
               ? &cluster->mbarriers[i]
               : NULL;
}

bool sg_sync_is_mbarrier(const struct sg_sync_cluster *cluster, uint64_t address, uint64_t size) {
    return find(cluster, address, size) < cluster->mbarrier_count;
}

static struct sg_sync_found finding(const struct sg_sync_block *block, enum sg_sync_kind kind,
                                    uint32_t instruction, unsigned thread, uint64_t address) {
    struct sg_sync_found found = sg_sync_finding(block, kind, instruction, thread);
    found.has_address = true;
    found.write = true;
    found.address = address;
    found.size = 8;
    return found;
}

/* ---- waiting threads ------------------------------------------------------------------------- */

/* NULL: no memory, and then it is not known. */
static uint32_t *waits_of(const struct sg_sync *sync, struct sg_sync_cluster *cluster) {
    if (!cluster->waits)
        cluster->waits =
            calloc((size_t)sync->cluster_size * sync->options.threads, sizeof *cluster->waits);
    return cluster->waits;
}

void sg_sync_waits_no_more(const struct sg_sync *sync, const struct sg_sync_block *block,
                           unsigned first, uint32_t lanes) {
    uint32_t *waits = block->cluster->waits;
    uint32_t at = sg_sync_thread(sync, block, first);
    for (uint32_t left = waits ? lanes : 0; left; left &= left - 1)
        waits[at + (unsigned)__builtin_ctz(left)] = 0;
}

/* A thread that waits for it, in its cluster, other than the given one; UINT32_MAX: none. */
static uint32_t waits_for(const struct sg_sync *sync, const struct sg_sync_cluster *cluster,
                          uint64_t address, uint32_t but) {
    uint32_t threads = cluster->waits ? sync->cluster_size * sync->options.threads : 0;
    for (uint32_t t = 0; t < threads; t++)
        if (cluster->waits[t] == address + 1 && t != but)
            return t;
    return UINT32_MAX;
}

/* ---- what they are used for ------------------------------------------------------------------ */

static void begin(const struct sg_sync *sync, struct sg_sync_block *block,
                  const struct sg_watched_access *access, unsigned lane) {
    struct sg_sync_cluster *cluster = block->cluster;
    uint64_t address = access->address[lane];
    if (sg_sync_is_mbarrier(cluster, address, 8)) {
        struct sg_sync_found found =
            finding(block, SG_SYNC_AGAIN, access->instruction, access->warp->first + lane, address);
        sg_sync_report(sync, &found);
    }
    struct sg_sync_mbarrier *there = exactly(cluster, address);
    if (!there &&
        GM_RESERVE(cluster->mbarriers, cluster->mbarrier_room, cluster->mbarrier_count + 1))
        there = &cluster->mbarriers[cluster->mbarrier_count++];
    if (there)
        *there = (struct sg_sync_mbarrier){.address = address};
    else
        cluster->lost = true;
}

static void end(const struct sg_sync *sync, const struct sg_sync_block *block,
                struct sg_sync_mbarrier *there, const struct sg_watched_access *access,
                unsigned lane) {
    struct sg_sync_cluster *cluster = block->cluster;
    unsigned thread = access->warp->first + lane, threads = sync->options.threads;
    uint32_t waits = waits_for(sync, cluster, there->address, sg_sync_thread(sync, block, thread));
    if (waits != UINT32_MAX) {
        struct sg_sync_found found =
            finding(block, SG_SYNC_INVALIDATED, access->instruction, thread, there->address);
        found.waits = waits % threads;
        sg_sync_report(sync, &found);
    }
    *there = cluster->mbarriers[--cluster->mbarrier_count];
}

static bool arrives(unsigned operation) {
    return operation == SG_DO_ARRIVE || operation == SG_DO_ARRIVE_DROP ||
           operation == SG_DO_ARRIVE_EXPECT_TX || operation == SG_DO_ARRIVE_DROP_EXPECT_TX;
}

void sg_sync_use_mbarrier(const struct sg_sync *sync, struct sg_sync_block *block,
                          const struct sg_watched_access *access, unsigned lane) {
    unsigned operation = sync->options.program->instructions[access->instruction].operation;
    struct sg_sync_mbarrier *there = exactly(block->cluster, access->address[lane]);
    if (operation == SG_DO_INIT) {
        begin(sync, block, access, lane);
        return;
    }
    if (!there && !block->cluster->lost) {
        struct sg_sync_found found = finding(block, SG_SYNC_NO_MBARRIER, access->instruction,
                                             access->warp->first + lane, access->address[lane]);
        found.write = access->kind != SG_WATCHED_READ;
        sg_sync_report(sync, &found);
    } else if (there && operation == SG_DO_INVAL) {
        end(sync, block, there, access, lane);
    } else if (there && arrives(operation)) {
        there->arrived = true;
        there->lanes = access->lanes;
    }
}

/* ---- phases ---------------------------------------------------------------------------------- */

/* What lanes of one instruction have in excess arrives in the next phase: it is not known here. */
void sg_sync_turns(void *user, uint64_t index, uint64_t address) {
    const struct sg_sync_block *block = sg_sync_block_of(user, index);
    struct sg_sync_mbarrier *there = block ? exactly(block->cluster, address) : NULL;
    if (there)
        there->arrived = (there->lanes & (there->lanes - 1)) != 0;
}

/* The state is of a phase with the parity of the current one. Nobody has arrived in the current
 * phase, and only an arrival returns a state: so it is of the last phase but one, or older. */
static void look_at_state(const struct sg_sync *sync, const struct sg_sync_block *block,
                          const struct sg_watched_phase *phase, unsigned lane) {
    const struct sg_sync_mbarrier *there = exactly(block->cluster, phase->address[lane]);
    if (!there || there->arrived)
        return;
    struct sg_sync_found found = finding(block, SG_SYNC_OLD_STATE, phase->instruction,
                                         phase->warp->first + lane, phase->address[lane]);
    found.write = false;
    sg_sync_report(sync, &found);
}

/* The same was done for a lane before it. */
static bool repeated(const struct sg_watched_phase *phase, unsigned lane) {
    unsigned before = (unsigned)__builtin_ctz(phase->lanes);
    return lane != before && phase->over >> before & 1 &&
           phase->address[before] == phase->address[lane] &&
           !((phase->parity >> before ^ phase->parity >> lane) & 1);
}

void sg_sync_looks(void *user, const struct sg_watched_phase *phase) {
    const struct sg_sync *sync = user;
    struct sg_sync_block *block = sg_sync_block_of(user, phase->warp->block);
    uint32_t *waits = block ? waits_of(sync, block->cluster) : NULL;
    for (uint32_t left = block ? phase->lanes : 0; left; left &= left - 1) {
        unsigned l = (unsigned)__builtin_ctz(left);
        bool over = phase->over >> l & 1;
        if (waits)
            waits[sg_sync_thread(sync, block, phase->warp->first + l)] =
                over ? 0 : (uint32_t)phase->address[l] + 1;
        if (over && !repeated(phase, l))
            sg_sync_copies_told(block->cluster, phase->address[l], phase->parity >> l & 1);
        else if (!over && phase->by_state)
            look_at_state(sync, block, phase, l);
    }
}
