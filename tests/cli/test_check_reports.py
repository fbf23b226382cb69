#!/usr/bin/env python3
"""How gpumem run --check reports: text and JSON, files, suppressions, patterns of kernels, exit status."""
import json

import checked
import harness
from checked import SILENT, expect_text, plain
from harness import expect

PTX = """
.visible .entry first(.param .u64 at)
{
    .reg .b64 %d<4>;
    ld.param.u64 %d1, [at];
    .loc 1 7 5
    st.global.u32 [%d1+4], 1;
    ret;
}
.visible .entry second(.param .u64 at)
{
    .reg .b64 %d<4>; .reg .b32 %r<2>;
    ld.param.u64 %d1, [at];
    ld.global.u32 %r1, [%d1+8];
    ret;
}
"""
# Two errors in "first" at a line, two in "second" where no source is known, and a warning of a call.
BODY = """a = alloc(4)
put(a, bytes(4))
for i in range(2):
    launch("first", a)
    launch("second", a)
assert sync() == 0
assert cuda.cuMemAlloc_v2(None, 1) == 1
free(a)"""

FIRST = """\
softgpu: error 1 (memory, out-of-bounds): kernel first: outside of all allocations: write of 4 bytes at ADDRESS
    at /src/checked.cu:7
    PTX line 11: st.global.u32 [%d1+4], 1;
    block 0,0,0 thread 0,0,0
  0 bytes behind the end of an allocation of 4 bytes at ADDRESS, the nearest one, made by cuMemAlloc_v2
"""
SECOND = """\
softgpu: error {} (memory, out-of-bounds): kernel second: outside of all allocations: read of 4 bytes at ADDRESS
    PTX line 18: ld.global.u32 %r1, [%d1+8];
    block 0,0,0 thread 0,0,0
  4 bytes behind the end of an allocation of 4 bytes at ADDRESS, the nearest one, made by cuMemAlloc_v2
"""
CALL = """\
softgpu: warning {} (memory, api-error): cuMemAlloc_v2 answered CUDA_ERROR_INVALID_VALUE
  called by cuMemAlloc_v2
"""


def run(folder, *options, body=BODY, **variables):
    return checked.run(folder, "memory", PTX, body, *options, alone=True, **variables)


def test_findings_are_reported_as_text(folder):
    status, out, text = run(folder)
    expect(status == 0, f"exit status {status}\n{out}{text}")
    expect_text(text, FIRST + SECOND.format(2) + CALL.format(3) + """\
softgpu: 1 was found 2 times
softgpu: 2 was found 2 times
softgpu: checked: 4 errors, 1 warnings, 0 remarks
""")


def test_findings_are_reported_as_json(folder):
    status, _, text = run(folder, "--check-format", "json")
    expect(status == 0, text)
    lines = [json.loads(line) for line in plain(text).splitlines()]
    place = {"ptx_line": 11, "ptx": "st.global.u32 [%d1+4], 1;", "file": "/src/checked.cu", "line": 7,
             "block": [0, 0, 0], "thread": [0, 0, 0]}
    behind = ("  {} bytes behind the end of an allocation of 4 bytes at ADDRESS, the nearest one, made by "
              "cuMemAlloc_v2")
    hazard = {"hazard": 1, "check": "memory", "kind": "out-of-bounds", "level": "error",
              "what": "outside of all allocations", "address": "ADDRESS", "space": "global", "size": 4, "write": True,
              "place": dict(place, kernel="first")}
    second = dict(hazard, hazard=2, write=False, place={
        "kernel": "second", "ptx_line": 18, "ptx": "ld.global.u32 %r1, [%d1+8];", "block": [0, 0, 0],
        "thread": [0, 0, 0]})
    wanted = [dict(hazard, details=behind.format(0)), dict(second, details=behind.format(4)),
              {"hazard": 3, "check": "memory", "kind": "api-error", "level": "warning",
               "what": "cuMemAlloc_v2 answered CUDA_ERROR_INVALID_VALUE", "details": "  called by cuMemAlloc_v2"},
              {"errors": 4, "warnings": 1, "info": 0, "not_listed": 0,
               "again": [{"hazard": 1, "count": 2}, {"hazard": 2, "count": 2}]}]
    for line in lines:
        if "details" in line:
            line["details"] = line["details"].rstrip("\n")
    expect(lines == wanted, f"{lines}\nnot\n{wanted}")


def test_findings_are_written_to_a_file(folder):
    output = folder / "hazards"
    output.write_text("of before\n")
    status, _, text = run(folder, "--check-output", str(output))
    expect(status == 0 and text == "", text)
    expect(plain(output.read_text()).startswith(FIRST), output.read_text())
    _, _, text = run(folder, "--check-output", str(folder / "none" / "file"))
    expect("none/file' cannot be written: No such file or directory" in text, text)


