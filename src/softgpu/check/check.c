/* The table of checkers, and how several of them watch one launch. */
#include "softgpu/check/check.h"

#include "softgpu/check/checkers.h"
#include "softgpu/check/fault.h"
#include "softgpu/check/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct sg_checker *const checkers[] = {
    &sg_memory_checker,
    &sg_init_checker,
    &sg_race_checker,
    &sg_sync_checker,
};
#define CHECKERS (sizeof checkers / sizeof checkers[0])

struct sg_checking {
    bool begun;
    struct sg_check_launch launch;
    void *state[CHECKERS]; /* of the checkers that watch it, else NULL */
};

static bool is_chosen(const struct sg_checker *checker) {
    return (sg_config()->checks & checker->check) != 0;
}

bool sg_check_names(const char *kernel) {
    return sg_config()->checks && sg_globs_match(sg_config()->check_kernels, kernel);
}

bool sg_check_wants(const char *kernel) {
    for (size_t i = 0; i < CHECKERS; i++)
        if (is_chosen(checkers[i]) && checkers[i]->all)
            return true;
    return sg_check_names(kernel);
}

/* Nothing that is asked for is left out without a word. */
static bool all_there(unsigned wanted, char *why, size_t size) {
    for (size_t i = 0; i < CHECKERS; i++)
        wanted &= ~checkers[i]->check;
    if (wanted)
        snprintf(why, size, "SOFTGPU_CHECK asks for a checker that is not there:%s%s",
                 wanted & SG_CHECK_RACE ? " race" : "", wanted & SG_CHECK_SYNC ? " sync" : "");
    return wanted == 0;
}

bool sg_check_start(char *why, size_t size) {
    const struct sg_config *config = sg_config();
    if (!all_there(config->checks, why, size))
        return false;
    if (config->check_output && !sg_check_output_open(config->check_output, why, size))
        return false;
    if (config->check_suppress && !sg_suppressions_read(config->check_suppress, why, size))
        return false;
    for (size_t i = 0; i < CHECKERS; i++)
        if (is_chosen(checkers[i]) && checkers[i]->start)
            checkers[i]->start();
    return true;
}

void sg_check_finish(void) {
    if (!sg_config()->checks)
        return;
    for (size_t i = 0; i < CHECKERS; i++)
        if (is_chosen(checkers[i]) && checkers[i]->finish)
            checkers[i]->finish();
    sg_report_sum();
}

/* ---- launches -------------------------------------------------------------------------------- */

