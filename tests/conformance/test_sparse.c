/* Sparse and deferred arrays: bytes are where memory of a tile pool is mapped. */
#include "level_rows.h"

#define POOL ((size_t)4 << 20)
#define TILE ((size_t)64 << 10)
#define ROW  ((size_t)1024) /* bytes of a row: 256 elements of 4, two tiles */
#define ROWS ((size_t)256)  /* two tiles */

struct scene {
    CUarray array;
    CUmemGenericAllocationHandle pool;
    unsigned char *in, *out;
    CUstream stream;
};

static CUDA_ARRAY3D_DESCRIPTOR form(size_t width, size_t height, size_t depth, unsigned flags) {
    CUDA_ARRAY3D_DESCRIPTOR d = {SIZE_3D(width, height, depth), TEXELS(CU_AD_FORMAT_FLOAT, 1),
                                 .Flags = flags};
    return d;
}

static CUmemGenericAllocationHandle make_pool(void) {
    CUmemGenericAllocationHandle pool;
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = device_location(dev),
                                .allocFlags.usage = CU_MEM_CREATE_USAGE_TILE_POOL};
    OK_CU(cu.cuMemCreate(&pool, POOL, &prop, 0));
    return pool;
}

static struct scene make(unsigned flags) {
    struct scene s;
    CUDA_ARRAY3D_DESCRIPTOR d = form(256, ROWS, 0, flags);
    s.array = new_array_3d(&d);
    s.pool = make_pool();
    s.in = malloc(ROW * ROWS);
    s.out = malloc(ROW * ROWS);
    assert_true(s.in && s.out);
    fill_pattern(s.in, ROW * ROWS, 11);
    s.stream = new_blocking_stream();
    return s;
}

static void end(struct scene *s) {
    OK_CU(cu.cuCtxSynchronize());
    OK_CU(cu.cuMemRelease(s->pool));
    free(s->in);
    free(s->out);
}

static CUarrayMapInfo entry(const struct scene *s, unsigned x, unsigned y, unsigned width,
                            unsigned height) {
    CUarrayMapInfo map;
    memset(&map, 0, sizeof map);
    map.resourceType = CU_RESOURCE_TYPE_ARRAY;
    map.resource.array = s->array;
    map.subresourceType = CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_SPARSE_LEVEL;
    map.subresource.sparseLevel.offsetX = x;
    map.subresource.sparseLevel.offsetY = y;
    map.subresource.sparseLevel.extentWidth = width;
    map.subresource.sparseLevel.extentHeight = height;
    map.subresource.sparseLevel.extentDepth = 1;
    map.memOperationType = CU_MEM_OPERATION_TYPE_MAP;
    map.memHandleType = CU_MEM_HANDLE_TYPE_GENERIC;
    map.memHandle.memHandle = s->pool;
    map.deviceBitMask = 1u << dev;
    return map;
}

static CUarrayMapInfo unmap(const struct scene *s, unsigned x, unsigned y, unsigned width,
                            unsigned height) {
    CUarrayMapInfo map = entry(s, x, y, width, height);
    map.memOperationType = CU_MEM_OPERATION_TYPE_UNMAP;
    map.memHandle.memHandle = 0;
    return map;
}

static void copy(const struct scene *s, bool in) {
    CUDA_MEMCPY2D c = {EXTENT(ROW, ROWS),
                       .srcMemoryType = in ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_ARRAY,
                       .srcHost = s->in,
                       .srcArray = s->array,
                       .dstMemoryType = in ? CU_MEMORYTYPE_ARRAY : CU_MEMORYTYPE_HOST,
                       .dstHost = s->out,
                       .dstArray = s->array,
                       .srcPitch = ROW,
                       .dstPitch = ROW};
    OK_CU(cu.cuMemcpy2DAsync_v2(&c, s->stream));
    OK_CU(cu.cuStreamSynchronize(s->stream));
}

/* Are the bytes of a quarter those that went in? */
static bool came_back(const struct scene *s, size_t right, size_t lower) {
    for (size_t y = lower * ROWS / 2; y < (lower + 1) * ROWS / 2; y++)
        if (memcmp(s->out + y * ROW + right * ROW / 2, s->in + y * ROW + right * ROW / 2,
                   ROW / 2) != 0)
            return false;
    return true;
}

TEST(tiles_of_32_bit_elements_are_128_by_128) {
    NEEDS_ATTRIBUTE(CU_DEVICE_ATTRIBUTE_SPARSE_CUDA_ARRAY_SUPPORTED);
    struct scene s = make(CUDA_ARRAY3D_SPARSE);
    CUDA_ARRAY_SPARSE_PROPERTIES properties;
    memset(&properties, 0xa5, sizeof properties);
    OK_CU(cu.cuArrayGetSparseProperties(&properties, s.array));
    MEMBERS(properties.tileExtent, (width, 128), (height, 128), (depth, 1));
    end(&s);
}

