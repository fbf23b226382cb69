#include "world.h"

CUarray_format draw_format(void) {
    static const CUarray_format formats[] = {
        CU_AD_FORMAT_UNSIGNED_INT8,  CU_AD_FORMAT_UNSIGNED_INT8,  CU_AD_FORMAT_FLOAT,
        CU_AD_FORMAT_FLOAT,          CU_AD_FORMAT_UNSIGNED_INT32, CU_AD_FORMAT_SIGNED_INT16,
        CU_AD_FORMAT_HALF,           CU_AD_FORMAT_BC1_UNORM,      CU_AD_FORMAT_BC7_UNORM,
        CU_AD_FORMAT_NV12,           CU_AD_FORMAT_P010,           CU_AD_FORMAT_Y444_PLANAR8,
        CU_AD_FORMAT_UNORM_INT8X4,   CU_AD_FORMAT_SNORM_INT16X2,  CU_AD_FORMAT_YUY2,
        CU_AD_FORMAT_UNSIGNED_INT16,
    };
    unsigned pick = byte();
    return pick < 0xf0 ? formats[pick & 15] : (CUarray_format)byte();
}

/* Of at most some MiB, or refused. */
CUDA_ARRAY3D_DESCRIPTOR draw_shape(void) {
    static const unsigned flags[] = {0,
                                     0,
                                     0,
                                     CUDA_ARRAY3D_SURFACE_LDST,
                                     CUDA_ARRAY3D_LAYERED,
                                     CUDA_ARRAY3D_CUBEMAP,
                                     CUDA_ARRAY3D_SPARSE,
                                     CUDA_ARRAY3D_DEFERRED_MAPPING};
    CUDA_ARRAY3D_DESCRIPTOR shape = {
        .Width = 1 + draw_little(128),
        .Height = byte() & 1 ? 0 : draw_little(128),
        .Depth = byte() & 3 ? 0 : draw_little(8),
        .Format = draw_format(),
        .NumChannels = byte() < 0xf0 ? 1u << byte() % 3 : byte(),
        .Flags = flags[byte() & 7],
    };
    unsigned pick = byte();
    if (pick >= 0xc0)
        shape.Width *= 4, shape.Height *= 4;
    if (pick >= 0xf0)
        shape.Flags |= byte();
    if (pick >= 0xf8)
        shape.Width = draw_size();
    return shape;
}

/* A pitch times a height is below the arena's rest: 512 bytes a row, 32 rows a slice, 8 slices. */
static CUmemorytype draw_end(const void **host, CUdeviceptr *device, CUarray *array) {
    unsigned pick = byte();
    size_t room;
    if (pick < 0x60) {
        *array = OF(CUarray, ARRAYS);
        return CU_MEMORYTYPE_ARRAY;
    }
    if (pick < 0x90) {
        *host = draw_host(&room);
        return CU_MEMORYTYPE_HOST;
    }
    if (pick < 0xc0) {
        *device = draw_any_address();
        return CU_MEMORYTYPE_DEVICE;
    }
    *device = draw_address(&room);
    return CU_MEMORYTYPE_UNIFIED;
}

CUDA_MEMCPY3D draw_box(void) {
    const void *to = NULL;
    CUDA_MEMCPY3D box = {.srcXInBytes = draw_little(256),
                         .srcY = draw_little(16),
                         .srcZ = draw_little(4),
                         .srcPitch = draw_little(256) * 2,
                         .srcHeight = draw_little(32)};
    if (byte() & 1)
        box.srcXInBytes = box.srcY = box.srcZ = 0;
    box.srcMemoryType = draw_end(&box.srcHost, &box.srcDevice, &box.srcArray);
    box.dstMemoryType = draw_end(&to, &box.dstDevice, &box.dstArray);
    box.dstHost = (void *)(uintptr_t)to;
    if (byte() >= 0xc0) {
        box.dstXInBytes = draw_little(256);
        box.dstY = draw_little(16);
        box.dstZ = draw_little(4);
    }
    box.dstPitch = draw_little(256) * 2;
    box.dstHeight = draw_little(32);
    unsigned pick = byte();
    box.WidthInBytes = draw_little(256);
    box.Height = pick & 1 ? 1 : draw_little(32);
    box.Depth = pick & 2 ? 1 : draw_little(4);
    return box;
}

void draw_fences(CUexternalSemaphore *list, CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS *signals,
                 CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS *waits, unsigned count) {
    memset(signals, 0, count * sizeof *signals);
    memset(waits, 0, count * sizeof *waits);
    for (unsigned i = 0; i < count; i++) {
        list[i] = OF(CUexternalSemaphore, EXTERNAL_SEMAPHORES);
        signals[i].params.fence.value = byte() % (FENCES + 1);
        waits[i].params.fence.value = byte() % (FENCES + 1);
        unsigned pick = byte();
        if (pick >= 0xf8)
            signals[i].flags = waits[i].flags = pick & 7;
    }
}

