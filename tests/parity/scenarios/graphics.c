/*
 * Semaphores that a graphics driver made. On hardware that is the device's Vulkan driver, with or
 * without a loader, and where there is none nothing is recorded; softgpu's are made by its
 * controls.
 */
#include "../parity.h"

#include <gpumem/softgpu.h>

#include <dlfcn.h>
#include <sys/mman.h>

/* A timeline (or a binary one) as this side has it. */
typedef struct other_side {
    bool timeline;
    int fd;
    softgpu_semaphore *shared;    /* softgpu's */
    unsigned long long semaphore; /* Vulkan's */
} other_side;

#if __has_include(<vulkan/vulkan.h>)
#include <vulkan/vulkan.h>

#define BINARY_FD VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT

static PFN_vkGetInstanceProcAddr find;
static VkInstance instance;
static VkDevice device;

/* ISO C has no cast from an object pointer to a function pointer. */
#define GLOBAL(name) PFN_##name name = (PFN_##name)find(NULL, #name)
#define LOCAL(name)  PFN_##name name = (PFN_##name)find(instance, #name)

/* The loader, else the device's own driver, as a loader would open it. */
static bool open_library(void) {
    static const char *const drivers[] = {"libGLX_nvidia.so.0", "libEGL_nvidia.so.0"};
    void *library = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library != NULL) {
        *(void **)&find = dlsym(library, "vkGetInstanceProcAddr");
        return find != NULL;
    }
    for (size_t i = 0; i < COUNT(drivers) && find == NULL; i++) {
        VkResult (*negotiate)(uint32_t *) = NULL;
        uint32_t version = 5;
        library = dlopen(drivers[i], RTLD_NOW | RTLD_LOCAL);
        if (library == NULL)
            continue;
        *(void **)&negotiate = dlsym(library, "vk_icdNegotiateLoaderICDInterfaceVersion");
        if (negotiate != NULL && negotiate(&version) == VK_SUCCESS)
            *(void **)&find = dlsym(library, "vk_icdGetInstanceProcAddr");
    }
    return find != NULL;
}

static bool open_instance(void) {
    VkApplicationInfo application = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                     .apiVersion = VK_API_VERSION_1_2};
    VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                 .pApplicationInfo = &application};
    if (!open_library())
        return false;
    GLOBAL(vkCreateInstance);
    return vkCreateInstance != NULL && vkCreateInstance(&info, NULL, &instance) == VK_SUCCESS;
}

/* The device that has the same identifier. */
static bool choose(VkPhysicalDevice *chosen) {
    LOCAL(vkEnumeratePhysicalDevices);
    LOCAL(vkGetPhysicalDeviceProperties2);
    VkPhysicalDevice all[16];
    uint32_t count = 16;
    CUuuid uuid = PAR_MADE(CUuuid, cuDeviceGetUuid, par.dev);
    if (vkEnumeratePhysicalDevices(instance, &count, all) < 0)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        VkPhysicalDeviceIDProperties id = {.sType =
                                               VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES};
        VkPhysicalDeviceProperties2 properties = {
            .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &id};
        vkGetPhysicalDeviceProperties2(all[i], &properties);
        *chosen = all[i];
        if (memcmp(id.deviceUUID, &uuid, VK_UUID_SIZE) == 0)
            return true;
    }
    return false;
}

static bool open_device(void) {
    VkPhysicalDevice chosen;
    if (device != NULL)
        return true;
    if (!open_instance() || !choose(&chosen))
        return false;
    LOCAL(vkCreateDevice);
    const char *extension = "VK_KHR_external_semaphore_fd";
    float priority = 1;
    VkPhysicalDeviceTimelineSemaphoreFeatures timelines = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES,
        .timelineSemaphore = VK_TRUE};
    VkDeviceQueueCreateInfo queue = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                     .queueCount = 1,
                                     .pQueuePriorities = &priority};
    VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                               .pNext = &timelines,
                               .queueCreateInfoCount = 1,
                               .pQueueCreateInfos = &queue,
                               .enabledExtensionCount = 1,
                               .ppEnabledExtensionNames = &extension};
    return vkCreateDevice(chosen, &info, NULL, &device) == VK_SUCCESS;
}

