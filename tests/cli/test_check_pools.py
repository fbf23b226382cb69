#!/usr/bin/env python3
"""gpumem run --check memory,init: memory of pools and of graphs, and the mended twins."""
import checked
import harness
from harness import expect

PTX = """
.visible .entry fill(.param .u64 at)
{
    .reg .b64 %d<4>; .reg .b32 %r<4>;
    ld.param.u64 %d1, [at]; mov.u32 %r1, %tid.x; mul.wide.u32 %d2, %r1, 4; add.u64 %d1, %d1, %d2;
    .loc 1 7 5
    st.global.u32 [%d1], %r1;
    ret;
}
.visible .entry read(.param .u64 at)
{
    .reg .b64 %d<4>; .reg .b32 %r<4>;
    ld.param.u64 %d1, [at]; mov.u32 %r1, %tid.x; mul.wide.u32 %d2, %r1, 4; add.u64 %d1, %d1, %d2;
    .loc 1 15 5
    ld.global.u32 %r2, [%d1];
    ret;
}
"""

BEGIN = """
SIZE = ctypes.c_size_t
s = stream()
def take(size, of=s, pool=None):
    made = ctypes.c_uint64()
    if pool:
        ok(cuda.cuMemAllocFromPoolAsync(ref(made), SIZE(size), pool, of))
    else:
        ok(cuda.cuMemAllocAsync(ref(made), SIZE(size), of))
    return made.value
def give(address, of=s):
    ok(cuda.cuMemFreeAsync(ctypes.c_uint64(address), of))
def default_pool():
    pool = ctypes.c_void_p()
    ok(cuda.cuDeviceGetDefaultMemPool(ref(pool), 0))
    return pool
def keep_all(pool):
    ok(cuda.cuMemPoolSetAttribute(pool, 4, ref(ctypes.c_uint64(1 << 40))))
def made_pool(most=0):
    pool, properties = ctypes.c_void_p(), (ctypes.c_uint64 * 11)()
    properties[0], properties[1], properties[3] = 1, 1, most
    ok(cuda.cuMemPoolCreate(ref(pool), properties))
    return pool
"""
BYE = "\nok(cuda.cuStreamDestroy_v2(s))"


def run(folder, body, checks="memory", **variables):
    return checked.run(folder, checks, PTX, BEGIN + body + BYE, **variables)


def silent(folder, body, checks="memory,init", **variables):
    checked.expect_silent(run(folder, body, checks, **variables))


def finds(folder, body, *words, checks="memory", **variables):
    code, out, text = run(folder, body, checks, **variables)
    expect(code == 0, f"exit status {code}\n{out}{text}")
    for word in words:
        expect(word in text, f"{word!r} is not in\n{text}")
    return text


FREED = """keep_all(default_pool())
a, b = take(400), take(400)
launch("fill", a, threads=100, stream=s)
launch("fill", b, threads=100, stream=s)
give({})
{}
c = take(400)
assert c not in (a, b)
launch("fill", c, threads=100, stream=s)
launch("fill", a, threads=2, stream=s)
give({})
give(c)
assert sync() == 0"""


def test_writing_to_freed_pool_memory_is_reported(folder):
    for wait in "", "assert sync() == 0":
        text = finds(folder, FREED.format("a", wait, "b"),
                     "(memory, use-after-free): kernel fill: use of freed memory: write of 4 bytes",
                     "0 bytes inside of an allocation of 400 bytes", "made by cuMemAllocAsync", "checked: 2 errors")
        expect("out-of-bounds" not in text, text)
        silent(folder, FREED.format("b", wait, "a"))


def test_work_before_the_free_is_not_reported(folder):
    for schedule in "eager", "late", "random":
        silent(folder, """a = take(400)
launch("fill", a, threads=100, stream=s)
launch("read", a, threads=100, stream=s)
give(a)
assert sync() == 0""", SOFTGPU_SCHEDULE=schedule, SOFTGPU_SEED="3")


def test_writing_beyond_a_pool_allocation_is_reported(folder):
    body = 'a = take(400)\nlaunch("fill", a, threads={}, stream=s)\ngive(a)\nassert sync() == 0'
    finds(folder, body.format(101), "(memory, out-of-bounds): kernel fill: outside of all allocations",
          "0 bytes behind the end of an allocation of 400 bytes", "thread 100,0,0", "checked: 1 errors")
    silent(folder, body.format(100))


def test_using_pool_memory_after_cumemfree_is_reported(folder):
    body = """keep_all(default_pool())
a = take(400)
launch("fill", a, threads=100, stream=s)
assert sync() == 0
{}
b = take(400)
launch("fill", b, threads=100, stream=s)
launch("read", a, stream=s)
assert sync() == 0
{}
free(b)"""
    finds(folder, body.format("free(a)", ""), "(memory, use-after-free): kernel read", "checked: 1 errors")
    silent(folder, body.format("", "free(a)"))


