#include "sync_kernel.h"

struct sync_findings sync_findings;

static void keep(const void *user, const struct sg_sync_found *found) {
    if (sync_findings.count < 32)
        sync_findings.found[sync_findings.count] = *found;
    sync_findings.count++;
}

void sync_run(const char *text, unsigned threads, unsigned cluster, int turn,
              enum sg_fault_kind expected) {
    static uint32_t memory[4096] __attribute__((aligned(16)));
    memset(&sync_findings, 0, sizeof sync_findings);
    struct kernel kernel =
        KERNEL_WITH(text, sg_level_best(), cluster ? 2 * cluster : 2, threads, memory);
    kernel.launch.cluster[0] = cluster;
    kernel.launch.schedule = turn == 0 ? SG_GRID_EAGER : turn == 1 ? SG_GRID_LATE : SG_GRID_RANDOM;
    kernel.launch.seed = (uint64_t)turn;
    const struct sg_sync_options options = {.program = kernel.program,
                                            .threads = threads,
                                            .grid = {kernel.launch.grid[0], 1, 1},
                                            .cluster = {cluster},
                                            .found = keep};
    struct sg_sync *sync = sg_sync_begin(&options);
    assert_non_null(sync);
    kernel_watched(&kernel, sg_level_best(), &sg_sync_watch, sync);
    struct sg_grid_fault fault = kernel_run(&kernel, 0);
    if (fault.kind != expected)
        fail_msg("%s at line %u of\n%s", sg_fault_name(fault.kind), fault.line, text);
    sg_sync_end(sync, fault.kind == SG_FAULT_DEADLOCK);
    kernel_free(&kernel);
}

#define TURNS 12

void sync_silent(const char *text, unsigned threads, unsigned cluster) {
    for (int turn = 0; turn < TURNS; turn++) {
        sync_run(text, threads, cluster, turn, SG_FAULT_COUNT);
        if (sync_findings.count)
            fail_msg("turn %d: kind %u found in\n%s", turn, sync_findings.found[0].kind, text);
    }
}

void sync_finds(const char *text, unsigned threads, unsigned cluster, enum sg_sync_kind kind,
                enum sg_fault_kind fault) {
    for (int turn = 0; turn < TURNS; turn++) {
        sync_run(text, threads, cluster, turn, fault);
        if (sync_findings.count == 0)
            fail_msg("turn %d: nothing found in\n%s", turn, text);
        if (sync_findings.found[0].kind != kind)
            fail_msg("turn %d: first kind %u, in\n%s", turn, sync_findings.found[0].kind, text);
        for (unsigned i = 1; i < sync_findings.count && i < 32; i++)
            if (sync_findings.found[i].kind != kind && fault != SG_FAULT_DEADLOCK)
                fail_msg("turn %d: kind %u found, not %u, in\n%s", turn,
                         sync_findings.found[i].kind, kind, text);
    }
}
