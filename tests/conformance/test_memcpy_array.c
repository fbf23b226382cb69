/* Copies to, from and between arrays of one, two and three dimensions. */
#include "harness.h"

#define LENGTH 512u
#define WIDTH  64u /* bytes: 16 elements of 4 */
#define HEIGHT 24u
#define DEPTH  3u
#define SIZE   (WIDTH * HEIGHT * DEPTH)

struct scene {
    CUarray line, other_line, plane, solid;
    CUdeviceptr device;
    unsigned char *in, *out;
    CUstream stream;
};

static CUarray make_array(size_t width, size_t height, size_t depth, unsigned channels) {
    CUDA_ARRAY3D_DESCRIPTOR d = {SIZE_3D(width, height, depth),
                                 TEXELS(CU_AD_FORMAT_UNSIGNED_INT8, channels)};
    return new_array_3d(&d);
}

static struct scene make(void) {
    struct scene scene;
    scene.in = new_bytes(SIZE);
    scene.out = new_bytes(SIZE);
    fill_pattern(scene.in, SIZE, 3);
    scene.line = make_array(LENGTH, 0, 0, 1);
    scene.other_line = make_array(LENGTH, 0, 0, 1);
    scene.plane = make_array(WIDTH / 4, HEIGHT, 0, 4);
    scene.solid = make_array(WIDTH / 4, HEIGHT, DEPTH, 4);
    scene.device = new_memory(SIZE);
    OK_CU(cu.cuMemsetD8_v2(scene.device, 0xcc, SIZE));
    scene.stream = new_blocking_stream();
    OK_CU(cu.cuCtxSynchronize());
    return scene;
}

/* ---- One row --------------------------------------------------------------------------------- */

TEST(bytes_are_copied_to_a_1d_array_and_back) {
    struct scene s = make();
    OK_CU(cu.cuMemcpyHtoA_v2(s.line, 0, s.in, LENGTH));
    OK_CU(cu.cuMemcpyAtoH_v2(s.out, s.line, 0, LENGTH));
    assert_memory_equal(s.out, s.in, LENGTH);
    OK_CU(cu.cuMemcpyHtoA_v2(s.line, 100, s.in + 7, 50));
    OK_CU(cu.cuMemcpyAtoH_v2(s.out, s.line, 90, 70));
    assert_memory_equal(s.out, s.in + 90, 10);
    assert_memory_equal(s.out + 10, s.in + 7, 50);
    assert_memory_equal(s.out + 60, s.in + 150, 10);
}

TEST(copies_of_1d_arrays_may_be_asynchronous) {
    struct scene s = make();
    OK_CU(cu.cuMemcpyHtoAAsync_v2(s.line, 0, s.in, LENGTH, s.stream));
    OK_CU(cu.cuMemcpyAtoHAsync_v2(s.out, s.line, 0, LENGTH, s.stream));
    OK_CU(cu.cuStreamSynchronize(s.stream));
    assert_memory_equal(s.out, s.in, LENGTH);
}

TEST(copies_of_1d_arrays_go_to_arrays_and_device_memory) {
    struct scene s = make();
    OK_CU(cu.cuMemcpyHtoD_v2(s.device, s.in, LENGTH));
    OK_CU(cu.cuMemcpyDtoA_v2(s.line, 8, s.device, 200));
    OK_CU(cu.cuMemcpyAtoA_v2(s.other_line, 16, s.line, 8, 200));
    OK_CU(cu.cuMemcpyAtoH_v2(s.out, s.other_line, 16, 200));
    assert_memory_equal(s.out, s.in, 200);
    OK_CU(cu.cuMemsetD8_v2(s.device, 0, LENGTH));
    OK_CU(cu.cuMemcpyAtoD_v2(s.device + 4, s.other_line, 20, 100));
    OK_CU(cu.cuMemcpyDtoH_v2(s.out, s.device, 104));
    assert_memory_equal(s.out + 4, s.in + 4, 100);
    assert_int_equal(s.out[0], 0);
}

