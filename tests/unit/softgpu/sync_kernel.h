/* Runs kernels on the engine with the synchronization checker, and keeps what it finds. */
#ifndef TESTS_UNIT_SOFTGPU_SYNC_KERNEL_H
#define TESTS_UNIT_SOFTGPU_SYNC_KERNEL_H

#include "kernel.h"

#include "softgpu/check/sync.h"

struct sync_findings {
    struct sg_sync_found found[32];
    unsigned count; /* also of those that are not kept */
};
extern struct sync_findings sync_findings;

/* Memory in %rd1, the thread in %r1, shared memory `s` and its address in %r2, of the thread 16
 * bytes each of shared memory in %r4 and of global memory in %rd3; %q: it is the first thread. */
#define TEXT(body)                                                                                 \
    KERNEL_HEAD                                                                                    \
    ".visible .entry k(.param .u64 to) {\n"                                                        \
    ".reg .pred %p, %q; .reg .b32 %r<16>; .reg .b64 %rd<8>; .reg .b64 %t, %u; .reg .b16 %h;\n"     \
    ".shared .align 16 .b8 s[4096];\n"                                                             \
    "ld.param.u64 %rd1, [to]; mov.u32 %r1, %tid.x; mov.u32 %r2, s;\n"                              \
    "shl.b32 %r3, %r1, 4; add.u32 %r4, %r2, %r3; cvt.u64.u32 %rd2, %r3;\n"                         \
    "add.u64 %rd3, %rd1, %rd2; setp.eq.u32 %q, %r1, 0;\n" body "\nret;\n}\n"

/* Two blocks, or two clusters of so many; a turn is a schedule and a seed. */
void sync_run(const char *text, unsigned threads, unsigned cluster, int turn,
              enum sg_fault_kind expected);
/* Under every schedule nothing is found. */
void sync_silent(const char *text, unsigned threads, unsigned cluster);
/* Under every schedule only this is found, and what a deadlock leaves waiting. */
void sync_finds(const char *text, unsigned threads, unsigned cluster, enum sg_sync_kind kind,
                enum sg_fault_kind fault);

#endif
