/* Very many live handles under the ordinary limits of a process, many threads, and what happens
 * when addresses or descriptors run out. */
#include "harness.h"

#include <pthread.h>
#include <sys/resource.h>

#define PAGE ((size_t)2 << 20)
#define MANY 60000

static CUmemAllocationProp device_prop(void) {
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED};
    prop.location = device_location(dev);
    return prop;
}

static CUmemAccessDesc device_access(void) {
    CUmemAccessDesc desc = {.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    desc.location = device_location(dev);
    return desc;
}

/* In a process of its own, whose device is large whatever the machine has: nothing is touched but a
 * word of each page, and only of a few. */
CHILD(hold_many) {
    const struct rlimit files = {1024, 1024};
    if (setrlimit(RLIMIT_NOFILE, &files) != 0)
        return 9;
    init_driver();
    CUmemAllocationProp prop = device_prop();
    CUmemAccessDesc desc = device_access();
    CUmemGenericAllocationHandle *handle = calloc(MANY, sizeof *handle);
    assert_non_null(handle);
    CUdeviceptr a = MADE_CU(CUdeviceptr, cuMemAddressReserve, MANY * PAGE, 0, 0, 0);
    for (unsigned i = 0; i < MANY; i++) {
        OK_CU(cu.cuMemCreate(&handle[i], PAGE, &prop, 0));
        OK_CU(cu.cuMemMap(a + i * PAGE, PAGE, 0, handle[i], 0));
    }
    OK_CU(cu.cuMemSetAccess(a, MANY * PAGE, &desc, 1));
    for (unsigned i = 0; i < MANY; i += 5000)
        OK_CU(cu.cuMemsetD32_v2(a + i * PAGE, i, 1));
    for (unsigned i = 0; i < MANY; i += 5000)
        assert_int_equal(word_at(a + i * PAGE), i);
    OK_CU(cu.cuMemUnmap(a, MANY * PAGE));
    for (unsigned i = 0; i < MANY; i++)
        OK_CU(cu.cuMemRelease(handle[i]));
    OK_CU(cu.cuMemAddressFree(a, MANY * PAGE));
    free(handle);
    return 0;
}

TEST(sixty_thousand_handles_are_mapped_simultaneously) {
    NEEDS_SOFTGPU("120 GiB of device memory");
    setenv("SOFTGPU_MEMORY", "140G", 1);
    int status = run_child("hold_many", NULL);
    unsetenv("SOFTGPU_MEMORY");
    assert_int_equal(status, 0);
}

DRIVER_CHILD(run_out_of_addresses) {
    CUdeviceptr a, b;
    FAILS_CU(OUT_OF_MEMORY, cu.cuMemAddressReserve(&a, 1025 * PAGE, 0, 0, 0));
    OK_CU(cu.cuMemAddressReserve(&a, 1000 * PAGE, 0, 0, 0));
    FAILS_CU(OUT_OF_MEMORY, cu.cuMemAddressReserve(&b, 100 * PAGE, 0, 0, 0));
    OK_CU(cu.cuMemAddressFree(a, 1000 * PAGE));
    OK_CU(cu.cuMemAddressReserve(&b, 1024 * PAGE, 0, 0, 0));
    OK_CU(cu.cuMemAddressFree(b, 1024 * PAGE));
}

TEST_WHERE(reserving_beyond_the_address_space_fails, NEEDS_SOFTGPU("SOFTGPU_ADDRESS_SPACE")) {
    setenv("SOFTGPU_ADDRESS_SPACE", "2G", 1);
    int status = run_child("run_out_of_addresses", NULL);
    unsetenv("SOFTGPU_ADDRESS_SPACE");
    assert_int_equal(status, 0);
}

/* Exportable handles take a descriptor each. When there is none left, a call fails and leaves
 * nothing behind. */
CHILD(run_out_of_descriptors) {
    const struct rlimit files = {64, 64};
    CUmemAllocationProp prop = device_prop();
    CUmemGenericAllocationHandle handle[64];
    CUresult result = CUDA_SUCCESS;
    size_t left, total, after;
    unsigned count = 0;
    init_driver();
    prop.location.id = dev;
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    if (setrlimit(RLIMIT_NOFILE, &files) != 0)
        return 9;
    OK_CU(cu.cuMemGetInfo_v2(&left, &total));
    while (count < COUNT(handle) && result == CUDA_SUCCESS)
        if ((result = cu.cuMemCreate(&handle[count], PAGE, &prop, 0)) == CUDA_SUCCESS)
            count++;
    assert_int_equal(result, CUDA_ERROR_OUT_OF_MEMORY);
    OK_CU(cu.cuMemGetInfo_v2(&after, &total));
    assert_int_equal(left - after, count * PAGE);
    while (count > 0)
        OK_CU(cu.cuMemRelease(handle[--count]));
    OK_CU(cu.cuMemGetInfo_v2(&after, &total));
    assert_int_equal(left, after);
    OK_CU(cu.cuMemCreate(&handle[0], PAGE, &prop, 0));
    OK_CU(cu.cuMemRelease(handle[0]));
    return 0;
}

TEST_WHERE(running_out_of_descriptors_is_an_error, NEEDS_DESCRIPTORS()) {
    NEEDS_SOFTGPU("hardware's handles take no descriptor");
    assert_int_equal(run_child("run_out_of_descriptors", NULL), 0);
}

/* ---- Threads --------------------------------------------------------------------------------- */

#define ROUNDS 40

static void *vmm_rounds(void *argument) {
    unsigned seed = *(unsigned *)argument;
    CUmemAllocationProp prop = device_prop();
    CUmemAccessDesc desc = device_access();
    uintptr_t wrong = 0;
    cu.cuCtxSetCurrent(ctx);
    for (unsigned i = 0; i < ROUNDS; i++) {
        CUmemGenericAllocationHandle handle;
        CUdeviceptr a, d;
        unsigned in = seed + i, out = 0;
        size_t size = (in % 3 + 1) * PAGE;
        wrong += cu.cuMemAddressReserve(&a, size, 0, 0, 0) != CUDA_SUCCESS;
        wrong += cu.cuMemCreate(&handle, size, &prop, 0) != CUDA_SUCCESS;
        wrong += cu.cuMemMap(a, size, 0, handle, 0) != CUDA_SUCCESS;
        wrong += cu.cuMemSetAccess(a, size, &desc, 1) != CUDA_SUCCESS;
        wrong += cu.cuMemAlloc_v2(&d, in % 3000 + 4) != CUDA_SUCCESS;
        wrong += cu.cuMemcpyHtoD_v2(a + size - 4, &in, 4) != CUDA_SUCCESS;
        wrong += cu.cuMemcpyDtoD_v2(d, a + size - 4, 4) != CUDA_SUCCESS;
        wrong += cu.cuMemcpyDtoH_v2(&out, d, 4) != CUDA_SUCCESS;
        wrong += out != in;
        wrong += cu.cuMemUnmap(a, size) != CUDA_SUCCESS;
        wrong += cu.cuMemRelease(handle) != CUDA_SUCCESS;
        wrong += cu.cuMemAddressFree(a, size) != CUDA_SUCCESS;
        wrong += cu.cuMemFree_v2(d) != CUDA_SUCCESS;
    }
    return (void *)wrong;
}

TEST(concurrent_threads_map_and_unmap_independently) {
    pthread_t threads[4];
    unsigned seeds[4] = {1000, 2000, 3000, 4000};
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, vmm_rounds, &seeds[i]), 0);
    for (unsigned i = 0; i < 4; i++) {
        void *wrong = NULL;
        pthread_join(threads[i], &wrong);
        assert_null(wrong);
    }
}

