#!/usr/bin/env python3
"""Under gpumem run our libcudart is loaded in the place of NVIDIA's, however that is named. NVIDIA's is a library made
here, because the real one is not free."""
import shutil
import struct
import subprocess
import sys
from pathlib import Path

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

# Of nvcc: says how the first call of the runtime ends.
KERNEL = """
#include <cstdio>
__global__ void add(int *to) { *to += 7; }
int main() {
    int count = 0, *memory = nullptr, host = 1;
    if (cudaError_t error = cudaGetDeviceCount(&count))
        return printf("%d\\n", error) < 0;
    cudaMalloc(&memory, 4);
    cudaMemset(memory, 0, 4);
    add<<<1, 1>>>(memory);
    cudaMemcpy(&host, memory, 4, cudaMemcpyDeviceToHost);
    return printf("%d devices, %d\\n", count, host) < 0;
}
"""
# A package that is built as cuda.bindings is: a table of functions, which stands for NVIDIA's own, and what uses it.
BINDINGS = """
import ctypes
new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
    ("PyCapsule_New", ctypes.pythonapi))
theirs, name = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(lambda at: 77), b"cudaError_t (int *)"
__pyx_capi__ = {key: new(ctypes.cast(theirs, ctypes.c_void_p), name, None)
                for key in ("_cudaRuntimeGetVersion", "_cudaGetDevice", "_cudaStreamIsCapturing", "_notOfTheRuntime")}
"""
# Calls what is in the tables, and says what became of each; first the user's own sitecustomize.
CALLER = """
import ctypes, importlib, sys
print(sys.modules["sitecustomize"].WHOSE, any("python.zip" in folder for folder in sys.path))
get = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))
for module in sys.argv[1:]:
    table = importlib.import_module("cuda.bindings." + module).__pyx_capi__
    at = {key: get(capsule, b"cudaError_t (int *)") for key, capsule in table.items()}
    version = ctypes.c_int()
    answer = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(at["_cudaRuntimeGetVersion"])(ctypes.addressof(version))
    print(answer, version.value, at["_notOfTheRuntime"] != at["_cudaGetDevice"])
    library = "/proc/self/maps" if answer else next(line.split()[-1] for line in open("/proc/self/maps")
                                                    if "libcudart" in line)
    for suffix in () if answer else ("", "_ptsz"):
        function = getattr(ctypes.CDLL(library), "cudaStreamIsCapturing" + suffix)
        print(suffix or "plain", ctypes.cast(function, ctypes.c_void_p).value == at["_cudaStreamIsCapturing"])
"""


def made(folder, name, source, *options):
    compiler = shutil.which("cc")
    if not compiler:
        raise Skip("there is no C compiler")
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


LAUNCH = """
import ctypes, sys
runtime, library, memory = ctypes.CDLL("libcudart.so.13"), ctypes.CDLL(sys.argv[1]), ctypes.c_void_p()
print(runtime.cudaMalloc(ctypes.byref(memory), 4), library.launch(memory), runtime.cudaDeviceSynchronize(),
      runtime.cudaFree(memory))
"""


def test_a_kernel_without_ptx_is_refused_with_its_library_and_what_could_run_it(folder):
    runtime = harness.BUILD / "lib/gpumem/runtime/13/libcudart.so.13"
    source = (harness.SOURCE / "tests/cli/registers.c").read_text()
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
        library = made(folder, "libkernels.so", source, "-shared", "-fPIC", runtime, f'-DIMAGE="{folder / image}"')
        done = run(sys.executable, "-c", LAUNCH, library, options=["--profile", profile, "--fail-on", "leaks"])
        expect_status(done, 0)
        expect(done.stdout == f"{output}\n" and text in done.stderr, f"{image} {profile}: {done.stdout}{done.stderr}")


