#!/usr/bin/env python3
"""gpumem run: programs, and their children, get softgpu, its options and their own exit status."""
import os
import shutil
import signal
import subprocess
import sys

import harness
from harness import expect, expect_status, run

SOFTGPU = harness.BUILD / "lib" / "gpumem" / "softgpu"

# What a program without gpumem does: open the driver by its name. Its result goes to standard output.
PROGRAM = """
import ctypes, os, sys
cuda = ctypes.CDLL("libcuda.so.1")
def call(name, *arguments):
    return getattr(cuda, name)(*arguments)
os.chdir("/")
result = call("cuInit", 0)
count, total = ctypes.c_int(-1), ctypes.c_size_t()
text = ctypes.create_string_buffer(64)
call("cuDeviceGetCount", ctypes.byref(count))
call("cuDeviceTotalMem_v2", ctypes.byref(total), 0)
call("cuDeviceGetName", text, 64, 0)
print(result, count.value, total.value, text.value.decode())
if "leak" in sys.argv:
    context = ctypes.c_void_p()
    call("cuCtxCreate_v2", ctypes.byref(context), 0, 0)
if "probe" in sys.argv:
    address = ctypes.c_void_p()
    assert cuda.cuGetProcAddress(b"cuNowhere", ctypes.byref(address), 11000, ctypes.c_uint64(0)) == 500
if "mistake" in sys.argv:
    call("cuDeviceGet", None, 0)
"""

LINKED = """
int cuInit(unsigned); int cuDeviceGetCount(int *);
int main(void) { int n = -1; return cuInit(0) || cuDeviceGetCount(&n) ? 99 : n; }
"""


def softgpu(*arguments, **more):
    """Runs PROGRAM with options; those behind "--" are the program's."""
    at = arguments.index("--") if "--" in arguments else len(arguments)
    return run("run", "--softgpu", *arguments[:at], "--", sys.executable, "-c", PROGRAM,
               *arguments[at + 1:], **more)


def expect_output(process, text):
    expect_status(process, 0)
    expect(process.stdout.strip() == text, f"{process.stdout!r} is not {text!r}")


def test_a_program_opens_softgpu_by_name(_):
    expect_output(softgpu("--memory", "64M"), "0 1 67108864 NVIDIA H200")


def test_child_processes_get_softgpu(folder):
    script = folder / "program.py"
    script.write_text(PROGRAM)
    expect_output(run("run", "--softgpu", "--devices", "3", "--memory", "64M", "sh", "-c",
                      f"sh -c '{sys.executable} {script}'"), "0 3 67108864 NVIDIA H200")


def test_a_program_linked_with_libcuda_gets_softgpu(folder):
    compiler = shutil.which("cc")
    if not compiler:
        return  # a_program_opens_softgpu_by_name has shown the library; a linker finds the same one
    source, program = folder / "linked.c", folder / "linked"
    source.write_text(LINKED)
    subprocess.run([compiler, "-o", str(program), str(source), f"-L{SOFTGPU}",
                    f"-Wl,-rpath-link,{SOFTGPU}", "-lcuda"], check=True)
    expect_status(run("run", "--softgpu", "--devices", "5", str(program)), 5)


def test_a_profile_is_selected_by_name_or_path(folder):
    expect_output(softgpu("--memory", "64M", "--profile", "tiny"), "0 1 67108864 softgpu tiny")
    (folder / "mine.ini").write_text("[device]\nlike = h200\nname = Mine\nmemory = 8M\n")
    here = os.getcwd()
    os.chdir(folder)
    try:  # a relative path holds although the program changes its folder
        expect_output(softgpu("--memory", "64M", "--profile", "./mine.ini"),
                      "0 1 67108864 Mine")
    finally:
        os.chdir(here)


def test_the_calls_of_a_program_are_traced(folder):
    trace = folder / "trace"
    here = os.getcwd()
    os.chdir(folder)
    try:
        expect_status(softgpu("--trace", "trace"), 0)
    finally:
        os.chdir(here)
    expect("cuDeviceGetCount" in trace.read_text(), "the trace does not have the program's calls")


def test_a_fault_is_injected_into_a_program(_):
    process = softgpu("--fault", "cuInit:1:CUDA_ERROR_NO_DEVICE:before")
    expect(process.stdout.startswith("100 "), process.stdout + process.stderr)


