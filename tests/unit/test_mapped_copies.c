/* The copies of mapped memory: right by every plan, synchronous, and waiting for nothing else. */
#include "kept_driver.h"
#include "mapped_copies.h"

#include <pthread.h>

static gpumem_resource *mapped;

static int setup(void **state) {
    gm_plans_for_tests();
    if (open_device(state) != 0)
        return -1;
    mapped = NEW_MAPPED(.method = GPUMEM_MAPPED_DESCRIPTOR, .method_strict = 1,
                        .capacity = 16 * MIB, .maximum_chunk_bytes = 2 * MIB);
    return 0;
}

AFTER(close_device) {
    OK(gpumem_resource_destroy(mapped));
    assert_int_equal(device_stats().quarantined, 0);
}

EACH_TEST(setup, after);

static gpumem_buffer *allocate(gpumem_resource *resource, size_t bytes) {
    return NEW_BUFFER(resource, bytes);
}

/* ---- Bytes ----------------------------------------------------------------------------------- */

TEST(random_copies_are_correct_by_every_plan) {
    struct copies c;
    gpumem_buffer *buffer = allocate(mapped, COPIES_ROOM);
    assert_ptr_equal(gm_engine_of(buffer), mapped->engine);
    copies_begin(&c, buffer, mapped->engine);
    copies_by_all_plans(&c, 1000);
    copies_end(&c);
    OK(gpumem_buffer_free(buffer, NULL));
}

/* Memory that needs flushes is copied and flushed, and written by the CPU alone. */
TEST(non_coherent_memory_is_copied_by_the_cpu_and_flushed) {
    struct copies c;
    gpumem_buffer *buffer = allocate(mapped, COPIES_ROOM);
    copies_begin(&c, buffer, mapped->engine);
    mapped->engine->coherent = false;
    copies_use(&c, GM_COPY_PLAIN, 1, 1);
    uint64_t before = soft->call_count("cuMemcpyHtoDAsync_v2");
    OK(gpumem_mapped_write(buffer, 0, c.pageable, 4096));
    assert_int_equal(soft->call_count("cuMemcpyHtoDAsync_v2"), before);
    before = soft->call_count("cuMemcpyDtoHAsync_v2");
    OK(gpumem_mapped_read(buffer, 0, c.pageable, 4096));
    assert_int_equal(soft->call_count("cuMemcpyDtoHAsync_v2"), before + 1);
    mapped->engine->coherent = true;
    copies_end(&c);
    OK(gpumem_buffer_free(buffer, NULL));
}

/* Over the borders of chunks, which are handles of their own. */
TEST(copies_across_chunks_are_correct) {
    gpumem_buffer *buffer = allocate(mapped, 7 * MIB);
    unsigned char *bytes = malloc(7 * MIB), *back = malloc(7 * MIB);
    for (size_t i = 0; i < 7 * MIB; i++)
        bytes[i] = (unsigned char)(i * 7 + i / 4099);
    for (uint64_t cutover = 1; cutover; cutover = cutover == 1 ? GM_COPY_NEVER : 0) {
        const struct gm_copy_plan plan = copies_plan(GM_COPY_SSE2, cutover, cutover);
        OK(gm_plans_take(mapped->engine->plans, &plan, GPUMEM_MEASURED_HERE));
        OK(fill_now(buffer, 0, 7 * MIB, 1, NULL));
        OK(gpumem_mapped_write(buffer, 3, bytes + 3, 7 * MIB - 3));
        OK(gpumem_mapped_read(buffer, 3, back + 3, 7 * MIB - 3));
        assert_memory_equal(back + 3, bytes + 3, 7 * MIB - 3);
        OK(read_now(buffer, 0, back, 7 * MIB, NULL));
        assert_int_equal(back[0] + back[1] + back[2], 3);
        assert_memory_equal(back + 3, bytes + 3, 7 * MIB - 3);
    }
    free(back);
    free(bytes);
    OK(gpumem_buffer_free(buffer, NULL));
}

/* ---- Whose plan ------------------------------------------------------------------------------ */

