#!/usr/bin/env python3
"""gpumem run --check memory,init: local memory of functions that are called, and the mended twins."""
import checked
import harness
from harness import expect

# `kernel` calls `low`, which calls `high`; each has arrays of its own. Words of parameters choose what they do.
PTX = """
.func fills(.param .b64 n)
{
    .local .align 8 .b8 one[32]; .local .align 8 .b8 two[32]; .reg .b64 %d<6>; .reg .b32 %r<4>;
    ld.param.b64 %d1, [n]; shl.b64 %d4, %d1, 3; mov.u64 %d2, one; add.u64 %d5, %d2, %d4;
    .loc 1 7 5
    st.local.u64 [%d5], 5;
    ld.local.u64 %d3, [one+8];
    st.local.u64 [two], %d3;
    ret;
}
.visible .entry bounds(.param .u64 n)
{
    .local .align 8 .b8 mine[64]; .reg .b64 %d<4>;
    ld.param.u64 %d1, [n];
    { .param .b64 p; st.param.b64 [p], 1; call.uni fills, (p); }
    { .param .b64 p; st.param.b64 [p], %d1; call.uni fills, (p); }
    ret;
}
.func (.param .b64 r) gives()
{
    .local .align 8 .b8 gone[16]; .reg .b64 %d<4>;
    st.local.u64 [gone], 9; mov.u64 %d1, gone; cvta.local.u64 %d1, %d1; st.param.b64 [r], %d1;
    ret;
}
.func (.param .b64 r) takes(.param .b64 at)
{
    .local .align 8 .b8 own[16]; .reg .b64 %d<4>;
    ld.param.b64 %d1, [at]; st.local.u64 [own], 1;
    .loc 1 31 5
    ld.u64 %d2, [%d1]; st.param.b64 [r], %d2;
    ret;
}
.visible .entry returned(.param .u64 out, .param .u64 keeps)
{
    .local .align 8 .b8 mine[16]; .reg .b64 %d<8>; .reg .pred %p;
    st.local.u64 [mine], 9; mov.u64 %d1, mine; cvta.local.u64 %d1, %d1;
    ld.param.u64 %d5, [keeps]; setp.ne.u64 %p, %d5, 0;
    @%p bra later;
    { .param .b64 r; call.uni (r), gives, (); ld.param.b64 %d1, [r]; }
later:
    .loc 1 43 5
    ld.u64 %d2, [%d1];
    ld.param.u64 %d3, [out]; st.global.u64 [%d3], %d2;
    ret;
}
.visible .entry lends(.param .u64 out)
{
    .local .align 8 .b8 mine[16]; .reg .b64 %d<8>;
    st.local.u64 [mine+8], 7; mov.u64 %d1, mine+8; cvta.local.u64 %d1, %d1;
    { .param .b64 p; .param .b64 r; st.param.b64 [p], %d1; call.uni (r), takes, (p); ld.param.b64 %d2, [r]; }
    ld.param.u64 %d3, [out]; st.global.u64 [%d3], %d2;
    ret;
}
.func (.param .b64 r) sums(.param .b64 n, .param .b64 writes)
{
    .local .align 8 .b8 own[16]; .reg .b64 %d<8>; .reg .pred %p, %q;
    ld.param.b64 %d1, [n]; ld.param.b64 %d2, [writes]; setp.eq.u64 %q, %d2, 0;
    @!%q st.local.u64 [own], %d1;
    setp.eq.u64 %p, %d1, 0; mov.u64 %d3, 0; @%p bra done;
    sub.u64 %d4, %d1, 1;
    { .param .b64 p; .param .b64 w; .param .b64 r; st.param.b64 [p], %d4; st.param.b64 [w], %d2;
      call.uni (r), sums, (p, w); ld.param.b64 %d3, [r]; }
done:
    .loc 1 65 5
    ld.local.u64 %d5, [own]; add.u64 %d3, %d3, %d5; st.param.b64 [r], %d3;
    ret;
}
.visible .entry deep(.param .u64 out, .param .u64 writes)
{
    .reg .b64 %d<8>;
    ld.param.u64 %d4, [writes];
    { .param .b64 p; .param .b64 w; .param .b64 r; st.param.b64 [p], 5; st.param.b64 [w], 1;
      call.uni (r), sums, (p, w); ld.param.b64 %d2, [r]; }
    { .param .b64 p; .param .b64 w; .param .b64 r; st.param.b64 [p], 5; st.param.b64 [w], %d4;
      call.uni (r), sums, (p, w); ld.param.b64 %d2, [r]; }
    ld.param.u64 %d3, [out]; st.global.u64 [%d3], %d2;
    ret;
}
.visible .entry room(.param .u64 n)
{
    .reg .b64 %d<8>; .reg .b32 %r<4>;
    ld.param.u64 %d1, [n]; stacksave.u64 %d5; alloca.u64 %d2, 64; cvta.local.u64 %d3, %d2;
    st.u64 [%d3+56], 1; stackrestore.u64 %d5; sub.u64 %d3, %d3, %d1;
    alloca.u64 %d6, 64;
    .loc 1 92 5
    st.u64 [%d3+8], 1;
    ret;
}
"""
CHECKS = "memory,init"


