/* A thread that is cancelled within a call of the library ends the call first. */
#include "library_test.h"
#include "temporary.h"

#include <fcntl.h>
#include <gpumem/load.h>
#include <gpumem/share.h>
#include <gpumem/virtual.h>
#include <gpumem/vmm.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/socket.h>

#define FILE_BYTES (3 * MIB + 5)

static char path[TEMPORARY_ROOM];
static gpumem_resource *memory;

/* ---- A driver whose calls are cancellation points -------------------------------------------- */

static CUresult(CUDAAPI *get_current)(CUcontext *);
static CUresult(CUDAAPI *make)(CUmemGenericAllocationHandle *, size_t, const CUmemAllocationProp *,
                               unsigned long long);

/* Nearly every call of the library asks what is current. */
static CUresult CUDAAPI get_current_or_end(CUcontext *context) {
    pthread_testcancel();
    return get_current(context);
}

static CUresult CUDAAPI make_or_end(CUmemGenericAllocationHandle *handle, size_t size,
                                    const CUmemAllocationProp *prop, unsigned long long flags) {
    pthread_testcancel();
    return make(handle, size, prop, flags);
}

static int begin(void **state) {
    int fd = temporary_file(path, "gpumem-cancelled");
    if (fd < 0 || ftruncate(fd, FILE_BYTES) != 0 || close(fd) != 0 || open_device(state) != 0)
        return -1;
    gpumem_driver_api *table = (gpumem_driver_api *)(uintptr_t)cu;
    get_current = table->cuCtxGetCurrent;
    table->cuCtxGetCurrent = get_current_or_end;
    make = table->cuMemCreate;
    table->cuMemCreate = make_or_end;
    return gpumem_virtual_resource_create(device, NULL, &memory) == GPUMEM_OK ? 0 : -1;
}

static int end(void **state) {
    unlink(path);
    if (gpumem_resource_destroy(memory) != GPUMEM_OK)
        return -1;
    return close_device(state);
}

ALL_TESTS(begin, end);

/* ---- A thread with a request ----------------------------------------------------------------- */

struct thread {
    void (*run)(struct thread *);
    pthread_t id;
    bool done;
    int socket;
    gpumem_buffer *buffer;
    atomic_bool told, requested;
};

/* The request comes before the calls: the first cancellation point is the thread's end. */
static void *run_cancelled(void *argument) {
    struct thread *thread = argument;
    pthread_cancel(pthread_self());
    thread->run(thread);
    thread->done = true;
    pthread_testcancel();
    return NULL;
}

static void start(struct thread *thread, void *(*run)(void *)) {
    assert_int_equal(pthread_create(&thread->id, NULL, run, thread), 0);
}

/* It came to its end, and only there was the request heeded. */
static void expect_done(struct thread *thread) {
    void *value;
    assert_int_equal(pthread_join(thread->id, &value), 0);
    assert_true(thread->done);
    assert_ptr_equal(value, PTHREAD_CANCELED);
}

static void run_in_thread(void (*run)(struct thread *)) {
    struct thread thread = {.run = run};
    start(&thread, run_cancelled);
    expect_done(&thread);
}

/* ---- Loading --------------------------------------------------------------------------------- */

/* The request comes while the call is under way, and readers are at work. */
static int tell(void *user, const gpumem_load_progress *progress) {
    struct thread *thread = user;
    atomic_store(&thread->told, true);
    while (!atomic_load(&thread->requested))
        sched_yield();
    return 0;
}

static void *load_and_tell(void *argument) {
    struct thread *thread = argument;
    OK(gpumem_load_file(memory, path,
                        GPUMEM_LOAD_OPTIONS(.chunk_bytes = 64 * KIB, .threads = 4, .progress = tell,
                                            .user = thread),
                        &thread->buffer, NULL));
    thread->done = true;
    pthread_testcancel();
    return NULL;
}

TEST(a_load_in_a_cancelled_thread_completes) {
    struct thread thread = {0};
    OK(gpumem_device_trim(device, 1));
    char *before = soft->state_dump();
    start(&thread, load_and_tell);
    while (!atomic_load(&thread.told))
        sched_yield();
    assert_int_equal(pthread_cancel(thread.id), 0);
    atomic_store(&thread.requested, true);
    expect_done(&thread);
    assert_int_equal(gpumem_buffer_size(thread.buffer), FILE_BYTES);
    OK(gpumem_buffer_free(thread.buffer, NULL));
    OK(gpumem_device_trim(device, 1));
    SAME_STATE(before);
}

static void check_sums(struct thread *thread) {
    uint64_t of_file = 1, of_buffer = 2;
    OK(gpumem_load_file(memory, path, NULL, &thread->buffer, NULL));
    OK(gpumem_file_checksum(path, NULL, &of_file));
    OK(gpumem_buffer_checksum(thread->buffer, NULL, &of_buffer));
    assert_true(of_file == of_buffer);
    OK(gpumem_buffer_free(thread->buffer, NULL));
}

TEST_IS(checksums_in_a_cancelled_thread_complete, run_in_thread(check_sums));

/* ---- Sending and receiving ------------------------------------------------------------------- */

static void send_buffer(struct thread *thread) {
    gpumem_export *exported = NEW_EXPORT(thread->buffer);
    OK(gpumem_export_send(exported, thread->socket, NULL));
    OK(gpumem_export_destroy(exported));
}

