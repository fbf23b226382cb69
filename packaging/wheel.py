#!/usr/bin/env python3
"""Makes the wheels: gpumem has the command `gpumem`, the libraries with their headers, and softgpu, in
the layout of an install, and the Python package gpumem; vkgdr has the name vkgdr for gpumem.vkgdr.

wheel.py TREE DIST: TREE is an installed prefix. All of it goes into the wheel's data folder, which
an installer lays over the environment's prefix: bin/gpumem finds lib/ beside it by $ORIGIN, as in any
other install. Packing and the list of hashes are the wheel package's own work.
"""
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1]
NAME = "gpumem"

SHIM = SOURCE / "packaging/vkgdr_shim"
# Of vkgdr's version whose interface it is; what follows the plus sign is a local version's.
SHIM_VERSION = "0.1+gpumem.{version}"

SHIM_METADATA = """\
Metadata-Version: 2.1
Name: vkgdr
Version: {shim}
Summary: The module vkgdr, provided by gpumem
License: Apache-2.0
Requires-Python: >=3.8
Requires-Dist: gpumem=={version}
Description-Content-Type: text/markdown

The module `vkgdr` is `gpumem.vkgdr` here: device memory that the CPU reads and writes, with vkgdr's own interface. `vkgdr.pycuda` needs pycuda.
"""

METADATA = """\
Metadata-Version: 2.1
Name: {name}
Version: {version}
Summary: GPU memory of every kind, on NVIDIA's driver or on a software CUDA driver
License: Apache-2.0; libraries that are linked in have theirs, in licenses/
Requires-Python: >=3.8
Description-Content-Type: text/markdown

{readme}"""

WHEEL = """\
Wheel-Version: 1.0
Generator: gpumem packaging
Root-Is-Purelib: {pure}
Tag: py3-none-{platform}
"""


def version():
    text = (SOURCE / "include/gpumem/status.h").read_text()
    parts = [re.search(rf"define GPUMEM_VERSION_{part} +(\d+)", text).group(1)
             for part in ("MAJOR", "MINOR", "PATCH")]
    return ".".join(parts)


def newest_glibc(files):
    """The C library that the binaries need: the platform tag must not promise an older one."""
    newest = (2, 17)
    for file in files:
        if not file.read_bytes().startswith(b"\x7fELF"):
            continue  # the linker's script
        symbols = subprocess.run(["objdump", "-T", file], capture_output=True, text=True, check=True)
        for major, minor in re.findall(r"GLIBC_(\d+)\.(\d+)", symbols.stdout):
            newest = max(newest, (int(major), int(minor)))
    return newest


# What -lgpumem finds. A wheel holds no links, and a copy would be a second library.
LINKER_SCRIPT = "/* The library's name without a version, for the linker. */\nINPUT ( {} )\n"
LIBRARIES = "libgpumem.so.0", "libvkgdr.so.1"


def copy_tree(tree, data):
    """The parts that run and those to build with; wheels hold no links, so a link becomes the file
    that it names."""
    shutil.copytree(tree / "lib" / "gpumem", data / "lib" / "gpumem", symlinks=False)
    for library in LIBRARIES:
        shutil.copy(tree / "lib" / library, data / "lib" / library)
        (data / "lib" / library).with_suffix("").write_text(LINKER_SCRIPT.format(library))
    shutil.copytree(tree / "share" / "gpumem", data / "share" / "gpumem")
    shutil.copytree(tree / "include" / "gpumem", data / "include" / "gpumem")
    for folder in "man", "bash-completion", "fish":
        shutil.copytree(tree / "share" / folder, data / "share" / folder)
    # Debian's zsh alone knows the folder of its packages.
    shutil.copytree(tree / "share/zsh/vendor-completions", data / "share/zsh/site-functions")
    shutil.copy(tree / "include" / "vkgdr.h", data / "include" / "vkgdr.h")
    copy_descriptions(tree / "lib", data / "lib")


def replaced(pattern, text, file):
    changed, count = re.subn(pattern, text, file.read_text(), flags=re.M)
    assert count, f"{file} has no {pattern}"
    return changed


def copy_descriptions(tree, lib):
    """pkg-config's files and the CMake package. An environment may be anywhere, so prefixes are counted from the
    files; what is linked statically is left out, because the archive is."""
    for folder in "pkgconfig", "cmake/gpumem":
        (lib / folder).mkdir(parents=True)
    for file in (tree / "pkgconfig").glob("*.pc"):
        (lib / "pkgconfig" / file.name).write_text(replaced(r"^prefix=.*$", "prefix=${pcfiledir}/../..", file))
    for file in (tree / "cmake/gpumem").glob("*.cmake"):
        if file.name.startswith("gpumemTargets-"):
            (lib / "cmake/gpumem" / file.name).write_text(replaced(r"libgpumem\.so\.0\.[0-9.]+", LIBRARIES[0], file))
        elif not file.name.startswith("gpumemStatic"):
            shutil.copy(file, lib / "cmake/gpumem" / file.name)


def copy_package(source, root):
    """A Python package, without what running it from the sources has left."""
    shutil.copytree(source, root / source.name, ignore=shutil.ignore_patterns("__pycache__"))


def pack(root, dist):
    subprocess.run([sys.executable, "-m", "wheel", "pack", "--dest-dir", dist, root], check=True)


def make_gpumem(root, tree, dist):
    full = f"{NAME}-{version()}"
    data, info = root / f"{full}.data" / "data", root / f"{full}.dist-info"
    scripts = root / f"{full}.data" / "scripts"
    for each in data / "lib", scripts, info:
        each.mkdir(parents=True)
    copy_tree(tree, data)
    copy_package(SOURCE / "python" / "gpumem", root)
    shutil.copy(tree / "bin" / "gpumem", scripts / "gpumem")
    major, minor = newest_glibc([*data.rglob("*.so*"), scripts / "gpumem"])
    platform = f"manylinux_{major}_{minor}_x86_64"
    (info / "METADATA").write_text(METADATA.format(
        name=NAME, version=version(), readme=(SOURCE / "README.md").read_text()))
    (info / "WHEEL").write_text(WHEEL.format(pure="false", platform=platform))
    (info / "licenses").mkdir()
    for licence in [SOURCE / "LICENSE", *SOURCE.glob("packaging/licences/*.txt")]:
        shutil.copy(licence, info / "licenses" / licence.name)
    pack(root, dist)


def make_shim(root, dist):
    shim = SHIM_VERSION.format(version=version())
    info = root / f"vkgdr-{shim}.dist-info"
    info.mkdir(parents=True)
    copy_package(SHIM / "vkgdr", root)
    (info / "METADATA").write_text(SHIM_METADATA.format(shim=shim, version=version()))
    (info / "WHEEL").write_text(WHEEL.format(pure="true", platform="any"))
    (info / "licenses").mkdir()
    shutil.copy(SOURCE / "LICENSE", info / "licenses" / "LICENSE")
    pack(root, dist)


def main():
    tree, dist = Path(sys.argv[1]), Path(sys.argv[2])
    with tempfile.TemporaryDirectory() as folder:
        make_gpumem(Path(folder) / "gpumem", tree, dist)
        make_shim(Path(folder) / "vkgdr", dist)


if __name__ == "__main__":
    main()
