#include "gdrcopy.h"
#include "table.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* GDRCopy's interface, version 2: a handle is a struct, passed by value. */
struct handle {
    unsigned long number;
};
static struct {
    void *(*open)(void);
    int (*pin)(void *g, unsigned long address, size_t bytes, uint64_t token, uint32_t space,
               struct handle *handle);
    int (*map)(void *g, struct handle handle, void **mapped, size_t bytes);
    int (*copy)(struct handle handle, void *to, const void *from, size_t bytes);
} gdr;

static struct handle handle;
static void *mapped;

static const void *missing(const char *why) {
    printf("not measured, GDRCopy: %s\n", why);
    return NULL;
}

/* Returns the reason for a failure, or NULL. */
static const char *find(void) {
    static const char *const names[] = {"gdr_open", "gdr_pin_buffer", "gdr_map",
                                        "gdr_copy_to_mapping"};
    void **const pointers[] = {(void **)&gdr.open, (void **)&gdr.pin, (void **)&gdr.map,
                               (void **)&gdr.copy};
    void *library = dlopen("libgdrapi.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return dlerror();
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        *pointers[i] = dlsym(library, names[i]);
        if (!*pointers[i])
            return dlerror();
    }
    return NULL;
}

const void *gdrcopy_open(const gpumem_driver_api *cu, size_t bytes) {
    const size_t page = 65536; /* the GPU's page: pinned ranges begin and end with one */
    unsigned one = 1;
    CUdeviceptr address = 0;
    const char *why = find();
    if (why)
        return missing(why);
    void *g = gdr.open();
    if (!g)
        return missing("gdr_open fails: its kernel module is not loaded");
    bytes = (bytes + page - 1) / page * page;
    CUresult result = cu->cuMemAlloc_v2(&address, 2 * bytes);
    if (result == CUDA_SUCCESS)
        result = cu->cuPointerSetAttribute(&one, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, address);
    if (result != CUDA_SUCCESS)
        return missing(bench_result(cu, result));
    address = (address + page - 1) / page * page;
    if (gdr.pin(g, (unsigned long)address, bytes, 0, 0, &handle) != 0)
        return missing("gdr_pin_buffer fails");
    if (gdr.map(g, handle, &mapped, bytes) != 0)
        return missing("gdr_map fails");
    return mapped;
}

void gdrcopy_store(const void *from, size_t bytes) {
    if (gdr.copy(handle, mapped, from, bytes) != 0)
        bench_fail("gdr_copy_to_mapping fails");
}
