#!/usr/bin/env python3
"""--leaks with the fixture that docs/softgpu.md shows: releasing the primary context frees all that
was left in it, so what it had is told then, with who made it."""
import re
import shutil
import subprocess
import sys

import harness
from harness import expect, expect_status

SOFTGPU = harness.BUILD / "lib" / "gpumem" / "softgpu"

# The fixture, with ctypes in the place of cuda.bindings, for two tests of which one leaks; capture
# as pytest's, which shows nothing of tests that pass.
FIXTURE = """
import ctypes, os, sys, tempfile
words = sys.argv[1:]
saved, capture = os.dup(2), tempfile.TemporaryFile()
if "capture" in words:
    os.dup2(capture.fileno(), 2)
cuda = ctypes.CDLL("libcuda.so.1")
assert cuda.cuInit(0) == 0
number, bus = ctypes.c_int(), ctypes.create_string_buffer(16)
assert cuda.cuDeviceGetPCIBusId(bus, 16, 0) == 0
assert cuda.cuDeviceGetByPCIBusId(ctypes.byref(number), bus) == 0
for test in ("test_clean", "test_leaky"):
    os.environ["PYTEST_CURRENT_TEST"] = f"tests/test_a.py::{test} (call)"
    context, pointer, stream = ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_void_p()
    assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    assert cuda.cuCtxSetCurrent(context) == 0
    assert cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(4096)) == 0
    if "stream" in words:
        assert cuda.cuStreamCreate(ctypes.byref(stream), 0) == 0
    print(test, hex(pointer.value))
    if test == "test_clean" or "clean" in words:
        assert cuda.cuMemFree_v2(pointer) == 0
        if stream:
            assert cuda.cuStreamDestroy_v2(stream) == 0
    cuda.cuCtxSetCurrent(None)
    if "reset" in words:
        assert cuda.cuDevicePrimaryCtxReset_v2(0) == 0
    if "retained" not in words:
        assert cuda.cuDevicePrimaryCtxRelease_v2(0) == 0
os.dup2(saved, 2)
"""

PROGRAM = """
#include <stddef.h>
int cuInit(unsigned); int cuDevicePrimaryCtxRetain(void **, int); int cuCtxSetCurrent(void *);
int cuMemAlloc_v2(unsigned long long *, size_t); int cuDevicePrimaryCtxRelease_v2(int);
int cuEventCreate(void **, unsigned);
static unsigned long long p;
static void *context, *event;
__attribute__((noinline)) int make_memory(size_t size) {
    int result = cuMemAlloc_v2(&p, size); /* the allocation */
    return result + 1 - 1;
}
int main(void) {
    if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context))
        return 1;
    int result = make_memory(12345); /* its caller */
    result += cuEventCreate(&event, 0);
    return result + cuDevicePrimaryCtxRelease_v2(0);
}
"""


def run(*arguments, **more):
    return harness.run_program(arguments, env=harness.bare_environment("PYTEST_", **more))


def fixture(folder, *words, options=("--leaks",)):
    path = folder / "fixture.py"
    path.write_text(FIXTURE)
    return run(*options, sys.executable, str(path), *words)


def test_leaks_of_a_released_primary_context_are_reported(folder):
    for words in ((), ("capture",), ("reset",), ("retained",)):
        process = fixture(folder, *words)
        expect_status(process, 0)
        address = re.search(r"test_leaky (0x\w+)", process.stdout)[1]
        lines = [line for line in process.stderr.splitlines() if "allocation" in line]
        expect(len(lines) == 1, f"{words}: {process.stderr}")
        for part in ("4096 bytes", address, "cuMemAlloc_v2", "tests/test_a.py::test_leaky (call)"):
            expect(part in lines[0], f"{words}: no {part!r} in {lines[0]!r}")
        when = "at exit" if "retained" in words else "when the primary context of device 0 ended"
        expect(f"1 object still live {when}" in process.stderr, f"{words}: {process.stderr}")
        expect(process.stderr.count("still live") == 1, f"{words}: {process.stderr}")


def test_a_retained_primary_context_is_not_reported_as_a_leak(folder):
    process = fixture(folder, "clean", "retained")
    expect_status(process, 0)
    expect(process.stderr == "", process.stderr)
    expect_status(fixture(folder, "clean", "retained", options=("--fail-on", "leaks")), 0)


def test_a_program_without_leaks_prints_nothing(folder):
    for words in (("clean",), ("clean", "reset"), ("clean", "stream")):
        process = fixture(folder, *words)
        expect_status(process, 0)
        expect(process.stderr == "", f"{words}: {process.stderr}")


def test_leaks_of_a_released_context_fail_the_job_on_request(folder):
    for words, status in (((), 9), (("capture",), 9), (("reset",), 9), (("retained",), 9),
                          (("clean",), 0)):
        process = fixture(folder, *words, options=("--fail-on", "leaks"))
        expect(process.returncode == status, f"{words}: {process.returncode} {process.stderr}")


def test_leaked_objects_are_reported_with_the_call_that_made_them(folder):
    process = fixture(folder, "stream")
    expect("2 objects still live" in process.stderr, process.stderr)
    expect(re.search(r"stream.*0x\w+.*cuStreamCreate", process.stderr), process.stderr)


