#!/usr/bin/env python3
"""gpumem/cpp/cuda_mr.hpp with the newest CCCL: compiled by g++, without CUDA's compiler, and run on softgpu."""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import client
import environment

SOURCE = environment.HERE.parents[1]


def main():
    try:
        python = environment.python_of("cccl", client.BUILD)
    except environment.Unavailable as why:
        client.skip(f"no environment cccl: {(str(why).strip().splitlines() or [''])[-1]}")
    theirs = next((python.parents[1] / "lib").glob("python*/site-packages/nvidia/*/include"))
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "cccl"
        subprocess.run(["g++", "-std=c++20", "-Wall", "-Wextra", "-Wconversion", "-Werror",
                        "-I", SOURCE / "include", "-isystem", theirs / "cccl", "-isystem", theirs,
                        environment.HERE / "programs/cccl.cpp", "-o", program, f"-L{client.BUILD}/lib", "-lgpumem",
                        f"-Wl,-rpath,{client.BUILD}/lib", f"-L{theirs.parent}/lib", "-l:libcudart.so.13",
                        f"-Wl,-rpath,{theirs.parent}/lib"], check=True)
        done = subprocess.run([client.BUILD / "bin/gpumem", "run", "--softgpu", "--memory", "1G", "--", program],
                              env=dict(os.environ), check=False)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
