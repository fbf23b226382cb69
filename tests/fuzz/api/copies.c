/* Copies and sets. */
#include "world.h"

static void copy(void) {
    size_t to_room, from_room;
    CUdeviceptr to = draw_address(&to_room), from = draw_address(&from_room);
    size_t size = draw_length(to_room, from_room);
    if (byte() & 1)
        cuMemcpyAsync(to, from, size, STREAM());
    else
        cuMemcpy(to, from, size);
}

static void copy_to_device(void) {
    size_t room;
    const void *from = draw_host(&room);
    CUdeviceptr to = draw_any_address();
    size_t size = draw_length(room, room);
    if (byte() & 1)
        cuMemcpyHtoDAsync_v2(to, from, size, STREAM());
    else
        cuMemcpyHtoD_v2(to, from, size);
}

static void copy_to_host(void) {
    size_t room;
    void *to = draw_host(&room);
    CUdeviceptr from = draw_any_address();
    size_t size = draw_length(room, room);
    if (byte() & 1)
        cuMemcpyDtoHAsync_v2(to, from, size, STREAM());
    else
        cuMemcpyDtoH_v2(to, from, size);
}

static void copy_on_device(void) {
    CUdeviceptr to = draw_any_address(), from = draw_any_address();
    switch (byte() & 3) {
    case 0:
        cuMemcpyDtoD_v2(to, from, draw_size());
        break;
    case 1:
        cuMemcpyDtoDAsync_v2(to, from, draw_size(), STREAM());
        break;
    case 2:
        cuMemcpyPeer(to, CTX(), from, CTX(), draw_size());
        break;
    default:
        cuMemcpyPeerAsync(to, CTX(), from, CTX(), draw_size(), STREAM());
        break;
    }
}

/* What stays within the arena from its first quarter, where draw_host begins. */
static CUmemorytype memory_type(bool host) {
    unsigned pick = byte();
    if (pick >= 0xf0)
        return (CUmemorytype)(host ? CU_MEMORYTYPE_ARRAY : pick & 3);
    if (host)
        return CU_MEMORYTYPE_HOST;
    return pick & 1 ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_UNIFIED;
}

static void copy_2d(void) {
    size_t room;
    bool host_source = byte() & 1, host_target = byte() & 1, wild = byte() >= 0xe0;
    CUDA_MEMCPY2D box = {
        .srcXInBytes = draw_little(256),
        .srcY = draw_little(16),
        .srcHost = draw_host(&room),
        .srcDevice = host_source ? 0 : draw_address(&room),
        .srcPitch = draw_little(256) * 2,
        .dstXInBytes = draw_little(256),
        .dstY = draw_little(16),
        .dstHost = draw_host(&room),
        .dstDevice = host_target ? 0 : draw_address(&room),
        .dstPitch = draw_little(256) * 2,
        .WidthInBytes = draw_little(256),
        .Height = draw_little(32),
    };
    box.srcMemoryType = memory_type(host_source);
    box.dstMemoryType = memory_type(host_target);
    if (box.srcMemoryType == CU_MEMORYTYPE_HOST || box.dstMemoryType == CU_MEMORYTYPE_HOST)
        wild = false;
    if (wild) { /* then no end may be taken for the program's own memory */
        box.srcMemoryType = box.dstMemoryType = CU_MEMORYTYPE_DEVICE;
        box.srcDevice = draw_any_address();
        box.dstDevice = draw_any_address();
        box.srcPitch = draw_size();
        box.dstY = draw_size();
        box.Height = draw_size();
    }
    switch (byte() & 3) {
    case 0:
        cuMemcpy2D_v2(maybe(&box));
        break;
    case 1:
        cuMemcpy2DUnaligned_v2(&box);
        break;
    default:
        cuMemcpy2DAsync_v2(&box, STREAM());
        break;
    }
}

static void copy_3d(void) {
    size_t room;
    bool host_source = byte() & 1, host_target = byte() & 1;
    CUDA_MEMCPY3D box = {
        .srcXInBytes = draw_little(256),
        .srcY = draw_little(16),
        .srcZ = draw_little(4),
        .srcHost = draw_host(&room),
        .srcDevice = host_source ? 0 : draw_address(&room),
        .srcPitch = draw_little(256) * 2,
        .srcHeight = draw_little(32),
        .dstXInBytes = draw_little(256),
        .dstY = draw_little(16),
        .dstZ = draw_little(4),
        .dstHost = draw_host(&room),
        .dstDevice = host_target ? 0 : draw_address(&room),
        .dstPitch = draw_little(256) * 2,
        .dstHeight = draw_little(32),
        .WidthInBytes = draw_little(256),
        .Height = draw_little(32),
        .Depth = draw_little(4),
    };
    box.srcMemoryType = memory_type(host_source);
    box.dstMemoryType = memory_type(host_target);
    if (byte() & 1)
        cuMemcpy3DAsync_v2(maybe(&box), STREAM());
    else
        cuMemcpy3D_v2(maybe(&box));
}

