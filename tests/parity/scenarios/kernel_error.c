/*
 * Kernels that fail, and what each call returns afterwards; what kernels print and allocate. Each
 * fault has a scenario, and so a process, of its own.
 */
#include "../parity.h"
#include "temporary.h"

#define HEAD ".version 7.0\n.target sm_70\n.address_size 64\n"
#define ENTRY(name)                                                                                \
    ".visible .entry " name "(.param .u64 p) {\n"                                                  \
    ".reg .b64 %d<6>; .reg .b32 %r<6>; .reg .pred %q;\nld.param.u64 %d0, [p];\n"

/* clang-format off */
static const char faults_text[] = HEAD
    ENTRY("store") "st.global.u32 [%d0], 1; ret; }\n"
    ENTRY("load") "ld.global.u32 %r0, [%d0]; st.global.u32 [%d0], %r0; ret; }\n"
    ENTRY("generic") "st.u32 [%d0], 1; ret; }\n"
    ENTRY("atomic") "atom.global.add.u32 %r0, [%d0], 1; ret; }\n"
    ENTRY("store_8") "st.global.u64 [%d0], %d0; ret; }\n"
    ENTRY("shared") ".shared .align 8 .b8 s[64]; cvt.u32.u64 %r0, %d0;\n"
    "st.volatile.shared.u32 [%r0], %r0; ret; }\n"
    /* What is read back may be what was written, and is used: both stay. */
    ENTRY("local") ".local .align 8 .b8 l[64]; .shared .b32 s; mov.u64 %d1, l;\n"
    "and.b64 %d2, %d0, 60; add.u64 %d2, %d1, %d2; add.u64 %d1, %d1, %d0;\n"
    "st.local.u32 [%d1], 1; ld.local.u32 %r0, [%d2]; st.volatile.shared.u32 [s], %r0; ret; }\n"
    ENTRY("atomic_on_local") ".local .align 8 .b8 l[64]; mov.u64 %d1, l;\n"
    "cvta.local.u64 %d1, %d1; st.u32 [%d1], 0; atom.add.u32 %r0, [%d1], 1; ret; }\n"
    /* ptxas does not see whose address comes back. */
    ENTRY("atomic_on_hidden_local") ".local .align 8 .b8 l[64]; mov.u64 %d1, l;\n"
    "cvta.local.u64 %d1, %d1; st.u32 [%d1], 0; st.volatile.global.u64 [%d0], %d1;\n"
    "ld.volatile.global.u64 %d2, [%d0]; atom.add.u32 %r0, [%d2], 1; ret; }\n"
    ENTRY("trap") "trap; ret; }\n"
    ENTRY("brkpt") "brkpt; ret; }\n"
    ".func deeper(.param .b64 n) { .reg .b64 %a, %b; .reg .pred %q; .local .align 8 .b8 l[256];\n"
    "ld.param.b64 %a, [n]; mov.u64 %b, l; cvta.local.u64 %b, %b; st.volatile.u64 [%b], %a;\n"
    "setp.eq.u64 %q, %a, 0; @%q ret; add.u64 %a, %a, -1;\n"
    "{ .param .b64 m; st.param.b64 [m], %a; call deeper, (m); }\n"
    "ld.volatile.u64 %a, [%b]; ret; }\n"
    ENTRY("recursion") "{ .param .b64 m; st.param.b64 [m], %d0; call deeper, (m); } ret; }\n"
    ENTRY("call_nothing") "proto: .callprototype _ ();\ncall %d0, (), proto; ret; }\n"
    ENTRY("nothing") "ret; }\n";

static const char heap_text[] = HEAD
    ".extern .func (.param .b64 r) malloc (.param .b64 size);\n"
    ".extern .func free (.param .b64 p);\n"
    ".visible .entry take(.param .u64 out, .param .u64 size) { .reg .b64 %d<4>;\n"
    "ld.param.u64 %d0, [out]; ld.param.u64 %d1, [size];\n"
    "{ .param .b64 a; .param .b64 b; st.param.b64 [a], %d1; call.uni (b), malloc, (a);\n"
    "ld.param.b64 %d2, [b]; } st.global.u64 [%d0], %d2; ret; }\n"
    ".visible .entry give(.param .u64 p) { .reg .b64 %d<2>; ld.param.u64 %d0, [p];\n"
    "{ .param .b64 a; st.param.b64 [a], %d0; call.uni free, (a); } ret; }\n";