CUlaunchAttribute draw_attribute(void) {
    CUlaunchAttribute attribute = {.id = (CUlaunchAttributeID)(byte() % 18)};
    switch (attribute.id) {
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
    case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
        attribute.value.programmaticEvent.event = EVENT();
        attribute.value.programmaticEvent.flags = byte() & 1;
        break;
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
        attribute.value.clusterDim.x = byte() & 7;
        attribute.value.clusterDim.y = 1;
        attribute.value.clusterDim.z = byte() < 0xf0 ? 1 : byte();
        break;
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
        attribute.value.accessPolicyWindow.base_ptr = (void *)(uintptr_t)draw_any_address();
        attribute.value.accessPolicyWindow.num_bytes = draw_size();
        attribute.value.accessPolicyWindow.hitProp = (CUaccessProperty)(byte() & 3);
        attribute.value.accessPolicyWindow.missProp = (CUaccessProperty)(byte() & 3);
        break;
    default:
        attribute.value.cooperative = byte() < 0xf0 ? byte() & 3 : (int)draw32(&world.input);
        break;
    }
    return attribute;
}

/* More parameters than any text here has, each with as many bytes as a kernel may ask for. */
void **draw_kernel_parameters(void) {
    static unsigned char bytes[1 << 16];
    static void *parameters[64];
    for (size_t i = 0; i < 64; i++)
        parameters[i] = bytes;
    return byte() < 0xf0 ? parameters : NULL;
}

/* Every initial value has one digit, and a byte that is changed makes at most two of it: no byte of
 * a variable is above 0x7f, and streams may wait for it. */
static const char *const programs[] = {
    ".version 7.8\n.target sm_70\n.address_size 64\n"
    ".visible .global .align 4 .u32 word = 7;\n"
    ".visible .const .align 4 .u32 fixed[4] = {1, 2, 3, 4};\n"
    ".visible .global .align 8 .u32 wide[2000];\n"
    ".visible .entry plain()\n{\nret;\n}\n"
    ".visible .entry asks(.param .u64 p, .param .u32 n, .param .align 8 .b8 s[24])\n"
    "{\n.reg .b64 r;\n.shared .align 4 .b8 room[64];\nld.param.u64 r, [p];\nret;\n}\n",
    ".version 8.0\n.target sm_90\n.address_size 64\n"
    ".visible .entry bounded(.param .u32 n)\n.maxntid 128, 1, 1\n{\nret;\n}\n"
    ".visible .entry plain(.param .u32 n)\n.reqntid 64, 1, 1\n.reqnctapercluster 2, 1, 1\n"
    "{\nret;\n}\n"
    ".visible .entry asks()\n.maxclusterrank 8\n{\nret;\n}\n",
    ".version 7.8\n.target sm_70\n.address_size 64\n"
    ".visible .global .attribute(.managed) .align 4 .u32 shared = 9;\n"
    ".visible .global .align 4 .u32 word = 8;\n"
    ".visible .entry plain()\n{\nret;\n}\n",
    ".version 7.8\n.target sm_70\n.address_size 64\n"
    ".global .texref tex_a;\n.global .surfref surf_a;\n"
    ".visible .entry plain() { ret; }\n",
    ".version 7.8\n.target sm_70\n.address_size 64\n"
    ".visible .func (.param .b32 result) given(.param .b32 a)\n{\nret;\n}\n"
    ".visible .global .align 4 .u32 word = 5;\n",
    ".version 7.8\n.target sm_70\n.address_size 64\n"
    ".extern .func (.param .b32 result) given(.param .b32 a);\n"
    ".extern .global .align 4 .u32 word;\n"
    ".visible .entry asks(.param .u32 n)\n{\nret;\n}\n",
};

char *draw_program(void) {
    static char text[2048];
    unsigned pick = byte();
    strncpy(text, programs[pick % (sizeof programs / sizeof programs[0])], sizeof text - 1);
    size_t length = strlen(text);
    for (unsigned i = 0; pick >= 0xc0 && i < 1 + (pick & 1); i++) {
        size_t at = (byte() | (size_t)byte() << 8) % length;
        /* Neither another kind of image nor two numbers that become one. */
        unsigned char with = byte() & 0x7f;
        if (at >= 8 && !(with >= '0' && with <= '9' && text[at] == ','))
            text[at] = (char)with;
    }
    return text;
}
