/* Mapped memory on Vulkan drivers of all kinds: atoms, limits, budgets, and those that lack what a
 * method needs. */
#include "vulkan_test.h"

EACH_TEST(start_with_icd, NULL);

static gpumem_resource *mapped;

static void make(const gpumem_mapped_options *options) {
    OK(gpumem_mapped_resource_create(device, options, &mapped));
}

static void end(void) {
    OK(gpumem_resource_destroy(mapped));
    MEMBERS(device_stats(), (committed_bytes, 0), (quarantined, 0));
    assert_nothing_left();
}

static gpumem_mapped_info info_of(gpumem_resource *resource) {
    gpumem_mapped_info info = {.size = sizeof info};
    OK(gpumem_mapped_get_info(resource, &info));
    return info;
}

/* ---- Atoms ----------------------------------------------------------------------------------- */

/* The test driver takes ranges that are not of whole atoms for a violation. */
static void odd_ranges(gpumem_buffer *buffer) {
    static const size_t offsets[] = {0, 1, 63, 64, 65, 255, 256, 257, 4095, 2 * MIB - 3};
    static const size_t sizes[] = {1, 2, 63, 64, 65, 255, 256, 257, 5000};
    unsigned char bytes[5000], back[5000];
    size_t whole = gpumem_buffer_size(buffer);
    for (size_t o = 0; o < COUNT(offsets); o++)
        for (size_t s = 0; s < COUNT(sizes); s++) {
            size_t at = offsets[o], count = sizes[s];
            memset(bytes, (int)(1 + o * 9 + s), count);
            if (count > whole - at)
                count = whole - at;
            OK(gpumem_mapped_write(buffer, at, bytes, count));
            OK(read_now(buffer, at, back, count, NULL));
            assert_memory_equal(back, bytes, count);
            memset(bytes, (int)(200 - o * 9 - s), count);
            OK(write_now(buffer, at, bytes, count, NULL));
            OK(gpumem_mapped_read(buffer, at, back, count));
            assert_memory_equal(back, bytes, count);
            OK(gpumem_mapped_flush(buffer, at, count));
            OK(gpumem_mapped_invalidate(buffer, at, count));
        }
    OK(gpumem_mapped_flush(buffer, 0, whole));
    OK(gpumem_mapped_flush(buffer, whole, 0));
    OK(gpumem_mapped_invalidate(buffer, whole - 1, 1));
    assert_used_well();
}

TEST(flushed_ranges_are_widened_to_whole_atoms) {
    static const char *const atoms[] = {"1", "4", "64", "256"};
    static const gpumem_mapped_method methods[] = {GPUMEM_MAPPED_VULKAN_IMPORT,
                                                   GPUMEM_MAPPED_VULKAN_EXPORT};
    setenv("VULKAN_ICD_COHERENT", "no", 1);
    for (size_t a = 0; a < COUNT(atoms); a++)
        for (size_t m = 0; m < COUNT(methods); m++) {
            gpumem_buffer *buffer;
            setenv("VULKAN_ICD_ATOM", atoms[a], 1);
            make(GPUMEM_MAPPED_OPTIONS(.method = methods[m], .method_strict = 1,
                                       .maximum_chunk_bytes = 2 * MIB));
            assert_int_equal(info_of(mapped).atom, strtoul(atoms[a], NULL, 10));
            assert_false(info_of(mapped).coherent);
            /* Over the end of a piece of memory, and up to the end of the buffer. */
            buffer = NEW_BUFFER(mapped, 2 * MIB + 4096);
            odd_ranges(buffer);
            OK(gpumem_buffer_free(buffer, NULL));
            end();
        }
}

/* An invalidate throws away what was stored and not flushed, in whole atoms. */
TEST(small_buffers_never_share_an_atom) {
    enum { BUFFERS = 64 };
    gpumem_buffer *buffers[BUFFERS];
    unsigned char byte;
    setenv("VULKAN_ICD_COHERENT", "no", 1);
    setenv("VULKAN_ICD_ATOM", "256", 1);
    make(GPUMEM_MAPPED_OPTIONS(.method = GPUMEM_MAPPED_VULKAN_IMPORT, .method_strict = 1));
    gpumem_resource *cache = NEW_CACHING(mapped);
    for (size_t i = 0; i < BUFFERS; i++) {
        buffers[i] = NEW_BUFFER(cache, 1 + 7 * i);
        memset(gpumem_buffer_host_pointer(buffers[i]), (int)i, 1 + 7 * i); /* not flushed */
    }
    for (size_t i = 0; i < BUFFERS; i += 2)
        OK(gpumem_mapped_read(buffers[i], 0, &byte, 1));
    for (size_t i = 1; i < BUFFERS; i += 2) {
        OK(gpumem_mapped_flush(buffers[i], 0, 1 + 7 * i));
        assert_int_equal(byte_of(buffers[i], 7 * i), i);
    }
    DESTROY_EACH(buffers, BUFFERS);
    OK(gpumem_resource_destroy(cache));
    end();
}

