"""cuda.bindings, the driver's functions one by one: the same program for its 12.9 and 13.x wheels."""
import ctypes
import multiprocessing
import os

from cuda.bindings import driver as cu
import cuda.bindings

import images
from tap import expect, expect_equal, main

VERSION = tuple(int(part) for part in cuda.bindings.__version__.split(".")[:2])
GRANULARITY = 2 << 20


def ok(answer):
    """The outputs of a call that must succeed: none, one, or a tuple."""
    result, *rest = answer
    expect(result == cu.CUresult.CUDA_SUCCESS, f"{result}")
    return rest[0] if len(rest) == 1 else tuple(rest)


def refused(answer, wanted):
    expect_equal(answer[0], wanted)


def begin():
    ok(cu.cuInit(0))
    device = ok(cu.cuDeviceGet(0))
    context = ok(cu.cuDevicePrimaryCtxRetain(device))
    ok(cu.cuCtxSetCurrent(context))
    return device


def fill(pointer, data):
    ok(cu.cuMemcpyHtoD(pointer, data, len(data)))


def read(pointer, size):
    data = bytearray(size)
    ok(cu.cuMemcpyDtoH(data, pointer, size))
    return bytes(data)


def test_device_properties_are_queried():
    device = begin()
    expect(ok(cu.cuDeviceGetCount()) >= 1)
    expect_equal(ok(cu.cuDeviceGetName(64, device)).split(b"\0")[0], b"NVIDIA H200")
    expect(ok(cu.cuDeviceTotalMem(device)) > 0)
    expect(ok(cu.cuDriverGetVersion()) >= 12000)
    name = cu.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
    expect_equal(ok(cu.cuDeviceGetAttribute(name, device)), 9)
    expect_equal(ok(cu.cuGetErrorName(cu.CUresult.CUDA_ERROR_INVALID_VALUE)),
                 b"CUDA_ERROR_INVALID_VALUE")


def test_copies_and_memsets_move_bytes():
    begin()
    data = bytes(range(256)) * 16
    first, second = ok(cu.cuMemAlloc(4096)), ok(cu.cuMemAlloc(4096))
    fill(first, data)
    ok(cu.cuMemcpyDtoD(second, first, 4096))
    expect_equal(read(second, 4096), data)
    ok(cu.cuMemsetD32(second, 0x01020304, 1024))
    expect_equal(read(second, 4), b"\x04\x03\x02\x01")
    for pointer in first, second:
        ok(cu.cuMemFree(pointer))
    refused(cu.cuMemAlloc(0), cu.CUresult.CUDA_ERROR_INVALID_VALUE)


def test_pools_allocate_in_stream_order():
    device = begin()
    stream = ok(cu.cuStreamCreate(cu.CUstream_flags.CU_STREAM_NON_BLOCKING))
    pool = ok(cu.cuDeviceGetDefaultMemPool(device))
    pointer = ok(cu.cuMemAllocFromPoolAsync(1 << 20, pool, stream))
    ok(cu.cuMemsetD8Async(pointer, 7, 1 << 20, stream))
    ok(cu.cuStreamSynchronize(stream))
    expect_equal(read(pointer, 3), b"\7\7\7")
    used = cu.CUmemPool_attribute.CU_MEMPOOL_ATTR_USED_MEM_CURRENT
    expect_equal(int(ok(cu.cuMemPoolGetAttribute(pool, used))), 1 << 20)
    ok(cu.cuMemFreeAsync(pointer, stream))
    ok(cu.cuStreamSynchronize(stream))
    ok(cu.cuMemPoolTrimTo(pool, 0))
    ok(cu.cuStreamDestroy(stream))


def vmm_property(device, handle=None):
    prop = cu.CUmemAllocationProp()
    prop.type = cu.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    prop.location.type = cu.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    prop.location.id = int(device)
    if handle is not None:
        prop.requestedHandleTypes = handle
    return prop


def access(device):
    desc = cu.CUmemAccessDesc()
    desc.location.type = cu.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    desc.location.id = int(device)
    desc.flags = cu.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
    return desc


def test_a_mapped_range_grows_in_place():
    device = begin()
    base = ok(cu.cuMemAddressReserve(8 * GRANULARITY, 0, cu.CUdeviceptr(0), 0))
    for step in range(4):
        handle = ok(cu.cuMemCreate(GRANULARITY, vmm_property(device), 0))
        at = cu.CUdeviceptr(int(base) + step * GRANULARITY)
        ok(cu.cuMemMap(at, GRANULARITY, 0, handle, 0))
        ok(cu.cuMemSetAccess(at, GRANULARITY, [access(device)], 1))
        ok(cu.cuMemRelease(handle))
        fill(at, bytes([step + 1]) * 64)
    for step in range(4):
        expect_equal(read(cu.CUdeviceptr(int(base) + step * GRANULARITY), 64),
                     bytes([step + 1]) * 64)
    ok(cu.cuMemUnmap(base, 4 * GRANULARITY))
    ok(cu.cuMemAddressFree(base, 8 * GRANULARITY))