LOADED = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
context, module, library, link = (ctypes.c_void_p() for _ in range(4))
text = b".version 7.0\\n.target sm_70\\n.address_size 64\\n.visible .entry a() { ret; }\\n"
assert cuda.cuInit(0) == 0 and cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0) == 0
assert cuda.cuModuleLoadData(ctypes.byref(module), text) == 0
assert cuda.cuLibraryLoadData(ctypes.byref(library), text, None, None, 0, None, None, 0) == 0
assert cuda.cuLinkCreate_v2(0, None, None, ctypes.byref(link)) == 0
"""


def test_programs_and_linkers_that_stay_are_reported(_folder):
    process = run("--leaks", sys.executable, "-c", LOADED)
    expect_status(process, 0)
    for text in (r"module of context \d+ with 1 function, not unloaded", "library, not unloaded",
                 "linker, not destroyed"):
        expect(len(re.findall(text, process.stderr)) == 1, f"{text}: {process.stderr}")


# One object of each kind that --fail-on can choose, made and left on request.
KINDS = LOADED[:LOADED.index("assert cuda.cuModule")] + """
import sys
what, handle, size = sys.argv[1], ctypes.c_void_p(), ctypes.c_size_t(4096)
made = {"modules": lambda: cuda.cuModuleLoadData(ctypes.byref(handle), text),
        "memory": lambda: cuda.cuMemAlloc_v2(ctypes.byref(handle), size),
        "streams": lambda: cuda.cuEventCreate(ctypes.byref(handle), 0),
        "graphs": lambda: cuda.cuGraphCreate(ctypes.byref(handle), 0), "none": lambda: 0}
assert made[what]() == 0
if "kept" not in sys.argv:
    assert cuda.cuCtxDestroy_v2(context) == 0
"""


def test_kinds_of_leaks_fail_the_job(_folder):
    wanted = {"memory": "4096 bytes", "modules": "module of", "streams": "event", "graphs": "graph", "none": ""}
    for left, text in wanted.items():
        for chosen in ("memory", "modules", "streams", "graphs", "other"):
            process = run("--fail-on", f"leaks:{chosen}", sys.executable, "-c", KINDS, left)
            fails = left == chosen
            expect_status(process, 9 if fails else 0)
            expect(("still live" in process.stderr) == fails and (not fails or text in process.stderr), process.stderr)
        expect_status(run("--fail-on", "leaks", sys.executable, "-c", KINDS, left), 0 if left == "none" else 9)
    process = run("--fail-on", "leaks:memory", "--leaks", sys.executable, "-c", KINDS, "modules")
    expect_status(process, 0)
    expect("module of" in process.stderr, f"--leaks does not report all: {process.stderr}")
    process = run("--fail-on", "leaks:graphs,leaks:other", sys.executable, "-c", KINDS, "none", "kept")
    expect_status(process, 9)
    expect("context" in process.stderr, process.stderr)


def line_of(text):
    return next(n for n, line in enumerate(PROGRAM.splitlines(), 1) if text in line)


def test_call_sites_resolve_to_source_lines(folder):
    """Of a program that is linked to the driver, and of a library in one that has opened it by name."""
    compiler, resolver = shutil.which("cc"), shutil.which("addr2line")
    if not compiler or not resolver:
        raise harness.Skip("no cc or no addr2line here")
    source, program, library = folder / "leaky.c", folder / "leaky", folder / "leaky.so"
    source.write_text(PROGRAM)
    opened = f"import ctypes; ctypes.CDLL('libcuda.so.1'); ctypes.CDLL({str(library)!r}).begin()"
    for more, made, command in (((), program, (str(program),)),
                                (("-shared", "-fPIC", "-Dmain=begin"), library, (sys.executable, "-c", opened))):
        subprocess.run([compiler, "-g", "-O1", *more, "-o", str(made), str(source), f"-L{SOFTGPU}",
                        f"-Wl,-rpath-link,{SOFTGPU}", "-lcuda"], check=True)
        process = run("--leaks", *command)
        expect_status(process, 0)
        line = next((at for at in process.stderr.splitlines() if "12345 bytes" in at), "")
        sites = re.findall(rf"({re.escape(made.name)})\+(0x\w+)", line)
        expect(len(sites) >= 2, f"no call sites in {process.stderr}")
        found = subprocess.run([resolver, "-e", str(made), *[site for _, site in sites]],
                               capture_output=True, text=True, check=True).stdout.splitlines()
        expect(found[0].split()[0].endswith(f"leaky.c:{line_of('the allocation')}"), f"{found}")
        expect(found[1].split()[0].endswith(f"leaky.c:{line_of('its caller')}"), f"{found}")
        expect("cuMemAlloc_v2" in line, line)


def test_the_trace_shows_arguments_and_created_handles(folder):
    """A leaked address can be looked up in it."""
    trace = folder / "trace"
    process = fixture(folder, "stream", options=("--leaks", "--trace", str(trace)))
    address = re.search(r"test_leaky (0x\w+)", process.stdout)[1]
    text = trace.read_text()
    expect(re.search(rf"^\d+\.\d{{6}} \d+ cuMemAlloc_v2\(0x\w+ -> {address}, 4096\) CUDA_SUCCESS$",
                     text, re.M), f"{address} of\n{text}")
    expect(re.search(r' cuDeviceGetByPCIBusId\(0x\w+, "[0-9a-f:.]+"\) ', text), text)
    expect(re.search(r" cuInit\(0\) CUDA_SUCCESS$", text, re.M), text)
    stream = re.search(r"stream.*(0x\w+), made by cuStreamCreate", process.stderr)
    expect(stream and re.search(rf"cuStreamCreate\(0x\w+ -> {stream[1]}, 0\) CUDA_SUCCESS$", text,
                                re.M), f"{process.stderr}\n{text}")


harness.main_unless_sanitized(globals())