static uint64_t driver_copies(void) {
    return soft->call_count("cuMemcpyHtoDAsync_v2") + soft->call_count("cuMemcpyDtoHAsync_v2");
}

/* Whether a write to the buffer goes by the driver, where the plan says always. */
static bool goes_by_the_driver(gpumem_buffer *buffer) {
    unsigned char byte = 5;
    uint64_t before = driver_copies();
    OK(gpumem_mapped_write(buffer, 1, &byte, 1));
    bool went = driver_copies() > before;
    assert_int_equal(byte_of(buffer, 1), 5);
    return went;
}

static gpumem_status users_allocate(void *user, const gpumem_request *request,
                                    gpumem_allocation *allocation) {
    gpumem_buffer *inner = NULL;
    gpumem_status status = gpumem_buffer_allocate(
        user, request->bytes, GPUMEM_BUFFER_OPTIONS(.stream = request->stream), &inner);
    if (status != GPUMEM_OK)
        return status;
    allocation->pointer = gpumem_buffer_pointer(inner);
    allocation->host_pointer = gpumem_buffer_host_pointer(inner);
    allocation->bytes = allocation->committed_bytes = allocation->capacity = request->bytes;
    allocation->buffer = inner;
    allocation->cookie = inner;
    return GPUMEM_OK;
}

static void users_deallocate(void *user, const gpumem_allocation *allocation, CUstream stream) {
    OK(gpumem_buffer_free(allocation->cookie, stream));
}

static void users_properties(void *user, gpumem_resource_properties *properties) {
    properties->device_accessible = properties->host_accessible = 1;
}

TEST(every_wrapper_of_mapped_memory_uses_its_plan) {
    const struct gm_copy_plan plan = copies_plan(GM_COPY_PLAIN, 1, 1);
    gpumem_buffer *part;
    OK(gm_plans_take(mapped->engine->plans, &plan, GPUMEM_MEASURED_HERE));
    gpumem_resource *cache = NEW_CACHING(mapped);
    gpumem_resource *limit = NEW_LIMIT(mapped, 64 * MIB);
    gpumem_resource *const resources[] = {mapped, cache, limit};
    for (size_t i = 0; i < COUNT(resources); i++) {
        gpumem_buffer *buffer = allocate(resources[i], 1000);
        assert_true(goes_by_the_driver(buffer));
        part = NEW_VIEW(buffer, 100, 100);
        assert_true(goes_by_the_driver(part));
        DESTROY(part, buffer);
    }
    DESTROY(limit, cache);
}

TEST(a_custom_wrapper_uses_the_plan_of_its_upstream) {
    const struct gm_copy_plan plan = copies_plan(GM_COPY_PLAIN, 1, 1);
    gpumem_resource *users;
    const gpumem_resource_ops ops = {.size = sizeof ops,
                                     .kind = "users",
                                     .allocate = users_allocate,
                                     .deallocate = users_deallocate,
                                     .properties = users_properties,
                                     .upstream = mapped};
    OK(gm_plans_take(mapped->engine->plans, &plan, GPUMEM_MEASURED_HERE));
    OK(gpumem_resource_create(device, &ops, mapped, &users));
    gpumem_buffer *buffer = allocate(users, 1000);
    assert_true(goes_by_the_driver(buffer));
    DESTROY(buffer, users);
}

/* The host's memory is the CPU's to copy, whatever its size. */
TEST(host_memory_has_no_copy_plan) {
    gpumem_resource *host = NEW_MAPPED(.method = GPUMEM_MAPPED_HOST, .method_strict = 1);
    gpumem_resource *pinned = NEW_PINNED();
    gpumem_resource *const resources[] = {host, pinned};
    unsigned char *bytes = malloc(MIB), *back = malloc(MIB);
    memset(bytes, 0x3c, MIB);
    for (size_t i = 0; i < COUNT(resources); i++) {
        gpumem_buffer *buffer = allocate(resources[i], MIB);
        uint64_t before = soft->call_count(NULL);
        OK(gpumem_mapped_write(buffer, 0, bytes, MIB));
        OK(gpumem_mapped_read(buffer, 0, back, MIB));
        assert_int_equal(soft->call_count(NULL), before);
        assert_memory_equal(back, bytes, MIB);
        OK(gpumem_buffer_free(buffer, NULL));
        FAILS(NOT_SUPPORTED, gpumem_mapped_calibrate(resources[i], NULL));
        OK(gpumem_resource_destroy(resources[i]));
    }
    free(back);
    free(bytes);
}

