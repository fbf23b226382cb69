/* Occupancy: how many blocks and clusters of a function fit, and which block size suits it. */
#include "../parity.h"
#include "images.h"
#include "module_texts.h"

static CUfunction function(const void *image, const char *name) {
    CUmodule m = PAR_MADE(CUmodule, cuModuleLoadData, image);
    return PAR_MADE(CUfunction, cuModuleGetFunction, m, name);
}

static const int block_sizes[] = {1,   31,  32,  33,  64,  96,  128, 160, 192, 224, 256, 288,
                                  320, 384, 448, 480, 512, 576, 640, 704, 768, 896, 960, 1024};
static const size_t shared_sizes[] = {0, 1, 1024, 4096, 16384, 33000, 49152};
static const char *const names[] = {"empty", "bounded",     "static_shared", "dynamic_shared",
                                    "heavy", "local_array", "clustered",     "variables"};

SCENARIO(grid, "occupancy/grid", par_context) {
    int blocks;
    for (size_t n = 0; n < COUNT(names); n++) {
        CUfunction f = function(image_kernels_cubin, names[n]);
        for (size_t s = 0; s < COUNT(shared_sizes); s++) {
            for (size_t b = 0; b < COUNT(block_sizes); b++) {
                par_note("%s block=%d shared=%zu", names[n], block_sizes[b], shared_sizes[s]);
                CALLO(cuOccupancyMaxActiveBlocksPerMultiprocessor, "grid",
                      (&blocks, f, block_sizes[b], shared_sizes[s]), OUT_I(blocks));
            }
        }
    }
}

/* Beyond 48 KiB, after the attribute allows it. */
SCENARIO(opted_in, "occupancy/opted-in", par_context) {
    static const size_t sizes[] = {49152,  49153,  65536,  100000, 116000,
                                   166912, 200000, 232448, 232449};
    int blocks;
    CUfunction f = function(image_kernels_cubin, "dynamic_shared");
    CALLO(cuOccupancyMaxActiveBlocksPerMultiprocessor, "not-opted-in", (&blocks, f, 128, 65536),
          OUT_I(blocks));
    SETUP(cuFuncSetAttribute, (f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 232448));
    for (size_t s = 0; s < COUNT(sizes); s++) {
        par_note("shared=%zu", sizes[s]);
        CALLO(cuOccupancyMaxActiveBlocksPerMultiprocessor, "opted-in", (&blocks, f, 128, sizes[s]),
              OUT_I(blocks));
    }
    SETUP(cuFuncSetAttribute, (f, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 25));
    CALLO(cuOccupancyMaxActiveBlocksPerMultiprocessor, "carveout-25", (&blocks, f, 128, 49152),
          OUT_I(blocks));
    SETUP(cuFuncSetAttribute, (f, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 0));
    CALLO(cuOccupancyMaxActiveBlocksPerMultiprocessor, "carveout-0", (&blocks, f, 128, 49152),
          OUT_I(blocks));
    SETUP(cuFuncSetCacheConfig, (f, CU_FUNC_CACHE_PREFER_L1));
    CALLO(cuOccupancyMaxActiveBlocksPerMultiprocessor, "prefer-l1", (&blocks, f, 128, 49152),
          OUT_I(blocks));
}

SCENARIO(blocks_bad, "occupancy/blocks-bad", par_context) {
    int blocks;
    CUfunction f = function(image_kernels_cubin, "empty");
    CUfunction p = function(TEXT_PLAIN, "empty"), q = function(TEXT_PLAIN, "required");
    CUfunction bounded = function(image_kernels_cubin, "bounded");
    CALLO(cuOccupancyMaxActiveBlocksPerMultiprocessor, "block-0", (&blocks, f, 0, 0),
          OUT_I(blocks));
    CALLO(cuOccupancyMaxActiveBlocksPerMultiprocessor, "block-negative", (&blocks, f, -1, 0),
          OUT_I(blocks));
    CALLO(cuOccupancyMaxActiveBlocksPerMultiprocessor, "block-1025", (&blocks, f, 1025, 0),
          OUT_I(blocks));
    CALLO(cuOccupancyMaxActiveBlocksPerMultiprocessor, "beyond-maxntid", (&blocks, bounded, 129, 0),
          OUT_I(blocks));
    CALLO(cuOccupancyMaxActiveBlocksPerMultiprocessor, "shared-huge",
          (&blocks, f, 32, (size_t)1 << 40), OUT_I(blocks));
    CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor, "null-out", (NULL, f, 32, 0));
    CALLO(cuOccupancyMaxActiveBlocksPerMultiprocessor, "null-function", (&blocks, NULL, 32, 0),
          OUT_I(blocks));
    CALLO(cuOccupancyMaxActiveBlocksPerMultiprocessor, "ptx", (&blocks, p, 128, 0), OUT_I(blocks));
    CALLO(cuOccupancyMaxActiveBlocksPerMultiprocessor, "required", (&blocks, q, 128, 0),
          OUT_I(blocks));
    CALLO(cuOccupancyMaxActiveBlocksPerMultiprocessor, "not-required", (&blocks, q, 64, 0),
          OUT_I(blocks));
    for (unsigned flags = 0; flags <= 3; flags++) {
        par_note("flags=%u", flags);
        CALLO(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, "flags",
              (&blocks, f, 64, 0, flags), OUT_I(blocks));
    }
    CALL(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, "null-out", (NULL, f, 32, 0, 0));
    CALLO(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, "null-function",
          (&blocks, NULL, 32, 0, 0), OUT_I(blocks));
}

