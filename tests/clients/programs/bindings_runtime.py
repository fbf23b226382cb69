"""cuda.bindings.runtime, which has NVIDIA's runtime linked in and calls gpumem's: each function of tiers 1 and 2 that
it has, with what it does. What they answer to wrong arguments is compared for the functions of C (tests/parity/runtime);
that each entry is that function is tried first."""
import ctypes
import importlib
import multiprocessing
import os
import re
import tempfile
from pathlib import Path

import cuda.bindings
from cuda.bindings import driver, runtime

from tap import expect, expect_equal, main

MAJOR = int(cuda.bindings.__version__.split(".", maxsplit=1)[0])
TABLE = Path(__file__).resolve().parents[3] / "src" / "runtime" / "runtime.def"
OUR = ctypes.CDLL(f"{os.environ['GPUMEM_RUNTIME']}/{MAJOR}/libcudart.so.{MAJOR}")
MODULES = ("_bindings.cyruntime", "_bindings.cyruntime_ptds") if MAJOR == 12 else ("_internal.runtime",
                                                                                  "_internal.runtime_ptds")
Error, Kind = runtime.cudaError_t, runtime.cudaMemcpyKind
SIZE = 4096
# `add` adds a number to each of 64 words, and what `step` is for the module.
PTX = b"""
.version 7.0
.target sm_80
.address_size 64
.visible .global .align 4 .u32 step = 5;
.visible .global .attribute(.managed) .align 4 .u32 everywhere;
.visible .entry add(.param .u64 words, .param .u32 more) {
    .reg .u64 %rd<4>; .reg .u32 %r<6>;
    ld.param.u64 %rd1, [words]; ld.param.u32 %r1, [more];
    ld.global.u32 %r2, [step]; add.u32 %r1, %r1, %r2;
    mov.u32 %r3, %tid.x; mul.wide.u32 %rd2, %r3, 4; add.u64 %rd1, %rd1, %rd2;
    ld.global.u32 %r4, [%rd1]; add.u32 %r4, %r4, %r1; st.global.u32 [%rd1], %r4; ret;
}
"""
called = set()


def ask(name, *arguments, error=Error.cudaSuccess):
    """What a function gives besides its error, which must be that one."""
    called.add(name)
    got = getattr(runtime, name)(*arguments)
    expect_equal((name, got[0]), (name, error))
    return got[1] if len(got) == 2 else got[1:]


def location():
    """CUDA 12 takes a device's number where 13 takes a place."""
    place = runtime.cudaMemLocation()
    place.type, place.id = runtime.cudaMemLocationType.cudaMemLocationTypeDevice, 0
    return place


def filled(value, size=SIZE):
    memory = ask("cudaMalloc", size)
    ask("cudaMemset", memory, value, size)
    return memory


def read(memory, size=SIZE):
    data = ctypes.create_string_buffer(size)
    ask("cudaMemcpy", ctypes.addressof(data), memory, size, Kind.cudaMemcpyDeviceToHost)
    return data.raw


def address_of(function):
    return ctypes.cast(function, ctypes.c_void_p).value


def new_library():
    return ask("cudaLibraryLoadData", PTX, [], [], 0, [], [], 0)


def extent(*sizes):
    return runtime.make_cudaExtent(*sizes) if hasattr(runtime, "make_cudaExtent") else filled_struct(
        runtime.cudaExtent, width=sizes[0], height=sizes[1], depth=sizes[2])


def filled_struct(kind, /, **members):
    struct = kind()
    for name, value in members.items():
        setattr(struct, name, value)
    return struct


def bytes_format():
    return ask("cudaCreateChannelDesc", 8, 0, 0, 0, runtime.cudaChannelFormatKind.cudaChannelFormatKindUnsigned)


# ---- The table ------------------------------------------------------------------------------------------------------

def pointer_of(capsule):
    get_name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", ctypes.pythonapi))
    get = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi))
    return get(capsule, get_name(capsule))


def test_each_exported_function_of_both_tables_is_ours():
    for module, twins in zip(MODULES, (("",), ("_ptsz", "_ptds", ""))):
        table = importlib.import_module(f"cuda.bindings.{module}").__pyx_capi__
        for key, capsule in table.items():
            ours = next((getattr(OUR, key[1:] + twin) for twin in twins if hasattr(OUR, key[1:] + twin)), None)
            expect(ours is None or pointer_of(capsule) == ctypes.cast(ours, ctypes.c_void_p).value, f"{module} {key}")
            expect(ours is not None or not key.startswith("_cuda"), f"{module} {key} is not exported")
        expect(len(table) > 290, f"{module} has {len(table)}")


