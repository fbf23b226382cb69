/* cuMemAlloc and its kin: sizes, neighbours, freeing, ranges, pitch, what is charged. */
#include "harness.h"

#define PAGE ((size_t)2 << 20)

static size_t free_bytes(void) {
    size_t left = 0, total = 0;
    OK_CU(cu.cuMemGetInfo_v2(&left, &total));
    assert_true(left > 0 && left <= total);
    return left;
}

TEST(allocations_keep_their_own_bytes) {
    static const size_t sizes[] = {1, 255, 512, 513, 65536, (1 << 20) + 1, 3 * PAGE + 5};
    CUdeviceptr p[COUNT(sizes)];
    unsigned char *bytes = malloc(4 * PAGE);
    assert_non_null(bytes);
    for (unsigned i = 0; i < COUNT(sizes); i++) {
        OK_CU(cu.cuMemAlloc_v2(&p[i], sizes[i]));
        assert_int_equal(p[i] % 512, 0);
        fill_pattern(bytes, sizes[i], i);
        OK_CU(cu.cuMemcpyHtoD_v2(p[i], bytes, sizes[i]));
    }
    for (unsigned i = 0; i < COUNT(sizes); i++) {
        memset(bytes, 0, sizes[i]);
        OK_CU(cu.cuMemcpyDtoH_v2(bytes, p[i], sizes[i]));
        assert_true(has_pattern(bytes, sizes[i], i));
        OK_CU(cu.cuMemFree_v2(p[i]));
    }
    free(bytes);
}

TEST(a_refused_allocation_zeroes_its_output) {
    CUdeviceptr p = 7;
    FAILS_CU(INVALID_VALUE, cu.cuMemAlloc_v2(&p, 0));
    assert_int_equal(p, 0);
    p = 7;
    FAILS_CU(OUT_OF_MEMORY, cu.cuMemAlloc_v2(&p, (size_t)1 << 47));
    assert_int_equal(p, 0);
}

TEST(small_allocations_share_a_page) {
    size_t before = free_bytes();
    CUdeviceptr a = MADE_CU(CUdeviceptr, cuMemAlloc_v2, 1);
    CUdeviceptr b = MADE_CU(CUdeviceptr, cuMemAlloc_v2, 1);
    CUdeviceptr c = MADE_CU(CUdeviceptr, cuMemAlloc_v2, 700);
    CUdeviceptr d = MADE_CU(CUdeviceptr, cuMemAlloc_v2, 512);
    assert_int_equal(b, a + 512);
    assert_int_equal(c, a + 1024);
    assert_int_equal(d, a + 2048);
    assert_int_equal(before - free_bytes(), PAGE);
    OK_CU(cu.cuMemFree_v2(b));
    OK_CU(cu.cuMemAlloc_v2(&b, 100));
    assert_int_equal(b, a + 512);
    DESTROY_CU(a, b, c, d);
    assert_int_equal(free_bytes(), before);
}

TEST(only_the_start_of_an_allocation_is_freed_and_only_once) {
    CUdeviceptr p = MADE_CU(CUdeviceptr, cuMemAlloc_v2, 4096);
    void *host = MADE_CU(void *, cuMemHostAlloc, 64, 0);
    FAILS_CU(INVALID_VALUE, cu.cuMemFree_v2(p + 256));
    FAILS_CU(INVALID_VALUE, cu.cuMemFree_v2(0x1000));
    FAILS_CU(INVALID_VALUE, cu.cuMemFree_v2((CUdeviceptr)(uintptr_t)host));
    OK_CU(cu.cuMemFree_v2(p));
    FAILS_CU(INVALID_VALUE, cu.cuMemFree_v2(p));
    OK_CU(cu.cuMemFree_v2(0));
    OK_CU(cu.cuMemFreeHost(host));
}

TEST_WHERE(freeing_memory_waits_for_work, NEEDS_LEGACY_STREAM()) {
    CUstream stream = new_stream();
    CUdeviceptr p = MADE_CU(CUdeviceptr, cuMemAlloc_v2, 64 * PAGE);
    CUdeviceptr other = new_memory(64 * PAGE);
    for (int i = 0; i < 4; i++)
        OK_CU(cu.cuMemcpyDtoDAsync_v2(other, p, 64 * PAGE, stream));
    OK_CU(cu.cuMemFree_v2(p));
    OK_CU(cu.cuStreamQuery(stream));
}