TEST(a_plan_without_a_cut_over_makes_no_driver_call) {
    const struct gm_copy_plan plan = copies_plan(GM_COPY_AVX2, GM_COPY_NEVER, GM_COPY_NEVER);
    static unsigned char bytes[100000];
    OK(gm_plans_take(mapped->engine->plans, &plan, GPUMEM_MEASURED_HERE));
    gpumem_buffer *buffer = allocate(mapped, sizeof bytes);
    uint64_t before = soft->call_count(NULL);
    OK(gpumem_mapped_write(buffer, 0, bytes, sizeof bytes));
    OK(gpumem_mapped_read(buffer, 0, bytes, sizeof bytes));
    OK(gpumem_mapped_publish(buffer, 0, bytes, 64, 128, 1));
    assert_int_equal(soft->call_count(NULL), before);
    OK(gpumem_buffer_free(buffer, NULL));
}

/* What the host side is, is asked only where it matters. */
TEST(the_host_pointer_is_queried_only_between_the_cut_overs) {
    static unsigned char bytes[8192];
    const struct gm_copy_plan plan = copies_plan(GM_COPY_PLAIN, 1024, 4096);
    OK(gm_plans_take(mapped->engine->plans, &plan, GPUMEM_MEASURED_HERE));
    gpumem_buffer *buffer = allocate(mapped, sizeof bytes);
    const struct {
        size_t bytes;
        unsigned questions, copies;
    } cases[] = {{1023, 0, 0}, {1024, 1, 0}, {4095, 1, 0}, {4096, 0, 1}, {8192, 0, 1}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        uint64_t asked = soft->call_count("cuPointerGetAttribute"), copied = driver_copies();
        OK(gpumem_mapped_write(buffer, 0, bytes, cases[i].bytes));
        assert_int_equal(soft->call_count("cuPointerGetAttribute") - asked, cases[i].questions);
        assert_int_equal(driver_copies() - copied, cases[i].copies);
    }
    gpumem_resource *pinning = NEW_PINNED();
    gpumem_buffer *pinned = allocate(pinning, 8192);
    uint64_t copied = driver_copies();
    OK(gpumem_mapped_read(buffer, 0, gpumem_buffer_host_pointer(pinned), 1024));
    assert_int_equal(driver_copies() - copied, 1);
    DESTROY(pinned, pinning, buffer);
}

/* A kernel that waits for the flag may hold whatever the driver's copy would wait for. */
TEST(publishing_never_uses_a_driver_copy) {
    static unsigned char bytes[100000];
    const struct gm_copy_plan plan = copies_plan(GM_COPY_PLAIN, 1, 1);
    OK(gm_plans_take(mapped->engine->plans, &plan, GPUMEM_MEASURED_HERE));
    gpumem_buffer *buffer = allocate(mapped, 200000);
    uint64_t before = soft->call_count(NULL);
    OK(gpumem_mapped_publish(buffer, 0, bytes, sizeof bytes, 100000, 1));
    assert_int_equal(soft->call_count(NULL), before);
    OK(gpumem_buffer_free(buffer, NULL));
}

/* ---- What is read-only ----------------------------------------------------------------------- */

TEST(writing_read_only_mapped_memory_is_refused) {
    gpumem_buffer *buffer = allocate(mapped, 4096);
    OK(fill_now(buffer, 0, 4096, 0, NULL));
    buffer->read_only = 1;
    FAILS(NOT_SUPPORTED, gpumem_mapped_write(buffer, 0, "x", 1));
    FAILS(NOT_SUPPORTED, gpumem_mapped_publish(buffer, 0, "x", 1, 8, 1));
    FAILS(NOT_SUPPORTED, gpumem_mapped_publish(buffer, 0, NULL, 0, 8, 1));
    buffer->read_only = 0;
    uint32_t flag = 7;
    OK(gpumem_mapped_read(buffer, 8, &flag, sizeof flag));
    assert_int_equal(flag, 0);
    OK(gpumem_buffer_free(buffer, NULL));
}

