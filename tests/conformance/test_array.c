/* Arrays: what they say of themselves, what makes none, planes, and their end. */
#include "harness.h"

static CUDA_ARRAY3D_DESCRIPTOR form(size_t width, size_t height, size_t depth, unsigned channels,
                                    unsigned flags) {
    CUDA_ARRAY3D_DESCRIPTOR d = {SIZE_3D(width, height, depth),
                                 TEXELS(CU_AD_FORMAT_UNSIGNED_INT8, channels), .Flags = flags};
    return d;
}

static void check_descriptor(CUarray array, const CUDA_ARRAY3D_DESCRIPTOR *wanted) {
    CUDA_ARRAY3D_DESCRIPTOR d;
    memset(&d, 0xa5, sizeof d);
    OK_CU(cu.cuArray3DGetDescriptor_v2(&d, array));
    MEMBERS(d, (Width, wanted->Width), (Height, wanted->Height), (Depth, wanted->Depth),
            (Format, wanted->Format), (NumChannels, wanted->NumChannels), (Flags, wanted->Flags));
}

TEST(an_array_reports_its_descriptor) {
    const CUDA_ARRAY3D_DESCRIPTOR kinds[] = {
        form(100, 0, 0, 1, 0),
        form(64, 48, 0, 4, 0),
        form(32, 16, 8, 2, 0),
        form(64, 0, 5, 1, CUDA_ARRAY3D_LAYERED),
        form(64, 32, 5, 1, CUDA_ARRAY3D_LAYERED),
        form(32, 32, 6, 4, CUDA_ARRAY3D_CUBEMAP),
        form(32, 32, 12, 4, CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_LAYERED),
        form(64, 64, 0, 4, CUDA_ARRAY3D_SURFACE_LDST),
        form(64, 64, 0, 4, CUDA_ARRAY3D_TEXTURE_GATHER),
    };
    for (size_t i = 0; i < COUNT(kinds); i++) {
        CUarray array = MADE_CU(CUarray, cuArray3DCreate_v2, &kinds[i]);
        assert_non_null(array);
        check_descriptor(array, &kinds[i]);
        OK_CU(cu.cuArrayDestroy(array));
    }
}

TEST(a_2d_array_reports_its_2d_descriptor) {
    const CUDA_ARRAY_DESCRIPTOR wanted = {.Width = 40, .Height = 30, TEXELS(CU_AD_FORMAT_FLOAT, 2)};
    CUDA_ARRAY_DESCRIPTOR d;
    CUarray array = new_array(&wanted);
    memset(&d, 0xa5, sizeof d);
    OK_CU(cu.cuArrayGetDescriptor_v2(&d, array));
    MEMBERS(d, (Width, 40), (Height, 30), (Format, CU_AD_FORMAT_FLOAT), (NumChannels, 2));
}

TEST(two_arrays_do_not_share_memory) {
    const CUDA_ARRAY_DESCRIPTOR d = {.Width = 16, TEXELS(CU_AD_FORMAT_UNSIGNED_INT8, 1)};
    unsigned char ones[16], twos[16], out[16];
    memset(ones, 1, sizeof ones);
    memset(twos, 2, sizeof twos);
    CUarray a = MADE_CU(CUarray, cuArrayCreate_v2, &d);
    CUarray b = new_array(&d);
    assert_ptr_not_equal(a, b);
    OK_CU(cu.cuMemcpyHtoA_v2(a, 0, ones, 16));
    OK_CU(cu.cuMemcpyHtoA_v2(b, 0, twos, 16));
    OK_CU(cu.cuMemcpyAtoH_v2(out, a, 0, 16));
    assert_memory_equal(out, ones, 16);
    OK_CU(cu.cuArrayDestroy(a));
    OK_CU(cu.cuMemcpyAtoH_v2(out, b, 0, 16));
    assert_memory_equal(out, twos, 16);
}

