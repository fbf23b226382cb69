#!/usr/bin/env python3
"""gpumem run --check memory,init with what other parties do to memory: the CPU, other mappings, devices, processes,
kernels that are not watched. What is right is never reported."""
import checked
import harness
from harness import expect

PTX = """
.visible .entry fill(.param .u64 at)
{
    .reg .b64 %d<4>; .reg .b32 %r<4>;
    ld.param.u64 %d1, [at]; mov.u32 %r1, %tid.x; mul.wide.u32 %d2, %r1, 4; add.u64 %d1, %d1, %d2;
    st.global.u32 [%d1], %r1;
    ret;
}
.visible .entry read(.param .u64 at)
{
    .reg .b64 %d<4>; .reg .b32 %r<4>;
    ld.param.u64 %d1, [at]; mov.u32 %r1, %tid.x; mul.wide.u32 %d2, %r1, 4; add.u64 %d1, %d1, %d2;
    ld.global.u32 %r2, [%d1];
    ret;
}
.visible .entry spin(.param .u64 flag, .param .u64 at)
{
    .reg .b64 %d<4>; .reg .b32 %r<4>; .reg .pred %p;
    ld.param.u64 %d1, [flag]; ld.param.u64 %d2, [at];
again:
    ld.acquire.sys.global.u32 %r1, [%d1]; setp.eq.u32 %p, %r1, 0; @%p bra again;
    ld.global.u32 %r2, [%d2]; st.global.u32 [%d2+4], %r2;
    ret;
}
.visible .entry bulk(.param .u64 from)
{
    .shared .align 128 .b8 to[256]; .shared .align 8 .b64 m; .reg .b64 %d<4>; .reg .b32 %r<4>; .reg .pred %p;
    ld.param.u64 %d1, [from]; mov.u32 %r1, to; mov.u32 %r2, m;
    mbarrier.init.shared.b64 [%r2], 1;
    mbarrier.arrive.expect_tx.shared.b64 %d2, [%r2], 256;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%d1], 256, [%r2];
wait:
    mbarrier.try_wait.shared.b64 %p, [%r2], %d2; @!%p bra wait;
    ld.shared.u32 %r3, [to+252];
    ret;
}
"""

BEGIN = """
SIZE, U64 = ctypes.c_size_t, ctypes.c_uint64
"""
CHECKS = "memory,init"


def run(folder, body, *options, checks=CHECKS, **variables):
    return checked.run(folder, checks, PTX, BEGIN + body, *options, **variables)


def silent(folder, body, *options, checks=CHECKS, ends=1, **variables):
    """Of as many processes as end."""
    checked.expect_silent(run(folder, body, *options, checks=checks, **variables), ends)


RANDOM = """import random
random.seed(3)
m = ctypes.c_void_p()
ok(cuda.{make})
data = bytes(random.randrange(256) for i in range(4096))
ctypes.memmove(m.value, data, 4096)
launch("read", m.value, threads=1024)
launch("fill", m.value + 2048, threads=512)
launch("read", m.value, threads=1024)
assert sync() == 0
ok(cuda.{free})"""
MANAGED = {"make": "cuMemAllocManaged(ref(m), SIZE(4096), 1)", "free": "cuMemFree_v2(U64(m.value))"}
PINNED = {"make": "cuMemHostAlloc(ref(m), SIZE(4096), 2)", "free": "cuMemFreeHost(m)"}


def test_arbitrary_bytes_written_by_the_cpu_are_initialized(folder):
    """Some of them are by chance what such memory begins with."""
    for kind in MANAGED, PINNED:
        silent(folder, RANDOM.format(**kind))


def test_registered_memory_is_initialized(folder):
    silent(folder, """import mmap
m = mmap.mmap(-1, 8192)
address = ctypes.addressof(ctypes.c_char.from_buffer(m))
ok(cuda.cuMemHostRegister_v2(ctypes.c_void_p(address), SIZE(8192), 2))
launch("read", address, threads=1024)
launch("fill", address + 4096, threads=1024)
assert sync() == 0
ok(cuda.cuMemHostUnregister(ctypes.c_void_p(address)))""")


