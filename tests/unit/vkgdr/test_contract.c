/* vkgdr's interface as a program knows it: bytes, life times, flags, coherence. */
#include "vkgdr_test.h"

ALL_TESTS(start_vkgdr, close_device);

EACH_TEST(start_with_context, end_with_context);

static const size_t sizes[] = {1, 13, 4096, 65536, 256 * KIB, 256 * KIB + 1, MIB + 17};

TEST(host_and_device_see_each_others_writes) {
    vkgdr_t g = open_gpu(VKGDR_OPEN_REQUIRE_COHERENT_BIT);
    for (unsigned i = 0; i < COUNT(sizes); i++) {
        vkgdr_memory_t memory = allocate(g, sizes[i]);
        assert_int_equal(vkgdr_memory_get_size(memory), sizes[i]);
        assert_true(vkgdr_memory_is_coherent(memory));
        assert_int_equal(vkgdr_memory_non_coherent_atom_size(memory), 1);
        fill(host_of(memory), sizes[i], i);
        check_device(memory, sizes[i], i);
        write_device(memory, sizes[i], i + 1);
        check_bytes(host_of(memory), sizes[i], i + 1);
        vkgdr_memory_free(memory);
    }
    vkgdr_close(g);
}

TEST(buffers_are_aligned_and_do_not_overlap) {
    vkgdr_t g = open_gpu(0);
    vkgdr_memory_t memory[COUNT(sizes)];
    for (unsigned i = 0; i < COUNT(sizes); i++) {
        memory[i] = allocate(g, sizes[i]);
        assert_int_equal(vkgdr_memory_get_device_ptr(memory[i]) % 256, 0);
        assert_int_equal((uintptr_t)host_of(memory[i]) % 256, 0);
        fill(host_of(memory[i]), sizes[i], i);
    }
    for (unsigned i = 0; i < COUNT(sizes); i++)
        check_device(memory[i], sizes[i], i);
    for (unsigned i = 0; i < COUNT(sizes); i++)
        vkgdr_memory_free(memory[i]);
    vkgdr_close(g);
}

TEST(closing_and_freeing_null_is_allowed) {
    vkgdr_close(NULL);
    vkgdr_memory_free(NULL);
}

/* A mistake of the caller's that does not have to be one. */
TEST(memory_outlives_its_closed_handle) {
    vkgdr_t g = open_gpu(0);
    vkgdr_memory_t small = allocate(g, 100), large = allocate(g, MIB);
    vkgdr_close(g);
    fill(host_of(small), 100, 1);
    check_device(small, 100, 1);
    vkgdr_memory_free(small);
    vkgdr_memory_free(large);
}

TEST(opening_the_current_context_uses_its_device) {
    vkgdr_t g = vkgdr_open(77, VKGDR_OPEN_CURRENT_CONTEXT_BIT);
    assert_non_null(g);
    NO_ERROR();
    assert_int_equal(gpumem_vkgdr_device(g), 0);
    vkgdr_close(g);
}

TEST(invalid_arguments_are_named_in_the_error) {
    assert_null(vkgdr_open(DEVICE, 8));
    ERROR_IS("vkgdr_open: unknown flags 0x8");
    vkgdr_t g = open_gpu(0);
    assert_null(vkgdr_memory_alloc(g, 0, 0));
    ERROR_IS("vkgdr_memory_alloc: 0 bytes were requested");
    assert_null(vkgdr_memory_alloc(g, 64, 5));
    ERROR_IS("vkgdr_memory_alloc: flags are 0x5 and must be 0");
    assert_null(vkgdr_memory_alloc(NULL, 64, 0));
    ERROR_IS("vkgdr_memory_alloc: the handle is NULL");
    assert_int_equal(icd->calls("vkAllocateMemory"), 0);
    vkgdr_close(g);
}

/* ---- Coherence ------------------------------------------------------------------------------- */

static void check_flushed(vkgdr_memory_t memory, size_t size) {
    fill(host_of(memory), size, 1);
    vkgdr_memory_flush(memory, 0, size);
    check_device(memory, size, 1);
    write_device(memory, size, 2);
    vkgdr_memory_invalidate(memory, 0, size);
    check_bytes(host_of(memory), size, 2);
}

/* The test driver's non-coherent memory is a copy, of which a flush takes what differs from what
 * the copy was: without one the device sees the old. */
