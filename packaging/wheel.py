#!/usr/bin/env python3
"""Finishes the wheels: that of gpumem, which scikit-build-core has made, gets the tag of the C library that its
programs need; and vkgdr, the name vkgdr for gpumem.vkgdr, is made.

wheel.py DIST: the folder with the wheel of gpumem. Packing and the list of hashes are the wheel package's own work.
"""
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1]
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

WHEEL = """\
Wheel-Version: 1.0
Generator: gpumem packaging
Root-Is-Purelib: true
Tag: py3-none-any
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


def copy_package(source, root):
    """A Python package, without what running it from the sources has left."""
    shutil.copytree(source, root / source.name, ignore=shutil.ignore_patterns("__pycache__"))


def pack(root, dist):
    subprocess.run([sys.executable, "-m", "wheel", "pack", "--dest-dir", dist, root], check=True)


def tag_gpumem(dist, folder):
    """scikit-build-core says linux_x86_64, which is what is known before anything is built."""
    wheel = next(dist.glob("gpumem-*-linux_*.whl"))
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    major, minor = newest_glibc([path for path in folder.rglob("*") if path.is_file()])
    machine = wheel.stem.partition("-linux_")[2]
    subprocess.run([sys.executable, "-m", "wheel", "tags", "--remove",
                    "--platform-tag", f"manylinux_{major}_{minor}_{machine}", wheel],
                   stdout=subprocess.DEVNULL, check=True)


def make_shim(root, dist):
    shim = SHIM_VERSION.format(version=version())
    info = root / f"vkgdr-{shim}.dist-info"
    info.mkdir(parents=True)
    copy_package(SHIM / "vkgdr", root)
    (info / "METADATA").write_text(SHIM_METADATA.format(shim=shim, version=version()))
    (info / "WHEEL").write_text(WHEEL)
    (info / "licenses").mkdir()
    shutil.copy(SOURCE / "LICENSE", info / "licenses" / "LICENSE")
    pack(root, dist)


def main():
    dist = Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        tag_gpumem(dist, Path(folder) / "gpumem")
        make_shim(Path(folder) / "vkgdr", dist)


if __name__ == "__main__":
    main()
