/* Contexts of two devices, and which may access the other's memory. */
#include "harness.h"
#include "temporary.h"

static void needs_peers(void) {
    NEEDS_DEVICES(2);
    int can = MADE_CU(int, cuDeviceCanAccessPeer, 0, 1);
    if (!can)
        SKIP("device 0 cannot access device 1");
}

TEST_WHERE(peer_attributes_agree_with_peer_access, NEEDS_DEVICES(2)) {
    int value = -1, supported = -2;
    OK_CU(cu.cuDeviceCanAccessPeer(&value, 0, 1));
    OK_CU(cu.cuDeviceGetP2PAttribute(&supported, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 1));
    assert_in_range(value, 0, 1);
    assert_int_equal(value, supported);
    OK_CU(cu.cuDeviceCanAccessPeer(&value, 0, 0));
    assert_int_equal(value, 0);
    FAILS_CU(INVALID_VALUE, cu.cuDeviceGetP2PAttribute(&value, (CUdevice_P2PAttribute)77, 0, 1));
    FAILS_CU(INVALID_DEVICE,
             cu.cuDeviceGetP2PAttribute(&value, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 0));
}

TEST(peer_access_is_enabled_once_and_in_one_direction) {
    needs_peers();
    CUcontext other = new_context(1);
    FAILS_CU(PEER_ACCESS_NOT_ENABLED, cu.cuCtxDisablePeerAccess(ctx));
    OK_CU(cu.cuCtxEnablePeerAccess(ctx, 0));
    FAILS_CU(PEER_ACCESS_ALREADY_ENABLED, cu.cuCtxEnablePeerAccess(ctx, 0));
    OK_CU(cu.cuCtxPushCurrent_v2(ctx));
    FAILS_CU(PEER_ACCESS_NOT_ENABLED, cu.cuCtxDisablePeerAccess(other));
    OK_CU(cu.cuCtxPopCurrent_v2(NULL));
    OK_CU(cu.cuCtxDisablePeerAccess(ctx));
    FAILS_CU(PEER_ACCESS_NOT_ENABLED, cu.cuCtxDisablePeerAccess(ctx));
}

/* Seen without a second enable or disable, whose refusal would be enough otherwise. */
TEST_WHERE(peer_access_is_shown_in_the_state_dump, NEEDS_SOFTGPU("its state dump")) {
    needs_peers();
    new_context(1);
    char *off = soft->state_dump();
    OK_CU(cu.cuCtxEnablePeerAccess(ctx, 0));
    char *on = soft->state_dump();
    assert_string_not_equal(on, off);
    OK_CU(cu.cuCtxDisablePeerAccess(ctx));
    char *off_again = soft->state_dump();
    assert_string_equal(off_again, off);
    soft->free_text(off);
    soft->free_text(on);
    soft->free_text(off_again);
}

/* A peer that ends takes the access with it, and does not come back by a new context's handle. */
TEST(peer_access_ends_with_either_context) {
    needs_peers();
    CUcontext other = MADE_CU(CUcontext, cuCtxCreate_v2, 0, 1);
    OK_CU(cu.cuCtxPushCurrent_v2(ctx));
    OK_CU(cu.cuCtxEnablePeerAccess(other, 0));
    OK_CU(cu.cuCtxDestroy_v2(other));
    CUcontext again = MADE_CU(CUcontext, cuCtxCreate_v2, 0, 1);
    OK_CU(cu.cuCtxPushCurrent_v2(ctx));
    OK_CU(cu.cuCtxEnablePeerAccess(again, 0));
    OK_CU(cu.cuCtxDisablePeerAccess(again));
    OK_CU(cu.cuCtxDestroy_v2(again));
    for (int i = 0; i < 4; i++)
        OK_CU(cu.cuCtxPopCurrent_v2(NULL));
}

/* ---- Devices that cannot reach each other ---------------------------------------------------- */

#define PAGE ((size_t)2 << 20)

static void access_of(CUmemAccessDesc *access, int device) {
    memset(access, 0, sizeof *access);
    access->location = device_location(device);
    access->flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
}

static void mapping_stays_the_owner_s(void) {
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED};
    CUmemGenericAllocationHandle handle;
    CUmemAccessDesc access;
    prop.location = device_location(1);
    OK_CU(cu.cuMemCreate(&handle, PAGE, &prop, 0));
    CUdeviceptr p = MADE_CU(CUdeviceptr, cuMemAddressReserve, PAGE, 0, 0, 0);
    OK_CU(cu.cuMemMap(p, PAGE, 0, handle, 0));
    access_of(&access, 0);
    FAILS_CU(INVALID_VALUE, cu.cuMemSetAccess(p, PAGE, &access, 1));
    access_of(&access, 1);
    OK_CU(cu.cuMemSetAccess(p, PAGE, &access, 1));
    unmap_and_free(p, PAGE, handle);
}

static void copies_go_through(CUcontext other) {
    CUdeviceptr a = new_memory(64);
    set_words(a, 0x31415926, 16);
    OK_CU(cu.cuCtxPushCurrent_v2(other));
    CUdeviceptr b = MADE_CU(CUdeviceptr, cuMemAlloc_v2, 64);
    OK_CU(cu.cuMemcpyPeer(b, other, a, ctx, 64));
    assert_int_equal(word_at(b + 60), 0x31415926);
    OK_CU(cu.cuMemFree_v2(b));
    OK_CU(cu.cuCtxPopCurrent_v2(NULL));
}