# ---- Devices --------------------------------------------------------------------------------------------------------

def test_devices_and_versions():
    expect_equal(ask("cudaGetDeviceCount"), 2)
    ask("cudaSetDevice", 0)
    expect_equal(ask("cudaGetDevice"), 0)
    expect_equal(ask("cudaRuntimeGetVersion"), 12090 if MAJOR == 12 else 13050)
    expect_equal(ask("cudaDriverGetVersion"), driver.cuDriverGetVersion()[1])
    properties = ask("cudaGetDeviceProperties", 0)
    expect_equal((properties.name, properties.major, properties.minor), (b"NVIDIA H200", 9, 0))
    attribute = runtime.cudaDeviceAttr.cudaDevAttrMultiProcessorCount
    expect_equal(ask("cudaDeviceGetAttribute", attribute, 0), properties.multiProcessorCount)
    bus = ask("cudaDeviceGetPCIBusId", 13, 0)
    expect_equal(runtime.cudaDeviceGetByPCIBusId(bus)[1], 0)
    least, greatest = ask("cudaDeviceGetStreamPriorityRange")
    expect(least == 0 and greatest < 0, f"{least} {greatest}")
    free, total = ask("cudaMemGetInfo")
    expect(0 < free <= total, f"{free} {total}")
    ask("cudaDeviceSetLimit", runtime.cudaLimit.cudaLimitStackSize, 2048)
    expect_equal(runtime.cudaDeviceGetLimit(runtime.cudaLimit.cudaLimitStackSize)[1], 2048)
    ask("cudaCtxResetPersistingL2Cache")
    ask("cudaDeviceSynchronize")
    ask("cudaProfilerStart")
    ask("cudaProfilerStop")


def test_errors_are_kept_until_they_are_read():
    ask("cudaGetDeviceProperties", 9, error=Error.cudaErrorInvalidDevice)
    ask("cudaPeekAtLastError", error=Error.cudaErrorInvalidDevice)
    ask("cudaGetLastError", error=Error.cudaErrorInvalidDevice)
    ask("cudaGetLastError")
    expect_equal(ask("cudaGetErrorName", Error.cudaErrorInvalidValue), b"cudaErrorInvalidValue")
    expect_equal(ask("cudaGetErrorString", Error.cudaErrorInvalidValue), b"invalid argument")


def test_the_drivers_functions_are_found():
    for name, more in (("cudaGetDriverEntryPoint", ()), ("cudaGetDriverEntryPointByVersion", (12000,))):
        if hasattr(runtime, name):
            address, status = ask(name, b"cuMemAlloc", *more, 0)
            expect(address and status == runtime.cudaDriverEntryPointQueryResult.cudaDriverEntryPointSuccess, name)


def test_peers():
    expect_equal(ask("cudaDeviceCanAccessPeer", 0, 1), 1)
    expect_equal(ask("cudaDeviceGetP2PAttribute", runtime.cudaDeviceP2PAttr.cudaDevP2PAttrAccessSupported, 0, 1), 1)
    ask("cudaSetDevice", 1)
    there = filled(0)
    ask("cudaSetDevice", 0)
    ask("cudaDeviceEnablePeerAccess", 1, 0)
    here = filled(7)
    ask("cudaMemcpyPeer", there, 1, here, 0, SIZE)
    ask("cudaMemcpyPeerAsync", here, 0, there, 1, SIZE, 0)
    expect_equal(read(there), b"\7" * SIZE)
    pitched = [filled_struct(runtime.cudaPitchedPtr, ptr=memory, pitch=64, xsize=64, ysize=64)
               for memory in (here, there)]
    copy = filled_struct(runtime.cudaMemcpy3DPeerParms, srcPtr=pitched[0], dstPtr=pitched[1], srcDevice=0, dstDevice=1,
                         extent=extent(64, 64, 1))
    ask("cudaMemset", here, 8, SIZE)
    ask("cudaMemcpy3DPeer", copy)
    expect_equal(read(there), b"\x08" * SIZE)
    ask("cudaMemcpy3DPeerAsync", copy, 0)
    ask("cudaDeviceDisablePeerAccess", 1)
    for memory in (here, there):
        ask("cudaFree", memory)


# ---- Streams and events ---------------------------------------------------------------------------------------------

