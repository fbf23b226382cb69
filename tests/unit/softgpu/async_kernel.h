/* Kernels of mbarriers and asynchronous copies, under each schedule. */
#ifndef TESTS_UNIT_SOFTGPU_ASYNC_KERNEL_H
#define TESTS_UNIT_SOFTGPU_ASYNC_KERNEL_H

#include "kernel.h"

/* %r1: thread, %r3: lane, %rd1: out, %rd2: out + 4 * thread, %rd3: in; buf: 1024 bytes, bar: two
 * mbarriers, %r8 and %r9 their addresses, %r10 that of buf. */
#define ASYNC_HEAD                                                                                 \
    ".version 9.0\n.target sm_90\n.address_size 64\n"                                              \
    ".visible .entry k(.param .u64 out, .param .u64 in) {\n"                                       \
    ".reg .pred %p, %q; .reg .b16 %rs<3>; .reg .b32 %r<24>; .reg .b64 %rd<12>;\n"                  \
    ".shared .align 16 .b8 buf[1024]; .shared .align 8 .b64 bar[2];\n"                             \
    "ld.param.u64 %rd1, [out]; ld.param.u64 %rd3, [in]; mov.u32 %r1, %tid.x;\n"                    \
    "mul.wide.u32 %rd2, %r1, 4; add.u64 %rd2, %rd1, %rd2; mov.u32 %r3, %laneid;\n"                 \
    "mov.u32 %r8, bar; add.u32 %r9, %r8, 8; mov.u32 %r10, buf; setp.eq.u32 %q, %r1, 0;\n"
#define ASYNC_TAIL  "\nret; }\n"
#define ASYNC(body) ASYNC_HEAD body ASYNC_TAIL
/* Writes %r2. */
#define ANSWER "\nst.global.u32 [%rd2], %r2;"
/* Waits until the phase of a parity of the mbarrier at a register is over. */
#define AWAIT(label, bar, parity)                                                                  \
    "\n" label ": mbarrier.try_wait.parity.shared.b64 %p, [" bar "], " parity "; @!%p bra " label  \
    ";\n"

struct async_run {
    unsigned blocks, threads, cluster;
    unsigned char schedule; /* enum sg_grid_schedule */
    uint64_t seed;
    enum sg_level level;
};

/* Nothing is in the first megabyte. */
static inline bool async_extent(void *user, uint64_t address, uint64_t *low, uint64_t *length) {
    (void)user;
    (void)low;
    (void)length;
    return address >= 1 << 20;
}

static inline struct sg_grid_fault async_fault(const char *text, const struct async_run *run,
                                               void *out, const void *in) {
    struct kernel kernel;
    kernel_make(&kernel, text, run->level);
    kernel_pointer(&kernel, out);
    kernel_pointer(&kernel, in);
    kernel_shape(&kernel, run->blocks ? run->blocks : 1, run->threads ? run->threads : 32);
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
