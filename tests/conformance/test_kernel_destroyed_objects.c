/* What ends while a kernel runs: its module, its context, its stream, its process. */
#include "kernels.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

static const char text[] = KERNELS_HEAD
    ".visible .entry probe() { ret; }\n"
    ".visible .global .u32 own = 5;\n"
    /* waits until p[0] is not 0, then p[1] = the module's variable + 1 */
    ".visible .entry wait_for(.param .u64 p) {\n"
    ".reg .pred %q; .reg .b32 %r<3>; .reg .b64 %d<2>; ld.param.u64 %d1, [p];\n"
    "AGAIN: ld.acquire.sys.global.u32 %r1, [%d1]; setp.eq.u32 %q, %r1, 0; @%q bra AGAIN;\n"
    "ld.global.u32 %r2, [own]; add.u32 %r2, %r2, 1; st.release.sys.global.u32 [%d1+4], %r2;\n"
    "ret; }\n"
    /* its first thread looks at p[0] for all of the block */
    ".visible .entry wait_together(.param .u64 p) {\n"
    ".reg .pred %q; .reg .b32 %r<3>; .reg .b64 %d<2>; .shared .u32 seen;\n"
    "ld.param.u64 %d1, [p]; mov.u32 %r1, %tid.x;\n"
    "AGAIN: setp.ne.u32 %q, %r1, 0; @%q bra ALL;\n"
    "ld.acquire.sys.global.u32 %r2, [%d1]; st.shared.u32 [seen], %r2;\n"
    "ALL: bar.sync 0; ld.shared.u32 %r2, [seen]; bar.sync 0;\n"
    "setp.eq.u32 %q, %r2, 0; @%q bra AGAIN; ret; }\n";

static struct shared_words words;

static void launch(CUstream stream) {
    void *params[] = {&words.device};
    OK_CU(cu.cuLaunchKernel(kernel("wait_for"), 1, 1, 1, 1, 1, 1, 0, stream, params, NULL));
}

/* Lets the kernel go on once the main thread is in the call under test, or about to be. */
static atomic_bool calling;

static void *release(void *unused) {
    while (!calling)
        ;
    for (int i = 0; i < 200; i++) /* some time in it, which is not needed for the result */
        sched_yield();
    __atomic_store_n(&words.host[0], 1, __ATOMIC_RELEASE);
    return NULL;
}

static pthread_t releaser(void) {
    pthread_t thread;
    calling = false;
    assert_int_equal(pthread_create(&thread, NULL, release, NULL), 0);
    return thread;
}

/* Unloading waits for the kernel, which reads a variable of the module at its end. */
TEST(unloading_a_module_waits_for_its_kernels) {
    kernels_open(text);
    words = words_make(2);
    CUstream stream = new_stream();
    launch(stream);
    pthread_t thread = releaser();
    calling = true;
    forget(kernels_module);
    OK_CU(cu.cuModuleUnload(kernels_module));
    assert_int_equal(words.host[1], 6);
    assert_int_equal(pthread_join(thread, NULL), 0);
    OK_CU(cu.cuStreamSynchronize(stream));
}

