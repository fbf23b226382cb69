#!/usr/bin/env python3
"""Under gpumem run our libcudart is loaded in the place of NVIDIA's, however that is named. NVIDIA's is a library made
here, because the real one is not free."""
import shutil
import struct
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


# Frees what it allocates, and says each result.
CALLS = """
import ctypes
runtime = ctypes.CDLL("libcudart.so.13")
for _ in range(3):
    memory = ctypes.c_void_p()
    print(runtime.cudaMalloc(ctypes.byref(memory), 1000), runtime.cudaFree(memory))
"""


def test_faults_are_named_by_the_runtimes_functions_and_errors_or_the_drivers(_folder):
    for fault, status, output in (("cudaMalloc:2:cudaErrorMemoryAllocation:before", 0, "0 0 2 0 0 0"),
                                  ("cudaMalloc:1:CUDA_ERROR_OUT_OF_MEMORY:before", 0, "2 0 0 0 0 0"),
                                  ("cuMemAlloc:3:cudaErrorUnknown:before", 0, "0 0 0 0 999 0"),
                                  ("cudaFree:*:cudaErrorInvalidMemcpyDirection:after", 0, "0 21 0 21 0 21"),
                                  ("cudaMalloc:4:cudaErrorUnknown:before", 0, "0 0 0 0 0 0"),
                                  ("cudaMallocs:1:cudaErrorUnknown:before", 2, ""),
                                  ("cudaMalloc:1:cudaErrorSome:before", 2, "")):
        done = run(sys.executable, "-c", CALLS, options=["--fault", fault])
        expect_status(done, status)
        expect(" ".join(done.stdout.split()) == output, f"{fault}: {done.stdout}{done.stderr}")
        expect(("never reached" in done.stderr) == (":4:" in fault), done.stderr)


def test_faults_and_traces_of_what_needs_no_driver_open_it_for_that(_folder):
    program = "import ctypes\nprint(ctypes.CDLL('libcudart.so.13').cudaRuntimeGetVersion(None))"
    done = run(sys.executable, "-c", program, options=["--fault", "cudaRuntimeGetVersion:1:cudaErrorUnknown:before"])
    expect(done.stdout == "999\n", f"{done.stdout}{done.stderr}")
    done = run(sys.executable, "-c", program, options=["--trace", "-"])
    expect("cudaRuntimeGetVersion(NULL) cudaErrorInvalidValue" in done.stderr, done.stderr)


# A library whose constructor registers a fat binary, as nvcc's do, and which launches a kernel of it.
KERNELS = """
struct { unsigned magic, version; const void *image, *parts; } wrapper __attribute__((section(".nvFatBinSegment")));
asm(".section .nv_fatbin,\\"a\\"\\n.globl fatbin\\nfatbin: .incbin \\"%s\\"\\n.previous");
extern const char fatbin[] __attribute__((visibility("hidden")));
typedef struct { unsigned x, y, z; } dim3;
void **__cudaRegisterFatBinary(void *), __cudaRegisterFunction(void **, const void *, const char *, const char *, int,
                                                               void *, void *, void *, void *, void *);
int cudaLaunchKernel(const void *, dim3, dim3, void **, unsigned long, void *);
static char stub;
__attribute__((constructor)) static void begin(void) {
    wrapper.magic = 0x466243b1, wrapper.version = 1, wrapper.image = fatbin;
    __cudaRegisterFunction(__cudaRegisterFatBinary(&wrapper), &stub, "small", "small", -1, 0, 0, 0, 0, 0);
}
int launch(void *to) {
    int n = 3;
    void *arguments[] = {&to, &n};
    dim3 one = {1, 1, 1};
    return cudaLaunchKernel(&stub, one, one, arguments, 0, 0);
}
"""
LAUNCH = """
import ctypes, sys
runtime, library, memory = ctypes.CDLL("libcudart.so.13"), ctypes.CDLL(sys.argv[1]), ctypes.c_void_p()
print(runtime.cudaMalloc(ctypes.byref(memory), 4), library.launch(memory), runtime.cudaDeviceSynchronize(),
      runtime.cudaFree(memory))
"""


def test_a_kernel_without_ptx_is_refused_with_its_library_and_what_could_run_it(folder):
    runtime = harness.BUILD / "lib/gpumem/runtime/13/libcudart.so.13"
    for image, profile, output, text in (
            ("small.fatbin", "h200", "0 0 0 0", ""),
            ("small-100.fatbin", "h200", "0 209 0 0", "libkernels.so holds machine code for sm_100; no profile runs it"),
            ("small-90.fatbin", "h200", "0 801 0 0", "libkernels.so holds machine code for sm_90, PTX for compute_120; "
                                                     "it runs with SOFTGPU_PROFILE=rtx5090"),
            ("small-90.fatbin", "a100", "0 209 0 0", "it runs with SOFTGPU_PROFILE=rtx5090")):
        data = (harness.SOURCE / "tests/fixtures/images" / image.replace("-90", "")).read_bytes()
        if image == "small-90.fatbin":  # the architecture of its PTX, 75, is at byte 28 of the entry that has it
            at = data.index(struct.pack("<HH", 1, 0x101)) + 28
            data = data[:at] + b"\x78" + data[at + 1:]
        (folder / image).write_bytes(data)
        library = made(folder, "libkernels.so", KERNELS % (folder / image), "-shared", "-fPIC", runtime)
        done = run(sys.executable, "-c", LAUNCH, library, options=["--profile", profile, "--fail-on", "leaks"])
        expect_status(done, 0)
        expect(done.stdout == f"{output}\n" and text in done.stderr, f"{image} {profile}: {done.stdout}{done.stderr}")


if __name__ == "__main__":
    harness.main(globals())
