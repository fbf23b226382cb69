/*
 * Device memory through Vulkan: what CUDA does not offer is a CPU mapping of device memory, and
 * Vulkan's driver for the same GPU makes one. The driver is opened at run time; no type of Vulkan
 * is in this header.
 *
 * Every function is thread-safe, answers FORKED in a forked child and then touches nothing, and
 * sets its outputs on success only. Failures name the function of Vulkan and its result, and set
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

/* Longer reasons are cut. Several libraries may have been tried, each with its refusal. */
#define GM_VULKAN_REASON 1024

/*
 * The GPU whose deviceUUID is `uuid`, which for NVIDIA's driver is that of cuDeviceGetUuid. There
 * is one per GPU and process: the same object comes back, counted, to be closed as often.
 *
 * GPUMEM_VULKAN names the library to open, a loader or a driver (ICD), as a path with a slash;
 * "off" opens none. Without it (or where it is empty, or the program set-uid): the loader
 * libvulkan.so.1, then NVIDIA's driver without a loader, as libEGL_nvidia.so.0 and then as
 * libGLX_nvidia.so.0, which refuses where there is no X. The first that has the device is taken.
 *
 * NOT_SUPPORTED: none has it. `reason`, if not NULL, receives what was tried and why each refused;
 * the message is the same text, as far as that goes. INVALID_ARGUMENT: GPUMEM_VULKAN is no path.
 * FORKED: a parent of this process has opened a Vulkan driver, whose state a child cannot use.
 * Blocks while the driver is loaded and makes a device (65 ms on an H200).
 */
gpumem_status gm_vulkan_open(const unsigned char uuid[16], struct gm_vulkan **vulkan, char *reason,
                             size_t size);

/* Gives one reference back; NULL is allowed. The last one, with that of the last memory, destroys
 * the device and its instance. The library stays loaded. */
void gm_vulkan_close(struct gm_vulkan *vulkan);

/* What is known of an open device. Strings live as long as it does. */
struct gm_vulkan_facts {
    const char *library;     /* the file that was opened */
    const char *refusals;    /* of what was tried before it; "" for nothing */
    const char *name;        /* as Vulkan calls the device */
    uint64_t heap_bytes;     /* of the heap of the memory type that no flag asks for; 0: no type */
    bool coherent;           /* that type */
    bool placed;             /* gm_vulkan_map can be told where */
    uint64_t place_multiple; /* what place and size of such a map are multiples of, or 0 */
    bool has_budget;         /* VK_EXT_memory_budget */
    uint32_t most_memories;  /* that may be alive at a time */
};
const struct gm_vulkan_facts *gm_vulkan_get_facts(const struct gm_vulkan *vulkan);

/* Bytes of that heap that this process may use in all and that it uses, by the driver's estimate
 * and at this moment. Without VK_EXT_memory_budget: NOT_SUPPORTED. */
gpumem_status gm_vulkan_get_budget(struct gm_vulkan *vulkan, uint64_t *budget, uint64_t *usage);

/* Which memory: always in the device and visible to the host; coherent where there is a choice. */
enum gm_vulkan_flags {
    GM_VULKAN_REQUIRE_COHERENT = 1, /* refuse memory that needs flushes */
    /* Take memory that needs flushes; where there is none, treat coherent memory as if it did. Not
     * together with the other. */
    GM_VULKAN_FORCE_NON_COHERENT = 2,
};

struct gm_vulkan_type {
    uint32_t index; /* of Vulkan's memory types */
    bool coherent;  /* neither flush nor invalidate is needed */
    uint64_t atom;  /* bytes: flushes and invalidates cover whole ones of these */
    uint64_t heap_bytes;
};

/* The memory type that `flags` lead to. NOT_SUPPORTED: there is none; the message lists those that
 * there are. No call of Vulkan. */
gpumem_status gm_vulkan_choose(struct gm_vulkan *vulkan, unsigned flags,
                               struct gm_vulkan_type *type);

/*
 * Memory that another driver exported as a descriptor (OPAQUE_FD), whole: `size` is what was
 * allocated there. `fd` stays the caller's. NOT_SUPPORTED: Vulkan does not take the descriptor.
 * OUT_OF_CAPACITY: most_memories are alive. Undone by gm_vulkan_free.
 */
gpumem_status gm_vulkan_import(struct gm_vulkan *vulkan, int fd, uint64_t size, unsigned flags,
                               struct gm_vulkan_memory **memory);

/* New memory, to be exported to another driver. Errors as above, and OUT_OF_MEMORY. */
gpumem_status gm_vulkan_allocate(struct gm_vulkan *vulkan, uint64_t size, unsigned flags,
                                 struct gm_vulkan_memory **memory);

/* A descriptor of allocated memory, the caller's to close. NOT_SUPPORTED for what was imported. */
gpumem_status gm_vulkan_export(struct gm_vulkan_memory *memory, int *fd);

/*
 * Maps all of the memory for the CPU. `place` NULL: Vulkan chooses the address. Otherwise the
 * mapping lies there and replaces what was mapped in [place, place + size), which the caller must
 * have reserved; place and size are multiples of place_multiple. BUSY: it is mapped already (import
 * twice to map twice). NOT_SUPPORTED: `place` without facts.placed. After a failure the reserved
 * range may have nothing mapped in it: the caller has to reserve it anew.
 */
gpumem_status gm_vulkan_map(struct gm_vulkan_memory *memory, void *place, void **host);

/*
 * Ends the mapping. A range that the caller chose stays reserved, without access and without a
 * moment in which somebody else's mapping could slip in. INVALID_ARGUMENT: it is not mapped. DRIVER
 * and such: Vulkan refused, and it is mapped as before.
 */
gpumem_status gm_vulkan_unmap(struct gm_vulkan_memory *memory);

/*
 * Makes the CPU's writes to [offset, offset + size) visible to the device, and the other way round.
 * Ranges are widened to atoms. Nothing is done for coherent memory. INVALID_ARGUMENT: the range is
 * not in the memory, or the memory is not mapped. Other threads may store meanwhile; what they
 * store to the range is then flushed or not, and lost when it is invalidated.
 */
gpumem_status gm_vulkan_flush(struct gm_vulkan_memory *memory, uint64_t offset, uint64_t size);
gpumem_status gm_vulkan_invalidate(struct gm_vulkan_memory *memory, uint64_t offset, uint64_t size);

/* Plain getters. */
uint64_t gm_vulkan_memory_size(const struct gm_vulkan_memory *memory);
const struct gm_vulkan_type *gm_vulkan_memory_type(const struct gm_vulkan_memory *memory);
void *gm_vulkan_memory_host(const struct gm_vulkan_memory *memory); /* NULL: not mapped */

/*
 * Unmaps and frees; NULL is allowed. The object is gone in any case but FORKED. When Vulkan refuses
 * to unmap a range that the caller chose, the status says why: memory and mapping then stay to the
 * end of the process, and the range must not be used for anything else.
 */
gpumem_status gm_vulkan_free(struct gm_vulkan_memory *memory);

/* Memories alive in the process, and those that could not be freed. For statistics and tests. */
size_t gm_vulkan_memory_count(const struct gm_vulkan *vulkan);
size_t gm_vulkan_quarantined(const struct gm_vulkan *vulkan);

#endif
