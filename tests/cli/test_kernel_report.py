#!/usr/bin/env python3
"""What a user reads when a kernel fails under `gpumem run`: the whole of standard error, but for addresses."""
import re
import sys

import harness
from harness import expect, expect_status

# Loads the text, launches the kernel with an address as told, and waits.
PROGRAM = """
import ctypes, sys
text, kernel, offset, threads = open(sys.argv[1], "rb").read(), sys.argv[2].encode(), int(sys.argv[3]), int(sys.argv[4])
cuda = ctypes.CDLL("libcuda.so.1")
context, module, function = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
memory = ctypes.c_uint64()
def ok(result):
    assert result == 0, result
ok(cuda.cuInit(0))
ok(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
ok(cuda.cuCtxSetCurrent(context))
ok(cuda.cuModuleLoadData(ctypes.byref(module), text))
ok(cuda.cuModuleGetFunction(ctypes.byref(function), module, kernel))
ok(cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(400)))
argument = ctypes.c_uint64(memory.value + offset)
if "freed" in sys.argv:
    ok(cuda.cuMemFree_v2(memory))
params = (ctypes.c_void_p * 1)(ctypes.addressof(argument))
ok(cuda.cuLaunchKernel(function, 2, 1, 1, threads, 1, 1, 0, None, params, None))
print("synchronize", cuda.cuCtxSynchronize())
"""

PTX = """.version 7.0
.target sm_70
.address_size 64
.file 1 "/src/fill.cu"
.global .align 1 .b8 said[7] = {116, 61, 37, 117, 10, 0, 0};
.global .align 1 .b8 message[6] = {105, 32, 60, 32, 110, 0};
.global .align 1 .b8 name[8] = {102, 105, 108, 108, 46, 99, 117, 0};
.extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);
.extern .func __assertfail (.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 n, .param .b64 c);
.func put(.param .b64 p, .param .b32 v)
{
    .reg .b64 %p; .reg .b32 %v;
    ld.param.u64 %p, [p]; ld.param.u32 %v, [v];
    .loc 1 7 5
    st.global.u32 [%p], %v;
    ret;
}
.visible .entry fill(.param .u64 at)
{
    .reg .b64 %d<4>; .reg .b32 %r<4>;
    ld.param.u64 %d1, [at]; mov.u32 %r1, %tid.x; mul.wide.u32 %d2, %r1, 4; add.u64 %d1, %d1, %d2; .loc 1 11 2
    { .param .b64 p; .param .b32 v; st.param.b64 [p], %d1; st.param.b32 [v], %r1; call.uni put, (p, v); }
    ret;
}
.visible .entry checked(.param .u64 at)
{
    .reg .b64 %d<4>; .reg .b32 %r<4>; .reg .pred %q; .local .align 8 .b8 list[8];
    mov.u32 %r1, %tid.x; mov.u64 %d1, list; st.local.u32 [%d1], %r1; cvta.local.u64 %d1, %d1;
    mov.u64 %d2, said; cvta.global.u64 %d2, %d2;
    { .param .b64 f; .param .b64 a; .param .b32 r; st.param.b64 [f], %d2; st.param.b64 [a], %d1;
      call.uni (r), vprintf, (f, a); }
    setp.lt.u32 %q, %r1, 2; @%q ret;
    mov.u64 %d1, message; cvta.global.u64 %d1, %d1; mov.u64 %d2, name; cvta.global.u64 %d2, %d2;
    .loc 1 20 3
    { .param .b64 a; .param .b64 b; .param .b32 c; .param .b64 d; .param .b64 e; st.param.b64 [a], %d1;
      st.param.b64 [b], %d2; st.param.b32 [c], 20; st.param.b64 [d], %d2; st.param.b64 [e], 1;
      call.uni __assertfail, (a, b, c, d, e); }
    ret;
}
.visible .entry apart(.param .u64 at)
{
    .reg .b32 %r; .reg .pred %q; mov.u32 %r, %tid.x; setp.lt.u32 %q, %r, 32; @%q bra one;
    .loc 1 30 3
    bar.sync 2;
    ret;
one:
    .loc 1 33 3
    bar.sync 1;
    ret;
}
.func down(.param .b64 n)
{
    .reg .b64 %n; .reg .pred %q;
    ld.param.u64 %n, [n]; setp.ne.u64 %q, %n, 0; @%q bra on;
    trap;
on: sub.u64 %n, %n, 1;
    .loc 1 50 5
    { .param .b64 p; st.param.b64 [p], %n; call.uni down, (p); }
    ret;
}
.func waits()
{
    .loc 1 60 1
    bar.sync 3;
    ret;
}
.visible .entry halves(.param .u64 at)
{
    .reg .b32 %r; .reg .pred %q; mov.u32 %r, %tid.x; setp.lt.u32 %q, %r, 16; @%q bra low;
    bar.sync 4;
    ret;
low:
    .loc 1 70 1
    call.uni waits;
    ret;
}
.visible .entry deep(.param .u64 at)
{
    .reg .b64 %n; ld.param.u64 %n, [at]; and.b64 %n, %n, 15;
    { .param .b64 p; st.param.b64 [p], %n; call.uni down, (p); }
    ret;
}
"""