def test_leaks_of_a_program_are_reported_on_request(_):
    process = softgpu("--leaks", "--", "leak")
    expect_status(process, 0)
    expect("not destroyed" in process.stderr, f"no leak is reported:\n{process.stderr}")
    process = run("run", "--softgpu", sys.executable, "-c", PROGRAM, "leak", SOFTGPU_LEAKS="0")
    expect("not destroyed" not in process.stderr, f"reported unasked:\n{process.stderr}")


def test_a_program_aborts_at_its_first_error_on_request(_):
    expect_status(softgpu("--", "mistake"), 0)
    expect_status(softgpu("--abort-on-error", "--", "mistake"), -signal.SIGABRT)
    expect_status(softgpu("--abort-on-error", "--", "probe"), 0)
    expect("cuGetProcAddress" not in softgpu("--check", "memory", "--", "probe").stderr, "a probe is reported")


def test_help_is_printed_behind_other_options(_):
    for command in "info", "doctor", "driver", "load", "map", "replay", "share", "run":
        for option in "--help", "-h":
            process = run(command, "--driver", "softgpu", option)
            expect_status(process, 0)
            expect(process.stdout == run("help", command).stdout and not process.stderr, process.stderr)
    expect_output(run("run", "--softgpu", "printf", "%s", "--help"), "--help")
    expect_status(run("info", "--nonsense", "--help"), 2)


def test_softgpu_comes_first_in_the_library_path(_):
    process = run("run", "--softgpu", "--seed", "7", "--schedule", "random", "--poison", "--log",
                  "debug", "sh", "-c", "echo $LD_LIBRARY_PATH $GPUMEM_DRIVER $SOFTGPU_SEED "
                  "$SOFTGPU_SCHEDULE $SOFTGPU_POISON $SOFTGPU_LOG", LD_LIBRARY_PATH="/other")
    expect_output(process, f"{SOFTGPU.resolve()}:/other softgpu 7 random 1 debug")


def test_the_exit_status_of_the_command_is_returned(_):
    expect_status(run("run", "--softgpu", "--", "sh", "-c", "exit 7"), 7)
    # A folder of PATH that may not be searched would make it a question of permission: 126.
    expect_status(run("run", "--softgpu", "--", "no-such-program", PATH="/usr/bin:/bin"), 127)
    expect_status(run("run", "--softgpu", "--", "/dev/null"), 126)


def test_invalid_usage_of_run_is_refused(_):
    for arguments, text in [
            (["true"], "give --softgpu"),
            (["--softgpu"], "give a COMMAND"),
            (["--driver", "nvidia", "true"], "run supports only softgpu"),
            (["--softgpu", "--devices", "9", "true"], "a number from 0 to 8"),
            (["--softgpu", "--devices", "-1", "true"], "a number from 0 to 8"),
            (["--softgpu", "--memory", "lots", "true"], "expected bytes"),
            (["--softgpu", "--memory", "0", "true"], "expected bytes"),
            (["--softgpu", "--schedule", "fast", "true"], "one of: eager late random"),
            (["--softgpu", "--schedule", "eager late", "true"], "one of: eager late random"),
            (["--softgpu", "--seed", "x", "true"], "expected a number"),
            (["--softgpu", "--log", "loud", "true"], "one of: off error"),
            (["--softgpu", "--trace", "", "true"], "--trace needs a value"),
            (["--softgpu", "--nonsense", "true"], "nonsense")]:
        process = run("run", *arguments)
        expect_status(process, 2)
        expect(text in process.stderr, f"{arguments}: {process.stderr!r} does not say {text!r}")


harness.main_unless_sanitized([
    test_a_program_opens_softgpu_by_name, test_child_processes_get_softgpu, test_a_program_linked_with_libcuda_gets_softgpu, test_a_profile_is_selected_by_name_or_path, test_the_calls_of_a_program_are_traced, test_a_fault_is_injected_into_a_program, test_leaks_of_a_program_are_reported_on_request,
    test_a_program_aborts_at_its_first_error_on_request, test_help_is_printed_behind_other_options, test_softgpu_comes_first_in_the_library_path, test_the_exit_status_of_the_command_is_returned, test_invalid_usage_of_run_is_refused])
