#!/usr/bin/env python3
"""gpumem run --check memory: a program for each hazard, and its mended twin, of which nothing is said."""
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
.visible .entry arrays(.param .u64 n)
{
    .shared .align 4 .b8 first[16]; .shared .align 4 .b8 second[16];
    .reg .b32 %r<6>;
    mov.u32 %r1, first; ld.param.u32 %r2, [n]; shl.b32 %r2, %r2, 2; add.u32 %r3, %r1, %r2;
    .loc 1 17 1
    st.shared.u32 [%r3], %r2;
    ret;
}
.visible .entry gap(.param .u64 n)
{
    .shared .align 16 .b8 first[4]; .shared .align 16 .b8 second[4];
    .reg .b32 %r<6>; .reg .b64 %d<4>;
    ld.param.u32 %r2, [n];
    .loc 1 26 1
    st.shared.u32 [%r2], %r2;
    st.shared.u32 [first], %r2; st.shared.u32 [second], %r2;
    ret;
}
.visible .entry frame(.param .u64 n)
{
    .local .align 4 .b8 one[16]; .local .align 4 .b8 two[16];
    .reg .b64 %d<6>;
    mov.u64 %d1, one; ld.param.u64 %d2, [n]; shl.b64 %d2, %d2, 2; add.u64 %d3, %d1, %d2;
    .loc 1 36 1
    st.local.u32 [%d3], 7;
    st.local.u32 [two], 7;
    ret;
}
.visible .entry grows(.param .u64 n)
{
    .reg .b64 %d<2>; .reg .b32 %r<2>; .reg .pred %p; .param .b64 p; .param .b64 q;
    ld.param.u64 %d1, [n];
    { .param .b64 p; st.param.b64 [p], %d1; call.uni deeper, (p); }
    ret;
}
.func deeper(.param .b64 n)
{
    .local .align 8 .b8 room[512]; .reg .b64 %d<3>; .reg .pred %p;
    ld.param.u64 %d1, [n]; st.local.u64 [room], %d1; setp.eq.u64 %p, %d1, 0; @%p ret;
    sub.u64 %d2, %d1, 1;
    { .param .b64 p; st.param.b64 [p], %d2; call.uni deeper, (p); }
    ret;
}
.visible .entry heap(.param .u64 twice)
{
    .reg .b64 %d<4>; .reg .pred %p;
    { .param .b64 s; .param .b64 r; st.param.b64 [s], 64; call.uni (r), malloc, (s); ld.param.b64 %d1, [r]; }
    st.u32 [%d1], 5; ld.param.u64 %d2, [twice]; setp.eq.u64 %p, %d2, 0;
    { .param .b64 p; st.param.b64 [p], %d1; call.uni free, (p); }
    @%p ret;
    { .param .b64 p; st.param.b64 [p], %d1; call.uni free, (p); }
    ret;
}
.visible .entry odd(.param .u64 n)
{
    .shared .align 8 .b8 words[64]; .local .align 8 .b8 mine[64]; .reg .b32 %r<4>; .reg .b64 %d<4>; .reg .pred %p;
    ld.param.u32 %r1, [n]; ld.param.u64 %d1, [n]; mov.u64 %d2, mine; add.u64 %d2, %d2, %d1; mov.u32 %r2, words;
    add.u32 %r2, %r2, %r1; setp.gt.u32 %p, %r1, 8; @%p bra local;
    .loc 1 96 1
    st.shared.u32 [%r2], 1;
    ret;
local:
    .loc 1 97 1
    st.local.u32 [%d2], 1;
    ret;
}
.visible .entry stops(.param .u64 n)
{
    .reg .b64 %d<4>; .reg .pred %p;
    ld.param.u64 %d1, [n]; setp.eq.u64 %p, %d1, 0; @%p ret;
    .loc 1 98 1
    trap;
}
.visible .entry calls(.param .u64 n)
{
    .reg .b64 %d<4>; .reg .pred %p;
    ld.param.u64 %d1, [n]; setp.eq.u64 %p, %d1, 0; @%p ret;
    .loc 1 99 1
    { call.uni %d1, (), none; }
    ret;
none: .callprototype _ ();
}
.global .align 1 .b8 text[4] = {97, 98, 99, 0};
.global .attribute(.managed) .align 4 .b32 everyones = 7;
.extern .func __assertfail (.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 g, .param .b64 s);
.visible .entry asserts(.param .u64 n)
{
    .reg .b64 %d<4>; .reg .pred %p;
    ld.param.u64 %d1, [n]; setp.eq.u64 %p, %d1, 0; @%p ret; mov.u64 %d2, text; cvta.global.u64 %d2, %d2;
    .loc 1 100 1
    { .param .b64 m; .param .b64 f; .param .b32 l; .param .b64 g; .param .b64 s; st.param.b64 [m], %d2;
      st.param.b64 [f], %d2; st.param.b32 [l], 7; st.param.b64 [g], %d2; st.param.b64 [s], 1;
      call.uni __assertfail, (m, f, l, g, s); }
    ret;
}
"""
PTX = """.extern .func (.param .b64 r) malloc(.param .b64 s);
.extern .func free(.param .b64 p);
.func deeper(.param .b64 n);
""" + PTX


def run(folder, body, *options, **variables):
    return checked.run(folder, "memory", PTX, body, *options, **variables)


def hazard(folder, body, wanted):
    """What is said, of a program that then ends as told."""
    return checked.expect_said(run(folder, body), wanted)


def silent(folder, body):
    checked.expect_silent(run(folder, body))


PADDING = 'a = alloc(400)\nlaunch("fill", a, threads={})\nassert sync() == 0\nassert len(get(a, 400)) == 400\nfree(a)'


def test_writing_to_the_padding_of_an_allocation_is_reported(folder):
    hazard(folder, PADDING.format(103), """\