def test_pinned_memory_is_visible_to_the_device():
    begin()
    host = ok(cu.cuMemHostAlloc(4096, cu.CU_MEMHOSTALLOC_DEVICEMAP))
    view = (ctypes.c_ubyte * 4096).from_address(int(host))
    view[:] = bytes(4095) + b"\x2a"
    mapped = ok(cu.cuMemHostGetDevicePointer(host, 0))
    expect_equal(read(mapped, 4096)[-1], 0x2a)
    ok(cu.cuMemFreeHost(host))


def test_managed_memory_is_shared_and_prefetched():
    device = begin()
    flag = cu.CUmemAttach_flags.CU_MEM_ATTACH_GLOBAL.value
    pointer = ok(cu.cuMemAllocManaged(1 << 20, flag))
    view = (ctypes.c_ubyte * (1 << 20)).from_address(int(pointer))
    view[5] = 99
    expect_equal(read(pointer, 6)[5], 99)
    ok(cu.cuMemsetD8(pointer, 3, 1 << 20))
    expect_equal(view[(1 << 20) - 1], 3)
    stream = ok(cu.cuStreamCreate(0))
    if VERSION >= (13, 0):
        place = cu.CUmemLocation()
        place.type = cu.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
        place.id = int(device)
        ok(cu.cuMemPrefetchAsync(pointer, 1 << 20, place, 0, stream))
    else:
        ok(cu.cuMemPrefetchAsync(pointer, 1 << 20, device, stream))
    ok(cu.cuStreamSynchronize(stream))
    last = cu.CUmem_range_attribute.CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION
    expect_equal(int(ok(cu.cuMemRangeGetAttribute(4, last, pointer, 1 << 20))), int(device))
    ok(cu.cuStreamDestroy(stream))
    ok(cu.cuMemFree(pointer))


def test_events_measure_elapsed_time():
    begin()
    stream = ok(cu.cuStreamCreate(cu.CUstream_flags.CU_STREAM_NON_BLOCKING))
    first, second = ok(cu.cuEventCreate(0)), ok(cu.cuEventCreate(0))
    ok(cu.cuEventRecord(first, stream))
    pointer = ok(cu.cuMemAlloc(1 << 20))
    ok(cu.cuMemsetD8Async(pointer, 1, 1 << 20, stream))
    ok(cu.cuEventRecord(second, stream))
    ok(cu.cuEventSynchronize(second))
    expect(ok(cu.cuEventElapsedTime(first, second)) >= 0)
    ok(cu.cuMemFree(pointer))


def test_an_explicitly_built_graph_runs():
    begin()
    graph = ok(cu.cuGraphCreate(0))
    pointer = ok(cu.cuMemAlloc(4096))
    params = cu.CUDA_MEMSET_NODE_PARAMS()
    params.dst = pointer
    params.value = 0x11
    params.elementSize = 1
    params.width = 4096
    params.height = 1
    context = ok(cu.cuCtxGetCurrent())
    ok(cu.cuMemsetD8(pointer, 0, 4096))
    node = ok(cu.cuGraphAddMemsetNode(graph, None, 0, params, context))
    after = ok(cu.cuGraphAddEmptyNode(graph, [node], 1))
    expect_equal(ok(cu.cuGraphNodeGetType(after)), cu.CUgraphNodeType.CU_GRAPH_NODE_TYPE_EMPTY)
    executable = ok(cu.cuGraphInstantiate(graph, 0))
    stream = ok(cu.cuStreamCreate(0))
    expect_equal(read(pointer, 1), b"\0")
    ok(cu.cuGraphLaunch(executable, stream))
    ok(cu.cuStreamSynchronize(stream))
    expect_equal(read(pointer, 4096), b"\x11" * 4096)
    ok(cu.cuGraphExecDestroy(executable))
    ok(cu.cuGraphDestroy(graph))
    ok(cu.cuMemFree(pointer))


