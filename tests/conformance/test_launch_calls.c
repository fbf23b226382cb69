/* Every call that launches a kernel, every way to pass its arguments, and the bounds of both. */
#include "kernels.h"

static const char text[] = KERNELS_HEAD
    ".visible .entry probe() { ret; }\n"
    /* sums[0] += a + b * threads of the grid */
    ".visible .entry add(.param .u64 sums, .param .u32 a, .param .u64 b) {\n"
    ".reg .b32 %r<4>; .reg .b64 %d<4>; ld.param.u64 %d1, [sums]; ld.param.u32 %r1, [a];\n"
    "ld.param.u64 %d2, [b]; cvt.u64.u32 %d3, %r1; add.u64 %d3, %d3, %d2;\n"
    "cvt.u32.u64 %r2, %d3; red.global.add.u32 [%d1], %r2; ret; }\n"
    /* out[0..5]: ntid, nctaid */
    ".visible .entry shape(.param .u64 out) { .reg .b32 %r<7>; .reg .b64 %d<2>;\n"
    "ld.param.u64 %d1, [out]; mov.u32 %r1, %ntid.x; mov.u32 %r2, %ntid.y; mov.u32 %r3, %ntid.z;\n"
    "mov.u32 %r4, %nctaid.x; mov.u32 %r5, %nctaid.y; mov.u32 %r6, %nctaid.z;\n"
    "st.global.u32 [%d1], %r1; st.global.u32 [%d1+4], %r2; st.global.u32 [%d1+8], %r3;\n"
    "st.global.u32 [%d1+12], %r4; st.global.u32 [%d1+16], %r5; st.global.u32 [%d1+20], %r6;\n"
    "ret; }\n"
    ".visible .entry required(.param .u64 out) .reqntid 8, 4, 2 { .reg .b32 %r<4>;\n"
    ".reg .b64 %d<2>; ld.param.u64 %d1, [out]; mov.u32 %r1, %ntid.x; mov.u32 %r2, %ntid.y;\n"
    "mov.u32 %r3, %ntid.z; st.global.u32 [%d1], %r1; st.global.u32 [%d1+4], %r2;\n"
    "st.global.u32 [%d1+8], %r3; mov.u32 %r1, 1; red.global.add.u32 [%d1+12], %r1; ret; }\n"
    ".visible .entry bounded() .maxntid 64 { ret; }\n"
    /* Touches the first and the last word of its dynamic shared memory. */
    ".extern .shared .align 16 .b8 room[];\n"
    ".visible .entry dynamic(.param .u64 out, .param .u32 bytes) {\n"
    ".reg .b32 %r<6>; .reg .b64 %d<2>; ld.param.u64 %d1, [out]; ld.param.u32 %r1, [bytes];\n"
    "mov.u32 %r2, room; add.u32 %r1, %r1, %r2; mov.u32 %r3, 11; st.shared.u32 [%r1+-4], %r3;\n"
    "mov.u32 %r4, 31; st.shared.u32 [%r2], %r4; ld.shared.u32 %r3, [%r1+-4];\n"
    "add.u32 %r3, %r3, %r4; st.global.u32 [%d1], %r3; ret; }\n"
    /* sums[0] += the thread's number, through the last word of its local memory */
    ".visible .entry locals(.param .u64 sums, .param .u32 last) {\n"
    ".local .align 4 .b8 own[65536]; .reg .b32 %r<4>; .reg .b64 %d<4>;\n"
    "ld.param.u64 %d1, [sums]; ld.param.u32 %r1, [last]; mov.u32 %r2, %tid.x;\n"
    "mov.u64 %d2, own; cvta.local.u64 %d2, %d2; cvt.u64.u32 %d3, %r1; add.u64 %d3, %d3, %d2;\n"
    "st.volatile.u32 [%d3], %r2; st.volatile.u32 [%d2], %r2;\n"
    "ld.volatile.u32 %r3, [%d3]; red.global.add.u32 [%d1], %r3; ret; }\n"
    /* Two calls, with four kilobytes of a frame each. */
    ".func (.reg .b32 %res) inner(.reg .b32 %n) { .local .align 8 .b8 frame[4000];\n"
    ".reg .b64 %d<3>; mov.u64 %d1, frame; cvta.local.u64 %d1, %d1; cvt.u64.u32 %d2, %n;\n"
    "add.u64 %d1, %d1, %d2; st.volatile.u32 [%d1], %n; ld.volatile.u32 %res, [%d1]; ret; }\n"
    ".func (.reg .b32 %res) outer(.reg .b32 %n) { .local .align 8 .b8 frame[4000];\n"
    ".reg .b32 %r; .reg .b64 %d<3>; mov.u64 %d1, frame; cvta.local.u64 %d1, %d1;\n"
    "cvt.u64.u32 %d2, %n; add.u64 %d1, %d1, %d2; st.volatile.u32 [%d1], %n;\n"
    "call (%r), inner, (%n); ld.volatile.u32 %res, [%d1]; add.u32 %res, %res, %r; ret; }\n"
    ".visible .entry twice(.param .u64 out, .param .u32 n) { .reg .b32 %r<3>; .reg .b64 %d<2>;\n"
    "ld.param.u64 %d1, [out]; ld.param.u32 %r1, [n]; call (%r2), outer, (%r1);\n"
    "st.global.u32 [%d1], %r2; ret; }\n"
    /* Four kilobytes of a frame for each call, as deep as the parameter says. */
    ".func (.reg .b32 %res) deep(.reg .b32 %n) { .local .align 16 .b8 frame[4096];\n"
    ".reg .pred %p; .reg .b32 %r<4>; .reg .b64 %d<2>; mov.u64 %d1, frame;\n"
    "st.local.u32 [%d1], %n; setp.eq.u32 %p, %n, 0; mov.u32 %res, 0; @%p bra END;\n"
    "sub.u32 %r1, %n, 1; call (%r2), deep, (%r1); ld.local.u32 %r3, [%d1];\n"
    "add.u32 %res, %r2, %r3; END: ret; }\n"
    ".visible .entry calls(.param .u64 out, .param .u32 n) { .reg .b32 %r<3>; .reg .b64 %d<2>;\n"
    "ld.param.u64 %d1, [out]; ld.param.u32 %r1, [n]; call (%r2), deep, (%r1);\n"
    "st.global.u32 [%d1], %r2; ret; }\n";