def test_double_frees_leaks_and_unused_pool_memory_are_reported(folder):
    finds(folder, """a = take(400)
launch("fill", a, stream=s)
give(a)
assert cuda.cuMemFreeAsync(ctypes.c_uint64(a), s) == 1
assert sync() == 0""", "(memory, double-free): 0x", "is freed twice", "made by cuMemAllocAsync", "checked: 1 errors")
    finds(folder, 'a = take(400)\nlaunch("fill", a, stream=s)\nassert sync() == 0',
          "(memory, leak): 400 bytes at 0x", "were not freed at exit", "made by cuMemAllocAsync")
    finds(folder, "a = take(400)\ngive(a)\nassert sync() == 0", "an allocation of 400 bytes was never used")


def test_using_memory_of_a_trimmed_pool_is_reported_and_fails(folder):
    """Then the memory is gone, and the kernel fails as on hardware."""
    finds(folder, """pool = made_pool()
keep_all(pool)
a = take(400, pool=pool)
launch("fill", a, stream=s)
give(a)
assert sync() == 0
ok(cuda.cuMemPoolTrimTo(pool, SIZE(0)))
held = ctypes.c_uint64(1)
ok(cuda.cuMemPoolGetAttribute(pool, 5, ref(held)))
assert held.value == 0
launch("read", a, stream=s)
assert sync() == 700
sys.stdout.flush()
os._exit(0)""", "(memory, use-after-free): kernel read: use of freed memory", "400 bytes")


def test_destroying_a_pool_is_not_reported(folder):
    silent(folder, """pool = made_pool()
for i in range(3):
    a = take(400, pool=pool)
    launch("fill", a, threads=100, stream=s)
    give(a)
ok(cuda.cuMemPoolDestroy(pool))
assert sync() == 0""")


def test_freed_pool_memory_is_reused_when_memory_is_short(folder):
    """What is kept goes back where the device or the pool would have none."""
    silent(folder, """for i in range(40):
    a = take(48 << 20)
    launch("fill", a, stream=s)
    give(a)
assert sync() == 0
b = alloc(200 << 20)
put(b, b"1")
free(b)
assert sync() == 0""")
    silent(folder, """pool = made_pool(64 << 20)
for i in range(10):
    a = take(40 << 20, pool=pool)
    launch("fill", a, stream=s)
    give(a)
assert sync() == 0
ok(cuda.cuMemPoolDestroy(pool))""")


GRAPH = """
import struct
graph, exec_, node, work, last = (ctypes.c_void_p() for _ in range(5))
ok(cuda.cuGraphCreate(ref(graph), 0))
capture = stream()
ok(cuda.cuStreamBeginCapture_v2(capture, 2))
a = take({size}, capture)
launch("fill", a, threads={threads}, stream=capture)
launch("read", a, threads={reads}, stream=capture)
{free}
ok(cuda.cuStreamEndCapture(capture, ref(graph)))
ok(cuda.cuGraphInstantiateWithFlags(ref(exec_), graph, ctypes.c_uint64(0)))
for i in range(2):
    ok(cuda.cuGraphLaunch(exec_, s))
    assert sync() == 0
    {after}
ok(cuda.cuGraphExecDestroy(exec_))
ok(cuda.cuGraphDestroy(graph))
ok(cuda.cuStreamDestroy_v2(capture))"""


def test_writing_beyond_a_graph_allocation_is_reported(folder):
    freed = {"free": "give(a, capture)", "after": "pass"}
    silent(folder, GRAPH.format(size=400, threads=100, reads=100, **freed))
    finds(folder, GRAPH.format(size=400, threads=101, reads=100, **freed),
          "(memory, out-of-bounds): kernel fill: outside of all allocations", "thread 100,0,0", "checked: 2 errors")
    # A whole page: behind it is a red zone, and not the next one's memory.
    whole = 2 << 20
    silent(folder, GRAPH.format(size=whole, threads=512, reads=512, **freed))
    two = GRAPH.replace("a = take(", "b = take(2 << 20, capture)\na = take(") \
        .replace('launch("fill", a,', 'launch("fill", b + (2 << 20) - 4 * {over}, stream=capture)\nlaunch("fill", a,') \
        .replace("{free}", "give(b, capture)\n{free}")
    finds(folder, two.format(size=whole, threads=512, reads=512, over=0, **freed),
          "(memory, out-of-bounds): kernel fill", "checked: 2 errors")
    silent(folder, two.format(size=whole, threads=512, reads=512, over=1, **freed))


def test_graph_memory_is_checked_until_it_is_freed(folder):
    left = {"free": "", "after": 'launch("read", a, threads={}, stream=s)\n    assert sync() == 0\n    free(a)'}
    silent(folder, GRAPH.format(size=400, threads=100, reads=100, **left).format(100))
    body = GRAPH.format(size=400, threads=100, reads=100, **left).format(100).replace("range(2)", "range(1)")
    finds(folder, body.replace("    free(a)", "    free(a)\n    launch('read', a, stream=s)\n    assert sync() == 700\n    sys.stdout.flush()\n    os._exit(0)"),
          "(memory, use-after-free): kernel read: use of freed memory", "allocation of 400 bytes")


harness.main_unless_sanitized(globals())
