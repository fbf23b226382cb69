/* A handle is not a stream: each thread has its own per-thread default stream, and the values of
 * destroyed ones are used again. */
#include "library_test.h"
#include "memory/core/objects.h"

#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>

static gpumem_resource *big, *pool;

static int setup(void **state) {
    if (open_device(state) != 0)
        return -1;
    return gpumem_virtual_resource_create(device, NULL, &big) == GPUMEM_OK &&
                   gpumem_device_pool_resource_create(
                       device, GPUMEM_DEVICE_POOL_OPTIONS(.pool = GPUMEM_POOL_OWN), &pool) ==
                       GPUMEM_OK
               ? 0
               : -1;
}

static int teardown(void **state) {
    if (gpumem_resource_destroy(big) != GPUMEM_OK || gpumem_resource_destroy(pool) != GPUMEM_OK) {
        print_error("%s\n", gpumem_last_error()->message);
        return -1;
    }
    return close_device(state);
}

EACH_TEST(setup, teardown);

static gpumem_buffer *allocate_for(gpumem_resource *resource, CUstream stream) {
    return NEW_BUFFER_WITH(resource, 2 * MIB, .stream = stream);
}

static void push(void) {
    OK_CU(cu->cuCtxPushCurrent_v2(gpumem_device_context(device)));
}

static void pop(void) {
    CUcontext before;
    OK_CU(cu->cuCtxPopCurrent_v2(&before));
}

/* ---- The per-thread default stream ----------------------------------------------------------- */

/* Another thread frees what this one has allocated. */
static void *free_it(void *buffer) {
    gpumem_resource *resource = gpumem_buffer_resource(buffer);
    OK(gpumem_buffer_free(buffer, NULL));
    OK(gpumem_device_trim(device, 1));
    FAILS(BUSY, gpumem_resource_destroy(resource));
    SAYS("only the thread that named its per-thread default stream can check it");
    return NULL;
}

static void free_elsewhere(gpumem_buffer *buffer) {
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, free_it, buffer), 0);
    pthread_join(thread, NULL);
}

/* This thread's per-thread stream waits for a gate. */
static struct gate hold_per_thread_stream(void) {
    struct gate gate = gate_with_stream();
    push();
    CUdeviceptr address = MADE_CU(CUdeviceptr, cuMemHostGetDevicePointer_v2, gate.flag, 0);
    OK_CU(cu->cuStreamWaitValue32_v2(CU_STREAM_PER_THREAD, address, 1, CU_STREAM_WAIT_VALUE_EQ));
    pop();
    return gate;
}

TEST(a_free_by_another_thread_waits_for_the_per_thread_stream) {
    struct gate gate = hold_per_thread_stream();
    gpumem_buffer *buffer = allocate_for(big, CU_STREAM_PER_THREAD);
    CUdeviceptr address = gpumem_buffer_pointer(buffer);
    OK(gpumem_buffer_fill(buffer, 0, 2 * MIB, 1, CU_STREAM_PER_THREAD));
    free_elsewhere(buffer); /* its own per-thread stream is idle */
    assert_true(is_mapped(address));
    assert_int_equal(device_stats().deferred_frees, 1);
    gate_drain(&gate);
    synchronize(CU_STREAM_PER_THREAD); /* no fault: the fill found its memory */
    OK(gpumem_device_trim(device, 0));
    assert_false(is_mapped(address));
    assert_int_equal(device_stats().deferred_frees, 0);
    gate_remove(&gate);
}

/* In stream order: not in that of the thread that frees. */
TEST(pool_memory_is_freed_on_the_allocating_threads_stream) {
    struct gate gate = hold_per_thread_stream();
    uint64_t frees = soft->call_count("cuMemFreeAsync");
    gpumem_buffer *buffer = allocate_for(pool, CU_STREAM_PER_THREAD);
    OK(gpumem_buffer_fill(buffer, 0, 2 * MIB, 1, CU_STREAM_PER_THREAD));
    free_elsewhere(buffer);
    assert_int_equal(soft->call_count("cuMemFreeAsync"), frees);
    assert_int_equal(device_stats().deferred_frees, 1);
    OK(gpumem_device_trim(device, 0)); /* marks it */
    assert_int_equal(soft->call_count("cuMemFreeAsync"), frees);
    gate_drain(&gate);
    synchronize(CU_STREAM_PER_THREAD);
    OK(gpumem_device_trim(device, 0));
    assert_int_equal(soft->call_count("cuMemFreeAsync"), frees + 1);
    assert_int_equal(device_stats().deferred_frees, 0);
    gate_remove(&gate);
}