static struct shared_words words;

static void begin(void) {
    kernels_open(text);
    words = words_make(16);
}

static unsigned take_sum(void) {
    OK_CU(cu.cuCtxSynchronize());
    unsigned sum = words.host[0];
    words.host[0] = 0;
    return sum;
}

TEST(every_launch_function_launches) {
    begin();
    CUfunction f = kernel("add");
    unsigned a = 3;
    uint64_t b = 4;
    void *params[] = {&words.device, &a, &b};
    CUstream stream = new_stream();
    OK_CU(cu.cuLaunchKernel(f, 2, 1, 1, 5, 1, 1, 0, NULL, params, NULL));
    assert_int_equal(take_sum(), 70);
    OK_CU(cu.cuLaunchKernel_ptsz(f, 1, 2, 1, 1, 5, 1, 0, NULL, params, NULL));
    assert_int_equal(take_sum(), 70);
    CUlaunchConfig config = {1, 1, 2, 1, 1, 5, 0, stream, NULL, 0};
    OK_CU(cu.cuLaunchKernelEx(&config, f, params, NULL));
    assert_int_equal(take_sum(), 70);
    OK_CU(cu.cuLaunchKernelEx_ptsz(&config, f, params, NULL));
    assert_int_equal(take_sum(), 70);
    OK_CU(cu.cuLaunchCooperativeKernel(f, 2, 1, 1, 5, 1, 1, 0, stream, params));
    assert_int_equal(take_sum(), 70);
    OK_CU(cu.cuLaunchCooperativeKernel_ptsz(f, 2, 1, 1, 5, 1, 1, 0, NULL, params));
    assert_int_equal(take_sum(), 70);
}

