/* Copies of boxes, between contexts too, and batches of them. */
#include "harness.h"

#define SIZE   ((size_t)64 << 10)
#define WIDTH  24u
#define HEIGHT 5u
#define DEPTH  3u

struct scene {
    CUdeviceptr device;
    unsigned char *in, *out;
    CUstream stream;
};

static struct scene make(void) {
    struct scene scene;
    scene.device = new_memory(SIZE);
    scene.in = new_bytes(SIZE);
    scene.out = new_bytes(SIZE);
    fill_pattern(scene.in, SIZE, 5);
    OK_CU(cu.cuMemsetD8_v2(scene.device, 0xcc, SIZE));
    scene.stream = new_blocking_stream();
    OK_CU(cu.cuCtxSynchronize());
    return scene;
}

/* Source: rows of 50 bytes, layers of 7 rows, from (3, 1, 2). */
static size_t source(size_t x, size_t y, size_t z) {
    return ((z + 2) * 7 + y + 1) * 50 + x + 3;
}

/* Target: rows of 64 bytes, layers of 8 rows, to (4, 2, 1). */
static size_t target(size_t x, size_t y, size_t z) {
    return ((z + 1) * 8 + y + 2) * 64 + x + 4;
}

static CUDA_MEMCPY3D to_device(const struct scene *scene) {
    CUDA_MEMCPY3D copy = {FROM_HOST(scene->in),
                          .srcXInBytes = 3,
                          .srcY = 1,
                          .srcZ = 2,
                          .srcPitch = 50,
                          .srcHeight = 7,
                          TO_DEVICE(scene->device),
                          .dstXInBytes = 4,
                          .dstY = 2,
                          .dstZ = 1,
                          .dstPitch = 64,
                          .dstHeight = 8,
                          EXTENT_3D(WIDTH, HEIGHT, DEPTH)};
    return copy;
}

static void check_device(struct scene *scene) {
    unsigned char *wanted = malloc(SIZE);
    assert_non_null(wanted);
    memset(wanted, 0xcc, SIZE);
    for (size_t z = 0; z < DEPTH; z++)
        for (size_t y = 0; y < HEIGHT; y++)
            memcpy(wanted + target(0, y, z), scene->in + source(0, y, z), WIDTH);
    OK_CU(cu.cuMemcpyDtoH_v2(scene->out, scene->device, SIZE));
    assert_memory_equal(scene->out, wanted, SIZE);
    free(wanted);
}

TEST(a_3d_copy_honours_pitches_and_offsets) {
    struct scene scene = make();
    CUDA_MEMCPY3D copy = to_device(&scene);
    OK_CU(cu.cuMemcpy3D_v2(&copy));
    check_device(&scene);
}

TEST(an_asynchronous_3d_copy_honours_pitches_and_offsets) {
    struct scene scene = make();
    CUDA_MEMCPY3D copy = to_device(&scene);
    OK_CU(cu.cuMemcpy3DAsync_v2(&copy, scene.stream));
    OK_CU(cu.cuStreamSynchronize(scene.stream));
    check_device(&scene);
}

static CUDA_MEMCPY3D_PEER between_contexts(const struct scene *scene) {
    CUDA_MEMCPY3D plain = to_device(scene);
    CUDA_MEMCPY3D_PEER copy = {EXTENT_3D(plain.WidthInBytes, plain.Height, plain.Depth),
                               .srcMemoryType = plain.srcMemoryType,
                               .srcHost = plain.srcHost,
                               .srcXInBytes = plain.srcXInBytes,
                               .srcY = plain.srcY,
                               .srcZ = plain.srcZ,
                               .srcPitch = plain.srcPitch,
                               .srcHeight = plain.srcHeight,
                               .srcContext = ctx,
                               .dstMemoryType = plain.dstMemoryType,
                               .dstDevice = plain.dstDevice,
                               .dstXInBytes = plain.dstXInBytes,
                               .dstY = plain.dstY,
                               .dstZ = plain.dstZ,
                               .dstPitch = plain.dstPitch,
                               .dstHeight = plain.dstHeight,
                               .dstContext = ctx};
    return copy;
}

TEST(peer_3d_copies_honour_pitches_and_offsets) {
    struct scene scene = make();
    CUDA_MEMCPY3D_PEER copy = between_contexts(&scene);
    OK_CU(cu.cuMemcpy3DPeer(&copy));
    check_device(&scene);
    set_bytes(scene.device, 0xcc, SIZE);
    OK_CU(cu.cuMemcpy3DPeerAsync(&copy, scene.stream));
    OK_CU(cu.cuStreamSynchronize(scene.stream));
    check_device(&scene);
}

