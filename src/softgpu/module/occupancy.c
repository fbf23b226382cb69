#include "softgpu/module/occupancy.h"

#include "softgpu/device/device.h"

/* Allocation units that no attribute reports. The compute capability tables of the CUDA programming
 * guide and the occupancy rules that NVIDIA publishes give the same ones for 7.0 to 9.0. */
#define REGISTER_UNIT 256u /* registers are allocated to a warp in steps of this */
#define WARP_UNIT     4u /* a multiprocessor has four parts, each with a quarter of the registers */
#define SHARED_UNIT   128u
/* With clusters, an H200 counts at most this many blocks on a multiprocessor, even if more fit. */
#define CLUSTER_BLOCKS 8u

static unsigned attribute(int device, CUdevice_attribute which) {
    int value = sg_device(device)->attributes[which];
    return value > 0 ? (unsigned)value : 0;
}

static unsigned up(unsigned value, unsigned unit) {
    return (value + unit - 1) / unit * unit;
}

static unsigned least(unsigned a, unsigned b) {
    return a < b ? a : b;
}

unsigned sg_occupancy_registers(const struct sg_image_function *function, int device) {
    return function->registers ? function->registers : sg_device(device)->kernels.ptx_registers;
}

static unsigned warp_size(int device) {
    unsigned size = attribute(device, CU_DEVICE_ATTRIBUTE_WARP_SIZE);
    return size ? size : 32;
}

/* Warps for which a multiprocessor has enough registers. */
static unsigned warps_by_registers(const struct sg_image_function *function, int device) {
    unsigned registers = attribute(device, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
    unsigned of_warp =
        up(sg_occupancy_registers(function, device) * warp_size(device), REGISTER_UNIT);
    return of_warp ? registers / WARP_UNIT / of_warp * WARP_UNIT
                   : attribute(device, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
}

unsigned sg_occupancy_allowed_threads(const struct sg_image_function *function, int device) {
    unsigned most = attribute(device, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    /* A required shape does not limit an H200's attributes and occupancy. */
    bool limited = function->max_threads && !function->required_threads[0];
    return limited ? least(most, function->max_threads) : most;
}

unsigned sg_occupancy_most_threads(const struct sg_image_function *function, int device) {
    unsigned most = sg_occupancy_allowed_threads(function, device);
    return least(most, warps_by_registers(function, device) * warp_size(device));
}

/*
 * Sizes that shared memory can have on a multiprocessor, in KiB, the rest being cache: for compute
 * capability 9.0, as listed in the CUDA programming guide. What a device does not have is cut off.
 */
static const unsigned short capacities[] = {0, 8, 16, 32, 64, 100, 132, 164, 196, 228};

/* The smallest that suffices. */
static size_t capacity_for(size_t bytes, size_t all) {
    for (size_t i = 0; i < sizeof capacities / sizeof capacities[0]; i++)
        if (capacities[i] * (size_t)1024 >= bytes)
            return capacities[i] * (size_t)1024 < all ? capacities[i] * (size_t)1024 : all;
    return all;
}

static size_t of_block(const struct sg_image_function *function, int device, size_t dynamic) {
    size_t reserved = attribute(device, CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK);
    return (function->static_shared + dynamic + reserved + SHARED_UNIT - 1) / SHARED_UNIT *
           SHARED_UNIT;
}

static unsigned blocks_by_shared(const struct sg_image_function *function, int device,
                                 size_t dynamic, int carveout) {
    size_t all = attribute(device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
    size_t block = of_block(function, device, dynamic);
    if (dynamic > all || block > all)
        return 0;
    size_t wanted = carveout < 0 ? all : all * (size_t)carveout / 100;
    size_t capacity = capacity_for(wanted > block ? wanted : block, all);
    return block ? (unsigned)(capacity / block) : ~0u;
}

unsigned sg_occupancy_blocks(const struct sg_image_function *function, int device, unsigned threads,
                             size_t dynamic, int carveout) {
    unsigned size = warp_size(device);
    unsigned warps = (threads + size - 1) / size;
    if (warps == 0 || threads > attribute(device, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK))
        return 0;
    unsigned all = attribute(device, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR) / size;
    unsigned blocks = attribute(device, CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
    blocks = least(blocks, all / warps);
    blocks = least(blocks, warps_by_registers(function, device) / warps);
    return least(blocks, blocks_by_shared(function, device, dynamic, carveout));
}

/* What the system reserves of each block is not deducted: as recorded on H200. */
size_t sg_occupancy_available(const struct sg_image_function *function, int device,
                              unsigned blocks) {
    size_t all = attribute(device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
    size_t each = all / blocks / SHARED_UNIT * SHARED_UNIT;
    return each > function->static_shared ? each - function->static_shared : 0;
}

unsigned sg_occupancy_clusters(int device, unsigned size, unsigned blocks) {
    const struct sg_kernels *kernels = &sg_device(device)->kernels;
    unsigned count = 0;
    for (unsigned i = 0; i < kernels->group_count; i++)
        if (kernels->groups[i] >= size)
            count += kernels->groups[i] * least(blocks, CLUSTER_BLOCKS) / size;
    return count;
}