def test_streams_and_events():
    stream = ask("cudaStreamCreate")
    other = ask("cudaStreamCreateWithFlags", runtime.cudaStreamNonBlocking)
    urgent = ask("cudaStreamCreateWithPriority", runtime.cudaStreamNonBlocking, -1)
    expect_equal(ask("cudaStreamGetPriority", urgent), -1)
    expect_equal(ask("cudaStreamGetFlags", other), runtime.cudaStreamNonBlocking)
    first, last = ask("cudaEventCreate"), ask("cudaEventCreateWithFlags", runtime.cudaEventDefault)
    ask("cudaEventRecord", first, stream)
    ask("cudaEventRecordWithFlags", last, stream, runtime.cudaEventRecordDefault)
    ask("cudaStreamWaitEvent", other, last, 0)
    ask("cudaEventSynchronize", last)
    ask("cudaEventQuery", last)
    for suffix in ("", "_v2") if MAJOR == 12 else ("",):
        expect(ask("cudaEventElapsedTime" + suffix, first, last) >= 0)
    ask("cudaStreamSynchronize", other)
    ask("cudaStreamQuery", other)
    value = runtime.cudaStreamAttrValue()
    value.syncPolicy = runtime.cudaSynchronizationPolicy.cudaSyncPolicyYield
    ask("cudaStreamSetAttribute", stream, runtime.cudaStreamAttrID.cudaLaunchAttributeSynchronizationPolicy, value)
    for event in (first, last):
        ask("cudaEventDestroy", event)
    for each in (stream, other, urgent):
        ask("cudaStreamDestroy", each)


def test_host_functions_run_in_order():
    ran = []
    note = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda data: ran.append(data))
    noted = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)(
        lambda _stream, status, data: ran.append((status, data)))
    stream = ask("cudaStreamCreate")
    function = address_of(note)
    ask("cudaLaunchHostFunc", stream, runtime.cudaHostFn_t(function), 1)
    ask("cudaStreamAddCallback", stream, runtime.cudaStreamCallback_t(address_of(noted)), 2, 0)
    ask("cudaStreamSynchronize", stream)
    expect_equal(ran, [1, (0, 2)])
    if hasattr(runtime, "cudaLaunchHostFunc_v2"):
        ask("cudaLaunchHostFunc_v2", stream, runtime.cudaHostFn_t(function), 3, 0)
        ask("cudaStreamSynchronize", stream)
        expect_equal(ran[2:], [3])
    ask("cudaStreamDestroy", stream)


# ---- Memory ---------------------------------------------------------------------------------------------------------

def test_memory_of_every_kind():
    device = filled(3)
    expect_equal(ask("cudaPointerGetAttributes", device).type, runtime.cudaMemoryType.cudaMemoryTypeDevice)
    for name, arguments in (("cudaMallocHost", (SIZE,)), ("cudaHostAlloc", (SIZE, runtime.cudaHostAllocMapped))):
        host = ask(name, *arguments)
        expect(ask("cudaHostGetDevicePointer", host, 0))
        ask("cudaMemcpyAsync", host, device, SIZE, Kind.cudaMemcpyDeviceToHost, 0)
        ask("cudaStreamSynchronize", 0)
        expect_equal(ctypes.string_at(host, SIZE), b"\3" * SIZE)
        ask("cudaFreeHost", host)
    own = ctypes.create_string_buffer(2 * SIZE)
    ask("cudaHostRegister", ctypes.addressof(own), 2 * SIZE, 0)
    ask("cudaHostUnregister", ctypes.addressof(own))
    managed = ask("cudaMallocManaged", SIZE, runtime.cudaMemAttachGlobal)
    for name, extra in (("cudaMemAdvise", ()), ("cudaMemPrefetchAsync", (0,))):
        advice = (runtime.cudaMemoryAdvise.cudaMemAdviseSetReadMostly,) if name == "cudaMemAdvise" else ()
        stream = () if name == "cudaMemAdvise" else (0,)
        if MAJOR == 12:
            ask(name, managed, SIZE, *advice, 0, *stream)
            name += "_v2"
        ask(name, managed, SIZE, *advice, location(), *extra, *stream)
    stream = ask("cudaStreamCreate")
    ask("cudaStreamAttachMemAsync", stream, managed, 0, runtime.cudaMemAttachSingle)
    ask("cudaMemsetAsync", managed, 9, SIZE, stream)
    ask("cudaStreamSynchronize", stream)
    expect_equal(ctypes.string_at(managed, 4), b"\x09" * 4)
    later = ask("cudaMallocAsync", SIZE, stream)
    ask("cudaFreeAsync", later, stream)
    ask("cudaStreamSynchronize", stream)
    ask("cudaStreamDestroy", stream)
    for memory in (device, managed):
        ask("cudaFree", memory)