softgpu: error 1 (memory, out-of-bounds): kernel fill: outside of all allocations: write of 4 bytes at ADDRESS
    at /src/checked.cu:7
    PTX line 14: st.global.u32 [%d1], %r1;
    block 0,0,0 thread 100,0,0
  0 bytes behind the end of an allocation of 400 bytes at ADDRESS, the nearest one, made by cuMemAlloc_v2
softgpu: 1 was found 3 times
softgpu: checked: 3 errors, 0 warnings, 0 remarks
""")
    silent(folder, PADDING.format(100))


NEXT = """a, b = alloc(512), alloc(512)
put(b, bytes(512))
launch("fill", a, threads={})
assert sync() == 0 and get(b, 512) == bytes(512)
free(a)
free(b)"""


def test_writing_between_allocations_is_reported(folder):
    """Without it the write would be the next allocation's, and nobody would know."""
    hazard(folder, NEXT.format(129), """\
softgpu: error 1 (memory, out-of-bounds): kernel fill: outside of all allocations: write of 4 bytes at ADDRESS
    at /src/checked.cu:7
    PTX line 14: st.global.u32 [%d1], %r1;
    block 0,0,0 thread 128,0,0
  0 bytes behind the end of an allocation of 512 bytes at ADDRESS, the nearest one, made by cuMemAlloc_v2
softgpu: checked: 1 errors, 0 warnings, 0 remarks
""")
    silent(folder, NEXT.format(128))


POOL = """s = stream()
a, b = ctypes.c_uint64(), ctypes.c_uint64()
ok(cuda.cuMemAllocAsync(ref(a), ctypes.c_size_t(512), s))
ok(cuda.cuMemAllocAsync(ref(b), ctypes.c_size_t(512), s))
launch("fill", a.value, threads={}, stream=s)
launch("fill", b.value, threads=128, stream=s)
ok(cuda.cuMemFreeAsync(a, s))
ok(cuda.cuMemFreeAsync(b, s))
assert sync() == 0
ok(cuda.cuStreamDestroy_v2(s))"""


def test_writing_between_allocations_of_a_pool_is_reported(folder):
    out = run(folder, POOL.format(129))[2]
    expect("(memory, out-of-bounds): kernel fill" in out and "thread 128,0,0" in out and
           "checked: 1 errors, 0 warnings" in out, out)
    silent(folder, POOL.format(128))


FREED = """a, b = alloc(400), alloc(400)
put(a, b"1")
put(b, b"1")
free({})
c = alloc(400)
assert c not in (a, b)
put(c, b"1")
launch("fill", a, threads=2)
assert sync() == 0
free({})
free(c)"""


def test_writing_to_freed_memory_on_a_live_page_is_reported(folder):
    """Hardware has the page still, and says nothing: so does the launch."""
    hazard(folder, FREED.format("a", "b"), """\
softgpu: error 1 (memory, use-after-free): kernel fill: use of freed memory: write of 4 bytes at ADDRESS
    at /src/checked.cu:7
    PTX line 14: st.global.u32 [%d1], %r1;
    block 0,0,0 thread 0,0,0
  0 bytes inside of an allocation of 400 bytes at ADDRESS that has been freed
  made by cuMemAlloc_v2
softgpu: 1 was found 2 times
softgpu: checked: 2 errors, 0 warnings, 0 remarks
""")
    silent(folder, FREED.format("b", "a"))


