/* Mirrored rings: a chunk that crosses the end has no seam, for the CPU and for the device. */
#include "vulkan_test.h"

ALL_TESTS(find_icd, NULL);

static gpumem_resource *mapped;
static gpumem_ring *ring;

static void make_ring(const gpumem_mapped_options *options, size_t chunk_bytes, size_t count) {
    gpumem_mapped_info info = {.size = sizeof info};
    OK(gpumem_mapped_resource_create(device, options, &mapped));
    OK(gpumem_mapped_get_info(mapped, &info));
    assert_int_equal(info.method, options->method);
    OK(gpumem_ring_create(
        mapped,
        GPUMEM_RING_OPTIONS(.chunk_bytes = chunk_bytes, .chunk_count = count, .mirrored = 1),
        &ring));
}

static void end_ring(void) {
    OK(gpumem_ring_destroy(ring));
    OK(gpumem_resource_destroy(mapped));
    const gpumem_stats stats = device_stats();
    MEMBERS(stats, (committed_bytes, 0), (mappings, 0), (chunks, 0), (quarantined, 0));
}

static unsigned char value(uint64_t sequence, size_t i) {
    return (unsigned char)(sequence * 31 + i * 7 + i / 4096);
}

static void fill(const gpumem_ring_chunk *chunk) {
    unsigned char *host = chunk->host;
    for (size_t i = 0; i < chunk->bytes; i++)
        host[i] = value(chunk->sequence, i);
}

/* As the device has it, by one copy over the seam. */
static void check_on_device(const gpumem_ring_chunk *chunk) {
    unsigned char *back = malloc(chunk->bytes);
    assert_non_null(back);
    OK(copy_bytes(device, (CUdeviceptr)(uintptr_t)back, chunk->device, chunk->bytes, NULL));
    synchronize(NULL);
    for (size_t i = 0; i < chunk->bytes; i++)
        if (back[i] != value(chunk->sequence, i))
            fail_msg("chunk %llu differs at %zu", (unsigned long long)chunk->sequence, i);
    free(back);
}

/* Records of many sizes go round `laps` times; how many of them crossed the end. */
static size_t go_round(size_t laps) {
    size_t crossed = 0, done = 0;
    gpumem_ring_info info = {.size = sizeof info};
    OK(gpumem_ring_get_info(ring, &info));
    for (size_t turn = 0; done < laps * info.bytes; turn++) {
        gpumem_ring_chunk chunk = {.size = sizeof chunk};
        size_t bytes = info.bytes / 5 + turn * 977 % (info.bytes / 3);
        OK(gpumem_ring_acquire(ring, bytes, 0, &chunk));
        crossed += chunk.offset + bytes > info.bytes;
        assert_true(chunk.offset < info.bytes);
        assert_true(chunk.device == info.device + chunk.offset);
        fill(&chunk);
        OK(gpumem_ring_commit(ring, chunk.sequence, bytes));
        OK(gpumem_ring_consume(ring, 0, &chunk));
        check_on_device(&chunk);
        OK(gpumem_ring_release(ring, chunk.sequence, NULL, 0, NULL, 0));
        done += bytes;
    }
    return crossed;
}

static void there_is_no_seam(const gpumem_mapped_options *options) {
    make_ring(options, 4096, 512);
    assert_true(go_round(5) >= 4);
    end_ring();
}

TEST(a_ring_mirrored_by_descriptors_is_contiguous) {
    there_is_no_seam(GPUMEM_MAPPED_OPTIONS(.method = GPUMEM_MAPPED_DESCRIPTOR, .method_strict = 1));
    /* Several pieces of memory on either side of the seam. */
    make_ring(
        GPUMEM_MAPPED_OPTIONS(.method = GPUMEM_MAPPED_DESCRIPTOR, .maximum_chunk_bytes = 2 * MIB),
        MIB, 5);
    assert_true(go_round(3) >= 2);
    end_ring();
}

TEST(a_ring_mirrored_by_vulkan_is_contiguous) {
    there_is_no_seam(
        GPUMEM_MAPPED_OPTIONS(.method = GPUMEM_MAPPED_VULKAN_IMPORT, .method_strict = 1));
    assert_used_well();
}

/* The test driver's non-coherent mappings are copies: a flush that is missing shows, and so does
 * one of another mapping's older bytes. */
TEST(a_ring_mirrored_in_non_coherent_memory_is_contiguous) {
    setenv("VULKAN_ICD_COHERENT", "no", 1);
    there_is_no_seam(
        GPUMEM_MAPPED_OPTIONS(.method = GPUMEM_MAPPED_VULKAN_IMPORT, .method_strict = 1));
    there_is_no_seam(GPUMEM_MAPPED_OPTIONS(.method = GPUMEM_MAPPED_VULKAN_IMPORT,
                                           .method_strict = 1, .force_non_coherent = 1));
    assert_used_well();
}

TEST_IS(a_ring_mirrored_in_host_memory_is_contiguous,
        there_is_no_seam(GPUMEM_MAPPED_OPTIONS(.method = GPUMEM_MAPPED_HOST, .method_strict = 1)));