TEST(non_coherent_memory_needs_flushes) {
    setenv("VULKAN_ICD_COHERENT", "no", 1);
    vkgdr_t g = open_gpu(0);
    for (unsigned i = 0; i < COUNT(sizes); i++) {
        vkgdr_memory_t memory = allocate(g, sizes[i]);
        assert_false(vkgdr_memory_is_coherent(memory));
        assert_int_equal(vkgdr_memory_non_coherent_atom_size(memory), VULKAN_ICD_ATOM);
        write_device(memory, sizes[i], 9);
        vkgdr_memory_invalidate(memory, 0, sizes[i]);
        fill(host_of(memory), sizes[i], 1);
        check_device(memory, sizes[i], 9);
        check_flushed(memory, sizes[i]);
        vkgdr_memory_free(memory);
    }
    vkgdr_close(g);
}

/* A flush that says more than its buffer has must leave the next one alone. */
TEST(a_flush_does_not_touch_the_next_buffer) {
    setenv("VULKAN_ICD_COHERENT", "no", 1);
    vkgdr_t g = open_gpu(0);
    vkgdr_memory_t first = allocate(g, 100), second = allocate(g, 100);
    write_device(second, 100, 3);
    fill(host_of(second), 100, 4);
    fill(host_of(first), 100, 5);
    vkgdr_memory_flush(first, 0, 1000);
    vkgdr_memory_flush(first, 0, SIZE_MAX);
    vkgdr_memory_flush(first, 100, 100);
    vkgdr_memory_flush(first, SIZE_MAX, 1);
    check_device(first, 100, 5);
    check_device(second, 100, 3);
    vkgdr_memory_invalidate(first, 0, 1000);
    check_bytes(host_of(second), 100, 4);
    vkgdr_memory_free(first);
    vkgdr_memory_free(second);
    vkgdr_close(g);
}

TEST(only_the_requested_range_is_flushed) {
    setenv("VULKAN_ICD_COHERENT", "no", 1);
    vkgdr_t g = open_gpu(0);
    vkgdr_memory_t memory = allocate(g, 4096);
    unsigned char byte;
    memset(host_of(memory), 0, 4096);
    vkgdr_memory_flush(memory, 0, 4096);
    memset(host_of(memory), 1, 4096);
    vkgdr_memory_flush(memory, 1024, 1024);
    for (size_t at = 0; at < 4096; at += 512) {
        OK_CU(cu->cuMemcpyDtoH_v2(&byte, vkgdr_memory_get_device_ptr(memory) + at, 1));
        assert_int_equal(byte, at >= 1024 && at < 2048);
    }
    vkgdr_memory_free(memory);
    vkgdr_close(g);
}

TEST(coherent_memory_can_be_treated_as_non_coherent) {
    static const uint32_t flags[] = {VKGDR_OPEN_FORCE_NON_COHERENT_BIT,
                                     VKGDR_OPEN_FORCE_NON_COHERENT_BIT |
                                         VKGDR_OPEN_REQUIRE_COHERENT_BIT};
    for (int i = 0; i < 2; i++) {
        vkgdr_t g = open_gpu(flags[i]);
        vkgdr_memory_t memory = allocate(g, 4096);
        assert_false(vkgdr_memory_is_coherent(memory));
        assert_int_equal(vkgdr_memory_non_coherent_atom_size(memory), VULKAN_ICD_ATOM);
        check_flushed(memory, 4096);
        assert_int_equal(icd->calls("vkFlushMappedMemoryRanges"), i + 1);
        assert_int_equal(icd->calls("vkInvalidateMappedMemoryRanges"), i + 1);
        vkgdr_memory_free(memory);
        vkgdr_close(g);
    }
}

TEST(coherent_memory_is_not_flushed) {
    vkgdr_t g = open_gpu(0);
    vkgdr_memory_t memory = allocate(g, 4096);
    check_flushed(memory, 4096);
    assert_int_equal(icd->calls("vkFlushMappedMemoryRanges"), 0);
    assert_int_equal(icd->calls("vkInvalidateMappedMemoryRanges"), 0);
    vkgdr_memory_free(memory);
    vkgdr_close(g);
}

TEST(opening_fails_if_required_coherence_is_missing) {
    setenv("VULKAN_ICD_COHERENT", "no", 1);
    assert_null(vkgdr_open(DEVICE, VKGDR_OPEN_REQUIRE_COHERENT_BIT));
    ERROR_IS("Vulkan device does not provide a suitable memory type");
    assert_null(
        vkgdr_open(DEVICE, VKGDR_OPEN_REQUIRE_COHERENT_BIT | VKGDR_OPEN_FORCE_NON_COHERENT_BIT));
}