TEST(mapped_tiles_keep_their_bytes) {
    NEEDS_ATTRIBUTE(CU_DEVICE_ATTRIBUTE_SPARSE_CUDA_ARRAY_SUPPORTED);
    struct scene s = make(CUDA_ARRAY3D_SPARSE);
    CUarrayMapInfo map = entry(&s, 0, 0, 256, 256);
    OK_CU(cu.cuMemMapArrayAsync(&map, 1, s.stream));
    copy(&s, true);
    copy(&s, false);
    assert_memory_equal(s.out, s.in, ROW * ROWS);
    map = unmap(&s, 128, 0, 128, 128);
    OK_CU(cu.cuMemMapArrayAsync(&map, 1, s.stream));
    copy(&s, false);
    assert_true(came_back(&s, 0, 0) && came_back(&s, 0, 1) && came_back(&s, 1, 1));
    assert_false(came_back(&s, 1, 0));
    map = entry(&s, 128, 0, 128, 128);
    map.offset = TILE; /* where it lay before */
    OK_CU(cu.cuMemMapArrayAsync(&map, 1, s.stream));
    copy(&s, false);
    assert_true(came_back(&s, 1, 0));
    end(&s);
}

/* Nothing goes in, and zeros come out. */
TEST(unmapped_tiles_ignore_writes_and_read_as_zero) {
    NEEDS_ATTRIBUTE(CU_DEVICE_ATTRIBUTE_SPARSE_CUDA_ARRAY_SUPPORTED);
    struct scene s = make(CUDA_ARRAY3D_SPARSE);
    CUarrayMapInfo map = entry(&s, 0, 128, 128, 128);
    OK_CU(cu.cuMemMapArrayAsync(&map, 1, s.stream));
    copy(&s, true);
    copy(&s, false);
    assert_true(came_back(&s, 0, 1));
    for (size_t x = 0; x < ROW; x++)
        assert_int_equal(s.out[x], 0);
    end(&s);
}

/* The mapping is work of its stream. */
TEST(tiles_are_mapped_in_stream_order) {
    NEEDS_ATTRIBUTE(CU_DEVICE_ATTRIBUTE_SPARSE_CUDA_ARRAY_SUPPORTED);
    struct scene s = make(CUDA_ARRAY3D_SPARSE), other = s;
    CUarrayMapInfo map = entry(&s, 0, 0, 256, 256);
    other.stream = new_stream();
    struct gate gate = hold(s.stream);
    OK_CU(cu.cuMemMapArrayAsync(&map, 1, s.stream));
    copy(&other, true);
    gate_drain(&gate, s.stream);
    copy(&s, false);
    assert_false(came_back(&s, 0, 0));
    copy(&s, true);
    copy(&s, false);
    assert_true(came_back(&s, 0, 0));
    end(&s);
}

/* The memory may go while tiles lie on it: it stays until they are mapped no more. */
TEST(released_tile_memory_stays_while_it_is_mapped) {
    NEEDS_ATTRIBUTE(CU_DEVICE_ATTRIBUTE_SPARSE_CUDA_ARRAY_SUPPORTED);
    NEEDS_SOFTGPU("the bytes of a released pool are not promised");
    struct scene s = make(CUDA_ARRAY3D_SPARSE);
    CUarrayMapInfo map = entry(&s, 0, 0, 256, 256);
    OK_CU(cu.cuMemMapArrayAsync(&map, 1, s.stream));
    OK_CU(cu.cuStreamSynchronize(s.stream));
    OK_CU(cu.cuMemRelease(s.pool));
    copy(&s, true);
    copy(&s, false);
    assert_memory_equal(s.out, s.in, ROW * ROWS);
    s.pool = make_pool();
    end(&s);
}

TEST(mappings_of_partial_tiles_are_refused) {
    NEEDS_ATTRIBUTE(CU_DEVICE_ATTRIBUTE_SPARSE_CUDA_ARRAY_SUPPORTED);
    struct scene s = make(CUDA_ARRAY3D_SPARSE);
    CUarrayMapInfo map;
#define REFUSED(...)                                                                               \
    do {                                                                                           \
        map = entry(&s, 0, 0, 128, 128);                                                           \
        __VA_ARGS__;                                                                               \
        FAILS_CU(INVALID_VALUE, cu.cuMemMapArrayAsync(&map, 1, s.stream));                         \
    } while (0)
    REFUSED(map.subresource.sparseLevel.offsetX = 4);
    REFUSED(map.subresource.sparseLevel.offsetY = 4);
    REFUSED(map.offset = 4096);
    REFUSED(map.offset = POOL);
    REFUSED(map.flags = 1);
#undef REFUSED
    end(&s);
}

