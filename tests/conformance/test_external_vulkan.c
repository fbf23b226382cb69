/* Memory that a Vulkan driver allocated and exported, seen by both: with lavapipe, which needs no
 * GPU, or whatever Vulkan driver the device has. */
#include "harness.h"

#include <dlfcn.h>

#if __has_include(<vulkan/vulkan.h>)
#include <vulkan/vulkan.h>

#define OPAQUE  VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT
#define SKIPPED 77

static PFN_vkGetInstanceProcAddr find;
static VkInstance instance;
static VkPhysicalDevice chosen;
static VkDevice device;

/* ISO C has no cast from an object pointer to a function pointer. */
#define GLOBAL(name) PFN_##name name = (PFN_##name)find(NULL, #name)
#define LOCAL(name)  PFN_##name name = (PFN_##name)find(instance, #name)

static bool open_vulkan(void) {
    void *library = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return false;
    *(void **)&find = dlsym(library, "vkGetInstanceProcAddr");
    GLOBAL(vkCreateInstance);
    VkApplicationInfo application = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                     .apiVersion = VK_API_VERSION_1_1};
    VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                 .pApplicationInfo = &application};
    return vkCreateInstance && vkCreateInstance(&info, NULL, &instance) == VK_SUCCESS;
}

/* On softgpu the driver on the CPU; on hardware the device of the same name. */
static bool choose(void) {
    LOCAL(vkEnumeratePhysicalDevices);
    LOCAL(vkGetPhysicalDeviceProperties);
    VkPhysicalDevice all[16];
    uint32_t count = COUNT(all);
    char name[256] = "";
    if (vkEnumeratePhysicalDevices(instance, &count, all) < 0)
        return false;
    OK_CU(cu.cuDeviceGetName(name, sizeof name, dev));
    for (uint32_t i = 0; i < count; i++) {
        VkPhysicalDeviceProperties properties;
        vkGetPhysicalDeviceProperties(all[i], &properties);
        chosen = all[i];
        if (soft ? properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU
                 : strcmp(properties.deviceName, name) == 0)
            return true;
    }
    return false;
}

static bool open_device(void) {
    if (!open_vulkan() || !choose())
        return false;
    LOCAL(vkCreateDevice);
    const char *extension = "VK_KHR_external_memory_fd";
    float priority = 1;
    VkDeviceQueueCreateInfo queue = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                     .queueCount = 1,
                                     .pQueuePriorities = &priority};
    VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                               .queueCreateInfoCount = 1,
                               .pQueueCreateInfos = &queue,
                               .enabledExtensionCount = 1,
                               .ppEnabledExtensionNames = &extension};
    return vkCreateDevice(chosen, &info, NULL, &device) == VK_SUCCESS;
}

/* The first type that both sides see without flushing; of these one in the device where there is.
 */
static uint32_t shared_type(void) {
    LOCAL(vkGetPhysicalDeviceMemoryProperties);
    const VkMemoryPropertyFlags host =
        VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    const VkMemoryPropertyFlags wanted[] = {host | VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, host};
    VkPhysicalDeviceMemoryProperties properties;
    vkGetPhysicalDeviceMemoryProperties(chosen, &properties);
    for (size_t w = 0; w < COUNT(wanted); w++)
        for (uint32_t i = 0; i < properties.memoryTypeCount; i++)
            if ((properties.memoryTypes[i].propertyFlags & wanted[w]) == wanted[w])
                return i;
    fail_msg("no memory that both sides see");
    return 0;
}

static int export_memory(VkDeviceSize size, VkDeviceMemory *memory) {
    LOCAL(vkAllocateMemory);
    LOCAL(vkGetMemoryFdKHR);
    int fd = -1;
    VkExportMemoryAllocateInfo export = {.sType = VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO,
                                         .handleTypes = OPAQUE};
    VkMemoryAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                 .pNext = &export,
                                 .allocationSize = size,
                                 .memoryTypeIndex = shared_type()};
    VkMemoryGetFdInfoKHR get = {.sType = VK_STRUCTURE_TYPE_MEMORY_GET_FD_INFO_KHR,
                                .handleType = OPAQUE};
    assert_int_equal(vkAllocateMemory(device, &info, NULL, memory), VK_SUCCESS);
    get.memory = *memory;
    assert_int_equal(vkGetMemoryFdKHR(device, &get, &fd), VK_SUCCESS);
    return fd;
}

static void check_both_ways(unsigned char *mapped, CUdeviceptr p, size_t size) {
    unsigned char *bytes = malloc(size);
    fill_pattern(mapped, size, 1);
    OK_CU(cu.cuMemcpyDtoH_v2(bytes, p, size));
    assert_true(has_pattern(bytes, size, 1));
    fill_pattern(bytes, size, 2);
    OK_CU(cu.cuMemcpyHtoD_v2(p, bytes, size));
    OK_CU(cu.cuCtxSynchronize());
    assert_true(has_pattern(mapped, size, 2));
    free(bytes);
}

static void share(size_t size) {
    LOCAL(vkMapMemory);
    LOCAL(vkFreeMemory);
    VkDeviceMemory memory;
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC desc;
    void *mapped;
    memset(&desc, 0, sizeof desc);
    desc.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD;
    desc.handle.fd = export_memory(size, &memory);
    desc.size = size;
    CUexternalMemory external = MADE_CU(CUexternalMemory, cuImportExternalMemory, &desc);
    CUDA_EXTERNAL_MEMORY_BUFFER_DESC buffer = {.size = size};
    CUdeviceptr p = MADE_CU(CUdeviceptr, cuExternalMemoryGetMappedBuffer, external, &buffer);
    assert_int_equal(vkMapMemory(device, memory, 0, VK_WHOLE_SIZE, 0, &mapped), VK_SUCCESS);
    check_both_ways(mapped, p, size);
    vkFreeMemory(device, memory, NULL);
    OK_CU(cu.cuMemsetD8_v2(p, 1, size)); /* it lives as long as somebody has it */
    DESTROY_CU(p, external);
}

/* In a process of its own: a Vulkan driver leaves threads and memory behind. */
CHILD(vulkan) {
    init_driver();
    if (!open_device())
        _exit(SKIPPED);
    share(100000);
    share((size_t)5 << 20);
    fflush(NULL);
    _exit(0);
}
#else
#define SKIPPED 78
CHILD(vulkan) {
    return SKIPPED;
}
#endif

TEST(memory_of_vulkan_is_imported_with_its_bytes) {
    int status = run_child("vulkan", NULL);
    if (status == SKIPPED)
        SKIP("%s", SKIPPED == 78 ? "built without vulkan/vulkan.h"
                                 : "no Vulkan driver that exports memory for this device");
    assert_int_equal(status, 0);
}
