#!/usr/bin/env python3
"""gpumem run --check memory,init: textures and surfaces of arrays and of memory, and the mended twins."""
import checked
import harness
from harness import expect

# Each thread samples or stores texel %tid.x, from `first` on, and keeps what it got. A row of an array is sampled by
# position (pick), one of memory by number (fetch); by number hardware reads nothing from an array.
PTX = """
.visible .entry pick(.param .u64 tex, .param .u64 first, .param .u64 out)
{
    .reg .b64 %d<4>; .reg .b32 %r<4>; .reg .f32 %f<5>;
    ld.param.u64 %d1, [tex]; ld.param.u32 %r1, [first]; mov.u32 %r2, %tid.x; add.u32 %r1, %r1, %r2;
    cvt.rn.f32.u32 %f4, %r1; add.f32 %f4, %f4, 0f3F000000;
    .loc 1 5 5
    tex.1d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%d1, {%f4}];
    ld.param.u64 %d2, [out]; mul.wide.u32 %d3, %r2, 4; add.u64 %d2, %d2, %d3; st.global.f32 [%d2], %f0;
    ret;
}
.visible .entry fetch(.param .u64 tex, .param .u64 first, .param .u64 out)
{
    .reg .b64 %d<4>; .reg .b32 %r<4>; .reg .f32 %f<4>;
    ld.param.u64 %d1, [tex]; ld.param.u32 %r1, [first]; mov.u32 %r2, %tid.x; add.u32 %r1, %r1, %r2;
    .loc 1 5 5
    tex.1d.v4.f32.s32 {%f0, %f1, %f2, %f3}, [%d1, {%r1}];
    ld.param.u64 %d2, [out]; mul.wide.u32 %d3, %r2, 4; add.u64 %d2, %d2, %d3; st.global.f32 [%d2], %f0;
    ret;
}
.visible .entry smooth(.param .u64 tex, .param .u64 at)
{
    .reg .b64 %d<4>; .reg .b32 %r<4>; .reg .f32 %f<6>;
    ld.param.u64 %d1, [tex]; ld.param.f32 %f4, [at];
    .loc 1 14 5
    tex.1d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%d1, {%f4}];
    ret;
}
.visible .entry plane(.param .u64 tex, .param .u64 x, .param .u64 y)
{
    .reg .b64 %d<4>; .reg .b32 %r<4>; .reg .f32 %f<6>;
    ld.param.u64 %d1, [tex]; ld.param.u32 %r0, [x]; ld.param.u32 %r1, [y];
    .loc 1 22 5
    tex.2d.v4.f32.s32 {%f0, %f1, %f2, %f3}, [%d1, {%r0, %r1}];
    ret;
}
.visible .entry put(.param .u64 surf, .param .u64 first)
{
    .reg .b64 %d<4>; .reg .b32 %r<6>;
    ld.param.u64 %d1, [surf]; ld.param.u32 %r1, [first]; mov.u32 %r2, %tid.x; add.u32 %r1, %r1, %r2; shl.b32 %r3, %r1, 2;
    sust.b.1d.b32.trap [%d1, {%r3}], %r2;
    ret;
}
.visible .entry take(.param .u64 surf, .param .u64 first)
{
    .reg .b64 %d<4>; .reg .b32 %r<6>;
    ld.param.u64 %d1, [surf]; ld.param.u32 %r1, [first]; mov.u32 %r2, %tid.x; add.u32 %r1, %r1, %r2; shl.b32 %r3, %r1, 2;
    .loc 1 36 5
    suld.b.1d.b32.trap %r4, [%d1, {%r3}];
    ret;
}
.visible .entry add(.param .u64 surf)
{
    .reg .b64 %d<4>; .reg .b32 %r<6>;
    ld.param.u64 %d1, [surf]; mov.u32 %r1, 0; mov.u32 %r2, 1;
    .loc 1 43 5
    sured.b.add.1d.u32.trap [%d1, {%r1}], %r2;
    ret;
}
"""

