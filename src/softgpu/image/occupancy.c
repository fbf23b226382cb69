#include "softgpu/image/occupancy.h"

#include "softgpu/device/device.h"

/*
 * Units of allocation that no attribute tells. The compute capability tables of the CUDA
 * programming guide and the occupancy rules that NVIDIA publishes have them the same for 7.0
 * to 9.0.
 */
#define REGISTER_UNIT 256u /* registers are given to a warp in steps of this */
#define WARP_UNIT     4u /* a multiprocessor has four parts, with a quarter of the registers each */
#define SHARED_UNIT   128u

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

/* Warps that the registers of a multiprocessor are enough for. */
static unsigned warps_by_registers(const struct sg_image_function *function, int device) {
    unsigned registers = attribute(device, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
    unsigned of_warp =
        up(sg_occupancy_registers(function, device) * warp_size(device), REGISTER_UNIT);
    return of_warp ? registers / WARP_UNIT / of_warp * WARP_UNIT
                   : attribute(device, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
}

unsigned sg_occupancy_most_threads(const struct sg_image_function *function, int device) {
    unsigned most = attribute(device, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    if (function->max_threads)
        most = least(most, function->max_threads);
    return least(most, warps_by_registers(function, device) * warp_size(device));
}

static unsigned blocks_by_shared(const struct sg_image_function *function, int device,
                                 size_t dynamic) {
    size_t all = attribute(device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
    size_t reserved = attribute(device, CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK);
    if (dynamic > all)
        return 0;
    size_t of_block = (function->static_shared + dynamic + reserved + SHARED_UNIT - 1) /
                      SHARED_UNIT * SHARED_UNIT;
    return of_block ? (unsigned)(all / of_block) : ~0u;
}

unsigned sg_occupancy_blocks(const struct sg_image_function *function, int device, unsigned threads,
                             size_t dynamic) {
    unsigned size = warp_size(device);
    unsigned warps = (threads + size - 1) / size;
    if (warps == 0)
        return 0;
    unsigned all = attribute(device, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR) / size;
    unsigned blocks = attribute(device, CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
    blocks = least(blocks, all / warps);
    blocks = least(blocks, warps_by_registers(function, device) / warps);
    return least(blocks, blocks_by_shared(function, device, dynamic));
}

size_t sg_occupancy_available(const struct sg_image_function *function, int device,
                              unsigned blocks) {
    size_t all = attribute(device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
    size_t reserved = attribute(device, CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK);
    size_t each = all / blocks / SHARED_UNIT * SHARED_UNIT;
    size_t taken = function->static_shared + reserved;
    return each > taken ? each - taken : 0;
}
