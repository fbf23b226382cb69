/* maximum_bytes of mapped memory: never exceeded, whatever grows, is cut into slabs or kept, and
 * whoever asks at the same time. */
#include "opener.h"
#include "vulkan_test.h"

ALL_TESTS(find_icd, NULL);

#define METHOD(which, ...)                                                                         \
    NEW_MAPPED(.method = GPUMEM_MAPPED_##which, .method_strict = 1, __VA_ARGS__)
#define PLAIN(...) METHOD(DESCRIPTOR, __VA_ARGS__)

static gpumem_status try_allocate(gpumem_resource *resource, size_t bytes, size_t capacity,
                                  gpumem_buffer **buffer) {
    return gpumem_buffer_allocate(
        resource, bytes, GPUMEM_BUFFER_OPTIONS(.stream = GPUMEM_STREAM_NONE, .capacity = capacity),
        buffer);
}

static gpumem_buffer *allocate(gpumem_resource *resource, size_t bytes, size_t capacity) {
    gpumem_buffer *buffer;
    OK(try_allocate(resource, bytes, capacity, &buffer));
    return buffer;
}

static int setup(void **state) {
    choose_icd();
    if (open_device(state) != 0)
        return -1;
    icd->reset();
    return 0;
}

static int teardown(void **state) {
    if (close_device(state) != 0)
        return -1;
    assert_nothing_left();
    return 0;
}

EACH_TEST(setup, teardown);

/* What the device has given out. */
static uint64_t used(void) {
    uint64_t bytes = 0, limit = 0;
    assert_int_equal(soft->memory_info(0, &bytes, &limit), 0);
    return bytes;
}

/* ---- One thread ------------------------------------------------------------------------------ */

static void fill_up(gpumem_resource *resource) {
    gpumem_buffer *buffers[4], *more;
    for (size_t i = 0; i < 4; i++)
        buffers[i] = allocate(resource, 2 * MIB, 0);
    FAILS_SAYING(
        OUT_OF_CAPACITY,
        "2097152 bytes more would bring the mapped resource from 8388608 over its maximum of "
        "8388608",
        try_allocate(resource, 2 * MIB, 0, &more));
    DESTROY(buffers[2]);
    buffers[2] = allocate(resource, 2 * MIB, 0);
    FAILS(OUT_OF_CAPACITY, try_allocate(resource, 100, 0, &more)); /* for which a slab is wanted */
    SAYS("over its maximum");
    FAILS(OUT_OF_CAPACITY, try_allocate(resource, 3 * MIB, 0, &more));
    for (size_t i = 0; i < 4; i++)
        DESTROY(buffers[i]);
    more = allocate(resource, 8 * MIB, 0);
    DESTROY(more, resource);
}

TEST(allocating_beyond_the_maximum_is_refused) {
    fill_up(PLAIN(.maximum_bytes = 8 * MIB));
    fill_up(METHOD(VULKAN_IMPORT, .maximum_bytes = 8 * MIB));
    fill_up(METHOD(VULKAN_EXPORT, .maximum_bytes = 8 * MIB));
    fill_up(METHOD(HOST, .maximum_bytes = 8 * MIB));
}

TEST(growth_counts_against_the_maximum) {
    gpumem_resource *resource = PLAIN(.capacity = 64 * MIB, .maximum_bytes = 10 * MIB);
    gpumem_buffer *buffer = allocate(resource, 4 * MIB, 0), *other = allocate(resource, MIB, 0);
    ((unsigned char *)gpumem_buffer_host_pointer(buffer))[MIB] = 7;
    FAILS(OUT_OF_CAPACITY, gpumem_buffer_grow(buffer, 9 * MIB, NULL));
    SAYS("over its maximum of 10485760");
    assert_int_equal(gpumem_buffer_size(buffer), 4 * MIB);
    OK(gpumem_buffer_grow(buffer, 8 * MIB, NULL));
    OK(gpumem_buffer_shrink(buffer, 4 * MIB, NULL));
    OK(gpumem_buffer_grow(other, 6 * MIB, NULL));
    OK(gpumem_buffer_decommit(other, 2 * MIB, 4 * MIB, NULL, NULL));
    OK(gpumem_buffer_grow(buffer, 8 * MIB, NULL));
    FAILS(OUT_OF_CAPACITY, gpumem_buffer_recommit(other, 2 * MIB, 4 * MIB));
    OK(gpumem_buffer_shrink(buffer, 4 * MIB, NULL));
    OK(gpumem_buffer_recommit(other, 2 * MIB, 4 * MIB));
    assert_int_equal(((unsigned char *)gpumem_buffer_host_pointer(buffer))[MIB], 7);
    DESTROY(buffer, other, resource);
}

/* Buffers and slabs that nobody uses are given back for one that is wanted. */
TEST(cached_memory_is_released_before_refusing) {
    gpumem_resource *resource = PLAIN(.cache_bytes = 8 * MIB, .maximum_bytes = 8 * MIB);
    uint64_t before = used();
    DESTROY(allocate(resource, 4 * MIB, 0));
    gpumem_buffer *small = allocate(resource, 100, 0);
    assert_int_equal(used() - before, 6 * MIB); /* the free 4 MiB, and a slab */
    gpumem_buffer *large = allocate(resource, 6 * MIB, 0);
    assert_int_equal(used() - before, 8 * MIB);
    DESTROY(small, large);
    large = allocate(resource, 8 * MIB, 0);
    assert_int_equal(used() - before, 8 * MIB);
    DESTROY(large);
    small = allocate(resource, 100, 0); /* a slab, for which the free 8 MiB go */
    DESTROY(small, resource);
    assert_int_equal(used(), before);
}

/* A free that queued work holds back is waited for, be it of a slab or not. */
static void waits_for(gpumem_resource *resource, size_t held_bytes, size_t wanted_bytes) {
    struct gate gate = gate_with_stream();
    struct opener opener;
    gpumem_buffer *buffer = allocate(resource, held_bytes, 0), *wanted = NULL;
    OK(gpumem_buffer_fill(buffer, 0, held_bytes, 1, gate.stream));
    OK(gpumem_buffer_free(buffer, gate.stream));
    opener_start(&opener, gate);
    gpumem_status status = try_allocate(resource, wanted_bytes, 0, &wanted);
    int waited = opener_end(&opener);
    OK(status);
    assert_true(waited);
    DESTROY(wanted);
    gate_remove(&gate);
}

TEST(deferred_frees_are_waited_for_at_the_maximum) {
    gpumem_resource *resource = PLAIN(.maximum_bytes = 4 * MIB);
    waits_for(resource, 4 * MIB, 4 * MIB);
    waits_for(resource, 4 * MIB, 100);
    waits_for(resource, 512 * KIB, 4 * MIB);
    OK(gpumem_resource_destroy(resource));
}

/* A mirrored ring has its memory at two places. */
TEST(memory_of_a_mirrored_ring_counts_once) {
    gpumem_resource *resource = PLAIN(.maximum_bytes = 6 * MIB);
    gpumem_ring *ring;
    for (int i = 0; i < 3; i++) {
        OK(gpumem_ring_create(
            resource, GPUMEM_RING_OPTIONS(.chunk_bytes = MIB, .chunk_count = 4, .mirrored = 1),
            &ring));
        gpumem_buffer *rest = allocate(resource, 2 * MIB, 0), *more;
        FAILS(OUT_OF_CAPACITY, try_allocate(resource, 2 * MIB, 0, &more));
        DESTROY(rest);
        OK(gpumem_ring_destroy(ring));
    }
    DESTROY(allocate(resource, 6 * MIB, 0), resource);
}

/* What Vulkan or the driver refuses counts for nothing. */
TEST(a_refused_allocation_does_not_count_against_the_maximum) {
    static const char *const functions[] = {"vkAllocateMemory", "vkMapMemory", "vkGetMemoryFdKHR"};
    gpumem_resource *resource = METHOD(VULKAN_EXPORT, .maximum_bytes = 4 * MIB);
    gpumem_buffer *buffer;
    for (size_t i = 0; i < 6; i++) {
        icd->reset();
        icd->refuse(functions[i % 3], 1, UINT32_MAX, -2 /* out of device memory */);
        gpumem_status status = try_allocate(resource, 4 * MIB, 0, &buffer);
        icd->refuse(NULL, 1, 0, 0);
        if (status == GPUMEM_OK) /* another function mapped it */
            DESTROY(buffer);
    }
    DESTROY(allocate(resource, 4 * MIB, 0), resource);
    resource = PLAIN(.maximum_bytes = 4 * MIB);
    for (int i = 0; i < 4; i++) {
        soft->fault_arm(i % 2 ? "cuMemMap" : "cuMemCreate", 0, CUDA_ERROR_OUT_OF_MEMORY,
                        SOFTGPU_FAULT_BEFORE);
        FAILS(OUT_OF_MEMORY, try_allocate(resource, 4 * MIB, 0, &buffer));
        soft->fault_disarm();
    }
    DESTROY(allocate(resource, 4 * MIB, 0), resource);
}

TEST(a_snapshot_shows_the_maximum_and_the_used_bytes) {
    gpumem_resource *resource = PLAIN(.maximum_bytes = 6 * MIB);
    gpumem_buffer *buffer = allocate(resource, 3 * MIB, 0);
    char *text;
    OK(snapshot_of(device, &text));
    const char *found = strstr(text, "\"limit\"");
    assert_non_null(found);
    const char *maximum = strstr(found, "6291456"), *taken = strstr(found, "4194304");
    assert_true(maximum && maximum < found + 100 && taken && taken < found + 100);
    free(text);
    DESTROY(buffer, resource);
}

/* ---- Sixteen threads ------------------------------------------------------------------------- */

#define THREADS 16
#define MAXIMUM (12 * MIB)

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ROUNDS 1500u
#else
#define ROUNDS 6000u
#endif

static atomic_int running;

struct worker {
    gpumem_resource *resource;
    uint32_t seed;
    const char *failed;
    unsigned refused;
};

static uint32_t next(struct worker *worker, uint32_t below) {
    worker->seed = worker->seed * 1664525u + 1013904223u;
    return (worker->seed >> 8) % below;
}

/* Small ones, some of half a slab's share, and now and then one of its own. */
static size_t some_size(struct worker *worker) {
    uint32_t kind = next(worker, 100);
    if (kind < 80)
        return 8 + next(worker, 4000);
    if (kind < 98)
        return 8 + next(worker, 400000);
    return 600000 + next(worker, 3000000);
}

static void mark(gpumem_buffer *buffer, uint32_t value) {
    memcpy(gpumem_buffer_host_pointer(buffer), &value, sizeof value);
    memcpy((unsigned char *)gpumem_buffer_host_pointer(buffer) + gpumem_buffer_size(buffer) -
               sizeof value,
           &value, sizeof value);
}

static int has(gpumem_buffer *buffer, uint32_t value) {
    const unsigned char *host = gpumem_buffer_host_pointer(buffer);
    return memcmp(host, &value, sizeof value) == 0 &&
           memcmp(host + gpumem_buffer_size(buffer) - sizeof value, &value, sizeof value) == 0;
}

enum { KEPT = 8 };

static const char *round_of(struct worker *worker, gpumem_buffer **buffer, uint32_t *value) {
    if (*buffer && !has(*buffer, *value))
        return "somebody else wrote here";
    if (*buffer && gpumem_buffer_free(*buffer, NULL) != GPUMEM_OK)
        return "free";
    *buffer = NULL;
    CUstream stream = next(worker, 4) ? GPUMEM_STREAM_NONE : NULL;
    gpumem_status status = gpumem_buffer_allocate(worker->resource, some_size(worker),
                                                  GPUMEM_BUFFER_OPTIONS(.stream = stream), buffer);
    if (status == GPUMEM_ERROR_OUT_OF_CAPACITY) {
        *buffer = NULL;
        worker->refused++;
        return NULL;
    }
    if (status != GPUMEM_OK)
        return gpumem_last_error()->message;
    mark(*buffer, *value = worker->seed);
    return NULL;
}

static void *work(void *data) {
    struct worker *worker = data;
    gpumem_buffer *buffers[KEPT] = {NULL};
    uint32_t values[KEPT];
    for (uint32_t i = 0; i < ROUNDS && !worker->failed; i++) {
        uint32_t at = next(worker, KEPT);
        worker->failed = round_of(worker, &buffers[at], &values[at]);
    }
    for (size_t i = 0; i < KEPT; i++)
        if (gpumem_buffer_free(buffers[i], NULL) != GPUMEM_OK)
            worker->failed = "free at the end";
    atomic_fetch_sub(&running, 1);
    return NULL;
}

struct watcher {
    gpumem_resource *resource;
    uint64_t before, most;
    const char *failed;
};

/* Reads what the device has given out all the while, and takes part by trims. */
static void *watch(void *data) {
    struct watcher *watcher = data;
    gpumem_stats stats = {.size = sizeof stats};
    for (unsigned i = 0; atomic_load(&running); i++) {
        uint64_t bytes = 0, limit = 0;
        if (soft->memory_info(0, &bytes, &limit) != 0 ||
            gpumem_resource_get_stats(watcher->resource, &stats) != GPUMEM_OK ||
            (i % 64 == 0 && gpumem_resource_trim(watcher->resource, 0) != GPUMEM_OK))
            watcher->failed = "cannot look";
        if (bytes - watcher->before > watcher->most)
            watcher->most = bytes - watcher->before;
        sched_yield();
    }
    return NULL;
}

static void run_threads(const gpumem_mapped_options *options, int on_device) {
    struct worker workers[THREADS];
    pthread_t threads[THREADS], observer;
    struct watcher watcher = {
        .resource = MADE(gpumem_resource *, gpumem_mapped_resource_create, device, options)};
    unsigned refused = 0;
    watcher.before = used();
    atomic_store(&running, THREADS);
    assert_int_equal(pthread_create(&observer, NULL, watch, &watcher), 0);
    for (uint32_t i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.resource = watcher.resource, .seed = 7919 * i + 1};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        if (workers[i].failed)
            fail_msg("thread %zu: %s", i, workers[i].failed);
        refused += workers[i].refused;
    }
    assert_int_equal(pthread_join(observer, NULL), 0);
    assert_null(watcher.failed);
    print_message("# at most %llu KiB of %zu, %u of %u refused\n",
                  (unsigned long long)watcher.most / KIB, MAXIMUM / KIB, refused, THREADS * ROUNDS);
    assert_true(watcher.most <= MAXIMUM);
    assert_true(refused > 0 && refused < THREADS * ROUNDS / 2);
    if (on_device)
        assert_true(watcher.most > MAXIMUM / 2);
    gpumem_stats stats = stats_of(watcher.resource);
    MEMBERS(stats, (allocations, 0), (in_use_bytes, 0));
    assert_true(stats.committed_high <= MAXIMUM);
    OK(gpumem_resource_trim(watcher.resource, 0));
    DESTROY(allocate(watcher.resource, MAXIMUM, 0)); /* nothing was lost on the way */
    OK(gpumem_resource_destroy(watcher.resource));
    assert_int_equal(used(), watcher.before);
}