def report(folder, *words):
    program, text = folder / "program.py", folder / "fill.ptx"
    program.write_text(PROGRAM)
    text.write_text(PTX)
    process = harness.run_program((), sys.executable, program, text, *words)
    expect_status(process, 0)
    return process.stdout, re.sub(r"0x[0-9a-f]{6,}", "ADDRESS", process.stderr)


def expect_text(got, wanted):
    expect(got == wanted, f"standard error is\n{got}not\n{wanted}")


# Where "fill" writes.
PLACE = """\
softgpu: error:   at /src/fill.cu:7
softgpu: error:   PTX line 15: st.global.u32 [%p], %v;
softgpu: error:   in function put
softgpu: error:   called at /src/fill.cu:11, PTX line 22
"""


def test_a_write_beyond_an_allocation_is_reported(folder):
    """Beyond the 512 bytes that its size is rounded up to."""
    out, text = report(folder, "fill", "0", "129")
    expect(out == "synchronize 700\n", out)
    expect_text(text, f"""\
softgpu: error: kernel fill: illegal address: write of 4 bytes at ADDRESS
{PLACE}\
softgpu: error:   block 0,0,0 thread 128,0,0
softgpu: error:   112 bytes behind the end of an allocation of 400 bytes at ADDRESS, the nearest one
""")


def test_a_write_to_freed_memory_is_reported(folder):
    _, text = report(folder, "fill", "100", "1", "freed")
    expect_text(text, f"""\
softgpu: error: kernel fill: illegal address: write of 4 bytes at ADDRESS
{PLACE}\
softgpu: error:   block 0,0,0 thread 0,0,0
softgpu: error:   100 bytes inside of an allocation of 400 bytes at ADDRESS that has been freed
""")


def test_a_misaligned_write_is_reported(folder):
    out, text = report(folder, "fill", "6", "1")
    expect(out == "synchronize 716\n", out)
    expect_text(text, f"""\
softgpu: error: kernel fill: misaligned address: write of 4 bytes at ADDRESS
{PLACE}\
softgpu: error:   block 0,0,0 thread 0,0,0
softgpu: error:   394 bytes before the end of an allocation of 400 bytes at ADDRESS
""")


def test_an_assertion_is_reported_after_printed_output(folder):
    out, text = report(folder, "checked", "0", "3")
    expect(out == "t=0\nt=1\nt=2\nsynchronize 710\n", out)
    expect_text(text, """\
softgpu: error: kernel checked: assertion
softgpu: error:   at /src/fill.cu:20
softgpu: error:   PTX line 37: call.uni __assertfail, (a, b, c, d, e); }
softgpu: error:   block 0,0,0 thread 2,0,0
fill.cu:20: fill.cu: block: [0,0,0], thread: [2,0,0] Assertion `i < n` failed.
""")