TEST(destroying_a_context_frees_its_memory) {
    size_t before = free_bytes();
    CUdeviceptr mine = MADE_CU(CUdeviceptr, cuMemAlloc_v2, 10);
    CUcontext made = MADE_CU(CUcontext, cuCtxCreate_v2, 0, dev);
    CUdeviceptr p = MADE_CU(CUdeviceptr, cuMemAlloc_v2, 8 * PAGE);
    OK_CU(cu.cuCtxDestroy_v2(made));
    OK_CU(cu.cuCtxSetCurrent(ctx));
    FAILS_CU(INVALID_VALUE, cu.cuMemFree_v2(p));
    OK_CU(cu.cuMemFree_v2(mine));
    if (soft)
        assert_int_equal(free_bytes(), before);
}

TEST(the_address_range_of_an_allocation_is_reported) {
    CUdeviceptr p, base = 1;
    size_t size = 1;
    OK_CU(cu.cuMemAlloc_v2(&p, 1000));
    OK_CU(cu.cuMemGetAddressRange_v2(&base, &size, p + 999));
    assert_int_equal(base, p);
    assert_int_equal(size, 1000);
    OK_CU(cu.cuMemGetAddressRange_v2(NULL, &size, p));
    OK_CU(cu.cuMemGetAddressRange_v2(&base, NULL, p));
    FAILS_CU(NOT_FOUND, cu.cuMemGetAddressRange_v2(&base, &size, p + 1000));
    assert_int_equal(base | size, 0);
    OK_CU(cu.cuMemFree_v2(p));
    FAILS_CU(NOT_FOUND, cu.cuMemGetAddressRange_v2(&base, &size, p));
}

TEST(pitches_are_multiples_of_512) {
    CUdeviceptr p, base;
    size_t pitch = 0, size;
    OK_CU(cu.cuMemAllocPitch_v2(&p, &pitch, 513, 4, 16));
    assert_int_equal(pitch, 1024);
    OK_CU(cu.cuMemGetAddressRange_v2(&base, &size, p));
    assert_int_equal(size, 4096);
    OK_CU(cu.cuMemFree_v2(p));
    FAILS_CU(INVALID_VALUE, cu.cuMemAllocPitch_v2(&p, &pitch, 512, 1, 3));
    assert_int_equal(pitch, 0);
    FAILS_CU(INVALID_VALUE, cu.cuMemAllocPitch_v2(&p, &pitch, 0, 1, 4));
    FAILS_CU(OUT_OF_MEMORY, cu.cuMemAllocPitch_v2(&p, &pitch, 1, (size_t)1 << 50, 4));
}

/* Hardware has to itself what these programs count. */
TEST(whole_pages_are_charged) {
    static const struct {
        size_t size, charged;
    } cases[] = {{1, PAGE}, {PAGE, PAGE}, {PAGE + 1, 2 * PAGE}, {32 * PAGE, 32 * PAGE}};
    for (unsigned i = 0; i < COUNT(cases); i++) {
        size_t before = free_bytes();
        CUdeviceptr p = MADE_CU(CUdeviceptr, cuMemAlloc_v2, cases[i].size);
        assert_int_equal(before - free_bytes(), cases[i].charged);
        OK_CU(cu.cuMemFree_v2(p));
        assert_int_equal(free_bytes(), before);
    }
}

TEST(all_memory_can_be_allocated_freed_and_allocated_again) {
    NEEDS_SOFTGPU("fills the device");
    CUdeviceptr p, q = 7;
    size_t all = free_bytes();
    OK_CU(cu.cuMemAlloc_v2(&p, all));
    FAILS_CU(OUT_OF_MEMORY, cu.cuMemAlloc_v2(&q, 1));
    OK_CU(cu.cuMemFree_v2(p));
    OK_CU(cu.cuMemAlloc_v2(&q, all));
    OK_CU(cu.cuMemFree_v2(q));
}

