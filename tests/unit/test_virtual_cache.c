/* What a virtual resource keeps of freed memory: who gets it and when, its bound, and what is never
 * kept. */
#include "library_test.h"
#include "memory/virtual/virtual_resource.h"
#include "opener.h"
#include "refused_memory.h"

#include <gpumem/share.h>
#include <gpumem/virtual.h>
#include <pthread.h>

EACH_TEST(open_device, close_device);

static gpumem_resource *make_caching(uint64_t bytes) {
    return NEW_VIRTUAL(.cache_bytes = bytes);
}

static gpumem_buffer *allocate_with(gpumem_resource *resource, size_t bytes, size_t capacity,
                                    CUstream stream) {
    return NEW_BUFFER_WITH(resource, bytes, .capacity = capacity, .stream = stream);
}

static gpumem_buffer *allocate(gpumem_resource *resource, size_t bytes, CUstream stream) {
    return allocate_with(resource, bytes, 0, stream);
}

static CUdeviceptr free_it(gpumem_buffer *buffer) {
    CUdeviceptr address = gpumem_buffer_pointer(buffer);
    OK(gpumem_buffer_free(buffer, NULL));
    return address;
}

/* Calls that cost: whatever makes, maps or gives back memory. */
static uint64_t costly_calls(void) {
    static const char *const names[] = {"cuMemAddressReserve", "cuMemAddressFree", "cuMemCreate",
                                        "cuMemRelease",        "cuMemMap",         "cuMemUnmap",
                                        "cuMemSetAccess",      "cuEventCreate"};
    uint64_t count = 0;
    for (size_t i = 0; i < COUNT(names); i++)
        count += soft->call_count(names[i]);
    return count;
}

TEST(without_a_cache_freed_memory_is_released) {
    gpumem_resource *resource = NEW_VIRTUAL();
    gpumem_resource_properties properties = properties_of(resource);
    assert_false(properties.stream_ordered);
    free_it(allocate(resource, 64 * MIB, NULL));
    assert_int_equal(device_stats().committed_bytes, 0);
    OK(gpumem_resource_destroy(resource));
}

TEST(a_cached_allocation_makes_no_expensive_driver_call) {
    CUstream stream = NEW_STREAM();
    gpumem_resource *resource = make_caching(GIB);
    gpumem_resource_properties properties = properties_of(resource);
    assert_true(properties.stream_ordered);
    free_it(allocate(resource, 64 * MIB, stream));
    CUdeviceptr address = free_it(allocate(resource, 64 * MIB, stream));
    uint64_t costly = costly_calls(), all = soft->call_count(NULL);
    for (int i = 0; i < 100; i++)
        assert_true(free_it(allocate(resource, 64 * MIB, stream)) == address);
    assert_int_equal(costly_calls() - costly, 0);
    assert_true(soft->call_count(NULL) - all <= 100 * 16);
    DESTROY(resource, stream);
}

TEST(cached_memory_is_counted_and_trimmed) {
    gpumem_resource *resource = make_caching(GIB);
    gpumem_buffer *small = allocate(resource, 2 * MIB, NULL);
    gpumem_buffer *large = allocate_with(resource, 8 * MIB, 32 * MIB, NULL);
    free_it(small);
    free_it(large);
    gpumem_stats stats = device_stats();
    MEMBERS(stats, (cached_bytes, 10 * MIB), (committed_bytes, 10 * MIB),
            (reserved_bytes, 34 * MIB));
    assert_int_equal(stats.in_use_bytes + stats.allocations, 0);
    assert_int_equal(stats.mappings, 2);
    OK(gpumem_resource_trim(resource, 8 * MIB)); /* the oldest goes first */
    assert_int_equal(device_stats().cached_bytes, 8 * MIB);
    OK(gpumem_resource_trim(resource, 0));
    stats = device_stats();
    assert_int_equal(stats.cached_bytes + stats.committed_bytes + stats.reserved_bytes +
                         stats.chunks + stats.mappings,
                     0);
    OK(gpumem_resource_destroy(resource));
}