TWICE = """import struct
properties = struct.pack("iiiiQ8x", 1, 0, 1, 0, 0)
handle, a, b = U64(), U64(), U64()
page = 2 << 20
ok(cuda.cuMemCreate(ref(handle), SIZE(page), properties, U64(0)))
for at in a, b:
    ok(cuda.cuMemAddressReserve(ref(at), SIZE(2 * page), SIZE(0), U64(0), U64(0)))
    for i in range(2):
        ok(cuda.cuMemMap(U64(at.value + i * page), SIZE(page), SIZE(0), handle, U64(0)))
    ok(cuda.cuMemSetAccess(at, SIZE(2 * page), struct.pack("iii", 1, 0, 3), SIZE(1)))
ok(cuda.cuMemRelease(handle))
launch("fill", a.value, threads=512)
launch("read", b.value, threads=512)
launch("fill", a.value + page - 512, threads=512)
launch("read", b.value + page - 512, threads=512)
launch("bulk", a.value + page - 128)
assert sync() == 0
for at in a, b:
    ok(cuda.cuMemUnmap(at, SIZE(2 * page)))
    ok(cuda.cuMemAddressFree(at, SIZE(2 * page)))"""


def test_memory_mapped_twice_is_not_reported(folder):
    """Also accesses from one mapping into the next, in one copy."""
    silent(folder, TWICE)


def test_memory_of_a_peer_device_is_not_reported(folder):
    silent(folder, """a = alloc(4096)
other, there = ctypes.c_void_p(), ctypes.c_void_p()
ok(cuda.cuDevicePrimaryCtxRetain(ref(other), 1))
ok(cuda.cuCtxSetCurrent(other))
ok(cuda.cuCtxEnablePeerAccess(context, 0))
here, module = module, there
ok(cuda.cuModuleLoadData(ref(module), open(sys.argv[1], "rb").read()))
launch("fill", a, threads=1024)
assert sync() == 0
b = alloc(4096)
ok(cuda.cuMemcpyPeer(U64(b), other, U64(a), context, SIZE(4096)))
launch("read", b, threads=1024)
assert sync() == 0
free(b)
ok(cuda.cuModuleUnload(module))
ok(cuda.cuDevicePrimaryCtxRelease_v2(1))
ok(cuda.cuCtxSetCurrent(context))
module = here
launch("read", a, threads=1024)
assert sync() == 0
free(a)""", SOFTGPU_DEVICES="2")


def test_memory_written_by_another_process_is_initialized(folder):
    """It says nothing of its stores: from the export on nothing is known."""
    silent(folder, """import subprocess
if len(sys.argv) > 2:
    handle = (ctypes.c_char * 64).from_buffer_copy(bytes.fromhex(sys.argv[2]))
    class Handle(ctypes.Structure):
        _fields_ = [("bytes", ctypes.c_char * 64)]
    at = U64()
    ok(cuda.cuIpcOpenMemHandle_v2(ref(at), Handle.from_buffer_copy(bytes.fromhex(sys.argv[2])), 1))
    launch("fill", at.value, threads=100)
    assert sync() == 0
    ok(cuda.cuIpcCloseMemHandle(at))
    end()
    sys.exit(0)
a = alloc(400)
handle = ctypes.create_string_buffer(64)
ok(cuda.cuIpcGetMemHandle(handle, U64(a)))
subprocess.run([sys.executable, *sys.argv, handle.raw.hex()], check=True)
launch("read", a, threads=100)
assert sync() == 0
free(a)""", ends=2)