/* "x < 4", "file.cu", "f", "before\n", "%v4hlf|%v2d\n", "%c|%5s|%p|%hhd|%a\n" */
static const char print_text[] = HEAD
    ".global .align 1 .b8 s0[6] = {120, 32, 60, 32, 52, 0};\n"
    ".global .align 1 .b8 s1[8] = {102, 105, 108, 101, 46, 99, 117, 0};\n"
    ".global .align 1 .b8 s2[2] = {102, 0};\n"
    ".global .align 1 .b8 s3[8] = {98, 101, 102, 111, 114, 101, 10, 0};\n"
    ".global .align 1 .b8 s4[13] = {37, 118, 52, 104, 108, 102, 124, 37, 118, 50, 100, 10, 0};\n"
    ".global .align 1 .b8 s5[19] = {37, 99, 124, 37, 53, 115, 124, 37, 112, 124, 37, 104, 104,\n"
    "100, 124, 37, 97, 10, 0};\n"
    ".extern .func __assertfail (.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 n,\n"
    ".param .b64 c);\n"
    ".extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);\n"
    ENTRY("asserts") "mov.u32 %r0, %tid.x; setp.lt.u32 %q, %r0, 30; @%q ret;\n"
    "mov.u64 %d0, s0; cvta.global.u64 %d0, %d0; mov.u64 %d1, s1; cvta.global.u64 %d1, %d1;\n"
    "mov.u64 %d2, s2; cvta.global.u64 %d2, %d2;\n"
    "{ .param .b64 a; .param .b64 b; .param .b32 c; .param .b64 d; .param .b64 e;\n"
    "st.param.b64 [a], %d0; st.param.b64 [b], %d1; st.param.b32 [c], 17;\n"
    "st.param.b64 [d], %d2; st.param.b64 [e], 1; call.uni __assertfail, (a, b, c, d, e); }\n"
    "ret; }\n"
    /* prints, and then stores to its argument, unless that is 0 */
    ENTRY("prints") "mov.u64 %d1, s3; cvta.global.u64 %d1, %d1; mov.u64 %d2, 0;\n"
    "{ .param .b64 a; .param .b64 b; .param .b32 c; st.param.b64 [a], %d1;\n"
    "st.param.b64 [b], %d2; call.uni (c), vprintf, (a, b); }\n"
    "setp.eq.u64 %q, %d0, 0; @%q ret; membar.sys; st.global.u32 [%d0], 1; ret; }\n"
    /* formats(out): the results of three calls */
    ENTRY("formats") ".local .align 16 .b8 l[48]; .reg .f32 %f<4>; .reg .f64 %x;\n"
    "mov.u64 %d1, l; cvta.local.u64 %d2, %d1; mov.u64 %d3, s4; cvta.global.u64 %d3, %d3;\n"
    "mov.f32 %f0, 0f3F800000; mov.f32 %f1, 0fC0200000; mov.f32 %f2, 0f00000000;\n"
    "mov.f32 %f3, 0f40400000; st.local.v4.f32 [%d1], {%f0, %f1, %f2, %f3};\n"
    "mov.u32 %r1, 5; mov.u32 %r2, -6; st.local.v2.u32 [%d1+16], {%r1, %r2};\n"
    "{ .param .b64 a; .param .b64 b; .param .b32 c; st.param.b64 [a], %d3;\n"
    "st.param.b64 [b], %d2; call.uni (c), vprintf, (a, b); ld.param.b32 %r3, [c]; }\n"
    "st.global.u32 [%d0], %r3; mov.u32 %r1, 65; st.local.u32 [%d1], %r1;\n"
    "mov.u64 %d4, s2; cvta.global.u64 %d4, %d4; st.local.u64 [%d1+8], %d4;\n"
    "mov.u64 %d5, 0; st.local.u64 [%d1+16], %d5; mov.u32 %r1, 511; st.local.u32 [%d1+24], %r1;\n"
    "mov.f64 %x, 0d3FF8000000000000; st.local.f64 [%d1+32], %x;\n"
    "mov.u64 %d3, s5; cvta.global.u64 %d3, %d3;\n"
    "{ .param .b64 a; .param .b64 b; .param .b32 c; st.param.b64 [a], %d3;\n"
    "st.param.b64 [b], %d2; call.uni (c), vprintf, (a, b); ld.param.b32 %r3, [c]; }\n"
    "st.global.u32 [%d0+4], %r3;\n"
    "{ .param .b64 a; .param .b64 b; .param .b32 c; st.param.b64 [a], %d5;\n"
    "st.param.b64 [b], %d2; call.uni (c), vprintf, (a, b); ld.param.b32 %r3, [c]; }\n"
    "st.global.u32 [%d0+8], %r3; ret; }\n";