TEST(unloading_a_library_waits_for_its_kernels) {
    kernels_open(text);
    words = words_make(2);
    CUkernel wait_for;
    CUfunction function;
    void *params[] = {&words.device};
    CUlibrary library = MADE_CU(CUlibrary, cuLibraryLoadData, text, NULL, NULL, 0, NULL, NULL, 0);
    OK_CU(cu.cuLibraryGetKernel(&wait_for, library, "wait_for"));
    OK_CU(cu.cuKernelGetFunction(&function, wait_for)); /* loads it */
    CUstream stream = new_stream();
    OK_CU(cu.cuLaunchKernel((CUfunction)wait_for, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL));
    pthread_t thread = releaser();
    calling = true;
    OK_CU(cu.cuLibraryUnload(library));
    assert_int_equal(words.host[1], 6);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

/* Also of what was not launched by a stream of the program's. */
TEST(unloading_a_module_waits_for_its_graph_launches) {
    kernels_open(text);
    words = words_make(2);
    void *params[] = {&words.device};
    CUDA_KERNEL_NODE_PARAMS one = kernel_node(kernel("wait_for"), 1, 1, params);
    CUstream stream = new_stream();
    CUgraph graph = MADE_CU(CUgraph, cuGraphCreate, 0);
    (void)MADE_CU(CUgraphNode, cuGraphAddKernelNode_v2, graph, NULL, 0, &one);
    CUgraphExec exec = MADE_CU(CUgraphExec, cuGraphInstantiateWithFlags, graph, 0);
    OK_CU(cu.cuGraphLaunch(exec, stream));
    destroy_exec(exec); /* while it runs, too */
    destroy_graph(graph);
    pthread_t thread = releaser();
    calling = true;
    forget(kernels_module);
    OK_CU(cu.cuModuleUnload(kernels_module));
    assert_int_equal(words.host[1], 6);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

TEST(a_stream_may_be_destroyed_before_its_kernels_end) {
    kernels_open(text);
    words = words_make(2);
    CUstream stream = MADE_CU(CUstream, cuStreamCreate, CU_STREAM_NON_BLOCKING);
    launch(stream);
    OK_CU(cu.cuStreamDestroy_v2(stream));
    assert_int_equal(words.host[1], 0);
    __atomic_store_n(&words.host[0], 1, __ATOMIC_RELEASE);
    OK_CU(cu.cuCtxSynchronize());
    assert_int_equal(words.host[1], 6);
}

/* ---- In processes of their own --------------------------------------------------------------- */

/* softgpu ends a kernel with its context. A GPU's driver waits for it, so that there another thread
 * lets it go, once the context is about to end. */
static pthread_t helper;

static void begin_end(unsigned *memory) {
    if (soft)
        return;
    words.host = memory;
    helper = releaser();
    calling = true;
}

static void finish_end(void) {
    if (!soft)
        assert_int_equal(pthread_join(helper, NULL), 0);
}

static void *spun; /* what the kernel waits for */

static const char *spinner = "wait_for";
static unsigned spinners = 1; /* threads of its block */

/* A kernel that spins, in a new context or the primary one; 2 where none can be launched. */
static int spin(CUcontext *context, bool primary) {
    CUdevice device;
    CUfunction function;
    void *memory;
    CUdeviceptr p;
    if (cu.cuInit(0) != CUDA_SUCCESS || cu.cuDeviceGet(&device, 0) != CUDA_SUCCESS)
        return 2;
    if (primary ? cu.cuDevicePrimaryCtxRetain(context, device) != CUDA_SUCCESS ||
                      cu.cuCtxSetCurrent(*context) != CUDA_SUCCESS
                : cu.cuCtxCreate_v2(context, 0, device) != CUDA_SUCCESS)
        return 2;
    if (cu.cuModuleLoadData(&kernels_module, text) != CUDA_SUCCESS ||
        cu.cuModuleGetFunction(&function, kernels_module, spinner) != CUDA_SUCCESS ||
        cu.cuMemHostAlloc(&memory, 8, CU_MEMHOSTALLOC_DEVICEMAP) != CUDA_SUCCESS ||
        cu.cuMemHostGetDevicePointer_v2(&p, memory, 0) != CUDA_SUCCESS)
        return 2;
    memset(memory, 0, 8);
    spun = memory;
    void *params[] = {&p};
    CUresult result = cu.cuLaunchKernel(function, 1, 1, 1, spinners, 1, 1, 0, NULL, params, NULL);
    return result == CUDA_SUCCESS ? 0 : 2;
}

CHILD(destroys) {
    CUcontext context;
    int failed = spin(&context, false);
    if (failed)
        return failed;
    begin_end(spun);
    if (cu.cuCtxDestroy_v2(context) != CUDA_SUCCESS)
        return 3;
    finish_end();
    /* The device goes on. */
    CUdeviceptr p;
    if (cu.cuCtxCreate_v2(&context, 0, 0) != CUDA_SUCCESS ||
        cu.cuMemAlloc_v2(&p, 4096) != CUDA_SUCCESS)
        return 4;
    return cu.cuCtxDestroy_v2(context) == CUDA_SUCCESS ? 0 : 5;
}

CHILD(resets) {
    CUcontext context;
    CUdeviceptr p;
    int failed = spin(&context, true);
    if (failed)
        return failed;
    begin_end(spun);
    if (cu.cuDevicePrimaryCtxReset_v2(0) != CUDA_SUCCESS)
        return 3;
    finish_end();
    if (cu.cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS ||
        cu.cuCtxSetCurrent(context) != CUDA_SUCCESS || cu.cuMemAlloc_v2(&p, 4096) != CUDA_SUCCESS)
        return 4;
    return 0;
}

CHILD(leaves) {
    CUcontext context;
    int failed = spin(&context, true);
    return failed ? failed : 7; /* by return from main */
}

static void *wait_for_it(void *context) {
    (void)cu.cuCtxSetCurrent(context);
    (void)cu.cuCtxSynchronize();
    return NULL;
}

/* The same while another thread waits for the kernel. */
CHILD(leaves_a_waiter) {
    CUcontext context;
    pthread_t thread;
    int failed = spin(&context, true);
    if (failed || pthread_create(&thread, NULL, wait_for_it, context) != 0)
        return failed ? failed : 2;
    return 7;
}

/* The same with a kernel that polls between barriers. */
CHILD(leaves_barriers) {
    spinner = "wait_together";
    spinners = 256;
    return leaves_a_waiter(argc, argv);
}

static void needs_kernels(void) {
    kernels_open(text);
}

TEST(a_context_may_be_destroyed_while_a_kernel_spins) {
    needs_kernels();
    assert_int_equal(run_child("destroys", NULL), 0);
    assert_int_equal(run_child("resets", NULL), 0);
}

TEST(a_process_may_exit_while_a_kernel_spins) {
    NEEDS_SOFTGPU("how a driver ends a kernel that never ends, and when, is its own");
    needs_kernels();
    assert_int_equal(run_child("leaves", NULL), 7);
    assert_int_equal(run_child("leaves_a_waiter", NULL), 7);
    assert_int_equal(run_child("leaves_barriers", NULL), 7);
}
