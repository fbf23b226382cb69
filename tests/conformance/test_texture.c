/* Texture and surface objects: made of checked descriptions, which are read back. */
#include "harness.h"

static CUarray make_array(unsigned flags) {
    CUDA_ARRAY3D_DESCRIPTOR desc = {TEXELS(CU_AD_FORMAT_FLOAT, 1), .Width = 64, .Height = 32,
                                    .Flags = flags};
    return MADE_CU(CUarray, cuArray3DCreate_v2, &desc);
}

static CUDA_RESOURCE_DESC of_array(CUarray array) {
    CUDA_RESOURCE_DESC resource;
    memset(&resource, 0, sizeof resource);
    resource.resType = CU_RESOURCE_TYPE_ARRAY;
    resource.res.array.hArray = array;
    return resource;
}

static CUDA_RESOURCE_DESC of_memory(CUdeviceptr address) {
    CUDA_RESOURCE_DESC resource;
    memset(&resource, 0, sizeof resource);
    resource.resType = CU_RESOURCE_TYPE_LINEAR;
    resource.res.linear.devPtr = address;
    resource.res.linear.format = CU_AD_FORMAT_FLOAT;
    resource.res.linear.numChannels = 1;
    resource.res.linear.sizeInBytes = 4096;
    return resource;
}

TEST(texture_descriptions_are_read_back) {
    CUarray array = make_array(0);
    CUDA_RESOURCE_DESC resource = of_array(array), got_resource;
    CUDA_TEXTURE_DESC texture, got_texture;
    CUDA_RESOURCE_VIEW_DESC view, got_view;
    memset(&texture, 0, sizeof texture);
    texture.addressMode[0] = CU_TR_ADDRESS_MODE_MIRROR;
    texture.filterMode = CU_TR_FILTER_MODE_LINEAR;
    texture.flags = CU_TRSF_NORMALIZED_COORDINATES;
    memset(&view, 0, sizeof view);
    memset(&got_resource, 0, sizeof got_resource);
    view.format = CU_RES_VIEW_FORMAT_UINT_4X8;
    view.width = 64;
    view.height = 32;
    CUtexObject object = MADE_CU(CUtexObject, cuTexObjectCreate, &resource, &texture, &view);
    OK_CU(cu.cuTexObjectGetResourceDesc(&got_resource, object));
    assert_ptr_equal(got_resource.res.array.hArray, array);
    OK_CU(cu.cuTexObjectGetTextureDesc(&got_texture, object));
    assert_int_equal(got_texture.addressMode[0], CU_TR_ADDRESS_MODE_MIRROR);
    assert_int_equal(got_texture.filterMode, CU_TR_FILTER_MODE_LINEAR);
    OK_CU(cu.cuTexObjectGetResourceViewDesc(&got_view, object));
    assert_int_equal(got_view.format, CU_RES_VIEW_FORMAT_UINT_4X8);
    OK_CU(cu.cuTexObjectDestroy(object));
    FAILS_CU(INVALID_VALUE, cu.cuTexObjectGetTextureDesc(&got_texture, object));
    OK_CU(cu.cuArrayDestroy(array));
}

TEST(invalid_texture_descriptions_are_refused) {
    CUdeviceptr memory = new_memory(65536);
    CUDA_RESOURCE_DESC resource = of_memory(memory + 16);
    CUtexObject object;
    CUDA_TEXTURE_DESC texture = {0};
    FAILS_CU(INVALID_VALUE, cu.cuTexObjectCreate(&object, &resource, &texture, NULL));
    resource = of_memory(memory);
    resource.res.linear.numChannels = 3;
    FAILS_CU(INVALID_VALUE, cu.cuTexObjectCreate(&object, &resource, &texture, NULL));
    resource = of_memory(memory);
    texture.flags = 0x80;
    FAILS_CU(INVALID_VALUE, cu.cuTexObjectCreate(&object, &resource, &texture, NULL));
    texture.flags = 0;
    OK_CU(cu.cuTexObjectCreate(&object, &resource, &texture, NULL));
    OK_CU(cu.cuTexObjectDestroy(object));
}

TEST(a_surface_object_is_not_a_texture_object) {
    CUarray array = make_array(CUDA_ARRAY3D_SURFACE_LDST);
    CUDA_RESOURCE_DESC resource = of_array(array), got;
    CUsurfObject surface = MADE_CU(CUsurfObject, cuSurfObjectCreate, &resource);
    OK_CU(cu.cuSurfObjectGetResourceDesc(&got, surface));
    assert_ptr_equal(got.res.array.hArray, array);
    FAILS_CU(INVALID_VALUE, cu.cuTexObjectGetResourceDesc(&got, surface));
    OK_CU(cu.cuSurfObjectDestroy(surface));
    FAILS_CU(INVALID_VALUE, cu.cuSurfObjectGetResourceDesc(&got, surface));
    resource = of_memory(0x1000);
    FAILS_CU(INVALID_VALUE, cu.cuSurfObjectCreate(&surface, &resource));
    OK_CU(cu.cuArrayDestroy(array));
}

TEST(a_thousand_textures_exist_at_once) {
    CUarray array = make_array(0);
    CUDA_RESOURCE_DESC resource = of_array(array);
    static CUtexObject objects[1000];
    CUDA_TEXTURE_DESC texture = {0};
    for (int i = 0; i < 1000; i++)
        OK_CU(cu.cuTexObjectCreate(&objects[i], &resource, &texture, NULL));
    for (int i = 0; i < 1000; i++)
        OK_CU(cu.cuTexObjectDestroy(objects[i]));
    OK_CU(cu.cuArrayDestroy(array));
}

/* A border counts where fetches can be there. */
TEST(an_unused_border_colour_is_not_reported) {
    CUarray array = make_array(0);
    CUDA_RESOURCE_DESC resource = of_array(array);
    CUDA_TEXTURE_DESC texture, got;
    memset(&got, 0, sizeof got); /* an H200 leaves the colour as it is, softgpu writes 0 */
    memset(&texture, 0, sizeof texture);
    texture.borderColor[0] = 0.5f;
    CUtexObject object = MADE_CU(CUtexObject, cuTexObjectCreate, &resource, &texture, NULL);
    OK_CU(cu.cuTexObjectGetTextureDesc(&got, object));
    assert_true(got.borderColor[0] == 0);
    OK_CU(cu.cuTexObjectDestroy(object));
    OK_CU(cu.cuArrayDestroy(array));
}