TEST(the_cache_never_exceeds_its_maximum) {
    gpumem_resource *resource = make_caching(16 * MIB);
    gpumem_buffer *buffers[6];
    for (size_t i = 0; i < COUNT(buffers); i++)
        buffers[i] = allocate(resource, 4 * MIB, NULL);
    CUdeviceptr last = gpumem_buffer_pointer(buffers[5]);
    for (size_t i = 0; i < COUNT(buffers); i++) {
        free_it(buffers[i]);
        assert_true(device_stats().cached_bytes <= 16 * MIB);
    }
    assert_int_equal(device_stats().committed_bytes, 16 * MIB);
    assert_true(free_it(allocate(resource, 4 * MIB, NULL)) == last);
    free_it(allocate(resource, 18 * MIB, NULL)); /* larger than the whole cache */
    assert_int_equal(device_stats().cached_bytes, 16 * MIB);
    OK(gpumem_resource_destroy(resource));
}

/* The work that fills the first tenant's memory is held while the second is made. */
TEST(cached_memory_is_reused_by_other_streams_after_its_work) {
    gpumem_resource *resource = make_caching(GIB);
    CUstream other = NEW_STREAM();
    struct gate gate = gate_with_stream();
    gpumem_buffer *first = allocate(resource, 4 * MIB, gate.stream);
    OK(gpumem_buffer_fill(first, 0, 4 * MIB, 0x11, gate.stream));
    CUdeviceptr address = free_it(first);
    gpumem_buffer *elsewhere = allocate(resource, 4 * MIB, other);
    assert_true(gpumem_buffer_pointer(elsewhere) != address);
    gpumem_buffer *same = allocate(resource, 4 * MIB, gate.stream);
    assert_true(gpumem_buffer_pointer(same) == address);
    OK(gpumem_buffer_fill(same, 0, 4 * MIB, 0x22, gate.stream));
    OK(gpumem_resource_trim(resource, 0));
    gate_drain(&gate);
    unsigned char byte = 0;
    OK(gpumem_buffer_read(same, 4 * MIB - 1, &byte, 1, gate.stream));
    synchronize(gate.stream);
    assert_int_equal(byte, 0x22);
    free_it(elsewhere);
    free_it(same);
    gpumem_buffer *now = allocate(resource, 4 * MIB, other);
    assert_true(gpumem_buffer_pointer(now) == address); /* the work is done: anybody's */
    free_it(now);
    DESTROY(resource, &gate, other);
}

TEST(busy_memory_over_the_cache_maximum_is_released_later) {
    gpumem_resource *resource = make_caching(4 * MIB);
    struct gate gate = gate_with_stream();
    gpumem_buffer *buffers[3];
    for (size_t i = 0; i < COUNT(buffers); i++)
        buffers[i] = allocate(resource, 4 * MIB, gate.stream);
    for (size_t i = 0; i < COUNT(buffers); i++) {
        OK(gpumem_buffer_fill(buffers[i], 0, 4 * MIB, 0x11, gate.stream));
        free_it(buffers[i]);
    }
    gpumem_stats stats = device_stats();
    MEMBERS(stats, (cached_bytes, 4 * MIB), (deferred_frees, 2));
    gate_drain(&gate); /* no fault: all were mapped until here */
    OK(gpumem_device_trim(device, 1));
    assert_int_equal(device_stats().committed_bytes, 0);
    DESTROY(resource, &gate);
}

struct freeing {
    gpumem_buffer *buffer;
    long refused; /* which request for host memory */
    bool was_refused;
};

static void *free_without_host_memory(void *data) {
    struct freeing *freeing = data;
    refuse_memory(freeing->refused);
    (void)gpumem_buffer_free(freeing->buffer, NULL);
    freeing->was_refused = end_refusal();
    return NULL;
}

