#!/usr/bin/env python3
"""The PTX of the programs' kernels is what clang 14 compiles their sources to."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))
from tap_report import Skip, run_all  # noqa: E402  pylint: disable=wrong-import-position

VERSION = "14"


def compiler():
    """clang of the version that made the texts; others choose other registers and orders."""
    for name in (f"clang-{VERSION}", "clang"):
        path = shutil.which(name)
        if not path:
            continue
        said = subprocess.run([path, "--version"], stdout=subprocess.PIPE, text=True, check=False).stdout
        targets = subprocess.run([path, "--print-targets"], stdout=subprocess.PIPE, text=True, check=False).stdout
        if re.search(rf"clang version {VERSION}\.", said) and "nvptx64" in targets:
            return path
    return None


def differences(clang, folder):
    done = subprocess.run(["sh", HERE / "make.sh", folder], env=dict(os.environ, CLANG=clang), check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0 or done.stdout:
        return done.stdout.splitlines() or [f"make.sh: status {done.returncode}"]
    made = {path.name: path.read_bytes() for path in Path(folder).iterdir()}
    kept = {path.name: path.read_bytes() for path in (HERE / "kernels").glob("*.ptx")}
    return [f"{name}: make.sh gives another text" for name in sorted(made.keys() | kept.keys())
            if made.get(name) != kept.get(name)]


def texts_are_those_of_the_sources():
    clang = compiler()
    if not clang:
        raise Skip(f"there is no clang {VERSION} with the NVPTX back end")
    with tempfile.TemporaryDirectory() as folder:
        return differences(clang, folder)


if __name__ == "__main__":
    sys.exit(run_all([("the texts are what the sources give", texts_are_those_of_the_sources)]))