TEST(a_3d_copy_to_host_memory_can_be_packed) {
    struct scene scene = make();
    CUDA_MEMCPY3D there = to_device(&scene), back;
    OK_CU(cu.cuMemcpy3D_v2(&there));
    memset(&back, 0, sizeof back);
    back.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    back.srcDevice = scene.device;
    back.srcXInBytes = 4;
    back.srcY = 2;
    back.srcZ = 1;
    back.srcPitch = 64;
    back.srcHeight = 8;
    back.dstMemoryType = CU_MEMORYTYPE_HOST;
    back.dstHost = scene.out;
    back.WidthInBytes = WIDTH; /* pitch and height of 0: no gaps */
    back.Height = HEIGHT;
    back.Depth = DEPTH;
    OK_CU(cu.cuMemcpy3D_v2(&back));
    for (size_t z = 0; z < DEPTH; z++)
        for (size_t y = 0; y < HEIGHT; y++)
            assert_memory_equal(scene.out + (z * HEIGHT + y) * WIDTH, scene.in + source(0, y, z),
                                WIDTH);
}

static void refuse(struct scene *scene, CUDA_MEMCPY3D *copy) {
    FAILS_CU(INVALID_VALUE, cu.cuMemcpy3D_v2(copy));
    FAILS_CU(INVALID_VALUE, cu.cuMemcpy3DAsync_v2(copy, scene->stream));
    *copy = to_device(scene);
}

TEST(invalid_descriptors_are_refused) {
    struct scene scene = make();
    CUDA_MEMCPY3D copy = to_device(&scene);
    FAILS_CU(INVALID_VALUE, cu.cuMemcpy3D_v2(NULL));
    copy.srcPitch = 20;
    refuse(&scene, &copy);
    copy.dstHeight = HEIGHT - 1;
    refuse(&scene, &copy);
    copy.dstDevice = 0x1000;
    refuse(&scene, &copy);
    copy.Depth = 1000;
    refuse(&scene, &copy);
    if (soft) { /* elsewhere what lies before the allocation may be memory too */
        copy.dstZ = SIZE_MAX;
        refuse(&scene, &copy);
    }
}

static CUDA_MEMCPY3D_BATCH_OP batch_entry(CUdeviceptr to, CUdeviceptr from) {
    CUDA_MEMCPY3D_BATCH_OP entry;
    memset(&entry, 0, sizeof entry);
    entry.src.type = entry.dst.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
    entry.src.op.ptr.ptr = from;
    entry.src.op.ptr.rowLength = 50;
    entry.src.op.ptr.layerHeight = 7;
    entry.dst.op.ptr.ptr = to;
    entry.dst.op.ptr.rowLength = 64;
    entry.dst.op.ptr.layerHeight = 8;
    entry.extent.width = WIDTH;
    entry.extent.height = HEIGHT;
    entry.extent.depth = DEPTH;
    entry.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL;
    return entry;
}

TEST(a_batch_runs_all_its_3d_copies) {
    if (!gpumem_driver_has(driver, GPUMEM_FN_cuMemcpy3DBatchAsync))
        SKIP("the driver has no batches");
    struct scene scene = make();
    CUdeviceptr from = (CUdeviceptr)(uintptr_t)scene.in + source(0, 0, 0);
    CUDA_MEMCPY3D_BATCH_OP entries[2] = {batch_entry(scene.device + target(0, 0, 0), from),
                                         batch_entry(scene.device + SIZE / 2, from)};
    size_t failed = 0;
    OK_CU(cu.cuMemcpy3DBatchAsync(1, entries, &failed, 0, scene.stream));
    OK_CU(cu.cuStreamSynchronize(scene.stream));
    check_device(&scene);
    if (gpumem_driver_has(driver, GPUMEM_FN_cuMemcpy3DBatchAsync_v2)) {
        OK_CU(cu.cuMemcpy3DBatchAsync_v2(2, entries, 0, scene.stream));
        OK_CU(cu.cuMemcpyDtoHAsync_v2(scene.out, scene.device, SIZE, scene.stream));
        assert_memory_equal(scene.out + SIZE / 2, scene.in + source(0, 0, 0), WIDTH);
    }
    OK_CU(cu.cuMemsetD8_v2(scene.device, 0xcc, SIZE));
    entries[1].dst.op.ptr.rowLength = 10;
    FAILS_CU(INVALID_VALUE, cu.cuMemcpy3DBatchAsync(2, entries, &failed, 0, scene.stream));
    assert_int_equal(failed, 1);
    OK_CU(cu.cuMemcpyDtoHAsync_v2(scene.out, scene.device, SIZE, scene.stream));
    assert_int_equal(scene.out[target(0, 0, 0)], 0xcc);
    entries[0].flags = 8; /* no flag that there is */
    FAILS_CU(INVALID_VALUE, cu.cuMemcpy3DBatchAsync(1, entries, &failed, 0, scene.stream));
    assert_int_equal(failed, 0);
    FAILS_CU(INVALID_VALUE, cu.cuMemcpy3DBatchAsync(0, entries, &failed, 0, scene.stream));
    assert_true(failed == SIZE_MAX);
}