SCENARIO(available, "occupancy/available", par_context) {
    static const int counts[] = {1, 2, 3, 4, 8, 16, 32};
    size_t size;
    for (size_t n = 0; n < COUNT(names); n++) {
        CUfunction f = function(image_kernels_cubin, names[n]);
        for (size_t c = 0; c < COUNT(counts); c++) {
            par_note("%s blocks=%d", names[n], counts[c]);
            CALLO(cuOccupancyAvailableDynamicSMemPerBlock, "grid", (&size, f, counts[c], 64),
                  OUT_U(size));
        }
    }
    CUfunction f = function(image_kernels_cubin, "dynamic_shared");
    CALLO(cuOccupancyAvailableDynamicSMemPerBlock, "1024-threads", (&size, f, 1, 1024),
          OUT_U(size));
    CALLO(cuOccupancyAvailableDynamicSMemPerBlock, "1024-threads-2", (&size, f, 2, 1024),
          OUT_U(size));
    CALLO(cuOccupancyAvailableDynamicSMemPerBlock, "1024-threads-3", (&size, f, 3, 1024),
          OUT_U(size));
    SETUP(cuFuncSetAttribute, (f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 232448));
    for (size_t c = 0; c < COUNT(counts); c++) {
        par_note("blocks=%d", counts[c]);
        CALLO(cuOccupancyAvailableDynamicSMemPerBlock, "opted-in", (&size, f, counts[c], 64),
              OUT_U(size));
    }
    CALLO(cuOccupancyAvailableDynamicSMemPerBlock, "blocks-0", (&size, f, 0, 64), OUT_U(size));
    CALLO(cuOccupancyAvailableDynamicSMemPerBlock, "blocks-negative", (&size, f, -1, 64),
          OUT_U(size));
    CALLO(cuOccupancyAvailableDynamicSMemPerBlock, "blocks-33", (&size, f, 33, 64), OUT_U(size));
    CALLO(cuOccupancyAvailableDynamicSMemPerBlock, "threads-0", (&size, f, 1, 0), OUT_U(size));
    CALLO(cuOccupancyAvailableDynamicSMemPerBlock, "threads-negative", (&size, f, 1, -1),
          OUT_U(size));
    CALLO(cuOccupancyAvailableDynamicSMemPerBlock, "threads-1025", (&size, f, 1, 1025),
          OUT_U(size));
    CALL(cuOccupancyAvailableDynamicSMemPerBlock, "null-out", (NULL, f, 1, 64));
    CALLO(cuOccupancyAvailableDynamicSMemPerBlock, "null-function", (&size, NULL, 1, 64),
          OUT_U(size));
}

static int calls, least, most;

static size_t by_block(int block) {
    least = calls == 0 || block < least ? block : least;
    most = block > most ? block : most;
    calls++;
    return (size_t)block * 48;
}

SCENARIO(potential, "occupancy/potential", par_context) {
    static const int limits[] = {0, 1, 32, 33, 100, 128, 500, 1024, 5000, -1};
    int grid_size, block;
    for (size_t n = 0; n < COUNT(names); n++) {
        CUfunction f = function(image_kernels_cubin, names[n]);
        for (size_t i = 0; i < COUNT(limits); i++) {
            par_note("%s limit=%d", names[n], limits[i]);
            CALLO(cuOccupancyMaxPotentialBlockSize, "limits",
                  (&grid_size, &block, f, NULL, 0, limits[i]), OUT_I(grid_size), OUT_I(block));
        }
        for (size_t s = 0; s < COUNT(shared_sizes); s++) {
            par_note("%s shared=%zu", names[n], shared_sizes[s]);
            CALLO(cuOccupancyMaxPotentialBlockSize, "shared",
                  (&grid_size, &block, f, NULL, shared_sizes[s], 0), OUT_I(grid_size),
                  OUT_I(block));
        }
        par_note("%s", names[n]);
        calls = most = 0;
        CALLO(cuOccupancyMaxPotentialBlockSize, "callback", (&grid_size, &block, f, by_block, 0, 0),
              OUT_I(grid_size), OUT_I(block));
        par_see("callback", "asked %s from %d to %d",
                calls > 1 ? "many"
                : calls   ? "once"
                          : "never",
                least, most);
    }
    CUfunction f = function(image_kernels_cubin, "empty");
    CALLO(cuOccupancyMaxPotentialBlockSize, "callback-and-size",
          (&grid_size, &block, f, by_block, 49152, 0), OUT_I(grid_size), OUT_I(block));
    CALLO(cuOccupancyMaxPotentialBlockSize, "too-much-shared",
          (&grid_size, &block, f, NULL, 1 << 20, 0), OUT_I(grid_size), OUT_I(block));
    CALLO(cuOccupancyMaxPotentialBlockSize, "no-block", (&grid_size, NULL, f, NULL, 0, 0),
          OUT_I(grid_size));
    CALLO(cuOccupancyMaxPotentialBlockSize, "no-grid", (NULL, &block, f, NULL, 0, 0), OUT_I(block));
    CALLO(cuOccupancyMaxPotentialBlockSize, "null-function", (&grid_size, &block, NULL, NULL, 0, 0),
          OUT_I(grid_size), OUT_I(block));
    for (unsigned flags = 0; flags <= 2; flags++) {
        par_note("flags=%u", flags);
        CALLO(cuOccupancyMaxPotentialBlockSizeWithFlags, "flags",
              (&grid_size, &block, f, NULL, 0, 0, flags), OUT_I(grid_size), OUT_I(block));
    }
    CUfunction q = function(TEXT_PLAIN, "required");
    CALLO(cuOccupancyMaxPotentialBlockSize, "required", (&grid_size, &block, q, NULL, 0, 0),
          OUT_I(grid_size), OUT_I(block));
}