TEST(a_free_by_the_allocating_thread_is_not_deferred) {
    gpumem_buffer *buffer = allocate_for(big, CU_STREAM_PER_THREAD);
    gpumem_buffer *pooled = allocate_for(pool, CU_STREAM_PER_THREAD);
    OK(gpumem_buffer_free(buffer, CU_STREAM_PER_THREAD));
    OK(gpumem_buffer_free(pooled, NULL));
    assert_int_equal(device_stats().deferred_frees, 0);
}

static struct {
    gpumem_buffer *buffer;
    int task;
} ended;

static void *allocate_and_end(void *unused) {
    ended.task = (int)syscall(SYS_gettid);
    ended.buffer = allocate_for(big, CU_STREAM_PER_THREAD);
    return NULL;
}

/* A joined thread is the kernel's for a moment longer. */
static void wait_until_gone(int task) {
    while (syscall(SYS_tgkill, getpid(), task, 0) == 0)
        sched_yield();
}

/* Nobody can mark the stream of a thread that has ended: who waits explicitly waits for all. */
TEST(a_free_waits_for_the_context_if_its_thread_has_ended) {
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, allocate_and_end, NULL), 0);
    pthread_join(thread, NULL);
    wait_until_gone(ended.task);
    gpumem_buffer *buffer = ended.buffer;
    CUdeviceptr address = gpumem_buffer_pointer(buffer);
    OK(gpumem_buffer_free(buffer, NULL));
    OK(gpumem_device_trim(device, 0));
    assert_true(is_mapped(address));
    OK(gpumem_device_trim(device, 1));
    assert_false(is_mapped(address));
}

/* ---- Handles that are used again ------------------------------------------------------------- */

static unsigned long long number;

static CUresult count_as(CUstream stream, unsigned long long *id) {
    *id = number;
    return CUDA_SUCCESS;
}

/* softgpu never gives a value out twice; so the driver's number for the stream tells a story. */
TEST(a_reused_stream_handle_is_a_different_stream) {
    gpumem_driver_api told = *cu;
    CUstream stream = NEW_STREAM();
    told.cuStreamGetId = count_as;
    device->cu = &told;
    number = 1;
    gpumem_buffer *same = allocate_for(big, stream), *other = allocate_for(big, stream);
    CUdeviceptr address = gpumem_buffer_pointer(other);
    OK(gpumem_buffer_free(same, NULL));
    assert_int_equal(device_stats().deferred_frees, 0);
    number = 2;
    OK(gpumem_buffer_free(other, NULL)); /* the new stream is idle, and says nothing of the old */
    OK(gpumem_device_trim(device, 0));
    assert_true(is_mapped(address));
    assert_int_equal(device_stats().deferred_frees, 1);
    OK(gpumem_device_trim(device, 1)); /* the whole context is done */
    assert_false(is_mapped(address));
    device->cu = cu;
    OK(gpumem_stream_destroy(device, stream));
}

/* Its work still runs, on memory that must stay. */
TEST(a_destroyed_stream_does_not_count_as_idle) {
    struct gate gate = gate_with_stream();
    gpumem_buffer *buffer = allocate_for(big, gate.stream);
    CUdeviceptr address = gpumem_buffer_pointer(buffer);
    OK(gpumem_buffer_fill(buffer, 0, 2 * MIB, 1, gate.stream));
    DESTROY(gate.stream, buffer);
    OK(gpumem_device_trim(device, 0));
    assert_true(is_mapped(address));
    __atomic_store_n(gate.flag, 1, __ATOMIC_SEQ_CST);
    OK(gpumem_device_trim(device, 1));
    assert_false(is_mapped(address));
    push();
    OK_CU(cu->cuCtxSynchronize()); /* no fault */
    OK_CU(cu->cuMemFreeHost(gate.flag));
    pop();
}

/* After the free the owner may destroy it. */
TEST(a_stream_is_not_queried_after_the_free) {
    struct gate gate = gate_with_stream();
    gpumem_buffer *buffer = allocate_for(big, gate.stream);
    gpumem_buffer *pooled = allocate_for(pool, NULL);
    OK(gpumem_buffer_use(pooled, gate.stream));
    DESTROY(buffer, pooled);
    assert_int_equal(device_stats().deferred_frees, 2);
    OK(gpumem_stream_destroy(device, gate.stream));
    uint64_t queries = soft->call_count("cuStreamQuery");
    uint64_t captures = soft->call_count("cuStreamGetCaptureInfo");
    OK(gpumem_device_trim(device, 0));
    __atomic_store_n(gate.flag, 1, __ATOMIC_SEQ_CST);
    OK(gpumem_device_trim(device, 1));
    assert_int_equal(soft->call_count("cuStreamQuery"), queries);
    assert_int_equal(soft->call_count("cuStreamGetCaptureInfo"), captures);
    assert_int_equal(device_stats().deferred_frees, 0);
    push();
    OK_CU(cu->cuMemFreeHost(gate.flag));
    pop();
}