/* What cannot be recorded, to be released later, is waited for: nothing is lost. */
TEST(busy_memory_is_released_although_host_memory_runs_out) {
    gpumem_resource *resource = make_caching(2 * MIB);
    struct freeing freeing = {.was_refused = true};
    bool waited = false;
    while (freeing.was_refused) {
        struct gate gate = gate_with_stream();
        uint64_t waits = soft->call_count("cuEventSynchronize");
        freeing = (struct freeing){allocate(resource, 12 * MIB, gate.stream), ++freeing.refused, 0};
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, free_without_host_memory, &freeing), 0);
        while (pthread_tryjoin_np(thread, NULL) != 0) {
            if (soft->call_count("cuEventSynchronize") != waits) {
                waited = true;
                gate_release(&gate);
            }
            sched_yield();
        }
        gate_drain(&gate);
        OK(gpumem_device_trim(device, 1));
        assert_int_equal(device_stats().committed_bytes + device_stats().quarantined, 0);
        DESTROY(&gate);
    }
    assert_true(waited);
    OK(gpumem_resource_destroy(resource));
}

TEST(memory_of_a_capture_is_not_reused) {
    gpumem_resource *resource = make_caching(GIB);
    CUstream stream = NEW_STREAM();
    CUgraph graph;
    use_context();
    CUdeviceptr warm = free_it(allocate(resource, 4 * MIB, stream));
    OK_CU(cu->cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    gpumem_buffer *buffer = allocate(resource, 4 * MIB, stream);
    assert_true(gpumem_buffer_pointer(buffer) == warm); /* idle memory may */
    OK(gpumem_buffer_fill(buffer, 0, 4 * MIB, 0x11, stream));
    free_it(buffer);
    gpumem_buffer *other = allocate(resource, 4 * MIB, stream);
    assert_true(gpumem_buffer_pointer(other) != warm);
    free_it(other);
    OK_CU(cu->cuStreamEndCapture(stream, &graph)); /* unspoilt */
    OK_CU(cu->cuGraphDestroy(graph));
    leave_context();
    DESTROY(resource, stream);
}

/* A pending range would be the captured graph's, which runs on any stream. */
TEST(a_capture_gets_no_busy_cached_memory) {
    gpumem_resource *resource = make_caching(GIB);
    struct gate gate = gate_with_stream();
    use_context();
    gpumem_buffer *buffer = allocate(resource, 4 * MIB, gate.stream);
    OK(gpumem_buffer_fill(buffer, 0, 4 * MIB, 0x11, gate.stream));
    CUdeviceptr busy = free_it(buffer);
    OK_CU(cu->cuStreamBeginCapture_v2(gate.stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    buffer = allocate(resource, 4 * MIB, gate.stream);
    assert_true(gpumem_buffer_pointer(buffer) != busy);
    CUgraph graph = GOT_CU(CUgraph, cuStreamEndCapture, gate.stream);
    OK_CU(cu->cuGraphDestroy(graph));
    free_it(buffer);
    leave_context();
    gate_drain(&gate);
    DESTROY(resource, &gate);
}

TEST(exported_memory_is_not_cached) {
    gpumem_resource *resource = make_caching(GIB);
    gpumem_buffer *buffer = allocate_with(resource, 8 * MIB, 16 * MIB, NULL);
    gpumem_export *exported = NEW_EXPORT(buffer);
    OK(gpumem_export_destroy(exported));
    OK(gpumem_buffer_grow(buffer, 16 * MIB, NULL));
    OK(gpumem_buffer_shrink(buffer, 8 * MIB, NULL)); /* nor its chunks */
    assert_int_equal(device_stats().cached_bytes, 0);
    free_it(buffer);
    assert_int_equal(device_stats().committed_bytes, 0);
    OK(gpumem_resource_destroy(resource));
}

/* By the program itself, or a library that it gave the address. */
TEST(memory_marked_as_shared_is_not_cached) {
    gpumem_resource *resource = make_caching(GIB);
    gpumem_buffer *buffer = allocate(resource, 8 * MIB, NULL);
    OK(gpumem_buffer_mark_shared(buffer));
    free_it(buffer);
    assert_int_equal(device_stats().committed_bytes, 0);
    buffer = allocate(resource, 8 * MIB, NULL);
    gpumem_physical *physical = NULL;
    OK(gpumem_physical_from_address(device, gpumem_buffer_pointer(buffer) + 4 * MIB, 0, &physical));
    OK(gpumem_physical_destroy(physical));
    gpumem_buffer *other = allocate(resource, 2 * MIB, NULL);
    free_it(buffer);
    free_it(other);
    assert_int_equal(device_stats().cached_bytes, 2 * MIB);
    OK(gpumem_resource_destroy(resource));
    gpumem_resource *pool = NEW_POOL();
    buffer = allocate(pool, 1024, NULL);
    FAILS(NOT_SUPPORTED, gpumem_buffer_mark_shared(buffer));
    free_it(buffer);
    OK(gpumem_resource_destroy(pool));
}

/* What an importer writes comes after the work of the memory's former user. */
TEST(an_export_waits_for_work_of_the_former_user) {
    gpumem_resource *resource = make_caching(GIB);
    struct gate gate = gate_with_stream();
    gpumem_buffer *buffer = allocate(resource, 4 * MIB, gate.stream);
    OK(gpumem_buffer_fill(buffer, 0, 4 * MIB, 0x11, gate.stream));
    CUdeviceptr address = free_it(buffer);
    buffer = allocate(resource, 4 * MIB, gate.stream);
    assert_true(gpumem_buffer_pointer(buffer) == address);
    struct opener opener;
    opener_start(&opener, gate);
    gpumem_export *exported = NEW_EXPORT(buffer);
    assert_true(opener_end(&opener));
    OK(gpumem_export_destroy(exported));
    free_it(buffer);
    DESTROY(resource, &gate);
}

TEST(chunks_released_by_a_shrink_serve_the_next_growth) {
    gpumem_resource *resource = NEW_VIRTUAL(.cache_bytes = GIB, .exact_growth = 1);
    gpumem_buffer *buffer = allocate_with(resource, 2 * MIB, 16 * MIB, NULL);
    OK(gpumem_buffer_grow(buffer, 8 * MIB, NULL));
    OK(gpumem_buffer_shrink(buffer, 2 * MIB, NULL));
    gpumem_stats stats = device_stats();
    MEMBERS(stats, (cached_bytes, 6 * MIB), (committed_bytes, 8 * MIB));
    uint64_t created = soft->call_count("cuMemCreate");
    OK(gpumem_buffer_grow(buffer, 8 * MIB, NULL));
    assert_int_equal(soft->call_count("cuMemCreate"), created);
    assert_int_equal(device_stats().cached_bytes, 0);
    free_it(buffer);
    OK(gpumem_resource_destroy(resource));
}

TEST(cached_memory_is_released_when_memory_runs_short) {
    gpumem_resource *resource = make_caching(UINT64_MAX), *plain = NEW_VIRTUAL();
    uint64_t free_bytes, total;
    OK(gpumem_device_get_memory(device, &free_bytes, &total));
    const size_t most = (size_t)(free_bytes / 4 * 3) / (2 * MIB) * (2 * MIB);
    struct gate gate = gate_with_stream();
    gpumem_buffer *buffer = allocate(resource, most, gate.stream);
    gate_drain(&gate);
    free_it(buffer);
    assert_int_equal(device_stats().cached_bytes, most);
    free_it(allocate(plain, most, NULL));
    assert_int_equal(device_stats().cached_bytes, 0);
    DESTROY(plain, resource, &gate);
}

/* The CPU writes without asking a stream. */
TEST(cached_host_memory_is_reused_only_after_its_work) {
    gpumem_resource *resource =
        NEW_VIRTUAL(.location = GPUMEM_LOCATION_HOST_NUMA, .cache_bytes = GIB);
    gpumem_resource_properties properties = properties_of(resource);
    assert_false(properties.stream_ordered);
    struct gate gate = gate_with_stream();
    gpumem_buffer *buffer = allocate(resource, 4 * MIB, gate.stream);
    OK(gpumem_buffer_fill(buffer, 0, 4 * MIB, 0x11, gate.stream));
    CUdeviceptr address = free_it(buffer);
    buffer = allocate(resource, 4 * MIB, gate.stream);
    assert_true(gpumem_buffer_pointer(buffer) != address);
    gate_drain(&gate);
    OK(gpumem_device_trim(device, 0));
    free_it(buffer);
    buffer = allocate(resource, 4 * MIB, gate.stream);
    assert_true(gpumem_buffer_pointer(buffer) != 0);
    free_it(buffer);
    DESTROY(resource, &gate);
}

TEST(the_cache_works_through_wrappers) {
    gpumem_resource *resource = make_caching(GIB);
    gpumem_resource *limit = NEW_LIMIT(resource, 8 * MIB);
    CUdeviceptr address = free_it(allocate(limit, 8 * MIB, NULL));
    assert_true(free_it(allocate(limit, 8 * MIB, NULL)) == address);
    assert_int_equal(device_stats().cached_bytes, 8 * MIB);
    struct gate gate = gate_with_stream();
    gpumem_buffer *buffer = allocate(limit, 4 * MIB, gate.stream);
    OK(gpumem_buffer_use(buffer, GPUMEM_STREAM_LEGACY));
    free_it(buffer);
    gate_drain(&gate);
    OK(gpumem_device_trim(device, 1));
    assert_int_equal(device_stats().committed_bytes, 0);
    gate_remove(&gate);
    DESTROY(limit, resource);
}

/* ---- Threads --------------------------------------------------------------------------------- */

#define ROUNDS  300
#define AT_ONCE 3

struct worker {
    gpumem_resource *resource;
    unsigned number;
};

/* At the beginning of each piece of 2 MiB and at the end: pages that are not used cost no time. */
static void write_pages(gpumem_buffer *buffer, size_t bytes, unsigned char value, CUstream stream) {
    for (size_t at = 0; at < bytes; at += 2 * MIB)
        OK(gpumem_buffer_fill(buffer, at, 4 * KIB, value, stream));
    OK(gpumem_buffer_fill(buffer, bytes - 4 * KIB, 4 * KIB, value, stream));
}

/* Each writes its own bytes into all that it gets, on its own stream, and finds them there. */
static void *write_and_read(void *data) {
    const struct worker *worker = data;
    CUstream stream = NEW_STREAM();
    for (unsigned i = 0; i < ROUNDS; i++) {
        gpumem_buffer *buffers[AT_ONCE];
        unsigned char seen[AT_ONCE][2];
        const unsigned char value = (unsigned char)(worker->number * 16 + i % 16);
        for (unsigned n = 0; n < AT_ONCE; n++) {
            size_t bytes = (1 + (i + n) % 3) * 2 * MIB;
            buffers[n] = allocate(worker->resource, bytes, stream);
            write_pages(buffers[n], bytes, value, stream);
            OK(gpumem_buffer_read(buffers[n], 0, &seen[n][0], 1, stream));
            OK(gpumem_buffer_read(buffers[n], bytes - 1, &seen[n][1], 1, stream));
            if (n % 2)
                free_it(buffers[n]);
        }
        for (unsigned n = 0; n < AT_ONCE; n += 2)
            free_it(buffers[n]);
        if (i % 8 == 0)
            OK(gpumem_resource_trim(worker->resource, 4 * MIB));
        synchronize(stream);
        for (unsigned n = 0; n < AT_ONCE; n++)
            for (unsigned k = 0; k < 2; k++)
                if (seen[n][k] != value)
                    fail_msg("thread %u found another's bytes", worker->number);
    }
    OK(gpumem_stream_destroy(device, stream));
    return NULL;
}

TEST(threads_never_get_each_others_memory) {
    gpumem_resource *resource = make_caching(24 * MIB);
    pthread_t threads[8];
    struct worker workers[COUNT(threads)];
    for (unsigned i = 0; i < COUNT(threads); i++) {
        workers[i] = (struct worker){resource, i};
        assert_int_equal(pthread_create(&threads[i], NULL, write_and_read, &workers[i]), 0);
    }
    for (size_t i = 0; i < COUNT(threads); i++)
        pthread_join(threads[i], NULL);
    assert_true(device_stats().cached_bytes <= 24 * MIB);
    OK(gpumem_device_trim(device, 1));
    gpumem_stats stats = device_stats();
    assert_int_equal(stats.committed_bytes + stats.reserved_bytes + stats.chunks + stats.mappings +
                         stats.quarantined,
                     0);
    OK(gpumem_resource_destroy(resource));
}

/* ---- Chunks without a bound ------------------------------------------------------------------ */

TEST(doubling_a_buffer_creates_one_handle_per_step) {
    gpumem_resource *resource = NEW_VIRTUAL(.handle_type = GPUMEM_HANDLE_NONE);
    gpumem_resource_properties properties = properties_of(resource);
    assert_int_equal(properties.maximum_chunk_bytes, 0);
    const size_t most = 2 * GIB;
    gpumem_buffer *buffer = allocate_with(resource, 64 * MIB, most, NULL);
    CUdeviceptr address = gpumem_buffer_pointer(buffer);
    size_t handles = 1;
    for (size_t bytes = 128 * MIB; bytes <= most; bytes *= 2) {
        OK(gpumem_buffer_grow(buffer, bytes, NULL));
        assert_int_equal(chunks_of(buffer), ++handles);
    }
    assert_true(gpumem_buffer_pointer(buffer) == address);
    OK(gpumem_buffer_shrink(buffer, most - 64 * MIB,
                            NULL)); /* in the last handle: none comes back */
    assert_int_equal(gpumem_buffer_committed(buffer), most);
    OK(gpumem_buffer_shrink(buffer, most / 2, NULL));
    assert_int_equal(gpumem_buffer_committed(buffer), most / 2);
    free_it(buffer);
    OK(gpumem_resource_destroy(resource));
}

TEST(memory_is_released_in_the_requested_unit) {
    gpumem_resource *resource =
        NEW_VIRTUAL(.handle_type = GPUMEM_HANDLE_NONE, .give_back_bytes = 16 * MIB);
    gpumem_buffer *buffer = allocate_with(resource, 64 * MIB, 256 * MIB, NULL);
    assert_int_equal(chunks_of(buffer), 4);
    OK(gpumem_buffer_grow(buffer, 128 * MIB, NULL));
    OK(gpumem_buffer_shrink(buffer, 112 * MIB, NULL));
    assert_int_equal(gpumem_buffer_committed(buffer), 112 * MIB);
    free_it(buffer);
    OK(gpumem_resource_destroy(resource));
    FAILS_SAYING(INVALID_ARGUMENT, "give_back_bytes",
                 gpumem_virtual_resource_create(
                     device, GPUMEM_VIRTUAL_OPTIONS(.give_back_bytes = MIB), &resource));
    FAILS(INVALID_ARGUMENT,
          gpumem_virtual_resource_create(
              device,
              GPUMEM_VIRTUAL_OPTIONS(.minimum_chunk_bytes = 8 * MIB, .give_back_bytes = 4 * MIB),
              &resource));
}
