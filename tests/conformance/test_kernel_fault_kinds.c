/*
 * Each kind of fault that a kernel can have: its error is that which an H200 was recorded to give
 * (tests/parity), every later call answers it too, and the log and the core dump's text say where
 * it was. A process for each: the fault stays with the device.
 */
#include "kernel_module.h"

#define ENTRY(name)                                                                                \
    ".visible .entry " name "(.param .u64 p) { .reg .b64 %d<4>; .reg .b32 %r<4>; .reg .pred %q;\n" \
    "ld.param.u64 %d0, [p];\n"

/* clang-format off */
static const char *const strings[] = {"x < 4", "some/file.cu", "void check(int)", NULL};
static const char text[] =
    ".extern .func (.param .b64 r) malloc (.param .b64 size);\n"
    ".extern .func free (.param .b64 p);\n"
    ".extern .func __assertfail (.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 n,\n"
    ".param .b64 c);\n"
    ENTRY("load") "ld.global.u32 %r0, [%d0+512];\nst.global.u32 [%d0], %r0; ret; }\n"
    ENTRY("store") "st.global.u32 [%d0+512], 1; ret; }\n"
    ENTRY("atomic") "atom.global.add.u32 %r0, [%d0+512], 1; ret; }\n"
    ENTRY("null") "mov.u64 %d1, 16; ld.u32 %r0, [%d1]; st.global.u32 [%d0], %r0; ret; }\n"
    ENTRY("odd_load") "ld.global.u32 %r0, [%d0+2]; st.global.u32 [%d0], %r0; ret; }\n"
    ENTRY("odd_nowhere") "mov.u64 %d1, 0x2100000017; ld.u32 %r0, [%d1]; st.global.u32 [%d0], %r0;\n"
    "ret; }\n"
    ENTRY("odd_beyond") "mov.u64 %d1, 0x1000000000000001; ld.global.u32 %r0, [%d1];\n"
    "st.global.u32 [%d0], %r0; ret; }\n"
    ENTRY("odd_atomic") "atom.global.add.u32 %r0, [%d0+2], 1; ret; }\n"
    ENTRY("odd_shared") ".shared .b32 s[8]; mov.u32 %r1, s; mov.u32 %r2, %tid.x;\n"
    "add.u32 %r1, %r1, %r2; ld.shared.u32 %r0, [%r1+2]; st.global.u32 [%d0], %r0; ret; }\n"
    ENTRY("shared") ".shared .b32 s[8]; mov.u32 %r1, s; mov.u32 %r2, %tid.x;\n"
    "mad.lo.u32 %r1, %r2, 4, %r1; add.u32 %r1, %r1, 0x100000;\n"
    "ld.shared.u32 %r0, [%r1]; st.global.u32 [%d0], %r0; ret; }\n"
    ENTRY("atomic_on_local") ".local .align 8 .b8 l[64]; mov.u64 %d1, l;\n"
    "cvta.local.u64 %d1, %d1; st.u32 [%d1], 0; atom.add.u32 %r0, [%d1], 1;\n"
    "st.global.u32 [%d0], %r0; ret; }\n"
    ENTRY("count") "mov.u32 %r0, %ntid.x; sub.u32 %r0, %r0, 1; barrier.sync 1, %r0; ret; }\n"
    ENTRY("left_out") "mov.u32 %r0, %tid.x; mov.u32 %r1, -1; shl.b32 %r1, %r1, %r0; not.b32 %r1, %r1;\n"
    "setp.gt.u32 %q, %r0, 3; vote.sync.ballot.b32 %r2, %q, %r1; st.global.u32 [%d0], %r2; ret; }\n"
    ENTRY("nowhere") "mov.u64 %d1, 0x1000; proto: .callprototype _ (); call %d1, (), proto; ret; }\n"
    ENTRY("trap") "mov.u32 %r0, %tid.x; setp.ne.u32 %q, %r0, 3; @%q ret;\ntrap; ret; }\n"
    ENTRY("brkpt") "brkpt; ret; }\n";
