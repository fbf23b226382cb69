/* Arrays, levels of mipmaps, sparse ones and their tiles, and copies with them. */
#include "world.h"

#define ARRAY()  OF(CUarray, ARRAYS)
#define MIPMAP() OF(CUmipmappedArray, MIPMAPS)

static void made(CUarray array) {
    remember(ARRAYS, (uintptr_t)array);
}

static void create(void) {
    CUarray array = NULL;
    CUDA_ARRAY3D_DESCRIPTOR shape = draw_shape();
    CUDA_ARRAY_DESCRIPTOR flat = {shape.Width, shape.Height, shape.Format, shape.NumChannels};
    if (byte() & 1)
        cuArray3DCreate_v2(maybe(&array), maybe(&shape));
    else
        cuArrayCreate_v2(maybe(&array), maybe(&flat));
    made(array);
}

static void destroy(void) {
    if (byte() & 1)
        cuArrayDestroy(ARRAY());
    else
        cuMipmappedArrayDestroy(MIPMAP());
}

static void create_mipmap(void) {
    CUmipmappedArray mipmap = NULL;
    CUDA_ARRAY3D_DESCRIPTOR shape = draw_shape();
    cuMipmappedArrayCreate(maybe(&mipmap), maybe(&shape), byte() < 0xf0 ? byte() & 7 : byte());
    remember(MIPMAPS, (uintptr_t)mipmap);
}

static void parts(void) {
    CUarray array = NULL;
    if (byte() & 1)
        cuMipmappedArrayGetLevel(maybe(&array), MIPMAP(), byte() & 7);
    else
        cuArrayGetPlane(maybe(&array), ARRAY(), byte() & 3);
    made(array);
}

static void questions(void) {
    CUDA_ARRAY3D_DESCRIPTOR shape;
    CUDA_ARRAY_DESCRIPTOR flat;
    CUDA_ARRAY_MEMORY_REQUIREMENTS needs;
    CUDA_ARRAY_SPARSE_PROPERTIES sparse;
    cuArray3DGetDescriptor_v2(maybe(&shape), ARRAY());
    cuArrayGetDescriptor_v2(maybe(&flat), ARRAY());
    cuArrayGetMemoryRequirements(maybe(&needs), ARRAY(), draw_device());
    cuMipmappedArrayGetMemoryRequirements(maybe(&needs), MIPMAP(), draw_device());
    cuArrayGetSparseProperties(maybe(&sparse), ARRAY());
    cuMipmappedArrayGetSparseProperties(maybe(&sparse), MIPMAP());
}

static CUarrayMapInfo draw_map(void) {
    unsigned pick = byte();
    CUarrayMapInfo map = {
        .resourceType = pick & 1 ? CU_RESOURCE_TYPE_ARRAY : CU_RESOURCE_TYPE_MIPMAPPED_ARRAY,
        .memOperationType = (CUmemOperationType)(pick & 2 ? 1 : 2),
        .memHandleType = pick < 0xf0 ? CU_MEM_HANDLE_TYPE_GENERIC : (CUmemHandleType)1,
        .deviceBitMask = 1u << (pick >> 2 & 1),
        .offset = byte() < 0xc0 ? 0 : draw_size(),
    };
    map.memHandle.memHandle = pick >= 0xc0 ? 0 : HANDLE();
    if (pick & 1)
        map.resource.array = ARRAY();
    else
        map.resource.mipmap = MIPMAP();
    if (byte() & 3) {
        map.subresourceType = CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_SPARSE_LEVEL;
        map.subresource.sparseLevel.level = byte() & 3;
        map.subresource.sparseLevel.layer = byte() < 0xc0 ? 0 : byte();
        map.subresource.sparseLevel.offsetX = (byte() & 3) * 64u;
        map.subresource.sparseLevel.extentWidth = (byte() & 7) * 64u;
        map.subresource.sparseLevel.extentHeight = (byte() & 7) * 32u;
        map.subresource.sparseLevel.extentDepth = byte() & 3;
        if (byte() >= 0xf0)
            map.subresource.sparseLevel.offsetY = draw32(&world.input);
    } else {
        map.subresourceType = CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL;
        map.subresource.miptail.layer = byte() < 0xc0 ? 0 : byte();
        map.subresource.miptail.size = draw_size();
    }
    return map;
}

