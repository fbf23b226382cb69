#include "softgpu/coredump/coredump.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct sg_coredump sg_coredump_process, sg_coredump_initial;
char sg_coredump_pipe[SG_COREDUMP_NAME];
unsigned sg_coredump_fixed;

static void name_default(char *name, const char *prefix) {
    char host[256] = "";
    if (gethostname(host, sizeof host - 1) != 0)
        snprintf(host, sizeof host, "localhost");
    snprintf(name, SG_COREDUMP_NAME, "%s.%s.%ld", prefix, host, (long)getpid());
}

/* The names contain the process id, which is final only in cuInit. */
CUresult sg_coredumps_init(void) {
    memset(&sg_coredump_initial, 0, sizeof sg_coredump_initial); /* compared bytewise */
    sg_coredump_initial.trigger_host = 1;
    name_default(sg_coredump_initial.file, "core.cuda");
    name_default(sg_coredump_pipe, "corepipe.cuda");
    sg_coredump_fixed = sg_coredump_environment(&sg_coredump_initial, sg_coredump_pipe);
    sg_coredump_process = sg_coredump_initial;
    return CUDA_SUCCESS;
}

void sg_coredump_begin(struct sg_coredump *settings, unsigned flags) {
    *settings = sg_coredump_process;
    if (flags & (CU_CTX_COREDUMP_ENABLE | CU_CTX_USER_COREDUMP_ENABLE))
        settings->on_exception = 1;
}
