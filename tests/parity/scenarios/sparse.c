/* Sparse and deferred arrays: tiles, tile pools, and what lies where nothing is mapped. */
#include "../parity.h"

#define U8   CU_AD_FORMAT_UNSIGNED_INT8
#define F32  CU_AD_FORMAT_FLOAT
#define TILE ((size_t)64 << 10)

static CUDA_ARRAY3D_DESCRIPTOR form(size_t w, size_t h, size_t d, CUarray_format format,
                                    unsigned channels, unsigned flags) {
    return (CUDA_ARRAY3D_DESCRIPTOR){SIZE_3D(w, h, d), TEXELS(format, channels), .Flags = flags};
}

static void show_properties(const char *cls, CUarray x, CUmipmappedArray m) {
    CUDA_ARRAY_SPARSE_PROPERTIES s;
    if (x)
        CALLO(cuArrayGetSparseProperties, cls, (&s, x), OUT_U(s.tileExtent.width),
              OUT_U(s.tileExtent.height), OUT_U(s.tileExtent.depth), OUT_U(s.miptailFirstLevel),
              OUT_U(s.miptailSize), OUT_X(s.flags), OUT_U(s.reserved[0]), OUT_U(s.reserved[3]));
    if (m)
        CALLO(cuMipmappedArrayGetSparseProperties, cls, (&s, m), OUT_U(s.tileExtent.width),
              OUT_U(s.tileExtent.height), OUT_U(s.tileExtent.depth), OUT_U(s.miptailFirstLevel),
              OUT_U(s.miptailSize), OUT_X(s.flags), OUT_U(s.reserved[0]), OUT_U(s.reserved[3]));
}

SCENARIO(properties, "sparse/properties", par_context) {
    static const struct {
        size_t w, h, d;
        unsigned flags;
    } sizes[] = {{1024, 1024, 0, 0}, {1000, 600, 0, 0},  {64, 64, 0, 0},    {128, 128, 64, 0},
                 {16, 16, 16, 0},    {1024, 512, 3, 1},  {512, 512, 6, 4},  {64, 64, 4, 1},
                 {1024, 1024, 0, 2}, {256, 256, 100, 0}, {512, 512, 12, 5}, {1024, 0, 0, 0}};
    static const unsigned bytes[][3] = {{1, 1, 1},  {2, 1, 2}, {3, 1, 4},   {3, 2, 8},
                                        {3, 4, 16}, {1, 4, 4}, {0x20, 1, 4}};
    for (size_t f = 0; f < COUNT(bytes); f++)
        for (size_t i = 0; i < COUNT(sizes); i++) {
            CUarray x;
            CUmipmappedArray m;
            CUDA_ARRAY3D_DESCRIPTOR a =
                form(sizes[i].w, sizes[i].h, sizes[i].d, (CUarray_format)bytes[f][0], bytes[f][1],
                     sizes[i].flags | CUDA_ARRAY3D_SPARSE);
            par_note("%zux%zux%zu flags=0x%x bytes=%u", sizes[i].w, sizes[i].h, sizes[i].d,
                     sizes[i].flags, bytes[f][2]);
            CALL(cuArray3DCreate_v2, "sparse", (&x, &a));
            if (par_last() == CUDA_SUCCESS) {
                show_properties("array", x, NULL);
                SETUP(cuArrayDestroy, (x));
            }
            CALL(cuMipmappedArrayCreate, "sparse", (&m, &a, 5));
            if (par_last() == CUDA_SUCCESS) {
                show_properties("mipmap", NULL, m);
                SETUP(cuMipmappedArrayDestroy, (m));
            }
        }
}

SCENARIO(tails, "sparse/tails", par_context) {
    for (unsigned levels = 1; levels <= 11; levels++)
        for (unsigned layers = 0; layers <= 3; layers += 3) {
            CUmipmappedArray m;
            CUDA_ARRAY3D_DESCRIPTOR a =
                form(1024, 512, layers, F32, 1, CUDA_ARRAY3D_SPARSE | (layers ? 1u : 0u));
            if (par.api->cuMipmappedArrayCreate(&m, &a, levels) != CUDA_SUCCESS)
                continue;
            par_note("levels=%u layers=%u", levels, layers);
            show_properties("levels", NULL, m);
            SETUP(cuMipmappedArrayDestroy, (m));
        }
    for (size_t side = 16; side <= 256; side *= 2) {
        CUmipmappedArray m;
        CUDA_ARRAY3D_DESCRIPTOR a = form(side, side, side, F32, 1, CUDA_ARRAY3D_SPARSE);
        if (par.api->cuMipmappedArrayCreate(&m, &a, 5) != CUDA_SUCCESS)
            continue;
        par_note("cube of %zu", side);
        show_properties("3d", NULL, m);
        SETUP(cuMipmappedArrayDestroy, (m));
    }
}

