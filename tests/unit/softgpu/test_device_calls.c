/* Calls of the device runtime as the engine makes them: which lanes call, with what, and what comes
 * of the answers. */
#include "kernel.h"

#include "softgpu/binary/read.h"
#include "softgpu/engine/device_call.h"

#define RUNTIME                                                                                    \
    KERNEL_HEAD                                                                                    \
    ".extern .func (.param .b64 r) malloc (.param .b64 size);\n"                                   \
    ".extern .func free (.param .b64 p);\n"                                                        \
    ".extern .func (.param .b64 r) memcpy (.param .b64 d, .param .b64 s, .param .b64 n);\n"        \
    ".extern .func (.param .b64 r) memset (.param .b64 d, .param .b32 v, .param .b64 n);\n"        \
    ".extern .func __assertfail (.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 n,\n"    \
    ".param .b64 c);\n"                                                                            \
    ".extern .func cudaGraphSetConditional (.param .b64 h, .param .b32 v);\n"                      \
    ".extern .func (.param .b32 r) cudaLaunchDeviceV2 (.param .b64 b, .param .b64 s);\n"           \
    ".visible .entry k(.param .u64 at) {\n"                                                        \
    ".reg .pred %p; .reg .b32 %r<6>; .reg .b64 %d<8>;\n"                                           \
    "ld.param.u64 %d1, [at]; mov.u32 %r1, %tid.x; mul.wide.u32 %d2, %r1, 8;\n"                     \
    "add.u64 %d2, %d1, %d2; cvt.u64.u32 %d3, %r1;\n"

struct seen {
    unsigned count;
    struct sg_device_call calls[64];
    unsigned fault_at; /* which call answers with a fault; 0: none */
};

/* Nothing is on the first page. */
static bool there(void *user, uint64_t address, uint64_t *low, uint64_t *length) {
    *low = 4096;
    *length = UINT64_MAX - 4096;
    return address >= 4096;
}

static void note(void *user, struct sg_device_call *call) {
    struct seen *seen = user;
    assert_true(seen->count < 64);
    call->result = 1000 + call->argument[0];
    seen->calls[seen->count++] = *call;
    if (seen->count >= seen->fault_at && seen->fault_at) {
        call->fault = SG_FAULT_HEAP;
        call->address = 0x1234;
    }
}

static struct sg_grid_fault run(const char *text, void *at, unsigned threads, struct seen *seen) {
    struct sg_grid_fault fault = {.kind = SG_FAULT_COUNT};
    unsigned fault_at = seen->fault_at;
    FOR_EACH_LEVEL(level) {
        *seen = (struct seen){.fault_at = fault_at};
        struct kernel kernel = KERNEL_WITH(text, (enum sg_level)level, 1, threads, at);
        kernel.launch.device_call = note;
        kernel.launch.extent = there;
        kernel.launch.user = seen;
        fault = kernel_run(&kernel, 0);
        kernel_free(&kernel);
    }
    return fault;
}

TEST(each_lane_calls_the_runtime_with_its_own_argument) {
    uint64_t out[40] = {0};
    struct seen seen = {.fault_at = 0};
    struct sg_grid_fault fault = run(
        RUNTIME "{ .param .b64 q0; .param .b64 q1; st.param.b64 [q0], %d3;\n"
                "setp.ge.u32 %p, %r1, 3; @%p call (q1), malloc, (q0); @%p ld.param.b64 %d4, [q1]; "
                "}\n"
                "@%p st.global.u64 [%d2], %d4; ret; }\n",
        out, 40, &seen);
    assert_int_equal(fault.kind, SG_FAULT_COUNT);
    assert_int_equal(seen.count, 37);
    for (unsigned i = 0; i < 40; i++)
        assert_int_equal(out[i], i < 3 ? 0 : 1000 + i);
    for (unsigned i = 0; i < 37; i++) {
        MEMBERS(seen.calls[i], (function, SG_RUNTIME_MALLOC), (thread[0], i + 3),
                (argument[0], i + 3));
    }
}

TEST(arguments_may_be_registers_and_constants) {
    uint64_t out[4] = {0};
    struct seen seen = {.fault_at = 0};
    run(RUNTIME "call (%d4), malloc, (%d3); st.global.u64 [%d2], %d4;\n"
                "mov.u32 %r2, 7; call cudaGraphSetConditional, (%d3, %r2); ret; }\n",
        out, 2, &seen);
    assert_int_equal(seen.count, 4);
    assert_int_equal(out[0], 1000);
    assert_int_equal(out[1], 1001);
    MEMBERS(seen.calls[3], (function, SG_RUNTIME_GRAPH_SET_CONDITIONAL), (argument[0], 1),
            (argument[1], 7));
}

TEST(a_device_function_may_call_the_runtime) {
    uint64_t out[4] = {0};
    struct seen seen = {.fault_at = 0};
    static const char text[] =
        KERNEL_HEAD ".extern .func (.param .b64 r) malloc (.param .b64 size);\n"
                    ".func (.param .b64 r) twice (.param .b64 x) { .reg .b64 %a, %b;\n"
                    ".param .b64 q0; .param .b64 q1; .local .align 8 .b8 pad[64];\n"
                    "ld.param.b64 %a, [x]; add.u64 %a, %a, %a; st.param.b64 [q0], %a;\n"
                    "call (q1), malloc, (q0); ld.param.b64 %b, [q1]; add.u64 %b, %b, %a;\n"
                    "st.param.b64 [r], %b; ret; }\n"
                    ".visible .entry k(.param .u64 at) { .reg .b64 %d<6>; .reg .b32 %r;\n"
                    "ld.param.u64 %d1, [at]; mov.u32 %r, %tid.x; cvt.u64.u32 %d2, %r;\n"
                    "mad.wide.u32 %d3, %r, 8, %d1; { .param .b64 p; .param .b64 q;\n"
                    "st.param.b64 [p], %d2; call (q), twice, (p); ld.param.b64 %d4, [q]; }\n"
                    "st.global.u64 [%d3], %d4; ret; }\n";
    run(text, out, 4, &seen);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(out[i], 1000 + 4 * i);
}

