/*
 * vkgdr's interface: the cost of a small buffer, which is a piece of a slab, compared with a buffer
 * of its own, which vkgdr makes for every buffer (vkAllocateMemory, vkMapMemory, export, import).
 * Without a Vulkan driver for the device (GPUMEM_VULKAN) it prints so and measures nothing.
 */
#include "table.h"

#include <dlfcn.h>
#include <gpumem/gpumem.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <vkgdr.h>

#define ROUNDS 21
#define SMALL  1000 /* buffers that are timed together */
#define LARGE  16
#define OWN    ((size_t)1 << 20)

static struct {
    __typeof__(vkgdr_last_error) *last_error;
    __typeof__(vkgdr_open) *open;
    __typeof__(vkgdr_close) *close;
    __typeof__(vkgdr_memory_alloc) *alloc;
    __typeof__(vkgdr_memory_free) *free;
} vk;

static void *find(void *library, const char *name) {
    void *symbol = dlsym(library, name);
    if (!symbol)
        bench_fail("libvkgdr.so.1 has no %s", name);
    return symbol;
}

/* From the library next to this program, in a build and in a bundle. */
static void load(void) {
    char path[PATH_MAX + 32];
    ssize_t length = readlink("/proc/self/exe", path, PATH_MAX);
    if (length < 0)
        bench_fail("where is this program?");
    path[length] = 0;
    strcpy(strrchr(path, '/'), "/../lib/libvkgdr.so.1");
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        bench_fail("%s", dlerror());
    *(void **)&vk.last_error = find(library, "vkgdr_last_error");
    *(void **)&vk.open = find(library, "vkgdr_open");
    *(void **)&vk.close = find(library, "vkgdr_close");
    *(void **)&vk.alloc = find(library, "vkgdr_memory_alloc");
    *(void **)&vk.free = find(library, "vkgdr_memory_free");
}

static vkgdr_memory_t allocate(vkgdr_t g, size_t size) {
    vkgdr_memory_t memory = vk.alloc(g, size, 0);
    if (!memory)
        bench_fail("%s", vk.last_error());
    return memory;
}

struct times {
    double alloc, free; /* microseconds each, medians */
};

static struct times measure(vkgdr_t g, size_t size, size_t count) {
    static vkgdr_memory_t memory[SMALL];
    double alloc[ROUNDS], freed[ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
        double start = bench_now();
        for (size_t i = 0; i < count; i++)
            memory[i] = allocate(g, size);
        double middle = bench_now();
        for (size_t i = 0; i < count; i++)
            vk.free(memory[i]);
        freed[round] = 1e6 * (bench_now() - middle) / (double)count;
        alloc[round] = 1e6 * (middle - start) / (double)count;
    }
    return (struct times){bench_median(alloc, ROUNDS), bench_median(freed, ROUNDS)};
}

static void run(vkgdr_t g) {
    struct times own = measure(g, OWN, LARGE);
    struct times cold = measure(g, 64, 1);
    vkgdr_memory_t held = allocate(g, 64);
    struct times warm = measure(g, 64, SMALL), page = measure(g, 4096, 400);
    vk.free(held);
    bench_header("one buffer", "its own allocation");
    bench_row("alloc 64 B, beside another", warm.alloc, own.alloc, "us");
    bench_row("alloc 4 KiB, beside another", page.alloc, own.alloc, "us");
    bench_row("alloc 64 B, the first one", cold.alloc, own.alloc, "us");
    bench_row("free 64 B, beside another", warm.free, own.free, "us");
    bench_row("free 4 KiB, beside another", page.free, own.free, "us");
    bench_row("free 64 B, the last one", cold.free, own.free, "us");
}

int main(void) {
    gpumem_library *library = NULL;
    gpumem_device *device = NULL;
    if (gpumem_open(NULL, &library) != GPUMEM_OK ||
        gpumem_device_open(library, 0, &device) != GPUMEM_OK)
        bench_fail("%s", gpumem_last_error()->message);
    const gpumem_driver_api *cu = gpumem_driver_table(gpumem_library_driver(library));
    CUresult result = cu->cuCtxPushCurrent_v2(gpumem_device_context(device));
    if (result != CUDA_SUCCESS)
        bench_fail("cuCtxPushCurrent: %s", bench_result(cu, result));
    load();
    vkgdr_t g = vk.open(0, VKGDR_OPEN_CURRENT_CONTEXT_BIT);
    if (g)
        run(g);
    else
        printf("not measured: %s\n", vk.last_error());
    vk.close(g);
    return 0;
}