/* ---- Waiting for nothing else ---------------------------------------------------------------- */

/* A blocking stream is held, as by a kernel that waits for the CPU; cuMemcpyHtoD would wait for it.
 * The copy is on the device when the call returns. */
TEST(a_blocked_stream_does_not_delay_a_copy) {
    const struct gm_copy_plan plan = copies_plan(GM_COPY_PLAIN, 1, 1);
    static unsigned char bytes[70000], back[70000];
    OK(gm_plans_take(mapped->engine->plans, &plan, GPUMEM_MEASURED_HERE));
    gpumem_buffer *buffer = allocate(mapped, sizeof bytes);
    gpumem_stream_options blocking = {.size = sizeof blocking, .blocking = 1};
    struct gate gate = gate_with_stream();
    CUstream stream = MADE(CUstream, gpumem_stream_create, device, &blocking);
    CUevent closed = NEW_EVENT();
    OK(gpumem_event_record(device, closed, gate.stream));
    OK(gpumem_stream_wait_event(device, stream, closed));
    memset(bytes, 0x77, sizeof bytes);
    OK(gpumem_mapped_write(buffer, 0, bytes, sizeof bytes));
    OK(gpumem_mapped_read(buffer, 0, back, sizeof back));
    assert_memory_equal(back, bytes, sizeof bytes);
    assert_memory_equal(gpumem_buffer_host_pointer(buffer), bytes, sizeof bytes);
    gate_drain(&gate);
    synchronize(stream);
    DESTROY(closed, stream, &gate, buffer);
}

/* A capture in the strictest mode, in this thread: neither refused nor spoilt. */
TEST(mapped_copies_do_not_disturb_a_capture) {
    const struct gm_copy_plan plan = copies_plan(GM_COPY_PLAIN, 1, 1);
    unsigned char bytes[100] = "captured", back[100];
    CUstream stream;
    OK(gm_plans_take(mapped->engine->plans, &plan, GPUMEM_MEASURED_HERE));
    gpumem_buffer *buffer = allocate(mapped, 4096);
    OK(gpumem_stream_create(device, GPUMEM_STREAM_OPTIONS(.blocking = 1), &stream));
    use_context();
    OK_CU(cu->cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    uint64_t copied = driver_copies();
    OK(gpumem_mapped_write(buffer, 0, bytes, sizeof bytes));
    OK(gpumem_mapped_read(buffer, 0, back, sizeof back));
    assert_int_equal(driver_copies() - copied, 2);
    assert_memory_equal(back, bytes, sizeof bytes);
    CUgraph graph = GOT_CU(CUgraph, cuStreamEndCapture, stream);
    OK_CU(cu->cuGraphDestroy(graph));
    leave_context();
    DESTROY(stream, buffer);
}

/* ---- Threads --------------------------------------------------------------------------------- */

#define THREADS 8
#define ROUNDS  100

static void *copy_apart(void *argument) {
    gpumem_buffer *buffer = argument;
    static atomic_uint number;
    size_t mine = atomic_fetch_add(&number, 1) % THREADS;
    unsigned char bytes[3000], back[3000];
    for (int round = 0; round < ROUNDS; round++) {
        memset(bytes, (int)(mine * 16 + (size_t)round % 16), sizeof bytes);
        OK(gpumem_mapped_write(buffer, mine * sizeof bytes, bytes, sizeof bytes));
        OK(gpumem_mapped_read(buffer, mine * sizeof bytes, back, sizeof back));
        assert_memory_equal(back, bytes, sizeof bytes);
    }
    return NULL;
}

/* More than there are streams kept, while the plan changes under them. */
TEST(threads_copy_while_the_plan_changes) {
    pthread_t threads[THREADS];
    struct copies c = {.engine = mapped->engine};
    gpumem_buffer *buffer = allocate(mapped, THREADS * 3000);
    copies_use(&c, GM_COPY_PLAIN, 1, 1);
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, copy_apart, buffer), 0);
    for (uint64_t i = 0; i < 20; i++)
        copies_use(&c, GM_COPY_AVX2, i % 2 ? 1 : GM_COPY_NEVER, 2000 + i % 3 * 1000);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    OK(gpumem_buffer_free(buffer, NULL));
}

