/* Copies of planes: pitches, offsets, memory types, and what is refused. */
#include "harness.h"

#define SIZE ((size_t)64 << 10)

struct scene {
    CUdeviceptr device;
    unsigned char *in, *out, *pinned;
    CUstream stream;
};

static struct scene make(void) {
    struct scene scene;
    scene.device = new_memory(SIZE);
    scene.pinned = new_pinned(SIZE, CU_MEMHOSTALLOC_PORTABLE);
    scene.in = new_bytes(SIZE);
    scene.out = new_bytes(SIZE);
    fill_pattern(scene.in, SIZE, 2);
    OK_CU(cu.cuMemsetD8_v2(scene.device, 0xcc, SIZE));
    scene.stream = new_blocking_stream();
    OK_CU(cu.cuCtxSynchronize());
    return scene;
}

/* 40 bytes of 16 rows from (5, 2) of a 100-byte pitch to (7, 3) of a 256-byte pitch. */
static CUDA_MEMCPY2D to_device(const struct scene *scene) {
    CUDA_MEMCPY2D copy = {FROM_HOST(scene->in),
                          .srcXInBytes = 5,
                          .srcY = 2,
                          .srcPitch = 100,
                          TO_DEVICE(scene->device),
                          .dstXInBytes = 7,
                          .dstY = 3,
                          .dstPitch = 256,
                          EXTENT(40, 16)};
    return copy;
}

/* The plane is where it belongs, and nothing else has changed. */
static void check_device(struct scene *scene) {
    OK_CU(cu.cuMemcpyDtoH_v2(scene->out, scene->device, SIZE));
    for (size_t i = 0; i < SIZE; i++) {
        size_t row = i / 256, column = i % 256;
        bool inside = row >= 3 && row < 19 && column >= 7 && column < 47;
        unsigned char wanted = inside ? scene->in[(row - 3 + 2) * 100 + (column - 7 + 5)] : 0xcc;
        assert_int_equal(scene->out[i], wanted);
    }
}

TEST(a_2d_copy_honours_pitches_and_offsets) {
    struct scene scene = make();
    CUDA_MEMCPY2D copy = to_device(&scene);
    OK_CU(cu.cuMemcpy2D_v2(&copy));
    check_device(&scene);
}

TEST(an_unaligned_2d_copy_honours_pitches_and_offsets) {
    struct scene scene = make();
    CUDA_MEMCPY2D copy = to_device(&scene);
    OK_CU(cu.cuMemcpy2DUnaligned_v2(&copy));
    check_device(&scene);
}

TEST(an_asynchronous_2d_copy_runs_in_stream_order) {
    struct scene scene = make();
    CUDA_MEMCPY2D copy = to_device(&scene);
    struct gate gate = hold(scene.stream);
    OK_CU(cu.cuMemcpy2DAsync_v2(&copy, scene.stream));
    FAILS_CU(NOT_READY, cu.cuStreamQuery(scene.stream));
    unsigned char first = scene.in[205];
    scene.in[205] = (unsigned char)~first; /* read at the call */
    gate_drain(&gate, scene.stream);
    assert_int_equal(byte_at(scene.device), 0xcc);
    scene.in[205] = first;
    check_device(&scene);
}

TEST(a_2d_copy_to_host_memory_honours_pitches_and_offsets) {
    struct scene scene = make();
    CUDA_MEMCPY2D there = to_device(&scene), back;
    OK_CU(cu.cuMemcpy2D_v2(&there));
    memset(&back, 0, sizeof back);
    memset(scene.pinned, 0, SIZE);
    back.srcMemoryType = CU_MEMORYTYPE_UNIFIED;
    back.srcDevice = scene.device;
    back.srcXInBytes = 7;
    back.srcY = 3;
    back.srcPitch = 256;
    back.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
    back.dstDevice = (CUdeviceptr)(uintptr_t)scene.pinned;
    back.WidthInBytes = 40; /* a pitch of 0: rows without a gap */
    back.Height = 16;
    OK_CU(cu.cuMemcpy2D_v2(&back));
    for (size_t row = 0; row < 16; row++)
        assert_memory_equal(scene.pinned + row * 40, scene.in + (row + 2) * 100 + 5, 40);
    assert_int_equal(scene.pinned[16 * 40], 0);
}

TEST(a_2d_copy_within_the_device_honours_pitches_and_offsets) {
    struct scene scene = make();
    CUDA_MEMCPY2D copy = to_device(&scene);
    OK_CU(cu.cuMemcpyHtoD_v2(scene.device + SIZE / 2, scene.in, SIZE / 2));
    copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.srcDevice = scene.device + SIZE / 2;
    OK_CU(cu.cuMemcpy2D_v2(&copy));
    OK_CU(cu.cuMemcpyDtoH_v2(scene.out, scene.device, SIZE));
    for (size_t row = 0; row < 16; row++)
        assert_memory_equal(scene.out + (row + 3) * 256 + 7, scene.in + (row + 2) * 100 + 5, 40);
}

TEST(an_empty_2d_copy_succeeds) {
    struct scene scene = make();
    CUDA_MEMCPY2D copy = to_device(&scene);
    copy.WidthInBytes = 0;
    OK_CU(cu.cuMemcpy2D_v2(&copy));
    copy = to_device(&scene);
    copy.Height = 0;
    OK_CU(cu.cuMemcpy2D_v2(&copy));
}

static void refuse(struct scene *scene, CUDA_MEMCPY2D *copy) {
    FAILS_CU(INVALID_VALUE, cu.cuMemcpy2D_v2(copy));
    FAILS_CU(INVALID_VALUE, cu.cuMemcpy2DUnaligned_v2(copy));
    FAILS_CU(INVALID_VALUE, cu.cuMemcpy2DAsync_v2(copy, scene->stream));
    *copy = to_device(scene);
}

TEST(invalid_descriptors_are_refused) {
    struct scene scene = make();
    CUDA_MEMCPY2D copy = to_device(&scene);
    FAILS_CU(INVALID_VALUE, cu.cuMemcpy2D_v2(NULL));
    copy.srcPitch = 30;
    refuse(&scene, &copy);
    copy.dstPitch = 46; /* x + width is 47 */
    refuse(&scene, &copy);
    copy.srcMemoryType = (CUmemorytype)0;
    refuse(&scene, &copy);
    copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
    refuse(&scene, &copy);
    copy.dstDevice = 0x1000;
    refuse(&scene, &copy);
    copy.srcHost = NULL;
    refuse(&scene, &copy);
    copy.Height = SIZE / 256 - 2; /* one row behind the end */
    refuse(&scene, &copy);
}
