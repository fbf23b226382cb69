#include "memory/pinned/pinned_slab.h"

#include "memory/core/driver_error.h"
#include "memory/host/huge_pages.h"
#include "memory/host/numa.h"
#include "memory/host/pinning.h"
#include "memory/host/touch_pages.h"
#include "memory/pinned/touch_calibration.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* From linux/mempolicy.h, which not every libc has headers for. */
#define POLICY_BIND 2

unsigned gm_slab_default_threads(void) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return 1;
    int count = CPU_COUNT(&set);
    return count < 1 ? 1 : count > 16 ? 16 : (unsigned)count;
}

/* Anonymous memory that starts at a huge page, so that the system can use huge pages. */
static void *map_aligned(size_t bytes) {
    size_t whole = bytes + GM_SLAB_UNIT;
    unsigned char *start =
        mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED)
        return NULL;
    size_t lead = (size_t)(-(uintptr_t)start & (GM_SLAB_UNIT - 1));
    size_t tail = whole - lead - bytes;
    if (lead)
        munmap(start, lead);
    if (tail)
        munmap(start + lead + bytes, tail);
    (void)madvise(start + lead, bytes, MADV_HUGEPAGE); /* faster if granted, not required */
    return start + lead;
}

/*
 * Keeps the memory out of forked children, before its first page is touched. A page shared by
 * parent and child is copied when one of them writes, and the kernel decides which keeps the one
 * that the device reads; and each fork copies all pages known to be pinned, including huge ones.
 */
static int keep_from_children(void *base, size_t bytes) {
    return madvise(base, bytes, MADV_DONTFORK) == 0 ? 0 : errno;
}

static gpumem_status bind_node(void *base, size_t bytes, int node) {
    unsigned long mask[GM_NUMA_MOST_NODES / (8 * sizeof(unsigned long))] = {0};
    unsigned bits = 8 * sizeof mask[0];
    mask[(unsigned)node / bits] = 1ul << ((unsigned)node % bits);
    if (syscall(SYS_mbind, base, bytes, POLICY_BIND, mask, 8 * sizeof mask, 0) == 0)
        return GPUMEM_OK;
    int error = errno;
    return gm_fail_system(error == EPERM ? GPUMEM_ERROR_NOT_PERMITTED : GPUMEM_ERROR_SYSTEM, error,
                          "mbind", "cannot bind pinned memory to NUMA node %d", node);
}

static int touch(gpumem_device *device, const struct gm_slab_settings *settings,
                 const struct gm_slab *slab, enum gm_touch_way way) {
    return settings->threads ? gm_touch(slab->base, slab->bytes, settings->threads, way)
                             : gm_touch_measured(device, slab->base, slab->bytes, way);
}

/* A store to a node without memory left kills the process; populating through the kernel returns an
 * error. */
static enum gm_touch_way way_of(const struct gm_slab_settings *settings,
                                const struct gm_slab *slab) {
    if (slab->huge)
        return GM_TOUCH_POPULATE_ONLY;
    int short_of_memory =
        settings->numa_bind && gm_numa_free(settings->numa_node) / 16 * 15 < slab->bytes;
    return short_of_memory ? GM_TOUCH_POPULATE : GM_TOUCH_STORE;
}

static gpumem_status fill_registered(gpumem_device *device, const struct gm_slab_settings *settings,
                                     struct gm_slab *slab) {
    if (settings->numa_bind) {
        gpumem_status status = bind_node(slab->base, slab->bytes, settings->numa_node);
        if (status != GPUMEM_OK)
            return status;
    }
    int error = touch(device, settings, slab, way_of(settings, slab));
    if (error)
        return gm_fail_system(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, error, "madvise",
                              "no memory to pin %zu bytes", slab->bytes);
    const gpumem_driver_api *cu = device->cu;
    CUresult result = cu->cuMemHostRegister_v2(slab->base, slab->bytes,
                                               CU_MEMHOSTREGISTER_DEVICEMAP |
                                                   (settings->flags & GPUMEM_PINNED_PORTABLE));
    if (result != CUDA_SUCCESS) {
        gpumem_status status = gm_cu_fail_host(cu, result, "cuMemHostRegister",
                                               "cannot pin %zu bytes of host memory", slab->bytes);
        (void)cu->cuMemHostUnregister(slab->base); /* if it was registered nevertheless */
        return status;
    }
    return GPUMEM_OK;
}

