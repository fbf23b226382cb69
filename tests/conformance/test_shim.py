#!/usr/bin/env python3
"""libcuda.so.1 stands for the engine: opened by path, by either name, and linked with -lcuda."""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tests/harness"))
from tap_report import Report  # noqa: E402  pylint: disable=wrong-import-position
BUILD = Path(os.environ.get("GPUMEM_BUILD_DIR", SOURCE / "build")).resolve()
SOFTGPU = BUILD / "lib/gpumem/softgpu"

LINKED = r"""
#include <gpumem/cuda_api.h>
#include <stdio.h>
CUresult cuInit(unsigned flags);
CUresult cuDeviceGetCount(int *count);
CUresult cuMemAlloc_v2(CUdeviceptr *memory, size_t size);
int main(void) {
    int count = -1;
    CUdeviceptr memory = 0;
    CUresult early = cuMemAlloc_v2(&memory, 1);
    CUresult init = cuInit(0), counted = cuDeviceGetCount(&count);
    printf("%d %d %d %d\n", early, init, counted, count);
    return 0;
}
"""

OPENED = r"""
import ctypes, sys
driver = ctypes.CDLL(sys.argv[1])
count = ctypes.c_int(-1)
print(driver.cuDeviceGetCount(ctypes.byref(count)), driver.cuInit(0),
      driver.cuDeviceGetCount(ctypes.byref(count)), count.value)
"""

# Opening the engine through gpumem must leave NVIDIA's name to NVIDIA's library.
OPENED_BY_GPUMEM = r"""
#include <dlfcn.h>
#include <gpumem/driver.h>
#include <stdio.h>
int main(void) {
    gpumem_driver *driver;
    if (gpumem_driver_open("softgpu", &driver) != GPUMEM_OK)
        return 1;
    puts(dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD) ? "taken" : "free");
    gpumem_driver_close(driver);
    return 0;
}
"""


def run(command, **variables):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("SOFTGPU_")}
    environment.update(SOFTGPU_DEVICES="3", **variables)
    done = subprocess.run([str(word) for word in command], env=environment, capture_output=True,
                          text=True, timeout=60, check=False)
    return (done.stdout + done.stderr).strip()


def compiled(text, folder, *flags):
    source, program = Path(folder) / "program.c", Path(folder) / "program"
    source.write_text(text)
    subprocess.run(["cc", "-I", SOURCE / "include", source, "-o", program, *flags], check=True)
    return program


def linked(folder):
    program = compiled(LINKED, folder, "-L", SOFTGPU, "-lcuda")
    return run([program], LD_LIBRARY_PATH=str(SOFTGPU)), "3 0 0 3"


def opened(name):
    return run([sys.executable, "-c", OPENED, name]), "3 0 0 3"


def name_left_free(folder):
    library = BUILD / "lib"
    program = compiled(OPENED_BY_GPUMEM, folder, "-D_GNU_SOURCE", "-L", library, "-lgpumem",
                       f"-Wl,-rpath,{library}")
    return run([program]), "free"


CHECKS = [
    ("a program linked with -lcuda runs on the engine", linked),
    ("libcuda.so.1 can be opened by path", lambda _: opened(SOFTGPU / "libcuda.so.1")),
    ("libcuda.so can be opened by path", lambda _: opened(SOFTGPU / "libcuda.so")),
    ("gpumem does not occupy the name libcuda.so.1", name_left_free),
]


def main():
    report = Report()
    for title, check in CHECKS:
        if os.environ.get("GPUMEM_SANITIZE", "off") != "off":
            report.skip(title, "a sanitizer must be linked into the program")
            continue
        with tempfile.TemporaryDirectory() as folder:
            got, wanted = check(folder)
        report.expect(got == wanted, title, f"got '{got}', not '{wanted}'")
    return report.end()


if __name__ == "__main__":
    sys.exit(main())