def test_a_pool_shared_by_two_processes_is_not_reported(folder):
    """Each reads what the other one has written, of which nobody here knows."""
    silent(folder, """import subprocess
pool = ctypes.c_void_p()
if len(sys.argv) > 2:
    ok(cuda.cuMemPoolImportFromShareableHandle(ref(pool), ctypes.c_void_p(int(sys.argv[2])), 1, U64(0)))
    at = U64()
    ok(cuda.cuMemPoolImportPointer(ref(at), pool, ctypes.create_string_buffer(bytes.fromhex(sys.argv[3]), 64)))
    launch("read", at.value, threads=100)
    launch("fill", at.value + 400, threads=100)
    assert sync() == 0
    ok(cuda.cuMemFree_v2(at))
    ok(cuda.cuMemPoolDestroy(pool))
    end()
    sys.exit(0)
s, properties, fd, a = stream(), (U64 * 11)(), ctypes.c_int(), U64()
properties[0], properties[1] = 1 | 1 << 32, 1
ok(cuda.cuMemPoolCreate(ref(pool), properties))
ok(cuda.cuMemAllocFromPoolAsync(ref(a), SIZE(800), pool, s))
launch("fill", a.value, threads=100, stream=s)
assert sync() == 0
ok(cuda.cuMemPoolExportToShareableHandle(ref(fd), pool, 1, U64(0)))
pointer = ctypes.create_string_buffer(64)
ok(cuda.cuMemPoolExportPointer(pointer, a))
child = subprocess.run([sys.executable, *sys.argv, str(fd.value), pointer.raw.hex()], pass_fds=[fd.value])
assert child.returncode == 0
launch("read", a.value, threads=200, stream=s)
ok(cuda.cuMemFreeAsync(a, s))
assert sync() == 0
ok(cuda.cuMemPoolDestroy(pool))
ok(cuda.cuStreamDestroy_v2(s))
os.close(fd.value)""", ends=2)


def test_copies_of_graphs_are_not_reported(folder):
    """The graph was made while its memory was there."""
    body = """a, b = alloc(4096), alloc(4096)
put(a, bytes(4096))
graph, exec_, s = ctypes.c_void_p(), ctypes.c_void_p(), stream()
ok(cuda.cuStreamBeginCapture_v2(s, 2))
ok(cuda.cuMemcpyDtoDAsync_v2(U64(b), U64(a), SIZE(64), s))
ok(cuda.cuStreamEndCapture(s, ref(graph)))
ok(cuda.cuGraphInstantiateWithFlags(ref(exec_), graph, U64(0)))
{}
ok(cuda.cuGraphLaunch(exec_, s))
assert sync() == 0
{}
free(b)
ok(cuda.cuGraphExecDestroy(exec_))
ok(cuda.cuGraphDestroy(graph))
ok(cuda.cuStreamDestroy_v2(s))"""
    silent(folder, body.format("", "free(a)"))
    text = run(folder, body.format("free(a)", ""))[2]
    expect("(memory, use-after-free): a copy reads freed memory: 0x" in text and
           "0 bytes inside of an allocation of 4096 bytes" in text and "checked: 1 errors" in text, text)
    silent(folder, """a, b, s = alloc(4096), alloc(4096), stream()
put(a, bytes(4096))
ok(cuda.cuMemcpyDtoDAsync_v2(U64(b), U64(a), SIZE(64), s))
ok(cuda.cuMemFreeAsync(U64(a), s))
assert sync() == 0
free(b)
ok(cuda.cuStreamDestroy_v2(s))""", SOFTGPU_SCHEDULE="late")