static bool vulkan_semaphore(other_side *side) {
    if (!open_device())
        return false;
    LOCAL(vkCreateSemaphore);
    LOCAL(vkGetSemaphoreFdKHR);
    VkSemaphore semaphore;
    VkSemaphoreTypeCreateInfo type = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                                      .semaphoreType = side->timeline ? VK_SEMAPHORE_TYPE_TIMELINE
                                                                      : VK_SEMAPHORE_TYPE_BINARY};
    VkExportSemaphoreCreateInfo export = {.sType = VK_STRUCTURE_TYPE_EXPORT_SEMAPHORE_CREATE_INFO,
                                          .pNext = &type,
                                          .handleTypes = BINARY_FD};
    VkSemaphoreCreateInfo info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO,
                                  .pNext = &export};
    VkSemaphoreGetFdInfoKHR get = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_GET_FD_INFO_KHR,
                                   .handleType = BINARY_FD};
    if (vkCreateSemaphore(device, &info, NULL, &semaphore) != VK_SUCCESS)
        return false;
    get.semaphore = semaphore;
    side->semaphore = (unsigned long long)(uintptr_t)semaphore;
    return vkGetSemaphoreFdKHR(device, &get, &side->fd) == VK_SUCCESS;
}

static unsigned long long vulkan_value(const other_side *side) {
    uint64_t value = ~0ull;
    LOCAL(vkGetSemaphoreCounterValue);
    vkGetSemaphoreCounterValue(device, (VkSemaphore)(uintptr_t)side->semaphore, &value);
    return value;
}
#else
static bool vulkan_semaphore(other_side *side) {
    return false;
}

static unsigned long long vulkan_value(const other_side *side) {
    return 0;
}
#endif

static const softgpu_control *controls(void) {
    softgpu_get_control_fn get = NULL;
    *(void **)&get = gpumem_driver_symbol(par.driver, "softgpu_get_control");
    return get != NULL ? get(SOFTGPU_CONTROL_VERSION) : NULL;
}

static bool make(other_side *side, bool timeline) {
    const softgpu_control *soft = controls();
    memset(side, 0, sizeof(*side));
    side->timeline = timeline;
    if (soft == NULL)
        return vulkan_semaphore(side);
    side->fd =
        soft->semaphore_create(timeline ? SOFTGPU_SEMAPHORE_TIMELINE : SOFTGPU_SEMAPHORE_BINARY, 0);
    side->shared =
        mmap(NULL, SOFTGPU_SEMAPHORE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, side->fd, 0);
    return (void *)side->shared != MAP_FAILED;
}

static unsigned long long value_of(const other_side *side) {
    return side->shared != NULL ? __atomic_load_n(&side->shared->value, __ATOMIC_ACQUIRE)
                                : vulkan_value(side);
}

static CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC described(const other_side *side) {
    CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC desc;
    memset(&desc, 0, sizeof(desc));
    desc.type = side->timeline ? CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD
                               : CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD;
    desc.handle.fd = side->fd;
    return desc;
}

static CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS signal_of(uint64_t value) {
    CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS params;
    memset(&params, 0, sizeof(params));
    params.params.fence.value = value;
    return params;
}

static CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS wait_of(uint64_t value) {
    CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS params;
    memset(&params, 0, sizeof(params));
    params.params.fence.value = value;
    return params;
}

