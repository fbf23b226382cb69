/* The texts of errors, and when there is one. */
#include "vkgdr_test.h"

#include <pthread.h>
#include <sys/wait.h>

ALL_TESTS(start_vkgdr, close_device);

EACH_TEST(start_with_context, end_with_context);

/* What Vulkan may answer; the numbers are its registry's. */
#define VK_ERROR_OUT_OF_DEVICE_MEMORY  (-2)
#define VK_ERROR_INITIALIZATION_FAILED (-3)
#define VK_ERROR_MEMORY_MAP_FAILED     (-5)
#define VK_ERROR_INCOMPATIBLE_DRIVER   (-9)
#define VK_ERROR_TOO_MANY_OBJECTS      (-10)

static void check_open_fails(const char *function, int result, const char *text) {
    icd->reset();
    icd->refuse(function, 1, 1, result);
    assert_null(vkgdr_open(DEVICE, 0));
    ERROR_IS(text);
}

TEST(a_failed_open_names_the_vulkan_call) {
    check_open_fails("vkCreateInstance", VK_ERROR_INCOMPATIBLE_DRIVER,
                     "vkCreateInstance failed (VK_ERROR_INCOMPATIBLE_DRIVER)");
    check_open_fails("vkEnumeratePhysicalDevices", VK_ERROR_INITIALIZATION_FAILED,
                     "vkEnumeratePhysicalDevices failed (VK_ERROR_INITIALIZATION_FAILED)");
    check_open_fails("vkCreateDevice", VK_ERROR_TOO_MANY_OBJECTS,
                     "vkCreateDevice failed (VK_ERROR_TOO_MANY_OBJECTS)");
    check_open_fails("vkCreateDevice", -12345,
                     "vkCreateDevice failed (unknown Vulkan error -12345)");
}

static void check_alloc_fails(vkgdr_t g, const char *function, int result, const char *text) {
    icd->reset();
    icd->refuse(function, 1, 1, result);
    assert_null(vkgdr_memory_alloc(g, MIB, 0));
    ERROR_IS(text);
    icd->reset();
    assert_null(vkgdr_memory_alloc(g, 0, 0)); /* another error takes its place */
    ERROR_IS("vkgdr_memory_alloc: 0 bytes were requested");
}

TEST(a_failed_allocation_names_the_vulkan_call) {
    vkgdr_t g = open_gpu(0);
    check_alloc_fails(g, "vkAllocateMemory", VK_ERROR_OUT_OF_DEVICE_MEMORY,
                      "vkAllocateMemory failed (VK_ERROR_OUT_OF_DEVICE_MEMORY)");
    check_alloc_fails(g, "vkMapMemory", VK_ERROR_MEMORY_MAP_FAILED,
                      "vkMapMemory failed (VK_ERROR_MEMORY_MAP_FAILED)");
    check_alloc_fails(g, "vkGetMemoryFdKHR", VK_ERROR_TOO_MANY_OBJECTS,
                      "vkGetMemoryFdKHR failed (VK_ERROR_TOO_MANY_OBJECTS)");
    check_alloc_fails(g, "vkAllocateMemory", -777,
                      "vkAllocateMemory failed (unknown Vulkan error -777)");
    vkgdr_close(g);
}

/* Asked of nobody, since Vulkan leaves it undefined. */
TEST(an_oversized_allocation_is_reported_as_a_vulkan_error) {
    setenv("VULKAN_ICD_ALLOCATIONS", "1", 1);
    vkgdr_t g = open_gpu(0);
    assert_null(vkgdr_memory_alloc(g, (size_t)1 << 55, 0));
    ERROR_IS("vkAllocateMemory failed (VK_ERROR_OUT_OF_DEVICE_MEMORY)");
    assert_null(vkgdr_memory_alloc(g, SIZE_MAX, 0));
    ERROR_IS("vkAllocateMemory failed (VK_ERROR_OUT_OF_DEVICE_MEMORY)");
    vkgdr_memory_t memory = allocate(g, MIB);
    assert_null(vkgdr_memory_alloc(g, MIB, 0));
    ERROR_IS("vkAllocateMemory failed (VK_ERROR_TOO_MANY_OBJECTS)");
    vkgdr_memory_free(memory);
    vkgdr_close(g);
}

static void check_cuda_fails(vkgdr_t g, const char *function, int error, const char *text) {
    assert_int_equal(soft->fault_arm(function, 1, error, SOFTGPU_FAULT_BEFORE), 0);
    assert_null(g ? (void *)vkgdr_memory_alloc(g, MIB, 0) : (void *)vkgdr_open(DEVICE, 0));
    assert_int_equal(soft->fault_disarm(), 1);
    ERROR_IS(text);
}