def test_suppressed_findings_are_not_reported(folder):
    known = folder / "known"

    def said(lines):
        known.write_text(lines)
        return run(folder, "--suppressions", str(known))[2]
    rest = "softgpu: 1 was found 2 times\nsoftgpu: checked: 2 errors, 1 warnings, 0 remarks\n"
    expect_text(said("# by kernel\nout-of-bounds first # and why\n"), SECOND.format(1) + CALL.format(2) + rest)
    expect_text(said("* * *checked.cu:7\n"), SECOND.format(1) + CALL.format(2) + rest)
    expect_text(said("* * ptx:18\n"), FIRST + CALL.format(2) + rest)
    expect_text(said("out-of-*\napi-error\n"), SILENT)
    expect_text(said("leak\n\nuse-after-free\n* other\n* * *.c:7\n").split("\n", 1)[0] + "\n",
                FIRST.split("\n", 1)[0] + "\n")
    text = said("out-of-bounds first place more\n")
    expect("known, line 1: a suppression is KIND, KERNEL and PLACE" in text, text)
    text = run(folder, "--suppressions", "/dev/zero")[2]
    expect("/dev/zero, line 1: longer than" in text, text)
    text = run(folder, "--suppressions", str(folder))[2]
    expect(f"{folder}' cannot be read: Is a directory" in text, text)
    text = run(folder, "--suppressions", str(folder / "nothing"))[2]
    expect("nothing' cannot be read: No such file or directory" in text, text)


def test_only_kernels_that_match_a_pattern_are_checked(folder):
    call = CALL.format(2) + "softgpu: 1 was found 2 times\nsoftgpu: checked: 2 errors, 1 warnings, 0 remarks\n"
    only = 'a = alloc(4)\nput(a, bytes(4))\nfor i in range(2):\n    launch("{}", a)\n    assert sync() == 0\n' + \
        "assert cuda.cuMemAlloc_v2(None, 1) == 1\nfree(a)"
    expect_text(run(folder, "--kernels-matching", "f*", body=only.format("first"))[2], FIRST + call)
    expect_text(run(folder, "--kernels-matching", "none,sec?nd", body=only.format("second"))[2],
                SECOND.format(1) + call)
    # What is not watched fails as without checkers: its own bounds are checked always.
    status, _, text = run(folder, "--kernels-matching", "f*", body=only.format("second"))
    expect(status == 1 and "softgpu: error: kernel second: illegal address: read of 4 bytes" in text, text)


def test_findings_change_the_exit_status_on_request(folder):
    expect(run(folder, "--error-exitcode", "7")[0] == 7, "errors were found")
    expect(run(folder, "--error-exitcode", "0")[0] == 0, "0 is the command's own")
    good = 'a = alloc(4)\nput(a, bytes(4))\nassert cuda.cuMemAlloc_v2(None, 1) == 1\nfree(a)'
    expect(run(folder, "--error-exitcode", "7", body=good)[0] == 0, "a warning is no error")
    expect(run(folder, "--error-exitcode", "7", body=BODY + "\nsys.exit(3)")[0] == 3, "the command failed itself")
    child = "import subprocess\n" + BODY + "\nend()\nif len(sys.argv) < 3:\n" + \
        "    sys.exit(subprocess.run([sys.executable, *sys.argv, 'again'], stderr=subprocess.DEVNULL).returncode)\n" + \
        "else:\n    sys.exit(0)"
    expect(run(folder, "--error-exitcode", "7", body=child)[0] == 7, "a child's errors count")


def test_environment_variables_enable_checks_without_gpumem_run(folder):
    """The variables alone: the process itself ends with the status."""
    import os
    import subprocess
    import sys
    run(folder)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SOFTGPU_")}
    environment.update(SOFTGPU_CHECK="memory", SOFTGPU_KERNELS="1", SOFTGPU_CHECK_ERROR_EXIT="9",
                       LD_LIBRARY_PATH=str(checked.harness.BUILD / "lib/gpumem/softgpu"))
    done = subprocess.run([sys.executable, folder / "program.py", folder / "text.ptx"], env=environment, timeout=50,
                          capture_output=True, text=True, check=False)
    expect(done.returncode == 9 and "(memory, out-of-bounds): kernel first" in done.stderr, done)


def test_invalid_check_settings_are_refused(folder):
    for options, variable in [((), {"SOFTGPU_CHECK_FORMAT": "xml"}), ((), {"SOFTGPU_CHECK_ERROR_EXIT": "256"})]:
        status, _, text = run(folder, *options, **variable)
        expect(status == 2 and "is not understood" in text, text)
    status, _, text = checked.run(folder, "memory,speed", PTX, BODY, alone=True)
    expect(status == 2 and "SOFTGPU_CHECK='memory,speed' is not understood: it takes memory, race, init and sync" in
           text, text)
    status, _, text = run(folder, "--check-format", "xml")
    expect(status == 2 and "--check-format xml: expected one of: text json" in text, text)


harness.main_unless_sanitized(globals())