TEST(the_first_launch_api_launches) {
    begin();
    CUfunction f = kernel("add"), shape = kernel("shape");
    uint64_t b = 100;
    OK_CU(cu.cuFuncSetBlockShape(f, 4, 2, 1));
    OK_CU(cu.cuParamSetv(f, 0, &words.device, sizeof words.device));
    OK_CU(cu.cuParamSeti(f, 8, 7));
    OK_CU(cu.cuParamSetv(f, 16, &b, sizeof b));
    OK_CU(cu.cuParamSetSize(f, 24));
    OK_CU(cu.cuLaunch(f));
    assert_int_equal(take_sum(), 8 * 107);
    OK_CU(cu.cuLaunchGrid(f, 3, 2));
    assert_int_equal(take_sum(), 48 * 107);
    CUstream stream = MADE_CU(CUstream, cuStreamCreate, CU_STREAM_NON_BLOCKING);
    OK_CU(cu.cuLaunchGridAsync(f, 2, 1, stream));
    /* What is set afterwards is for later launches. */
    OK_CU(cu.cuParamSeti(f, 8, 0));
    OK_CU(cu.cuStreamSynchronize(stream));
    assert_int_equal(take_sum(), 16 * 107);
    OK_CU(cu.cuStreamDestroy_v2(stream));
    OK_CU(cu.cuFuncSetBlockShape(shape, 2, 3, 4));
    OK_CU(cu.cuParamSetv(shape, 0, &words.device, sizeof words.device));
    OK_CU(cu.cuParamSetSize(shape, 8));
    OK_CU(cu.cuLaunchGrid(shape, 5, 6));
    OK_CU(cu.cuCtxSynchronize());
    static const unsigned expected[] = {2, 3, 4, 5, 6, 1};
    for (int i = 0; i < 6; i++)
        assert_int_equal(words.host[i], expected[i]);
}

TEST(arguments_may_be_packed_in_one_buffer) {
    begin();
    struct {
        CUdeviceptr sums;
        unsigned a, gap;
        uint64_t b;
    } packed = {words.device, 20, 0, 300};
    size_t size = sizeof packed;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_BUFFER_POINTER, &packed,
                     CU_LAUNCH_PARAM_END};
    OK_CU(cu.cuLaunchKernel(kernel("add"), 1, 1, 1, 2, 1, 1, 0, NULL, NULL, extra));
    packed.a = 1;
    assert_int_equal(take_sum(), 640);
}

/* The greatest that there is: 32,764 bytes. Its first and last words come back. */
TEST(parameters_may_have_32764_bytes) {
    static const char form[] =
        ".version 8.1\n.target sm_90\n.address_size 64\n.visible .entry probe() { ret; }\n"
        ".visible .entry large(.param .u64 out, .param .align 4 .b8 bytes[%d]) {\n"
        ".reg .b32 %%r<3>; .reg .b64 %%d<2>; ld.param.u64 %%d1, [out];\n"
        "ld.param.u32 %%r1, [bytes]; ld.param.u32 %%r2, [bytes+%d];\n"
        "st.global.u32 [%%d1], %%r1; st.global.u32 [%%d1+4], %%r2; ret; }\n";
    enum { BYTES = 32764 - 8 };
    static unsigned bytes[BYTES / 4];
    static char large[sizeof form + 64];
    snprintf(large, sizeof large, form, BYTES, BYTES - 4);
    kernels_open(large);
    words = words_make(2);
    void *params[] = {&words.device, bytes};
    bytes[0] = 0x11111111, bytes[BYTES / 4 - 1] = 0x22222222;
    OK_CU(cu.cuLaunchKernel(kernel("large"), 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    memset(bytes, 0, sizeof bytes);
    OK_CU(cu.cuCtxSynchronize());
    MEMBERS(words, (host[0], 0x11111111), (host[1], 0x22222222));
}

TEST(shared_memory_above_48_kib_needs_the_attribute) {
    begin();
    CUfunction f = kernel("dynamic");
    unsigned bytes = 48 << 10;
    void *params[] = {&words.device, &bytes};
    OK_CU(cu.cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, bytes, NULL, params, NULL));
    assert_int_equal(take_sum(), 42);
    bytes = (unsigned)device_attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
    FAILS_CU(INVALID_VALUE, cu.cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, bytes, NULL, params, NULL));
    OK_CU(cu.cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)bytes));
    OK_CU(cu.cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, bytes, NULL, params, NULL));
    assert_int_equal(take_sum(), 42);
    FAILS_CU(INVALID_VALUE, cu.cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, bytes + 1, NULL, params, NULL));
}

