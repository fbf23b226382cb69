"""Programs over the driver API, written by a test, under `gpumem run --check`."""
import os
import re
import subprocess
import sys

import harness

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


def run(folder, checks, ptx, body, *options, **variables):
    """(status, standard output, standard error) of a program whose lines are `body`."""
    program, text = folder / "program.py", folder / "text.ptx"
    program.write_text(BEGIN + body + "\nend()\n")
    text.write_text(HEAD + ptx)
    environment = {name: value for name, value in os.environ.items()
                   if name != "GPUMEM_DRIVER" and not name.startswith("SOFTGPU_")}
    environment.update(SOFTGPU_MEMORY="256M", **variables)
    process = subprocess.run([harness.COMMAND, "run", "--softgpu", "--check", checks, *options, sys.executable,
                              str(program), str(text)], env=environment, timeout=50, stdin=subprocess.DEVNULL,
                             capture_output=True, text=True, check=False)
    # What `run` itself says of the seed is no report.
    text = "".join(line for line in process.stderr.splitlines(True) if "--seed" not in line)
    return process.returncode, process.stdout, text


def plain(text):
    """Without what differs from run to run: addresses, and who called."""
    text = re.sub(r"0x[0-9a-f]{6,}", "ADDRESS", text)
    return re.sub(r"(by cu\w+) from .*", r"\1", text)


SILENT = "softgpu: checked: 0 errors, 0 warnings, 0 remarks\n"


def expect_text(got, wanted):
    harness.expect(plain(got) == wanted, f"standard error is\n{plain(got)}not\n{wanted}")


def main(tests):
    harness.main_unless_sanitized([value for name, value in sorted(tests.items()) if name.startswith("test_")])
