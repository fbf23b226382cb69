/* Texture and surface references: each setting is kept, and what is bound is told. */
#include "harness.h"

static CUtexref ref;

static void make_reference(void) {
    OK_CU(cu.cuTexRefCreate(&ref));
}

static CUarray make_array(unsigned flags) {
    CUDA_ARRAY3D_DESCRIPTOR desc = {TEXELS(CU_AD_FORMAT_UNSIGNED_INT8, 4), .Width = 64,
                                    .Height = 32, .Flags = flags};
    return MADE_CU(CUarray, cuArray3DCreate_v2, &desc);
}

TEST(a_texture_reference_keeps_its_modes_and_flags) {
    make_reference();
    OK_CU(cu.cuTexRefSetAddressMode(ref, 1, CU_TR_ADDRESS_MODE_BORDER));
    CUaddress_mode address = MADE_CU(CUaddress_mode, cuTexRefGetAddressMode, ref, 1);
    assert_int_equal(address, CU_TR_ADDRESS_MODE_BORDER);
    FAILS_CU(INVALID_VALUE, cu.cuTexRefSetAddressMode(ref, 3, CU_TR_ADDRESS_MODE_BORDER));
    OK_CU(cu.cuTexRefSetFilterMode(ref, CU_TR_FILTER_MODE_LINEAR));
    CUfilter_mode filter = MADE_CU(CUfilter_mode, cuTexRefGetFilterMode, ref);
    assert_int_equal(filter, CU_TR_FILTER_MODE_LINEAR);
    OK_CU(cu.cuTexRefSetMipmapFilterMode(ref, CU_TR_FILTER_MODE_LINEAR));
    filter = CU_TR_FILTER_MODE_POINT;
    OK_CU(cu.cuTexRefGetMipmapFilterMode(&filter, ref));
    assert_int_equal(filter, CU_TR_FILTER_MODE_LINEAR);
    OK_CU(cu.cuTexRefSetFlags(ref, CU_TRSF_NORMALIZED_COORDINATES));
    assert_int_equal(MADE_CU(unsigned, cuTexRefGetFlags, ref), CU_TRSF_NORMALIZED_COORDINATES);
    FAILS_CU(INVALID_VALUE, cu.cuTexRefSetFlags(ref, 0x80));
    OK_CU(cu.cuTexRefDestroy(ref));
}

TEST(a_texture_reference_keeps_its_mipmap_and_format_settings) {
    float bias = 0, least = 0, most = 0, border[4] = {0.25f, 0.5f, 0.75f, 1}, got[4] = {0};
    int anisotropy = 0, channels = 0;
    make_reference();
    OK_CU(cu.cuTexRefSetMipmapLevelBias(ref, 1.5f));
    OK_CU(cu.cuTexRefGetMipmapLevelBias(&bias, ref));
    assert_true(bias > 1.4f && bias < 1.6f);
    OK_CU(cu.cuTexRefSetMipmapLevelClamp(ref, 1, 3));
    OK_CU(cu.cuTexRefGetMipmapLevelClamp(&least, &most, ref));
    assert_true(least > 0.9f && most > 2.9f);
    OK_CU(cu.cuTexRefSetMaxAnisotropy(ref, 8));
    OK_CU(cu.cuTexRefGetMaxAnisotropy(&anisotropy, ref));
    assert_int_equal(anisotropy, 8);
    OK_CU(cu.cuTexRefSetBorderColor(ref, border));
    OK_CU(cu.cuTexRefGetBorderColor(got, ref));
    assert_memory_equal(border, got, sizeof got);
    OK_CU(cu.cuTexRefSetFormat(ref, CU_AD_FORMAT_HALF, 2));
    assert_int_equal(MADE_CU(CUarray_format, cuTexRefGetFormat, &channels, ref), CU_AD_FORMAT_HALF);
    assert_int_equal(channels, 2);
    FAILS_CU(INVALID_VALUE, cu.cuTexRefSetFormat(ref, CU_AD_FORMAT_HALF, 3));
    OK_CU(cu.cuTexRefDestroy(ref));
}

