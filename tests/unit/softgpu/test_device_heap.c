/* The heap of kernels: blocks never overlap, all comes back, and what is none is not freed. */
#include "softgpu/core/state.h"
#include "softgpu/launch/device_heap.h"

#include "test.h"

#define CU_FN(symbol, name, version, kind, params, args) CUresult CUDAAPI symbol params;
#include <gpumem/functions.def>

#define SIZE   ((size_t)4 << 20)
#define VALUES 3000

static struct sg_device_heap heap;

static int begin(void **state) {
    assert_int_equal(cuInit(0), CUDA_SUCCESS);
    sg_lock();
    assert_int_equal(sg_heap_begin(&heap, 0, SIZE), CUDA_SUCCESS);
    sg_unlock();
    return 0;
}

static int end(void **state) {
    sg_lock();
    sg_heap_end(&heap);
    sg_unlock();
    return 0;
}

ALL_TESTS(begin, end);

static unsigned random_number(void) {
    static uint64_t x = 362436069362436069u;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return (unsigned)(x >> 20);
}

static unsigned char *host_of(CUdeviceptr address, size_t size) {
    size_t span;
    unsigned char *host = sg_translate(0, address, size, SG_READ | SG_WRITE, &span);
    assert_non_null(host);
    assert_true(span >= size);
    return host;
}

/* What a block holds stays until it is freed. */
TEST(heap_blocks_do_not_overlap_and_merge_when_freed) {
    static CUdeviceptr at[VALUES];
    static unsigned size[VALUES];
    sg_lock();
    for (unsigned round = 0; round < 60000; round++) {
        unsigned i = random_number() % VALUES;
        if (at[i]) {
            const unsigned char *host = host_of(at[i], size[i]);
            for (unsigned k = 0; k < size[i]; k++)
                assert_int_equal(host[k], i % 251);
            assert_true(sg_heap_give(&heap, at[i]));
            assert_false(sg_heap_give(&heap, at[i]));
            at[i] = 0;
            continue;
        }
        size[i] = random_number() % (random_number() % 8 ? 300 : 20000) + 1;
        uint64_t alignment = UINT64_C(1) << random_number() % 14;
        at[i] = sg_heap_take_aligned(&heap, size[i], alignment);
        assert_int_equal(at[i] % alignment, 0);
        assert_int_equal(at[i] % 16, 0);
        if (at[i])
            memset(host_of(at[i], size[i]), (int)(i % 251), size[i]);
    }
    for (unsigned i = 0; i < VALUES; i++)
        assert_true(!at[i] || sg_heap_give(&heap, at[i]));
    /* All has merged again. */
    CUdeviceptr whole = sg_heap_take(&heap, SIZE);
    assert_true(whole != 0);
    assert_true(sg_heap_take(&heap, 1) == 0);
    assert_true(sg_heap_give(&heap, whole));
    sg_unlock();
}

TEST(freeing_an_unknown_pointer_fails) {
    uint64_t start, size;
    sg_lock();
    CUdeviceptr block = sg_heap_take(&heap, 100);
    assert_true(block != 0);
    assert_false(sg_heap_give(&heap, 0));
    assert_false(sg_heap_give(&heap, block + 1));
    assert_false(sg_heap_give(&heap, block + 16));
    assert_false(sg_heap_give(&heap, block + 112)); /* free memory */
    assert_false(sg_heap_give(&heap, block - 16));
    assert_false(sg_heap_give(&heap, heap.segment.address + SIZE));
    assert_true(sg_heap_block(&heap, block + 99, &start, &size));
    assert_true(start == block && size == 100);
    assert_true(sg_heap_block(&heap, block + 112, &start, &size));
    assert_int_equal(size, 0);
    assert_false(sg_heap_block(&heap, heap.segment.address + SIZE, &start, &size));
    assert_true(sg_heap_extent(&heap, block, &start, &size));
    assert_true(start == heap.segment.address && size == SIZE);
    assert_true(sg_heap_give(&heap, block));
    sg_unlock();
}

TEST(zero_bytes_get_distinct_blocks_and_oversized_requests_fail) {
    sg_lock();
    CUdeviceptr nothing = sg_heap_take(&heap, 0), other = sg_heap_take(&heap, 0);
    assert_true(nothing != 0 && other != 0 && nothing != other);
    assert_true(sg_heap_give(&heap, nothing));
    assert_true(sg_heap_give(&heap, other));
    assert_true(sg_heap_take(&heap, SIZE + 1) == 0);
    assert_true(sg_heap_take(&heap, UINT64_MAX) == 0);
    sg_unlock();
}

/* The memory in front of an aligned block, and after it, stays free; a block that fits exactly is
 * found among larger ones that do not. */
TEST(aligned_blocks_leave_the_memory_around_them_free) {
    sg_lock();
    CUdeviceptr small = sg_heap_take(&heap, 16), large = sg_heap_take_aligned(&heap, 256, 4096);
    assert_int_equal(small, heap.segment.address);
    assert_int_equal(large, small + 4096);
    CUdeviceptr between = sg_heap_take(&heap, 4096 - 16);
    assert_int_equal(between, small + 16);
    assert_true(sg_heap_give(&heap, between));
    /* The gap is the smallest free block, and has no such address. */
    CUdeviceptr next = sg_heap_take_aligned(&heap, 16, 4096);
    assert_int_equal(next, small + 8192);
    assert_true(sg_heap_give(&heap, small) && sg_heap_give(&heap, large));
    assert_true(sg_heap_give(&heap, next));
    CUdeviceptr whole = sg_heap_take_aligned(&heap, SIZE, 16);
    assert_int_equal(whole, heap.segment.address);
    assert_true(sg_heap_give(&heap, whole));
    static const uint64_t none[] = {0, 3, 24, SIZE * 2, UINT64_MAX, UINT64_C(1) << 63};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
        assert_true(sg_heap_take_aligned(&heap, 16, none[i]) == 0);
    sg_unlock();
}