def test_a_captured_graph_runs():
    begin()
    stream = ok(cu.cuStreamCreate(cu.CUstream_flags.CU_STREAM_NON_BLOCKING))
    pointer = ok(cu.cuMemAlloc(4096))
    ok(cu.cuMemsetD8(pointer, 0, 4096))
    mode = cu.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_GLOBAL
    ok(cu.cuStreamBeginCapture(stream, mode))
    ok(cu.cuMemsetD8Async(pointer, 5, 2048, stream))
    ok(cu.cuMemsetD8Async(cu.CUdeviceptr(int(pointer) + 2048), 6, 2048, stream))
    graph = ok(cu.cuStreamEndCapture(stream))
    executable = ok(cu.cuGraphInstantiate(graph, 0))
    expect_equal(read(pointer, 1), b"\0")
    ok(cu.cuGraphLaunch(executable, stream))
    ok(cu.cuStreamSynchronize(stream))
    expect_equal(read(pointer, 4096), b"\5" * 2048 + b"\6" * 2048)
    ok(cu.cuGraphExecDestroy(executable))
    ok(cu.cuGraphDestroy(graph))
    ok(cu.cuMemFree(pointer))


def test_a_module_and_its_functions_are_loaded():
    begin()
    module = ok(cu.cuModuleLoadData(images.TEXT.encode() + b"\0"))
    function = ok(cu.cuModuleGetFunction(module, b"add"))
    expect_equal(ok(cu.cuFuncGetName(function)), b"add")
    expect_equal([ok(cu.cuFuncGetParamInfo(function, i)) for i in range(4)],
                 [(0, 8), (8, 8), (16, 4), (32, 32)])
    address, size = ok(cu.cuModuleGetGlobal(module, b"counter"))
    expect_equal(size, 4)
    expect_equal(read(address, 4), (41).to_bytes(4, "little"))
    refused(cu.cuModuleGetFunction(module, b"missing"), cu.CUresult.CUDA_ERROR_NOT_FOUND)
    ok(cu.cuModuleUnload(module))


def test_a_kernel_is_launched():
    begin()
    module = ok(cu.cuModuleLoadData(images.TEXT.encode() + b"\0"))
    function = ok(cu.cuModuleGetFunction(module, b"count"))
    address, size = ok(cu.cuModuleGetGlobal(module, b"counter"))
    ok(cu.cuLaunchKernel(function, 2, 1, 1, 32, 1, 1, 0, 0, 0, 0))
    expect_equal(read(address, size), (41 + 64).to_bytes(4, "little"))
    ok(cu.cuModuleUnload(module))


def test_an_unsupported_kernel_is_refused_at_launch():
    """On softgpu; hardware runs it."""
    begin()
    module = ok(cu.cuModuleLoadData(images.REFUSED.encode() + b"\0"))
    function = ok(cu.cuModuleGetFunction(module, b"fences"))
    refused(cu.cuLaunchKernel(function, 1, 1, 1, 128, 1, 1, 0, 0, 0, 0),
            cu.CUresult.CUDA_ERROR_NOT_SUPPORTED)
    ok(cu.cuModuleUnload(module))


def test_a_library_and_its_kernels_are_loaded():
    begin()
    library = ok(cu.cuLibraryLoadData(images.TEXT.encode() + b"\0", [], [], 0, [], [], 0))
    kernel = ok(cu.cuLibraryGetKernel(library, b"nothing"))
    expect(int(ok(cu.cuKernelGetFunction(kernel))) != 0)
    address, size = ok(cu.cuLibraryGetGlobal(library, b"table"))
    expect_equal((size, read(address, 32)[8]), (32, 2))
    ok(cu.cuLibraryUnload(library))


def test_arrays_and_textures_are_created():
    begin()
    desc = cu.CUDA_ARRAY_DESCRIPTOR()
    desc.Width, desc.Height, desc.NumChannels = 16, 8, 1
    desc.Format = cu.CUarray_format.CU_AD_FORMAT_FLOAT
    array = ok(cu.cuArrayCreate(desc))
    data = bytes(range(64)) * 8
    copy = cu.CUDA_MEMCPY2D()
    copy.srcMemoryType = cu.CUmemorytype.CU_MEMORYTYPE_HOST
    copy.srcHost = data
    copy.srcPitch = 64
    copy.dstMemoryType = cu.CUmemorytype.CU_MEMORYTYPE_ARRAY
    copy.dstArray = array
    copy.WidthInBytes, copy.Height = 64, 8
    ok(cu.cuMemcpy2D(copy))
    back = bytearray(64)
    ok(cu.cuMemcpyAtoH(back, array, 0, 64))
    expect_equal(bytes(back), data[:64])
    resource = cu.CUDA_RESOURCE_DESC()
    resource.resType = cu.CUresourcetype.CU_RESOURCE_TYPE_ARRAY
    resource.res.array.hArray = array
    texture = ok(cu.cuTexObjectCreate(resource, cu.CUDA_TEXTURE_DESC(), None))
    got = ok(cu.cuTexObjectGetResourceDesc(texture))
    expect_equal(int(got.res.array.hArray), int(array))
    ok(cu.cuTexObjectDestroy(texture))
    ok(cu.cuArrayDestroy(array))