/* For mapped memory, which is unmapped on failure. */
static gpumem_status pin_mapped(gpumem_device *device, const struct gm_slab_settings *settings,
                                struct gm_slab *slab) {
    slab->registered = 1;
    int error = keep_from_children(slab->base, slab->bytes);
    gpumem_status status =
        error ? gm_fail_system(GPUMEM_ERROR_SYSTEM, error, "madvise",
                               "cannot keep %zu bytes of pinned memory from forked children",
                               slab->bytes)
              : fill_registered(device, settings, slab);
    if (status != GPUMEM_OK)
        munmap(slab->base, slab->bytes);
    return status;
}

static gpumem_status make_registered(gpumem_device *device, const struct gm_slab_settings *settings,
                                     struct gm_slab *slab) {
    slab->base = map_aligned(slab->bytes);
    if (!slab->base)
        return gm_fail_system(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, errno, "mmap",
                              "no memory to pin %zu bytes", slab->bytes);
    return pin_mapped(device, settings, slab);
}

/* Whether it was made: on any failure other pages are tried next, and the reason is kept. */
static int make_huge(gpumem_device *device, const struct gm_slab_settings *settings,
                     struct gm_slab *slab) {
    struct gm_error_record saved;
    slab->base = gm_huge_map(slab->bytes, slab->reason, sizeof slab->reason);
    if (!slab->base)
        return 0;
    gm_error_save(&saved);
    slab->huge = 1;
    if (pin_mapped(device, settings, slab) != GPUMEM_OK) {
        slab->huge = 0;
        snprintf(slab->reason, sizeof slab->reason, "%s: %s", gpumem_last_error()->call,
                 gpumem_last_error()->message);
    }
    gm_error_restore(&saved);
    return slab->huge;
}

static gpumem_status make_allocated(gpumem_device *device, const struct gm_slab_settings *settings,
                                    struct gm_slab *slab) {
    const gpumem_driver_api *cu = device->cu;
    unsigned flags = CU_MEMHOSTALLOC_DEVICEMAP | settings->flags;
    CUresult result = cu->cuMemHostAlloc(&slab->base, slab->bytes, flags);
    if (result == CUDA_SUCCESS)
        return GPUMEM_OK;
    gpumem_status status = gm_cu_fail_host(
        cu, result, "cuMemHostAlloc", "cannot get %zu bytes of pinned host memory", slab->bytes);
    if (slab->base && cu->cuMemFreeHost(slab->base) != CUDA_SUCCESS)
        gm_meter_quarantine_memory(&device->meter, slab->bytes);
    return status;
}

/* 0, or -1 when the driver kept it. */
static int give_back(gpumem_device *device, const struct gm_slab *slab) {
    if (!slab->registered)
        return device->cu->cuMemFreeHost(slab->base) == CUDA_SUCCESS ? 0 : -1;
    if (device->cu->cuMemHostUnregister(slab->base) != CUDA_SUCCESS)
        return -1; /* the device may still access it: the addresses must not be reused */
    munmap(slab->base, slab->bytes);
    return 0;
}

gpumem_status gm_slab_create(gpumem_device *device, const struct gm_slab_settings *settings,
                             size_t bytes, struct gm_slab **slab) {
    struct gm_slab *made = calloc(1, sizeof *made);
    if (!made)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory for a slab");
    made->bytes = bytes;
    /* Reserved huge pages are separate: the rest of the host's memory does not matter. */
    int huge = settings->reserved_huge_pages && make_huge(device, settings, made);
    gpumem_status status = huge ? GPUMEM_OK : gm_pinning_begin(bytes);
    if (status == GPUMEM_OK && !huge) {
        status = settings->method == GPUMEM_PINNED_ALLOCATED
                     ? make_allocated(device, settings, made)
                     : make_registered(device, settings, made);
        gm_pinning_end(bytes);
    }
    if (status != GPUMEM_OK) {
        free(made);
        return status;
    }
    const gpumem_driver_api *cu = device->cu;
    CUresult result = cu->cuMemHostGetDevicePointer_v2(&made->device_base, made->base, 0);
    if (result != CUDA_SUCCESS)
        status = gm_cu_fail(cu, result, "cuMemHostGetDevicePointer",
                            "device %d cannot access pinned memory", device->ordinal);
    else if (gm_spans_init(&made->spans, (uintptr_t)made->base, bytes) != 0)
        status = gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory for a slab");
    if (status != GPUMEM_OK) {
        struct gm_error_record saved;
        gm_error_save(&saved);
        if (give_back(device, made) != 0)
            gm_meter_quarantine_memory(&device->meter, bytes);
        gm_error_restore(&saved);
        free(made);
        return status;
    }
    made->spans.user = made;
    *slab = made;
    return GPUMEM_OK;
}

int gm_slab_destroy(gpumem_device *device, struct gm_slab *slab) {
    int kept = give_back(device, slab);
    gm_spans_destroy(&slab->spans);
    free(slab);
    return kept;
}
