/* libvkgdr.so.1 as a program uses it: on softgpu with the test driver of Vulkan, on hardware with
 * the device's own. */
#include "harness.h"

#include <dlfcn.h>
#include <limits.h>
#include <vkgdr.h>

#define SKIPPED 77

#define FUNCTIONS(X)                                                                               \
    X(vkgdr_last_error)                                                                            \
    X(vkgdr_open)                                                                                  \
    X(vkgdr_close)                                                                                 \
    X(vkgdr_memory_alloc)                                                                          \
    X(vkgdr_memory_free)                                                                           \
    X(vkgdr_memory_get_host_ptr)                                                                   \
    X(vkgdr_memory_get_device_ptr)                                                                 \
    X(vkgdr_memory_get_size)                                                                       \
    X(vkgdr_memory_is_coherent)                                                                    \
    X(vkgdr_memory_non_coherent_atom_size)                                                         \
    X(vkgdr_memory_flush)                                                                          \
    X(vkgdr_memory_invalidate)

static struct {
#define FUNCTION(name) __typeof__(name) *name;
    FUNCTIONS(FUNCTION)
#undef FUNCTION
} vk;

/* What lies beside this program, in a build and in a bundle. */
static void place(char *path, size_t size, const char *below) {
    char program[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    assert_true(length > 0);
    program[length] = 0;
    *strrchr(program, '/') = 0;
    assert_true(snprintf(path, size, "%s/%s", program, below) < (int)size);
}

static void load(void) {
    char path[2 * PATH_MAX];
    place(path, sizeof path, "../../lib/libvkgdr.so.1");
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        fail_msg("%s", dlerror());
#define FIND(name)                                                                                 \
    *(void **)&vk.name = dlsym(library, #name);                                                    \
    assert_non_null(vk.name);
    FUNCTIONS(FIND)
#undef FIND
    place(path, sizeof path, "../vulkan_icd/libvulkan_icd.so");
    if (soft && !getenv("GPUMEM_VULKAN"))
        assert_int_equal(setenv("GPUMEM_VULKAN", path, 1), 0);
    /* The same driver as this program's, whichever that is. */
    assert_int_equal(setenv("GPUMEM_DRIVER", driver_info(driver).path, 1), 0);
}

static vkgdr_t open_or_skip(uint32_t flags) {
    vkgdr_t g = vk.vkgdr_open(dev, flags);
    if (g)
        return g;
    char *text = vk.vkgdr_last_error();
    print_message("vkgdr_open: %s\n", text ? text : "?");
    fflush(NULL);
    _exit(SKIPPED);
}

static vkgdr_memory_t allocate(vkgdr_t g, size_t size) {
    vkgdr_memory_t memory = vk.vkgdr_memory_alloc(g, size, 0);
    if (!memory)
        fail_msg("%zu bytes: %s", size, vk.vkgdr_last_error());
    assert_int_equal(vk.vkgdr_memory_get_size(memory), size);
    return memory;
}

static void check_both_ways(vkgdr_memory_t memory, size_t size) {
    unsigned char *host = vk.vkgdr_memory_get_host_ptr(memory), *bytes = malloc(size);
    CUdeviceptr p = vk.vkgdr_memory_get_device_ptr(memory);
    assert_non_null(bytes);
    fill_pattern(host, size, 1);
    vk.vkgdr_memory_flush(memory, 0, size);
    /* A full fence is more than a store fence: what is write-combined is then on its way. */
    __sync_synchronize();
    OK_CU(cu.cuMemcpyDtoH_v2(bytes, p, size));
    assert_true(has_pattern(bytes, size, 1));
    fill_pattern(bytes, size, 2);
    OK_CU(cu.cuMemcpyHtoD_v2(p, bytes, size));
    OK_CU(cu.cuCtxSynchronize());
    vk.vkgdr_memory_invalidate(memory, 0, size);
    assert_true(has_pattern(host, size, 2));
    set_bytes(p, 0x5a, size);
    vk.vkgdr_memory_invalidate(memory, 0, size);
    assert_true(host[0] == 0x5a && host[size - 1] == 0x5a);
    free(bytes);
}

static void check_sizes(uint32_t flags) {
    static const size_t sizes[] = {1, 13, 4096, 65536, 300000, (size_t)8 << 20};
    vkgdr_t g = open_or_skip(flags);
    vkgdr_memory_t memory[COUNT(sizes)];
    for (size_t i = 0; i < COUNT(sizes); i++) {
        memory[i] = allocate(g, sizes[i]);
        bool forced = flags & VKGDR_OPEN_FORCE_NON_COHERENT_BIT;
        assert_true(!forced || !vk.vkgdr_memory_is_coherent(memory[i]));
    }
    for (size_t i = 0; i < COUNT(sizes); i++)
        check_both_ways(memory[i], sizes[i]);
    for (size_t i = 0; i < COUNT(sizes); i++)
        vk.vkgdr_memory_free(memory[i]);
    vk.vkgdr_close(g);
}

/* ---- Each in a process of its own: a Vulkan driver leaves threads and memory behind ---------- */

CHILD(any_memory) {
    init_driver();
    load();
    check_sizes(VKGDR_OPEN_CURRENT_CONTEXT_BIT);
    _exit(0);
}

CHILD(coherent_memory) {
    init_driver();
    load();
    check_sizes(VKGDR_OPEN_REQUIRE_COHERENT_BIT);
    _exit(0);
}

CHILD(non_coherent_memory) {
    init_driver();
    load();
    check_sizes(VKGDR_OPEN_FORCE_NON_COHERENT_BIT);
    _exit(0);
}

/* Rounds of allocations from two slabs of small and of large buffers: device memory comes back. */
CHILD(freed_memory) {
    size_t first = 0, now, total;
    init_driver();
    load();
    vkgdr_t g = open_or_skip(0);
    for (int round = 0; round < 20; round++) {
        vkgdr_memory_t memory[20];
        for (size_t i = 0; i < COUNT(memory); i++)
            memory[i] = allocate(g, i == 0 ? (size_t)32 << 20 : 200000);
        for (size_t i = 0; i < COUNT(memory); i++)
            vk.vkgdr_memory_free(memory[i]);
        OK_CU(cu.cuMemGetInfo_v2(&now, &total));
        if (round == 1)
            first = now;
    }
    vk.vkgdr_close(g);
    /* Others may use the device meanwhile: eighteen rounds that leaked would take 640 MiB. */
    assert_true(now + ((size_t)320 << 20) > first);
    _exit(0);
}

static void run(const char *name) {
    int status = run_child(name, NULL);
    if (status == SKIPPED)
        SKIP("no Vulkan driver for this device: what vkgdr_open says is above");
    assert_int_equal(status, 0);
}

TEST_IS(host_and_device_see_vkgdr_memory, run("any_memory"));
TEST_IS(host_and_device_see_coherent_memory, run("coherent_memory"));
TEST_IS(host_and_device_see_flushed_non_coherent_memory, run("non_coherent_memory"));
TEST_IS(freed_memory_returns_to_the_device, run("freed_memory"));