def import_legacy(raw, answers):
    begin()
    handle = cu.CUipcMemHandle()
    ctypes.memmove(handle.getPtr(), raw, len(raw))
    flags = cu.CUipcMem_flags.CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS.value
    pointer = ok(cu.cuIpcOpenMemHandle(handle, flags))
    answers.put(read(pointer, 64))
    ok(cu.cuMemsetD8(pointer, 0x77, 64))
    ok(cu.cuIpcCloseMemHandle(pointer))


def test_memory_is_shared_with_a_spawned_process():
    begin()
    pointer = ok(cu.cuMemAlloc(1 << 20))
    fill(pointer, b"\x33" * 64)
    handle = ok(cu.cuIpcGetMemHandle(pointer))
    spawn = multiprocessing.get_context("spawn")
    answers = spawn.Queue()
    child = spawn.Process(target=import_legacy, args=(ctypes.string_at(handle.getPtr(), 64), answers))
    child.start()
    expect_equal(answers.get(timeout=30), b"\x33" * 64)
    child.join(30)
    expect_equal(child.exitcode, 0)
    expect_equal(read(pointer, 64), b"\x77" * 64)
    ok(cu.cuMemFree(pointer))


def test_memory_is_exported_and_imported_by_descriptor():
    device = begin()
    kind = cu.CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
    handle = ok(cu.cuMemCreate(GRANULARITY, vmm_property(device, kind), 0))
    fd = int(ok(cu.cuMemExportToShareableHandle(handle, kind, 0)))
    again = ok(cu.cuMemImportFromShareableHandle(fd, kind))
    os.close(fd)
    for each in handle, again:
        ok(cu.cuMemRelease(each))


def test_a_tensor_map_is_encoded():
    begin()
    pointer = ok(cu.cuMemAlloc(1 << 20))
    tensor = ok(cu.cuTensorMapEncodeTiled(
        cu.CUtensorMapDataType.CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, pointer,
        [cu.cuuint64_t(64), cu.cuuint64_t(64)], [cu.cuuint64_t(256)],
        [cu.cuuint32_t(16), cu.cuuint32_t(16)], [cu.cuuint32_t(1), cu.cuuint32_t(1)],
        cu.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
        cu.CUtensorMapSwizzle.CU_TENSOR_MAP_SWIZZLE_NONE,
        cu.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_NONE,
        cu.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE))
    expect(int(tensor.opaque[0]) == int(pointer))
    ok(cu.cuMemFree(pointer))


def test_a_green_context_allocates_memory():
    device = begin()
    whole = ok(cu.cuDeviceGetDevResource(device, cu.CUdevResourceType.CU_DEV_RESOURCE_TYPE_SM))
    expect(whole.sm.smCount > 16)
    groups, count, _rest = ok(cu.cuDevSmResourceSplitByCount(1, whole, 0, 16))
    expect_equal(int(count), 1)
    desc = ok(cu.cuDevResourceGenerateDesc(groups, 1))
    flag = cu.CUgreenCtxCreate_flags.CU_GREEN_CTX_DEFAULT_STREAM
    green = ok(cu.cuGreenCtxCreate(desc, device, flag))
    context = ok(cu.cuCtxFromGreenCtx(green))
    before = ok(cu.cuCtxGetCurrent())
    ok(cu.cuCtxSetCurrent(context))
    pointer = ok(cu.cuMemAlloc(4096))
    ok(cu.cuMemFree(pointer))
    ok(cu.cuCtxSetCurrent(before))
    ok(cu.cuGreenCtxDestroy(green))


def test_every_function_of_the_wheel_is_in_the_driver():
    """What the wheel asks of the driver: each function is there, or is refused with an error."""
    begin()
    missing = [name for name in dir(cu) if name.startswith("cu") and name[2:3].isupper()
               and name not in ("cuGetProcAddress",)
               and cu.cuGetProcAddress(name.encode(), 12000, 0)[0] != cu.CUresult.CUDA_SUCCESS
               and cu.cuGetProcAddress(name.encode(), VERSION[0] * 1000 + VERSION[1] * 10, 0)[0]
               != cu.CUresult.CUDA_SUCCESS]
    unexpected = [name for name in missing if not name.startswith(("cuGL", "cuVDPAU", "cuEGL",
                                                                   "cuGraphicsEGL",
                                                                   "cuEventCreateFromEGLSync",
                                                                   "cuGraphicsVDPAU"))]
    driver = ok(cu.cuDriverGetVersion())
    if unexpected and driver < VERSION[0] * 1000 + VERSION[1] * 10:
        print(f"# not in this driver ({driver}): {' '.join(unexpected)}")
        return
    expect_equal(unexpected, [])


if __name__ == "__main__":
    print(f"# cuda.bindings {cuda.bindings.__version__}")
    main(globals())
