#!/usr/bin/env python3
"""What a program cannot do here is said in one line at the default log level, with the way out: text that a newer
compiler made, and the private tables that the CUDA runtime needs."""
import re
import sys

import harness
from harness import expect

# "ptx=9.9" loads a text of that version, "table=ID" asks for a table; the runtime's is RUNTIME.
PROGRAM = """
import ctypes, sys
cuda = ctypes.CDLL("libcuda.so.1")
made = ctypes.c_void_p()
cuda.cuInit(0)
cuda.cuDevicePrimaryCtxRetain(ctypes.byref(made), 0)
cuda.cuCtxSetCurrent(made)
for word in sys.argv[1:]:
    if word.startswith("ptx="):
        text = f".version {word[4:]}\\n.target sm_70\\n.address_size 64\\n.visible .entry k() {{ ret; }}\\n"
        print(cuda.cuModuleLoadData(ctypes.byref(made), text.encode()))
    if word.startswith("link="):
        linker, text = ctypes.c_void_p(), f".version {word[5:]}\\n.target sm_70\\n"
        cuda.cuLinkCreate_v2(0, None, None, ctypes.byref(linker))
        print(cuda.cuLinkAddData_v2(linker, 1, text.encode(), ctypes.c_size_t(len(text) + 1), None, 0, None, None))
    if word.startswith("table="):
        print(cuda.cuGetExportTable(ctypes.byref(made), bytes.fromhex(word[6:])))
"""

RUNTIME, OTHER = "table=6bd5fb6c5bf4e74a8987d93912fd9df9", "table=" + 16 * "00"
TOO_NEW = ("softgpu: warning: a text of PTX 9.9 is refused: 9.5, of CUDA 13.5, is the newest that is known here. Use an "
           "older compiler, or set SOFTGPU_DRIVER_VERSION=13.9: then it is read, and what is unknown in it is refused by "
           "name\n")
AS_DRIVER = "softgpu: warning: a text of PTX 9.{} is refused, as driver 13.0 does: SOFTGPU_PTX=newest takes it\n"
NO_TABLE = ("softgpu: warning: FILE has NVIDIA's CUDA runtime linked into it, which asks the driver for private tables "
            "(cuGetExportTable) that softgpu does not have: its calls fail. Link it again with nvcc --cudart=shared, and "
            "gpumem run puts gpumem's in its place; what comes linked, as cuBLAS, cannot be helped\n")

CASES = [
    ("what the reader knows is taken whatever the driver's version", {}, ("ptx=9.5", "ptx=9.0"), "0\n0\n", ""),
    ("a text newer than the reader is refused and named once", {}, ("ptx=9.9", "ptx=9.9"), "222\n222\n", TOO_NEW),
    ("the linker says the same", {}, ("link=9.9",), "222\n", TOO_NEW),
    ("a newer driver takes it", {"SOFTGPU_DRIVER_VERSION": "13.9"}, ("ptx=9.9",), "0\n", ""),
    ("each version that is refused as the driver does is named", {"SOFTGPU_PTX": "driver"},
     ("ptx=9.0", "ptx=9.1", "ptx=9.5"), "0\n222\n222\n", AS_DRIVER.format(1) + AS_DRIVER.format(5)),
    ("a setting that takes as much as a newer driver", {"SOFTGPU_PTX": "driver", "SOFTGPU_DRIVER_VERSION": "13.3"},
     ("ptx=9.3",), "0\n", ""),
    ("below the default level there is no line", {"SOFTGPU_LOG": "error"}, ("ptx=9.9", RUNTIME), "222\n1\n", ""),
    ("the runtime's first request for its table is explained, with the caller's file", {}, (RUNTIME, RUNTIME), "1\n1\n",
     NO_TABLE),
    ("libraries that look for another table do without", {}, (OTHER,), "1\n", ""),
]


def case(variables, words, answers, said):
    done = harness.run_program((), sys.executable, "-c", PROGRAM, *words, env=harness.bare_environment(**variables))
    wrote = re.sub(r"(?<=warning: )/\S*(?= has NVIDIA)", "FILE", done.stderr)
    expect(done.returncode == 0 and done.stdout == answers and wrote == said,
           f"status {done.returncode}, answers {done.stdout!r}\n{done.stderr}")
    if "FILE" in said:
        expect(re.search("warning: /.*(libffi|_ctypes)", done.stderr), done.stderr)


if __name__ == "__main__":
    if harness.SANITIZE != "off":
        print("1..0 # SKIP Python is not built with the sanitizer that softgpu needs then")
    else:
        sys.exit(harness.run_all((title, lambda rest=rest: case(*rest)) for title, *rest in CASES))