/* ---- Views ----------------------------------------------------------------------------------- */

TEST(views_copy_by_their_plan) {
    struct copies c;
    gpumem_resource *plain = NEW_VIRTUAL(.capacity = 4 * MIB);
    gpumem_buffer *buffer = allocate(plain, COPIES_ROOM);
    gpumem_buffer *view =
        MADE(gpumem_buffer *, gpumem_buffer_host_view, buffer,
             GPUMEM_HOST_VIEW_OPTIONS(.method = GPUMEM_MAPPED_DESCRIPTOR, .method_strict = 1));
    copies_begin(&c, buffer, mapped->engine); /* the plans are those of the method */
    c.target = view;
    copies_by_all_plans(&c, 100);
    copies_use(&c, GM_COPY_PLAIN, 1, 1);
    uint64_t copied = driver_copies();
    OK(gpumem_mapped_write(view, 5, "five", 4));
    assert_int_equal(driver_copies() - copied, 1);
    FAILS(INVALID_ARGUMENT, gpumem_mapped_write(view, COPIES_ROOM, "x", 1));
    FAILS(INVALID_ARGUMENT, gpumem_mapped_read(view, 0, c.pageable, COPIES_ROOM + 1));
    FAILS(INVALID_ARGUMENT, gpumem_mapped_write(view, 0, NULL, 1));
    FAILS(INVALID_ARGUMENT, gpumem_mapped_read(view, 0, NULL, 1));
    FAILS(INVALID_ARGUMENT, gpumem_mapped_write(NULL, 0, "x", 1));
    OK(gpumem_mapped_write(view, COPIES_ROOM, NULL, 0));
    view->read_only = 1;
    FAILS(NOT_SUPPORTED, gpumem_mapped_write(view, 0, "x", 1));
    view->read_only = 0;
    copies_end(&c);
    DESTROY(view, buffer, plain);
}

TEST(rings_store_by_the_plan) {
    gpumem_ring_chunk chunk = {.size = sizeof chunk};
    unsigned char bytes[5000], back[5000];
    struct copies c = {.engine = mapped->engine, .seed = 5};
    gpumem_ring *ring = MADE(gpumem_ring *, gpumem_ring_create, mapped,
                             GPUMEM_RING_OPTIONS(.chunk_bytes = 5000, .chunk_count = 2));
    for (int k = 0; k < GM_COPY_KERNEL_COUNT; k++) {
        copies_use(&c, (enum gm_copy_kernel)k, 1, 1);
        for (size_t i = 0; i < sizeof bytes; i++)
            bytes[i] = (unsigned char)copies_random(&c, 256);
        uint64_t before = driver_copies();
        OK(gpumem_ring_acquire(ring, 0, 0, &chunk));
        OK(gpumem_ring_write(ring, chunk.sequence, 0, bytes, 1001));
        OK(gpumem_ring_write(ring, chunk.sequence, 1001, bytes + 1001, sizeof bytes - 1001));
        assert_int_equal(driver_copies(), before);
        OK(gpumem_ring_commit(ring, chunk.sequence, sizeof bytes));
        OK(gpumem_ring_consume(ring, 0, &chunk));
        OK(copy_bytes(device, (CUdeviceptr)(uintptr_t)back, chunk.device, sizeof back, NULL));
        synchronize(NULL);
        assert_memory_equal(back, bytes, sizeof bytes);
        OK(gpumem_ring_release(ring, chunk.sequence, NULL, 0, NULL, 0));
    }
    OK(gpumem_ring_destroy(ring));
}

BEFORE_TESTS_DO(keep_lavapipe_loaded());