/* Every second one is freed, and the device is then asked for more than any hole: what is free in
 * all counts, not how it lies. */
TEST_WHERE(fragmented_memory_can_be_allocated_in_one_piece, NEEDS_SOFTGPU("fills the device")) {
    enum { PIECES = 64 };
    CUdeviceptr p[PIECES];
    size_t all = free_bytes() / PAGE / PIECES * PAGE;
    for (int i = 0; i < PIECES; i++)
        OK_CU(cu.cuMemAlloc_v2(&p[i], all));
    for (int i = 0; i < PIECES; i += 2)
        OK_CU(cu.cuMemFree_v2(p[i]));
    new_memory(all * (PIECES / 2));
    for (int i = 1; i < PIECES; i += 2)
        OK_CU(cu.cuMemFree_v2(p[i]));
}

TEST(many_small_allocations_keep_their_bytes) {
    enum { MANY = 20000 };
    CUdeviceptr *p = calloc(MANY, sizeof *p);
    assert_non_null(p);
    for (unsigned i = 0; i < MANY; i++) {
        p[i] = new_memory(i % 2000 + 4);
        OK_CU(cu.cuMemsetD32_v2(p[i], i, 1));
    }
    for (unsigned i = 0; i < MANY; i += 997)
        assert_int_equal(word_at(p[i]), i);
    free(p);
}

TEST(the_32_bit_calls_are_refused) {
    CUdeviceptr_v1 p = 1, base = 1;
    unsigned pitch = 1, size = 1, left = 1, total = 1;
    void *host = &p;
    FAILS_CU(INVALID_CONTEXT, cu.cuMemAlloc(&p, 16));
    assert_int_equal(p, 0);
    FAILS_CU(INVALID_CONTEXT, cu.cuMemAllocPitch(&p, &pitch, 16, 1, 4));
    assert_int_equal(pitch, 0);
    FAILS_CU(INVALID_CONTEXT, cu.cuMemFree(0));
    FAILS_CU(INVALID_CONTEXT, cu.cuMemGetAddressRange(&base, &size, 0x1000));
    FAILS_CU(INVALID_CONTEXT, cu.cuMemGetInfo(&left, &total));
    FAILS_CU(INVALID_CONTEXT, cu.cuMemAllocHost(&host, 16));
    assert_null(host);
}

/* Of six neighbours 1, 4 and 2 are freed. What is asked for next lies where it fits most closely:
 * in the hole of one, then in the two that became one. */
static void fits_most_closely(void) {
    const size_t sizes[] = {1024, 65536, (size_t)2 << 20};
    for (size_t s = 0; s < COUNT(sizes); s++) {
        CUdeviceptr p[6], again[3];
        for (int i = 0; i < 6; i++)
            OK_CU(cu.cuMemAlloc_v2(&p[i], sizes[s]));
        DESTROY_CU(p[1], p[4], p[2]);
        for (int i = 0; i < 3; i++)
            OK_CU(cu.cuMemAlloc_v2(&again[i], sizes[s]));
        assert_true(again[0] == p[4]);
        assert_true(again[1] == p[1]);
        assert_true(again[2] == p[2]);
    }
}

/* More than 2 MiB come back for the same size only. */
static void comes_back_for_its_size(void) {
    CUdeviceptr p[4], again;
    for (int i = 0; i < 4; i++)
        OK_CU(cu.cuMemAlloc_v2(&p[i], (size_t)6 << 20));
    DESTROY_CU(p[1], p[2]);
    OK_CU(cu.cuMemAlloc_v2(&again, (size_t)6 << 20));
    assert_true(again != p[1] && again != p[2]);
}

/* In a process in which nothing else was freed. */
DRIVER_CHILD(reuse) {
    fits_most_closely();
    comes_back_for_its_size();
}

/* What was recorded of hardware's choice fits this; in general it chooses by more than this. */
TEST(the_best_fitting_hole_is_reused) {
    NEEDS_SOFTGPU("which hole is taken is left to the driver");
    assert_int_equal(run_child("reuse", NULL), 0);
}