# Arrays of floats, texture and surface objects.
OBJECTS = """
import struct
SIZE = ctypes.c_size_t
def array(width, height=0, flags=2):
    made = ctypes.c_void_p()
    ok(cuda.cuArray3DCreate_v2(ref(made), struct.pack("QQQiII4x", width, height, 0, 0x20, 1, flags)))
    return made
def destroy(made):
    ok(cuda.cuArrayDestroy(made))
def fill(to, count, first=0):
    ok(cuda.cuMemcpyHtoA_v2(to, SIZE(4 * first), bytes(4 * count), SIZE(4 * count)))
def rectangle(to, x, y, width, height):
    data = ctypes.create_string_buffer(4 * width * height)
    ok(cuda.cuMemcpy2D_v2(struct.pack("QQi4xQQQQ", 0, 0, 1, ctypes.addressof(data), 0, 0, 4 * width) +
                          struct.pack("QQi4xQQQQQQ", 4 * x, y, 3, 0, 0, to.value, 0, 4 * width, height)))
def texture(resource, linear=False, flags=0):
    made = ctypes.c_uint64()
    ok(cuda.cuTexObjectCreate(ref(made), resource, struct.pack("iiiiIIifff4f12i", 1, 1, 1, int(linear), flags, 0, 0, 0, 0,
                                                              0, *4 * [0], *12 * [0]), None))
    return made.value
def of_array(made):
    return struct.pack("i4xQ120xI4x", 0, made.value, 0)
def of_memory(address, size):
    return struct.pack("i4xQiIQ104xI4x", 2, address, 0x20, 1, size, 0)
def surface(made):
    handle = ctypes.c_uint64()
    ok(cuda.cuSurfObjectCreate(ref(handle), of_array(made)))
    return handle.value
def no_texture(handle):
    ok(cuda.cuTexObjectDestroy(ctypes.c_uint64(handle)))
def no_surface(handle):
    ok(cuda.cuSurfObjectDestroy(ctypes.c_uint64(handle)))
"""

END = "softgpu: checked: {} errors, {} warnings, {} remarks\n"


def run(folder, checks, body, **variables):
    return checked.run(folder, checks, PTX, OBJECTS + body, **variables)


def silent(folder, body, checks="memory,init"):
    checked.expect_silent(run(folder, checks, body))


def hazard(folder, body, wanted, checks="memory,init"):
    checked.expect_said(run(folder, checks, body), wanted)


FETCH = """a, o = array(64), alloc(256)
fill(a, {})
t = texture(of_array(a))
launch("pick", t, 0, o, threads=32)
assert sync() == 0
get(o, 128)
no_texture(t)
destroy(a)
free(o)"""


def test_uninitialized_texels_are_reported(folder):
    hazard(folder, FETCH.format(30), """\
softgpu: error 1 (init, uninitialized): kernel pick: 4 of these bytes have not been written: read of 4 bytes at ADDRESS
    at /src/checked.cu:5
    PTX line 12: tex.1d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%d1, {%f4}];
    block 0,0,0 thread 30,0,0
  at byte 120 of an array of 512 bytes, made by cuArray3DCreate_v2
softgpu: 1 was found 2 times
""" + END.format(2, 0, 0))
    silent(folder, FETCH.format(32))


SMOOTH = """a = array(64)
fill(a, 8)
t = texture(of_array(a), linear=True)
launch("smooth", t, struct.unpack("I", struct.pack("f", {}))[0])
assert sync() == 0
no_texture(t)
destroy(a)"""


def test_a_filter_reads_only_texels_with_weight(folder):
    """At the middle of texel 7 its neighbour has no weight."""
    text = run(folder, "init", SMOOTH.format(7.75))[2]
    expect("kernel smooth: 4 of these bytes" in text and "at byte 32 of" in text and "checked: 1 errors" in text, text)
    silent(folder, SMOOTH.format(7.5))


ENDED = """a, o = array(64), alloc(256)
fill(a, 64)
t = texture(of_array(a))
{}
launch("pick", t, 0, o)
{}
assert sync() == {}"""