def test_a_program_with_nvidias_runtime_inside_is_told_to_link_it_as_a_library(folder):
    nvcc = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
    if not nvcc:
        raise Skip("there is no nvcc")
    (folder / "add.cu").write_text(KERNEL)
    target = ("-gencode", "arch=compute_80,code=compute_80", str(folder / "add.cu"), "-o")
    # As users build it, without gpumem: the runtime is linked in.
    subprocess.run([nvcc, *target, folder / "static"], check=True)
    done = run(folder / "static")
    expect(done.stdout == "1\n" and f"{folder}/static has NVIDIA's CUDA runtime linked into it" in done.stderr and
           "nvcc --cudart=shared" in done.stderr and done.stderr.count("\n") == 1, f"{done.stdout}{done.stderr}")
    expect_status(run(nvcc, *target, folder / "again"), 0)
    done = run(folder / "again")
    expect(done.stdout == "1 devices, 7\n" and not done.stderr, f"{done.stdout}{done.stderr}")
    # Theirs as a library, which the option leaves.
    done = run(folder / "again", options=["--nvidia-runtime"], LD_LIBRARY_PATH=f"{Path(nvcc).resolve().parents[1]}/lib64")
    expect(done.stdout == "1\n" and "libcudart.so." in done.stderr and
           "is NVIDIA's CUDA runtime, which asks" in done.stderr, f"{done.stdout}{done.stderr}")


def bindings(folder, version, **tables):
    """The package, in `folder`, which has a sitecustomize, too."""
    package = folder / "cuda" / "bindings"
    for name in tables:
        path = package / (name.replace("__", "/") + ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(BINDINGS)
        (path.parent / "__init__.py").write_text("")
    (package / "__init__.py").write_text(f'__version__ = "{version}"\n')
    (folder / "sitecustomize.py").write_text("WHOSE = 'mine'\n")


def test_what_is_linked_into_cuda_bindings_is_answered_by_ours(folder):
    ours = {"13.4.1": ("0 13050 True", "_internal.runtime"), "12.9.3": ("0 12090 True", "_bindings.cyruntime")}
    for version, (answer, module) in ours.items():
        there = folder / version
        bindings(there, version, **{module.replace(".", "__"): 1, module.replace(".", "__") + "_ptds": 1})
        for options, more, wanted in (
                ((), {}, [answer, "plain True", "_ptsz False", answer, "plain False", "_ptsz True"]),
                ((), {"CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM": "1"},
                 [answer, "plain False", "_ptsz True"] * 2),
                (("--nvidia-runtime",), {}, ["77 0 False"] * 2), (("--no-kernels",), {}, ["77 0 False"] * 2)):
            done = run(sys.executable, "-c", CALLER, module, module + "_ptds", options=options,
                       PYTHONPATH=str(there), **more)
            expect_status(done, 0)
            expect(done.stdout.splitlines() == ["mine False", *wanted],
                   f"{version} {options} {more}: {done.stdout}{done.stderr}")


def test_a_version_of_cuda_bindings_that_there_is_no_library_for_is_left_as_it_is(folder):
    bindings(folder, "14.0.0", _internal__runtime=1)
    done = run(sys.executable, "-c", CALLER, "_internal.runtime", PYTHONPATH=str(folder))
    expect(done.stdout.splitlines() == ["mine False", "77 0 False"], f"{done.stdout}{done.stderr}")


def test_a_sitecustomize_that_fails_says_what_it_says_without_gpumem(folder):
    (folder / "sitecustomize.py").write_text("raise ValueError('mine')\n")
    plain = subprocess.run([sys.executable, "-c", "print(1)"], env=harness.bare_environment(PYTHONPATH=str(folder)),
                           capture_output=True, text=True, check=False)
    done = run(sys.executable, "-c", "print(1)", PYTHONPATH=str(folder))
    expect((done.stdout, done.returncode) == (plain.stdout, plain.returncode) and
           "ValueError: mine" in done.stderr and "ValueError: mine" in plain.stderr, f"{done.stderr}{plain.stderr}")


if __name__ == "__main__":
    harness.main_unless_sanitized(globals())