TEST(a_failed_cuda_call_is_named) {
    check_cuda_fails(NULL, "cuDeviceGetUuid_v2", CUDA_ERROR_OPERATING_SYSTEM,
                     "cuDeviceGetUuid failed (CUDA_ERROR_OPERATING_SYSTEM)");
    vkgdr_t g = open_gpu(0);
    check_cuda_fails(g, "cuImportExternalMemory", CUDA_ERROR_OUT_OF_MEMORY,
                     "cuImportExternalMemory failed (CUDA_ERROR_OUT_OF_MEMORY)");
    check_cuda_fails(g, "cuExternalMemoryGetMappedBuffer", CUDA_ERROR_INVALID_VALUE,
                     "cuExternalMemoryGetMappedBuffer failed (CUDA_ERROR_INVALID_VALUE)");
    check_cuda_fails(g, "cuImportExternalMemory", 98765,
                     "cuImportExternalMemory failed (unknown CUDA error 98765)");
    vkgdr_close(g);
    assert_null(vkgdr_open(77, 0));
    ERROR_IS("cuDeviceGetUuid failed (CUDA_ERROR_INVALID_DEVICE)");
}

TEST(a_missing_matching_vulkan_device_is_reported) {
    setenv("VULKAN_ICD_UUID", "00112233445566778899aabbccddeeff", 1);
    assert_null(vkgdr_open(DEVICE, 0));
    ERROR_IS("no Vulkan device matching the CUDA device found");
}

TEST(a_missing_library_is_named) {
    choose_vulkan("/nowhere/libvulkan.so.1");
    assert_null(vkgdr_open(DEVICE, 0));
    char *text = vkgdr_last_error();
    if (!strstr(text, "/nowhere/libvulkan.so.1") || !strstr(text, "No such file"))
        fail_msg("%s", text);
    free(text);
}

TEST(without_a_context_the_error_names_the_driver_call) {
    CUcontext popped;
    vkgdr_t g = open_gpu(0);
    OK_CU(cu->cuCtxPopCurrent_v2(&popped));
    assert_null(vkgdr_open(DEVICE, VKGDR_OPEN_CURRENT_CONTEXT_BIT));
    ERROR_IS("cuCtxGetDevice failed (CUDA_ERROR_INVALID_CONTEXT)");
    assert_null(vkgdr_memory_alloc(g, 64, 0));
    ERROR_IS("cuCtxGetDevice failed (CUDA_ERROR_INVALID_CONTEXT)");
    OK_CU(cu->cuCtxPushCurrent_v2(popped));
    vkgdr_close(g);
}

/* ---- When there is an error ------------------------------------------------------------------ */

TEST(only_open_and_alloc_set_and_clear_the_last_error) {
    vkgdr_t g = open_gpu(0);
    NO_ERROR();
    assert_null(vkgdr_open(DEVICE, 8));
    ERROR_IS("vkgdr_open: unknown flags 0x8");
    ERROR_IS("vkgdr_open: unknown flags 0x8"); /* asking does not take it away */
    vkgdr_memory_t memory = allocate(g, 64);
    NO_ERROR();
    assert_null(vkgdr_memory_alloc(g, 0, 0));
    vkgdr_memory_get_host_ptr(memory);
    vkgdr_memory_flush(memory, 0, 64);
    vkgdr_memory_invalidate(memory, 0, 64);
    vkgdr_memory_free(memory);
    vkgdr_close(g);
    ERROR_IS("vkgdr_memory_alloc: 0 bytes were requested");
    vkgdr_close(open_gpu(0));
    NO_ERROR();
}

static void *other_thread(void *data) {
    char *text = vkgdr_last_error();
    if (text) {
        free(text);
        return "a new thread has an error";
    }
    return vkgdr_open(DEVICE, 16) ? "flags are taken" : NULL;
}

TEST(each_thread_has_its_own_last_error) {
    pthread_t thread;
    void *failed = NULL;
    assert_null(vkgdr_open(DEVICE, 8));
    assert_int_equal(pthread_create(&thread, NULL, other_thread, NULL), 0);
    assert_int_equal(pthread_join(thread, &failed), 0);
    if (failed)
        fail_msg("%s", (const char *)failed);
    ERROR_IS("vkgdr_open: unknown flags 0x8");
}

/* ---- A forked child -------------------------------------------------------------------------- */

static int child(vkgdr_t g, vkgdr_memory_t memory) {
    if (vkgdr_memory_alloc(g, 64, 0))
        return 1;
    char *text = vkgdr_last_error();
    if (!text || !strstr(text, "parent"))
        return 2;
    free(text);
    if (vkgdr_open(DEVICE, 0))
        return 3;
    text = vkgdr_last_error();
    if (!text || !strstr(text, "forked child"))
        return 4;
    free(text);
    vkgdr_memory_free(memory);
    vkgdr_close(g);
    return 0;
}

TEST(a_forked_child_is_refused) {
    int status;
    vkgdr_t g = open_gpu(0);
    vkgdr_memory_t memory = allocate(g, 64);
    fill(host_of(memory), 64, 1);
    pid_t forked = fork();
    if (forked == 0)
        _exit(child(g, memory));
    assert_int_equal(waitpid(forked, &status, 0), forked);
    assert_int_equal(status, 0);
    check_device(memory, 64, 1); /* the parent's is as it was */
    vkgdr_memory_free(memory);
    vkgdr_close(g);
}