TEST(a_chunk_waits_until_enough_bytes_are_free) {
    make_ring(GPUMEM_MAPPED_OPTIONS(.method = GPUMEM_MAPPED_DESCRIPTOR, .method_strict = 1), 4096,
              512);
    gpumem_ring_chunk chunk = {.size = sizeof chunk};
    gpumem_ring_info info = {.size = sizeof info};
    OK(gpumem_ring_get_info(ring, &info));
    assert_int_equal(info.bytes, 2 * MIB);
    FAILS(INVALID_ARGUMENT, gpumem_ring_acquire(ring, info.bytes + 1, 0, &chunk));
    OK(gpumem_ring_acquire(ring, info.bytes - 4096, 0, &chunk));
    FAILS(TIMED_OUT, gpumem_ring_acquire(ring, 4097, 0, &chunk));
    OK(gpumem_ring_acquire(ring, 4096, 0, &chunk));
    FAILS(TIMED_OUT, gpumem_ring_acquire(ring, 1, 0, &chunk));
    OK(gpumem_ring_abandon(ring, 0));
    OK(gpumem_ring_acquire(ring, info.bytes - 4096, 0, &chunk));
    OK(gpumem_ring_abandon(ring, 1));
    OK(gpumem_ring_abandon(ring, 2));
    OK(gpumem_ring_acquire(ring, info.bytes, 0, &chunk)); /* all of it, from its middle on */
    fill(&chunk);
    OK(gpumem_ring_commit(ring, chunk.sequence, info.bytes));
    OK(gpumem_ring_consume(ring, 0, &chunk));
    check_on_device(&chunk);
    OK(gpumem_ring_release(ring, chunk.sequence, NULL, 0, NULL, 0));
    end_ring();
}

/* Nothing else gets the memory, whatever the resource keeps. */
TEST(memory_of_a_mirrored_ring_is_not_cached) {
    make_ring(GPUMEM_MAPPED_OPTIONS(.method = GPUMEM_MAPPED_DESCRIPTOR, .method_strict = 1,
                                    .cache_bytes = 64 * MIB),
              4096, 512);
    OK(gpumem_ring_destroy(ring));
    assert_int_equal(device_stats().cached_bytes, 0);
    OK(gpumem_resource_destroy(mapped));
    assert_int_equal(device_stats().mappings, 0);
}

/* Each call of Vulkan refused: there is no ring, and nothing of one. */
TEST(a_ring_refused_by_vulkan_leaks_nothing) {
    unsigned call = 1, refused = 0;
    mapped = NEW_MAPPED(.method = GPUMEM_MAPPED_VULKAN_IMPORT, .method_strict = 1,
                        .maximum_chunk_bytes = 2 * MIB);
    const struct vulkan_icd_live before = icd->live();
    for (;; call++) {
        icd->reset();
        icd->refuse(NULL, call, 1, -2);
        gpumem_status status = gpumem_ring_create(
            mapped, GPUMEM_RING_OPTIONS(.chunk_bytes = 2 * MIB, .chunk_count = 3, .mirrored = 1),
            &ring);
        if (status == GPUMEM_OK)
            break;
        const struct vulkan_icd_live after = icd->live();
        MEMBERS(after, (memories, before.memories), (maps, before.maps));
        MEMBERS(device_stats(), (mappings, 0), (chunks, 0));
        refused++;
    }
    assert_true(refused >= 12); /* six pieces, imported and mapped */
    icd->reset();
    assert_true(go_round(2) >= 1);
    end_ring();
}

TEST(memory_that_cannot_be_mapped_twice_is_refused) {
    gpumem_resource *pinned = NEW_PINNED();
    FAILS_SAYING(
        NOT_SUPPORTED, "mapped twice",
        gpumem_ring_create(
            pinned, GPUMEM_RING_OPTIONS(.chunk_bytes = 1, .chunk_count = 2, .mirrored = 1), &ring));
    OK(gpumem_resource_destroy(pinned));
    mapped = NEW_MAPPED(.method = GPUMEM_MAPPED_DESCRIPTOR, .method_strict = 1);
    gpumem_resource *cache = NEW_CACHING(mapped);
    FAILS(NOT_SUPPORTED,
          gpumem_ring_create(cache,
                             GPUMEM_RING_OPTIONS(.chunk_bytes = 1, .chunk_count = 2, .mirrored = 1),
                             &ring));
    OK(gpumem_resource_destroy(cache));
    gpumem_resource *limit = NEW_LIMIT(mapped, 64 * MIB); /* takes nothing from it */
    OK(gpumem_ring_create(
        limit, GPUMEM_RING_OPTIONS(.chunk_bytes = 1000, .chunk_count = 3000, .mirrored = 1),
        &ring));
    assert_true(go_round(2) >= 1);
    OK(gpumem_ring_destroy(ring));
    OK(gpumem_resource_destroy(limit));
    FAILS(INVALID_ARGUMENT,
          gpumem_ring_create(mapped,
                             GPUMEM_RING_OPTIONS(.chunk_bytes = 1, .chunk_count = 2,
                                                 .alignment = 4 * MIB, .mirrored = 1),
                             &ring));
    OK(gpumem_resource_destroy(mapped));
}

static int setup(void **state) {
    start_with_icd(state);
    return open_device(state);
}

static int teardown(void **state) {
    int result = close_device(state);
    assert_nothing_left();
    return result;
}

EACH_TEST(setup, teardown);
