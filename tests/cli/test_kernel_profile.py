#!/usr/bin/env python3
"""gpumem run --profile-kernels: the whole table, the JSON, and where they are written. The kernel's numbers are known:
ten rounds of a loop by 100 threads, once with words side by side and once with every fourth."""
import json
import re
import sys

import harness
from harness import expect, expect_status

PROGRAM = """
import ctypes, os, sys
cuda = ctypes.CDLL("libcuda.so.1")
text, kernel, words = open(sys.argv[1], "rb").read(), sys.argv[2].encode(), sys.argv[3:]
context, memory = ctypes.c_void_p(), ctypes.c_uint64()
def ok(result):
    assert result == 0, result
if "fork" in words and os.fork() == 0:
    words.append("child")
ok(cuda.cuInit(0))
ok(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
ok(cuda.cuCtxSetCurrent(context))
ok(cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(4096)))
for stride in () if "none" in words else (1, 4):
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    ok(cuda.cuModuleLoadData(ctypes.byref(module), text))
    ok(cuda.cuModuleGetFunction(ctypes.byref(function), module, kernel))
    argument = ctypes.c_uint64(8 if "fails" in words else memory.value)
    second = ctypes.c_uint32(stride)
    params = (ctypes.c_void_p * 2)(ctypes.addressof(argument), ctypes.addressof(second))
    ok(cuda.cuLaunchKernel(function, 1, 1, 1, 100, 1, 1, 0, None, params, None))
    if "fails" in words:
        print("synchronize", cuda.cuCtxSynchronize())
        break
    ok(cuda.cuModuleUnload(module))
if "fork" in words and "child" not in words:
    os.wait()
"""

PTX = """.version 7.0
.target sm_70
.address_size 64
.file 1 "/src/scale.cu"
.visible .entry scale(.param .u64 at, .param .u32 stride)
{
    .reg .b64 %d<4>; .reg .b32 %r<6>; .reg .f32 %f<3>; .reg .pred %p;
    ld.param.u64 %d1, [at]; ld.param.u32 %r4, [stride];
    mov.u32 %r1, %tid.x; mul.lo.u32 %r2, %r1, %r4;
    mul.wide.u32 %d2, %r2, 4; add.u64 %d1, %d1, %d2;
    mov.u32 %r3, 0;
    .loc 1 12 9
again:
    ld.global.f32 %f1, [%d1];
    fma.rn.f32 %f1, %f1, 0f3F000000, 0f3F800000;
    st.global.f32 [%d1], %f1;
    .loc 1 11 5
    add.u32 %r3, %r3, 1;
    setp.lt.u32 %p, %r3, 10;
    @%p bra again;
    ret;
}
"""

TABLE = """\
softgpu: kernels of process PID
 share       CPU ms      wall ms  launches  kernel
100.0%         TIME         TIME         2  scale

kernel scale
  instructions: 544 of warps, 13600 of threads; 25.00 threads each, 24.63 with their guard true
  bytes                  read        written         atomic   contiguous         same    scattered
  global                 8000           8000              0           80            0           80
  parameters             2400              0              0
   share   instructions  lanes  line of PTX
   14.7%             80  25.00  14: ld.global.f32 %f1, [%d1];
   14.7%             80  25.00  15: fma.rn.f32 %f1, %f1, 0f3F000000, 0f3F800000;
   14.7%             80  25.00  16: st.global.f32 [%d1], %f1;
   14.7%             80  25.00  18: add.u32 %r3, %r3, 1;
   14.7%             80  25.00  19: setp.lt.u32 %p, %r3, 10;
   14.7%             80  25.00  20: @%p bra again;
    2.9%             16  25.00  8: ld.param.u64 %d1, [at]; ld.param.u32 %r4, [stride];
    2.9%             16  25.00  9: mov.u32 %r1, %tid.x; mul.lo.u32 %r2, %r1, %r4;
    2.9%             16  25.00  10: mul.wide.u32 %d2, %r2, 4; add.u64 %d1, %d1, %d2;
    1.5%              8  25.00  11: mov.u32 %r3, 0;
   share   instructions  lanes  source line
   45.6%            248  25.00  /src/scale.cu:11
   44.1%            240  25.00  /src/scale.cu:12
"""


def run(folder, options, *words, **variables):
    program, text = folder / "program.py", folder / "scale.ptx"
    program.write_text(PROGRAM)
    text.write_text(PTX)
    return harness.run_program(options, sys.executable, program, text, "scale", *words, cwd=folder,
                               env=harness.bare_environment(**variables))


def steady(text):
    """Times and the process differ each time; they keep their columns."""
    text = re.sub(r"process \d+", "process PID", text)
    return re.sub(r"(?m)^(100\.0%) +\d+\.\d{3} +\d+\.\d{3} ", r"\1         TIME         TIME ", text)