TEST(the_engine_executes_memcpy_and_memset) {
    unsigned char bytes[96] = {0};
    struct seen seen = {.fault_at = 0};
    for (unsigned i = 0; i < 32; i++)
        bytes[i] = (unsigned char)(i + 1);
    struct sg_grid_fault fault =
        run(RUNTIME "{ .param .b64 a; .param .b64 b; .param .b64 c; .param .b32 v; .param .b64 r;\n"
                    "add.u64 %d4, %d1, 32; st.param.b64 [a], %d4; st.param.b64 [b], %d1;\n"
                    "st.param.b64 [c], 32; call (r), memcpy, (a, b, c); ld.param.b64 %d5, [r];\n"
                    "add.u64 %d5, %d5, 32; st.param.b64 [a], %d5; st.param.b32 [v], 0x1a5;\n"
                    "st.param.b64 [c], 30; call (r), memset, (a, v, c); } ret; }\n",
            bytes, 1, &seen);
    assert_int_equal(fault.kind, SG_FAULT_COUNT);
    assert_int_equal(seen.count, 0);
    assert_memory_equal(bytes, bytes + 32, 32);
    for (unsigned i = 64; i < 96; i++)
        assert_int_equal(bytes[i], i < 94 ? 0xa5 : 0);
    fault = run(RUNTIME "{ .param .b64 a; .param .b32 v; .param .b64 c; .param .b64 r;\n"
                        "st.param.b64 [a], 64; st.param.b32 [v], 0; st.param.b64 [c], 8;\n"
                        "call (r), memset, (a, v, c); } ret; }\n",
                bytes, 1, &seen);
    MEMBERS(fault, (kind, SG_FAULT_ADDRESS), (address, 64));
}

TEST(memcpy_reaches_shared_and_local_memory) {
    uint64_t out[2] = {0};
    struct seen seen = {.fault_at = 0};
    struct sg_grid_fault fault =
        run(RUNTIME ".shared .align 8 .b8 s[16]; .local .align 8 .b8 l[16];\n"
                    "mov.u64 %d4, s; cvta.shared.u64 %d4, %d4; mov.u64 %d5, l;\n"
                    "cvta.local.u64 %d5, %d5; st.u64 [%d4], %d3;\n"
                    "{ .param .b64 a; .param .b64 b; .param .b64 c; .param .b64 r;\n"
                    "st.param.b64 [a], %d5; st.param.b64 [b], %d4; st.param.b64 [c], 8;\n"
                    "call (r), memcpy, (a, b, c); } ld.u64 %d6, [%d5]; add.u64 %d6, %d6, 5;\n"
                    "st.global.u64 [%d2], %d6; ret; }\n",
            out, 1, &seen);
    assert_int_equal(fault.kind, SG_FAULT_COUNT);
    assert_int_equal(out[0], 5);
}

TEST(a_faulting_call_ends_the_grid_after_all_lanes_have_called) {
    uint64_t out[32] = {0};
    struct seen seen = {.fault_at = 5};
    struct sg_grid_fault fault =
        run(RUNTIME "{ .param .b64 q0; st.param.b64 [q0], %d3; call free, (q0); }\n"
                    "st.global.u64 [%d2], 1; ret; }\n",
            out, 32, &seen);
    assert_int_equal(seen.count, 32);
    MEMBERS(fault, (kind, SG_FAULT_HEAP), (thread[0], 4), (address, 0x1234));
    assert_int_equal(out[0], 0);
}

TEST(a_runtime_call_without_a_handler_is_a_fault) {
    static const struct {
        const char *body;
        enum sg_fault_kind kind;
    } all[] = {
        {"call free, (%d3);", SG_FAULT_INSTRUCTION},
        {"mov.u32 %r2, 1; call __assertfail, (%d3, %d3, %r2, %d3, %d3);", SG_FAULT_ASSERT},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        char text[4096];
        snprintf(text, sizeof text, "%s%s ret; }\n", RUNTIME, all[i].body);
        struct kernel kernel = KERNEL_WITH(text, sg_level_best(), 1, 1, NULL);
        assert_int_equal(kernel_run(&kernel, 0).kind, all[i].kind);
        kernel_free(&kernel);
    }
}

TEST(a_kernel_launch_from_a_kernel_is_refused_by_name) {
    static const struct sg_image_options h200 = {
        .architecture = 90, .suffix = 'a', .newest_ptx = 90, .relocatable = true};
    struct sg_image *image;
    struct sg_program *program;
    char why[300] = "";
    struct sg_image_log log = {0};
    assert_int_equal(sg_image_read(RUNTIME "call (%r2), cudaLaunchDeviceV2, (%d1, %d2); ret; }\n",
                                   SIZE_MAX, &h200, &log, &image),
                     CUDA_SUCCESS);
    assert_int_equal(sg_program_make(image, "k", &log, &program), CUDA_SUCCESS);
    assert_false(sg_engine_can(program, why, sizeof why));
    if (!strstr(why, "cudaLaunchDeviceV2"))
        fail_msg("the refusal is: %s", why);
    sg_program_free(program);
    sg_image_free(image);
}
