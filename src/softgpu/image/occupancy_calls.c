/* cuOccupancy*. */
#include "softgpu/core/calls.h"
#include "softgpu/device/device.h"
#include "softgpu/image/module.h"
#include "softgpu/image/occupancy.h"

#define FLAGS ((unsigned)CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE)

static CUresult ask(CUfunction func, bool outputs, struct sg_function **function) {
    struct sg_context *context;
    CUresult result = sg_context_current(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (!outputs)
        return CUDA_ERROR_INVALID_VALUE;
    return sg_function_from_handle(func, function);
}

/* As many as fit, and none when a launch would be refused for its shared memory. */
static unsigned blocks_of(const struct sg_function *function, unsigned threads, size_t dynamic) {
    int device = function->context->device;
    int most = sg_function_value(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
    if (threads > sg_occupancy_most_threads(function->image, device) || dynamic > (size_t)most)
        return 0;
    return sg_occupancy_blocks(function->image, device, threads, dynamic);
}

CUresult sg_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *numBlocks, CUfunction func,
                                                                 int blockSize,
                                                                 size_t dynamicSMemSize,
                                                                 unsigned int flags) {
    struct sg_function *function;
    CUresult result = ask(func, numBlocks, &function);
    if (result != CUDA_SUCCESS)
        return result;
    if (blockSize <= 0 || (flags & ~FLAGS))
        return CUDA_ERROR_INVALID_VALUE;
    *numBlocks = (int)blocks_of(function, (unsigned)blockSize, dynamicSMemSize);
    return CUDA_SUCCESS;
}

CUresult sg_cuOccupancyMaxActiveBlocksPerMultiprocessor(int *numBlocks, CUfunction func,
                                                        int blockSize, size_t dynamicSMemSize) {
    return sg_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(numBlocks, func, blockSize,
                                                                   dynamicSMemSize, 0);
}

CUresult sg_cuOccupancyAvailableDynamicSMemPerBlock(size_t *dynamicSmemSize, CUfunction func,
                                                    int numBlocks, int blockSize) {
    struct sg_function *function;
    CUresult result = ask(func, dynamicSmemSize, &function);
    if (result != CUDA_SUCCESS)
        return result;
    if (numBlocks <= 0 || blockSize <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    int device = function->context->device;
    if (sg_occupancy_blocks(function->image, device, (unsigned)blockSize, 0) < (unsigned)numBlocks)
        return CUDA_ERROR_INVALID_VALUE;
    *dynamicSmemSize = sg_occupancy_available(function->image, device, (unsigned)numBlocks);
    size_t most =
        (size_t)sg_function_value(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
    if (*dynamicSmemSize > most)
        *dynamicSmemSize = most;
    return CUDA_SUCCESS;
}

/* ---- The block size that fills a multiprocessor best ---------------------------------------- */

/* All that a search needs, taken before the application's callback may end the function. */
struct search {
    const struct sg_image_function *image;
    int device;
    unsigned most_threads;
    size_t most_dynamic;
    CUoccupancyB2DSize callback;
    size_t fixed;
    unsigned block, blocks; /* the best so far */
};

/* The callback is the application's: it runs without the lock. */
static size_t ask_callback(CUoccupancyB2DSize callback, unsigned block) {
    struct sg_thread *thread = sg_thread();
    thread->in_call = false;
    sg_unlock();
    size_t bytes = callback((int)block);
    sg_lock();
    thread->in_call = true;
    return bytes;
}

static void consider(struct search *search, unsigned block) {
    size_t dynamic = search->callback ? ask_callback(search->callback, block) : search->fixed;
    unsigned blocks = dynamic > search->most_dynamic
                          ? 0
                          : sg_occupancy_blocks(search->image, search->device, block, dynamic);
    if (blocks * block > search->blocks * search->block) {
        search->block = block;
        search->blocks = blocks;
    }
}

/* From the largest block down in warps; of equals the larger wins. */
static void find_best(struct search *search, unsigned limit) {
    const int *attributes = sg_device(search->device)->attributes;
    unsigned warp = (unsigned)attributes[CU_DEVICE_ATTRIBUTE_WARP_SIZE];
    unsigned full = (unsigned)attributes[CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR];
    for (unsigned block = (limit + warp - 1) / warp * warp; block > 0; block -= warp) {
        consider(search, block < limit ? block : limit);
        if (search->block * search->blocks == full)
            return;
    }
}

static struct search search_of(const struct sg_function *function) {
    int device = function->context->device;
    int dynamic = sg_function_value(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
    return (struct search){.image = function->image,
                           .device = device,
                           .most_threads = sg_occupancy_most_threads(function->image, device),
                           .most_dynamic = (size_t)dynamic};
}

CUresult sg_cuOccupancyMaxPotentialBlockSizeWithFlags(int *minGridSize, int *blockSize,
                                                      CUfunction func, CUoccupancyB2DSize dynamic,
                                                      size_t dynamicSMemSize, int blockSizeLimit,
                                                      unsigned int flags) {
    struct sg_function *function;
    CUresult result = ask(func, minGridSize && blockSize, &function);
    if (result != CUDA_SUCCESS)
        return result;
    if (flags & ~FLAGS)
        return CUDA_ERROR_INVALID_VALUE;
    struct search search = search_of(function);
    struct sg_program *program = function->module->program;
    unsigned limit = search.most_threads;
    if (blockSizeLimit > 0 && (unsigned)blockSizeLimit < limit)
        limit = (unsigned)blockSizeLimit;
    search.callback = dynamic;
    search.fixed = dynamicSMemSize;
    sg_program_ref(program);
    find_best(&search, limit);
    sg_program_unref(program);
    *blockSize = (int)search.block;
    *minGridSize = (int)search.blocks *
                   sg_device(search.device)->attributes[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT];
    return CUDA_SUCCESS;
}

CUresult sg_cuOccupancyMaxPotentialBlockSize(int *minGridSize, int *blockSize, CUfunction func,
                                             CUoccupancyB2DSize dynamic, size_t dynamicSMemSize,
                                             int blockSizeLimit) {
    return sg_cuOccupancyMaxPotentialBlockSizeWithFlags(minGridSize, blockSize, func, dynamic,
                                                        dynamicSMemSize, blockSizeLimit, 0);
}