def test_writing_to_a_freed_page_is_reported_and_fails(folder):
    """As on hardware the launch fails, too."""
    body = 'a = alloc(4 << 20)\nput(a, b"1")\nfree(a)\nlaunch("fill", a)\nprint(sync())\nsys.stdout.flush()\nos._exit(0)'
    out = hazard(folder, body, """\
softgpu: error 1 (memory, use-after-free): kernel fill: use of freed memory: write of 4 bytes at ADDRESS
    at /src/checked.cu:7
    PTX line 14: st.global.u32 [%d1], %r1;
    block 0,0,0 thread 0,0,0
  0 bytes inside of an allocation of 4194304 bytes at ADDRESS that has been freed
  made by cuMemAlloc_v2
""")
    expect(out == "700\n", out)


def test_writing_to_an_invalid_address_is_reported(folder):
    out = run(folder, 'launch("fill", 16)\nprint(sync())\nsys.stdout.flush()\nos._exit(0)')
    expect(out[1] == "700\n" and "no allocation within 1 GiB of it" in out[2], out)


def test_freeing_memory_twice_is_reported(folder):
    hazard(folder, 'a = alloc(400)\nput(a, b"1")\nfree(a)\nassert cuda.cuMemFree_v2(ctypes.c_uint64(a)) == 1', """\
softgpu: error 1 (memory, double-free): ADDRESS is freed twice
  called by cuMemFree_v2
  0 bytes inside of an allocation of 400 bytes at ADDRESS that has been freed
  made by cuMemAlloc_v2
softgpu: checked: 1 errors, 0 warnings, 0 remarks
""")
    silent(folder, 'a = alloc(400)\nput(a, b"1")\nfree(a)')


def test_leaked_device_and_pinned_memory_is_reported(folder):
    body = """a, b = alloc(400), ctypes.c_void_p()
put(a, b"1")
ok(cuda.cuMemAllocHost_v2(ref(b), ctypes.c_size_t(100)))
"""
    hazard(folder, body, """\
softgpu: error 1 (memory, leak): 100 bytes at ADDRESS were not freed before their context ended
  made by cuMemAllocHost_v2
softgpu: error 2 (memory, leak): 400 bytes at ADDRESS were not freed before their context ended
  made by cuMemAlloc_v2
softgpu: checked: 2 errors, 0 warnings, 0 remarks
""" if "100 bytes" in run(folder, body)[2].split("\n", 1)[0] else """\
softgpu: error 1 (memory, leak): 400 bytes at ADDRESS were not freed before their context ended
  made by cuMemAlloc_v2
softgpu: error 2 (memory, leak): 100 bytes at ADDRESS were not freed before their context ended
  made by cuMemAllocHost_v2
softgpu: checked: 2 errors, 0 warnings, 0 remarks
""")
    silent(folder, body + "free(a)\nok(cuda.cuMemFreeHost(b))")


def test_leaks_are_reported_at_exit(folder):
    text = run(folder, 'a = alloc(400)\nput(a, b"1")\nsys.exit(0)')[2]
    expect("(memory, leak): 400 bytes" in text and "were not freed at exit" in text, text)
    expect(text.count("leak") == 1, f"nor is a program to free its managed variables: {text}")


def test_unused_allocations_are_reported(folder):
    hazard(folder, "free(alloc(400))", """\
softgpu: info 1 (memory, unused-memory): an allocation of 400 bytes was never used
  made by cuMemAlloc_v2
softgpu: checked: 0 errors, 0 warnings, 1 remarks
""")
    silent(folder, 'a = alloc(400)\nget(a, 4)\nfree(a)')
    silent(folder, 'a = alloc(400)\nok(cuda.cuMemsetD8_v2(ctypes.c_uint64(a), 0, ctypes.c_size_t(1)))\nfree(a)')
    silent(folder, 'a = alloc(400)\nlaunch("fill", a)\nassert sync() == 0\nfree(a)')


def test_refused_api_calls_are_reported(folder):
    hazard(folder, 'assert cuda.cuMemcpyHtoD_v2(ctypes.c_uint64(5), b"ab", ctypes.c_size_t(2)) == 1', """\
softgpu: warning 1 (memory, api-error): cuMemcpyHtoD_v2 answered CUDA_ERROR_INVALID_VALUE
  called by cuMemcpyHtoD_v2
softgpu: checked: 0 errors, 1 warnings, 0 remarks
""")
    silent(folder, 'a = alloc(4)\nput(a, b"ab")\nfree(a)')


def test_misaligned_global_accesses_are_reported(folder):
    body = 'a = alloc(400)\nlaunch("fill", a + {})\nprint(sync())\nsys.stdout.flush()\n'
    out = hazard(folder, body.format(2) + "os._exit(0)", """\
softgpu: error 1 (memory, misaligned): kernel fill: misaligned address: write of 4 bytes at ADDRESS
    at /src/checked.cu:7
    PTX line 14: st.global.u32 [%d1], %r1;
    block 0,0,0 thread 0,0,0
  398 bytes before the end of an allocation of 400 bytes at ADDRESS, made by cuMemAlloc_v2
""")
    expect(out == "716\n", out)
    silent(folder, body.format(4) + "free(a)")
    _, out, text = run(folder, body.format(402) + "os._exit(0)")  # and outside of the allocation
    expect(out == "716\n" and "error 1 (memory, misaligned): kernel fill: misaligned address: write" in text, out + text)


