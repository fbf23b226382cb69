#!/usr/bin/env python3
"""A build without LZ4, zstd, zlib and Vulkan's headers: configuring says what is off and goes on, and what is off is
refused with the reason. Of the sources those that differ are compiled so, and take the place of the others in the
archives of the build that is there."""
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tests/harness"))
from tap_report import Report  # noqa: E402  pylint: disable=wrong-import-position

BUILD = Path(os.environ.get("GPUMEM_BUILD_DIR", SOURCE / "build"))
DIFFERENT = ("binary/fatbin", "decompress/decompress", "device/claims")
WITHOUT = [f"-DSG_WITHOUT_{name}=1" for name in ("LZ4", "ZSTD", "ZLIB")]
LOAD = """
import ctypes, sys
cuda = ctypes.CDLL(sys.argv[1])
context, module, device = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_int()
assert cuda.cuInit(0) == 0 and cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0) == 0
for path in sys.argv[2:]:
    log = ctypes.create_string_buffer(512)
    options, values = (ctypes.c_int * 2)(5, 6), (ctypes.c_void_p * 2)(ctypes.addressof(log), 512)
    result = cuda.cuModuleLoadDataEx(ctypes.byref(module), open(path, "rb").read(), 2, options, values)
    print(result, log.value.decode().strip())
"""
VULKAN = """
#include <gpumem/gpumem.h>
#include <stdio.h>
int main(void) {
    gpumem_library *library = NULL;
    gpumem_vulkan_info info = {.size = sizeof info};
    if (gpumem_open(NULL, &library) || gpumem_device_get_vulkan_info(library, 0, &info))
        return 1;
    puts(info.available ? "available" : info.reason);
    gpumem_close(library);
}
"""


def run(*command, **more):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False, **more)
    assert done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout}"
    return done.stdout


def compile_lean(source, result, *more):
    run("cc", "-std=c17", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror", "-D_GNU_SOURCE", "-DGPUMEM_BUILD", "-fPIC",
        "-fvisibility=hidden", "-I", SOURCE / "include", "-I", SOURCE / "src", *more, "-c", source, "-o", result)


def configures(folder):
    said = run("cmake", "-S", SOURCE, "-B", folder / "lean", "-D", "GPUMEM_EXTRAS=OFF", "-D", "GPUMEM_BENCH=OFF")
    for package in ("libzstd-dev", "liblz4-dev", "zlib1g-dev", "libvulkan-dev"):
        assert f"({package})" in said.partition("Off in this build:")[2].splitlines()[0], said
    assert "Tests are not built without" in said, said


def images(folder):
    archive = folder / "softgpu.a"
    shutil.copy(BUILD / "internal/libsoftgpu_static.a", archive)
    objects = []
    for name in DIFFERENT:
        objects.append(folder / f"{Path(name).name}.c.o")
        compile_lean(SOURCE / f"src/softgpu/{name}.c", objects[-1], *WITHOUT)
        run("ar", "d", archive, objects[-1].name)
    library = folder / "libsoftgpu.so.0"
    run("cc", "-shared", "-o", library, *objects, "-Wl,--whole-archive", archive, "-Wl,--no-whole-archive", BUILD / "internal/libgpumem_base.a",
        "-pthread", "-lm", "-ldl", f"-Wl,--version-script={SOURCE}/src/softgpu/softgpu.map", "-Wl,-Bsymbolic", "-Wl,-z,defs")
    files = [SOURCE / f"tests/fixtures/images/{name}.fatbin" for name in ("zstd", "lz4", "plain")]
    said = run(sys.executable, "-c", LOAD, library, *files, env=dict(os.environ, SOFTGPU_MEMORY="64M")).splitlines()
    assert len(said) == 3 and said[2].strip() == "0", said
    for line, name in zip(said, ("zstd", "LZ4")):
        assert line.startswith("801 ") and f"this softgpu was built without {name}" in line, line


def vulkan(folder):
    compile_lean(SOURCE / "src/vulkan/absent.c", folder / "absent.o")
    (folder / "main.c").write_text(VULKAN)
    run("cc", "-std=c17", "-I", SOURCE / "include", folder / "main.c", folder / "absent.o", BUILD / "lib/libgpumem.a", "-pthread", "-ldl", "-lm",
        "-o", folder / "main")
    softgpu = BUILD / "lib/gpumem/softgpu/libsoftgpu.so.0"
    said = run(folder / "main", env=dict(os.environ, GPUMEM_DRIVER=str(softgpu), SOFTGPU_MEMORY="64M"))
    assert "built without Vulkan's headers (libvulkan-dev)" in said, said


def main():
    report = Report()
    if os.environ.get("GPUMEM_SANITIZE", "off") != "off":
        report.skip("a build without optional libraries", "its archives have the sanitizer's calls in them")
        return report.end()
    with tempfile.TemporaryDirectory() as name:
        report.run("configuring says what is off, and goes on", configures, Path(name))
        report.run("compressed images are refused by the library that is missing", images, Path(name))
        report.run("device memory is not mapped by Vulkan, and the reason is said", vulkan, Path(name))
    return report.end()


if __name__ == "__main__":
    sys.exit(main())