/* A producer that acquires the next chunk invalidates it. */
static void stored_beside(gpumem_resource *resource, size_t alignment) {
    gpumem_ring_chunk first = {.size = sizeof first}, second = {.size = sizeof second};
    char bytes[16];
    gpumem_ring *ring =
        MADE(gpumem_ring *, gpumem_ring_create, resource,
             GPUMEM_RING_OPTIONS(.chunk_bytes = 16, .chunk_count = 4, .alignment = alignment));
    OK(gpumem_ring_acquire(ring, 0, 0, &first));
    memcpy(first.host, "fifteen letters", 16);
    OK(gpumem_ring_acquire(ring, 0, 0, &second));
    assert_memory_equal(first.host, "fifteen letters", 16);
    OK(gpumem_ring_commit(ring, first.sequence, 16));
    OK(copy_bytes(device, (CUdeviceptr)(uintptr_t)bytes, first.device, sizeof bytes, NULL));
    OK(gpumem_stream_synchronize(device, NULL));
    assert_string_equal(bytes, "fifteen letters");
    OK(gpumem_ring_abandon(ring, second.sequence));
    OK(gpumem_ring_destroy(ring));
}

TEST(buffers_of_caches_and_logs_never_share_an_atom) {
    static const gpumem_mapped_method methods[] = {GPUMEM_MAPPED_VULKAN_IMPORT,
                                                   GPUMEM_MAPPED_VULKAN_EXPORT};
    setenv("VULKAN_ICD_COHERENT", "no", 1);
    setenv("VULKAN_ICD_ATOM", "256", 1);
    for (size_t m = 0; m < COUNT(methods); m++) {
        gpumem_resource *logged;
        make(GPUMEM_MAPPED_OPTIONS(.method = methods[m], .method_strict = 1));
        gpumem_resource *cache = NEW_CACHING(mapped);
        OK(gpumem_tracking_resource_create(mapped, NULL, &logged));
        for (size_t alignment = 1; alignment <= 512; alignment *= 8) {
            stored_beside(mapped, alignment);
            stored_beside(cache, alignment);
            stored_beside(logged, alignment);
        }
        DESTROY(logged, cache);
        end();
    }
}

TEST(alignments_are_respected_or_refused) {
    static const gpumem_mapped_method methods[] = {GPUMEM_MAPPED_VULKAN_IMPORT,
                                                   GPUMEM_MAPPED_VULKAN_EXPORT};
    for (size_t m = 0; m < COUNT(methods); m++) {
        make(GPUMEM_MAPPED_OPTIONS(.method = methods[m], .method_strict = 1));
        for (size_t alignment = 1; alignment <= 64 * MIB; alignment *= 4) {
            gpumem_buffer *buffers[3] = {NULL};
            for (size_t i = 0; i < COUNT(buffers); i++) {
                gpumem_status status = gpumem_buffer_allocate(
                    mapped, 1000 + 70000 * i, GPUMEM_BUFFER_OPTIONS(.alignment = alignment),
                    &buffers[i]);
                if (status != GPUMEM_OK) {
                    FAILS(NOT_SUPPORTED, status);
                    assert_true(alignment > 2 * MIB);
                    continue;
                }
                assert_int_equal(gpumem_buffer_pointer(buffers[i]) % alignment, 0);
            }
            for (size_t i = 0; i < COUNT(buffers); i++)
                if (buffers[i])
                    OK(gpumem_buffer_free(buffers[i], NULL));
        }
        end();
    }
}

/* ---- Wishes ---------------------------------------------------------------------------------- */

TEST(coherence_can_be_required_or_disabled) {
    gpumem_resource *none = NULL;
    setenv("VULKAN_ICD_COHERENT", "no", 1);
    FAILS(NOT_SUPPORTED, gpumem_mapped_resource_create(
                             device,
                             GPUMEM_MAPPED_OPTIONS(.method = GPUMEM_MAPPED_VULKAN_IMPORT,
                                                   .method_strict = 1, .require_coherent = 1),
                             &none));
    SAYS("coherently");
    make(GPUMEM_MAPPED_OPTIONS(.require_coherent = 1)); /* by a method that has it */
    assert_int_equal(info_of(mapped).method, GPUMEM_MAPPED_DESCRIPTOR);
    assert_true(info_of(mapped).coherent);
    end();
    setenv("VULKAN_ICD_COHERENT", "both", 1);
    make(GPUMEM_MAPPED_OPTIONS(.force_non_coherent = 1));
    assert_int_equal(info_of(mapped).method, GPUMEM_MAPPED_VULKAN_IMPORT);
    assert_false(info_of(mapped).coherent);
    assert_int_equal(info_of(mapped).atom, VULKAN_ICD_ATOM);
    gpumem_buffer *buffer = NEW_BUFFER(mapped, 4096);
    icd->reset();
    OK(gpumem_mapped_write(buffer, 100, "x", 1));
    assert_int_equal(icd->calls("vkFlushMappedMemoryRanges"), 1);
    OK(gpumem_buffer_free(buffer, NULL));
    end();
    make(GPUMEM_MAPPED_OPTIONS(.require_coherent = 1));
    assert_int_equal(info_of(mapped).method, GPUMEM_MAPPED_VULKAN_IMPORT);
    buffer = NEW_BUFFER(mapped, 4096);
    icd->reset();
    OK(gpumem_mapped_write(buffer, 100, "x", 1));
    assert_int_equal(icd->calls(NULL), 0);
    OK(gpumem_buffer_free(buffer, NULL));
    end();
}