static const char more[] =
    ".func deeper(.param .b64 n) { .reg .b64 %a, %b; .reg .pred %q; .local .align 8 .b8 l[256];\n"
    "ld.param.b64 %a, [n]; mov.u64 %b, l; cvta.local.u64 %b, %b; st.volatile.u64 [%b], %a;\n"
    "setp.eq.u64 %q, %a, 0; @%q ret; add.u64 %a, %a, -1;\n"
    "{ .param .b64 m; st.param.b64 [m], %a; call deeper, (m); }\n"
    "ld.volatile.u64 %a, [%b]; ret; }\n"
    /* What is read may be what was written, and is used: ptxas leaves both. */
    ENTRY("local") ".local .align 8 .b8 l[64]; mov.u64 %d1, l; and.b64 %d2, %d0, 60;\n"
    "add.u64 %d2, %d1, %d2; and.b64 %d3, %d0, 0x3ffffffc; or.b64 %d3, %d3, 0x40000000;\n"
    "add.u64 %d1, %d1, %d3; st.local.u32 [%d1], 1; ld.local.u32 %r0, [%d2];\n"
    "st.global.u32 [%d0], %r0; ret; }\n"
    ENTRY("twice") "{ .param .b64 s; .param .b64 r; st.param.b64 [s], 64;\n"
    "call.uni (r), malloc, (s); ld.param.b64 %d1, [r]; }\n"
    "{ .param .b64 a; st.param.b64 [a], %d1; call.uni free, (a); }\n"
    "{ .param .b64 a; st.param.b64 [a], %d1; call.uni free, (a); } ret; }\n"
    ENTRY("asserts") "mov.u32 %r0, %tid.x; setp.ne.u32 %q, %r0, 3; @%q ret;\n"
    "mov.u64 %d1, s0; cvta.global.u64 %d1, %d1; mov.u64 %d2, s1; cvta.global.u64 %d2, %d2;\n"
    "mov.u64 %d3, s2; cvta.global.u64 %d3, %d3;\n"
    "{ .param .b64 a; .param .b64 b; .param .b32 c; .param .b64 d; .param .b64 e;\n"
    "st.param.b64 [a], %d1; st.param.b64 [b], %d2; st.param.b32 [c], 17;\n"
    "st.param.b64 [d], %d3; st.param.b64 [e], 1; call.uni __assertfail, (a, b, c, d, e); }\n"
    "ret; }\n"
    /* Each half of the warp waits for all. */
    ENTRY("apart") "mov.u32 %r0, %tid.x; setp.lt.u32 %q, %r0, 16; @%q bra one;\n"
    "barrier.sync 2, 64; ret;\none: barrier.sync 1, 64; ret; }\n"
    ENTRY("spins") "again: ld.volatile.global.u32 %r0, [%d0]; setp.eq.u32 %q, %r0, 0;\n"
    "@%q bra again; ret; }\n"
    ENTRY("recursion") "{ .param .b64 m; st.param.b64 [m], 1000000; call deeper, (m); } ret; }\n";
/* clang-format on */

