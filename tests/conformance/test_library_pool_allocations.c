/* Many pairs of allocation and free from a device pool: whatever context is current, and beside
 * captures, which they leave alone. */
#include "library.h"

#include <pthread.h>

#define PAIRS 400

static gpumem_resource *pool;
static CUstream stream;

static void begin(void) {
    open_library();
    pool = NEW_POOL(.pool = GPUMEM_POOL_OWN);
    OK(gpumem_stream_create(device, NULL, &stream));
}

static void finish(void) {
    gpumem_stats stats = device_stats();
    MEMBERS(stats, (allocations, 0), (quarantined, 0));
    DESTROY(stream, pool);
}

static void pairs(CUstream on) {
    for (int i = 0; i < PAIRS; i++) {
        gpumem_buffer *buffer = NEW_BUFFER_WITH(pool, 4096 + (size_t)i, .stream = on);
        assert_true(gpumem_buffer_pointer(buffer) != 0);
        OK(gpumem_buffer_free(buffer, NULL));
    }
}

static void bytes_arrive(void) {
    unsigned char back = 0;
    gpumem_buffer *buffer = NEW_BUFFER_WITH(pool, MIB, .stream = stream);
    OK(gpumem_buffer_fill(buffer, 0, MIB, 0x6b, stream));
    OK(gpumem_buffer_read(buffer, MIB - 1, &back, 1, stream));
    OK(gpumem_stream_synchronize(device, stream));
    assert_int_equal(back, 0x6b);
    OK(gpumem_buffer_free(buffer, NULL));
}

/* On the program's stream, the default stream by two names, and the thread's own. */
static void on_all_streams(void) {
    pairs(stream);
    pairs(NULL);
    pairs(CU_STREAM_LEGACY);
    pairs(CU_STREAM_PER_THREAD);
    bytes_arrive();
}

TEST(any_context_may_be_current_during_allocation_and_free) {
    CUcontext before = NULL, other = NULL, popped = NULL, now = NULL;
    begin();
    on_all_streams();
    OK_CU(cu.cuCtxGetCurrent(&before));
    OK_CU(cu.cuCtxSetCurrent(NULL));
    on_all_streams();
    OK_CU(cu.cuCtxGetCurrent(&now));
    assert_null(now);
    OK_CU(cu.cuCtxCreate_v2(&other, 0, dev));
    on_all_streams();
    OK_CU(cu.cuCtxGetCurrent(&now));
    assert_ptr_equal(now, other);
    OK_CU(cu.cuCtxPopCurrent_v2(&popped));
    OK_CU(cu.cuCtxDestroy_v2(other));
    OK_CU(cu.cuCtxSetCurrent(before));
    finish();
}

static void *pairs_elsewhere(void *unused) {
    pairs(stream);
    return NULL;
}

/* In every mode; in the thread that captures, and in another one. */
TEST(allocation_and_free_do_not_invalidate_captures) {
    static const CUstreamCaptureMode modes[] = {CU_STREAM_CAPTURE_MODE_GLOBAL,
                                                CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
                                                CU_STREAM_CAPTURE_MODE_RELAXED};
    begin();
    for (size_t i = 0; i < COUNT(modes); i++) {
        pthread_t thread;
        CUstream captured = MADE_CU(CUstream, cuStreamCreate, CU_STREAM_NON_BLOCKING);
        OK_CU(cu.cuStreamBeginCapture_v2(captured, modes[i]));
        pairs(stream);
        assert_int_equal(pthread_create(&thread, NULL, pairs_elsewhere, NULL), 0);
        pthread_join(thread, NULL);
        CUgraph graph = GOT_CU(CUgraph, cuStreamEndCapture, captured);
        DESTROY_CU(graph, captured);
    }
    finish();
}

/* Within the capture they are nodes of its graph, and nothing is taken from the pool. */
TEST(allocations_and_frees_of_a_captured_stream_become_nodes) {
    begin();
    pairs(stream);
    OK(gpumem_stream_synchronize(device, stream));
    OK_CU(cu.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    pairs(stream);
    CUgraph graph = GOT_CU(CUgraph, cuStreamEndCapture, stream);
    assert_int_equal(GOT_CU(size_t, cuGraphGetNodes, graph, NULL), 2 * PAIRS);
    OK_CU(cu.cuGraphDestroy(graph));
    bytes_arrive();
    finish();
}