def test_copies_and_sets_with_rows():
    memory, pitch = ask("cudaMallocPitch", 100, 8)
    ask("cudaMemset2D", memory, pitch, 6, 100, 8)
    rows = ctypes.create_string_buffer(800)
    for name, stream in (("cudaMemcpy2D", ()), ("cudaMemcpy2DAsync", (0,))):
        ask(name, ctypes.addressof(rows), 100, memory, pitch, 100, 8, Kind.cudaMemcpyDeviceToHost, *stream)
        ask("cudaDeviceSynchronize")
        expect_equal(rows.raw, b"\6" * 800)
    space = ask("cudaMalloc3D", extent(64, 4, 2))
    ask("cudaMemset3D", space, 5, extent(64, 4, 2))
    block = ctypes.create_string_buffer(512)
    copy = filled_struct(runtime.cudaMemcpy3DParms, srcPtr=space, extent=extent(64, 4, 2),
                         dstPtr=filled_struct(runtime.cudaPitchedPtr, ptr=ctypes.addressof(block), pitch=64, xsize=64,
                                              ysize=4), kind=Kind.cudaMemcpyDeviceToHost)
    ask("cudaMemcpy3D", copy)
    expect_equal(block.raw, b"\5" * 512)
    ask("cudaMemcpy3DAsync", copy, 0)
    ask("cudaDeviceSynchronize")
    ask("cudaFree", memory)
    ask("cudaFree", space.ptr)


def test_pools():
    properties = filled_struct(runtime.cudaMemPoolProps, location=location(),
                               allocType=runtime.cudaMemAllocationType.cudaMemAllocationTypePinned, handleTypes=
                               runtime.cudaMemAllocationHandleType.cudaMemHandleTypePosixFileDescriptor)
    pool = ask("cudaMemPoolCreate", properties)
    threshold = runtime.cudaMemPoolAttr.cudaMemPoolAttrReleaseThreshold
    ask("cudaMemPoolSetAttribute", pool, threshold, driver.cuuint64_t(1 << 20))
    expect_equal(int(ask("cudaMemPoolGetAttribute", pool, threshold)), 1 << 20)
    access = filled_struct(runtime.cudaMemAccessDesc, location=location(),
                           flags=runtime.cudaMemAccessFlags.cudaMemAccessFlagsProtReadWrite)
    ask("cudaMemPoolSetAccess", pool, [access], 1)
    expect_equal(ask("cudaMemPoolGetAccess", pool, location()), access.flags)
    memory = ask("cudaMallocFromPoolAsync", SIZE, pool, 0)
    kind = runtime.cudaMemAllocationHandleType.cudaMemHandleTypePosixFileDescriptor
    handle = ask("cudaMemPoolExportToShareableHandle", pool, kind, 0)
    imported = ask("cudaMemPoolImportFromShareableHandle", int(handle), kind, 0)
    exported = ask("cudaMemPoolExportPointer", memory)
    ask("cudaMemset", memory, 4, SIZE)
    same = runtime.cudaMemPoolImportPointer(imported, exported)
    called.add("cudaMemPoolImportPointer")
    expect(same[0] == Error.cudaSuccess and read(same[1]) == b"\4" * SIZE, str(same))
    ask("cudaFreeAsync", same[1], 0)
    ask("cudaFreeAsync", memory, 0)
    ask("cudaMemPoolTrimTo", pool, 0)
    default = ask("cudaDeviceGetDefaultMemPool", 0)
    ask("cudaDeviceSetMemPool", 0, pool)
    ask("cudaDeviceSetMemPool", 0, default)
    ask("cudaDeviceSynchronize")
    for each in (imported, pool):
        ask("cudaMemPoolDestroy", each)


# ---- Arrays ---------------------------------------------------------------------------------------------------------