TEST(invalid_array_descriptors_are_refused) {
    CUarray array;
    CUDA_ARRAY3D_DESCRIPTOR d;
#define REFUSED(...)                                                                               \
    do {                                                                                           \
        d = form(64, 64, 0, 1, 0);                                                                 \
        __VA_ARGS__;                                                                               \
        FAILS_CU(INVALID_VALUE, cu.cuArray3DCreate_v2(&array, &d));                                \
    } while (0)
    REFUSED(d.Width = 0);
    REFUSED(d.NumChannels = 3);
    REFUSED(d.NumChannels = 0);
    REFUSED(d.Format = (CUarray_format)0);
    REFUSED(d.Width = (size_t)device_attribute(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_WIDTH) + 1);
    REFUSED(d.Height = (size_t)device_attribute(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_HEIGHT) + 1);
    REFUSED(d.Flags = CUDA_ARRAY3D_CUBEMAP);
    REFUSED(d.Flags = CUDA_ARRAY3D_CUBEMAP, d.Depth = 5);
    REFUSED(d.Flags = CUDA_ARRAY3D_CUBEMAP, d.Depth = 6, d.Height = 32);
    FAILS_CU(INVALID_VALUE, cu.cuArray3DCreate_v2(NULL, &d));
    FAILS_CU(INVALID_VALUE, cu.cuArray3DCreate_v2(&array, NULL));
#undef REFUSED
}

static CUDA_MEMCPY2D rows(CUarray array, unsigned char *bytes, size_t width, size_t height,
                          bool in) {
    CUDA_MEMCPY2D copy = {EXTENT(width, height),
                          .srcMemoryType = in ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_ARRAY,
                          .dstMemoryType = in ? CU_MEMORYTYPE_ARRAY : CU_MEMORYTYPE_HOST,
                          .srcHost = bytes,
                          .dstHost = bytes,
                          .srcArray = array,
                          .dstArray = array,
                          .srcPitch = width,
                          .dstPitch = width};
    return copy;
}

/* NV12: brightness in full, two colours at half the width and height. */
TEST(planes_of_an_array_are_arrays) {
    CUarray plane[2];
    unsigned char bytes[64 * 32];
    CUDA_ARRAY3D_DESCRIPTOR d = form(64, 32, 0, 3, CUDA_ARRAY3D_VIDEO_ENCODE_DECODE);
    d.Format = CU_AD_FORMAT_NV12;
    CUarray whole = new_array_3d(&d);
    for (unsigned i = 0; i < 2; i++) {
        CUDA_ARRAY_DESCRIPTOR flat;
        plane[i] = NULL;
        OK_CU(cu.cuArrayGetPlane(&plane[i], whole, i));
        OK_CU(cu.cuArrayGetDescriptor_v2(&flat, plane[i]));
        MEMBERS(flat, (Width, i ? 32 : 64), (Height, i ? 16 : 32), (NumChannels, i + 1));
        fill_pattern(bytes, sizeof bytes, i);
        CUDA_MEMCPY2D in = rows(plane[i], bytes, 64, i ? 16 : 32, true);
        OK_CU(cu.cuMemcpy2D_v2(&in));
    }
    for (unsigned i = 0; i < 2; i++) {
        CUDA_MEMCPY2D out = rows(plane[i], bytes, 64, i ? 16 : 32, false);
        OK_CU(cu.cuMemcpy2D_v2(&out));
        assert_true(has_pattern(bytes, i ? 64 * 16 : 64 * 32, i));
    }
}

/* Formats of video want their flag; blocks of texels are no surfaces. */
TEST(format_requirements_are_enforced) {
    CUarray array;
    CUDA_ARRAY3D_DESCRIPTOR d = form(64, 32, 0, 3, 0);
    d.Format = CU_AD_FORMAT_NV12;
    FAILS_CU(INVALID_VALUE, cu.cuArray3DCreate_v2(&array, &d));
    d = form(64, 64, 0, 4, CUDA_ARRAY3D_SURFACE_LDST);
    d.Format = CU_AD_FORMAT_BC7_UNORM;
    FAILS_CU(NOT_SUPPORTED, cu.cuArray3DCreate_v2(&array, &d));
    d.Flags = CUDA_ARRAY3D_COLOR_ATTACHMENT;
    FAILS_CU(INVALID_VALUE, cu.cuArray3DCreate_v2(&array, &d));
}