def test_the_call_stack_of_a_trap_is_reported(folder):
    def lines(n, count):
        out, text = report(folder, "deep", str(n), "1")
        expect(out == "synchronize 719\n", out)
        expect_text(text, """\
softgpu: error: kernel deep: trap
softgpu: error:   PTX line 55: trap;
softgpu: error:   in function down
""" + "softgpu: error:   called at /src/fill.cu:50, PTX line 58, in function down\n" * count +
                    ("softgpu: error:   called at PTX line 80\n" if n < 6 else
                     "softgpu: error:   and so on, in all 10 calls\n") + """\
softgpu: error:   block 0,0,0 thread 0,0,0
""")
    lines(0, 0)
    lines(2, 2)
    lines(9, 6)


ENDLESS = PTX[:PTX.index(".extern")] + """.visible .entry endless(.param .u64 at)
{
    .reg .b32 %r; mov.u32 %r, 0;
again: add.u32 %r, %r, 1;
    bra again;
}
"""


def test_a_kernel_that_never_ends_is_named_by_what_waits_for_it_to_destroy_or_free(folder):
    """After ten seconds; the limit ends the kernels, so that the calls return."""
    (folder / "text.ptx").write_text(ENDLESS)
    started = []
    for call in ("cuDevicePrimaryCtxReset_v2(0)", "cuModuleUnload(module)", "cuMemFree_v2(memory)"):
        program = folder / f"{call[:9]}.py"
        program.write_text(PROGRAM.replace('print("synchronize", cuda.cuCtxSynchronize())', f"cuda.{call}"))
        started.append((call, harness.start_program([], sys.executable, program, folder / "text.ptx", "endless", 0, 64,
                                                    env=harness.bare_environment(SOFTGPU_KERNEL_LIMIT="20"))))
    for call, process in started:
        error = process.communicate(timeout=50)[1]
        for wanted in ("has waited for 10 s for kernel endless, launch 1 of this process, in stream ",
                       "2 x 1 x 1 blocks of 64 x 1 x 1 threads", "block 1,0,0 warp 1 lanes ffffffff line "):
            expect(wanted in error, f"{call}: no {wanted!r} in {error}")


def test_a_deadlock_report_names_the_waiting_warps(folder):
    out, text = report(folder, "apart", "0", "64")
    expect(out == "synchronize 702\n", out)
    expect_text(text, """\
softgpu: error: kernel apart: deadlock
softgpu: error:   at /src/fill.cu:33
softgpu: error:   PTX line 48: bar.sync 1;
softgpu: error:   block 0,0,0 thread 0,0,0
softgpu: error: block 0,0,0 warp 0 lanes ffffffff line 48 (/src/fill.cu:33): waits for barrier 1; threads part at line 42
softgpu: error: block 0,0,0 warp 1 lanes ffffffff line 44 (/src/fill.cu:30): waits for barrier 2; threads part at line 42
""")


def test_a_deadlock_report_has_the_calls_of_the_waiting_lanes(folder):
    """Calls of other lanes, which ran last, are not those of the lanes that are named."""
    out, text = report(folder, "halves", "0", "32")
    expect(out == "synchronize 702\n", out)
    expect_text(text, """\
softgpu: error: kernel halves: deadlock
softgpu: error:   PTX line 70: bar.sync 4;
softgpu: error:   block 0,0,0 thread 16,0,0
softgpu: error: block 0,0,0 warp 0 lanes ffff0000 line 70: waits for barrier 4; threads part at line 69
softgpu: error: block 0,0,0 warp 0 lanes 0000ffff line 64 (/src/fill.cu:60): waits for barrier 3
""")


harness.main_unless_sanitized(globals())
