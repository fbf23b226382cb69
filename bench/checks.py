#!/usr/bin/env python3
"""The cost of softgpu's checkers: four kernels with each of them and without, in CPU time of the process.

usage: bench/checks.py [CHECKS...]     by default: memory, init, memory,init"""
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILD = Path(os.environ.get("GPUMEM_BUILD_DIR", ROOT / "build"))
NAMES = "saxpy", "matmul", "reduce", "histogram"

# Runs in a process of its own, as the checkers are chosen once in a process.
PROGRAM = """
import ctypes, sys, time
cuda = ctypes.CDLL("libcuda.so.1")
ref = ctypes.byref
def ok(result):
    assert result == 0, result
def alloc(size, pattern):
    address = ctypes.c_uint64()
    ok(cuda.cuMemAlloc_v2(ref(address), ctypes.c_size_t(size)))
    ok(cuda.cuMemcpyHtoD_v2(address, pattern * (size // len(pattern)), ctypes.c_size_t(size)))
    return address
ok(cuda.cuInit(0))
context = ctypes.c_void_p()
ok(cuda.cuDevicePrimaryCtxRetain(ref(context), 0))
ok(cuda.cuCtxSetCurrent(context))
def run(text, blocks, threads, *arguments):
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    ok(cuda.cuModuleLoadData(ref(module), text.encode()))
    ok(cuda.cuModuleGetFunction(ref(function), module, b"k"))
    params = (ctypes.c_void_p * len(arguments))(*[ctypes.addressof(one) for one in arguments])
    times = []
    for i in range(7):
        before = time.process_time()
        ok(cuda.cuLaunchKernel(function, *blocks, *threads, 0, None, params, None))
        ok(cuda.cuCtxSynchronize())
        times.append(time.process_time() - before)
    return min(times) * 1e3
u32 = ctypes.c_uint32
one = b"\\0\\0\\x80\\x3f"
texts = eval(sys.stdin.read())
x, y, z = alloc(4 << 20, one), alloc(4 << 20, one), alloc(4 << 20, one)
data, bins = alloc(16 << 20, bytes(range(256))), alloc(4096, b"\\0")
print(run(texts["saxpy"], (4096, 1, 1), (256, 1, 1), y, x, ctypes.c_float(2), u32(1 << 20)))
print(run(texts["matmul"], (16, 16, 1), (16, 16, 1), x, y, z, u32(256)))
print(run(texts["reduce"], (64, 1, 1), (256, 1, 1), bins, data, u32(4 << 20)))
print(run(texts["histogram"], (64, 1, 1), (256, 1, 1), bins, data, u32(4 << 20)))
"""


def texts():
    """The strings of tests/harness/kernel_texts.h, as the preprocessor leaves them."""
    source = subprocess.run(["cc", "-E", "-P", str(ROOT / "tests/harness/kernel_texts.h")], stdout=subprocess.PIPE,
                            text=True, check=True).stdout
    found = {}
    for name, body in re.findall(r"static const char (\w+)_text\[\] =((?:\s*\"(?:[^\"\\]|\\.)*\")+)", source):
        found[name] = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', body)).replace("\\n", "\n")
    return found


def measure(checks):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SOFTGPU_")}
    environment.update(SOFTGPU_KERNELS="1", SOFTGPU_MEMORY="1G", SOFTGPU_KERNEL_WORKERS="1",
                       LD_LIBRARY_PATH=str(BUILD / "lib/gpumem/softgpu"))
    if checks:
        environment.update(SOFTGPU_CHECK=checks, SOFTGPU_CHECK_OUTPUT="/dev/null")
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, input=repr(texts()), text=True,
                          stdout=subprocess.PIPE, check=True)
    return [float(line) for line in done.stdout.split()]


def main():
    base = measure("")
    print(f"{'ms of CPU time':20}" + "".join(f"{name:>18}" for name in NAMES))
    print(f"{'no checker':20}" + "".join(f"{time:18.2f}" for time in base))
    for checks in sys.argv[1:] or ["memory", "init", "memory,init"]:
        times = measure(checks)
        print(f"{checks:20}" + "".join(f"{time:10.2f} {time / plain:5.1f} x" for time, plain in zip(times, base)))


main()
