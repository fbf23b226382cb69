#!/usr/bin/env python3
"""gpumem run --check init: reads of what nothing has written, and the mended twins, of which nothing is said."""
import checked
import harness
from checked import SILENT, expect_text
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
    .loc 1 9 5
    ld.global.u32 %r2, [%d1];
    ret;
}
.visible .entry count(.param .u64 at)
{
    .reg .b64 %d<4>;
    ld.param.u64 %d1, [at];
    .loc 1 19 5
    red.global.add.u32 [%d1], 1;
    ret;
}
.visible .entry part(.param .u64 n)
{
    .shared .align 4 .b8 words[128]; .reg .pred %p; .reg .b32 %r<8>;
    mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 2; mov.u32 %r3, words; add.u32 %r3, %r3, %r2; ld.param.u32 %r6, [n];
    setp.lt.u32 %p, %r1, %r6; @%p st.shared.u32 [%r3], %r1; bar.sync 0;
    .loc 1 29 5
    ld.shared.u32 %r4, [%r3];
    ret;
}
.visible .entry frame(.param .u64 n)
{
    .local .align 4 .b8 one[16]; .reg .b64 %d<6>; .reg .b32 %r<4>;
    mov.u64 %d1, one; ld.param.u64 %d2, [n]; shl.b64 %d2, %d2, 2; add.u64 %d3, %d1, %d2;
    st.local.u32 [%d3], 7;
    .loc 1 39 5
    ld.local.u32 %r1, [one+4];
    ret;
}
.visible .entry reserved(.param .u64 at)
{
    .reg .b32 %r<4>;
    mov.u32 %r1, %reserved_smem_offset_1; st.shared.u32 [%r1], 1; ld.shared.u32 %r2, [%r1+4];
    ret;
}
.visible .entry copies(.param .u64 at)
{
    .shared .align 16 .b8 words[64]; .reg .b64 %d<4>; .reg .b32 %r<4>;
    ld.param.u64 %d1, [at];
    .loc 1 49 5
    cp.async.ca.shared.global [words], [%d1], 16;
    cp.async.wait_all; ld.shared.u32 %r1, [words+12];
    ret;
}
"""


def run(folder, body, *options, **variables):
    return checked.run(folder, "init", PTX, body, *options, **variables)


def hazard(folder, body, wanted):
    checked.expect_said(run(folder, body), wanted)


def silent(folder, body, **variables):
    checked.expect_silent(run(folder, body, **variables))


def global_read(thread, before):
    return f"""\
softgpu: error 1 (init, uninitialized): kernel read: 4 of these bytes have not been written: read of 4 bytes at ADDRESS
    at /src/checked.cu:9
    PTX line 18: ld.global.u32 %r2, [%d1];
    block 0,0,0 thread {thread},0,0
  {before} bytes before the end of an allocation of 400 bytes at ADDRESS, made by cuMemAlloc_v2
"""


END = "softgpu: checked: {} errors, {} warnings, 0 remarks\n"


def test_reading_beyond_what_a_kernel_wrote_is_reported(folder):
    body = 'a = alloc(400)\nlaunch("fill", a, threads=50)\nlaunch("read", a, threads={})\nassert sync() == 0\nfree(a)'
    hazard(folder, body.format(52), global_read(50, 200) + "softgpu: 1 was found 2 times\n" + END.format(2, 0))
    silent(folder, body.format(50))


def test_reused_memory_is_uninitialized(folder):
    """What was written before the free is the former owner's."""
    body = """a = alloc(400)
put(a, bytes(400))
free(a)
b = alloc(400)
assert a == b
{}
launch("read", b)
assert sync() == 0
free(b)"""
    hazard(folder, body.format(""), global_read(0, 400) + END.format(1, 0))
    silent(folder, body.format("put(b, bytes(4))"))


def test_memsets_initialize_memory(folder):
    silent(folder, """a = alloc(400)
ok(cuda.cuMemsetD32_v2(ctypes.c_uint64(a), 5, ctypes.c_size_t(50)))
ok(cuda.cuMemsetD2D8_v2(ctypes.c_uint64(a + 200), ctypes.c_size_t(100), 5, ctypes.c_size_t(100), ctypes.c_size_t(2)))
launch("read", a, threads=100)
assert sync() == 0
free(a)""")


def test_copies_carry_over_which_bytes_are_initialized(folder):
    body = """a, b = alloc(400), alloc(400)
put(a, bytes(100))
ok(cuda.cuMemsetD8_v2(ctypes.c_uint64(b), 0, ctypes.c_size_t(400)))
ok(cuda.cuMemcpyDtoD_v2(ctypes.c_uint64(b), ctypes.c_uint64(a), ctypes.c_size_t(200)))
launch("read", b, threads={0})
launch("read", b + 200, threads=50)
assert sync() == 0
free(a)
free(b)"""
    hazard(folder, body.format(26), global_read(25, 300) + END.format(1, 0))
    silent(folder, body.format(25))


