/* Which stream a handle means to the memory library, on any driver: the per-thread default stream
 * of the thread that named it, and never a new stream in place of a destroyed one. */
#include "library.h"

#include <pthread.h>

static gpumem_buffer *allocate(gpumem_resource *resource, CUstream stream) {
    return NEW_BUFFER_WITH(resource, 2 * MIB, .stream = stream);
}

static bool is_mapped(CUdeviceptr address) {
    unsigned long long flags = 0;
    const CUmemLocation location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = dev};
    return cu.cuMemGetAccess(&flags, &location, address) == CUDA_SUCCESS && flags != 0;
}

static void *free_and_trim(void *buffer) {
    OK(gpumem_buffer_free(buffer, NULL));
    OK(gpumem_device_trim(device, 1));
    return NULL;
}

static void free_elsewhere(gpumem_buffer *buffer) {
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, free_and_trim, buffer), 0);
    pthread_join(thread, NULL);
}

/* Work of this thread's stream is held, and the stream of the thread that frees is idle. */
TEST(a_free_in_another_thread_waits_for_the_per_thread_stream) {
    open_library();
    gpumem_resource *resource = NEW_VIRTUAL();
    gpumem_buffer *buffer = allocate(resource, CU_STREAM_PER_THREAD);
    CUdeviceptr address = gpumem_buffer_pointer(buffer);
    struct gate gate = hold(CU_STREAM_PER_THREAD);
    OK(gpumem_buffer_fill(buffer, 0, 2 * MIB, 1, CU_STREAM_PER_THREAD));
    free_elsewhere(buffer);
    assert_true(is_mapped(address));
    assert_int_equal(device_stats().deferred_frees, 1);
    gate_release(&gate);
    OK_CU(cu.cuStreamSynchronize(CU_STREAM_PER_THREAD)); /* no fault */
    OK(gpumem_device_trim(device, 1));
    assert_false(is_mapped(address));
    OK(gpumem_resource_destroy(resource));
}

#define TRIES 1024 /* with two GPUs, NVIDIA's driver once took more than 64 */

/* Destroys the stream and makes others until one has its value, which is returned. */
static CUstream make_again(CUstream destroyed) {
    CUstream made[TRIES], found = NULL;
    int count = 0;
    OK_CU(cu.cuStreamDestroy_v2(destroyed));
    while (!found && count < TRIES) {
        OK_CU(cu.cuStreamCreate(&made[count], CU_STREAM_NON_BLOCKING));
        found = made[count] == destroyed ? destroyed : NULL;
        count++;
    }
    for (int i = 0; i < count; i++)
        if (made[i] != found)
            OK_CU(cu.cuStreamDestroy_v2(made[i]));
    return found;
}

/* What the old one ran is not known any more, so that its memory is kept until all is done. */
TEST(a_free_does_not_query_a_new_stream_with_a_reused_handle) {
    CUstream stream = MADE_CU(CUstream, cuStreamCreate, CU_STREAM_NON_BLOCKING);
    OK_CU(cu.cuStreamDestroy_v2(stream));
    OK_CU(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CUstream again = make_again(stream);
    if (!again)
        SKIP("this driver does not use the values of streams again");
    OK_CU(cu.cuStreamDestroy_v2(again));
    OK_CU(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    open_library();
    gpumem_resource *resource = NEW_VIRTUAL();
    gpumem_buffer *buffer = allocate(resource, stream);
    CUdeviceptr address = gpumem_buffer_pointer(buffer);
    again = make_again(stream);
    if (!again) { /* a buffer cannot be freed whose stream is not there at all */
        forget(device);
        SKIP("this driver used the value of a stream again once, but not a second time");
    }
    OK(gpumem_buffer_free(buffer, NULL));
    assert_true(is_mapped(address));
    assert_int_equal(device_stats().deferred_frees, 1);
    OK(gpumem_device_trim(device, 0));
    assert_true(is_mapped(address));
    OK(gpumem_device_trim(device, 1));
    assert_false(is_mapped(address));
    OK(gpumem_resource_destroy(resource));
    OK_CU(cu.cuStreamDestroy_v2(again));
    close_library();
}
