#!/usr/bin/env python3
"""PTX of clang's NVPTX back end, which needs nothing of NVIDIA's: compiled here, at each level of optimization and for
several architectures, and run on softgpu."""
import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = Path(os.environ.get("GPUMEM_SOURCE_DIR", Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(SOURCE / "tests/harness"))
from tap_report import Report  # noqa: E402  pylint: disable=wrong-import-position
BUILD = Path(os.environ.get("GPUMEM_BUILD_DIR", SOURCE / "build")).resolve()
PROGRAMS = SOURCE / "tests" / "fixtures" / "programs"
WAYS = [(architecture, level) for architecture in ("sm_70", "sm_80") for level in ("-O0", "-O1", "-O2", "-O3")] + [
    ("sm_60", "-O2"), ("sm_75", "-O2")]


def compiled(name, architecture, level, to):
    words = ["clang", "-x", "cuda", "--cuda-device-only", f"--cuda-gpu-arch={architecture}", "-nocudainc", "-nocudalib",
             "-Wno-unknown-cuda-version", "-std=c++17", "-Xclang", "-target-feature", "-Xclang", "+ptx70", level, "-S", "-o", to, PROGRAMS / name]
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)


# ---- In a process on softgpu ---------------------------------------------------------------------

CUDA = None


def check(result, what="a call"):
    if result:
        raise AssertionError(f"{what} answered {result}")


class Memory:
    """Device memory with the bytes of a ctypes array, which are read back by get()."""

    def __init__(self, values, kind=ctypes.c_int):
        self.array = (kind * len(values))(*values)
        self.address = ctypes.c_uint64()
        check(CUDA.cuMemAlloc_v2(ctypes.byref(self.address), ctypes.c_size_t(ctypes.sizeof(self.array))))
        check(CUDA.cuMemcpyHtoD_v2(self.address, self.array, ctypes.c_size_t(ctypes.sizeof(self.array))))

    def get(self):
        check(CUDA.cuMemcpyDtoH_v2(self.array, self.address, ctypes.c_size_t(ctypes.sizeof(self.array))), "the copy")
        return list(self.array)


class Module:
    """A text that is loaded."""

    def __init__(self, path):
        self.handle = ctypes.c_void_p()
        check(CUDA.cuModuleLoadData(ctypes.byref(self.handle), Path(path).read_bytes()), f"loading {path}")

    def run(self, name, *arguments, blocks=1, threads=1):
        function = ctypes.c_void_p()
        check(CUDA.cuModuleGetFunction(ctypes.byref(function), self.handle, name.encode()), name)
        values = [a.address if isinstance(a, Memory) else a for a in arguments]
        pointers = (ctypes.c_void_p * len(values))(*(ctypes.cast(ctypes.pointer(v), ctypes.c_void_p) for v in values))
        check(CUDA.cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, 0, None, pointers, None), name)
        check(CUDA.cuCtxSynchronize(), name)

    def set(self, name, values):
        address, size = ctypes.c_uint64(), ctypes.c_size_t()
        check(CUDA.cuModuleGetGlobal_v2(ctypes.byref(address), ctypes.byref(size), self.handle, name.encode()), name)
        assert size.value == ctypes.sizeof(values), name
        check(CUDA.cuMemcpyHtoD_v2(address, values, size), name)


def equal(name, got, wanted):
    if got != wanted:
        raise AssertionError(f"{name} computed {got}, not {wanted}")


def kernels(path):
    """Those of kernels.cu."""
    module = Module(path)
    module.set("weights", (ctypes.c_float * 16)(*range(16)))
    values, result = Memory([i % 5 for i in range(256 * 20)], ctypes.c_float), Memory([0], ctypes.c_float)
    module.run("reduce", values, result, ctypes.c_int(20), threads=256)
    equal("reduce", result.get()[0],
          float(sum((lane * 20 + i) % 5 * (i & 15) for lane in range(256) for i in range(20))))
    for n, given, wanted in ((1, [0, 13, 2, 3, 4, 5, 6, 7], 5), (2, [0, 10, 0, 0, 0, 0, 0, 0] * 2, 55),
                             (3, [0, -100, 3] + [0] * 21, -5), (4, [0, 0xff, 0x10000] + [0] * 32, 8 + 15)):
        which, pairs = Memory(given), Memory([0] * 8)
        module.run("choose", pairs, which, ctypes.c_int(n))
        equal(f"choose {n}", which.get()[0], wanted)
    for flag, wanted in ((0, 9), (1, 11)):
        words = Memory([flag, 0, 10])
        module.run("indirect", words)
        equal("indirect", words.get()[1], wanted)


class Matrix(ctypes.Structure):
    _fields_ = [("values", ctypes.c_double * 9), ("rows", ctypes.c_short), ("columns", ctypes.c_short)]


