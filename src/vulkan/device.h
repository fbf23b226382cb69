/*
 * Device memory through Vulkan: CUDA offers no CPU mapping of device memory, but the Vulkan driver
 * of the same GPU does. The driver is opened at run time; this header has no Vulkan types.
 *
 * Every function is thread-safe, returns FORKED in a forked child without touching anything, and
 * sets its outputs only on success. Failures name the Vulkan function and its result, and set
 * gpumem_error's vulkan_code.
 */
#ifndef GM_VULKAN_DEVICE_H
#define GM_VULKAN_DEVICE_H

#include <gpumem/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gm_vulkan;        /* one instance and one logical device, for one GPU */
struct gm_vulkan_memory; /* one allocation or import */

/* Longer reasons are truncated. Several libraries may have been tried, each with its reason. */
#define GM_VULKAN_REASON 1024

/*
 * The GPU whose deviceUUID is `uuid`, which for NVIDIA's driver is that of cuDeviceGetUuid. There
 * is one per GPU and process: the same object is returned, counted, and must be closed once per
 * open.
 *
 * GPUMEM_VULKAN names the library to open, a loader or a driver (ICD), as a path with a slash;
 * "off" opens none. Without it (or where it is empty, or the program set-uid): the loader
 * libvulkan.so.1, then NVIDIA's driver without a loader, as libEGL_nvidia.so.0 and then as
 * libGLX_nvidia.so.0, which fails without X. The first that has the device is used.
 *
 * NOT_SUPPORTED: none has it. `reason`, if not NULL, receives what was tried and why each failed;
 * the message has the same text, possibly truncated. INVALID_ARGUMENT: GPUMEM_VULKAN is not a path.
 * FORKED: a parent of this process has opened a Vulkan driver, whose state a child cannot use.
 * Blocks while the driver is loaded and creates a device (65 ms on an H200).
 */
gpumem_status gm_vulkan_open(const unsigned char uuid[16], struct gm_vulkan **vulkan, char *reason,
                             size_t size);

/* Drops one reference; NULL is allowed. The last one, together with that of the last memory,
 * destroys the device and its instance. The library stays loaded. */
void gm_vulkan_close(struct gm_vulkan *vulkan);

/* Facts about an open device. Strings live as long as it does. */
struct gm_vulkan_facts {
    const char *library;     /* the file that was opened */
    const char *refusals;    /* why earlier libraries were not used; "" if none */
    const char *name;        /* the device's name in Vulkan */
    uint64_t heap_bytes;     /* of the heap of the default memory type; 0: no type */
    bool coherent;           /* that type */
    bool placed;             /* gm_vulkan_map accepts an address */
    uint64_t place_multiple; /* place and size of such a mapping are multiples of it; or 0 */
    bool has_budget;         /* VK_EXT_memory_budget */
    uint32_t most_memories;  /* most that may be alive at a time */
};
const struct gm_vulkan_facts *gm_vulkan_get_facts(const struct gm_vulkan *vulkan);

/* Bytes of that heap that this process may use in total, and that it uses now, by the driver's
 * estimate. Without VK_EXT_memory_budget: NOT_SUPPORTED. */
gpumem_status gm_vulkan_get_budget(struct gm_vulkan *vulkan, uint64_t *budget, uint64_t *usage);

/* Which memory: always in the device and visible to the host; coherent if there is a choice. */
enum gm_vulkan_flags {
    GM_VULKAN_REQUIRE_COHERENT = 1, /* refuse memory that needs flushes */
    /* Use memory that needs flushes; if there is none, or with the flag above, treat coherent
     * memory as if it did. */
    GM_VULKAN_FORCE_NON_COHERENT = 2,
};

struct gm_vulkan_type {
    uint32_t index; /* of Vulkan's memory types */
    bool coherent;  /* neither flush nor invalidate is needed */
    uint64_t atom;  /* bytes; flushes and invalidates cover whole atoms */
    uint64_t heap_bytes;
};

/* The memory type for `flags`. NOT_SUPPORTED: there is none; the message lists the existing types.
 * No Vulkan call. */
gpumem_status gm_vulkan_choose(struct gm_vulkan *vulkan, unsigned flags,
                               struct gm_vulkan_type *type);

/*
 * Imports all memory that another driver exported as a descriptor (OPAQUE_FD): `size` is the size
 * of the allocation. `fd` remains the caller's. NOT_SUPPORTED: Vulkan does not accept the
 * descriptor. OUT_OF_CAPACITY: most_memories are alive. Undone by gm_vulkan_free.
 */
gpumem_status gm_vulkan_import(struct gm_vulkan *vulkan, int fd, uint64_t size, unsigned flags,
                               struct gm_vulkan_memory **memory);

/* Allocates memory for export to another driver. Errors as above, and OUT_OF_MEMORY. */
gpumem_status gm_vulkan_allocate(struct gm_vulkan *vulkan, uint64_t size, unsigned flags,
                                 struct gm_vulkan_memory **memory);

/* A descriptor of allocated memory, which the caller closes. NOT_SUPPORTED for imported memory. */
gpumem_status gm_vulkan_export(struct gm_vulkan_memory *memory, int *fd);

/*
 * Maps all of the memory for the CPU. `place` NULL: Vulkan chooses the address. Otherwise the
 * mapping is there and replaces what was mapped in [place, place + size), which the caller must
 * have reserved; place and size are multiples of place_multiple. BUSY: already mapped (import twice
 * to map twice). NOT_SUPPORTED: `place` without facts.placed. After a failure the range may no
 * longer be reserved: the caller must reserve it again.
 */
gpumem_status gm_vulkan_map(struct gm_vulkan_memory *memory, void *place, void **host);

/*
 * Ends the mapping. A range that the caller chose stays reserved, without access, and at no moment
 * can another mapping slip in. INVALID_ARGUMENT: not mapped. DRIVER and similar: Vulkan refused,
 * and it is still mapped.
 */
gpumem_status gm_vulkan_unmap(struct gm_vulkan_memory *memory);

/*
 * Makes the CPU's writes to [offset, offset + size) visible to the device, and the device's to the
 * CPU. Ranges are widened to atoms. Does nothing for coherent memory. INVALID_ARGUMENT: the range
 * is not in the memory, or the memory is not mapped. Other threads may store meanwhile; their
 * stores to the range may or may not be flushed, and are lost when it is invalidated.
 */
gpumem_status gm_vulkan_flush(struct gm_vulkan_memory *memory, uint64_t offset, uint64_t size);
gpumem_status gm_vulkan_invalidate(struct gm_vulkan_memory *memory, uint64_t offset, uint64_t size);

/* Plain getters. */
uint64_t gm_vulkan_memory_size(const struct gm_vulkan_memory *memory);
const struct gm_vulkan_type *gm_vulkan_memory_type(const struct gm_vulkan_memory *memory);
void *gm_vulkan_memory_host(const struct gm_vulkan_memory *memory); /* NULL: not mapped */

/*
 * Unmaps and frees; NULL is allowed. The object is gone in every case but FORKED. If Vulkan refuses
 * to unmap a range that the caller chose, the status says why: memory and mapping then remain until
 * the process ends, and the range must not be used for anything else.
 */
gpumem_status gm_vulkan_free(struct gm_vulkan_memory *memory);

/* The number of memories alive in the process, and of those that could not be freed. For statistics
 * and tests. */
size_t gm_vulkan_memory_count(const struct gm_vulkan *vulkan);
size_t gm_vulkan_quarantined(const struct gm_vulkan *vulkan);

#endif