def test_misaligned_shared_and_local_accesses_are_reported(folder):
    body = 'launch("odd", {})\nprint(sync())\nsys.stdout.flush()\nos._exit(0)'
    for number, space, line in (6, "shared", 96), (14, "local", 97):
        _, out, text = run(folder, body.format(number))
        expect(out == "716\n" and "(memory, misaligned): kernel odd: misaligned address: write of 4 bytes at offset "
               f"{number} of {space} memory" in text and f"at /src/checked.cu:{line}" in text, out + text)
    silent(folder, 'launch("odd", 4)\nlaunch("odd", 16)\nassert sync() == 0')


def test_traps_invalid_calls_and_assertions_are_reported(folder):
    """Traps, calls of what is no function, assertions."""
    body = 'launch("{}", 1)\nprint(sync())\nsys.stdout.flush()\nos._exit(0)'
    for name, error, kind, line in [("stops", 719, "trap", 98), ("calls", 718, "illegal-instruction", 99),
                                    ("asserts", 710, "assertion", 100)]:
        _, out, text = run(folder, body.format(name))
        expect(out == f"{error}\n" and f"(memory, {kind}): kernel {name}: " in text and
               f"at /src/checked.cu:{line}" in text, out + text)
        silent(folder, f'launch("{name}", 0)\nassert sync() == 0')


def test_writing_beyond_a_shared_array_is_reported(folder):
    hazard(folder, 'launch("arrays", 4)\nassert sync() == 0', """\
softgpu: error 1 (memory, out-of-bounds): kernel arrays: outside of its array: write of 4 bytes at offset 16 of \
shared memory
    at /src/checked.cu:17
    PTX line 23: st.shared.u32 [%r3], %r2;
    block 0,0,0 thread 0,0,0
  it means first, of 16 bytes at offset 0
softgpu: checked: 1 errors, 0 warnings, 0 remarks
""")
    silent(folder, 'launch("arrays", 3)\nassert sync() == 0')


def test_writing_between_shared_arrays_is_reported(folder):
    """The kernel gets an address: those of a block begin at 0x400."""
    hazard(folder, 'launch("gap", 0x408)\nassert sync() == 0', """\
softgpu: error 1 (memory, out-of-bounds): kernel gap: outside of its array: write of 4 bytes at offset 8 of shared \
memory
    at /src/checked.cu:26
    PTX line 32: st.shared.u32 [%r2], %r2;
    block 0,0,0 thread 0,0,0
  between the arrays of the kernel
softgpu: checked: 1 errors, 0 warnings, 0 remarks
""")
    silent(folder, 'launch("gap", 0x410)\nassert sync() == 0')


def test_writing_beyond_shared_memory_is_reported_and_fails(folder):
    out = hazard(folder, 'launch("arrays", 8)\nprint(sync())\nsys.stdout.flush()\nos._exit(0)', """\
softgpu: error 1 (memory, out-of-bounds): kernel arrays: address outside of its space: write of 4 bytes at offset 32 \
of shared memory
    at /src/checked.cu:17
    PTX line 23: st.shared.u32 [%r3], %r2;
    block 0,0,0 thread 0,0,0
""")
    expect(out == "700\n", out)


def test_writing_beyond_a_local_array_is_reported(folder):
    hazard(folder, 'launch("frame", 4)\nassert sync() == 0', """\
softgpu: error 1 (memory, out-of-bounds): kernel frame: outside of its array: write of 4 bytes at offset 16 of local \
memory
    at /src/checked.cu:36
    PTX line 42: st.local.u32 [%d3], 7;
    block 0,0,0 thread 0,0,0
  it means one, of 16 bytes at offset 0
softgpu: checked: 1 errors, 0 warnings, 0 remarks
""")
    silent(folder, 'launch("frame", 3)\nassert sync() == 0')


def test_a_stack_overflow_is_reported(folder):
    text = run(folder, 'launch("grows", 20)\nprint(sync())\nsys.stdout.flush()\nos._exit(0)')[2]
    expect("(memory, stack-overflow): kernel grows" in text and "in function deeper" in text, text)
    silent(folder, 'launch("grows", 0)\nassert sync() == 0')


def test_an_invalid_free_of_heap_memory_is_reported(folder):
    text = run(folder, 'launch("heap", 1)\nprint(sync())\nsys.stdout.flush()\nos._exit(0)')[2]
    expect("(memory, invalid-free): kernel heap" in text, text)
    silent(folder, 'launch("heap", 0)\nassert sync() == 0')


harness.main_unless_sanitized(globals())