/* Rows and bytes of compressed formats are those of blocks of 4 x 4. */
TEST(compressed_arrays_are_copied_in_whole_blocks) {
    unsigned char bytes[8 * 16 * 16];
    CUDA_ARRAY3D_DESCRIPTOR d = form(64, 64, 0, 4, 0);
    d.Format = CU_AD_FORMAT_BC1_UNORM;
    CUarray array = new_array_3d(&d);
    fill_pattern(bytes, sizeof bytes, 9);
    CUDA_MEMCPY2D copy = rows(array, bytes, 8 * 16, 16, true);
    OK_CU(cu.cuMemcpy2D_v2(&copy));
    memset(bytes, 0, sizeof bytes);
    copy = rows(array, bytes, 8 * 16, 16, false);
    OK_CU(cu.cuMemcpy2D_v2(&copy));
    assert_true(has_pattern(bytes, sizeof bytes, 9));
    copy.WidthInBytes = 4;
    FAILS_CU(INVALID_VALUE, cu.cuMemcpy2D_v2(&copy));
    copy.WidthInBytes = 8;
    copy.srcXInBytes = 4;
    FAILS_CU(INVALID_VALUE, cu.cuMemcpy2D_v2(&copy));
    copy.srcXInBytes = 0;
    copy.Height = 17;
    FAILS_CU(INVALID_VALUE, cu.cuMemcpy2D_v2(&copy));
}

/* The end of a context is the end of its arrays: what is left of them would show in the dump. */
TEST(arrays_are_freed_with_their_context) {
    const CUDA_ARRAY3D_DESCRIPTOR d = form(1024, 1024, 0, 4, 0);
    CUcontext other = MADE_CU(CUcontext, cuCtxCreate_v2, 0, dev);
    CUarray array = MADE_CU(CUarray, cuArray3DCreate_v2, &d);
    CUmipmappedArray mipmap = MADE_CU(CUmipmappedArray, cuMipmappedArrayCreate, &d, 5);
    OK_CU(cu.cuMipmappedArrayGetLevel(&array, mipmap, 2));
    OK_CU(cu.cuArray3DCreate_v2(&array, &d));
    OK_CU(cu.cuCtxDestroy_v2(other));
    OK_CU(cu.cuCtxSetCurrent(ctx));
    CUDA_ARRAY3D_DESCRIPTOR unused;
    FAILS_CU(CONTEXT_IS_DESTROYED, cu.cuArray3DGetDescriptor_v2(&unused, array));
    FAILS_CU(CONTEXT_IS_DESTROYED, cu.cuArrayDestroy(array));
}

/* 64 TiB. What was begun is taken back: the dump would show it. */
TEST_WHERE(oversized_arrays_are_refused, NEEDS_SOFTGPU("the error of hardware is not recorded")) {
    CUarray array = NULL;
    CUmipmappedArray mipmap = NULL;
    CUDA_ARRAY3D_DESCRIPTOR d = form(16384, 16384, 16384, 4, 0);
    d.Format = CU_AD_FORMAT_FLOAT;
    FAILS_CU(OUT_OF_MEMORY, cu.cuArray3DCreate_v2(&array, &d));
    FAILS_CU(OUT_OF_MEMORY, cu.cuMipmappedArrayCreate(&mipmap, &d, 3));
    assert_null(array);
    assert_null(mipmap);
}

TEST_WHERE(destroyed_arrays_are_refused, NEEDS_SOFTGPU("hardware crashes")) {
    unsigned char bytes[4] = {0};
    CUDA_ARRAY3D_DESCRIPTOR d = form(64, 0, 0, 1, 0);
    CUarray array = MADE_CU(CUarray, cuArray3DCreate_v2, &d);
    OK_CU(cu.cuArrayDestroy(array));
    FAILS_CU(INVALID_HANDLE, cu.cuArrayDestroy(array));
    FAILS_CU(INVALID_HANDLE, cu.cuArray3DGetDescriptor_v2(&d, array));
    assert_int_not_equal(cu.cuMemcpyHtoA_v2(array, 0, bytes, 4), CUDA_SUCCESS);
}
