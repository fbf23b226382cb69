/* Small buffers of mapped memory are cut out of slabs: no call of Vulkan or of the driver for each,
 * nothing shared between two, nothing that a stream still uses, and one resource to the program. */
#include "vulkan_test.h"

#include <sys/wait.h>

ALL_TESTS(find_icd, NULL);

#define SLAB (2 * MIB)
#define UNIT 256 /* buffers lie at multiples of it */

/* What the CPU reaches by a mapping of a descriptor wants no Vulkan. */
#define PLAIN(...) NEW_MAPPED(.method = GPUMEM_MAPPED_DESCRIPTOR, .method_strict = 1, __VA_ARGS__)

static gpumem_buffer *allocate(gpumem_resource *resource, size_t bytes) {
    return allocate_on(resource, bytes, GPUMEM_STREAM_NONE);
}

static unsigned char *host_of(const gpumem_buffer *buffer) {
    unsigned char *host = gpumem_buffer_host_pointer(buffer);
    assert_non_null(host);
    return host;
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

/* ---- What it costs --------------------------------------------------------------------------- */

#define ROUNDS 1000000
#define ALIVE  512 /* at a time: less than a slab */

static uint32_t seed;

static uint32_t next(uint32_t below) {
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % below;
}

/* The bytes that a buffer has from its round, at its beginning and at its end. */
static void stamp(gpumem_buffer *buffer, uint32_t round) {
    memcpy(host_of(buffer), &round, sizeof round);
    memcpy(host_of(buffer) + gpumem_buffer_size(buffer) - sizeof round, &round, sizeof round);
}

static void check_stamp(gpumem_buffer *buffer, uint32_t round) {
    const unsigned char *host = host_of(buffer);
    if (memcmp(host, &round, sizeof round) != 0 ||
        memcmp(host + gpumem_buffer_size(buffer) - sizeof round, &round, sizeof round) != 0)
        fail_msg("somebody else wrote into the buffer of round %u", (unsigned)round);
}

struct calls {
    uint64_t context; /* that make the device's context current, and the one before again */
    uint64_t events;
    uint64_t driver; /* all others */
    unsigned vulkan;
};

static struct calls calls_since(struct calls before) {
    static const char *const switching[] = {"cuCtxGetCurrent", "cuCtxPushCurrent_v2",
                                            "cuCtxPopCurrent_v2",
                                            "cuThreadExchangeStreamCaptureMode"};
    struct calls now = {.events = soft->call_count("cuEventRecord") - before.events,
                        .vulkan = icd->calls(NULL) - before.vulkan};
    for (size_t i = 0; i < COUNT(switching); i++)
        now.context += soft->call_count(switching[i]);
    now.context -= before.context;
    now.driver = soft->call_count(NULL) - now.context - before.context - before.driver;
    return now;
}

/* `rounds` of one free and one allocation, of which ALIVE are there all the time. */
static void go_round(gpumem_resource *resource, uint32_t rounds, CUstream stream) {
    static gpumem_buffer *buffers[ALIVE];
    static uint32_t stamps[ALIVE];
    seed = 1;
    for (uint32_t i = 0; i < ALIVE; i++) {
        buffers[i] = allocate_on(resource, 8 + i, stream);
        stamp(buffers[i], stamps[i] = i);
    }
    struct calls before = calls_since((struct calls){0});
    for (uint32_t i = ALIVE; i < rounds; i++) {
        uint32_t at = next(ALIVE);
        check_stamp(buffers[at], stamps[at]);
        DESTROY(buffers[at]);
        buffers[at] = allocate_on(resource, 8 + next(2000), stream);
        stamp(buffers[at], stamps[at] = i);
    }
    struct calls made = calls_since(before);
    print_message(
        "# %u allocations: %llu calls of the driver, %llu for its context, %u of Vulkan\n",
        (unsigned)rounds, (unsigned long long)made.driver, (unsigned long long)made.context,
        made.vulkan);
    assert_int_equal(made.vulkan, 0);
    if (stream == GPUMEM_STREAM_NONE)
        assert_true(made.driver == 0 && made.context < rounds / 100);
    else
        assert_true(made.events < rounds / 16 && made.driver + made.context < rounds / 2);
    for (uint32_t i = 0; i < ALIVE; i++) {
        check_stamp(buffers[i], stamps[i]);
        assert_int_equal(byte_of(buffers[i], 0), stamps[i] & 0xff);
        DESTROY(buffers[i]);
    }
}

/* The first buffers of each kind of size may take a slab; after those there is nothing to ask for.
 */
static void a_million_cost_no_call(gpumem_mapped_method method) {
    gpumem_resource *resource =
        NEW_MAPPED(.method = method, .method_strict = 1, .slab_bytes = 4 * MIB);
    go_round(resource, 20000, GPUMEM_STREAM_NONE);
    go_round(resource, ROUNDS, GPUMEM_STREAM_NONE);
    assert_true(stats_of(resource).committed_bytes <= 8 * MIB);
    OK(gpumem_resource_destroy(resource));
}

TEST_IS(a_million_buffers_of_imported_memory_make_no_call,
        a_million_cost_no_call(GPUMEM_MAPPED_VULKAN_IMPORT));
TEST_IS(a_million_buffers_of_exported_memory_make_no_call,
        a_million_cost_no_call(GPUMEM_MAPPED_VULKAN_EXPORT));
TEST_IS(a_million_buffers_of_mapped_descriptors_make_no_call,
        a_million_cost_no_call(GPUMEM_MAPPED_DESCRIPTOR));

/* An event for each batch that was freed behind it, and no call of Vulkan. */
TEST(freeing_behind_a_stream_creates_only_events) {
    gpumem_resource *resource =
        NEW_MAPPED(.method = GPUMEM_MAPPED_VULKAN_IMPORT, .method_strict = 1);
    CUstream stream = NEW_STREAM();
    uint64_t before = soft->call_count("cuMemCreate");
    go_round(resource, 100000, stream);
    go_round(resource, 100000, NULL);
    assert_true(soft->call_count("cuMemCreate") - before <= 2);
    DESTROY(stream, resource);
}

/* As many Vulkan allocations as slabs, however many buffers live. */
TEST(fifty_thousand_live_buffers_share_few_allocations) {
    enum { LIVE = 50000 };
    gpumem_buffer **buffers = malloc(LIVE * sizeof *buffers);
    assert_non_null(buffers);
    gpumem_resource *resource =
        NEW_MAPPED(.method = GPUMEM_MAPPED_VULKAN_EXPORT, .method_strict = 1);
    size_t before = icd->live().memories;
    for (uint32_t i = 0; i < LIVE; i++)
        stamp(buffers[i] = allocate(resource, 200), i);
    size_t slabs = icd->live().memories - before;
    assert_in_range(slabs, LIVE / (SLAB / UNIT), LIVE / (SLAB / UNIT) + 1);
    for (uint32_t i = 0; i < LIVE; i++) {
        check_stamp(buffers[i], i);
        DESTROY(buffers[i]);
    }
    OK(gpumem_resource_trim(resource, 0));
    assert_int_equal(icd->live().memories, before);
    OK(gpumem_resource_destroy(resource));
    free(buffers);
}

/* ---- Which buffers --------------------------------------------------------------------------- */

static size_t reservations(void) {
    return (size_t)soft->call_count("cuMemAddressReserve");
}

TEST(larger_buffers_have_their_own_memory) {
    gpumem_resource *resource = PLAIN(.slab_bytes = 4 * MIB);
    gpumem_buffer *most = allocate(resource, MIB);
    size_t before = reservations();
    gpumem_buffer *also = allocate(resource, MIB);
    assert_int_equal(reservations(), before);
    gpumem_buffer *more = allocate(resource, MIB + 1);
    assert_int_equal(reservations(), before + 1);
    OK(gpumem_buffer_grow(more, 2 * MIB, NULL)); /* to the granule that it has */
    DESTROY(more, also, most, resource);
}

TEST(buffers_of_slabs_cannot_grow_without_a_capacity) {
    gpumem_resource *resource = PLAIN(.slab_bytes = 0);
    gpumem_export *made;
    gpumem_buffer *view;
    gpumem_buffer *small = allocate(resource, 100);
    FAILS_SAYING(
        NOT_SUPPORTED,
        "a small buffer of the mapped resource lies in a slab and cannot grow: allocate it with a "
        "capacity",
        gpumem_buffer_grow(small, 200, NULL));
    FAILS_SAYING(NOT_SUPPORTED, "with a capacity", gpumem_buffer_shrink(small, 50, NULL));
    FAILS(NOT_SUPPORTED, gpumem_export_create(small, &made));
    SAYS("cannot be exported: allocate it with a capacity");
    FAILS_SAYING(NOT_SUPPORTED, "with a capacity", gpumem_buffer_host_view(small, NULL, &view));
    FAILS(NOT_SUPPORTED, gpumem_buffer_decommit(small, 0, 100, NULL, NULL));
    SAYS("with a capacity");
    assert_int_equal(gpumem_buffer_capacity(small), 100);
    gpumem_buffer *own = NEW_BUFFER_WITH(resource, 100, .capacity = 8 * MIB);
    OK(gpumem_buffer_grow(own, 8 * MIB, NULL));
    host_of(own)[8 * MIB - 1] = 3;
    assert_int_equal(byte_of(own, 8 * MIB - 1), 3);
    made = NEW_EXPORT(own);
    DESTROY(made, own);
    own = NEW_BUFFER_WITH(resource, 100, .capacity = 100);
    OK(gpumem_buffer_host_view(own, NULL, &view));
    DESTROY(view, own, small, resource);
}

TEST(a_resource_with_a_capacity_has_no_slabs) {
    gpumem_resource *resource = PLAIN(.capacity = 8 * MIB), *none;
    gpumem_buffer *buffer = allocate(resource, 100);
    OK(gpumem_buffer_grow(buffer, 8 * MIB, NULL));
    DESTROY(buffer, resource);
    FAILS_SAYING(INVALID_ARGUMENT, "capacity and slab_bytes exclude each other",
                 gpumem_mapped_resource_create(
                     device, GPUMEM_MAPPED_OPTIONS(.capacity = MIB, .slab_bytes = SLAB), &none));
}

TEST(without_slabs_each_buffer_has_its_own_memory) {
    gpumem_resource *resource = PLAIN(.slab_bytes = SIZE_MAX);
    gpumem_caching_info info = {.size = sizeof info};
    size_t before = reservations();
    gpumem_buffer *first = allocate(resource, 8), *second = allocate(resource, 8);
    assert_int_equal(reservations(), before + 2);
    FAILS(INVALID_ARGUMENT, gpumem_caching_get_info(resource, &info));
    DESTROY(first, second, resource);
}

TEST(invalid_slab_sizes_are_refused) {
    gpumem_resource *none;
    FAILS_SAYING(INVALID_ARGUMENT, "slab_bytes is 2097151; 2 MiB is the least",
                 gpumem_mapped_resource_create(
                     device, GPUMEM_MAPPED_OPTIONS(.slab_bytes = SLAB - 1), &none));
    FAILS_SAYING(INVALID_ARGUMENT, "slab_bytes",
                 gpumem_mapped_resource_create(
                     device, GPUMEM_MAPPED_OPTIONS(.slab_bytes = SIZE_MAX / 2), &none));
}

TEST(buffers_of_a_slab_do_not_overlap) {
    enum { LIVE = 600 };
    static gpumem_buffer *buffers[LIVE];
    gpumem_resource *resource = PLAIN(.slab_bytes = 0);
    for (size_t i = 0; i < LIVE; i++) {
        buffers[i] = allocate(resource, 1 + i * 7);
        assert_int_equal(gpumem_buffer_pointer(buffers[i]) % UNIT, 0);
        assert_int_equal((uintptr_t)host_of(buffers[i]) % UNIT, 0);
        memset(host_of(buffers[i]), (int)i & 0xff, 1 + i * 7);
    }
    for (size_t i = 0; i < LIVE; i++) {
        for (size_t at = 0; at < 1 + i * 7; at++)
            assert_int_equal(host_of(buffers[i])[at], i & 0xff);
        assert_int_equal(byte_of(buffers[i], i * 7), i & 0xff);
    }
    for (size_t i = 0; i < LIVE; i++)
        DESTROY(buffers[i]);
    OK(gpumem_resource_destroy(resource));
}

TEST(requested_alignments_are_respected) {
    gpumem_resource *resource = PLAIN(.slab_bytes = 0);
    for (size_t alignment = 1; alignment <= MIB; alignment *= 2) {
        gpumem_buffer *buffer = NEW_BUFFER_WITH(resource, 300, .alignment = alignment);
        assert_int_equal(gpumem_buffer_pointer(buffer) % alignment, 0);
        stamp(buffer, (uint32_t)alignment);
        check_stamp(buffer, (uint32_t)alignment);
        DESTROY(buffer);
    }
    OK(gpumem_resource_destroy(resource));
}

/* ---- Streams --------------------------------------------------------------------------------- */

/* The CPU writes a new buffer at once: none may have the bytes that a queued copy has yet to read.
 */
static void rest_until_passed(int named_at_allocation) {
    enum { MANY = 200, BYTES = 1000 };
    static gpumem_buffer *others[MANY];
    gpumem_resource *resource = PLAIN(.slab_bytes = 0);
    struct gate gate = gate_with_stream();
    CUstream stream = named_at_allocation ? gate.stream : GPUMEM_STREAM_NONE;
    gpumem_buffer *copy = allocate(resource, MIB);
    gpumem_buffer *buffer = allocate_on(resource, BYTES, stream);
    CUdeviceptr address = gpumem_buffer_pointer(buffer);
    memset(host_of(copy), 0, BYTES);
    memset(host_of(buffer), 'a', BYTES);
    OK(gpumem_mapped_flush(buffer, 0, BYTES));
    OK(copy_bytes(device, gpumem_buffer_pointer(copy), address, BYTES, gate.stream));
    OK(gpumem_buffer_free(buffer, gate.stream));
    for (size_t i = 0; i < MANY; i++) {
        others[i] = allocate_on(resource, BYTES, stream);
        memset(host_of(others[i]), 'b', BYTES);
    }
    gate_drain(&gate);
    for (size_t i = 0; i < MANY; i++)
        assert_true(gpumem_buffer_pointer(others[i]) != address);
    for (size_t i = 0; i < BYTES; i++)
        assert_int_equal(host_of(copy)[i], 'a');
    for (size_t i = 0; i < MANY; i++)
        DESTROY(others[i]);
    DESTROY(copy);
    OK(gpumem_resource_trim(resource, 0));
    assert_int_equal(stats_of(resource).committed_bytes, 0); /* nothing rests any more */
    gate_remove(&gate);
    OK(gpumem_resource_destroy(resource));
}

TEST_IS(memory_is_not_reused_before_its_stream_passes, rest_until_passed(1));
TEST_IS(memory_is_not_reused_before_the_stream_of_its_free_passes, rest_until_passed(0));

TEST(memory_is_reused_after_its_stream_passes) {
    gpumem_resource *resource = PLAIN(.slab_bytes = 0);
    struct gate gate = gate_with_stream();
    gpumem_buffer *buffer = allocate_on(resource, SLAB / 4, gate.stream);
    OK(gpumem_buffer_free(buffer, gate.stream));
    gate_drain(&gate);
    for (int i = 0; i < 100; i++)
        DESTROY(allocate_on(resource, SLAB / 4, gate.stream));
    assert_int_equal(stats_of(resource).committed_bytes, SLAB);
    gate_remove(&gate);
    OK(gpumem_resource_destroy(resource));
}

/* A driver's stream that the library does not destroy is forgotten by hand. */
TEST(a_destroyed_stream_can_be_forgotten) {
    gpumem_resource *resource = PLAIN(.slab_bytes = 0);
    use_context();
    CUstream stream = MADE_CU(CUstream, cuStreamCreate, CU_STREAM_NON_BLOCKING);
    OK(gpumem_buffer_free(allocate_on(resource, 100, stream), stream));
    OK(gpumem_caching_forget_stream(resource, stream));
    OK_CU(cu->cuStreamDestroy_v2(stream));
    leave_context();
    for (int i = 0; i < 100; i++)
        DESTROY(allocate(resource, 100));
    OK(gpumem_resource_destroy(resource));
}

/* ---- Memory that needs flushes --------------------------------------------------------------- */

/* The device writes one buffer while the CPU has stores in its neighbours that nobody flushed:
 * invalidating takes none of these. */
static void neighbours_keep_their_stores(const gpumem_mapped_options *options) {
    enum { LIVE = 16 };
    gpumem_buffer *buffers[LIVE];
    gpumem_mapped_info info = {.size = sizeof info};
    gpumem_resource *resource =
        MADE(gpumem_resource *, gpumem_mapped_resource_create, device, options);
    OK(gpumem_mapped_get_info(resource, &info));
    assert_false(info.coherent);
    assert_int_equal(info.atom, VULKAN_ICD_ATOM);
    for (size_t i = 0; i < LIVE; i++) {
        buffers[i] = allocate(resource, 8 + i % 3 * 300);
        assert_int_equal(gpumem_buffer_pointer(buffers[i]) % info.atom, 0);
    }
    for (size_t i = 0; i < LIVE; i++) {
        size_t bytes = gpumem_buffer_size(buffers[i]);
        OK(fill_now(buffers[i], 0, bytes, (unsigned char)(100 + i), NULL));
        for (size_t j = 0; j < LIVE; j++)
            if (j != i)
                memset(host_of(buffers[j]), (int)j, gpumem_buffer_size(buffers[j]));
        OK(gpumem_mapped_invalidate(buffers[i], 0, bytes));
        for (size_t at = 0; at < bytes; at++)
            assert_int_equal(host_of(buffers[i])[at], 100 + i);
        for (size_t j = 0; j < LIVE; j++)
            for (size_t at = 0; j != i && at < gpumem_buffer_size(buffers[j]); at++)
                assert_int_equal(host_of(buffers[j])[at], j);
        OK(gpumem_mapped_flush(buffers[i], 0, bytes));
    }
    for (size_t i = 0; i < LIVE; i++)
        memset(host_of(buffers[i]), (int)(50 + i), gpumem_buffer_size(buffers[i]));
    OK(gpumem_mapped_flush(buffers[5], 0, gpumem_buffer_size(buffers[5])));
    assert_int_equal(byte_of(buffers[5], 0), 55);
    for (size_t i = 0; i < LIVE; i++)
        DESTROY(buffers[i]);
    OK(gpumem_resource_destroy(resource));
}

TEST(buffers_never_share_a_non_coherent_atom) {
    static const gpumem_mapped_method methods[] = {GPUMEM_MAPPED_VULKAN_IMPORT,
                                                   GPUMEM_MAPPED_VULKAN_EXPORT};
    for (size_t i = 0; i < COUNT(methods); i++) {
        setenv("VULKAN_ICD_COHERENT", "no", 1);
        neighbours_keep_their_stores(
            GPUMEM_MAPPED_OPTIONS(.method = methods[i], .method_strict = 1));
        setenv("VULKAN_ICD_COHERENT", "both", 1);
        neighbours_keep_their_stores(GPUMEM_MAPPED_OPTIONS(.method = methods[i], .method_strict = 1,
                                                           .force_non_coherent = 1));
    }
    unsetenv("VULKAN_ICD_COHERENT");
}

/* ---- One resource ---------------------------------------------------------------------------- */

TEST(slabs_are_hidden_behind_one_resource) {
    gpumem_resource *resource = PLAIN(.slab_bytes = 0);
    gpumem_mapped_info info = {.size = sizeof info};
    gpumem_buffer *small = allocate(resource, 1000), *large = allocate(resource, 3 * MIB);
    gpumem_buffer *part = NEW_VIEW(small, 10, 20);
    assert_ptr_equal(gpumem_buffer_resource(small), resource);
    assert_ptr_equal(gpumem_buffer_resource(part), resource);
    assert_ptr_equal(gpumem_buffer_resource(large), resource);
    OK(gpumem_mapped_get_info(gpumem_buffer_resource(small), &info));
    assert_int_equal(info.method, GPUMEM_MAPPED_DESCRIPTOR);
    OK(gpumem_buffer_free(part, NULL));
    gpumem_stats stats = stats_of(resource), all = device_stats();
    MEMBERS(stats, (allocations, 2), (in_use_bytes, 1000 + 3 * MIB),
            (committed_bytes, SLAB + 4 * MIB));
    MEMBERS(all, (allocations, 2), (committed_bytes, SLAB + 4 * MIB),
            (cached_bytes, stats.cached_bytes));
    assert_in_range(stats.cached_bytes, SLAB - 2048, SLAB - 1000);
    gpumem_caching_info cached = caching_info_of(resource);
    assert_int_equal(cached.segments, 1);
    FAILS(BUSY, gpumem_resource_destroy(resource));
    SAYS("the mapped resource still has 2 buffers");
    DESTROY(large);
    FAILS_SAYING(BUSY, "still has 1 buffer ", gpumem_resource_destroy(resource));
    FAILS(BUSY, gpumem_device_close(device));
    assert_null(strstr(gpumem_last_error()->message, "caching"));
    DESTROY(small);
    OK(gpumem_resource_trim(resource, 0));
    assert_int_equal(stats_of(resource).committed_bytes, 0);
    OK(gpumem_resource_destroy(resource));
}

/* Whoever allocates by address gets the same. */
TEST(allocations_by_address_come_from_slabs) {
    gpumem_resource *resource = PLAIN(.slab_bytes = 0);
    CUdeviceptr first = MADE(CUdeviceptr, gpumem_resource_allocate, resource, 100, NULL);
    CUdeviceptr second = MADE(CUdeviceptr, gpumem_resource_allocate, resource, 100, NULL);
    assert_int_equal(stats_of(resource).committed_bytes, SLAB);
    OK(gpumem_resource_deallocate(resource, first, 100, NULL));
    OK(gpumem_resource_deallocate(resource, second, 100, NULL));
    OK(gpumem_resource_destroy(resource));
}

/* A wrapper counts whole buffers, which have memory of their own. */
TEST(wrappers_get_buffers_with_their_own_memory) {
    gpumem_resource *resource = PLAIN(.slab_bytes = 0);
    gpumem_resource *limit = NEW_LIMIT(resource, 64 * MIB);
    gpumem_buffer *buffer = allocate(limit, 100);
    memset(host_of(buffer), 9, 100);
    assert_int_equal(byte_of(buffer, 99), 9);
    FAILS_SAYING(BUSY, "wrapped by 1 other", gpumem_resource_destroy(resource));
    DESTROY(buffer);
    gpumem_resource *cache = NEW_CACHING(limit);
    buffer = allocate(cache, 100);
    memset(host_of(buffer), 7, 100);
    assert_int_equal(byte_of(buffer, 99), 7);
    DESTROY(buffer, cache, limit, resource);
}

TEST(a_forked_child_may_not_use_mapped_slabs) {
    gpumem_resource *resource = PLAIN(.slab_bytes = 0);
    gpumem_buffer *buffer = allocate(resource, 64), *other;
    DESTROY(allocate(resource, 64)); /* one is at hand */
    pid_t child = fork();
    assert_true(child >= 0);
    if (!child) {
        int told = gpumem_buffer_allocate(resource, 64, NULL, &other) == GPUMEM_ERROR_FORKED &&
                   gpumem_buffer_free(buffer, NULL) == GPUMEM_ERROR_FORKED &&
                   gpumem_resource_destroy(resource) == GPUMEM_ERROR_FORKED;
        _exit(told ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    DESTROY(buffer, resource);
}