def expect_table(text):
    expect(steady(text) == TABLE, f"the table is\n{text}not\n{TABLE}")


def test_the_profile_is_printed_to_standard_error(folder):
    process = run(folder, ["--profile-kernels"])
    expect_status(process, 0)
    expect_table(process.stderr)
    expect(process.stdout == "", process.stdout)


def test_the_profile_is_written_to_a_file(folder):
    process = run(folder, ["--profile-kernels=table"])
    expect_status(process, 0)
    expect(process.stderr == "", process.stderr)
    expect_table((folder / "table").read_text())


def test_the_documentation_shows_the_actual_profile(_):
    page = (harness.SOURCE / "docs" / "softgpu.md").read_text()
    shown = re.search(r"```\n\$ gpumem run --softgpu --profile-kernels python3 scale.py\n(.*?)```", page, re.S)
    expect(shown, "docs/softgpu.md shows no profile")
    expect_table(shown.group(1))


def sums(kernel):
    return {name: value for name, value in kernel.items() if not isinstance(value, (list, dict))}


def test_the_profile_is_written_as_json(folder):
    process = run(folder, ["--profile-kernels=out.json"])
    expect_status(process, 0)
    lines = (folder / "out.json").read_text().splitlines()
    expect(len(lines) == 1, lines)
    whole = json.loads(lines[0])
    kernel, = whole["kernels"]
    expect(set(whole) == {"process", "kernels"} and whole["process"] > 0, whole)
    expect(kernel["cpu_ns"] > 0 and kernel["wall_ns"] > 0, kernel)
    expect(sums(kernel | {"cpu_ns": 1, "wall_ns": 1}) == {
        "name": "scale", "launches": 2, "failed": 0, "cpu_ns": 1, "wall_ns": 1, "warp_instructions": 544,
        "thread_instructions": 13600, "thread_instructions_guard_true": 13400}, sums(kernel))
    nothing = {"bytes_read": 0, "bytes_written": 0, "bytes_atomic": 0, "contiguous": 0, "same": 0, "scattered": 0}
    expect(kernel["spaces"] == {
        "global": nothing | {"bytes_read": 8000, "bytes_written": 8000, "contiguous": 80, "scattered": 80},
        "shared": nothing, "local": nothing, "constant": nothing, "parameters": nothing | {"bytes_read": 2400},
        "texture": nothing}, kernel["spaces"])
    expect(kernel["ptx_lines"][0] == {"line": 14, "text": "ld.global.f32 %f1, [%d1];", "warp_instructions": 80,
                                      "thread_instructions": 2000}, kernel["ptx_lines"])
    expect(kernel["source_lines"] == [
        {"file": "/src/scale.cu", "line": 11, "warp_instructions": 248, "thread_instructions": 6200},
        {"file": "/src/scale.cu", "line": 12, "warp_instructions": 240, "thread_instructions": 6000}],
           kernel["source_lines"])


def test_several_processes_append_to_one_profile(folder):
    process = run(folder, ["--profile-kernels=out.json"], "fork")
    expect_status(process, 0)
    wholes = [json.loads(line) for line in (folder / "out.json").read_text().splitlines()]
    expect(len({whole["process"] for whole in wholes}) == 2, wholes)
    expect(all(whole["kernels"][0]["launches"] == 2 for whole in wholes), wholes)


def test_failed_launches_are_counted(folder):
    process = run(folder, ["--profile-kernels=out.json"], "fails")
    expect(process.stdout == "synchronize 700\n", process.stdout)
    kernel, = json.loads((folder / "out.json").read_text())["kernels"]
    expect((kernel["launches"], kernel["failed"]) == (1, 1), kernel)
    table = run(folder, ["--profile-kernels"], "fails").stderr
    expect("  scale (1 failed)\n" in table, table)


def test_no_launches_produce_an_empty_profile(folder):
    process = run(folder, ["--profile-kernels=out.json"], "none")
    expect_status(process, 0)
    expect((folder / "out.json").read_text() == "", "a profile of nothing")
    expect(process.stderr == "", process.stderr)


def test_no_profile_is_written_without_the_option(folder):
    process = run(folder, [], SOFTGPU_KERNELS="1")
    expect_status(process, 0)
    expect(process.stderr == "", process.stderr)


def test_an_unwritable_profile_file_is_an_error(folder):
    for process in (run(folder, ["--profile-kernels=/nowhere/table"]),
                    run(folder, [], SOFTGPU_PROFILE_KERNELS="/nowhere/table")):
        expect_status(process, 2)
        expect("SOFTGPU_PROFILE_KERNELS='/nowhere/table' cannot be written: No such file or directory"
               in process.stderr, process.stderr)
    process = run(folder, ["--profile-kernels="])
    expect_status(process, 2)
    expect("--profile-kernels needs a value" in process.stderr, process.stderr)


if __name__ == "__main__":
    harness.main_unless_sanitized(globals())