static void receive_buffer(struct thread *thread) {
    OK(gpumem_import_receive(device, thread->socket, NULL, &thread->buffer));
}

TEST(sends_and_receives_in_cancelled_threads_complete) {
    int ends[2];
    struct thread sender = {.run = send_buffer}, receiver = {.run = receive_buffer};
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    sender.buffer = NEW_BUFFER(memory, 4 * MIB);
    sender.socket = ends[0];
    receiver.socket = ends[1];
    start(&receiver, run_cancelled);
    start(&sender, run_cancelled);
    expect_done(&sender);
    expect_done(&receiver);
    DESTROY(receiver.buffer, sender.buffer);
    close(ends[0]);
    close(ends[1]);
}

/* Who waits for the other side goes on waiting, and hears that it is gone. */
static void receive_nothing(struct thread *thread) {
    atomic_store(&thread->told, true);
    FAILS(PEER, gpumem_import_receive(device, thread->socket, NULL, &thread->buffer));
}

TEST(a_cancelled_receiver_notices_that_its_sender_left) {
    int ends[2];
    struct thread receiver = {.run = receive_nothing};
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    receiver.socket = ends[1];
    start(&receiver, run_cancelled);
    while (!atomic_load(&receiver.told))
        sched_yield();
    close(ends[0]);
    expect_done(&receiver);
    close(ends[1]);
}

/* ---- Everything else ------------------------------------------------------------------------- */

static void use_buffers(struct thread *thread) {
    char bytes[16] = "bytes";
    gpumem_resource *pinned = NEW_PINNED();
    gpumem_resource *managed = NEW_MANAGED();
    gpumem_buffer *buffer = NEW_BUFFER_WITH(memory, MIB, .capacity = 8 * MIB);
    gpumem_buffer *other = NEW_BUFFER(pinned, MIB);
    OK(gpumem_buffer_write(buffer, 0, bytes, sizeof bytes, NULL));
    OK(gpumem_buffer_read(buffer, 0, bytes, sizeof bytes, NULL));
    OK(gpumem_buffer_copy(other, 0, buffer, 0, sizeof bytes, NULL));
    OK(gpumem_buffer_fill(buffer, 0, sizeof bytes, 1, NULL));
    OK(gpumem_buffer_use(buffer, NULL));
    OK(gpumem_buffer_grow(buffer, 6 * MIB, NULL));
    OK(gpumem_buffer_shrink(buffer, 2 * MIB, NULL));
    OK(gpumem_buffer_hold(buffer));
    OK(gpumem_buffer_release(buffer));
    DESTROY(buffer, other);
    OK(gpumem_resource_trim(pinned, 0));
    DESTROY(pinned, managed);
    OK(gpumem_device_trim(device, 1));
}

static void use_streams(struct thread *thread) {
    CUstream stream = NEW_STREAM();
    CUevent first = MADE(CUevent, gpumem_event_create, device, GPUMEM_EVENT_OPTIONS(.timing = 1));
    CUevent last = MADE(CUevent, gpumem_event_create, device, GPUMEM_EVENT_OPTIONS(.timing = 1));
    OK(gpumem_event_record(device, first, stream));
    OK(gpumem_event_record(device, last, stream));
    OK(gpumem_stream_wait_event(device, stream, last));
    OK(gpumem_event_synchronize(device, last));
    OK(gpumem_stream_synchronize(device, stream));
    bool done = MADE(bool, gpumem_stream_query, device, stream);
    OK(gpumem_event_query(device, last, &done));
    (void)MADE(float, gpumem_event_elapsed, device, first, last);
    DESTROY(first, last, stream);
}

static void use_devices(struct thread *thread) {
    gpumem_library *again;
    gpumem_device_info info = {.size = sizeof info};
    uint64_t free_bytes, total_bytes;
    OK(gpumem_open(GPUMEM_OPEN_OPTIONS(.driver = "softgpu"), &again));
    gpumem_device *same = MADE(gpumem_device *, gpumem_device_open, again, 0);
    info = device_info(same);
    OK(gpumem_device_get_memory(same, &free_bytes, &total_bytes));
    OK(gpumem_device_close(same));
    OK(gpumem_close(again));
}

static void use_low_level(struct thread *thread) {
    gpumem_reservation *reservation;
    gpumem_physical *physical;
    gpumem_mapping *mapping;
    OK(gpumem_reservation_create(device, 2 * MIB, NULL, &reservation));
    OK(gpumem_physical_create(device, 2 * MIB, NULL, &physical));
    OK(gpumem_mapping_create(reservation, 0, physical, &mapping));
    DESTROY(mapping, physical, reservation);
}

TEST_IS(buffer_calls_are_not_cancellation_points, run_in_thread(use_buffers));
TEST_IS(stream_and_event_calls_are_not_cancellation_points, run_in_thread(use_streams));
TEST_IS(library_and_device_calls_are_not_cancellation_points, run_in_thread(use_devices));
TEST_IS(low_level_memory_calls_are_not_cancellation_points, run_in_thread(use_low_level));

BEFORE_TESTS {
    alarm(50); /* a lock that is left held would keep the next call waiting */
    return 0;
}
