/*
 * How the CPU accesses memory of cuMemCreate on this machine: one method, found by trying. A mapper
 * maps single chunks, each at a place in a host range that was reserved beforehand.
 */
#ifndef GM_MAPPED_MAPPER_H
#define GM_MAPPED_MAPPER_H

#include "mapped/engine.h"
#include "memory/core/objects.h"

#include <gpumem/mapped.h>
#include <stdbool.h>

struct gm_mapper;
struct gm_vulkan;

/* One chunk, mapped or about to be. */
struct gm_piece {
    CUmemGenericAllocationHandle handle; /* only while it is being mapped */
    CUdeviceptr address;                 /* of the device's mapping, likewise */
    unsigned char *place;
    size_t bytes;
    void *memory; /* the method's own */
};

struct gm_mapper_ops {
    gpumem_mapped_method method;
    /* Tests whether the CPU sees the device's bytes and vice versa, in memory made for the test. */
    gpumem_status (*try_out)(struct gm_mapper *mapper, CUstream stream);
    /* Opens what the method needs besides the driver; a failure's message is the refusal. */
    gpumem_status (*open)(struct gm_mapper *mapper);
    void (*close)(struct gm_mapper *mapper);
    /* NULL for a method without views. On failure the place is reserved as before. */
    gpumem_status (*map)(struct gm_mapper *mapper, struct gm_piece *piece);
    /* Reserves the place again, without access. Returns false, and logs it, if the place remains
     * mapped: its addresses must then not be reused. */
    bool (*unmap)(struct gm_mapper *mapper, struct gm_piece *piece);
    /* NULL if the memory is always coherent. */
    gpumem_status (*flush)(const struct gm_piece *piece, size_t offset, size_t bytes);
    gpumem_status (*invalidate)(const struct gm_piece *piece, size_t offset, size_t bytes);
};

struct gm_mapper_wishes {
    gpumem_mapped_method method;
    int strict, require_coherent, force_non_coherent;
    int views; /* the method must be able to map existing memory */
};

struct gm_mapper {
    gpumem_device *device;
    const struct gm_mapper_ops *ops;
    struct gm_mapper_wishes wishes;
    struct gm_vulkan *vulkan; /* for the methods that use it */
    bool coherent;
    size_t atom;
    struct gm_engine engine;
    char refusals[sizeof(((gpumem_mapped_info *)0)->refusals)];
};

/*
 * Finds the method: each must show the device's bytes to the CPU and vice versa, in memory with
 * this property. The context must be current. NOT_SUPPORTED: none works; `refusals` says why.
 */
gpumem_status gm_mapper_open(struct gm_mapper *mapper, gpumem_device *device,
                             const struct gm_mapper_wishes *wishes);
/* For the method that maps nothing: host memory. */
void gm_mapper_open_host(struct gm_mapper *mapper, gpumem_device *device);
void gm_mapper_close(struct gm_mapper *mapper);

gpumem_status gm_mapper_info(const struct gm_mapper *mapper, gpumem_mapped_info *info);

/* Turns a mapping at `place` back into reserved addresses. Returns false, and logs it, if the
 * system refuses; the mapping then remains. */
bool gm_place_reserve(void *place, size_t bytes);

/* Compares some bytes of one granule through both addresses: NOT_SUPPORTED if they differ. The
 * mapper's `flush` and `invalidate` are used if `piece` is given. */
gpumem_status gm_mapper_compare(struct gm_mapper *mapper, CUstream stream, CUdeviceptr address,
                                void *host, const struct gm_piece *piece);
/* Tests a chunk of one granule, mapped by the mapper's `map`, or opened to the CPU at its own
 * address. */
gpumem_status gm_mapper_try_chunk(struct gm_mapper *mapper, CUstream stream);

/* Vulkan's flags for the wishes. */
unsigned gm_mapper_vulkan_flags(const struct gm_mapper *mapper);
/* Opens Vulkan's device and chooses the memory type. */
gpumem_status gm_mapper_open_vulkan(struct gm_mapper *mapper);
void gm_mapper_close_vulkan(struct gm_mapper *mapper);

/* Waits until the CPU's earlier stores have left the CPU. */
void gm_mapped_fence(void);

extern const struct gm_mapper_ops gm_mapper_coherent, gm_mapper_vulkan_import, gm_mapper_dma_buf,
    gm_mapper_vulkan_export, gm_mapper_descriptor;

#endif
