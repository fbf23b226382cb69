/* --check sync: findings of the synchronization checker as hazards. */
#include "softgpu/check/checkers.h"
#include "softgpu/check/sync_inside.h"

#include <stdio.h>

static const struct {
    const char *kind, *what, *other_says;
    enum sg_hazard_level level;
} texts[SG_SYNC_KINDS] = {
    [SG_SYNC_DIVERGENT_WARP] = {"divergent-barrier",
                                "lanes of a warp are missing at a barrier that all of them execute",
                                NULL, SG_HAZARD_ERROR},
    [SG_SYNC_OTHER_PLACE] = {"divergent-barrier",
                             "lanes of a warp come to a barrier by different instructions",
                             "others are at", SG_HAZARD_ERROR},
    [SG_SYNC_TWO_BARRIERS] = {"two-barriers",
                              "lanes of a warp wait at different barriers at the same time",
                              "others are at", SG_HAZARD_ERROR},
    [SG_SYNC_EXITED] = {"exited-threads", "threads have exited before a barrier of all threads",
                        NULL, SG_HAZARD_WARNING},
    [SG_SYNC_NUMBER] = {"barrier-number",
                        "a barrier's number is beyond 15: its low bits count, as on hardware", NULL,
                        SG_HAZARD_ERROR},
    [SG_SYNC_CLUSTER_PLACES] = {"divergent-cluster-barrier",
                                "lanes of a warp come to the cluster's barrier by different "
                                "instructions: hardware counts the warp at each",
                                "others came at", SG_HAZARD_WARNING},
    [SG_SYNC_COUNT] = {"barrier-count", "a barrier counts threads that are no multiple of 32", NULL,
                       SG_HAZARD_ERROR},
    [SG_SYNC_UNREACHED] = {"unreached-barrier", "a barrier that not all reach", NULL,
                           SG_HAZARD_ERROR},
    [SG_SYNC_NO_MBARRIER] = {"uninitialized-mbarrier",
                             "an mbarrier that is not initialized, or not any more", NULL,
                             SG_HAZARD_ERROR},
    [SG_SYNC_AGAIN] = {"mbarrier-in-use", "an mbarrier is initialized that is in use", NULL,
                       SG_HAZARD_ERROR},
    [SG_SYNC_OVERWRITTEN] = {"mbarrier-overwritten", "a store or copy to the bytes of an mbarrier",
                             NULL, SG_HAZARD_ERROR},
    [SG_SYNC_INVALIDATED] = {"mbarrier-in-use",
                             "an mbarrier is invalidated while threads wait for it", NULL,
                             SG_HAZARD_ERROR},
    [SG_SYNC_OLD_STATE] = {"mbarrier-phase",
                           "a wait with the state of a phase before the last one: it is not the "
                           "phase that is under way",
                           NULL, SG_HAZARD_ERROR},
    [SG_SYNC_NOT_WAITED] = {"copy-without-wait",
                            "an access to what is copied asynchronously, before a wait for it",
                            "copied by", SG_HAZARD_ERROR},
    [SG_SYNC_TWO_COPIES] =
        {"copy-without-wait",
         "an asynchronous copy to where another one writes, before a wait for it", "copied by",
         SG_HAZARD_ERROR},
    [SG_SYNC_SOURCE] = {"copy-without-wait",
                        "what a copy in bulk reads is overwritten, before a wait for it", "read by",
                        SG_HAZARD_ERROR},
    [SG_SYNC_LEFT] = {"copy-without-wait",
                      "a block ends before a wait for a copy in bulk that uses its shared memory",
                      NULL, SG_HAZARD_ERROR},
    [SG_SYNC_UNUSED] = {"copy-without-wait", "a block ends before a wait for what cp.async copies",
                        NULL, SG_HAZARD_WARNING},
    [SG_SYNC_NO_MEMBER] = {"member-mask", "the member mask leaves out the lane that executes it",
                           NULL, SG_HAZARD_ERROR},
    [SG_SYNC_UNEQUAL] = {"member-mask", "lanes that name each other have different member masks",
                         "and by", SG_HAZARD_ERROR},
    [SG_SYNC_NOT_COME] = {"member-mask", "lanes that the member mask names do not come", NULL,
                          SG_HAZARD_ERROR},
    [SG_SYNC_ARRIVED_TWICE] = {"cluster-barrier",
                               "a second arrival at the cluster's barrier, without a wait", NULL,
                               SG_HAZARD_ERROR},
    [SG_SYNC_NOT_ARRIVED] = {"cluster-barrier",
                             "a wait at the cluster's barrier, without an arrival", NULL,
                             SG_HAZARD_ERROR},
};

static void found_one(const void *user, const struct sg_sync_found *found) {
    const struct sg_check_launch *launch = user;
    char details[96] = "";
    if (found->kind == SG_SYNC_NUMBER)
        snprintf(details, sizeof details, "  barrier %u, taken for %u\n", found->number,
                 found->number % SG_SYNC_BARRIERS);
    else if (found->kind == SG_SYNC_INVALIDATED)
        snprintf(details, sizeof details, "  thread %u of a block waits\n", found->waits);
    else if (found->kind == SG_SYNC_NOT_COME)
        snprintf(details, sizeof details, "  %u lane%s missing\n", found->missing,
                 found->missing == 1 ? "" : "s");
    else if (found->missing)
        snprintf(details, sizeof details, "  barrier %u, %u thread%s missing\n", found->number,
                 found->missing, found->missing == 1 ? "" : "s");
    struct sg_hazard hazard = {.check = "sync",
                               .kind = texts[found->kind].kind,
                               .level = texts[found->kind].level,
                               .other_says = texts[found->kind].other_says,
                               .has_address = found->has_address,
                               .write = found->write,
                               .space = found->global ? "global" : "shared",
                               .address = found->address,
                               .cluster = launch->clustered,
                               .size = found->size,
                               .what = texts[found->kind].what,
                               .details = details[0] ? details : NULL};
    sg_hazard_place(launch, found->instruction, found->place, found->thread, &hazard.place);
    if (found->has_other)
        sg_hazard_place(launch, found->other_instruction, found->other_place, found->other_thread,
                        &hazard.other);
    sg_hazard_report(&hazard);
}

/* ---- the engine's calls ---------------------------------------------------------------------- */

static void *begin(const struct sg_check_launch *launch) {
    const struct sg_sync_options options = {
        .program = launch->program,
        .threads = launch->block[0] * launch->block[1] * launch->block[2],
        .grid = {launch->grid[0], launch->grid[1], launch->grid[2]},
        .cluster = {launch->cluster[0], launch->cluster[1], launch->cluster[2]},
        .found = found_one,
        .user = launch};
    return sg_sync_begin(&options);
}

static CUresult end(void *state, const struct sg_grid_fault *fault) {
    sg_sync_end(state, fault && fault->kind == SG_FAULT_DEADLOCK);
    return CUDA_SUCCESS;
}

const struct sg_checker sg_sync_checker = {
    .name = "sync", .check = SG_CHECK_SYNC, .watch = &sg_sync_watch, .begin = begin, .end = end};