TEST(a_texture_reference_is_bound_to_memory) {
    CUDA_ARRAY_DESCRIPTOR desc = {.Width = 64, .Height = 32, TEXELS(CU_AD_FORMAT_FLOAT, 1)};
    CUdeviceptr got;
    CUarray array;
    size_t offset;
    make_reference();
    CUdeviceptr memory = new_memory(65536);
    FAILS_CU(INVALID_VALUE, cu.cuTexRefGetAddress_v2(&got, ref));
    OK_CU(cu.cuTexRefSetAddress_v2(&offset, ref, memory + 32, 1024));
    assert_int_equal(offset, 32);
    OK_CU(cu.cuTexRefGetAddress_v2(&got, ref));
    assert_int_equal(got, memory);
    FAILS_CU(INVALID_VALUE, cu.cuTexRefSetAddress_v2(NULL, ref, memory + 32, 1024));
    OK_CU(cu.cuTexRefSetAddress2D_v3(ref, &desc, memory + 512, 512));
    OK_CU(cu.cuTexRefGetAddress_v2(&got, ref));
    assert_int_equal(got, memory + 512);
    FAILS_CU(INVALID_VALUE, cu.cuTexRefSetAddress2D_v3(ref, &desc, memory, 257));
    OK_CU(cu.cuTexRefSetAddress2D_v2(ref, &desc, memory + 1024, 257));
    OK_CU(cu.cuTexRefGetAddress_v2(&got, ref));
    assert_int_equal(got, memory + 1024);
    FAILS_CU(INVALID_VALUE, cu.cuTexRefGetArray(&array, ref));
    OK_CU(cu.cuTexRefDestroy(ref));
}

/* In a context of the time, which wants a process of its own. */
CHILD_TEST(a_32_bit_context_binds_32_bit_addresses) {
    CUDA_ARRAY_DESCRIPTOR_v1 desc = {.Width = 16, .Height = 4, TEXELS(CU_AD_FORMAT_FLOAT, 1)};
    CUdeviceptr_v1 memory = 0, other = 0, got = 77;
    unsigned offset = 77;
    OK_CU(cu.cuInit(0));
    CUcontext old = MADE_CU(CUcontext, cuCtxCreate, 0, 0);
    OK_CU(cu.cuMemAlloc(&memory, 65536));
    OK_CU(cu.cuMemAlloc(&other, 65536));
    make_reference();
    OK_CU(cu.cuTexRefSetFormat(ref, CU_AD_FORMAT_FLOAT, 1));
    FAILS_CU(INVALID_VALUE, cu.cuTexRefGetAddress(&got, ref));
    assert_int_equal(got, 0);
    FAILS_CU(INVALID_HANDLE, cu.cuTexRefSetAddress(&offset, NULL, memory, 1024));
    assert_int_equal(offset, 0);
    OK_CU(cu.cuTexRefSetAddress(&offset, ref, memory + 32, 1024));
    assert_int_equal(offset, 32);
    OK_CU(cu.cuTexRefGetAddress(&got, ref));
    assert_int_equal(got, memory);
    FAILS_CU(INVALID_HANDLE, cu.cuTexRefGetAddress(&got, NULL));
    assert_int_equal(got, 0);
    OK_CU(cu.cuTexRefSetAddress(&offset, ref, other, 1024));
    OK_CU(cu.cuTexRefSetAddress2D(ref, &desc, memory, 512));
    OK_CU(cu.cuTexRefGetAddress(&got, ref));
    assert_int_equal(got, memory);
    /* Half of a row. */
    OK_CU(cu.cuTexRefSetAddress2D(ref, &desc, memory, 32));
    FAILS_CU(INVALID_VALUE, cu.cuTexRefSetAddress2D(ref, &desc, memory + 4, 512));
    desc.Width = 64;
    FAILS_CU(INVALID_VALUE, cu.cuTexRefSetAddress2D(ref, &desc, memory, 32));
    OK_CU(cu.cuTexRefDestroy(ref));
    OK_CU(cu.cuMemFree(memory));
    OK_CU(cu.cuMemFree(other));
    OK_CU(cu.cuCtxDestroy(old));
    return 0;
}