TEST(a_sparse_mipmap_has_tiles_and_a_mip_tail) {
    NEEDS_ATTRIBUTE(CU_DEVICE_ATTRIBUTE_SPARSE_CUDA_ARRAY_SUPPORTED);
    CUDA_ARRAY_SPARSE_PROPERTIES properties;
    CUDA_ARRAY3D_DESCRIPTOR d = form(512, 512, 0, CUDA_ARRAY3D_SPARSE);
    CUmipmappedArray mipmap = MADE_CU(CUmipmappedArray, cuMipmappedArrayCreate, &d, 6);
    memset(&properties, 0xa5, sizeof properties);
    OK_CU(cu.cuMipmappedArrayGetSparseProperties(&properties, mipmap));
    MEMBERS(properties.tileExtent, (width, 128), (height, 128));
    assert_int_equal(properties.miptailFirstLevel, 3);
    assert_true(properties.miptailSize > 0 && properties.miptailSize % TILE == 0);
    OK_CU(cu.cuMipmappedArrayDestroy(mipmap));
}

/* All levels of the tail have bytes of their own, once its memory is mapped. */
TEST(levels_of_a_mip_tail_keep_their_bytes) {
    NEEDS_ATTRIBUTE(CU_DEVICE_ATTRIBUTE_SPARSE_CUDA_ARRAY_SUPPORTED);
    struct scene s = make(CUDA_ARRAY3D_SPARSE);
    CUarray level;
    CUDA_ARRAY3D_DESCRIPTOR d = form(256, 256, 0, CUDA_ARRAY3D_SPARSE);
    CUmipmappedArray mipmap = MADE_CU(CUmipmappedArray, cuMipmappedArrayCreate, &d, 5);
    CUarrayMapInfo map = entry(&s, 0, 0, 0, 0);
    map.resourceType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
    map.resource.mipmap = mipmap;
    map.subresourceType = CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL;
    memset(&map.subresource, 0, sizeof map.subresource);
    map.subresource.miptail.size = TILE;
    OK_CU(cu.cuMemMapArrayAsync(&map, 1, s.stream));
    OK_CU(cu.cuStreamSynchronize(s.stream));
    for (unsigned i = 2; i < 5; i++) {
        OK_CU(cu.cuMipmappedArrayGetLevel(&level, mipmap, i));
        fill_pattern(s.in, ROW * ROWS, i);
        CUDA_MEMCPY2D in = level_rows(level, s.in, ROW >> i, ROWS >> i, true);
        OK_CU(cu.cuMemcpy2D_v2(&in));
    }
    for (unsigned i = 2; i < 5; i++) {
        OK_CU(cu.cuMipmappedArrayGetLevel(&level, mipmap, i));
        CUDA_MEMCPY2D out = level_rows(level, s.out, ROW >> i, ROWS >> i, false);
        OK_CU(cu.cuMemcpy2D_v2(&out));
        assert_true(has_pattern(s.out, (ROW >> i) * (ROWS >> i), i));
    }
    OK_CU(cu.cuMipmappedArrayDestroy(mipmap));
    end(&s);
}

/* Solids have tiles of three dimensions. */
TEST(sparse_3d_arrays_have_3d_tiles) {
    NEEDS_ATTRIBUTE(CU_DEVICE_ATTRIBUTE_SPARSE_CUDA_ARRAY_SUPPORTED);
    struct scene s = make(CUDA_ARRAY3D_SPARSE), solid = s;
    CUDA_ARRAY3D_DESCRIPTOR d = form(64, 32, 32, CUDA_ARRAY3D_SPARSE);
    CUDA_ARRAY_SPARSE_PROPERTIES tile;
    solid.array = new_array_3d(&d);
    OK_CU(cu.cuArrayGetSparseProperties(&tile, solid.array));
    MEMBERS(tile.tileExtent, (width, 32), (height, 32), (depth, 16));
    CUarrayMapInfo map = entry(&solid, 0, 0, 64, 32);
    map.subresource.sparseLevel.extentDepth = 32;
    OK_CU(cu.cuMemMapArrayAsync(&map, 1, s.stream));
    OK_CU(cu.cuStreamSynchronize(s.stream));
    CUDA_MEMCPY3D c = {FROM_HOST(s.in), .srcPitch = 256, .srcHeight = 32, TO_ARRAY(solid.array),
                       EXTENT_3D(256, 32, 32)};
    OK_CU(cu.cuMemcpy3D_v2(&c));
    c.srcMemoryType = CU_MEMORYTYPE_ARRAY;
    c.srcArray = solid.array;
    c.dstMemoryType = CU_MEMORYTYPE_HOST;
    c.dstHost = s.out;
    c.dstPitch = 256;
    c.dstHeight = 32;
    OK_CU(cu.cuMemcpy3D_v2(&c));
    assert_memory_equal(s.out, s.in, 256 * 32 * 32);
    end(&s);
}