def test_objects_destroyed_before_the_launch_are_reported(folder):
    """Hardware samples by them. Without a checker so does softgpu, and in any case what is destroyed afterwards."""
    end = "no_texture(t)"
    silent(folder, ENDED.format("", end, 0) + "\nget(o, 4)\ndestroy(a)\nfree(o)")
    text = run(folder, "memory", ENDED.format(end, "", 719))[2]
    expect("kernel pick: " in text and "it was destroyed before the launch" in text, text)
    expect("destroyed" not in run(folder, "init", ENDED.format(end, "", 0))[2], text)


PLANE = """a = array(20, 10)
rectangle(a, 3, 2, 5, 4)
t = texture(of_array(a))
for x, y in {}:
    launch("plane", t, x, y)
assert sync() == 0
no_texture(t)
destroy(a)"""


def test_uninitialized_parts_of_2d_arrays_are_reported(folder):
    silent(folder, PLANE.format("[(x, y) for x in range(3, 8) for y in range(2, 6)]"))
    text = run(folder, "init", PLANE.format("[(x, y) for x in range(2, 9) for y in range(1, 7)]"))[2]
    expect("checked: 22 errors" in text, text)


SURFACE = """a = array(64)
s, t = surface(a), texture(of_array(a))
o = alloc(256)
launch("put", s, 0, threads={})
launch("take", s, 0, threads=20)
launch("pick", t, 0, o, threads=20)
assert sync() == 0
no_surface(s)
no_texture(t)
destroy(a)
get(o, 80)
free(o)"""


def test_surface_stores_initialize_texels(folder):
    text = run(folder, "init", SURFACE.format(19))[2]
    expect("kernel take: 4 of these bytes" in text and "kernel pick: 4 of these bytes" in text and
           "suld.b.1d.b32.trap" in text and "thread 19,0,0" in text and "checked: 2 errors" in text, text)
    silent(folder, SURFACE.format(20))


def test_surface_reductions_of_uninitialized_texels_are_reported(folder):
    body = 'a = array(64)\ns = surface(a)\n{}\nlaunch("add", s)\nassert sync() == 0\nno_surface(s)\ndestroy(a)'
    text = run(folder, "init", body.format(""))[2]
    expect("kernel add: 4 of these bytes" in text and "checked: 1 errors" in text, text)
    silent(folder, body.format("fill(a, 1)"))


def test_copying_uninitialized_texels_to_the_host_is_reported(folder):
    body = """a = array(64)
fill(a, 8)
data = ctypes.create_string_buffer(64)
ok(cuda.cuMemcpyAtoH_v2(data, a, SIZE(0), SIZE({})))
destroy(a)"""
    hazard(folder, body.format(36), """\
softgpu: warning 1 (init, uninitialized): a copy of 36 bytes to the host reads 4 that nothing has written: ADDRESS
  at byte 32 of an array of 512 bytes, made by cuArray3DCreate_v2
""" + END.format(0, 1, 0))
    silent(folder, body.format(32))


def test_array_copies_carry_over_which_bytes_are_initialized(folder):
    body = """a, b, m = array(64), array(64), alloc(64)
fill(a, 8)
ok(cuda.cuMemcpyAtoA_v2(b, SIZE(0), a, SIZE(0), SIZE(36)))
ok(cuda.cuMemcpyAtoD_v2(ctypes.c_uint64(m), b, SIZE(0), SIZE(36)))
get(m, {})
destroy(a)
destroy(b)
free(m)"""
    text = run(folder, "init", body.format(36))[2]
    expect("a copy of 36 bytes to the host reads 4" in text and "checked: 0 errors, 1 warnings" in text, text)
    silent(folder, body.format(32))


