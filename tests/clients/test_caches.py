#!/usr/bin/env python3
"""Clients' caches on disk: what is compiled for hardware and for softgpu never meets, in either order."""
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import client
import environment

sys.path.insert(0, str(environment.HERE.parent / "harness"))
from tap_report import run_all  # noqa: E402  pylint: disable=wrong-import-position

HERE = environment.HERE
GPUMEM = client.BUILD / "bin" / "gpumem"


def make_standin(folder):
    """A libcuda.so.1 in the folder, over softgpu's library."""
    softgpu = client.BUILD.resolve() / "lib" / "gpumem" / "softgpu"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", folder / "libcuda.so.1", HERE / "standin" / "standin.c",
                    "-Wl,--no-as-needed", f"-L{softgpu}", "-lsoftgpu", f"-Wl,-rpath,{softgpu}"], check=True)


def make_sharing(folder):
    """A gpumem whose programs see the folders that the user has set."""
    path = folder / "gpumem"
    path.write_text("#!/bin/sh\n# run --softgpu --memory SIZE -- COMMAND\nshift 5\n"
                    f'exec {GPUMEM} run --softgpu --memory 256M -- env NUMBA_CACHE_DIR="$NUMBA_CACHE_DIR" "$@"\n')
    path.chmod(0o755)
    return path


def in_turn(gpumem, python, folder):
    done = subprocess.run([sys.executable, str(HERE / "caches_in_turn.py"), str(gpumem), str(python), str(folder)],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    for line in done.stdout.splitlines():
        print(f"# {line.removeprefix('# ')}")
    return [] if done.returncode == 0 and "SKIP" not in done.stdout else [f"status {done.returncode}"]


def main():
    if not shutil.which("cc"):
        client.skip("there is no C compiler")
    pythons = {}
    for name in ("numba", "pycuda"):
        try:
            pythons[name] = environment.python_of(name, client.BUILD)
        except environment.Unavailable as why:
            client.skip(f"no environment {name}: {str(why).strip().splitlines()[-1]}")
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as name:
        folder = Path(name)
        make_standin(folder)
        return run_all([
            ("numba-cuda and cuda.core keep separate caches for softgpu",
             lambda: in_turn(GPUMEM, pythons["numba"], folder)),
            ("pycuda keeps a separate cache for softgpu", lambda: in_turn(GPUMEM, pythons["pycuda"], folder)),
            ("a shared cache is detected",
             lambda: [] if in_turn(make_sharing(folder), pythons["numba"], folder) else ["it is not"])])


if __name__ == "__main__":
    sys.exit(main())