/* ---- What a driver lacks --------------------------------------------------------------------- */

static void expect(gpumem_mapped_method method, const char *why) {
    make(NULL);
    const gpumem_mapped_info info = info_of(mapped);
    assert_int_equal(info.method, method);
    if (!strstr(info.refusals, why))
        fail_msg("'%s' is not in: %s", why, info.refusals);
    end();
    choose_icd();
}

TEST(a_missing_vulkan_feature_is_named_and_another_method_used) {
    setenv("VULKAN_ICD_PLACED", "no", 1);
    expect(GPUMEM_MAPPED_VULKAN_EXPORT, "vulkan-import: Vulkan lacks VK_EXT_map_memory_placed");
    setenv("VULKAN_ICD_COHERENT", "none", 1);
    expect(GPUMEM_MAPPED_DESCRIPTOR, "no device memory type that the CPU can map");
    setenv("VULKAN_ICD_UUID", "00112233445566778899aabbccddeeff", 1);
    expect(GPUMEM_MAPPED_DESCRIPTOR, "no device with this UUID");
    setenv("VULKAN_ICD_WITHOUT", "VK_KHR_external_memory_fd", 1);
    expect(GPUMEM_MAPPED_DESCRIPTOR, "VK_KHR_external_memory_fd");
    setenv("VULKAN_ICD_WITHOUT", "vkMapMemory2KHR", 1);
    expect(GPUMEM_MAPPED_VULKAN_EXPORT, "VK_EXT_map_memory_placed");
    choose_vulkan("/nowhere/libvulkan.so.1");
    expect(GPUMEM_MAPPED_DESCRIPTOR, "the library cannot be opened");
    choose_vulkan("off");
    expect(GPUMEM_MAPPED_DESCRIPTOR, "GPUMEM_VULKAN=off");
    choose_vulkan("libvulkan.so.1");
    expect(GPUMEM_MAPPED_DESCRIPTOR, "with a slash");
}

/* ---- Limits ---------------------------------------------------------------------------------- */

TEST(freed_memory_returns_to_the_vulkan_budget) {
    gpumem_buffer *buffers[3] = {NULL}, *none = NULL;
    setenv("VULKAN_ICD_BUDGET", "12582912", 1);
    make(GPUMEM_MAPPED_OPTIONS(.method = GPUMEM_MAPPED_VULKAN_EXPORT, .method_strict = 1));
    MEMBERS(info_of(mapped), (budget_bytes, 12 * MIB), (budget_used, 0));
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < COUNT(buffers); i++)
            buffers[i] = NEW_BUFFER(mapped, 4 * MIB);
        assert_int_equal(info_of(mapped).budget_used, 12 * MIB);
        FAILS(OUT_OF_MEMORY, gpumem_buffer_allocate(mapped, 1, NULL, &none));
        SAYS("vkAllocateMemory answered VK_ERROR_OUT_OF_DEVICE_MEMORY");
        FAILS(OUT_OF_MEMORY, gpumem_buffer_allocate(mapped, 2 * GIB, NULL, &none));
        assert_null(none);
        DESTROY_EACH(buffers, COUNT(buffers));
        assert_int_equal(info_of(mapped).budget_used, 0);
    }
    end();
}

TEST(growing_beyond_the_allocation_limit_is_refused) {
    setenv("VULKAN_ICD_ALLOCATIONS", "4", 1);
    make(GPUMEM_MAPPED_OPTIONS(.method = GPUMEM_MAPPED_VULKAN_IMPORT, .method_strict = 1,
                               .capacity = 64 * MIB, .maximum_chunk_bytes = 2 * MIB));
    gpumem_buffer *buffer = NEW_BUFFER(mapped, 4 * MIB);
    OK(gpumem_mapped_write(buffer, 4 * MIB - 5, "last", 5));
    FAILS(OUT_OF_CAPACITY, gpumem_buffer_grow(buffer, 16 * MIB, NULL));
    SAYS("allows 4 Vulkan allocations");
    assert_int_equal(gpumem_buffer_size(buffer), 4 * MIB);
    assert_int_equal(icd->live().memories, 2);
    OK(gpumem_buffer_grow(buffer, 8 * MIB, NULL));
    char bytes[5];
    OK(gpumem_mapped_read(buffer, 4 * MIB - 5, bytes, 5));
    assert_string_equal(bytes, "last");
    OK(gpumem_buffer_free(buffer, NULL));
    end();
}

static int begin(void **state) {
    return open_device(state) != 0 ? -1 : find_icd(state);
}

ALL_TESTS(begin, close_device);