static void map_tiles(void) {
    CUarrayMapInfo maps[2] = {draw_map(), draw_map()};
    cuMemMapArrayAsync(maybe(maps), 1 + (byte() & 1), STREAM());
}

static void copy_box(void) {
    CUDA_MEMCPY3D box = draw_box();
    if (byte() & 1)
        cuMemcpy3D_v2(&box);
    else
        cuMemcpy3DAsync_v2(&box, STREAM());
}

static void copy_flat_box(void) {
    CUDA_MEMCPY3D box = draw_box();
    CUDA_MEMCPY2D flat = {
        .srcXInBytes = box.srcXInBytes,
        .srcY = box.srcY,
        .srcMemoryType = box.srcMemoryType,
        .srcHost = box.srcHost,
        .srcDevice = box.srcDevice,
        .srcArray = box.srcArray,
        .srcPitch = box.srcPitch,
        .dstXInBytes = box.dstXInBytes,
        .dstY = box.dstY,
        .dstMemoryType = box.dstMemoryType,
        .dstHost = box.dstHost,
        .dstDevice = box.dstDevice,
        .dstArray = box.dstArray,
        .dstPitch = box.dstPitch,
        .WidthInBytes = box.WidthInBytes,
        .Height = box.Height,
    };
    if (byte() & 1)
        cuMemcpy2DUnaligned_v2(&flat);
    else
        cuMemcpy2DAsync_v2(&flat, STREAM());
}

static void copy_line(void) {
    size_t room, offset = byte() < 0xe0 ? byte() : draw_size();
    void *host = draw_host(&room);
    size_t size = draw_length(room, room);
    switch (byte() % 7) {
    case 0:
        cuMemcpyHtoA_v2(ARRAY(), offset, host, size);
        break;
    case 1:
        cuMemcpyAtoH_v2(host, ARRAY(), offset, size);
        break;
    case 2:
        cuMemcpyHtoAAsync_v2(ARRAY(), offset, host, size, STREAM());
        break;
    case 3:
        cuMemcpyAtoHAsync_v2(host, ARRAY(), offset, size, STREAM());
        break;
    case 4:
        cuMemcpyAtoD_v2(draw_any_address(), ARRAY(), offset, size);
        break;
    case 5:
        cuMemcpyDtoA_v2(ARRAY(), offset, draw_any_address(), size);
        break;
    default:
        cuMemcpyAtoA_v2(ARRAY(), offset, ARRAY(), byte(), size);
        break;
    }
}

static CUmemcpy3DOperand draw_operand(void) {
    CUmemcpy3DOperand end = {.type = CU_MEMCPY_OPERAND_TYPE_ARRAY};
    if (byte() < 0x60) {
        size_t room;
        end.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
        end.op.ptr.ptr = draw_address(&room);
        end.op.ptr.rowLength = draw_little(256);
        end.op.ptr.layerHeight = draw_little(32);
        return end;
    }
    end.op.array.array = ARRAY();
    end.op.array.offset.x = byte() < 0xc0 ? 0 : byte();
    end.op.array.offset.y = byte() < 0xc0 ? 0 : byte();
    return end;
}

/* Elements of an array may have 16 bytes: extents small enough for the arena. */
static void copy_batch(void) {
    CUDA_MEMCPY3D_BATCH_OP operation = {
        .src = draw_operand(),
        .dst = draw_operand(),
        .extent = {draw_little(64), draw_little(32), draw_little(4)},
        .srcAccessOrder = (CUmemcpySrcAccessOrder)(byte() & 3),
    };
    cuMemcpy3DBatchAsync_v2(1, &operation, 0, STREAM());
}

static const call_fn list[] = {
    create,    create,   create_mipmap, parts,         destroy,   questions,
    map_tiles, copy_box, copy_box,      copy_flat_box, copy_line, copy_batch,
};
const struct calls array_calls = {list, sizeof list / sizeof list[0]};