def run(folder, body, checks=CHECKS, **variables):
    return checked.run(folder, checks, PTX, body, **variables)


def silent(folder, body, **variables):
    checked.expect_silent(run(folder, body, **variables))


def test_writing_outside_a_local_variable_is_reported(folder):
    body = 'launch("bounds", {}, threads=40)\nassert sync() == 0'
    checked.expect_said(run(folder, body.format(4), "memory"), """\
softgpu: error 1 (memory, out-of-bounds): kernel bounds: outside of its array: write of 8 bytes at offset 120 of local \
memory
    at /src/checked.cu:7
    PTX line 11: st.local.u64 [%d5], 5;
    in function fills
    block 0,0,0 thread 0,0,0
  it means one, of 32 bytes at offset 88
softgpu: 1 was found 40 times
softgpu: checked: 40 errors, 0 warnings, 0 remarks
""")
    silent(folder, body.format(1))


def test_local_variables_start_uninitialized_in_each_call(folder):
    """What the first call wrote is not the second one's."""
    text = run(folder, 'launch("bounds", 2)\nassert sync() == 0', "init")[2]
    expect("(init, uninitialized): kernel bounds: 8 of these bytes" in text and "in function fills" in text and
           "checked: 0 errors, 1 warnings" in text, text)


def test_using_a_variable_of_a_returned_function_is_reported(folder):
    body = 'o = alloc(8)\nlaunch("returned", o, {})\nassert sync() == 0\n{}free(o)'
    code, out, text = run(folder, body.format(0, ""), "memory")
    expect(code == 0, f"exit status {code}\n{out}{text}")
    expect("(memory, use-after-return): kernel returned: a variable of a function that has returned: read of 8 bytes at "
           "offset " in text and "at /src/checked.cu:43" in text and "checked: 1 errors" in text, text)
    silent(folder, body.format(1, "assert get(o, 8)[0] == 9\n"))


def test_using_a_callers_array_is_not_reported(folder):
    """A function reads its caller's array, which has been written, and has one of its own."""
    silent(folder, 'o = alloc(8)\nlaunch("lends", o, threads=3)\nassert sync() == 0\nassert get(o, 8)[0] == 7\nfree(o)')


def test_uninitialized_reads_in_recursive_functions_are_reported(folder):
    body = 'o = alloc(8)\nlaunch("deep", o, {})\nassert sync() == 0\nget(o, 8)\nfree(o)'
    text = run(folder, body.format(0), "init")[2]
    expect("(init, uninitialized): kernel deep: 8 of these bytes" in text and "at /src/checked.cu:65" in text and
           "in function sums" in text and "checked: 0 errors, 6 warnings" in text, text)
    silent(folder, body.format(1))


def test_using_released_alloca_memory_is_reported(folder):
    body = 'launch("room", {})\nassert sync() == 0'
    text = run(folder, body.format(64), "memory")[2]
    expect("(memory, out-of-bounds): kernel room: behind the variables of all functions" in text, text)
    silent(folder, body.format(0))


harness.main_unless_sanitized(globals())