SCENARIO(properties_refused, "sparse/properties-refused", par_context) {
    CUDA_ARRAY_SPARSE_PROPERTIES s;
    CUDA_ARRAY3D_DESCRIPTOR a = form(1024, 1024, 0, F32, 1, 0);
    CUarray x = PAR_MADE(CUarray, cuArray3DCreate_v2, &a);
    CUmipmappedArray plain = par_mipmap(&a, 3);
    a.Flags = CUDA_ARRAY3D_SPARSE;
    CUarray sparse = PAR_MADE(CUarray, cuArray3DCreate_v2, &a);
    CUmipmappedArray m = par_mipmap(&a, 3);
    CUarray level = PAR_MADE(CUarray, cuMipmappedArrayGetLevel, m, 0);
    show_properties("not-sparse", x, plain);
    show_properties("level", level, NULL);
    CALL(cuArrayGetSparseProperties, "null-out", (NULL, sparse));
    CALLO(cuArrayGetSparseProperties, "null-array", (&s, NULL), OUT_X(s.flags));
    CALL(cuMipmappedArrayGetSparseProperties, "null-out", (NULL, m));
    CALLO(cuMipmappedArrayGetSparseProperties, "null-mipmap", (&s, NULL), OUT_X(s.flags));
    SETUP(cuCtxSetCurrent, (NULL));
    show_properties("no-context", sparse, m);
}

/* ---- Tile pools ----------------------------------------------------------------------------- */

static CUmemGenericAllocationHandle tile_pool(size_t size) {
    CUmemAllocationProp prop = par_device_prop();
    prop.allocFlags.usage = CU_MEM_CREATE_USAGE_TILE_POOL;
    CUmemGenericAllocationHandle h = par_create_as(size, &prop);
    return h;
}

