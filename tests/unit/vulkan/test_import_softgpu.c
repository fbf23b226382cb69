/* Memory of cuMemCreate, exported by softgpu, imported by the test driver and mapped side by side:
 * what the CPU stores, copies of the device read, and the other way round. */
#include "vulkan/device.h"
#include "vulkan_test.h"

#include <sys/mman.h>

ALL_TESTS(open_device, close_device);

#define CHUNKS 3
#define CHUNK  (4 * MIB)

static CUmemAllocationProp exportable(void) {
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                .location.type = CU_MEM_LOCATION_TYPE_DEVICE};
    return prop;
}

/* One more chunk behind those that there are, on both sides. */
static struct gm_vulkan_memory *grow(struct gm_vulkan *vulkan, CUdeviceptr device_at,
                                     void *host_at) {
    const CUmemAllocationProp prop = exportable();
    const CUmemAccessDesc access = {.location = prop.location,
                                    .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle handle;
    struct gm_vulkan_memory *memory;
    void *host;
    int fd = -1;
    OK_CU(cu->cuMemCreate(&handle, CHUNK, &prop, 0));
    OK_CU(cu->cuMemMap(device_at, CHUNK, 0, handle, 0));
    OK_CU(cu->cuMemSetAccess(device_at, CHUNK, &access, 1));
    OK_CU(
        cu->cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    OK_CU(cu->cuMemRelease(handle));
    OK(gm_vulkan_import(vulkan, fd, CHUNK, 0, &memory));
    assert_int_equal(close(fd), 0);
    OK(gm_vulkan_map(memory, host_at, &host));
    assert_ptr_equal(host, host_at);
    return memory;
}

static void both_ways(unsigned char *host, CUdeviceptr address, size_t size) {
    unsigned char *bytes = malloc(size);
    for (size_t i = 0; i < size; i++)
        host[i] = (unsigned char)(i ^ i >> 9);
    OK_CU(cu->cuMemcpyDtoH_v2(bytes, address, size));
    assert_memory_equal(bytes, host, size);
    OK_CU(cu->cuMemsetD8_v2(address, 0x3c, size));
    for (size_t i = 0; i < size; i++)
        if (host[i] != 0x3c)
            fail_msg("byte %zu is %d", i, host[i]);
    free(bytes);
}

TEST(imported_chunks_grow_in_place_on_both_sides) {
    start_with_icd(state);
    struct gm_vulkan *vulkan;
    struct gm_vulkan_memory *memory[CHUNKS];
    unsigned char uuid[16];
    CUuuid of_cuda = MADE_CU(CUuuid, cuDeviceGetUuid_v2, 0);
    memcpy(uuid, of_cuda.bytes, sizeof uuid);
    OK(gm_vulkan_open(uuid, &vulkan, NULL, 0));
    unsigned char *host = mmap(NULL, CHUNKS * CHUNK + CHUNK, PROT_NONE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_ptr_not_equal(host, MAP_FAILED);
    host += (CHUNK - (uintptr_t)host % CHUNK) % CHUNK;
    OK_CU(cu->cuCtxPushCurrent_v2(gpumem_device_context(device)));
    CUdeviceptr address = MADE_CU(CUdeviceptr, cuMemAddressReserve, CHUNKS * CHUNK, 0, 0, 0);
    for (size_t i = 0; i < CHUNKS; i++) {
        memory[i] = grow(vulkan, address + i * CHUNK, host + i * CHUNK);
        both_ways(host, address, (i + 1) * CHUNK);
    }
    for (size_t i = 0; i < CHUNKS; i++) {
        OK(gm_vulkan_free(memory[i]));
        OK_CU(cu->cuMemUnmap(address + i * CHUNK, CHUNK));
    }
    OK_CU(cu->cuMemAddressFree(address, CHUNKS * CHUNK));
    CUcontext popped;
    OK_CU(cu->cuCtxPopCurrent_v2(&popped));
    gm_vulkan_close(vulkan);
    assert_nothing_left();
}

BEFORE_TESTS {
    if (find_icd(NULL) != 0)
        return 1;
    return 0;
}