TEST_IS(sixteen_threads_stay_below_the_maximum,
        run_threads(GPUMEM_MAPPED_OPTIONS(.method = GPUMEM_MAPPED_VULKAN_IMPORT, .method_strict = 1,
                                          .maximum_bytes = MAXIMUM, .cache_bytes = 4 * MIB),
                    1));

TEST(threads_stay_below_the_maximum_with_vulkan_export) {
    char budget[32];
    snprintf(budget, sizeof budget, "%zu", MAXIMUM); /* more would be refused for want of memory */
    setenv("VULKAN_ICD_BUDGET", budget, 1);
    run_threads(GPUMEM_MAPPED_OPTIONS(.method = GPUMEM_MAPPED_VULKAN_EXPORT, .method_strict = 1,
                                      .maximum_bytes = MAXIMUM),
                0);
    unsetenv("VULKAN_ICD_BUDGET");
}

TEST(threads_stay_below_the_maximum_with_non_coherent_memory) {
    setenv("VULKAN_ICD_COHERENT", "no", 1);
    run_threads(GPUMEM_MAPPED_OPTIONS(.method = GPUMEM_MAPPED_VULKAN_IMPORT, .method_strict = 1,
                                      .maximum_bytes = MAXIMUM),
                1);
    unsetenv("VULKAN_ICD_COHERENT");
}