/* clang-format on */

static CUmodule module;

static CUfunction function(const char *name) {
    return PAR_MADE(CUfunction, cuModuleGetFunction, module, name);
}

static void launch(CUfunction f, unsigned threads, uint64_t first, uint64_t second) {
    void *params[] = {&first, &second};
    SETUP(cuLaunchKernel, (f, 1, 1, 1, threads, 1, 1, 0, NULL, params, NULL));
}

/* ---- after a fault --------------------------------------------------------------------------- */

/* The kernel runs with `value`, in a held stream or, unless that is 0, after memory at `freed` was
 * freed. Then each kind of call is made. */
static void fails_after(const char *name, unsigned threads, uint64_t value, CUdeviceptr freed) {
    CUdeviceptr p = par_alloc(4096), q;
    CUstream s = par_stream(), held = par_stream();
    CUcontext ctx;
    CUmodule m;
    size_t size, total;
    unsigned flags;
    int active;
    char bytes[16];
    CUevent e = par_event(0);
    CUfunction f = function(name), nothing = function("nothing");
    void *params[] = {&value};
    if (freed) /* which waits for all work: nothing is held */
        SETUP(cuMemFree_v2, (freed));
    else
        par_hold(held);
    CALL(cuLaunchKernel, "faults", (f, 1, 1, 1, threads, 1, 1, 0, held, params, NULL));
    if (!freed) {
        SETUP(cuEventRecord, (e, held));
        par_release();
    }
    CALL(cuCtxSynchronize, "fault", ());
    CALL(cuCtxSynchronize, "fault-again", ());
    CALL(cuStreamQuery, "fault", (NULL));
    CALL(cuStreamSynchronize, "fault-other-stream", (s));
    if (!freed)
        CALL(cuEventQuery, "fault", (e));
    CALLO(cuMemAlloc_v2, "fault", (&q, 4096), OUT_C(q));
    CALL(cuMemcpyDtoH_v2, "fault", (bytes, p, 16));
    CALL(cuMemsetD8Async, "fault", (p, 0, 16, s));
    CALLO(cuMemGetInfo_v2, "fault", (&size, &total), OUT_C(size), OUT_C(total));
    CALLO(cuCtxGetLimit, "fault", (&size, CU_LIMIT_STACK_SIZE), OUT_U(size));
    CALL(cuLaunchKernel, "fault", (nothing, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    CALLO(cuModuleLoadData, "fault", (&m, faults_text), OUT_C(m));
    CALL(cuModuleUnload, "fault", (module));
    CALL(cuMemFree_v2, "fault", (p));
    CALLO(cuDevicePrimaryCtxGetState, "fault", (0, &flags, &active), OUT_U(flags), OUT_I(active));
    CALLO(cuCtxCreate_v2, "fault", (&ctx, 0, 0), OUT_C(ctx));
}

static void fails(const char *name, unsigned threads, uint64_t value) {
    fails_after(name, threads, value, 0);
}

/* The second half of addresses of which the first is mapped. */
static CUdeviceptr behind_mapped(void) {
    CUmemAccessDesc access = par_device_access(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    CUdeviceptr p = par_reserve(2 * PAR_2M);
    SETUP(cuMemMap, (p, PAR_2M, 0, par_create(PAR_2M, CU_MEM_HANDLE_TYPE_NONE), 0));
    SETUP(cuMemSetAccess, (p, PAR_2M, &access, 1));
    return p + PAR_2M;
}

static void begin(const char *text) {
    par_context();
    SETUP(cuModuleLoadData, (&module, text));
}

static void with_faults(void) {
    begin(faults_text);
}

static void with_prints(void) {
    begin(print_text);
}

static void with_heap(void) {
    begin(heap_text);
}

SCENARIO_IN(null_address, "kernel-error/null-address", with_faults, fails("store", 1, 0));
SCENARIO_IN(null_read, "kernel-error/null-read", with_faults, fails("load", 32, 16));
SCENARIO_IN(generic_address, "kernel-error/generic-address", with_faults, fails("generic", 1, 8));
SCENARIO_IN(beyond_mapping, "kernel-error/beyond-mapping", with_faults,
            fails("store", 1, behind_mapped()));
SCENARIO_IN(atomic_beyond_mapping, "kernel-error/atomic-beyond-mapping", with_faults,
            fails("atomic", 1, behind_mapped()));

SCENARIO(read_only, "kernel-error/read-only", with_faults) {
    CUmemAccessDesc access = par_device_access(CU_MEM_ACCESS_FLAGS_PROT_READ);
    CUdeviceptr p = par_mapped(PAR_2M);
    SETUP(cuMemSetAccess, (p, PAR_2M, &access, 1));
    fails("store", 1, p);
}

SCENARIO(freed, "kernel-error/freed", with_faults) {
    CUdeviceptr p = par_alloc((size_t)64 << 20);
    fails_after("store", 1, p, p);
}

SCENARIO_IN(misaligned, "kernel-error/misaligned", with_faults,
            fails("store_8", 1, par_alloc(64) + 4));
SCENARIO_IN(misaligned_atomic, "kernel-error/misaligned-atomic", with_faults,
            fails("atomic", 1, par_alloc(64) + 2));
SCENARIO_IN(shared_beyond, "kernel-error/shared-beyond", with_faults, fails("shared", 1, 1 << 20));
SCENARIO_IN(shared_misaligned, "kernel-error/shared-misaligned", with_faults,
            fails("shared", 1, 2));
SCENARIO_IN(local_beyond, "kernel-error/local-beyond", with_faults,
            fails("local", 1, (uint64_t)1 << 30));
SCENARIO_IN(wrong_space, "kernel-error/wrong-space", with_faults, fails("atomic_on_local", 1, 0));
SCENARIO_IN(wrong_space_hidden, "kernel-error/wrong-space-hidden", with_faults,
            fails("atomic_on_hidden_local", 1, par_alloc(64)));
SCENARIO_IN(trap, "kernel-error/trap", with_faults, fails("trap", 32, 0));
SCENARIO_IN(breakpoint, "kernel-error/breakpoint", with_faults, fails("brkpt", 1, 0));
SCENARIO_IN(stack_overflow, "kernel-error/stack-overflow", with_faults,
            fails("recursion", 1, 1000000));

/* Within the limit: 1024 bytes take few of these frames. */
SCENARIO(stack_limit, "kernel-error/stack-limit", with_faults) {
    CUfunction f = function("recursion");
    for (uint64_t depth = 1; depth < 100; depth++) {
        launch(f, 1, depth, 0);
        if (par.api->cuCtxSynchronize() != CUDA_SUCCESS) {
            par_see("frames-of-256-bytes", "%u", (unsigned)depth);
            break;
        }
    }
    CALL(cuCtxSynchronize, "beyond-stack", ());
}

SCENARIO(larger_stack, "kernel-error/larger-stack", with_faults) {
    size_t limit;
    CALL(cuCtxSetLimit, "larger-stack", (CU_LIMIT_STACK_SIZE, 65536));
    launch(function("recursion"), 1, 100, 0);
    CALL(cuCtxSynchronize, "larger-stack", ());
    CALLO(cuCtxGetLimit, "larger-stack", (&limit, CU_LIMIT_STACK_SIZE), OUT_U(limit));
}

SCENARIO_IN(call_of_nothing, "kernel-error/call-of-nothing", with_faults,
            fails("call_nothing", 1, 0x1000));

/* ---- what is printed ------------------------------------------------------------------------- */

static int kept_output, output_file;

/* From here on what is written to a descriptor lies in a file. It begins before the launch: a
 * kernel that faults prints when it does, and not when it is waited for. */
static void output_begin(int descriptor) {
    char name[TEMPORARY_ROOM];
    fflush(stdout);
    kept_output = dup(descriptor);
    output_file = temporary_file(name, "output");
    unlink(name);
    dup2(output_file, descriptor);
}

/* And here nothing is told of it. */
static void output_dropped(int descriptor) {
    fflush(descriptor == STDOUT_FILENO ? stdout : stderr);
    dup2(kept_output, descriptor);
    close(kept_output);
    close(output_file);
}

/* And here the file is told, a line each. */
static void output_end(int descriptor, const char *what) {
    char text[16384];
    fflush(descriptor == STDOUT_FILENO ? stdout : stderr);
    dup2(kept_output, descriptor);
    close(kept_output);
    ssize_t size = pread(output_file, text, sizeof text - 1, 0);
    text[size > 0 ? size : 0] = '\0';
    close(output_file);
    char *rest = text, *line;
    unsigned count = 0;
    while ((line = strsep(&rest, "\n")) != NULL && *line)
        if (strncmp(line, "softgpu: ", 9) != 0) {
            count++;
            par_see(what, "%s", line);
        }
    par_see(what, "%u lines", count);
}

SCENARIO(assertion, "kernel-error/assertion", with_prints) {
    CUfunction f = function("asserts");
    output_begin(STDERR_FILENO);
    launch(f, 32, 0, 0);
    CUresult result = par.api->cuCtxSynchronize();
    output_end(STDERR_FILENO, "assertion");
    par_see("result", "%s", par_result_name(result));
    CALL(cuCtxSynchronize, "assertion-again", ());
    CALL(cuStreamQuery, "assertion", (NULL));
}

SCENARIO(print_before_fault, "kernel-error/print-before-fault", with_prints) {
    CUfunction f = function("prints");
    output_begin(STDOUT_FILENO);
    launch(f, 1, 16, 0);
    CUresult result = par.api->cuCtxSynchronize();
    output_end(STDOUT_FILENO, "before-fault");
    par_see("result", "%s", par_result_name(result));
}

/* Each call that may print, after one line has been printed and waited for by queries alone. */
static void print_moment(const char *what, CUresult (*call)(void)) {
    launch(function("prints"), 1, 0, 0);
    while (par.api->cuStreamQuery(NULL) == CUDA_ERROR_NOT_READY)
        ;
    output_begin(STDOUT_FILENO);
    CUresult result = call();
    output_end(STDOUT_FILENO, what);
    if (result != CUDA_SUCCESS)
        par_see(what, "%s", par_result_name(result));
    output_begin(STDOUT_FILENO);
    result = par.api->cuCtxSynchronize();
    output_dropped(STDOUT_FILENO);
    if (result != CUDA_SUCCESS)
        par_see(what, "afterwards %s", par_result_name(result));
}

static CUdeviceptr memory;
static CUevent event;
static char host[64];

static CUresult by_nothing(void) {
    return CUDA_SUCCESS;
}
static CUresult by_query(void) {
    return par.api->cuStreamQuery(NULL);
}
static CUresult by_stream(void) {
    return par.api->cuStreamSynchronize(NULL);
}
static CUresult by_context(void) {
    return par.api->cuCtxSynchronize();
}
static CUresult by_event(void) {
    return par.api->cuEventSynchronize(event);
}
static CUresult by_event_query(void) {
    return par.api->cuEventQuery(event);
}
static CUresult by_copy_out(void) {
    return par.api->cuMemcpyDtoH_v2(host, memory, 16);
}
static CUresult by_copy_in(void) {
    return par.api->cuMemcpyHtoD_v2(memory, host, 16);
}
static CUresult by_copy_on_device(void) {
    return par.api->cuMemcpyDtoD_v2(memory, memory + 32, 16);
}
static CUresult by_set(void) {
    return par.api->cuMemsetD8_v2(memory, 0, 16);
}
static CUresult by_free(void) {
    return par.api->cuMemFree_v2(par_alloc(64));
}
static CUresult by_launch(void) {
    void *params[] = {&(uint64_t){0}};
    CUfunction f;
    CUmodule m;
    CUresult result = par.api->cuModuleLoadData(&m, faults_text);
    if (result == CUDA_SUCCESS)
        result = par.api->cuModuleGetFunction(&f, m, "nothing");
    return result == CUDA_SUCCESS
               ? par.api->cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL)
               : result;
}
static CUresult by_load(void) {
    CUmodule m;
    return par.api->cuModuleLoadData(&m, faults_text);
}

SCENARIO(print_moments, "kernel-error/print-moments", with_prints) {
    memory = par_alloc(64);
    SETUP(cuEventCreate, (&event, 0));
    SETUP(cuEventRecord, (event, NULL));
    print_moment("by-nothing", by_nothing);
    print_moment("by-stream-query", by_query);
    print_moment("by-event-query", by_event_query);
    print_moment("by-stream-synchronize", by_stream);
    print_moment("by-context-synchronize", by_context);
    print_moment("by-event-synchronize", by_event);
    print_moment("by-copy-to-host", by_copy_out);
    print_moment("by-copy-to-device", by_copy_in);
    print_moment("by-copy-on-device", by_copy_on_device);
    print_moment("by-memset", by_set);
    print_moment("by-free", by_free);
    print_moment("by-module-load", by_load);
    print_moment("by-load-and-launch", by_launch);
}

SCENARIO(print_formats, "kernel-error/print-formats", with_prints) {
    int results[3] = {9, 9, 9};
    size_t size;
    CUdeviceptr p = par_alloc(64);
    CALL(cuCtxSetLimit, "before-print", (CU_LIMIT_PRINTF_FIFO_SIZE, (size_t)2 << 20));
    CUfunction f = function("formats");
    output_begin(STDOUT_FILENO);
    launch(f, 1, p, 0);
    par.api->cuCtxSynchronize();
    output_end(STDOUT_FILENO, "formats");
    SETUP(cuMemcpyDtoH_v2, (results, p, sizeof results));
    par_see("results", "%d %d %d", results[0], results[1], results[2]);
    CALL(cuCtxSetLimit, "after-print", (CU_LIMIT_PRINTF_FIFO_SIZE, (size_t)1 << 20));
    CALLO(cuCtxGetLimit, "after-print", (&size, CU_LIMIT_PRINTF_FIFO_SIZE), OUT_U(size));
}

/* ---- which conversions a call knows ---------------------------------------------------------- */

/* k(out) of these hands four doubles of 1.5 to a format, and stores the result. */
static const char conversion_text[] =
    ".extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);\n" ENTRY(
        "k") ".local .align 16 .b8 l[32]; mov.u64 %d1, l; cvta.local.u64 %d2, %d1; mov.u64 %d3, "
             "f;\n"
             "cvta.global.u64 %d3, %d3; mov.b64 %d4, 0d3FF8000000000000; st.local.b64 [%d1], %d4;\n"
             "st.local.b64 [%d1+8], %d4; st.local.b64 [%d1+16], %d4; st.local.b64 [%d1+24], %d4;\n"
             "{ .param .b64 a; .param .b64 b; .param .b32 c; st.param.b64 [a], %d3;\n"
             "st.param.b64 [b], %d2; call.uni (c), vprintf, (a, b); ld.param.b32 %r3, [c]; }\n"
             "st.global.u32 [%d0], %r3; ret; }\n";

static void load_conversion(const char *format) {
    char text[sizeof(HEAD) + sizeof(conversion_text) + 300];
    size_t used = (size_t)snprintf(text, sizeof(text), HEAD ".global .align 1 .b8 f[%zu] = {",
                                   strlen(format) + 2);
    for (const char *at = format; *at; at++)
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%d, ", *at);
    snprintf(text + used, sizeof(text) - used, "10, 0};\n%s", conversion_text);
    SETUP(cuModuleLoadData, (&module, text));
}

SCENARIO(print_conversions, "kernel-error/print-conversions") {
    static const char *const formats[] = {
        "%hhd",    "%hd",  "%ld",     "%zd",      "%jd",       "%td",     "%a",      "%A",
        "%F",      "%Lf",  "%v4hlf|", "%v2ld|",   "%v2hd|",    "%d %v2d", "%v2d %d", "%a %d",
        "%hhd %d", "%v2d", "%.*f|",   "%.*f %f|", "%*.*f %f|", "%*f %f|"};
    int result;
    par_context();
    CUdeviceptr p = par_alloc(64);
    for (size_t i = 0; i < COUNT(formats); i++) {
        char what[32];
        snprintf(what, sizeof what, "conversion-%zu", i);
        load_conversion(formats[i]);
        CUfunction f = function("k");
        output_begin(STDOUT_FILENO);
        launch(f, 1, p, 0);
        par.api->cuCtxSynchronize();
        output_end(STDOUT_FILENO, what);
        SETUP(cuMemcpyDtoH_v2, (&result, p, sizeof result));
        par_see(what, "%d", result);
        SETUP(cuModuleUnload, (module));
    }
}

/* ---- the heap -------------------------------------------------------------------------------- */

static uint64_t take(uint64_t size) {
    uint64_t block = 1;
    CUdeviceptr p = par_alloc(64);
    launch(function("take"), 1, p, size);
    SETUP(cuMemcpyDtoH_v2, (&block, p, sizeof block));
    SETUP(cuMemFree_v2, (p));
    return block;
}

SCENARIO(heap, "kernel-error/heap", with_heap) {
    char bytes[16];
    size_t size;
    static const uint64_t sizes[] = {0, 1, 16, 100, 4096, (uint64_t)1 << 20, (uint64_t)1 << 40};
    CALL(cuCtxSetLimit, "before-malloc", (CU_LIMIT_MALLOC_HEAP_SIZE, (size_t)16 << 20));
    for (size_t i = 0; i < COUNT(sizes); i++) {
        uint64_t block = take(sizes[i]);
        par_see("malloc", "%llu: %s", (unsigned long long)sizes[i],
                block == 0        ? "null"
                : block % 16 == 0 ? "aligned"
                                  : "not aligned");
    }
    CUdeviceptr block = take(64);
    launch(function("give"), 1, block, 0);
    launch(function("give"), 1, 0, 0);
    CALL(cuCtxSynchronize, "free", ());
    block = take(64);
    CALL(cuMemcpyDtoH_v2, "heap", (bytes, block, 16));
    CALL(cuMemFree_v2, "heap", (block));
    CALL(cuCtxSetLimit, "after-malloc", (CU_LIMIT_MALLOC_HEAP_SIZE, (size_t)32 << 20));
    CALLO(cuCtxGetLimit, "after-malloc", (&size, CU_LIMIT_MALLOC_HEAP_SIZE), OUT_U(size));
}

SCENARIO(free_twice, "kernel-error/free-twice", with_heap) {
    CUdeviceptr block = take(64);
    launch(function("give"), 1, block, 0);
    launch(function("give"), 1, block, 0);
    CALL(cuCtxSynchronize, "free-twice", ());
    CALL(cuCtxSynchronize, "free-twice-again", ());
}

SCENARIO(free_inside, "kernel-error/free-inside", with_heap) {
    launch(function("give"), 1, take(64) + 16, 0);
    CALL(cuCtxSynchronize, "free-inside", ());
}

SCENARIO(free_of_application, "kernel-error/free-of-application", with_heap) {
    launch(function("give"), 1, par_alloc(64), 0);
    CALL(cuCtxSynchronize, "free-of-application", ());
}