SCENARIO(tile_pools, "sparse/tile-pools", par_context) {
    CUmemGenericAllocationHandle h;
    CUmemAllocationProp prop = par_device_prop(), back;
    CUmemAccessDesc access = par_device_access(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    size_t granularity;
    int fd;
    prop.allocFlags.usage = CU_MEM_CREATE_USAGE_TILE_POOL;
    CALLO(cuMemGetAllocationGranularity, "tile-pool-minimum",
          (&granularity, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM), OUT_U(granularity));
    CALLO(cuMemGetAllocationGranularity, "tile-pool-recommended",
          (&granularity, &prop, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED), OUT_U(granularity));
    CALLO(cuMemCreate, "tile-pool", (&h, PAR_2M, &prop, 0), OUT_C(h));
    CALLO(cuMemCreate, "tile-pool-64k", (&h, TILE, &prop, 0), OUT_C(h));
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    CALLO(cuMemCreate, "tile-pool-exportable", (&h, PAR_2M, &prop, 0), OUT_C(h));
    CALLO(cuMemExportToShareableHandle, "tile-pool",
          (&fd, h, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0), OUT_D(fd));
    CALLO(cuMemGetAllocationPropertiesFromHandle, "tile-pool", (&back, h),
          OUT_X(back.allocFlags.usage));
    prop = par_device_prop();
    prop.allocFlags.usage = CU_MEM_CREATE_USAGE_HW_DECOMPRESS;
    CALLO(cuMemCreate, "usage-decompress", (&h, PAR_2M, &prop, 0), OUT_C(h));
    prop.allocFlags.usage = 3;
    CALLO(cuMemCreate, "usage-both", (&h, PAR_2M, &prop, 0), OUT_C(h));
    CALLO(cuMemGetAllocationPropertiesFromHandle, "usage-both", (&back, h),
          OUT_X(back.allocFlags.usage));
    prop.allocFlags.usage = 8;
    CALLO(cuMemCreate, "usage-unknown", (&h, PAR_2M, &prop, 0), OUT_C(h));
    prop = par_device_prop();
    prop.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
    prop.allocFlags.usage = CU_MEM_CREATE_USAGE_TILE_POOL;
    CALLO(cuMemCreate, "tile-pool-on-host", (&h, PAR_2M, &prop, 0), OUT_C(h));
    h = tile_pool(PAR_2M);
    CUdeviceptr at = par_reserve(PAR_2M);
    CALL(cuMemMap, "tile-pool", (at, PAR_2M, 0, h, 0));
    if (par_last() == CUDA_SUCCESS) {
        CALL(cuMemSetAccess, "tile-pool", (at, PAR_2M, &access, 1));
        CALL(cuMemsetD8_v2, "tile-pool", (at, 1, PAR_2M));
    }
}

SCENARIO(tile_pool_properties, "sparse/tile-pool-properties", par_context) {
    CUmemAllocationProp back;
    CUmemGenericAllocationHandle h = tile_pool(PAR_2M);
    CALLO(cuMemGetAllocationPropertiesFromHandle, "tile-pool", (&back, h),
          OUT_X(back.allocFlags.usage));
    CALL(cuMemRelease, "tile-pool", (h));
}

/* ---- Mapping -------------------------------------------------------------------------------- */

static CUarrayMapInfo map_tile(CUarray x, CUmemGenericAllocationHandle h, unsigned offset_x,
                               unsigned offset_y, unsigned w, unsigned height) {
    CUarrayMapInfo map;
    memset(&map, 0, sizeof map);
    map.resourceType = CU_RESOURCE_TYPE_ARRAY;
    map.resource.array = x;
    map.subresourceType = CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_SPARSE_LEVEL;
    map.subresource.sparseLevel.offsetX = offset_x;
    map.subresource.sparseLevel.offsetY = offset_y;
    map.subresource.sparseLevel.extentWidth = w;
    map.subresource.sparseLevel.extentHeight = height;
    map.subresource.sparseLevel.extentDepth = 1;
    map.memOperationType = h ? CU_MEM_OPERATION_TYPE_MAP : CU_MEM_OPERATION_TYPE_UNMAP;
    map.memHandleType = CU_MEM_HANDLE_TYPE_GENERIC;
    map.memHandle.memHandle = h;
    map.deviceBitMask = 1;
    return map;
}

static CUDA_MEMCPY2D rows_to(CUarray x, const void *host, size_t width, size_t height) {
    return (CUDA_MEMCPY2D){FROM_HOST(host), .srcPitch = width, TO_ARRAY(x), EXTENT(width, height)};
}

static CUDA_MEMCPY2D rows_from(void *host, CUarray x, size_t width, size_t height) {
    return (CUDA_MEMCPY2D){TO_HOST(host), .dstPitch = width, FROM_ARRAY(x), EXTENT(width, height)};
}

/* Of a 256 x 256 array of four bytes: how many bytes of each quarter are 1, 0, something else. */
static void show_quarters(CUarray x) {
    enum { SIDE = 256, ROW = SIDE * 4 };
    unsigned char *out = malloc(ROW * SIDE);
    memset(out, 0xEE, ROW * SIDE);
    CUDA_MEMCPY2D c = rows_from(out, x, ROW, SIDE);
    CALL(cuMemcpy2D_v2, "all-tiles-out", (&c));
    for (int q = 0; q < 4; q++) {
        int seen[4] = {0, 0, 0, 0};
        for (int y = 0; y < SIDE / 2; y++)
            for (int b = 0; b < ROW / 2; b++) {
                unsigned char v =
                    out[(size_t)(y + (q / 2) * SIDE / 2) * ROW + (size_t)(b + (q % 2) * ROW / 2)];
                seen[v == 0xEE ? 3 : v == 0 ? 0 : v < 0x10 ? 1 : 2]++;
            }
        par_see("quarter", "%d: zero %d small %d other %d untouched %d", q, seen[0], seen[1],
                seen[2], seen[3]);
    }
    free(out);
}

SCENARIO(copies_and_tiles, "sparse/copies-and-tiles") {
    enum { SIDE = 256, ROW = SIDE * 4 };
    CUDA_ARRAY3D_DESCRIPTOR a = form(SIDE, SIDE, 0, F32, 1, CUDA_ARRAY3D_SPARSE);
    unsigned char *in = malloc(ROW * SIDE);
    memset(in, 7, ROW * SIDE);
    par_context();
    CUstream s = par_stream();
    CUmemGenericAllocationHandle h = tile_pool(PAR_2M);
    CUarray x = par_array(&a);
    show_properties("256-square", x, NULL);
    CUDA_MEMCPY2D c = rows_to(x, in, ROW, SIDE);
    CALL(cuMemcpy2D_v2, "nothing-mapped", (&c));
    CALL(cuCtxSynchronize, "after-copy-in", ());
    show_quarters(x);
    CUarrayMapInfo map = map_tile(x, h, 0, 0, 128, 128);
    CALL(cuMemMapArrayAsync, "first-tile", (&map, 1, s));
    CALL(cuStreamSynchronize, "mapped", (s));
    CALL(cuMemcpy2D_v2, "one-tile-mapped", (&c));
    show_quarters(x);
    map = map_tile(x, h, 128, 128, 128, 128);
    map.offset = TILE;
    CALL(cuMemMapArrayAsync, "last-tile", (&map, 1, s));
    CALL(cuStreamSynchronize, "mapped", (s));
    memset(in, 9, ROW * SIDE);
    CALL(cuMemcpy2D_v2, "two-tiles-mapped", (&c));
    show_quarters(x);
    map = map_tile(x, h, 128, 0, 128, 128);
    CALL(cuMemMapArrayAsync, "same-memory-again", (&map, 1, s));
    CALL(cuStreamSynchronize, "mapped", (s));
    show_quarters(x);
    map = map_tile(x, 0, 0, 0, 128, 128);
    CALL(cuMemMapArrayAsync, "unmap-first", (&map, 1, s));
    CALL(cuStreamSynchronize, "unmapped", (s));
    show_quarters(x);
    CALL(cuMemMapArrayAsync, "unmap-again", (&map, 1, s));
    map = map_tile(x, h, 0, 0, 256, 256);
    map.offset = 4 * TILE;
    CALL(cuMemMapArrayAsync, "all-tiles-anew", (&map, 1, s));
    CALL(cuStreamSynchronize, "mapped", (s));
    memset(in, 5, ROW * SIDE);
    CALL(cuMemcpy2D_v2, "all-tiles-mapped", (&c));
    show_quarters(x);
    CALL(cuMemRelease, "handle-of-mapped-tiles", (h));
    CALL(cuMemcpy2D_v2, "handle-released", (&c));
    show_quarters(x);
    map = map_tile(x, 0, 0, 0, 256, 256);
    CALL(cuMemMapArrayAsync, "unmap-all", (&map, 1, s));
    CALL(cuStreamSynchronize, "unmapped", (s));
    CALL(cuArrayDestroy, "ok", (x));
}

/* The mapping is work of the stream. */
SCENARIO(in_stream_order, "sparse/in-stream-order") {
    enum { SIDE = 256, ROW = SIDE * 4 };
    CUDA_ARRAY3D_DESCRIPTOR a = form(SIDE, SIDE, 0, F32, 1, CUDA_ARRAY3D_SPARSE);
    par_context();
    CUstream s = par_stream();
    CUstream other = par_stream();
    CUmemGenericAllocationHandle h = tile_pool(PAR_2M);
    unsigned char *in = par_pinned(ROW * SIDE);
    memset(in, 7, ROW * SIDE);
    CUarray x = par_array(&a);
    CUDA_MEMCPY2D c = rows_to(x, in, ROW, SIDE);
    CUarrayMapInfo map = map_tile(x, h, 0, 0, 256, 256);
    par_hold(s);
    CALL(cuMemMapArrayAsync, "held", (&map, 1, s));
    CALL(cuStreamQuery, "held", (s));
    CALL(cuMemcpy2DAsync_v2, "in-other-stream-meanwhile", (&c, other));
    CALL(cuStreamSynchronize, "other", (other));
    CALL(cuMemcpy2DAsync_v2, "behind-map", (&c, s));
    PAR_DRAIN("released", s);
    show_quarters(x);
    CALL(cuArrayDestroy, "tiles-mapped", (x));
    CALL(cuMemRelease, "tile-pool", (h));
}

SCENARIO(map_refused, "sparse/map-refused", par_context) {
    CUDA_ARRAY3D_DESCRIPTOR a = form(512, 512, 0, F32, 1, CUDA_ARRAY3D_SPARSE);
    CUarrayMapInfo map, two[2];
    CUstream s = par_stream();
    CUmemGenericAllocationHandle h = tile_pool(PAR_2M);
    CUmemGenericAllocationHandle common = par_create(PAR_2M, CU_MEM_HANDLE_TYPE_NONE);
    CUarray x = par_array(&a);
    a.Flags = 0;
    CUarray plain = par_array(&a);
#define MAP(cls, change)                                                                           \
    do {                                                                                           \
        map = map_tile(x, h, 0, 0, 128, 128);                                                      \
        change;                                                                                    \
        CALL(cuMemMapArrayAsync, cls, (&map, 1, s));                                               \
    } while (0)
    MAP("ok", (void)0);
    MAP("offset-x-inside-tile", map.subresource.sparseLevel.offsetX = 4);
    MAP("offset-y-inside-tile", map.subresource.sparseLevel.offsetY = 4);
    MAP("width-part-of-tile", map.subresource.sparseLevel.extentWidth = 64);
    MAP("height-part-of-tile", map.subresource.sparseLevel.extentHeight = 64);
    MAP("width-zero", map.subresource.sparseLevel.extentWidth = 0);
    MAP("height-zero", map.subresource.sparseLevel.extentHeight = 0);
    MAP("depth-zero", map.subresource.sparseLevel.extentDepth = 0);
    MAP("depth-two", map.subresource.sparseLevel.extentDepth = 2);
    MAP("offset-z", map.subresource.sparseLevel.offsetZ = 1);
    MAP("layer-one", map.subresource.sparseLevel.layer = 1);
    MAP("level-one", map.subresource.sparseLevel.level = 1);
    MAP("offset-x-past-end", map.subresource.sparseLevel.offsetX = 512);
    MAP("width-past-end", map.subresource.sparseLevel.extentWidth = 640);
    MAP("offset-and-width-past-end",
        (map.subresource.sparseLevel.offsetX = 384, map.subresource.sparseLevel.extentWidth = 256));
    MAP("height-past-end", map.subresource.sparseLevel.extentHeight = 640);
    MAP("whole", (map.subresource.sparseLevel.extentWidth = 512,
                  map.subresource.sparseLevel.extentHeight = 512));
    MAP("memory-offset-unaligned", map.offset = 4096);
    MAP("memory-offset-tile", map.offset = TILE);
    MAP("memory-offset-last-tile", map.offset = PAR_2M - TILE);
    MAP("memory-offset-at-end", map.offset = PAR_2M);
    MAP("memory-too-small",
        (map.offset = PAR_2M - TILE, map.subresource.sparseLevel.extentWidth = 256));
    MAP("not-a-tile-pool", map.memHandle.memHandle = common);
    MAP("operation-zero", map.memOperationType = (CUmemOperationType)0);
    MAP("operation-unknown", map.memOperationType = (CUmemOperationType)3);
    MAP("handle-type-unknown", map.memHandleType = (CUmemHandleType)1);
    MAP("map-null-handle", map.memHandle.memHandle = 0);
    MAP("unmap-with-handle", map.memOperationType = CU_MEM_OPERATION_TYPE_UNMAP);
    MAP("unmap-with-offset", (map.memOperationType = CU_MEM_OPERATION_TYPE_UNMAP,
                              map.memHandle.memHandle = 0, map.offset = TILE));
    MAP("no-device", map.deviceBitMask = 0);
    MAP("other-device", map.deviceBitMask = 2);
    MAP("two-devices", map.deviceBitMask = 3);
    MAP("flags", map.flags = 1);
    MAP("reserved", map.reserved[0] = 1);
    MAP("reserved-second", map.reserved[1] = 1);
    MAP("resource-type-mipmap", map.resourceType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY);
    MAP("resource-type-linear", map.resourceType = CU_RESOURCE_TYPE_LINEAR);
    MAP("resource-type-unknown", map.resourceType = (CUresourcetype)9);
    MAP("resource-null", map.resource.array = NULL);
    MAP("resource-not-sparse", map.resource.array = plain);
    MAP("subresource-unknown", map.subresourceType = (CUarraySparseSubresourceType)2);
    MAP("miptail-of-array",
        (map.subresourceType = CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL,
         memset(&map.subresource, 0, sizeof map.subresource), map.subresource.miptail.size = TILE));
    map = map_tile(x, h, 0, 0, 128, 128);
    CALL(cuMemMapArrayAsync, "count-zero", (&map, 0, s));
    CALL(cuMemMapArrayAsync, "null-list", (NULL, 1, s));
    CALL(cuMemMapArrayAsync, "null-list-count-zero", (NULL, 0, s));
    CALL(cuMemMapArrayAsync, "null-stream", (&map, 1, NULL));
    CALL(cuMemMapArrayAsync, "legacy-stream", (&map, 1, CU_STREAM_LEGACY));
    CALL(cuMemMapArrayAsync_ptsz, "per-thread-stream", (&map, 1, NULL));
    two[0] = map_tile(x, h, 0, 0, 128, 128);
    two[1] = map_tile(x, h, 128, 0, 128, 128);
    two[1].offset = TILE;
    CALL(cuMemMapArrayAsync, "two", (two, 2, s));
    two[1].offset = 100;
    CALL(cuMemMapArrayAsync, "second-bad", (two, 2, s));
    CALL(cuCtxSynchronize, "after", ());
    SETUP(cuMemRelease, (common));
    MAP("released-handle", map.memHandle.memHandle = common);
#undef MAP
}

SCENARIO(map_no_context, "sparse/map-no-context", par_context) {
    CUDA_ARRAY3D_DESCRIPTOR a = form(512, 512, 0, F32, 1, CUDA_ARRAY3D_SPARSE);
    CUstream s = par_stream();
    CUmemGenericAllocationHandle h = tile_pool(PAR_2M);
    CUarray x = par_array(&a);
    CUarrayMapInfo map = map_tile(x, h, 0, 0, 128, 128);
    SETUP(cuCtxSetCurrent, (NULL));
    CALL(cuMemMapArrayAsync, "no-context", (&map, 1, NULL));
    CALL(cuMemMapArrayAsync, "no-context-some-stream", (&map, 1, s));
    CALL(cuMemMapArrayAsync, "no-context-count-zero", (&map, 0, NULL));
}

SCENARIO(map_captured, "sparse/map-captured", par_context) {
    CUDA_ARRAY3D_DESCRIPTOR a = form(512, 512, 0, F32, 1, CUDA_ARRAY3D_SPARSE);
    CUgraph g;
    CUstream s = par_stream();
    CUmemGenericAllocationHandle h = tile_pool(PAR_2M);
    CUarray x = par_array(&a);
    CUarrayMapInfo map = map_tile(x, h, 0, 0, 128, 128);
    SETUP(cuStreamBeginCapture_v2, (s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CALL(cuMemMapArrayAsync, "captured", (&map, 1, s));
    CALLO(cuStreamEndCapture, "after", (s, &g), OUT_C(g));
}

/* Layers, depth and mip levels. */
SCENARIO(map_kinds, "sparse/map-kinds", par_context) {
    CUarray level;
    CUDA_ARRAY_SPARSE_PROPERTIES p;
    unsigned char *host = calloc(1, 1 << 20), *back = calloc(1, 1 << 20);
    CUstream s = par_stream();
    CUmemGenericAllocationHandle h = tile_pool(4 * PAR_2M);
    CUDA_ARRAY3D_DESCRIPTOR a =
        form(256, 128, 3, F32, 1, CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_LAYERED);
    CUarray x = par_array(&a);
    CUarrayMapInfo map = map_tile(x, h, 0, 0, 128, 128);
    map.subresource.sparseLevel.layer = 2;
    CALL(cuMemMapArrayAsync, "layer-two", (&map, 1, s));
    map.subresource.sparseLevel.layer = 3;
    CALL(cuMemMapArrayAsync, "layer-past-end", (&map, 1, s));
    map.subresource.sparseLevel.layer = 0;
    map.subresource.sparseLevel.offsetZ = 1;
    CALL(cuMemMapArrayAsync, "layered-offset-z", (&map, 1, s));
    map.subresource.sparseLevel.offsetZ = 0;
    map.subresource.sparseLevel.extentDepth = 3;
    CALL(cuMemMapArrayAsync, "layered-depth-three", (&map, 1, s));
    a = form(64, 64, 64, F32, 1, CUDA_ARRAY3D_SPARSE);
    SETUP(cuArray3DCreate_v2, (&x, &a));
    SETUP(cuArrayGetSparseProperties, (&p, x));
    map = map_tile(x, h, 0, 0, p.tileExtent.width, p.tileExtent.height);
    CALL(cuMemMapArrayAsync, "3d-depth-one", (&map, 1, s));
    map.subresource.sparseLevel.extentDepth = p.tileExtent.depth;
    CALL(cuMemMapArrayAsync, "3d-tile", (&map, 1, s));
    map.subresource.sparseLevel.offsetZ = p.tileExtent.depth;
    CALL(cuMemMapArrayAsync, "3d-second-tile", (&map, 1, s));
    map.subresource.sparseLevel.offsetZ = 1;
    CALL(cuMemMapArrayAsync, "3d-offset-z-inside", (&map, 1, s));
    map.subresource.sparseLevel.offsetZ = 0;
    map.subresource.sparseLevel.layer = 1;
    CALL(cuMemMapArrayAsync, "3d-layer", (&map, 1, s));
    a = form(300, 200, 0, F32, 1, CUDA_ARRAY3D_SPARSE);
    SETUP(cuArray3DCreate_v2, (&x, &a));
    map = map_tile(x, h, 256, 128, 44, 72);
    CALL(cuMemMapArrayAsync, "edge-exact", (&map, 1, s));
    map = map_tile(x, h, 256, 128, 128, 128);
    CALL(cuMemMapArrayAsync, "edge-whole-tile", (&map, 1, s));
    a = form(512, 256, 0, F32, 1, CUDA_ARRAY3D_SPARSE);
    CUmipmappedArray m = par_mipmap(&a, 6);
    show_properties("512x256", NULL, m);
    SETUP(cuMipmappedArrayGetSparseProperties, (&p, m));
    SETUP(cuMipmappedArrayGetLevel, (&level, m, 1));
    map = map_tile(NULL, h, 0, 0, 256, 128);
    map.resourceType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
    map.resource.mipmap = m;
    map.subresource.sparseLevel.level = 1;
    CALL(cuMemMapArrayAsync, "level-one", (&map, 1, s));
    CALL(cuStreamSynchronize, "level-one", (s));
    memset(host, 3, 1 << 20);
    CUDA_MEMCPY2D in = rows_to(level, host, 1024, 128), out = rows_from(back, level, 1024, 128);
    CALL(cuMemcpy2D_v2, "to-level-one", (&in));
    CALL(cuMemcpy2D_v2, "from-level-one", (&out));
    par_see("level-one", "%d %d", back[0], back[1024 * 128 - 1]);
    map.resourceType = CU_RESOURCE_TYPE_ARRAY;
    map.resource.array = level;
    map.subresource.sparseLevel.level = 0;
    CALL(cuMemMapArrayAsync, "level-as-array", (&map, 1, s));
    map.resourceType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
    map.resource.mipmap = m;
    map.subresource.sparseLevel.level = p.miptailFirstLevel;
    map.subresource.sparseLevel.extentWidth = 128;
    CALL(cuMemMapArrayAsync, "level-in-tail", (&map, 1, s));
    map.subresource.sparseLevel.level = 6;
    CALL(cuMemMapArrayAsync, "level-past-end", (&map, 1, s));
    memset(&map.subresource, 0, sizeof map.subresource);
    map.subresourceType = CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL;
    map.subresource.miptail.size = p.miptailSize;
    map.offset = PAR_2M;
    CALL(cuMemMapArrayAsync, "tail", (&map, 1, s));
    CALL(cuStreamSynchronize, "tail", (s));
    for (unsigned i = p.miptailFirstLevel; i < 6; i++) {
        SETUP(cuMipmappedArrayGetLevel, (&level, m, i));
        memset(host, 16 + (int)i, 1 << 20);
        in = rows_to(level, host, (size_t)2048 >> i, (size_t)256 >> i);
        par_note("level=%u", i);
        CALL(cuMemcpy2D_v2, "to-tail", (&in));
    }
    for (unsigned i = p.miptailFirstLevel; i < 6; i++) {
        SETUP(cuMipmappedArrayGetLevel, (&level, m, i));
        out = rows_from(back, level, (size_t)2048 >> i, (size_t)256 >> i);
        par_note("level=%u", i);
        CALL(cuMemcpy2D_v2, "from-tail", (&out));
        par_see("tail-level", "%u: %d %d", i, back[0],
                back[((size_t)2048 >> i) * ((size_t)256 >> i) - 1]);
    }
    map.subresource.miptail.size = 100;
    CALL(cuMemMapArrayAsync, "tail-size-unaligned", (&map, 1, s));
    map.subresource.miptail.size = 0;
    CALL(cuMemMapArrayAsync, "tail-size-zero", (&map, 1, s));
    map.subresource.miptail.size = p.miptailSize + TILE;
    CALL(cuMemMapArrayAsync, "tail-size-past-end", (&map, 1, s));
    map.subresource.miptail.size = p.miptailSize;
    map.subresource.miptail.offset = TILE;
    CALL(cuMemMapArrayAsync, "tail-offset-past-end", (&map, 1, s));
    map.subresource.miptail.offset = 0;
    map.subresource.miptail.layer = 1;
    CALL(cuMemMapArrayAsync, "tail-layer", (&map, 1, s));
    map.subresource.miptail.layer = 0;
    map.memOperationType = CU_MEM_OPERATION_TYPE_UNMAP;
    map.memHandle.memHandle = 0;
    map.offset = 0;
    CALL(cuMemMapArrayAsync, "tail-unmap", (&map, 1, s));
    CALL(cuStreamSynchronize, "tail-unmap", (s));
    CALL(cuMemcpy2D_v2, "from-unmapped-tail", (&out));
    par_see("unmapped-tail", "%d", back[0]);
    CALL(cuMipmappedArrayDestroy, "tiles-mapped", (m));
}

/* ---- Deferred mapping ------------------------------------------------------------------------ */

SCENARIO(deferred_maps, "sparse/deferred-maps") {
    enum { ROW = 256 };
    CUDA_ARRAY3D_DESCRIPTOR a = form(64, 64, 0, F32, 1, CUDA_ARRAY3D_DEFERRED_MAPPING);
    CUDA_ARRAY_MEMORY_REQUIREMENTS r;
    CUarrayMapInfo map;
    unsigned char in[ROW * 64], back[ROW * 64];
    memset(in, 4, sizeof in);
    memset(back, 0xEE, sizeof back);
    par_context();
    CUstream s = par_stream();
    CUmemGenericAllocationHandle h = tile_pool(PAR_2M);
    CUmemGenericAllocationHandle common = par_create(PAR_2M, CU_MEM_HANDLE_TYPE_NONE);
    CUarray x = par_array(&a);
    CUarray y = par_array(&a);
    CALLO(cuArrayGetMemoryRequirements, "64-square", (&r, x, par.dev), OUT_U(r.size),
          OUT_U(r.alignment));
#define MAP(cls, change)                                                                           \
    do {                                                                                           \
        map = map_tile(x, h, 0, 0, 0, 0);                                                          \
        map.subresource.sparseLevel.extentDepth = 0;                                               \
        change;                                                                                    \
        CALL(cuMemMapArrayAsync, cls, (&map, 1, s));                                               \
    } while (0)
    MAP("offset-unaligned", map.offset = 512);
    MAP("offset-past-end", map.offset = PAR_2M);
    MAP("handle-null", map.memHandle.memHandle = 0);
    MAP("operation-unknown", map.memOperationType = (CUmemOperationType)7);
    MAP("no-device", map.deviceBitMask = 0);
    MAP("flags", map.flags = 1);
    MAP("unmap-not-mapped",
        (map.memOperationType = CU_MEM_OPERATION_TYPE_UNMAP, map.memHandle.memHandle = 0));
    MAP("ok", map.offset = r.alignment);
    CALL(cuStreamSynchronize, "mapped", (s));
    CUDA_MEMCPY2D c = rows_to(x, in, ROW, 64), o = rows_from(back, x, ROW, 64);
    CALL(cuMemcpy2D_v2, "deferred-in", (&c));
    CALL(cuMemcpy2D_v2, "deferred-out", (&o));
    par_see("content", "%d %d", back[0], back[ROW * 64 - 1]);
    MAP("mapped-already", map.offset = 0);
    CALL(cuStreamSynchronize, "mapped", (s));
    MAP("same-memory-second-array", (map.resource.array = y, map.offset = r.alignment));
    CALL(cuStreamSynchronize, "mapped", (s));
    o = rows_from(back, y, ROW, 64);
    memset(back, 0xEE, sizeof back);
    CALL(cuMemcpy2D_v2, "second-array-out", (&o));
    par_see("content", "%d %d", back[0], back[ROW * 64 - 1]);
    MAP("not-a-tile-pool", map.memHandle.memHandle = common);
    CALL(cuStreamSynchronize, "not-a-tile-pool", (s));
    MAP("unmap", (map.memOperationType = CU_MEM_OPERATION_TYPE_UNMAP, map.memHandle.memHandle = 0));
    CALL(cuStreamSynchronize, "unmapped", (s));
    CALL(cuArrayDestroy, "unmapped", (x));
    CALL(cuArrayDestroy, "mapped", (y));
#undef MAP
}

SCENARIO(deferred_mipmap, "sparse/deferred-mipmap") {
    enum { ROW = 256 };
    CUarray level[3];
    CUDA_ARRAY3D_DESCRIPTOR a = form(64, 64, 0, F32, 1, CUDA_ARRAY3D_DEFERRED_MAPPING);
    unsigned char in[ROW * 64], back[ROW * 64];
    par_context();
    CUstream s = par_stream();
    CUmemGenericAllocationHandle h = tile_pool(PAR_2M);
    CUmipmappedArray m = par_mipmap(&a, 3);
    CUarrayMapInfo map = map_tile(NULL, h, 0, 0, 0, 0);
    map.resourceType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
    map.resource.mipmap = m;
    CALL(cuMemMapArrayAsync, "mipmap", (&map, 1, s));
    CALL(cuStreamSynchronize, "mapped", (s));
    for (unsigned i = 0; i < 3; i++) {
        SETUP(cuMipmappedArrayGetLevel, (&level[i], m, i));
        memset(in, 1 + (int)i, sizeof in);
        CUDA_MEMCPY2D c = rows_to(level[i], in, ROW >> i, 64 >> i);
        CALL(cuMemcpy2D_v2, "to-level", (&c));
    }
    for (unsigned i = 0; i < 3; i++) {
        CUDA_MEMCPY2D o = rows_from(back, level[i], ROW >> i, 64 >> i);
        CALL(cuMemcpy2D_v2, "from-level", (&o));
        par_see("level", "%u: %d %d", i, back[0], back[(ROW >> i) * (64 >> i) - 1]);
    }
    map.resourceType = CU_RESOURCE_TYPE_ARRAY;
    map.resource.array = level[0];
    CALL(cuMemMapArrayAsync, "level-of-deferred", (&map, 1, s));
}

/* What a copy says that finds nothing mapped: it may fault. */
SCENARIO(deferred_unmapped_in, "sparse/deferred-unmapped-in") {
    CUDA_ARRAY3D_DESCRIPTOR a = form(64, 64, 0, F32, 1, CUDA_ARRAY3D_DEFERRED_MAPPING);
    unsigned char in[256 * 64];
    memset(in, 4, sizeof in);
    par_context();
    CUarray x = par_array(&a);
    CUDA_MEMCPY2D c = rows_to(x, in, 256, 64);
    CALL(cuMemcpy2D_v2, "unmapped-in", (&c));
    CALL(cuCtxSynchronize, "after", ());
    CALL(cuArrayDestroy, "after", (x));
}

SCENARIO(deferred_unmapped_out, "sparse/deferred-unmapped-out") {
    CUDA_ARRAY3D_DESCRIPTOR a = form(64, 64, 0, F32, 1, CUDA_ARRAY3D_DEFERRED_MAPPING);
    unsigned char out[256 * 64];
    memset(out, 4, sizeof out);
    par_context();
    CUarray x = par_array(&a);
    CUDA_MEMCPY2D c = rows_from(out, x, 256, 64);
    CALL(cuMemcpy2D_v2, "unmapped-out", (&c));
    par_see("content", "%d", out[0]);
    CALL(cuCtxSynchronize, "after", ());
}