/* Waits come after what they wait for: nothing here can hang. */
SCENARIO(timeline, "graphics/timeline", par_context) {
    other_side side;
    CUexternalSemaphore t;
    CUstream s = par_stream();
    if (!make(&side, true))
        return;
    CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC desc = described(&side);
    CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS one = signal_of(1), two = signal_of(2);
    CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS for_one = wait_of(1), for_two = wait_of(2);
    CALLO(cuImportExternalSemaphore, "timeline", (&t, &desc), OUT_H(t));
    if (par_last() != CUDA_SUCCESS)
        return;
    CALL(cuSignalExternalSemaphoresAsync, "timeline-zero-count", (&t, &one, 0, s));
    CALL(cuSignalExternalSemaphoresAsync, "timeline", (&t, &one, 1, s));
    CALL(cuWaitExternalSemaphoresAsync, "timeline", (&t, &for_one, 1, s));
    CALL(cuStreamSynchronize, "timeline", (s));
    par_see("value", "%llu", value_of(&side));
    CALL(cuSignalExternalSemaphoresAsync_ptsz, "timeline", (&t, &two, 1, s));
    CALL(cuWaitExternalSemaphoresAsync_ptsz, "timeline", (&t, &for_two, 1, s));
    CALL(cuStreamSynchronize, "timeline", (s));
    par_see("value", "%llu", value_of(&side));
    CALL(cuWaitExternalSemaphoresAsync, "reached-long-ago", (&t, &for_one, 1, s));
    CALL(cuSignalExternalSemaphoresAsync, "null-params", (&t, NULL, 1, s));
    CALL(cuWaitExternalSemaphoresAsync, "null-params", (&t, NULL, 1, s));
    CALL(cuStreamSynchronize, "timeline", (s));
    CALL(cuDestroyExternalSemaphore, "timeline", (t));
}

SCENARIO(binary, "graphics/binary", par_context) {
    other_side side;
    CUexternalSemaphore b;
    CUstream s = par_stream();
    if (!make(&side, false))
        return;
    CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC desc = described(&side);
    CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS up = signal_of(0);
    CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS down = wait_of(0);
    CALLO(cuImportExternalSemaphore, "binary", (&b, &desc), OUT_H(b));
    if (par_last() != CUDA_SUCCESS)
        return;
    CALL(cuSignalExternalSemaphoresAsync, "binary", (&b, &up, 1, s));
    CALL(cuWaitExternalSemaphoresAsync, "binary", (&b, &down, 1, s));
    CALL(cuStreamSynchronize, "binary", (s));
    CALL(cuDestroyExternalSemaphore, "binary", (b));
}

SCENARIO(nodes, "graphics/nodes", par_context) {
    other_side side;
    CUexternalSemaphore t;
    CUgraphExec exec;
    CUgraphNode set, get;
    if (!make(&side, true))
        return;
    CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC desc = described(&side);
    CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS one = signal_of(1), five = signal_of(5);
    CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS for_one = wait_of(1), for_five = wait_of(5);
    if (par.api->cuImportExternalSemaphore(&t, &desc) != CUDA_SUCCESS)
        return;
    CUDA_EXT_SEM_SIGNAL_NODE_PARAMS signal = {&t, &one, 1};
    CUDA_EXT_SEM_WAIT_NODE_PARAMS wait = {&t, &for_one, 1};
    CUgraph graph = par_graph();
    CALLO(cuGraphAddExternalSemaphoresSignalNode, "timeline", (&set, graph, NULL, 0, &signal),
          OUT_C(set));
    CALLO(cuGraphAddExternalSemaphoresWaitNode, "timeline", (&get, graph, &set, 1, &wait),
          OUT_C(get));
    CALLO(cuGraphInstantiateWithFlags, "semaphores", (&exec, graph, 0), OUT_C(exec));
    if (par_last() != CUDA_SUCCESS)
        return;
    CALL(cuGraphLaunch, "semaphores", (exec, NULL));
    CALL(cuCtxSynchronize, "semaphores", ());
    par_see("value", "%llu", value_of(&side));
    signal.paramsArray = &five;
    wait.paramsArray = &for_five;
    CALL(cuGraphExecExternalSemaphoresSignalNodeSetParams, "timeline", (exec, set, &signal));
    CALL(cuGraphExecExternalSemaphoresWaitNodeSetParams, "timeline", (exec, get, &wait));
    CALL(cuGraphLaunch, "semaphores-set", (exec, NULL));
    CALL(cuCtxSynchronize, "semaphores-set", ());
    par_see("value", "%llu", value_of(&side));
    signal.numExtSems = wait.numExtSems = 0;
    CALL(cuGraphExecExternalSemaphoresSignalNodeSetParams, "fewer", (exec, set, &signal));
    CALL(cuGraphExecExternalSemaphoresWaitNodeSetParams, "fewer", (exec, get, &wait));
    CALL(cuGraphExecDestroy, "semaphores", (exec));
    CALL(cuDestroyExternalSemaphore, "of-nodes", (t));
}