/* Of three devices 0 and 1 are not linked. */
DRIVER_CHILD(strangers) {
    int value = -1;
    OK_CU(cu.cuDeviceCanAccessPeer(&value, 0, 1));
    assert_int_equal(value, 0);
    OK_CU(cu.cuDeviceCanAccessPeer(&value, 1, 2));
    assert_int_equal(value, 1);
    OK_CU(cu.cuDeviceGetP2PAttribute(&value, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 1, 0));
    assert_int_equal(value, 0);
    OK_CU(cu.cuDeviceGetP2PAttribute(&value, CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK, 1, 0));
    assert_int_equal(value, 3);
    OK_CU(
        cu.cuDeviceGetP2PAttribute(&value, CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED, 2, 0));
    assert_int_equal(value, 1);
    CUcontext other = MADE_CU(CUcontext, cuDevicePrimaryCtxRetain, 1);
    FAILS_CU(PEER_ACCESS_UNSUPPORTED, cu.cuCtxEnablePeerAccess(other, 0));
    mapping_stays_the_owner_s();
    copies_go_through(other);
    OK_CU(cu.cuDevicePrimaryCtxRelease_v2(1));
}

TEST_WHERE(peer_attributes_come_from_the_profile, NEEDS_SOFTGPU("its profiles")) {
    static const char profile[] = "[device]\nlike = h200\nmemory = 64M\n"
                                  "[links]\nnative_atomics = 1\n"
                                  "[links 0 1]\npeer_access = 0\nperformance_rank = 3\n";
    char path[TEMPORARY_ROOM];
    int fd = temporary_file(path, "softgpu-links");
    assert_true(fd >= 0);
    assert_int_equal(write(fd, profile, sizeof profile - 1), sizeof profile - 1);
    close(fd);
    setenv("SOFTGPU_PROFILE", path, 1);
    setenv("SOFTGPU_DEVICES", "3", 1);
    int status = run_child("strangers", NULL);
    unsetenv("SOFTGPU_PROFILE");
    unsetenv("SOFTGPU_DEVICES");
    unlink(path);
    assert_int_equal(status, 0);
}

/* What the other device has there is not the stream's to write. */
TEST(memsets_of_peer_memory_need_access) {
    needs_peers();
    CUstream stream = MADE_CU(CUstream, cuStreamCreate, 0);
    CUcontext other = new_context(1);
    CUstream others = MADE_CU(CUstream, cuStreamCreate, 0);
    CUdeviceptr p = MADE_CU(CUdeviceptr, cuMemAlloc_v2, 4096);
    set_words(p, 0x11, 4);
    OK_CU(cu.cuCtxPushCurrent_v2(ctx));
    FAILS_CU(INVALID_VALUE, cu.cuMemsetD32_v2(p, 0x22, 4));
    FAILS_CU(INVALID_VALUE, cu.cuMemsetD32Async(p, 0x22, 4, stream));
    FAILS_CU(INVALID_VALUE, cu.cuStreamWriteValue32_v2(stream, p, 0x22, 0));
    assert_int_equal(word_at(p), 0x11);
    OK_CU(cu.cuMemsetD32Async(p, 0x33, 4, others)); /* the stream's device counts */
    OK_CU(cu.cuStreamSynchronize(others));
    OK_CU(cu.cuCtxEnablePeerAccess(other, 0));
    assert_int_equal(word_at(p), 0x33);
    OK_CU(cu.cuMemsetD32Async(p, 0x44, 4, stream));
    OK_CU(cu.cuStreamSynchronize(stream));
    OK_CU(cu.cuStreamWriteValue32_v2(stream, p + 4, 0x55, 0));
    OK_CU(cu.cuStreamSynchronize(stream));
    assert_int_equal(word_at(p), 0x44);
    assert_int_equal(word_at(p + 4), 0x55);
    OK_CU(cu.cuCtxDisablePeerAccess(other));
    OK_CU(cu.cuStreamDestroy_v2(stream));
    OK_CU(cu.cuCtxPopCurrent_v2(NULL));
}

/* A mapping is open to the devices that cuMemSetAccess named, whoever has the memory. */
TEST(mappings_of_peer_memory_need_access) {
    needs_peers();
    const size_t size = (size_t)2 << 20;
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED};
    CUmemAccessDesc access;
    CUmemGenericAllocationHandle handle;
    unsigned word = 7;
    prop.location = device_location(1);
    access_of(&access, 1);
    OK_CU(cu.cuMemCreate(&handle, size, &prop, 0));
    CUdeviceptr p = MADE_CU(CUdeviceptr, cuMemAddressReserve, size, 0, 0, 0);
    OK_CU(cu.cuMemMap(p, size, 0, handle, 0));
    OK_CU(cu.cuMemSetAccess(p, size, &access, 1));
    FAILS_CU(INVALID_VALUE, cu.cuMemcpyDtoH_v2(&word, p, 4));
    FAILS_CU(INVALID_VALUE, cu.cuMemsetD32_v2(p, 1, 4));
    assert_int_equal(word, 7);
    access_of(&access, 0);
    OK_CU(cu.cuMemSetAccess(p, size, &access, 1));
    OK_CU(cu.cuMemsetD32_v2(p, 9, 4));
    assert_int_equal(word_at(p), 9);
    unmap_and_free(p, size, handle);
}

TEST(peer_addresses_are_found_only_with_access) {
    needs_peers();
    CUdeviceptr base = 1;
    size_t size = 1;
    CUdeviceptr p = new_memory(4096);
    new_context(1);
    FAILS_CU(NOT_FOUND, cu.cuMemGetAddressRange_v2(&base, &size, p));
    assert_true(base == 0 && size == 0);
    FAILS_CU(INVALID_VALUE,
             cu.cuPointerGetAttribute(&base, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, p));
    OK_CU(cu.cuCtxEnablePeerAccess(ctx, 0));
    OK_CU(cu.cuMemGetAddressRange_v2(&base, &size, p));
    assert_true(base == p && size == 4096);
    OK_CU(cu.cuPointerGetAttribute(&base, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, p));
}