/* The error, what the report says first, and where it was; and why hardware is not asked. */
#define WITHIN_A_PAGE "hardware has no bounds within a page"
static const struct kind {
    const char *kernel;
    CUresult error;
    const char *report, *place, *soft_alone;
} kinds[] = {
    {"load", CUDA_ERROR_ILLEGAL_ADDRESS, "kernel load: illegal address: read of 4 bytes at 0x",
     "ld.global.u32 %r0, [%d0+512];\n  block 0,0,0 thread 0,0,0", WITHIN_A_PAGE},
    {"store", CUDA_ERROR_ILLEGAL_ADDRESS, "kernel store: illegal address: write of 4 bytes at 0x",
     "bytes behind the end of an allocation of 100 bytes", WITHIN_A_PAGE},
    {"atomic", CUDA_ERROR_ILLEGAL_ADDRESS, "kernel atomic: illegal address: write of 4 bytes at 0x",
     "bytes behind the end of an allocation of 100 bytes", WITHIN_A_PAGE},
    {"null", CUDA_ERROR_ILLEGAL_ADDRESS, "kernel null: illegal address: read of 4 bytes at 0x10",
     "thread 0,0,0", NULL},
    {"odd_load", CUDA_ERROR_MISALIGNED_ADDRESS, "kernel odd_load: misaligned address: read of 4",
     "98 bytes before the end of an allocation of 100 bytes", NULL},
    {"odd_nowhere", CUDA_ERROR_MISALIGNED_ADDRESS, "kernel odd_nowhere: misaligned address",
     "ld.u32 %r0, [%d1]", "hardware answers this, or ILLEGAL_ADDRESS"},
    {"odd_beyond", CUDA_ERROR_ILLEGAL_ADDRESS, "kernel odd_beyond: illegal address",
     "ld.global.u32 %r0, [%d1]", NULL},
    {"odd_atomic", CUDA_ERROR_MISALIGNED_ADDRESS, "kernel odd_atomic: misaligned address",
     "[%d0+2]", NULL},
    {"odd_shared", CUDA_ERROR_MISALIGNED_ADDRESS, "kernel odd_shared: misaligned address",
     "ld.shared.u32", NULL},
    {"shared", CUDA_ERROR_ILLEGAL_ADDRESS,
     "kernel shared: address outside of its space: read of 4 bytes at offset 1048576 of shared "
     "memory, which has 32",
     "thread 0,0,0", NULL},
    {"atomic_on_local", CUDA_ERROR_INVALID_ADDRESS_SPACE,
     "kernel atomic_on_local: address outside of its space", "atom.add.u32",
     "which error it is has not been recorded"},
    {"count", CUDA_ERROR_ILLEGAL_INSTRUCTION,
     "kernel count: misuse of a barrier: 31 is no multiple of 32 threads", "barrier.sync 1, %r0",
     NULL},
    {"left_out", CUDA_ERROR_ILLEGAL_INSTRUCTION, "kernel left_out: illegal instruction",
     "the mask leaves out the lane itself", NULL},
    {"nowhere", CUDA_ERROR_ILLEGAL_INSTRUCTION, "kernel nowhere: illegal instruction: 0x1000",
     "call %d1", NULL},
    {"trap", CUDA_ERROR_LAUNCH_FAILED, "kernel trap: trap",
     "trap; ret; }\n  block 0,0,0 thread 3,0,0", NULL},
    {"brkpt", CUDA_ERROR_LAUNCH_FAILED, "kernel brkpt: breakpoint", "thread 0,0,0", NULL},
    {"local", CUDA_ERROR_ILLEGAL_ADDRESS,
     "kernel local: address outside of its space: write of 4 bytes at offset 1",
     "of local memory, which has 64", NULL},
    {"twice", CUDA_ERROR_LAUNCH_FAILED, "kernel twice: free of what was freed before: 0x",
     "in the heap of kernels, where nothing is allocated", NULL},
    {"asserts", CUDA_ERROR_ASSERT, "kernel asserts: assertion", "thread 3,0,0", NULL},
    {"apart", CUDA_ERROR_LAUNCH_TIMEOUT, "kernel apart: deadlock", "waits for barrier 1",
     "it waits for ever"},
    {"spins", CUDA_ERROR_LAUNCH_TIMEOUT, "kernel spins: out of time", "runs",
     "SOFTGPU_KERNEL_LIMIT is softgpu's"},
    {"recursion", CUDA_ERROR_ILLEGAL_ADDRESS, "kernel recursion: stack overflow",
     "in function deeper", NULL},
};