def test_arrays_and_what_copies_them():
    form = bytes_format()
    first, second = (ask("cudaMallocArray", form, 64, 4, 0) for _ in range(2))
    expect_equal(ask("cudaGetChannelDesc", first).x, 8)
    described, size, flags = ask("cudaArrayGetInfo", first)
    expect_equal((described.x, size.width, size.height, flags), (8, 64, 4, 0))
    source, back = filled(2, 256), ctypes.create_string_buffer(256)
    to, on, out = Kind.cudaMemcpyDeviceToDevice, Kind.cudaMemcpyDeviceToDevice, Kind.cudaMemcpyDeviceToHost
    for name, arguments in (("cudaMemcpy2DToArray", ()), ("cudaMemcpy2DToArrayAsync", (0,))):
        ask(name, first, 0, 0, source, 64, 64, 4, to, *arguments)
    ask("cudaMemcpy2DArrayToArray", second, 0, 0, first, 0, 0, 64, 4, on)
    ask("cudaMemcpy2DFromArray", ctypes.addressof(back), 64, second, 0, 0, 64, 4, out)
    expect_equal(back.raw, b"\2" * 256)
    ask("cudaMemset", source, 1, 256)
    ask("cudaMemcpyToArray", first, 0, 0, source, 256, to)
    ask("cudaMemcpyArrayToArray", second, 0, 0, first, 0, 0, 256, on)
    ask("cudaMemcpyFromArray", ctypes.addressof(back), second, 0, 0, 256, out)
    expect_equal(back.raw, b"\1" * 256)
    for array in (first, second):
        ask("cudaFreeArray", array)
    ask("cudaFree", source)
    ask("cudaFreeArray", ask("cudaMalloc3DArray", form, extent(8, 8, 8), 0))
    levels = ask("cudaMallocMipmappedArray", form, extent(64, 64, 0), 3, 0)
    expect_equal(ask("cudaArrayGetInfo", ask("cudaGetMipmappedArrayLevel", levels, 1))[1].width, 32)
    ask("cudaMipmappedArrayGetSparseProperties", levels, error=Error.cudaErrorInvalidValue)
    ask("cudaFreeMipmappedArray", levels)
    ask("cudaGetLastError", error=Error.cudaErrorInvalidValue)


def test_textures_and_surfaces():
    array = ask("cudaMallocArray", bytes_format(), 64, 4, runtime.cudaArraySurfaceLoadStore)
    resource = runtime.cudaResourceDesc()
    resource.resType = runtime.cudaResourceType.cudaResourceTypeArray
    resource.res.array.array = array
    how = filled_struct(runtime.cudaTextureDesc, normalizedCoords=1)
    texture = ask("cudaCreateTextureObject", resource, how, None)
    expect_equal(ask("cudaGetTextureObjectTextureDesc", texture).normalizedCoords, 1)
    ask("cudaDestroyTextureObject", texture)
    ask("cudaDestroySurfaceObject", ask("cudaCreateSurfaceObject", resource))
    ask("cudaFreeArray", array)


# ---- Code -----------------------------------------------------------------------------------------------------------

def test_libraries_and_their_kernels():
    library = new_library()
    with tempfile.NamedTemporaryFile(suffix=".ptx") as file:
        file.write(PTX)
        file.flush()
        ask("cudaLibraryUnload", ask("cudaLibraryLoadFromFile", file.name.encode(), [], [], 0, [], [], 0))
    expect_equal(ask("cudaLibraryGetKernelCount", library), 1)
    kernel = ask("cudaLibraryGetKernel", library, b"add")
    address, size = ask("cudaLibraryGetGlobal", library, b"step")
    expect_equal((read(address, size), size), (b"\5\0\0\0", 4))
    expect_equal(ask("cudaLibraryGetManaged", library, b"everywhere")[1], 4)
    ask("cudaLibraryGetUnifiedFunction", library, b"nothing", error=Error.cudaErrorInvalidValue)
    ask("cudaKernelSetAttributeForDevice", kernel, runtime.cudaFuncAttribute.cudaFuncAttributeMaxDynamicSharedMemorySize,
        65536, 0)
    expect_equal(ask("cudaFuncGetAttributes", kernel).maxDynamicSharedSizeBytes, 65536)
    ask("cudaFuncSetAttribute", kernel, runtime.cudaFuncAttribute.cudaFuncAttributePreferredSharedMemoryCarveout, 50)
    ask("cudaFuncSetCacheConfig", kernel, runtime.cudaFuncCache.cudaFuncCachePreferL1)
    for name, more in (("cudaOccupancyMaxActiveBlocksPerMultiprocessor", ()),
                       ("cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags", (0,))):
        expect(ask(name, kernel, 64, 0, *more) > 0, name)
    ask("cudaLibraryUnload", library)


# ---- Graphs ---------------------------------------------------------------------------------------------------------

