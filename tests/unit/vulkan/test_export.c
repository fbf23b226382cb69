/* Memory that Vulkan allocated, mapped and exported, imported by softgpu: the bytes are the same.
 * With the test driver and with Mesa's on the CPU. */
#include "kept_driver.h"
#include "lavapipe.h"
#include "vulkan/device.h"
#include "vulkan_test.h"

ALL_TESTS(open_device, close_device);

/* One size of whole pages, one that is none. */
static const size_t sizes[] = {5 * MIB, 100000};

static void fill(unsigned char *bytes, size_t size, unsigned seed) {
    for (size_t i = 0; i < size; i++)
        bytes[i] = (unsigned char)(i * 7 + (i >> 8) * 13 + seed);
}

static void assert_filled(const unsigned char *bytes, size_t size, unsigned seed) {
    for (size_t i = 0; i < size; i++)
        if (bytes[i] != (unsigned char)(i * 7 + (i >> 8) * 13 + seed))
            fail_msg("byte %zu is %d", i, bytes[i]);
}

static CUdeviceptr import_into_cuda(int fd, size_t size, CUexternalMemory *external) {
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC handle;
    memset(&handle, 0, sizeof handle);
    handle.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD;
    handle.handle.fd = fd;
    handle.size = size;
    CUDA_EXTERNAL_MEMORY_BUFFER_DESC buffer = {.size = size};
    OK_CU(cu->cuImportExternalMemory(external, &handle));
    return MADE_CU(CUdeviceptr, cuExternalMemoryGetMappedBuffer, *external, &buffer);
}

static void check_both_ways(unsigned char *host, CUdeviceptr address, size_t size) {
    unsigned char *bytes = malloc(size);
    fill(host, size, 1);
    OK_CU(cu->cuMemcpyDtoH_v2(bytes, address, size));
    assert_filled(bytes, size, 1);
    fill(bytes, size, 2);
    OK_CU(cu->cuMemcpyHtoD_v2(address, bytes, size));
    assert_filled(host, size, 2);
    free(bytes);
}

static void share(struct gm_vulkan *vulkan, size_t size, unsigned flags) {
    struct gm_vulkan_memory *memory;
    CUexternalMemory external;
    void *host;
    int fd = -1;
    OK(gm_vulkan_allocate(vulkan, size, flags, &memory));
    assert_int_equal(gm_vulkan_memory_size(memory), size);
    OK(gm_vulkan_map(memory, NULL, &host));
    OK(gm_vulkan_export(memory, &fd));
    assert_true(fd >= 3);
    CUdeviceptr address = import_into_cuda(fd, size, &external);
    check_both_ways(host, address, size);
    OK(gm_vulkan_free(memory));
    OK_CU(cu->cuMemsetD8_v2(address, 1, size)); /* CUDA has it still */
    OK_CU(cu->cuMemFree_v2(address));
    OK_CU(cu->cuDestroyExternalMemory(external));
}

static void share_all(struct gm_vulkan *vulkan, unsigned flags) {
    use_context();
    for (size_t i = 0; i < COUNT(sizes); i++)
        share(vulkan, sizes[i], flags);
    leave_context();
}

TEST(softgpu_imports_memory_of_the_test_driver) {
    start_with_icd(state);
    struct gm_vulkan *vulkan;
    OK(gm_vulkan_open(softgpu_uuid, &vulkan, NULL, 0));
    share_all(vulkan, 0);
    gm_vulkan_close(vulkan);
    assert_nothing_left();
}

TEST(softgpu_imports_memory_of_lavapipe) {
    struct gm_vulkan *vulkan;
    struct gm_vulkan_type type;
    unsigned char uuid[16];
    if (!find_lavapipe(uuid))
        skip();
    choose_vulkan(NULL);
    OK(gm_vulkan_open(uuid, &vulkan, NULL, 0));
    const struct gm_vulkan_facts *facts = gm_vulkan_get_facts(vulkan);
    assert_non_null(strstr(facts->library, "libvulkan"));
    assert_non_null(strstr(facts->name, "llvmpipe"));
    assert_string_equal(facts->refusals, "");
    assert_true(facts->coherent);
    assert_true(facts->heap_bytes > 0);
    OK(gm_vulkan_choose(vulkan, GM_VULKAN_FORCE_NON_COHERENT, &type));
    assert_false(type.coherent);
    share_all(vulkan, GM_VULKAN_REQUIRE_COHERENT);
    gm_vulkan_close(vulkan);
}

TEST(lavapipe_accepts_flushes_of_any_range) {
    struct gm_vulkan *vulkan;
    struct gm_vulkan_memory *memory;
    unsigned char uuid[16];
    void *host;
    if (!find_lavapipe(uuid))
        skip();
    choose_vulkan(NULL);
    OK(gm_vulkan_open(uuid, &vulkan, NULL, 0));
    OK(gm_vulkan_allocate(vulkan, 100000, GM_VULKAN_FORCE_NON_COHERENT, &memory));
    OK(gm_vulkan_map(memory, NULL, &host));
    OK(gm_vulkan_flush(memory, 99999, 1));
    OK(gm_vulkan_invalidate(memory, 1, 3));
    gm_vulkan_close(vulkan); /* the memory holds it */
    OK(gm_vulkan_free(memory));
}

BEFORE_TESTS {
    keep_lavapipe_loaded();
    if (find_icd(NULL) != 0)
        return 1;
    return 0;
}
