"""Programs over the driver API, written by a test, under `gpumem run --check`."""
import atexit
import functools
import json
import re
import select
import subprocess
import sys
from pathlib import Path

import harness

LIMIT = 50  # seconds

# Before a test's own lines.
BEGIN = """
import ctypes, os, sys
cuda = ctypes.CDLL("libcuda.so.1")
ref = ctypes.byref
def ok(result):
    assert result == 0, result
def alloc(size):
    address = ctypes.c_uint64()
    ok(cuda.cuMemAlloc_v2(ref(address), ctypes.c_size_t(size)))
    return address.value
def free(address):
    ok(cuda.cuMemFree_v2(ctypes.c_uint64(address)))
def put(address, data):
    ok(cuda.cuMemcpyHtoD_v2(ctypes.c_uint64(address), data, ctypes.c_size_t(len(data))))
def get(address, size):
    data = ctypes.create_string_buffer(size)
    ok(cuda.cuMemcpyDtoH_v2(data, ctypes.c_uint64(address), ctypes.c_size_t(size)))
    return data.raw
def launch(name, *arguments, blocks=1, threads=1, shared=0, stream=None):
    function = ctypes.c_void_p()
    ok(cuda.cuModuleGetFunction(ref(function), module, name.encode()))
    values = [ctypes.c_uint64(value) for value in arguments]
    params = (ctypes.c_void_p * (len(values) + 1))(*[ctypes.addressof(value) for value in values])
    ok(cuda.cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, shared, stream, params, None))
def sync():
    return cuda.cuCtxSynchronize()
def stream():
    made = ctypes.c_void_p()
    ok(cuda.cuStreamCreate(ref(made), 1))
    return made
def end():
    ok(cuda.cuModuleUnload(module))
    ok(cuda.cuDevicePrimaryCtxRelease_v2(0))
ok(cuda.cuInit(0))
context, module = ctypes.c_void_p(), ctypes.c_void_p()
ok(cuda.cuDevicePrimaryCtxRetain(ref(context), 0))
ok(cuda.cuCtxSetCurrent(context))
ok(cuda.cuModuleLoadData(ref(module), open(sys.argv[1], "rb").read()))
"""

HEAD = """.version 8.0
.target sm_90
.address_size 64
.file 1 "/src/checked.cu"
"""


def environment(**variables):
    return harness.bare_environment() | {"SOFTGPU_MEMORY": "256M"} | variables


def command(checks, options, *words):
    return [harness.COMMAND, "run", "--softgpu", "--check", checks, *options, sys.executable, *map(str, words)]


@functools.lru_cache(None)
def server(checks):
    """One run of gpumem for all programs with these checks: see forked_programs.py."""
    started = subprocess.Popen(command(checks, (), Path(__file__).with_name("forked_programs.py")), env=environment(),
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def stop():
        started.stdin.close()
        started.wait()

    atexit.register(stop)
    return started


def without_seed(text):
    """Which seed was drawn is no report."""
    return "".join(line for line in text.splitlines(True) if "random schedule" not in line)


def run_in_server(folder, checks, program, text, variables):
    output, error = folder / "output", folder / "error"
    output.write_text("")
    error.write_text("")
    started = server(checks)
    started.stdin.write(json.dumps({"arguments": [str(program), str(text)], "environment": variables,
                                    "output": str(output), "error": str(error)}) + "\n")
    started.stdin.flush()
    if not select.select([started.stdout], [], [], LIMIT)[0]:
        started.kill()
        raise harness.Failure(f"after {LIMIT} seconds it still runs\n{output.read_text()}{error.read_text()}")
    return int(started.stdout.readline()), output.read_text(), without_seed(error.read_text())


def run(folder, checks, ptx, body, *options, alone=False, **variables):
    """(status, standard output, standard error) of a program whose lines are `body`; under a run of gpumem of its own
    with options, or `alone`."""
    program, text = folder / "program.py", folder / "text.ptx"
    program.write_text(BEGIN + body + "\nend()\n")
    text.write_text(HEAD + ptx)
    if not (options or alone):
        return run_in_server(folder, checks, program, text, variables)
    process = subprocess.run(command(checks, options, program, text), env=environment(**variables), timeout=LIMIT,
                             stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    return process.returncode, process.stdout, without_seed(process.stderr)


def expect_silent(got, ends=1):
    """Nothing is said of a program that ends well, with so many processes."""
    status, output, error = got
    harness.expect(status == 0, f"exit status {status}\n{output}{error}")
    expect_text(error, SILENT * ends)


def expect_said(got, wanted, status=0):
    """What is said, of a program that then ends as told; what it printed."""
    harness.expect(got[0] == status, f"exit status {got[0]}\n{got[1]}{got[2]}")
    expect_text(got[2], wanted)
    return got[1]


def plain(text):
    """Without what differs from run to run: addresses, and who called."""
    text = re.sub(r"0x[0-9a-f]{6,}", "ADDRESS", text)
    return re.sub(r"(by cu\w+) from [^\n\\]*", r"\1", text)  # in JSON, up to the end of the string's line


SILENT = "softgpu: checked: 0 errors, 0 warnings, 0 remarks\n"


def expect_text(got, wanted):
    harness.expect(plain(got) == wanted, f"standard error is\n{plain(got)}not\n{wanted}")