TEST(a_current_context_refuses_to_bind_32_bit_addresses) {
    CUDA_ARRAY_DESCRIPTOR_v1 desc = {.Width = 64, .Height = 32, TEXELS(CU_AD_FORMAT_FLOAT, 1)};
    CUdeviceptr_v1 got = 77;
    CUdeviceptr wide;
    unsigned offset = 77;
    make_reference();
    FAILS_CU(INVALID_CONTEXT, cu.cuTexRefGetAddress(&got, ref));
    assert_int_equal(got, 0);
    FAILS_CU(INVALID_CONTEXT, cu.cuTexRefSetAddress(&offset, ref, 0x1000, 16));
    assert_int_equal(offset, 0);
    FAILS_CU(INVALID_CONTEXT, cu.cuTexRefSetAddress2D(ref, &desc, 0x1000, 512));
    FAILS_CU(INVALID_VALUE, cu.cuTexRefGetAddress_v2(&wide, ref));
    OK_CU(cu.cuTexRefDestroy(ref));
}

TEST(a_texture_reference_is_bound_to_arrays) {
    CUDA_ARRAY3D_DESCRIPTOR desc = {.Width = 64, .Height = 32, TEXELS(CU_AD_FORMAT_FLOAT, 1)};
    CUarray array = make_array(0), got;
    int channels;
    make_reference();
    CUmipmappedArray mipmap = MADE_CU(CUmipmappedArray, cuMipmappedArrayCreate, &desc, 3);
    OK_CU(cu.cuTexRefSetArray(ref, array, CU_TRSA_OVERRIDE_FORMAT));
    OK_CU(cu.cuTexRefGetArray(&got, ref));
    assert_ptr_equal(got, array);
    (void)MADE_CU(CUarray_format, cuTexRefGetFormat, &channels, ref);
    assert_int_equal(channels, 4);
    OK_CU(cu.cuTexRefSetMipmappedArray(ref, mipmap, CU_TRSA_OVERRIDE_FORMAT));
    assert_ptr_equal(MADE_CU(CUmipmappedArray, cuTexRefGetMipmappedArray, ref), mipmap);
    FAILS_CU(INVALID_VALUE, cu.cuTexRefGetArray(&got, ref));
    OK_CU(cu.cuTexRefSetArray(ref, array, CU_TRSA_OVERRIDE_FORMAT));
    OK_CU(cu.cuArrayDestroy(array));
    FAILS_CU(INVALID_VALUE, cu.cuTexRefGetArray(&got, ref));
    OK_CU(cu.cuMipmappedArrayDestroy(mipmap));
    OK_CU(cu.cuTexRefDestroy(ref));
}

static const char text[] = ".version 7.8\n.target sm_70\n.address_size 64\n"
                           ".global .texref tex_a;\n.global .surfref surf_a;\n"
                           ".visible .entry nothing() { ret; }\n";

TEST(references_of_a_module_are_found_by_name) {
    CUarray array = make_array(CUDA_ARRAY3D_SURFACE_LDST), got;
    CUmodule module = new_module(text);
    CUtexref of_module = MADE_CU(CUtexref, cuModuleGetTexRef, module, "tex_a");
    CUtexref again = MADE_CU(CUtexref, cuModuleGetTexRef, module, "tex_a");
    assert_ptr_equal(of_module, again);
    OK_CU(cu.cuTexRefSetFlags(of_module, CU_TRSF_SRGB));
    FAILS_CU(NOT_FOUND, cu.cuModuleGetTexRef(&again, module, "surf_a"));
    CUsurfref surface = MADE_CU(CUsurfref, cuModuleGetSurfRef, module, "surf_a");
    OK_CU(cu.cuSurfRefSetArray(surface, array, 0));
    OK_CU(cu.cuSurfRefGetArray(&got, surface));
    assert_ptr_equal(got, array);
    OK_CU(cu.cuArrayDestroy(array));
}

TEST(destroyed_texture_references_are_refused) {
    NEEDS_SOFTGPU("hardware's driver crashes on them");
    unsigned flags;
    make_reference();
    OK_CU(cu.cuTexRefDestroy(ref));
    FAILS_CU(INVALID_HANDLE, cu.cuTexRefGetFlags(&flags, ref));
    FAILS_CU(INVALID_HANDLE, cu.cuTexRefDestroy(ref));
}
