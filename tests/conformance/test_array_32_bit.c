/* Arrays and their copies by the functions of CUDA 2 to 3.1, in a context of that time. */
#include "harness.h"

#define LENGTH 256u
#define WIDTH  32u
#define HEIGHT 8u

static CUarray line(void) {
    const CUDA_ARRAY_DESCRIPTOR_v1 d = {LENGTH, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1};
    CUarray array = MADE_CU(CUarray, cuArrayCreate, &d);
    assert_non_null(array);
    return array;
}

static CUarray solid(void) {
    const CUDA_ARRAY3D_DESCRIPTOR_v1 d = {WIDTH, HEIGHT, 2, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0};
    CUarray array = MADE_CU(CUarray, cuArray3DCreate, &d);
    assert_non_null(array);
    return array;
}

static CUcontext begin(void) {
    OK_CU(cu.cuInit(0));
    return MADE_CU(CUcontext, cuCtxCreate, 0, 0);
}

/* Contexts of that time and later ones exclude each other, so that these have processes of their
 * own. */
CHILD_TEST(arrays_of_the_first_api_report_their_descriptors) {
    CUcontext context = begin();
    CUarray flat = line(), deep = solid(), none;
    CUDA_ARRAY_DESCRIPTOR_v1 d;
    CUDA_ARRAY3D_DESCRIPTOR_v1 d3;
    const CUDA_ARRAY_DESCRIPTOR now = {.Width = 16, TEXELS(CU_AD_FORMAT_UNSIGNED_INT8, 1)};
    memset(&d, 0xa5, sizeof d);
    memset(&d3, 0xa5, sizeof d3);
    OK_CU(cu.cuArrayGetDescriptor(&d, flat));
    MEMBERS(d, (Width, LENGTH), (Height, 0), (NumChannels, 1));
    OK_CU(cu.cuArray3DGetDescriptor(&d3, deep));
    MEMBERS(d3, (Width, WIDTH), (Height, HEIGHT), (Depth, 2));
    FAILS_CU(INVALID_CONTEXT, cu.cuArrayCreate_v2(&none, &now));
    DESTROY_CU(flat, deep);
    OK_CU(cu.cuCtxDestroy(context));
    return 0;
}

CHILD_TEST(row_copies_of_the_first_api_round_trip) {
    unsigned char in[LENGTH], out[LENGTH];
    CUcontext context = begin();
    CUarray a = line(), b = line();
    fill_pattern(in, LENGTH, 4);
    CUstream stream = MADE_CU(CUstream, cuStreamCreate, 0);
    CUdeviceptr_v1 device = MADE_CU(CUdeviceptr_v1, cuMemAlloc, LENGTH);
    OK_CU(cu.cuMemcpyHtoA(a, 0, in, LENGTH));
    OK_CU(cu.cuMemcpyAtoA(b, 0, a, 0, LENGTH));
    OK_CU(cu.cuMemcpyAtoH(out, b, 0, LENGTH));
    assert_memory_equal(out, in, LENGTH);
    OK_CU(cu.cuMemcpyAtoD(device, b, 16, 64));
    OK_CU(cu.cuMemcpyDtoA(a, 100, device, 64));
    OK_CU(cu.cuMemcpyAtoHAsync(out, a, 0, LENGTH, stream));
    OK_CU(cu.cuStreamSynchronize(stream));
    assert_memory_equal(out, in, 100);
    assert_memory_equal(out + 100, in + 16, 64);
    OK_CU(cu.cuMemcpyHtoAAsync(a, 7, in, 10, stream));
    OK_CU(cu.cuStreamSynchronize(stream));
    OK_CU(cu.cuMemcpyAtoH(out, a, 7, 10));
    assert_memory_equal(out, in, 10);
    FAILS_CU(INVALID_VALUE, cu.cuMemcpyHtoA(a, 1, in, LENGTH));
    DESTROY_CU(a, b);
    OK_CU(cu.cuMemFree(device));
    OK_CU(cu.cuStreamDestroy_v2(stream));
    OK_CU(cu.cuCtxDestroy(context));
    return 0;
}