def signed(value):
    value &= (1 << 64) - 1
    return value - (1 << 64) if value >> 63 else value


def truncated(a, b):
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def wanted_of(which, a, b):
    x, y = a & (1 << 64) - 1, b & (1 << 64) - 1
    return signed([lambda: truncated(a, b), lambda: a - b * truncated(a, b), lambda: x // y,
                   lambda: x >> (y & 63) ^ x << (y & 31), lambda: x.bit_count() + (y & -y).bit_length() - 1,
                   lambda: int(a / b), lambda: a * b >> 64,
                   lambda: int(ctypes.c_float(a).value)][which]())


def ackermann(m, n):
    while m:
        m, n = m - 1, (ackermann(m, n - 1) if n else 1)
    return n + 1


def more(path):
    """Those of clang.cu."""
    module = Module(path)
    result = Memory([0], ctypes.c_double)
    module.run("determinant", Matrix((ctypes.c_double * 9)(2, 0, 1, 1, 3, 2, 1, 1, 4), 3, 3), result)
    equal("determinant", result.get(), [18.0])
    values, warps, whole = list(range(1, 513)), Memory([0] * 16), Memory([0])
    module.run("sums", Memory(values), warps, whole, blocks=4, threads=128)
    equal("sums of warps", warps.get(), [sum(values[32 * i:32 * i + 32]) for i in range(16)])
    equal("sum", whole.get(), [sum(values)])
    found = Memory([0] * 8)
    module.run("queens", found, threads=8)
    equal("queens", found.get(), [4, 8, 16, 18, 18, 16, 8, 4])
    found = Memory([0] * 12)
    module.run("recursion", found, threads=12)
    equal("recursion", found.get(), [ackermann(i % 3, i // 3) for i in range(12)])
    pairs = [(-100, 7), (1 << 40, 12345), (-(1 << 62), 3), (99, -10)]
    rows = [(which, a, b) for which in range(7) for a, b in pairs] + [(7, a, 0) for a in (5, -7, 1 << 20, 77)]
    results = Memory([0] * 32, ctypes.c_longlong)
    module.run("operations", Memory([row[0] for row in rows]), Memory([row[1] for row in rows], ctypes.c_longlong),
               Memory([row[2] for row in rows], ctypes.c_longlong), results, threads=32)
    equal("operations", results.get(), [wanted_of(*row) for row in rows])
    rooms, areas = Memory([0] * 64, ctypes.c_longlong), Memory([0] * 32)
    module.run("make_shapes", rooms, threads=32)
    module.run("use_shapes", rooms, areas, threads=32)
    equal("virtual functions", areas.get(),
          [10 * (i * i if i % 2 else i * i // 2) + (4 if i % 2 else 3) for i in range(32)])
    module.run("prints", ctypes.c_int(5), threads=32)


def on_softgpu(first, second):
    global CUDA  # pylint: disable=global-statement
    CUDA = ctypes.CDLL("libcuda.so.1")
    context = ctypes.c_void_p()
    check(CUDA.cuInit(0))
    check(CUDA.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
    check(CUDA.cuCtxSetCurrent(context))
    kernels(first)
    more(second)


# ---- The tests -----------------------------------------------------------------------------------

def try_way(folder, architecture, level):
    texts = []
    for name in ("kernels.cu", "clang.cu"):
        texts.append(folder / f"{name}-{architecture}{level}.ptx")
        done = compiled(name, architecture, level, texts[-1])
        if done.returncode:
            return f"clang: {done.stderr}"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SOFTGPU_")}
    environment.pop("GPUMEM_DRIVER", None)
    done = subprocess.run([BUILD / "bin" / "gpumem", "run", "--softgpu", "--memory", "64M", "--", sys.executable,
                           __file__, *texts], env=dict(environment, SOFTGPU_KERNELS="1"), capture_output=True,
                          text=True, check=False)
    if done.returncode or done.stdout != "value 5, half 2.50\n":
        return f"status {done.returncode}\n{done.stdout}{done.stderr}"
    return ""


def why_not(folder):
    if os.environ.get("GPUMEM_SANITIZE", "off") != "off":
        return "Python does not run the sanitizer's libraries"
    if not shutil.which("clang"):
        return "clang is not installed"
    done = compiled("clang.cu", "sm_70", "-O2", folder / "try.ptx")
    return f"clang makes no PTX: {(done.stderr.splitlines() or ['?'])[0]}" if done.returncode else ""


def main():
    report = Report()
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as name:
        why = why_not(Path(name))
        if why:
            print(f"1..0 # SKIP {why}")
            return 0
        for way in WAYS:
            report.run(f"clang {' '.join(way)}", try_way, Path(name), *way)
    return report.end()


if __name__ == "__main__":
    sys.exit(on_softgpu(*sys.argv[1:]) if len(sys.argv) > 1 else main())