TEST(copies_past_the_end_of_a_1d_array_are_refused) {
    struct scene s = make();
    FAILS_CU(INVALID_VALUE, cu.cuMemcpyHtoA_v2(s.line, 0, s.in, LENGTH + 1));
    FAILS_CU(INVALID_VALUE, cu.cuMemcpyAtoH_v2(s.out, s.line, LENGTH - 4, 5));
    FAILS_CU(INVALID_VALUE, cu.cuMemcpyAtoD_v2(s.device, s.line, 1, LENGTH));
    FAILS_CU(INVALID_VALUE, cu.cuMemcpyAtoA_v2(s.other_line, 1, s.line, 0, LENGTH));
}

/* ---- Rows and boxes -------------------------------------------------------------------------- */

static CUDA_MEMCPY2D plane_in(const struct scene *s) {
    CUDA_MEMCPY2D copy = {FROM_HOST(s->in), .srcPitch = WIDTH, TO_ARRAY(s->plane),
                          EXTENT(WIDTH, HEIGHT)};
    return copy;
}

static void read_plane(struct scene *s) {
    CUDA_MEMCPY2D copy = {FROM_ARRAY(s->plane), TO_HOST(s->out), .dstPitch = WIDTH,
                          EXTENT(WIDTH, HEIGHT)};
    memset(s->out, 0, SIZE);
    OK_CU(cu.cuMemcpy2D_v2(&copy));
}

TEST(a_2d_array_takes_rows_and_rectangles) {
    struct scene s = make();
    CUDA_MEMCPY2D copy = plane_in(&s);
    OK_CU(cu.cuMemcpy2DAsync_v2(&copy, s.stream));
    OK_CU(cu.cuStreamSynchronize(s.stream));
    read_plane(&s);
    assert_memory_equal(s.out, s.in, WIDTH * HEIGHT);
    copy.dstXInBytes = 8;
    copy.dstY = 5;
    copy.srcXInBytes = 4;
    copy.srcY = 1;
    copy.WidthInBytes = 16;
    copy.Height = 3;
    OK_CU(cu.cuMemcpy2DUnaligned_v2(&copy));
    read_plane(&s);
    for (size_t y = 0; y < HEIGHT; y++)
        for (size_t x = 0; x < WIDTH; x++) {
            bool inside = x >= 8 && x < 24 && y >= 5 && y < 8;
            size_t from = inside ? (y - 4) * WIDTH + x - 4 : y * WIDTH + x;
            assert_int_equal(s.out[y * WIDTH + x], s.in[from]);
        }
}

TEST(copies_past_the_edges_of_a_2d_array_are_refused) {
    struct scene s = make();
    CUDA_MEMCPY2D copy;
#define REFUSED(...)                                                                               \
    do {                                                                                           \
        copy = plane_in(&s);                                                                       \
        __VA_ARGS__;                                                                               \
        FAILS_CU(INVALID_VALUE, cu.cuMemcpy2D_v2(&copy));                                          \
    } while (0)
    REFUSED(copy.Height = HEIGHT + 1);
    REFUSED(copy.dstY = 1);
    REFUSED(copy.dstXInBytes = 4);
    REFUSED(copy.dstArray = NULL);
#undef REFUSED
}

static CUDA_MEMCPY3D solid_in(const struct scene *s) {
    CUDA_MEMCPY3D copy = {FROM_HOST(s->in), .srcPitch = WIDTH, .srcHeight = HEIGHT,
                          TO_ARRAY(s->solid), EXTENT_3D(WIDTH, HEIGHT, DEPTH)};
    return copy;
}