def test_copying_uninitialized_bytes_to_the_host_is_reported(folder):
    body = 'a = alloc(400)\nput(a, bytes(100))\nget(a, {})\nfree(a)'
    hazard(folder, body.format(104), """\
softgpu: warning 1 (init, uninitialized): a copy of 104 bytes to the host reads 4 that nothing has written: ADDRESS
  300 bytes before the end of an allocation of 400 bytes at ADDRESS, made by cuMemAlloc_v2
""" + END.format(0, 1))
    silent(folder, body.format(100))


def test_atomic_operations_on_uninitialized_memory_are_reported(folder):
    body = 'a = alloc(4)\n{}\nlaunch("count", a)\nlaunch("count", a)\nassert sync() == 0\nget(a, 4)\nfree(a)'
    text = run(folder, body.format(""))[2]
    expect("kernel count: 4 of these bytes" in text and "checked: 1 errors" in text, text)
    silent(folder, body.format("put(a, bytes(4))"))


def test_bytes_written_by_the_cpu_are_initialized(folder):
    for make, free in [("cuMemAllocManaged(ref(m), ctypes.c_size_t(400), 1)", "cuMemFree_v2(ctypes.c_uint64(m.value))"),
                       ("cuMemHostAlloc(ref(m), ctypes.c_size_t(400), 2)", "cuMemFreeHost(m)")]:
        body = (f"m = ctypes.c_void_p()\nok(cuda.{make})\nctypes.memset(m.value, 0, 200)\n"
                f'launch("read", m.value, threads={{}})\nassert sync() == 0\nok(cuda.{free})')
        text = run(folder, body.format(51))[2]
        expect("thread 50,0,0" in text and "checked: 1 errors" in text, text)
        silent(folder, body.format(50))


def test_reused_pool_memory_is_uninitialized(folder):
    body = """s = stream()
a = ctypes.c_uint64()
for i in range(2):
    ok(cuda.cuMemAllocAsync(ref(a), ctypes.c_size_t(400), s))
    if i in {}:
        launch("fill", a.value, threads=100, stream=s)
    launch("read", a.value, stream=s)
    ok(cuda.cuMemFreeAsync(a, s))
    assert sync() == 0
ok(cuda.cuStreamDestroy_v2(s))"""
    text = run(folder, body.format("[0]"))[2]
    expect("kernel read: 4 of these bytes" in text and "checked: 1 errors" in text, text)
    silent(folder, body.format("[0, 1]"))


def test_pool_memory_reused_before_its_kernels_run_is_not_reported(folder):
    silent(folder, """s = stream()
a, b = ctypes.c_uint64(), ctypes.c_uint64()
ok(cuda.cuMemAllocAsync(ref(a), ctypes.c_size_t(400), s))
ok(cuda.cuStreamSynchronize(s))
put(a.value, bytes(400))
launch("read", a.value, threads=100, stream=s)
ok(cuda.cuMemFreeAsync(a, s))
ok(cuda.cuMemAllocAsync(ref(b), ctypes.c_size_t(400), s))
assert a.value == b.value
ok(cuda.cuMemFreeAsync(b, s))
assert sync() == 0
ok(cuda.cuStreamDestroy_v2(s))""", SOFTGPU_SCHEDULE="late")


def test_uninitialized_reads_of_shared_memory_are_reported(folder):
    body = 'launch("part", {}, threads=32, blocks=3)\nassert sync() == 0'
    hazard(folder, body.format(20), """\
softgpu: warning 1 (init, uninitialized): kernel part: 4 of these bytes have not been written: read of 4 bytes at offset \
80 of shared memory
    at /src/checked.cu:29
    PTX line 35: ld.shared.u32 %r4, [%r3];
    block 0,0,0 thread 20,0,0
softgpu: 1 was found 36 times
""" + END.format(0, 36))
    silent(folder, body.format(32))


def test_shared_memory_reserved_by_compilers_is_not_checked(folder):
    """What is behind a kernel's own arrays is not the kernel's, and not looked at."""
    body = 'launch("reserved", 0)\nassert sync() == 0'
    silent(folder, body)
    expect_text(checked.run(folder, "memory", PTX, body)[2], SILENT)


def test_uninitialized_reads_of_local_memory_are_reported(folder):
    body = 'launch("frame", {})\nassert sync() == 0'
    hazard(folder, body.format(0), """\
softgpu: warning 1 (init, uninitialized): kernel frame: 4 of these bytes have not been written: read of 4 bytes at \
offset 4 of local memory
    at /src/checked.cu:39
    PTX line 44: ld.local.u32 %r1, [one+4];
    block 0,0,0 thread 0,0,0
""" + END.format(0, 1))
    silent(folder, body.format(1))


def test_uninitialized_reads_by_asynchronous_copies_are_reported(folder):
    body = 'a = alloc(16)\nput(a, bytes({}))\nlaunch("copies", a)\nassert sync() == 0\nfree(a)'
    for schedule in "eager", "late":
        text = run(folder, body.format(12), SOFTGPU_SCHEDULE=schedule)[2]
        expect("kernel copies: 4 of these bytes" in text and "checked: 1 errors" in text, text)
        silent(folder, body.format(16), SOFTGPU_SCHEDULE=schedule)


harness.main_unless_sanitized(globals())
