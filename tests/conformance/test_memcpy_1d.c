/* Synchronous copies of one row: every direction, sizes and ends, and what is refused. */
#include "harness.h"

#define SIZE ((size_t)5 << 20) /* more than two pages of device memory, and no multiple of one */

struct places {
    CUdeviceptr a, b;
    unsigned char *in, *out, *pinned;
};

static CUdeviceptr unified(void *host) {
    return (CUdeviceptr)(uintptr_t)host;
}

static struct places make(void) {
    struct places at;
    at.a = new_memory(SIZE);
    at.b = new_memory(SIZE);
    /* Fresh memory may hold what an earlier test copied there. */
    OK_CU(cu.cuMemsetD8_v2(at.a, 0, SIZE));
    OK_CU(cu.cuMemsetD8_v2(at.b, 0, SIZE));
    at.pinned = new_pinned(SIZE, CU_MEMHOSTALLOC_PORTABLE);
    at.in = new_bytes(SIZE);
    at.out = new_bytes(SIZE);
    fill_pattern(at.in, SIZE, 3);
    memset(at.pinned, 0, SIZE);
    return at;
}

TEST(bytes_are_copied_to_the_device_and_back) {
    struct places at = make();
    OK_CU(cu.cuMemcpyHtoD_v2(at.a, at.in, SIZE));
    OK_CU(cu.cuMemcpyDtoD_v2(at.b, at.a, SIZE));
    OK_CU(cu.cuMemcpyDtoH_v2(at.out, at.b, SIZE));
    assert_true(has_pattern(at.out, SIZE, 3));
}

TEST(bytes_are_copied_through_pinned_memory) {
    struct places at = make();
    fill_pattern(at.pinned, SIZE, 9);
    OK_CU(cu.cuMemcpyHtoD_v2(at.a, at.pinned, SIZE));
    memset(at.pinned, 0, SIZE);
    OK_CU(cu.cuMemcpyDtoH_v2(at.pinned, at.a, SIZE));
    assert_true(has_pattern(at.pinned, SIZE, 9));
}

TEST(the_generic_copy_infers_the_direction) {
    struct places at = make();
    OK_CU(cu.cuMemcpy(at.a, unified(at.in), SIZE));
    OK_CU(cu.cuMemcpy(at.b, at.a, SIZE));
    OK_CU(cu.cuMemcpy(unified(at.pinned), at.b, SIZE));
    assert_true(has_pattern(at.pinned, SIZE, 3));
    OK_CU(cu.cuMemcpy(unified(at.out), unified(at.pinned), SIZE));
    assert_true(has_pattern(at.out, SIZE, 3));
}

TEST(a_copy_changes_only_the_requested_bytes) {
    struct places at = make();
    OK_CU(cu.cuMemsetD8_v2(at.a, 0xee, SIZE));
    const size_t page = (size_t)2 << 20, begin = page - 13, size = 29;
    OK_CU(cu.cuMemcpyHtoD_v2(at.a + begin, at.in, size));
    OK_CU(cu.cuMemcpyDtoH_v2(at.out, at.a, SIZE));
    assert_int_equal(at.out[begin - 1], 0xee);
    assert_memory_equal(at.out + begin, at.in, size);
    assert_int_equal(at.out[begin + size], 0xee);
}

TEST(peer_copies_work_within_one_context) {
    struct places at = make();
    OK_CU(cu.cuMemcpyHtoD_v2(at.a, at.in, SIZE));
    OK_CU(cu.cuMemcpyPeer(at.b, ctx, at.a, ctx, SIZE));
    OK_CU(cu.cuMemcpyDtoH_v2(at.out, at.b, SIZE));
    assert_true(has_pattern(at.out, SIZE, 3));
    OK_CU(cu.cuMemsetD8_v2(at.b, 0, SIZE));
    OK_CU(cu.cuMemcpyPeerAsync(at.b, ctx, at.a, ctx, SIZE, NULL));
    OK_CU(cu.cuStreamSynchronize(NULL));
    memset(at.out, 0, SIZE);
    OK_CU(cu.cuMemcpyDtoH_v2(at.out, at.b, SIZE));
    assert_true(has_pattern(at.out, SIZE, 3));
}

TEST_WHERE(peer_copies_reach_another_device, NEEDS_DEVICES(2)) {
    struct places at = make();
    CUdevice second = MADE_CU(CUdevice, cuDeviceGet, 1);
    CUcontext other = MADE_CU(CUcontext, cuDevicePrimaryCtxRetain, second);
    OK_CU(cu.cuCtxPushCurrent_v2(other));
    CUdeviceptr there = MADE_CU(CUdeviceptr, cuMemAlloc_v2, SIZE);
    OK_CU(cu.cuCtxPopCurrent_v2(&other));
    OK_CU(cu.cuMemcpyHtoD_v2(at.a, at.in, SIZE));
    OK_CU(cu.cuMemcpyPeer(there, other, at.a, ctx, SIZE));
    OK_CU(cu.cuMemcpyPeer(at.b, ctx, there, other, SIZE));
    OK_CU(cu.cuMemcpyDtoH_v2(at.out, at.b, SIZE));
    assert_true(has_pattern(at.out, SIZE, 3));
    OK_CU(cu.cuCtxPushCurrent_v2(other));
    OK_CU(cu.cuMemFree_v2(there));
    OK_CU(cu.cuCtxPopCurrent_v2(&other));
    OK_CU(cu.cuDevicePrimaryCtxRelease_v2(second));
}

TEST(empty_copies_ignore_their_addresses) {
    OK_CU(cu.cuMemcpyHtoD_v2(0, NULL, 0));
    OK_CU(cu.cuMemcpyDtoH_v2(NULL, 0, 0));
    OK_CU(cu.cuMemcpyDtoD_v2(0x1000, 0x2000, 0));
    OK_CU(cu.cuMemcpy(0, 0, 0));
}

TEST(invalid_addresses_are_refused) {
    struct places at = make();
    CUdeviceptr gone = MADE_CU(CUdeviceptr, cuMemAlloc_v2, SIZE);
    OK_CU(cu.cuMemFree_v2(gone));
    OK_CU(cu.cuMemsetD8_v2(at.a, 7, SIZE));
    FAILS_CU(INVALID_VALUE, cu.cuMemcpyHtoD_v2(0, at.in, 16));
    FAILS_CU(INVALID_VALUE, cu.cuMemcpyHtoD_v2(gone, at.in, 16));
    FAILS_CU(INVALID_VALUE, cu.cuMemcpyDtoH_v2(at.out, gone, 16));
    FAILS_CU(INVALID_VALUE, cu.cuMemcpyDtoD_v2(at.a, gone, 16));
    FAILS_CU(INVALID_VALUE, cu.cuMemcpyDtoD_v2(gone, at.a, 16));
    OK_CU(cu.cuMemcpyDtoH_v2(at.out, at.a, SIZE));
    assert_int_equal(at.out[0], 7);
    assert_int_equal(at.out[SIZE - 1], 7);
}
