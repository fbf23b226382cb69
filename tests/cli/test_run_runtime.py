#!/usr/bin/env python3
"""Under gpumem run our libcudart is loaded in the place of NVIDIA's, however that is named. NVIDIA's is a library made
here, because the real one is not free."""
import shutil
import subprocess
import sys

import harness
from harness import Skip, expect, expect_status

THEIRS = "int cudaRuntimeGetVersion(int *version) { *version = 1; return 0; }\n"
# Prints the version that it gets of the library that it was linked with.
PROGRAM = """
#include <stdio.h>
int cudaRuntimeGetVersion(int *);
int main(void) { int version = 0; cudaRuntimeGetVersion(&version); return printf("%d\\n", version) < 0; }
"""
# The same of each file.
LOADER = """
import ctypes, sys
for name in sys.argv[1:]:
    version = ctypes.c_int()
    ctypes.CDLL(name).cudaRuntimeGetVersion(ctypes.byref(version))
    print(version.value)
"""
# Allocates and frees, without a name of the runtime's in a header.
USE = """
import ctypes
runtime, memory = ctypes.CDLL("libcudart.so.13"), ctypes.c_void_p()
print(runtime.cudaMalloc(ctypes.byref(memory), 1000), bool(memory.value), runtime.cudaFree(memory))
"""


def made(folder, name, source, *options):
    compiler = shutil.which("cc")
    if not compiler:
        raise Skip("there is no C compiler")
    if harness.SANITIZE != "off":
        raise Skip("a program without the sanitizer cannot load the sanitizer's libraries")
    path = folder / name
    (folder / "source.c").write_text(source)
    subprocess.run([compiler, "-w", "-o", path, folder / "source.c", *options], check=True)
    return path


def theirs(folder, name, version):
    return made(folder, name, THEIRS, "-shared", "-fPIC", f"-Wl,-soname,libcudart.so.{version}")


def run(*words, options=(), **more):
    return harness.run_program([*options, "--"], *words, env=harness.bare_environment("LD_AUDIT", "NVCC_", **more))


def test_a_program_gets_ours_through_its_run_path(folder):
    runtime = theirs(folder, "libcudart.so.12", 12)
    program = made(folder, "program", PROGRAM, runtime, f"-Wl,-rpath,{folder}")
    for options, version in (([], "12090"), (["--nvidia-runtime"], "1")):
        done = run(program, options=options)
        expect_status(done, 0)
        expect(done.stdout == f"{version}\n", f"{options}: {done.stdout}{done.stderr}")


def test_libraries_are_recognised_by_name_and_nothing_else_is_taken_for_one(folder):
    files = [theirs(folder, name, 12) for name in ("libcudart.so.12", "libcudart-0123abcd.so.12", "libcudart.so.13.0.96",
                                                   "libcudart.so.11.0", "libcudartful.so.12", "libcudart.so.120")]
    done = run(sys.executable, "-c", LOADER, *files)
    expect_status(done, 0)
    expect(done.stdout.split() == ["12090", "12090", "13050", "1", "1", "1"], f"{done.stdout}{done.stderr}")


def test_a_program_without_a_library_of_its_own_finds_ours_and_uses_memory(folder):
    made(folder, "unused", THEIRS, "-shared", "-fPIC")
    done = run(sys.executable, "-c", USE)
    expect_status(done, 0)
    expect(done.stdout == "0 True 0\n" and not done.stderr, f"{done.stdout}{done.stderr}")


def test_nvcc_is_told_to_link_the_runtime_as_a_library(_folder):
    for options, given, wanted in (([], {}, "--cudart=shared"), (["--nvidia-runtime"], {}, ""),
                                   ([], {"NVCC_APPEND_FLAGS": "-g"}, "-g --cudart=shared")):
        done = run("sh", "-c", "echo $NVCC_APPEND_FLAGS", options=options, **given)
        expect(done.stdout == f"{wanted}\n", f"{options}: {done.stdout}{done.stderr}")


if __name__ == "__main__":
    harness.main(globals())
