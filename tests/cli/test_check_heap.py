#!/usr/bin/env python3
"""gpumem run --check, and blocks of the heap from which kernels allocate: their bounds, their ends, what has been
written to them, and their next owners."""
import checked
import harness
from checked import expect_text
from harness import expect

PTX = """
.extern .func (.param .b64 r) malloc(.param .b64 s);
.extern .func free(.param .b64 p);
.visible .entry writes(.param .u64 at)
{
    .reg .b64 %d<4>;
    { .param .b64 s; .param .b64 r; st.param.b64 [s], 60; call.uni (r), malloc, (s); ld.param.b64 %d1, [r]; }
    ld.param.u64 %d2, [at]; add.u64 %d3, %d1, %d2; st.u32 [%d1], 5;
    .loc 1 10 1
    st.u32 [%d3], 6; // at
    { .param .b64 p; st.param.b64 [p], %d1; call.uni free, (p); }
    ret;
}
.visible .entry late(.param .u64 how)
{
    .reg .b64 %d<4>; .reg .pred %p;
    { .param .b64 s; .param .b64 r; st.param.b64 [s], 60; call.uni (r), malloc, (s); ld.param.b64 %d1, [r]; }
    ld.param.u64 %d2, [how]; setp.eq.u64 %p, %d2, 1; st.u32 [%d1], 5; @%p ret;
    { .param .b64 p; st.param.b64 [p], %d1; call.uni free, (p); }
    setp.eq.u64 %p, %d2, 0; @%p ret;
    .loc 1 20 1
    st.u32 [%d1+8], 6; // after
    ret;
}
.visible .entry reads(.param .u64 at)
{
    .reg .b64 %d<4>; .reg .b32 %r<4>;
    { .param .b64 s; .param .b64 r; st.param.b64 [s], 64; call.uni (r), malloc, (s); ld.param.b64 %d1, [r]; }
    st.v4.u32 [%d1], {1, 2, 3, 4}; ld.param.u64 %d2, [at]; add.u64 %d3, %d1, %d2;
    .loc 1 30 1
    ld.u32 %r1, [%d3]; // read
    { .param .b64 p; st.param.b64 [p], %d1; call.uni free, (p); }
    ret;
}
.visible .entry many(.param .u64 times)
{
    .reg .b64 %d<4>; .reg .b32 %r<4>; .reg .pred %p;
    ld.param.u32 %r1, [times];
again:
    { .param .b64 s; .param .b64 r; st.param.b64 [s], 64; call.uni (r), malloc, (s); ld.param.b64 %d1, [r]; }
    st.u32 [%d1], %r1; ld.u32 %r2, [%d1]; st.u32 [%d1+60], %r2;
    { .param .b64 p; st.param.b64 [p], %d1; call.uni free, (p); }
    sub.u32 %r1, %r1, 1; setp.ne.u32 %p, %r1, 0; @%p bra again;
    ret;
}
.visible .global .u64 given;
.visible .entry gives(.param .u64 how)
{
    .reg .b64 %d<4>; .reg .b32 %r<4>; .reg .pred %p;
    mov.u32 %r1, %tid.x; setp.eq.u32 %p, %r1, 32; @%p bra takes; setp.ne.u32 %p, %r1, 0; @%p ret;
    { .param .b64 s; .param .b64 r; st.param.b64 [s], 64; call.uni (r), malloc, (s); ld.param.b64 %d1, [r]; }
    .loc 1 40 1
    st.u32 [%d1], 7; // gives
    ld.param.u64 %d2, [how]; setp.eq.u64 %p, %d2, 0; @%p bra plain;
    st.release.gpu.global.u64 [given], %d1;
    ret;
plain:
    st.relaxed.gpu.global.u64 [given], %d1;
    ret;
takes:
    ld.acquire.gpu.global.u64 %d1, [given]; setp.eq.u64 %p, %d1, 0; @%p bra takes;
    .loc 1 50 1
    ld.u32 %r2, [%d1]; // takes
    st.global.u64 [given], 0;
    { .param .b64 p; st.param.b64 [p], %d1; call.uni free, (p); }
    ret;
}
"""


def line_of(text):
    """The number of a line of the PTX, and what it is without its blanks."""
    lines = (checked.HEAD + PTX).split("\n")
    number = next(i for i, line in enumerate(lines, 1) if text in line)
    return f"PTX line {number}: {lines[number - 1].strip()}"


def run(folder, checks, body, **variables):
    return checked.run(folder, checks, PTX, body + "\nassert sync() == 0", **variables)


def hazard(folder, checks, body, wanted):
    expect_text(run(folder, checks, body)[2], wanted)


def silent(folder, checks, body, **variables):
    checked.expect_silent(run(folder, checks, body, **variables))


END = "softgpu: checked: 1 errors, 0 warnings, 0 remarks\n"


def one_error(what, line, text, where):
    """The report of one hazard, of which the summary is the end."""
    return f"""\
softgpu: error 1 {what} of 4 bytes at ADDRESS
    at /src/checked.cu:{line}
    {line_of(text)}
    block 0,0,0 thread 0,0,0
  {where}
""" + END


def test_writing_beyond_a_heap_block_is_reported(folder):
    """Hardware lets these pass."""
    for at in (60, 64, 200):
        hazard(folder, "memory", f'launch("writes", {at})', one_error(
            "(memory, out-of-bounds): kernel writes: outside of all allocations: write", 10, "// at",
            f"{at - 60} bytes behind the end of 60 bytes at ADDRESS that a kernel has allocated"))
    silent(folder, "memory", 'launch("writes", 56)')


def test_using_a_freed_heap_block_is_reported(folder):
    hazard(folder, "memory", 'launch("late", 2)', one_error(
        "(memory, use-after-free): kernel late: use of freed memory: write", 20, "// after",
        "8 bytes inside of 60 bytes at ADDRESS that a kernel had allocated, and that have been freed"))
    silent(folder, "memory", 'launch("late", 0)')


def test_leaked_heap_blocks_are_reported(folder):
    hazard(folder, "memory", 'launch("late", 1)', """\
softgpu: error 1 (memory, leak): 60 bytes of the heap of kernels at ADDRESS were not freed before their context ended
""" + END)


def test_uninitialized_reads_of_heap_blocks_are_reported(folder):
    # The second: what its former owner wrote there is not its own.
    for body, left in [('launch("reads", 16)', 48), ('launch("many", 1)\nlaunch("reads", 60)', 4)]:
        hazard(folder, "init", body, one_error(
            "(init, uninitialized): kernel reads: 4 of these bytes have not been written: read", 30, "// read",
            f"{left} bytes before the end of 64 bytes at ADDRESS that a kernel has allocated"))
    silent(folder, "init", 'launch("reads", 12)')


def test_reusing_a_freed_heap_block_is_not_a_race(folder):
    """Who frees a block has done with it: another thread that gets it does not race."""
    for schedule in "eager", "late", "random":
        silent(folder, "memory,race,init,sync", 'launch("many", 3, blocks=4, threads=96)', SOFTGPU_SCHEDULE=schedule)


def test_handing_over_a_heap_block_unsynchronized_is_a_race(folder):
    silent(folder, "memory,race", 'launch("gives", 1, threads=64)')
    text = run(folder, "race", 'launch("gives", 0, threads=64)')[2]
    expect("(race, read-write-race): kernel gives" in text and "// takes" in text and "// gives" in text, text)


harness.main_unless_sanitized(globals())