static CUDA_MEMCPY2D_v1 plane(const void *from, void *to) {
    CUDA_MEMCPY2D_v1 c = {FROM_HOST(from), TO_HOST(to), .srcPitch = WIDTH, .dstPitch = WIDTH,
                          EXTENT(WIDTH, HEIGHT)};
    return c;
}

static CUDA_MEMCPY3D_v1 box(const void *from, void *to) {
    CUDA_MEMCPY3D_v1 c = {
        FROM_HOST(from),     TO_HOST(to),         .srcPitch = WIDTH,          .dstPitch = WIDTH,
        .srcHeight = HEIGHT, .dstHeight = HEIGHT, EXTENT_3D(WIDTH, HEIGHT, 2)};
    return c;
}

/* The first slice of `array`, by each function for planes. */
static void planes(CUarray array, CUstream stream) {
    unsigned char in[WIDTH * HEIGHT], out[WIDTH * HEIGHT];
    CUDA_MEMCPY3D_v1 slice = box(NULL, out);
    slice.srcMemoryType = CU_MEMORYTYPE_ARRAY;
    slice.srcArray = array;
    slice.Depth = 1;
    for (unsigned i = 0; i < 3; i++) {
        fill_pattern(in, sizeof in, i);
        CUDA_MEMCPY2D_v1 p = plane(in, NULL);
        p.dstMemoryType = CU_MEMORYTYPE_ARRAY;
        p.dstArray = array;
        if (i == 0)
            OK_CU(cu.cuMemcpy2D(&p));
        if (i == 1)
            OK_CU(cu.cuMemcpy2DUnaligned(&p));
        if (i == 2)
            OK_CU(cu.cuMemcpy2DAsync(&p, stream));
        OK_CU(cu.cuStreamSynchronize(stream));
        OK_CU(cu.cuMemcpy3D(&slice));
        assert_true(has_pattern(out, sizeof out, i));
    }
}

CHILD_TEST(box_copies_of_the_first_api_round_trip) {
    unsigned char in[WIDTH * HEIGHT * 2], out[WIDTH * HEIGHT * 2];
    CUcontext context = begin();
    CUarray array = solid();
    CUstream stream = MADE_CU(CUstream, cuStreamCreate, 0);
    CUdeviceptr_v1 device = MADE_CU(CUdeviceptr_v1, cuMemAlloc, sizeof in);
    fill_pattern(in, sizeof in, 4);
    CUDA_MEMCPY3D_v1 c = box(in, NULL);
    c.dstMemoryType = CU_MEMORYTYPE_ARRAY;
    c.dstArray = array;
    OK_CU(cu.cuMemcpy3D(&c));
    c = box(NULL, NULL);
    c.srcMemoryType = CU_MEMORYTYPE_ARRAY;
    c.srcArray = array;
    c.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    c.dstDevice = device;
    OK_CU(cu.cuMemcpy3DAsync(&c, stream));
    OK_CU(cu.cuStreamSynchronize(stream));
    OK_CU(cu.cuMemcpyDtoH(out, device, sizeof out));
    assert_memory_equal(out, in, sizeof in);
    planes(array, stream);
    OK_CU(cu.cuArrayDestroy(array));
    OK_CU(cu.cuMemFree(device));
    OK_CU(cu.cuStreamDestroy_v2(stream));
    OK_CU(cu.cuCtxDestroy(context));
    return 0;
}

TEST(newer_contexts_refuse_arrays_of_the_first_api) {
    CUarray array;
    unsigned char bytes[4] = {0};
    const CUDA_ARRAY_DESCRIPTOR_v1 d = {LENGTH, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1};
    const CUDA_ARRAY_DESCRIPTOR now = {.Width = LENGTH, TEXELS(CU_AD_FORMAT_UNSIGNED_INT8, 1)};
    CUDA_ARRAY_DESCRIPTOR_v1 shown;
    FAILS_CU(INVALID_CONTEXT, cu.cuArrayCreate(&array, &d));
    array = new_array(&now);
    FAILS_CU(INVALID_CONTEXT, cu.cuArrayGetDescriptor(&shown, array));
    FAILS_CU(INVALID_CONTEXT, cu.cuMemcpyHtoA(array, 0, bytes, 4));
}