TEST(a_3d_array_takes_boxes) {
    struct scene s = make();
    CUDA_MEMCPY3D copy = solid_in(&s);
    OK_CU(cu.cuMemcpy3D_v2(&copy));
    memset(&copy, 0, sizeof copy);
    copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
    copy.srcArray = s.solid;
    copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.dstDevice = s.device;
    copy.dstPitch = WIDTH;
    copy.dstHeight = HEIGHT;
    copy.WidthInBytes = WIDTH;
    copy.Height = HEIGHT;
    copy.Depth = DEPTH;
    OK_CU(cu.cuMemcpy3DAsync_v2(&copy, s.stream));
    OK_CU(cu.cuStreamSynchronize(s.stream));
    OK_CU(cu.cuMemcpyDtoH_v2(s.out, s.device, SIZE));
    assert_memory_equal(s.out, s.in, SIZE);
    copy.srcZ = 2;
    copy.srcY = HEIGHT - 1;
    copy.WidthInBytes = 8;
    copy.Height = copy.Depth = 1;
    OK_CU(cu.cuMemcpy3D_v2(&copy));
    OK_CU(cu.cuMemcpyDtoH_v2(s.out, s.device, 8));
    assert_memory_equal(s.out, s.in + (2 * HEIGHT + HEIGHT - 1) * WIDTH, 8);
    copy = solid_in(&s);
    copy.dstZ = 1;
    FAILS_CU(INVALID_VALUE, cu.cuMemcpy3D_v2(&copy));
}

TEST(peer_copies_transfer_3d_arrays) {
    struct scene s = make();
    CUDA_MEMCPY3D in = solid_in(&s);
    OK_CU(cu.cuMemcpy3D_v2(&in));
    CUDA_MEMCPY3D_PEER peer = {FROM_ARRAY(s.solid), .srcZ = 1,         .srcContext = ctx,
                               .dstContext = ctx,   TO_ARRAY(s.plane), EXTENT_3D(WIDTH, HEIGHT, 1)};
    OK_CU(cu.cuMemcpy3DPeer(&peer));
    read_plane(&s);
    assert_memory_equal(s.out, s.in + WIDTH * HEIGHT, WIDTH * HEIGHT);
    peer.srcZ = 2;
    OK_CU(cu.cuMemcpy3DPeerAsync(&peer, s.stream));
    OK_CU(cu.cuStreamSynchronize(s.stream));
    read_plane(&s);
    assert_memory_equal(s.out, s.in + 2 * WIDTH * HEIGHT, WIDTH * HEIGHT);
}

/* Extents and offsets in batches are counted in elements when arrays take part. */
TEST(batches_count_array_extents_in_elements) {
    struct scene s = make();
    CUDA_MEMCPY3D_BATCH_OP op;
    size_t failed = 0;
    CUDA_MEMCPY2D all = plane_in(&s);
    OK_CU(cu.cuMemcpy2D_v2(&all));
    OK_CU(cu.cuMemcpyHtoD_v2(s.device, s.in + WIDTH, 64));
    memset(&op, 0, sizeof op);
    op.src.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
    op.src.op.ptr.ptr = s.device;
    op.dst.type = CU_MEMCPY_OPERAND_TYPE_ARRAY;
    op.dst.op.array.array = s.plane;
    op.dst.op.array.offset.x = 2;
    op.dst.op.array.offset.y = 1;
    op.extent.width = 4;
    op.extent.height = 2;
    op.extent.depth = 1;
    op.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
    OK_CU(cu.cuMemcpy3DBatchAsync(1, &op, &failed, 0, s.stream));
    OK_CU(cu.cuStreamSynchronize(s.stream));
    read_plane(&s);
    assert_memory_equal(s.out + WIDTH + 8, s.in + WIDTH, 16);
    assert_memory_equal(s.out + 2 * WIDTH + 8, s.in + WIDTH + 16, 16);
    assert_memory_equal(s.out, s.in, WIDTH + 8);
    assert_memory_equal(s.out + WIDTH + 24, s.in + WIDTH + 24, WIDTH - 16);
    op.extent.width = 15;
    FAILS_CU(INVALID_VALUE, cu.cuMemcpy3DBatchAsync(1, &op, &failed, 0, s.stream));
}

TEST(a_level_of_detail_of_an_array_must_be_zero) {
    struct scene s = make();
    CUDA_MEMCPY3D copy = solid_in(&s);
    copy.dstLOD = 1;
    FAILS_CU(INVALID_VALUE, cu.cuMemcpy3D_v2(&copy));
    copy.dstLOD = 0;
    copy.srcLOD = 1; /* of memory, it means nothing */
    OK_CU(cu.cuMemcpy3D_v2(&copy));
}