def kernel_node(kernel, memory, number):
    """Its parameters, with what they point at."""
    one = filled_struct(runtime.dim3, x=1, y=1, z=1)
    return filled_struct(runtime.cudaKernelNodeParams, func=kernel, gridDim=one, sharedMemBytes=0,
                         blockDim=filled_struct(runtime.dim3, x=64, y=1, z=1),
                         kernelParams=((memory, number), (ctypes.c_void_p, ctypes.c_uint)))


def test_graphs_are_built_and_run():
    library = new_library()
    kernel = ask("cudaLibraryGetKernel", library, b"add")
    memory, copy, ran = filled(0, 256), filled(0, 256), []
    note = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda data: ran.append(data))
    graph = ask("cudaGraphCreate", 0)
    first = ask("cudaGraphAddEmptyNode", graph, [], 0)
    clear = ask("cudaGraphAddMemsetNode", graph, [first], 1,
                filled_struct(runtime.cudaMemsetParams, dst=memory, value=1, elementSize=4, width=64, height=1))
    add = ask("cudaGraphAddKernelNode", graph, [clear], 1, kernel_node(kernel, memory, 10))
    out = ask("cudaGraphAddMemcpyNode1D", graph, [add], 1, copy, memory, 256, Kind.cudaMemcpyDeviceToDevice)
    host = filled_struct(runtime.cudaHostNodeParams, fn=address_of(note), userData=4)
    ask("cudaGraphAddHostNode", graph, [out], 1, host)
    expect_equal(ask("cudaGraphNodeGetType", add), runtime.cudaGraphNodeType.cudaGraphNodeTypeKernel)
    for suffix in ("", "_v2") if MAJOR == 12 else ("",):
        expect_equal(ask("cudaGraphGetNodes", graph)[-1], 5)
        expect_equal(ask("cudaGraphGetEdges" + suffix, graph)[-1], 4)
        expect_equal(ask("cudaGraphNodeGetDependencies" + suffix, add)[-1], 1)
        expect_equal(ask("cudaGraphNodeGetDependentNodes" + suffix, add)[-1], 1)
    ready = ask("cudaGraphInstantiate", graph, 0)
    ask("cudaGraphUpload", ready, 0)
    ask("cudaGraphLaunch", ready, 0)
    ask("cudaStreamSynchronize", 0)
    expect_equal((read(copy, 4), ran), (b"\x10\0\0\0", [4]))
    ask("cudaGraphExecKernelNodeSetParams", ready, add, kernel_node(kernel, memory, 20))
    ask("cudaGraphLaunch", ready, 0)
    expect_equal(read(copy, 4), b"\x1a\0\0\0")
    ask("cudaGraphExecUpdate", ready, graph)
    twin = ask("cudaGraphClone", graph)
    ask("cudaGraphDestroyNode", ask("cudaGraphGetNodes", twin, 5)[0][0])
    for each in (ready, ask("cudaGraphInstantiateWithFlags", twin, 0)):
        ask("cudaGraphExecDestroy", each)
    for each in (twin, graph):
        ask("cudaGraphDestroy", each)
    for each in (memory, copy):
        ask("cudaFree", each)
    ask("cudaLibraryUnload", library)


