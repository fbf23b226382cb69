/* cuOccupancy*. */
#include "softgpu/core/calls.h"
#include "softgpu/device/device.h"
#include "softgpu/launch/launch.h"
#include "softgpu/module/occupancy.h"

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

/* The percentage of shared memory that a function requests; -1 for as much as there is. */
static int carveout_of(const struct sg_function *function) {
    int carveout = sg_function_value(function, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT);
    CUfunc_cache config = function->cache_config;
    if (config == CU_FUNC_CACHE_PREFER_NONE && function->kernel)
        config = function->kernel->devices[function->context->device].cache_config;
    if (config == CU_FUNC_CACHE_PREFER_NONE)
        config = function->context->cache_config;
    if (carveout >= 0 || config == CU_FUNC_CACHE_PREFER_NONE)
        return carveout;
    return config == CU_FUNC_CACHE_PREFER_L1 ? 0 : config == CU_FUNC_CACHE_PREFER_EQUAL ? 50 : 100;
}

/* Everything needed about a function, copied before an application's callback can free it. */
struct subject {
    const struct sg_image_function *image;
    int device, carveout;
    size_t most_dynamic;
};

static struct subject subject_of(const struct sg_function *function) {
    int dynamic = sg_function_value(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
    return (struct subject){.image = function->image,
                            .device = function->context->device,
                            .carveout = carveout_of(function),
                            .most_dynamic = (size_t)dynamic};
}

/* The number of blocks that fit; 0 if a launch would be refused for its shared memory. Sizes have
 * 32 bits, as on an H200. */
static unsigned blocks_of(const struct subject *subject, unsigned threads, size_t dynamic) {
    uint32_t bytes = (uint32_t)dynamic;
    if (bytes > subject->most_dynamic)
        return 0;
    return sg_occupancy_blocks(subject->image, subject->device, threads, bytes, subject->carveout);
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
    struct subject subject = subject_of(function);
    *numBlocks = (int)blocks_of(&subject, (unsigned)blockSize, dynamicSMemSize);
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
    unsigned fit = sg_occupancy_blocks(function->image, device, (unsigned)blockSize, 0, -1);
    if (fit < (unsigned)numBlocks)
        return CUDA_ERROR_INVALID_VALUE;
    *dynamicSmemSize = sg_occupancy_available(function->image, device, (unsigned)numBlocks);
    size_t most =
        (size_t)sg_function_value(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
    if (*dynamicSmemSize > most)
        *dynamicSmemSize = most;
    return CUDA_SUCCESS;
}

/* ---- The block size that fills a multiprocessor best ----------------------------------------- */

struct search {
    struct subject subject;
    CUoccupancyB2DSize callback;
    size_t fixed;
    unsigned block, blocks; /* the best so far */
};

struct question {
    CUoccupancyB2DSize callback;
    unsigned block;
    size_t bytes;
};

static void call_back(void *user) {
    struct question *question = user;
    question->bytes = question->callback((int)question->block);
}

static size_t ask_callback(CUoccupancyB2DSize callback, unsigned block) {
    struct question question = {.callback = callback, .block = block};
    sg_call_out(false, call_back, &question);
    return question.bytes;
}

static void consider(struct search *search, unsigned block) {
    size_t dynamic = search->callback ? ask_callback(search->callback, block) : search->fixed;
    unsigned blocks = blocks_of(&search->subject, block, dynamic);
    if (blocks * block > search->blocks * search->block) {
        search->block = block;
        search->blocks = blocks;
    }
}

/* From the largest block down, a warp at a time; the larger of equal ones wins. */
static void find_best(struct search *search, unsigned limit) {
    const int *attributes = sg_device(search->subject.device)->attributes;
    unsigned warp = (unsigned)attributes[CU_DEVICE_ATTRIBUTE_WARP_SIZE];
    unsigned full = (unsigned)attributes[CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR];
    for (unsigned block = (limit + warp - 1) / warp * warp; block > 0; block -= warp) {
        consider(search, block < limit ? block : limit);
        if (search->block * search->blocks == full)
            return;
    }
}

CUresult sg_cuOccupancyMaxPotentialBlockSizeWithFlags(int *minGridSize, int *blockSize,
                                                      CUfunction func, CUoccupancyB2DSize dynamic,
                                                      size_t dynamicSMemSize, int blockSizeLimit,
                                                      unsigned int flags) {
    struct sg_function *function;
    CUresult result = ask(func, minGridSize && blockSize, &function);
    if (result != CUDA_SUCCESS)
        return result;
    if (blockSizeLimit < 0 || (flags & ~FLAGS))
        return CUDA_ERROR_INVALID_VALUE;
    struct search search = {
        .subject = subject_of(function), .callback = dynamic, .fixed = dynamicSMemSize};
    int device = search.subject.device;
    struct sg_loaded *program = function->module->program;
    unsigned limit = sg_occupancy_allowed_threads(function->image, device);
    if (blockSizeLimit > 0 && (unsigned)blockSizeLimit < limit)
        limit = (unsigned)blockSizeLimit;
    sg_loaded_ref(program);
    find_best(&search, limit);
    sg_loaded_unref(program);
    *blockSize = (int)search.block;
    *minGridSize = (int)search.blocks *
                   sg_device(device)->attributes[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT];
    return CUDA_SUCCESS;
}

CUresult sg_cuOccupancyMaxPotentialBlockSize(int *minGridSize, int *blockSize, CUfunction func,
                                             CUoccupancyB2DSize dynamic, size_t dynamicSMemSize,
                                             int blockSizeLimit) {
    return sg_cuOccupancyMaxPotentialBlockSizeWithFlags(minGridSize, blockSize, func, dynamic,
                                                        dynamicSMemSize, blockSizeLimit, 0);
}

/* ---- Clusters -------------------------------------------------------------------------------- */

#define PORTABLE     8u  /* blocks of a cluster on every device that has them */
#define NOT_PORTABLE 16u /* with compute capability 9.0 */

static CUresult check_config(CUfunction func, const CUlaunchConfig *config, bool output,
                             struct sg_function **function, struct sg_cluster *cluster) {
    if (!output || !func || !config)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = sg_function_from_handle(func, function);
    if (result != CUDA_SUCCESS)
        return result;
    if (!config->gridDimX || !config->gridDimY || !config->gridDimZ || !config->blockDimX ||
        !config->blockDimY || !config->blockDimZ)
        return CUDA_ERROR_INVALID_VALUE;
    const unsigned grid[3] = {config->gridDimX, config->gridDimY, config->gridDimZ};
    result = sg_cluster_read(config->attrs, config->numAttrs, cluster);
    return result == CUDA_SUCCESS ? sg_cluster_check(*function, grid, cluster) : result;
}

static unsigned blocks_for(const struct sg_function *function, const CUlaunchConfig *config) {
    struct subject subject = subject_of(function);
    uint64_t threads = (uint64_t)config->blockDimX * config->blockDimY * config->blockDimZ;
    return threads > UINT32_MAX ? 0
                                : blocks_of(&subject, (unsigned)threads, config->sharedMemBytes);
}

CUresult sg_cuOccupancyMaxActiveClusters(int *numClusters, CUfunction func,
                                         const CUlaunchConfig *config) {
    struct sg_function *function;
    struct sg_cluster cluster;
    CUresult result = check_config(func, config, numClusters, &function, &cluster);
    if (result != CUDA_SUCCESS)
        return result;
    unsigned size = cluster.size[0] * cluster.size[1] * cluster.size[2];
    unsigned blocks = blocks_for(function, config);
    *numClusters = size ? (int)sg_occupancy_clusters(function->context->device, size, blocks) : 0;
    return CUDA_SUCCESS;
}

CUresult sg_cuOccupancyMaxPotentialClusterSize(int *clusterSize, CUfunction func,
                                               const CUlaunchConfig *config) {
    struct sg_function *function;
    struct sg_cluster cluster;
    CUresult result = check_config(func, config, clusterSize, &function, &cluster);
    if (result != CUDA_SUCCESS)
        return result;
    bool any = sg_function_value(function, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED);
    unsigned size = any ? NOT_PORTABLE : PORTABLE, blocks = blocks_for(function, config);
    while (size > 0 && !sg_occupancy_clusters(function->context->device, size, blocks))
        size /= 2;
    *clusterSize = (int)size;
    return CUDA_SUCCESS;
}
