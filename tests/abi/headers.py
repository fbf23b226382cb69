"""Finds NVIDIA's headers of a release: a toolkit of the machine, or the wheel that carries them.

They are never part of the repository; a downloaded wheel is unpacked into the build folder.
"""
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

RELEASES = {
    "12.8": (12080, "nvidia-cuda-runtime-cu12==12.8.90"),
    "13.0": (13000, "nvidia-cuda-runtime==13.0.96"),
}


def version_of(folder):
    try:
        text = (folder / "cuda.h").read_text(errors="replace")
    except OSError:
        return None
    found = re.search(r"^#define\s+CUDA_VERSION\s+(\d+)", text, re.M)
    return int(found.group(1)) if found else None


def installed(version):
    folders = [os.environ.get(name) for name in ("CUDA_HOME", "CUDA_PATH")]
    candidates = [Path(folder) / "include" for folder in folders if folder]
    candidates += sorted(Path("/usr/local").glob("cuda*/include"))
    candidates += sorted(Path("/usr/local").glob("cuda*/targets/*/include"))
    for folder in candidates:
        if version_of(folder) == version and (folder / "cudaTypedefs.h").exists():
            return folder
    return None


def download(requirement, cache, pattern=r"/include/cuda\w*\.h$"):
    """Unpacks the wheel's headers, or what matches; returns (their folder, None) or (None, why not)."""
    marker = list(cache.rglob("cuda.h"))
    if not marker:
        cache.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--disable-pip-version-check",
                   "--quiet", "--only-binary", ":all:", "--dest", str(cache), requirement]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            return None, f"pip: {error}"
        if done.returncode != 0:
            lines = (done.stderr.strip() or "pip failed").splitlines()
            return None, f"{requirement} cannot be downloaded: {lines[-1]}"
        for wheel in cache.glob("*.whl"):
            with zipfile.ZipFile(wheel) as archive:
                wanted = [n for n in archive.namelist() if re.search(pattern, n)]
                archive.extractall(cache, wanted)
            wheel.unlink()
        marker = list(cache.rglob("cuda.h"))
    if not marker:
        return None, f"{requirement} holds no cuda.h"
    return marker[0].parent, None


def find(release, build):
    """(folder, None), or (None, the reason why there is none)."""
    version, requirement = RELEASES[release]
    folder = installed(version)
    if folder:
        return folder, None
    return download(requirement, Path(build) / "nvidia-headers" / release)