def test_stores_through_multicast_initialize_memory(folder):
    silent(folder, """import struct
page = 2 << 20
mc, m, s, at = U64(), U64(), stream(), U64()
ok(cuda.cuMulticastCreate(ref(mc), struct.pack("I4xQQQ", 1, page, 0, 0)))
ok(cuda.cuMulticastAddDevice(mc, 0))
ok(cuda.cuMemAllocAsync(ref(m), SIZE(page), s))
ok(cuda.cuStreamSynchronize(s))
ok(cuda.cuMulticastBindAddr(mc, SIZE(0), m, SIZE(page), U64(0)))
ok(cuda.cuMemAddressReserve(ref(at), SIZE(page), SIZE(0), U64(0), U64(0)))
ok(cuda.cuMemMap(at, SIZE(page), SIZE(0), mc, U64(0)))
ok(cuda.cuMemSetAccess(at, SIZE(page), struct.pack("iii", 1, 0, 3), SIZE(1)))
ok(cuda.cuMemsetD8_v2(at, 1, SIZE(4096)))
launch("read", m.value, threads=1024)
assert sync() == 0
ok(cuda.cuMemUnmap(at, SIZE(page)))
ok(cuda.cuMemAddressFree(at, SIZE(page)))
ok(cuda.cuMulticastUnbind(mc, 0, SIZE(0), SIZE(page)))
ok(cuda.cuMemRelease(mc))
ok(cuda.cuMemFreeAsync(m, s))
assert sync() == 0
ok(cuda.cuStreamDestroy_v2(s))""", SOFTGPU_DEVICES="2")


def test_partial_copies_and_memsets_initialize_their_bytes(folder):
    body = """a = alloc(4096)
put(a, bytes(128))
for row in range(2):
    ok(cuda.cuMemcpyDtoD_v2(U64(a + 128 + 64 * row), U64(a + 64 * row), SIZE(64)))
ok(cuda.cuMemsetD2D32_v2(U64(a + 256), SIZE(64), 7, SIZE(8), SIZE(4)))
launch("read", a, threads=64)
for row in range(4):
    launch("read", a + 256 + 64 * row, threads={})
assert sync() == 0
free(a)"""
    silent(folder, body.format(8))
    text = run(folder, body.format(9))[2]
    expect("checked: 4 errors" in text, text)


def test_stream_value_writes_initialize_memory(folder):
    silent(folder, """a, s = alloc(64), stream()
ok(cuda.cuStreamWriteValue32_v2(s, U64(a), 5, 0))
launch("read", a, stream=s)
assert sync() == 0
ok(cuda.cuStreamDestroy_v2(s))
free(a)""")


def test_unselected_kernels_initialize_memory_without_being_checked(folder):
    """What they write is written; what they do wrong is not told."""
    body = """a = alloc(400)
launch("fill", a, threads={})
launch("read", a, threads=100)
assert sync() == 0
free(a)"""
    silent(folder, body.format(100), "--kernels-matching", "read")
    text = run(folder, body.format(99), "--kernels-matching", "read")[2]
    expect("kernel read: 4 of these bytes" in text and "checked: 1 errors" in text, text)
    silent(folder, body.format(99), "--kernels-matching", "fill")
    silent(folder, body.format(100), "--kernels-matching", "none", checks="memory")
    text = run(folder, 'launch("fill", 16)\nassert sync() == 700\nsys.stdout.flush()\nos._exit(0)', "--kernels-matching",
               "read")[2]
    expect("softgpu: error: kernel fill: illegal address: write of 4 bytes" in text, text)


def test_a_kernel_that_waits_for_the_host_is_not_reported(folder):
    """The kernel is interrupted while it waits; what the CPU writes meanwhile is written."""
    for schedule in "eager", "late", "random":
        silent(folder, """import threading, time
m, s = ctypes.c_void_p(), stream()
ok(cuda.cuMemHostAlloc(ref(m), SIZE(4096), 2))
words = (ctypes.c_uint32 * 1024).from_address(m.value)
words[0] = 0
launch("spin", m.value, m.value + 64, stream=s)
assert cuda.cuStreamQuery(s) == 600
words[16] = 77
words[0] = 1
ok(cuda.cuStreamSynchronize(s))
assert words[17] == 77
ok(cuda.cuMemFreeHost(m))
ok(cuda.cuStreamDestroy_v2(s))""", SOFTGPU_SCHEDULE=schedule, SOFTGPU_SEED="9")


harness.main_unless_sanitized(globals())
