/* Occupancy, as an H200 answers it for machine code. */
#include "harness.h"
#include "images.h"

static CUmodule module;

static int begin(void **state) {
    int result = test_begin(state);
    module = new_module(image_kernels_cubin);
    return result;
}

EACH_TEST(begin, test_end);

static CUfunction function(const char *name) {
    CUfunction found = function_of(module, name);
    return found;
}

static int blocks(CUfunction f, int threads, size_t shared) {
    int count = -1, with_flags = -1;
    OK_CU(cu.cuOccupancyMaxActiveBlocksPerMultiprocessor(&count, f, threads, shared));
    OK_CU(cu.cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&with_flags, f, threads, shared,
                                                                  CU_OCCUPANCY_DEFAULT));
    assert_int_equal(count, with_flags);
    return count;
}

TEST(each_hardware_limit_bounds_occupancy) {
    CUfunction empty = function("empty"), heavy = function("heavy");
    assert_int_equal(blocks(empty, 32, 0), 32);    /* blocks */
    assert_int_equal(blocks(empty, 1024, 0), 2);   /* warps */
    assert_int_equal(blocks(heavy, 128, 0), 7);    /* registers */
    assert_int_equal(blocks(heavy, 1024, 0), 0);   /* not even one block */
    assert_int_equal(blocks(empty, 32, 49152), 4); /* shared memory */
    assert_int_equal(blocks(empty, 32, 49153), 0); /* more than a launch may ask for */
    int count;
    FAILS_CU(INVALID_VALUE, cu.cuOccupancyMaxActiveBlocksPerMultiprocessor(&count, empty, 0, 0));
    FAILS_CU(INVALID_VALUE,
             cu.cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&count, empty, 32, 0, 2));
}

TEST(the_remaining_dynamic_shared_memory_is_computed) {
    CUfunction f = function("static_shared");
    size_t size = MADE_CU(size_t, cuOccupancyAvailableDynamicSMemPerBlock, f, 16, 64);
    assert_int_equal(size, 10496);
    OK_CU(cu.cuOccupancyAvailableDynamicSMemPerBlock(&size, f, 1, 64));
    assert_int_equal(size, 45056);
    FAILS_CU(INVALID_VALUE, cu.cuOccupancyAvailableDynamicSMemPerBlock(&size, f, 33, 64));
}

static int asked;

static size_t by_block(int block) {
    asked++;
    return (size_t)block * 48;
}

TEST(the_best_block_size_is_found) {
    CUfunction f = function("static_shared"), heavy = function("heavy");
    int grid = 0, block = 0;
    OK_CU(cu.cuOccupancyMaxPotentialBlockSize(&grid, &block, heavy, NULL, 0, 0));
    assert_int_equal(block, 896);
    assert_int_equal(grid, device_attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
    OK_CU(cu.cuOccupancyMaxPotentialBlockSizeWithFlags(&grid, &block, f, NULL, 0, 100,
                                                       CU_OCCUPANCY_DEFAULT));
    assert_int_equal(block, 64);
    asked = 0;
    OK_CU(cu.cuOccupancyMaxPotentialBlockSize(&grid, &block, f, by_block, 0, 0));
    assert_true(asked > 1);
    assert_int_equal(block, 512);
    FAILS_CU(INVALID_VALUE, cu.cuOccupancyMaxPotentialBlockSize(&grid, &block, f, NULL, 0, -1));
}

static CUlaunchConfig config_of(CUlaunchAttribute *attribute, unsigned width, unsigned threads) {
    *attribute = (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION};
    attribute->value.clusterDim.x = width;
    attribute->value.clusterDim.y = attribute->value.clusterDim.z = 1;
    return (CUlaunchConfig){width * 8, 1, 1, threads, 1, 1, 0, NULL, attribute, 1};
}

TEST(active_clusters_and_cluster_sizes_are_computed) {
    CUfunction f = function("empty"), pair = function("clustered");
    CUlaunchAttribute attribute;
    CUlaunchConfig config = config_of(&attribute, 2, 1024);
    int count = -1, size = -1;
    OK_CU(cu.cuOccupancyMaxActiveClusters(&count, f, &config));
    assert_int_equal(count, device_attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
    OK_CU(cu.cuOccupancyMaxPotentialClusterSize(&size, f, &config));
    assert_int_equal(size, 8);
    OK_CU(cu.cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1));
    OK_CU(cu.cuOccupancyMaxPotentialClusterSize(&size, f, &config));
    assert_int_equal(size, 16);
    config = config_of(&attribute, 4, 64);
    FAILS_CU(INVALID_CLUSTER_SIZE, cu.cuOccupancyMaxActiveClusters(&count, pair, &config));
    config.gridDimX = 7;
    FAILS_CU(INVALID_CLUSTER_SIZE, cu.cuOccupancyMaxActiveClusters(&count, f, &config));
}

/* A kernel may stand for its function in the current context. */
TEST(a_kernel_handle_is_accepted_as_a_function) {
    CUlibrary library;
    OK_CU(cu.cuLibraryLoadData(&library, image_kernels_cubin, NULL, NULL, 0, NULL, NULL, 0));
    CUkernel kernel = MADE_CU(CUkernel, cuLibraryGetKernel, library, "empty");
    assert_int_equal(blocks((CUfunction)kernel, 32, 0), 32);
    OK_CU(cu.cuLibraryUnload(library));
}