TEST(deferred_arrays_report_their_memory_requirements) {
    NEEDS_ATTRIBUTE(CU_DEVICE_ATTRIBUTE_DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED);
    struct scene s = make(CUDA_ARRAY3D_DEFERRED_MAPPING);
    CUDA_ARRAY_MEMORY_REQUIREMENTS wanted;
    CUDA_ARRAY3D_DESCRIPTOR d = form(256, ROWS, 0, CUDA_ARRAY3D_DEFERRED_MAPPING);
    memset(&wanted, 0xa5, sizeof wanted);
    OK_CU(cu.cuArrayGetMemoryRequirements(&wanted, s.array, dev));
    assert_true(wanted.size >= ROW * ROWS && wanted.size < 4 * ROW * ROWS);
    assert_true(wanted.alignment > 0 && POOL % wanted.alignment == 0);
    CUmipmappedArray mipmap = MADE_CU(CUmipmappedArray, cuMipmappedArrayCreate, &d, 3);
    memset(&wanted, 0xa5, sizeof wanted);
    OK_CU(cu.cuMipmappedArrayGetMemoryRequirements(&wanted, mipmap, dev));
    assert_true(wanted.size >= ROW * ROWS * 21 / 16 && wanted.size < 8 * ROW * ROWS);
    OK_CU(cu.cuMipmappedArrayDestroy(mipmap));
    CUarrayMapInfo map = entry(&s, 0, 0, 0, 0);
    OK_CU(cu.cuMemMapArrayAsync(&map, 1, s.stream));
    copy(&s, true);
    copy(&s, false);
    assert_memory_equal(s.out, s.in, ROW * ROWS);
    end(&s);
}

/* The body of a loop, which ends with its context, lets go of the tiles that it reads. */
TEST(a_loop_that_ends_with_its_context_releases_its_tiles) {
    NEEDS_SOFTGPU("on hardware the loop would keep the device busy");
    NEEDS_ATTRIBUTE(CU_DEVICE_ATTRIBUTE_SPARSE_CUDA_ARRAY_SUPPORTED);
    CUgraph graph, body;
    CUgraphNodeParams loop;
    size_t before, after, total;
    OK_CU(cu.cuMemGetInfo_v2(&before, &total));
    CUcontext context = MADE_CU(CUcontext, cuCtxCreate_v2, 0, dev);
    struct scene s = make(CUDA_ARRAY3D_SPARSE);
    CUarrayMapInfo map = entry(&s, 0, 0, 256, ROWS);
    OK_CU(cu.cuMemMapArrayAsync(&map, 1, s.stream));
    OK_CU(cu.cuStreamSynchronize(s.stream));
    OK_CU(cu.cuGraphCreate(&graph, 0));
    memset(&loop, 0, sizeof loop);
    loop.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
    loop.conditional.type = CU_GRAPH_COND_TYPE_WHILE;
    loop.conditional.size = 1;
    loop.conditional.ctx = context;
    OK_CU(cu.cuGraphConditionalHandleCreate(&loop.conditional.handle, graph, context, 1,
                                            CU_GRAPH_COND_ASSIGN_DEFAULT));
    CUgraphNode node = MADE_CU(CUgraphNode, cuGraphAddNode_v2, graph, NULL, NULL, 0, &loop);
    body = loop.conditional.phGraph_out[0];
    CUDA_MEMCPY3D c = {FROM_ARRAY(s.array), TO_HOST(s.out), EXTENT_3D(64, 1, 1)};
    OK_CU(cu.cuGraphAddMemcpyNode(&node, body, NULL, 0, &c, context));
    CUgraphExec exec = MADE_CU(CUgraphExec, cuGraphInstantiateWithFlags, graph, 0);
    OK_CU(cu.cuGraphLaunch(exec, s.stream));
    forget(s.stream);
    forget(s.array);
    OK_CU(cu.cuCtxDestroy_v2(context));
    OK_CU(cu.cuCtxSetCurrent(ctx));
    DESTROY_CU(exec, graph);
    OK_CU(cu.cuMemRelease(s.pool));
    OK_CU(cu.cuMemGetInfo_v2(&after, &total));
    assert_int_equal(after, before);
    free(s.in);
    free(s.out);
}