def test_other_nodes_and_what_belongs_to_a_graph():
    graph, device = ask("cudaGraphCreate", 0), filled(6, 256)
    block = ctypes.create_string_buffer(256)
    pitched = [filled_struct(runtime.cudaPitchedPtr, ptr=at, pitch=64, xsize=64, ysize=4)
               for at in (device, ctypes.addressof(block))]
    ask("cudaGraphAddMemcpyNode", graph, [], 0, filled_struct(
        runtime.cudaMemcpy3DParms, srcPtr=pitched[0], dstPtr=pitched[1], extent=extent(64, 4, 1),
        kind=Kind.cudaMemcpyDeviceToHost))
    allocation = runtime.cudaMemAllocNodeParams()
    allocation.poolProps.allocType = runtime.cudaMemAllocationType.cudaMemAllocationTypePinned
    allocation.poolProps.location, allocation.bytesize = location(), SIZE
    given = ask("cudaGraphAddMemAllocNode", graph, [], 0, allocation)
    ask("cudaGraphAddMemFreeNode", graph, [given], 1, allocation.dptr)
    parameters = runtime.cudaGraphNodeParams()
    parameters.type = runtime.cudaGraphNodeType.cudaGraphNodeTypeEmpty
    if MAJOR == 12:
        ask("cudaGraphAddNode", graph, [given], 1, parameters)
        ask("cudaGraphAddNode_v2", graph, [given], [runtime.cudaGraphEdgeData()], 1, parameters)
    else:
        ask("cudaGraphAddNode", graph, [given], None, 1, parameters)
    ended = []
    note = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda data: ended.append(data))
    thing = ask("cudaUserObjectCreate", 5, runtime.cudaHostFn_t(address_of(note)), 2, runtime.cudaUserObjectFlags.
                cudaUserObjectNoDestructorSync)
    ask("cudaGraphRetainUserObject", graph, thing, 1, runtime.cudaUserObjectRetainFlags.cudaGraphUserObjectMove)
    ready = ask("cudaGraphInstantiate", graph, 0)
    ask("cudaGraphLaunch", ready, 0)
    ask("cudaStreamSynchronize", 0)
    expect_equal(block.raw, b"\6" * 256)
    used = runtime.cudaGraphMemAttributeType.cudaGraphMemAttrUsedMemHigh
    expect(int(ask("cudaDeviceGetGraphMemAttribute", 0, used)) >= SIZE)
    ask("cudaDeviceSetGraphMemAttribute", 0, used, driver.cuuint64_t(0))
    ask("cudaGraphExecDestroy", ready)
    ask("cudaGraphDestroy", graph)
    ask("cudaUserObjectRelease", thing, 1)
    ask("cudaDeviceGraphMemTrim", 0)
    ask("cudaFree", device)


def test_conditions_belong_to_a_graph():
    for name, context in (("cudaGraphConditionalHandleCreate", ()), ("cudaGraphConditionalHandleCreate_v2", (0,))):
        if hasattr(runtime, name):
            graph = ask("cudaGraphCreate", 0)
            expect(int(ask(name, graph, *context, 0, 0)) != 0)
            ask("cudaGraphDestroy", graph)


def test_streams_are_captured():
    stream, memory = ask("cudaStreamCreateWithFlags", runtime.cudaStreamNonBlocking), filled(0)
    mode = runtime.cudaStreamCaptureMode.cudaStreamCaptureModeThreadLocal
    ask("cudaStreamBeginCapture", stream, mode)
    ask("cudaMemsetAsync", memory, 1, SIZE, stream)
    active = runtime.cudaStreamCaptureStatus.cudaStreamCaptureStatusActive
    expect_equal(ask("cudaStreamIsCapturing", stream), active)
    flag = runtime.cudaStreamUpdateCaptureDependenciesFlags.cudaStreamSetCaptureDependencies
    if MAJOR == 12:
        expect_equal(ask("cudaStreamGetCaptureInfo", stream)[0], active)
        expect_equal(ask("cudaStreamGetCaptureInfo_v3", stream)[0], active)
        ask("cudaStreamUpdateCaptureDependencies", stream, [], 0, flag)
        ask("cudaStreamUpdateCaptureDependencies_v2", stream, [], [], 0, flag)
    else:
        expect_equal(ask("cudaStreamGetCaptureInfo", stream)[0], active)
        ask("cudaStreamUpdateCaptureDependencies", stream, [], None, 0, flag)
    relaxed = runtime.cudaStreamCaptureMode.cudaStreamCaptureModeRelaxed
    before = ask("cudaThreadExchangeStreamCaptureMode", relaxed)
    expect_equal(ask("cudaThreadExchangeStreamCaptureMode", before), relaxed)
    graph = ask("cudaStreamEndCapture", stream)
    ask("cudaStreamBeginCaptureToGraph", stream, graph, [], None, 0, mode)
    ask("cudaMemsetAsync", memory, 2, SIZE, stream)
    ask("cudaStreamEndCapture", stream)
    expect_equal(ask("cudaGraphGetNodes", graph)[-1], 2)
    ask("cudaGraphDestroy", graph)
    ask("cudaFree", memory)
    ask("cudaStreamDestroy", stream)


# ---- Other processes and other interfaces ---------------------------------------------------------------------------

def child(memory_handle, event_handle, pipe):
    """Opens what another process has exported, and says what is in it."""
    handle, event = runtime.cudaIpcMemHandle_t(), runtime.cudaIpcEventHandle_t()
    for to, data in ((handle, memory_handle), (event, event_handle)):
        ctypes.memmove(to.getPtr(), data, 64)
    ready = ask("cudaIpcOpenEventHandle", event)
    ask("cudaEventSynchronize", ready)
    memory = ask("cudaIpcOpenMemHandle", handle, runtime.cudaIpcMemLazyEnablePeerAccess)
    pipe.send(read(memory)[:8])
    ask("cudaIpcCloseMemHandle", memory)
    ask("cudaEventDestroy", ready)
    pipe.send(called)