def test_uninitialized_texels_of_linear_memory_are_reported(folder):
    body = """m, o = alloc(400), alloc(256)
put(m, bytes({}))
t = texture(of_memory(m, 400))
launch("fetch", t, 90, o, threads=10)
assert sync() == 0
get(o, 40)
no_texture(t)
free(m)
free(o)"""
    text = run(folder, "memory,init", body.format(392))[2]
    expect("kernel fetch: 4 of these bytes" in text and "8 bytes before the end of an allocation of 400 bytes" in text and
           "checked: 2 errors" in text, text)
    silent(folder, body.format(400))


def test_textures_of_freed_memory_are_reported(folder):
    body = """m, n, o = alloc(400), alloc(400), alloc(256)
put(m, bytes(400))
put(n, bytes(400))
t = texture(of_memory(m, 400))
{}
launch("fetch", t, 0, o)
assert sync() == 0
{}
get(o, 4)
no_texture(t)
free(n)
free(o)"""
    text = run(folder, "memory", body.format("free(m)", ""))[2]
    expect("(memory, use-after-free): kernel fetch: use of freed memory: read of 4 bytes" in text and
           "checked: 1 errors" in text, text)
    silent(folder, body.format("", "free(m)"))


def test_textures_larger_than_their_memory_are_reported(folder):
    """The object says more than there is."""
    body = """m, o = alloc(400), alloc(256)
put(m, bytes(400))
t = texture(of_memory(m, {}))
launch("fetch", t, 100, o)
assert sync() == 0
get(o, 4)
no_texture(t)
free(m)
free(o)"""
    text = run(folder, "memory", body.format(404))[2]
    expect("(memory, out-of-bounds): kernel fetch: outside of all allocations: read of 4 bytes" in text and
           "checked: 1 errors" in text, text)
    silent(folder, body.format(400))


def test_fetching_from_a_destroyed_array_is_reported_and_fails(folder):
    """As without a checker the kernel fails: hardware does not answer anything else for certain."""
    body = """a, o = array(64), alloc(256)
fill(a, 64)
t = texture(of_array(a))
destroy(a)
launch("fetch", t, 0, o)
print(sync())
sys.stdout.flush()
os._exit(0)"""
    text = run(folder, "memory", body)[2]
    expect("kernel fetch" in text and "its array was destroyed" in text, text)


def test_storing_outside_a_surface_is_reported(folder):
    body = 'a = array(64)\ns = surface(a)\nlaunch("put", s, {}, threads=4)\nprint(sync())\nsys.stdout.flush()\n'
    _, out, text = run(folder, "memory", body.format(61) + "os._exit(0)")
    expect(out.strip() not in ("", "0") and "(memory, surface): kernel put: outside of a surface" in text and
           "sust.b.1d.b32.trap" in text and "thread 3,0,0" in text, out + text)
    silent(folder, body.format(60) + "no_surface(s)\ndestroy(a)", "memory")


def test_fetching_from_an_array_of_another_dimension_is_reported(folder):
    body = 'a = array(8, {})\n{}\nt = texture(of_array(a))\nlaunch("plane", t, 1, 0)\nprint(sync())\nsys.stdout.flush()\n'
    _, out, text = run(folder, "memory", body.format(0, "fill(a, 8)") + "os._exit(0)")
    expect(out.strip() not in ("", "0") and "(memory, texture): kernel plane: " in text and
           "it is of another shape (1D) than the instruction's (2D)" in text, out + text)
    silent(folder, body.format(1, "rectangle(a, 0, 0, 8, 1)") + "no_texture(t)\ndestroy(a)", "memory")


def test_leaked_and_unused_arrays_are_reported(folder):
    hazard(folder, "a = array(64)\nfill(a, 1)", """\
softgpu: error 1 (memory, leak): an array of 512 bytes was not destroyed before its context ended
  made by cuArray3DCreate_v2
""" + END.format(1, 0, 0), "memory")
    hazard(folder, "destroy(array(64))", """\
softgpu: info 1 (memory, unused-memory): an array of 512 bytes was never used
  made by cuArray3DCreate_v2
""" + END.format(0, 0, 1), "memory")
    silent(folder, "a = array(64)\nfill(a, 1)\ndestroy(a)", "memory")


harness.main_unless_sanitized(globals())
