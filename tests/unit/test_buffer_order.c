/* A stream that is ordered after all others that use a buffer. */
#include "library_test.h"

EACH_TEST(open_device, close_device);

static void order_streams(gpumem_resource *resource) {
    struct gate gate = gate_with_stream();
    CUstream second = NEW_STREAM(), target = NEW_STREAM();
    gpumem_buffer *buffer = NEW_BUFFER_WITH(resource, MIB, .stream = second);
    gpumem_buffer *view = NEW_VIEW(buffer, 0, MIB);
    OK(gpumem_buffer_use(buffer, gate.stream));
    OK(gpumem_buffer_fill(buffer, 0, MIB, 1, gate.stream)); /* held back */
    OK(gpumem_buffer_order(view, target));
    OK(gpumem_buffer_fill(buffer, 0, MIB, 2, target));
    bool done = true;
    OK(gpumem_stream_query(device, target, &done));
    assert_false(done);                      /* it waits for the held stream */
    OK(gpumem_buffer_order(buffer, target)); /* after itself: nothing more to wait for */
    gate_drain(&gate);
    synchronize(target);
    assert_int_equal(byte_of(buffer, MIB - 1), 2);
    /* The target is named: a free waits for it. */
    use_context();
    gate_hold(&gate, target);
    leave_context();
    OK(gpumem_buffer_free(view, NULL));
    OK(gpumem_buffer_free(buffer, second));
    assert_int_equal(device_stats().deferred_frees > 0 || properties_of(resource).stream_ordered,
                     1);
    gate_release(&gate);
    synchronize(target);
    DESTROY(second, target);
    gate_remove(&gate);
}

TEST(a_stream_waits_for_all_that_use_a_buffer) {
    gpumem_resource *pool = NEW_POOL();
    gpumem_resource *each[] = {NEW_VIRTUAL(), pool, NEW_PINNED(), NEW_CACHING(pool)};
    for (size_t i = 0; i < COUNT(each); i++)
        order_streams(each[i]);
    DESTROY(each[3], each[0], each[2], pool);
}

TEST(streams_that_cannot_be_waited_for_are_named) {
    gpumem_resource *resource = NEW_VIRTUAL();
    CUstream user = NEW_STREAM(), target = NEW_STREAM();
    gpumem_buffer *buffer = NEW_BUFFER_WITH(resource, MIB, .stream = user);
    FAILS(INVALID_ARGUMENT, gpumem_buffer_order(NULL, target));
    FAILS_SAYING(INVALID_ARGUMENT, "NONE", gpumem_buffer_order(buffer, GPUMEM_STREAM_NONE));
    CUgraph graph;
    use_context();
    OK_CU(cu->cuStreamBeginCapture_v2(target, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    FAILS_SAYING(BUSY, "capturing", gpumem_buffer_order(buffer, target));
    OK_CU(cu->cuStreamEndCapture(target, &graph)); /* the capture is intact */
    OK_CU(cu->cuGraphDestroy(graph));
    OK_CU(cu->cuStreamBeginCapture_v2(user, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    FAILS(BUSY, gpumem_buffer_order(buffer, target));
    OK_CU(cu->cuStreamEndCapture(user, &graph));
    OK_CU(cu->cuGraphDestroy(graph));
    leave_context();
    OK(gpumem_buffer_order(buffer, target));
    DESTROY(buffer, resource, user, target);
}