CUresult sg_checking_new(struct sg_checking **checking) {
    *checking = calloc(1, sizeof **checking);
    return *checking ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

bool sg_checking_begun(const struct sg_checking *checking) {
    return checking->begun;
}

void sg_checking_begin(struct sg_checking *checking, const struct sg_check_launch *launch) {
    checking->begun = true;
    checking->launch = *launch;
    checking->launch.quiet = !sg_check_names(launch->program->name);
    for (size_t i = 0; i < CHECKERS; i++) {
        if (!is_chosen(checkers[i]) || (checking->launch.quiet && !checkers[i]->all))
            continue;
        checking->state[i] = checkers[i]->begin(&checking->launch);
        if (!checking->state[i])
            sg_log(SG_LOG_WARNING, "out of memory: kernel %s runs without --check %s",
                   launch->program->name, checkers[i]->name);
    }
}

CUresult sg_checking_end(struct sg_checking *checking, const struct sg_grid_fault *fault) {
    CUresult result = CUDA_SUCCESS;
    checking->begun = false;
    /* The memory checker knows which it has reported already. */
    if (fault && !checking->launch.quiet && !(sg_config()->checks & SG_CHECK_MEMORY))
        sg_fault_hazard(&checking->launch, fault);
    for (size_t i = 0; i < CHECKERS; i++) {
        if (!checking->state[i])
            continue;
        CUresult own = checkers[i]->end(checking->state[i], fault);
        checking->state[i] = NULL;
        result = result == CUDA_SUCCESS ? own : result;
    }
    return result;
}

void sg_checking_free(struct sg_checking *checking) {
    if (checking && checking->begun)
        (void)sg_checking_end(checking, NULL);
    free(checking);
}

/* ---- the engine's calls ---------------------------------------------------------------------- */

#define FOR_EACH(member, ...)                                                                      \
    struct sg_checking *checking = user;                                                           \
    for (size_t i = 0; i < CHECKERS; i++)                                                          \
        if (checking->state[i] && checkers[i]->watch->member)                                      \
    checkers[i]->watch->member(checking->state[i], __VA_ARGS__)

static void access_(void *user, const struct sg_watched_access *access) {
    FOR_EACH(access, access);
}

static uint32_t refuses(void *user, const struct sg_watched_access *access) {
    struct sg_checking *checking = user;
    uint32_t refused = 0;
    for (size_t i = 0; i < CHECKERS; i++)
        if (checking->state[i] && checkers[i]->watch->refuses)
            refused |= checkers[i]->watch->refuses(checking->state[i], access);
    return refused;
}

static void arrives(void *user, const struct sg_watched_warp *warp, uint32_t instruction,
                    uint32_t lanes, unsigned number, bool waits) {
    FOR_EACH(arrives, warp, instruction, lanes, number, waits);
}

static void beyond(void *user, const struct sg_watched_warp *warp, uint32_t instruction,
                   uint32_t lanes, uint32_t number) {
    FOR_EACH(beyond, warp, instruction, lanes, number);
}

static void completes(void *user, uint64_t block, unsigned number) {
    FOR_EACH(completes, block, number);
}

static void meet(void *user, const struct sg_watched_warp *warp, uint32_t instruction,
                 uint32_t lanes) {
    FOR_EACH(meet, warp, instruction, lanes);
}

static void fence(void *user, const struct sg_watched_warp *warp, uint32_t instruction,
                  uint32_t lanes, unsigned char order, unsigned char scope) {
    FOR_EACH(fence, warp, instruction, lanes, order, scope);
}

static void issues(void *user, const struct sg_watched_access *copy) {
    FOR_EACH(issues, copy);
}

static void issues_bulk(void *user, const struct sg_watched_copy *copy) {
    FOR_EACH(issues_bulk, copy);
}

static void delivers(void *user, const struct sg_watched_access *mbarrier) {
    FOR_EACH(delivers, mbarrier);
}

static void hands_over(void *user, const struct sg_watched_phase *phase) {
    FOR_EACH(hands_over, phase);
}

static void looks(void *user, const struct sg_watched_phase *phase) {
    FOR_EACH(looks, phase);
}

static void turns(void *user, uint64_t block, uint64_t address) {
    FOR_EACH(turns, block, address);
}

static void depends(void *user, const struct sg_watched_warp *warp, uint32_t lanes) {
    FOR_EACH(depends, warp, lanes);
}

static void gathers(void *user, const struct sg_watched_warp *warp, uint32_t instruction,
                    uint32_t lanes, const uint32_t *members) {
    FOR_EACH(gathers, warp, instruction, lanes, members);
}

static void enters(void *user, const struct sg_watched_warp *warp, uint32_t lanes) {
    FOR_EACH(enters, warp, lanes);
}

static void exits(void *user, const struct sg_watched_warp *warp, uint32_t lanes) {
    FOR_EACH(exits, warp, lanes);
}

static void block_begins(void *user, uint64_t block, uint64_t shared_bytes) {
    FOR_EACH(block_begins, block, shared_bytes);
}

static void block_ends(void *user, uint64_t block) {
    FOR_EACH(block_ends, block);
}

const struct sg_watch *sg_checking_watch(void) {
    static const struct sg_watch watch = {.access = access_,
                                          .refuses = refuses,
                                          .arrives = arrives,
                                          .beyond = beyond,
                                          .completes = completes,
                                          .meet = meet,
                                          .fence = fence,
                                          .issues = issues,
                                          .issues_bulk = issues_bulk,
                                          .delivers = delivers,
                                          .hands_over = hands_over,
                                          .looks = looks,
                                          .turns = turns,
                                          .depends = depends,
                                          .gathers = gathers,
                                          .exits = exits,
                                          .enters = enters,
                                          .block_begins = block_begins,
                                          .block_ends = block_ends};
    return &watch;
}