def test_memory_and_events_of_another_process():
    memory = filled(7)
    event = ask("cudaEventCreateWithFlags", runtime.cudaEventInterprocess | runtime.cudaEventDisableTiming)
    ask("cudaEventRecord", event, 0)
    handles = [ask("cudaIpcGetMemHandle", memory), ask("cudaIpcGetEventHandle", event)]
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=child, args=(*(ctypes.string_at(handle.getPtr(), 64) for handle in handles), theirs))
    process.start()
    theirs.close()
    expect_equal(ours.recv(), b"\7" * 8)
    called.update(ours.recv())
    process.join()
    expect_equal(process.exitcode, 0)
    ask("cudaEventDestroy", event)
    ask("cudaFree", memory)


def test_memory_of_another_interface():
    place = filled_struct(driver.CUmemLocation, type=driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE, id=0)
    kind = driver.CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
    properties = filled_struct(driver.CUmemAllocationProp, location=place, requestedHandleTypes=kind,
                               type=driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED)
    size = 2 << 20
    allocation = driver.cuMemCreate(size, properties, 0)[1]
    given = filled_struct(runtime.cudaExternalMemoryHandleDesc, size=size,
                          type=runtime.cudaExternalMemoryHandleType.cudaExternalMemoryHandleTypeOpaqueFd)
    given.handle.fd = int(driver.cuMemExportToShareableHandle(allocation, kind, 0)[1])
    memory = ask("cudaImportExternalMemory", given)
    mapped = ask("cudaExternalMemoryGetMappedBuffer", memory, filled_struct(runtime.cudaExternalMemoryBufferDesc,
                                                                          offset=0, size=size, flags=0))
    ask("cudaMemset", mapped, 3, SIZE)
    expect_equal(read(mapped), b"\3" * SIZE)
    levels = filled_struct(runtime.cudaExternalMemoryMipmappedArrayDesc, numLevels=1, formatDesc=bytes_format(),
                           extent=extent(64, 64, 0))
    ask("cudaFreeMipmappedArray", ask("cudaExternalMemoryGetMappedMipmappedArray", memory, levels))
    ask("cudaFree", mapped)
    ask("cudaDestroyExternalMemory", memory)
    driver.cuMemRelease(allocation)


def test_semaphores_of_another_interface_are_refused_where_there_are_none():
    given = runtime.cudaExternalSemaphoreHandleDesc()
    given.type = runtime.cudaExternalSemaphoreHandleType.cudaExternalSemaphoreHandleTypeOpaqueFd
    given.handle.fd = -1
    none = [runtime.cudaExternalSemaphore_t(0)]
    suffix = "_v2" if MAJOR == 12 and hasattr(runtime, "cudaSignalExternalSemaphoresAsync_v2") else ""
    for name, arguments in (("cudaImportExternalSemaphore", (given,)), ("cudaDestroyExternalSemaphore", (0,)),
                            ("cudaSignalExternalSemaphoresAsync" + suffix, (none, [runtime.cudaExternalSemaphoreSignalParams()], 1, 0)),
                            ("cudaWaitExternalSemaphoresAsync" + suffix, (none, [runtime.cudaExternalSemaphoreWaitParams()], 1, 0))):
        called.add(name)
        expect(getattr(runtime, name)(*arguments)[0] != Error.cudaSuccess, name)
    runtime.cudaGetLastError()


# ---- The end --------------------------------------------------------------------------------------------------------

def test_flags_before_and_after_a_reset():
    ask("cudaDeviceReset")
    ask("cudaSetDeviceFlags", runtime.cudaDeviceScheduleYield)
    ask("cudaFree", filled(1))


def test_each_function_of_tiers_1_and_2_has_been_called():
    rows = re.findall(r"^RT_\w+\((cuda\w+), (BOTH|ONLY12|ONLY13), [12],", TABLE.read_text(), re.M)
    wanted = {name for name, abi in rows if abi in ("BOTH", f"ONLY{MAJOR}") and hasattr(runtime, name)}
    expect(len(wanted) > 150, str(len(wanted)))
    expect_equal(sorted(wanted - called), [])


if __name__ == "__main__":
    main(globals())