static void cluster(const char *cls, CUfunction f, unsigned grid_x, unsigned block_x,
                    unsigned shared, unsigned x, unsigned y) {
    CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION};
    attribute.value.clusterDim.x = x;
    attribute.value.clusterDim.y = y;
    attribute.value.clusterDim.z = 1;
    CUlaunchConfig config = {grid_x, 1, 1, block_x, 1, 1, shared, NULL, &attribute, x > 0};
    int clusters, size;
    par_note("grid=%u block=%u shared=%u cluster=%u,%u", grid_x, block_x, shared, x, y);
    CALLO(cuOccupancyMaxActiveClusters, cls, (&clusters, f, &config), OUT_I(clusters));
    par_note("grid=%u block=%u shared=%u cluster=%u,%u", grid_x, block_x, shared, x, y);
    CALLO(cuOccupancyMaxPotentialClusterSize, cls, (&size, f, &config), OUT_I(size));
}

SCENARIO(clusters, "occupancy/clusters", par_context) {
    static const unsigned widths[] = {1, 2, 3, 4, 5, 6, 7, 8, 16};
    static const unsigned blocks[] = {1, 64, 256, 512, 1024};
    int n, size;
    CUfunction f = function(image_kernels_cubin, "empty");
    CUfunction required = function(image_kernels_cubin, "clustered");
    CUfunction must = function(TEXT_CLUSTERS, "any_cluster");
    CUfunction ranked = function(TEXT_CLUSTERS, "ranked");
    CUfunction heavy = function(image_kernels_cubin, "heavy");
    for (size_t w = 0; w < COUNT(widths); w++)
        for (size_t b = 0; b < COUNT(blocks); b++)
            cluster("empty", f, widths[w] * 8, blocks[b], 0, widths[w], 1);
    cluster("no-cluster", f, 64, 64, 0, 0, 1);
    cluster("shared", f, 64, 64, 49152, 2, 1);
    cluster("shared", f, 64, 64, 49152, 8, 1);
    cluster("two-d", f, 64, 64, 0, 2, 2);
    cluster("not-divisor", f, 7, 64, 0, 2, 1);
    cluster("required", required, 64, 64, 0, 0, 1);
    cluster("required", required, 64, 64, 0, 2, 1);
    cluster("required-other", required, 64, 64, 0, 4, 1);
    cluster("must-be-set", must, 64, 64, 0, 0, 1);
    cluster("must-be-set", must, 64, 64, 0, 2, 1);
    cluster("ranked", ranked, 64, 64, 0, 8, 1);
    cluster("ranked", ranked, 64, 64, 0, 4, 1);
    cluster("heavy", heavy, 64, 512, 0, 8, 1);
    cluster("block-0", f, 64, 0, 0, 2, 1);
    cluster("block-1025", f, 64, 1025, 0, 2, 1);
    cluster("grid-0", f, 0, 64, 0, 2, 1);
    SETUP(cuFuncSetAttribute, (f, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1));
    cluster("non-portable", f, 64, 64, 0, 8, 1);
    cluster("non-portable", f, 64, 64, 0, 16, 1);
    cluster("non-portable", f, 64, 1024, 0, 16, 1);
    cluster("non-portable", f, 64, 64, 0, 17, 1);
    CUlaunchConfig config = {64, 1, 1, 64, 1, 1, 0, NULL, NULL, 0};
    CALL(cuOccupancyMaxActiveClusters, "null-out", (NULL, f, &config));
    CALLO(cuOccupancyMaxActiveClusters, "null-function", (&n, NULL, &config), OUT_I(n));
    CALLO(cuOccupancyMaxActiveClusters, "null-config", (&n, f, NULL), OUT_I(n));
    CALL(cuOccupancyMaxPotentialClusterSize, "null-out", (NULL, f, &config));
    CALLO(cuOccupancyMaxPotentialClusterSize, "null-function", (&size, NULL, &config), OUT_I(size));
    CALLO(cuOccupancyMaxPotentialClusterSize, "null-config", (&size, f, NULL), OUT_I(size));
}
