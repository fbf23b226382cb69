/* Kernels of mbarriers and asynchronous copies, under each schedule. */
#ifndef TESTS_UNIT_SOFTGPU_ASYNC_KERNEL_H
#define TESTS_UNIT_SOFTGPU_ASYNC_KERNEL_H

#include "async_cases.h"
#include "kernel.h"

struct async_run {
    unsigned blocks, threads, cluster;
    unsigned char schedule; /* enum sg_grid_schedule */
    uint64_t seed;
    enum sg_level level;
};

/* Nothing is in the first megabyte. */
static inline bool async_extent(void *user, uint64_t address, uint64_t *low, uint64_t *length) {
    return address >= 1 << 20;
}

static inline struct sg_grid_fault async_fault(const char *text, const struct async_run *run,
                                               void *out, const void *in) {
    struct kernel kernel;
    kernel = KERNEL_WITH(text, run->level, run->blocks ? run->blocks : 1,
                         run->threads ? run->threads : 32, out, in);
    kernel.launch.cluster[0] = run->cluster;
    kernel.launch.explicit_cluster = run->cluster != 0;
    kernel.launch.schedule = run->schedule;
    kernel.launch.seed = run->seed;
    kernel.launch.extent = async_extent;
    struct sg_grid_fault fault = kernel_run(&kernel, 0);
    kernel_free(&kernel);
    return fault;
}

static inline void async_succeeds(const char *text, const struct async_run *run, void *out,
                                  const void *in) {
    struct sg_grid_fault fault = async_fault(text, run, out, in);
    if (fault.kind != SG_FAULT_COUNT)
        fail_msg("%s at line %u, address %llx, block %u thread %u, schedule %u\n%s",
                 sg_fault_name(fault.kind), fault.line, (unsigned long long)fault.address,
                 fault.block[0], fault.thread[0], run->schedule, fault.report);
}

/* Each schedule, the random one with eight seeds. */
#define FOR_EACH_SCHEDULE(run)                                                                     \
    for (unsigned turn_ = 0; turn_ < 10; turn_++)                                                  \
        if (((run).schedule = (unsigned char)(turn_ < 2 ? turn_ : SG_GRID_RANDOM)),                \
            ((run).seed = turn_), true)

#endif