static void check_sticky(CUresult error, CUdeviceptr p) {
    CUmodule module;
    CUstream stream;
    CUevent event;
    size_t size, total;
    char bytes[16];
    ANSWERS_CU(error, cu.cuCtxSynchronize());
    ANSWERS_CU(error, cu.cuStreamSynchronize(NULL));
    ANSWERS_CU(error, cu.cuStreamQuery(NULL));
    ANSWERS_CU(error, cu.cuStreamCreate(&stream, 0));
    ANSWERS_CU(error, cu.cuEventCreate(&event, 0));
    ANSWERS_CU(error, cu.cuMemAlloc_v2(&p, 100));
    ANSWERS_CU(error, cu.cuMemGetInfo_v2(&size, &total));
    ANSWERS_CU(error, cu.cuMemcpyDtoH_v2(bytes, p, sizeof bytes));
    ANSWERS_CU(error, cu.cuMemsetD8_v2(p, 0, 1));
    ANSWERS_CU(error, cu.cuModuleLoadData(&module, KERNEL_MODULE_HEAD));
}

static void expect(const char *where, const char *got, const char *wanted) {
    if (!strstr(got, wanted))
        fail_msg("%s is without \"%s\":\n%s", where, wanted, got);
}

/* In the log each line has softgpu's name in front of it. */
static void expect_lines(const char *log, const char *wanted) {
    char line[256];
    for (const char *at = wanted; *at;) {
        size_t length = strcspn(at, "\n");
        assert_true(length < sizeof line);
        memcpy(line, at, length);
        line[length] = '\0';
        expect("the log", log, line);
        at += length + (at[length] == '\n');
    }
}

/* argv: the kind */
CHILD_THAT_ENDS(faults) {
    assert_int_equal(argc, 2);
    const struct kind *kind = &kinds[atoi(argv[1])];
    char name[TEMPORARY_ROOM], report[8192] = "";
    unsigned char on = 1;
    size_t one = 1;
    init_driver();
    int descriptor = temporary_file(name, "report");
    assert_true(descriptor >= 0);
    size_t length = strlen(name) + 1;
    if (soft) {
        OK_CU(cu.cuCoredumpSetAttribute(CU_COREDUMP_FILE, name, &length));
        OK_CU(cu.cuCoredumpSetAttribute(CU_COREDUMP_ENABLE_ON_EXCEPTION, &on, &one));
    }
    CUdeviceptr p = MADE_CU(CUdeviceptr, cuMemAlloc_v2, 100);
    OK_CU(cu.cuMemsetD8_v2(p, 0, 100));
    char whole[sizeof text + sizeof more];
    snprintf(whole, sizeof whole, "%s%s", text, more);
    CUmodule module = kernel_module(strings, whole);
    uint64_t value = p;
    void *params[] = {&value};
    int saved = dup(STDERR_FILENO), file = output_begin(STDERR_FILENO);
    OK_CU(kernel_launch(function_of(module, kind->kernel), 1, 32, params));
    CUresult result = cu.cuCtxSynchronize();
    dup2(saved, STDERR_FILENO);
    close(saved);
    ANSWERS_CU(kind->error, result);
    check_sticky(kind->error, p);
    FILE *in = fopen(name, "r");
    assert_non_null(in);
    report[fread(report, 1, sizeof report - 1, in)] = '\0';
    fclose(in);
    close(descriptor);
    assert_int_equal(unlink(name), 0);
    char *log = output_so_far(file);
    if (soft) {
        expect("the core dump", report, kind->report);
        expect("the core dump", report, kind->place);
        expect_lines(log, kind->report);
        expect_lines(log, kind->place);
    }
    free(log);
}

TEST_WHERE(each_kernel_fault_is_sticky_and_names_its_place, NEEDS_KERNELS()) {
    bool good = true;
    for (size_t i = 0; i < COUNT(kinds); i++) {
        char number[16];
        snprintf(number, sizeof number, "%zu", i);
        if (!soft && kinds[i].soft_alone)
            continue;
        setenv("SOFTGPU_KERNEL_LIMIT", strcmp(kinds[i].kernel, "spins") == 0 ? "1" : "0", 1);
        if (run_child("faults", number, NULL) != 0) {
            print_error("%s\n", kinds[i].kernel);
            good = false;
        }
    }
    unsetenv("SOFTGPU_KERNEL_LIMIT");
    assert_true(good);
}