TEST(a_block_must_fit_the_shape_its_function_requires) {
    begin();
    CUfunction f = kernel("required"), bounded = kernel("bounded");
    void *params[] = {&words.device};
    FAILS_CU(INVALID_VALUE, cu.cuLaunchKernel(f, 1, 1, 1, 4, 8, 2, 0, NULL, params, NULL));
    OK_CU(cu.cuLaunchKernel(f, 3, 1, 1, 8, 4, 2, 0, NULL, params, NULL));
    assert_int_equal(take_sum(), 8);
    MEMBERS(words, (host[1], 4), (host[2], 2), (host[3], 3 * 64));
    words.host[1] = words.host[2] = words.host[3] = 0;
    /* A single thread stands for it. */
    OK_CU(cu.cuLaunchKernel(f, 2, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    assert_int_equal(take_sum(), 8);
    MEMBERS(words, (host[1], 4), (host[2], 2), (host[3], 2 * 64));
    OK_CU(cu.cuLaunchKernel(bounded, 1, 1, 1, 64, 1, 1, 0, NULL, NULL, NULL));
    FAILS_CU(INVALID_VALUE, cu.cuLaunchKernel(bounded, 1, 1, 1, 65, 1, 1, 0, NULL, NULL, NULL));
    OK_CU(cu.cuCtxSynchronize());
}

/* One by one, and each with a value that is taken. */
TEST(a_kernel_runs_with_each_launch_attribute) {
    begin();
    unsigned a = 1;
    uint64_t b = 0;
    void *params[] = {&words.device, &a, &b};
    CUlaunchAttribute list[] = {
        {.id = CU_LAUNCH_ATTRIBUTE_IGNORE},
        {.id = CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW},
        {.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value = {.cooperative = 1}},
        {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE},
        {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
         .value = {.programmaticStreamSerializationAllowed = 1}},
        {.id = CU_LAUNCH_ATTRIBUTE_PRIORITY, .value = {.priority = -1}},
        {.id = CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, .value = {.memSyncDomainMap = {0, 1}}},
        {.id = CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN,
         .value = {.memSyncDomain = CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE}},
        {.id = CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
         .value = {.sharedMemCarveout = 50}},
    };
    CUstream stream = new_stream();
    for (size_t i = 0; i < COUNT(list); i++) {
        CUlaunchConfig config = {3, 1, 1, 7, 1, 1, 0, stream, &list[i], 1};
        CUresult result = cu.cuLaunchKernelEx(&config, kernel("add"), params, NULL);
        if (result != CUDA_SUCCESS || take_sum() != 21)
            fail_msg("with attribute %d: %d", (int)list[i].id, (int)result);
    }
    /* This one is of graphs' nodes. */
    CUlaunchAttribute updatable = {.id = CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE};
    CUlaunchConfig node = {3, 1, 1, 7, 1, 1, 0, stream, &updatable, 1};
    FAILS_CU(NOT_SUPPORTED, cu.cuLaunchKernelEx(&node, kernel("add"), params, NULL));
    /* This one is of streams. */
    CUlaunchAttribute policy = {.id = CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY,
                                .value = {.syncPolicy = CU_SYNC_POLICY_YIELD}};
    CUlaunchConfig config = {3, 1, 1, 7, 1, 1, 0, stream, &policy, 1};
    FAILS_CU(INVALID_VALUE, cu.cuLaunchKernelEx(&config, kernel("add"), params, NULL));
}

/* What a kernel declares is known beforehand: the limit does not bound it. */
TEST(local_memory_may_exceed_the_stack_limit) {
    begin();
    int bytes;
    unsigned last = 65536 - 4;
    void *params[] = {&words.device, &last};
    size_t before = MADE_CU(size_t, cuCtxGetLimit, CU_LIMIT_STACK_SIZE);
    OK_CU(cu.cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 1024));
    OK_CU(cu.cuFuncGetAttribute(&bytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, kernel("locals")));
    assert_true(bytes >= 65536);
    OK_CU(cu.cuLaunchKernel(kernel("locals"), 2, 1, 1, 64, 1, 1, 0, NULL, params, NULL));
    assert_int_equal(take_sum(), 63 * 64); /* of the numbers of each block's threads, twice */
    OK_CU(cu.cuCtxSetLimit(CU_LIMIT_STACK_SIZE, before));
}

/* Nor does it bound calls without recursion, whose depth is known: a launch raises it. */
TEST(a_launch_raises_the_stack_limit_to_what_its_calls_need) {
    begin();
    int bytes;
    unsigned n = 3996;
    void *params[] = {&words.device, &n};
    size_t before = MADE_CU(size_t, cuCtxGetLimit, CU_LIMIT_STACK_SIZE);
    OK_CU(cu.cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 1024));
    OK_CU(cu.cuFuncGetAttribute(&bytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, kernel("twice")));
    assert_in_range(bytes, 8000, 9000);
    assert_int_equal(MADE_CU(size_t, cuCtxGetLimit, CU_LIMIT_STACK_SIZE), 1024);
    OK_CU(cu.cuLaunchKernel(kernel("twice"), 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    assert_int_equal(MADE_CU(size_t, cuCtxGetLimit, CU_LIMIT_STACK_SIZE), (bytes + 15) & ~15);
    assert_int_equal(take_sum(), 2 * 3996);
    OK_CU(cu.cuCtxSetLimit(CU_LIMIT_STACK_SIZE, before)); /* it may be lowered again */
    assert_int_equal(MADE_CU(size_t, cuCtxGetLimit, CU_LIMIT_STACK_SIZE), before);
}

/* Frames of recursion take of the stack limit, which may be raised at any time. */
TEST(calls_use_the_configured_stack_size) {
    begin();
    unsigned n = 20;
    void *params[] = {&words.device, &n};
    size_t before = MADE_CU(size_t, cuCtxGetLimit, CU_LIMIT_STACK_SIZE);
    OK_CU(cu.cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 128 << 10));
    OK_CU(cu.cuLaunchKernel(kernel("calls"), 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    assert_int_equal(take_sum(), 210);
    OK_CU(cu.cuCtxSetLimit(CU_LIMIT_STACK_SIZE, before));
}

TEST(a_multi_device_launch_may_have_one_device) {
    if (!device_attribute(CU_DEVICE_ATTRIBUTE_COOPERATIVE_MULTI_DEVICE_LAUNCH))
        SKIP("the device has no cooperative launches on several devices");
    begin();
    unsigned a = 2;
    uint64_t b = 3;
    void *params[] = {&words.device, &a, &b};
    CUstream stream = new_stream();
    CUDA_LAUNCH_PARAMS one = {kernel("add"), 2, 1, 1, 4, 1, 1, 0, stream, params};
    for (unsigned flags = 0; flags < 4; flags++) {
        OK_CU(cu.cuLaunchCooperativeKernelMultiDevice(&one, 1, flags));
        OK_CU(cu.cuStreamSynchronize(stream));
        assert_int_equal(take_sum(), 40);
    }
}

static struct part {
    CUcontext context;
    CUmodule module;
    CUstream stream;
    CUdeviceptr sum;
    CUDA_LAUNCH_PARAMS params;
    void *list[3];
} parts[2];

static void make_part(int device, unsigned *a, uint64_t *b) {
    struct part *part = &parts[device];
    CUdevice number = MADE_CU(CUdevice, cuDeviceGet, device);
    OK_CU(cu.cuDevicePrimaryCtxRetain(&part->context, number));
    OK_CU(cu.cuCtxSetCurrent(part->context));
    OK_CU(cu.cuModuleLoadData(&part->module, text));
    OK_CU(cu.cuStreamCreate(&part->stream, CU_STREAM_NON_BLOCKING));
    OK_CU(cu.cuMemAlloc_v2(&part->sum, 4));
    set_words(part->sum, 0, 1);
    part->list[0] = &part->sum, part->list[1] = a, part->list[2] = b;
    part->params = (CUDA_LAUNCH_PARAMS){NULL, 3, 1, 1, 5, 1, 1, 0, part->stream, part->list};
    OK_CU(cu.cuModuleGetFunction(&part->params.function, part->module, "add"));
    OK_CU(cu.cuFuncLoad(part->params.function));
}

static unsigned end_part(int device) {
    struct part *part = &parts[device];
    unsigned sum = 0;
    CUdevice number = MADE_CU(CUdevice, cuDeviceGet, device);
    OK_CU(cu.cuCtxSetCurrent(part->context));
    OK_CU(cu.cuStreamSynchronize(part->stream));
    OK_CU(cu.cuMemcpyDtoH_v2(&sum, part->sum, 4));
    DESTROY_CU(part->sum, part->stream, part->module);
    OK_CU(cu.cuDevicePrimaryCtxRelease_v2(number));
    return sum;
}

/* One call launches a part on each. */
TEST_WHERE(a_multi_device_launch_runs_on_every_device, NEEDS_DEVICES(2)) {
    if (!device_attribute(CU_DEVICE_ATTRIBUTE_COOPERATIVE_MULTI_DEVICE_LAUNCH))
        SKIP("the devices have no cooperative launches on several devices");
    kernels_open(text);
    unsigned a = 2;
    uint64_t b = 5;
    make_part(0, &a, &b);
    make_part(1, &a, &b);
    CUDA_LAUNCH_PARAMS list[] = {parts[0].params, parts[1].params};
    OK_CU(cu.cuLaunchCooperativeKernelMultiDevice(list, 2, 0));
    OK_CU(cu.cuLaunchCooperativeKernelMultiDevice(list, 2, 3));
    list[1] = list[0];
    FAILS_CU(INVALID_VALUE, cu.cuLaunchCooperativeKernelMultiDevice(list, 2, 0));
    unsigned second = end_part(1), first = end_part(0);
    OK_CU(cu.cuCtxSetCurrent(ctx));
    assert_int_equal(first, 2 * 15 * 7);
    assert_int_equal(second, 2 * 15 * 7);
}

/* The buffer of printf: not for other limits, and not in other contexts. */
TEST(the_printf_buffer_size_is_fixed_at_its_first_use) {
    static const char printing[] = KERNELS_HEAD
        ".extern .func (.param .b32 res) vprintf (.param .b64 form, .param .b64 values);\n"
        ".global .align 1 .b8 form[3] = {35, 10, 0};\n"
        ".visible .entry probe() { ret; }\n"
        ".visible .entry prints() { .reg .b64 %d<2>; .reg .b32 %r<2>; mov.u64 %d1, form;\n"
        "cvta.global.u64 %d1, %d1; { .param .b64 a; .param .b64 b; .param .b32 r;\n"
        "st.param.b64 [a], %d1; st.param.b64 [b], 0; call.uni (r), vprintf, (a, b);\n"
        "ld.param.b32 %r1, [r]; } ret; }\n";
    kernels_open(printing);
    size_t bytes = MADE_CU(size_t, cuCtxGetLimit, CU_LIMIT_PRINTF_FIFO_SIZE);
    OK_CU(cu.cuCtxSetLimit(CU_LIMIT_PRINTF_FIFO_SIZE, bytes));
    OK_CU(cu.cuLaunchKernel(kernel("prints"), 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    OK_CU(cu.cuCtxSynchronize());
    FAILS_CU(INVALID_VALUE, cu.cuCtxSetLimit(CU_LIMIT_PRINTF_FIFO_SIZE, bytes));
    OK_CU(cu.cuCtxGetLimit(&bytes, CU_LIMIT_STACK_SIZE));
    OK_CU(cu.cuCtxSetLimit(CU_LIMIT_STACK_SIZE, bytes));
}

TEST(the_device_attributes_report_launch_support) {
    kernels_open(text);
    assert_int_equal(device_attribute(CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH), 1);
    assert_int_equal(device_attribute(CU_DEVICE_ATTRIBUTE_COOPERATIVE_MULTI_DEVICE_LAUNCH), 1);
    assert_int_equal(device_attribute(CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH), 1);
    assert_int_equal(device_attribute(CU_DEVICE_ATTRIBUTE_UNIFIED_FUNCTION_POINTERS), 1);
    static const char *const launches[] = {"cuLaunch", "cuLaunchKernelEx_ptsz",
                                           "cuLaunchCooperativeKernelMultiDevice"};
    for (size_t i = 0; soft && i < COUNT(launches); i++)
        assert_int_not_equal(soft->function_state(launches[i], NULL), SOFTGPU_FUNCTION_REFUSED);
}