/* Host memory loses the CPU's mapping while copies run into it: no crash, and the bytes arrive. */
TEST(host_memory_is_unmapped_from_the_cpu_during_copies) {
    NEEDS_SOFTGPU("on hardware the work would fault");
    enum { PAGES = 16 };
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED};
    CUmemAccessDesc both[2] = {device_access(), device_access()};
    CUmemGenericAllocationHandle handle;
    prop.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
    both[1].location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
    both[1].location.id = 0;
    CUstream stream = new_stream();
    CUdeviceptr d = new_memory(PAGES * PAGE);
    set_bytes(d, 0x61, PAGES * PAGE);
    OK_CU(cu.cuMemCreate(&handle, PAGES * PAGE, &prop, 0));
    CUdeviceptr a = MADE_CU(CUdeviceptr, cuMemAddressReserve, PAGES * PAGE, 0, 0, 0);
    OK_CU(cu.cuMemMap(a, PAGES * PAGE, 0, handle, 0));
    for (int round = 0; round < 5; round++) {
        both[1].flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        OK_CU(cu.cuMemSetAccess(a, PAGES * PAGE, both, 2));
        OK_CU(cu.cuMemcpyDtoDAsync_v2(a, d, PAGES * PAGE, stream));
        both[1].flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
        OK_CU(cu.cuMemSetAccess(a, PAGES * PAGE, &both[1], 1));
    }
    OK_CU(cu.cuStreamSynchronize(stream));
    assert_int_equal(byte_at(a + PAGES * PAGE - 1), 0x61);
    unmap_and_free(a, PAGES * PAGE, handle);
}