static void copy_batch(void) {
    CUdeviceptr to[4], from[4];
    size_t sizes[4], indices[4];
    CUmemcpyAttributes attributes[4];
    for (unsigned i = 0; i < 4; i++) {
        size_t to_room, from_room;
        to[i] = draw_address(&to_room);
        from[i] = draw_address(&from_room);
        sizes[i] = draw_length(to_room, from_room);
        indices[i] = byte() & 1 ? i : byte();
        attributes[i] = (CUmemcpyAttributes){.srcAccessOrder = (CUmemcpySrcAccessOrder)(byte() & 3),
                                             .flags = byte() < 0xf0 ? 0 : byte()};
    }
    cuMemcpyBatchAsync_v2(maybe(to), maybe(from), maybe(sizes), byte() % 5, maybe(attributes),
                          maybe(indices), byte() % 5, STREAM());
}

static CUmemcpy3DOperand operand(void) {
    size_t room;
    CUmemcpy3DOperand end = {.type = CU_MEMCPY_OPERAND_TYPE_POINTER};
    end.op.ptr.ptr = draw_address(&room);
    end.op.ptr.rowLength = draw_little(256);
    end.op.ptr.layerHeight = draw_little(32);
    if (byte() >= 0xf8)
        end.type = (CUmemcpy3DOperandType)byte();
    return end;
}

static void copy_3d_batch(void) {
    CUDA_MEMCPY3D_BATCH_OP ops[2];
    for (unsigned i = 0; i < 2; i++)
        ops[i] = (CUDA_MEMCPY3D_BATCH_OP){
            .src = operand(),
            .dst = operand(),
            .extent = {draw_little(256), draw_little(32), draw_little(4)},
            .srcAccessOrder = (CUmemcpySrcAccessOrder)(byte() & 3),
        };
    cuMemcpy3DBatchAsync_v2(byte() % 3, maybe(ops), byte() < 0xf0 ? 0 : byte(), STREAM());
}

static void set(void) {
    CUdeviceptr to = draw_any_address();
    uint64_t pattern = draw_pattern();
    CUstream stream = STREAM();
    switch (byte() % 6) {
    case 0:
        cuMemsetD8_v2(to, (unsigned char)pattern, draw_size());
        break;
    case 1:
        cuMemsetD16_v2(to, (unsigned short)pattern, draw_size());
        break;
    case 2:
        cuMemsetD32_v2(to, (unsigned)pattern, draw_size());
        break;
    case 3:
        cuMemsetD8Async(to, (unsigned char)pattern, draw_size(), stream);
        break;
    case 4:
        cuMemsetD16Async(to, (unsigned short)pattern, draw_size(), stream);
        break;
    default:
        cuMemsetD32Async(to, (unsigned)pattern, draw_size(), stream);
        break;
    }
}

static void set_2d(void) {
    CUdeviceptr to = draw_any_address();
    uint64_t pattern = draw_pattern();
    bool wild = byte() >= 0xe0;
    size_t pitch = wild ? draw_size() : draw_little(256) * 4,
           width = wild ? draw_size() : draw_little(256);
    size_t height = wild ? draw_size() : draw_little(256);
    switch (byte() % 4) {
    case 0:
        cuMemsetD2D8_v2(to, pitch, (unsigned char)pattern, width, height);
        break;
    case 1:
        cuMemsetD2D16_v2(to, pitch, (unsigned short)pattern, width, height);
        break;
    case 2:
        cuMemsetD2D32_v2(to, pitch, (unsigned)pattern, width, height);
        break;
    default:
        cuMemsetD2D32Async(to, pitch, (unsigned)pattern, width, height, STREAM());
        break;
    }
}

static const call_fn list[] = {
    copy,       copy_to_device, copy_to_host, copy_on_device, copy_2d, copy_3d,
    copy_batch, copy_3d_batch,  set,          set_2d,
};
const struct calls copy_calls = {list, sizeof list / sizeof list[0]};