/* Bytes inside elements may be copied. */
TEST(copies_may_begin_and_end_within_an_element) {
    struct scene s = make();
    CUDA_MEMCPY2D copy = plane_in(&s);
    OK_CU(cu.cuMemcpy2D_v2(&copy));
    copy.dstXInBytes = 3;
    copy.WidthInBytes = 6;
    copy.Height = 1;
    OK_CU(cu.cuMemcpy2D_v2(&copy));
    read_plane(&s);
    assert_memory_equal(s.out, s.in, 3);
    assert_memory_equal(s.out + 3, s.in, 6);
    assert_memory_equal(s.out + 9, s.in + 9, WIDTH - 9);
}

/* Captured copies run at each launch, on the bytes of that moment. */
TEST(captured_array_copies_become_nodes) {
    struct scene s = make();
    unsigned char *pinned = new_pinned(2 * LENGTH, 0);
    OK_CU(cu.cuStreamBeginCapture_v2(s.stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    OK_CU(cu.cuMemcpyHtoAAsync_v2(s.line, 0, pinned, LENGTH, s.stream));
    OK_CU(cu.cuMemcpyAtoHAsync_v2(pinned + LENGTH, s.line, 0, LENGTH, s.stream));
    CUgraph graph = GOT_CU(CUgraph, cuStreamEndCapture, s.stream);
    CUgraphExec exec = instantiate(graph);
    for (unsigned i = 0; i < 2; i++) {
        fill_pattern(pinned, LENGTH, i);
        memset(pinned + LENGTH, 0, LENGTH);
        launch_and_wait(exec, s.stream);
        assert_true(has_pattern(pinned + LENGTH, LENGTH, i));
    }
    OK_CU(cu.cuGraphDestroy(graph));
}

/* A batch is refused and the capture goes on; a copy between contexts ends it. */
TEST(batches_and_peer_copies_cannot_be_captured) {
    struct scene s = make();
    CUdeviceptr to = s.device, from = s.device + 256;
    size_t size = 64, index = 0, failed;
    CUmemcpyAttributes attributes = {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
    OK_CU(cu.cuStreamBeginCapture_v2(s.stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    FAILS_CU(STREAM_CAPTURE_UNSUPPORTED, cu.cuMemcpyBatchAsync(&to, &from, &size, 1, &attributes,
                                                               &index, 1, &failed, s.stream));
    CUgraph graph = GOT_CU(CUgraph, cuStreamEndCapture, s.stream);
    OK_CU(cu.cuGraphDestroy(graph));
    OK_CU(cu.cuStreamBeginCapture_v2(s.stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    FAILS_CU(STREAM_CAPTURE_UNSUPPORTED, cu.cuMemcpyPeerAsync(to, ctx, from, ctx, size, s.stream));
    FAILS_CU(STREAM_CAPTURE_INVALIDATED, cu.cuStreamEndCapture(s.stream, &graph));
}

TEST_WHERE(arrays_are_copied_between_two_devices, NEEDS_DEVICES(2)) {
    struct scene s = make();
    CUDA_MEMCPY3D_PEER peer;
    OK_CU(cu.cuMemcpyHtoA_v2(s.line, 0, s.in, LENGTH));
    CUcontext other = new_context(1);
    CUarray far = make_array(LENGTH, 0, 0, 1);
    memset(&peer, 0, sizeof peer);
    peer.srcMemoryType = peer.dstMemoryType = CU_MEMORYTYPE_ARRAY;
    peer.srcArray = s.line;
    peer.srcContext = ctx;
    peer.dstArray = far;
    peer.dstContext = other;
    peer.WidthInBytes = LENGTH;
    peer.Height = peer.Depth = 1;
    OK_CU(cu.cuMemcpy3DPeer(&peer));
    OK_CU(cu.cuMemcpyAtoH_v2(s.out, far, 0, LENGTH));
    assert_memory_equal(s.out, s.in, LENGTH);
}
