#!/usr/bin/env python3
"""Programs of CUDA's runtime, compiled by nvcc and run on softgpu with our libcudart, print what cu/golden has. Each is
linked with both of ours. These are the first few; tests/nvcc has all.

`test_cuda_programs.py --write [NAME...]` writes cu/golden anew."""
import sys
import tempfile
from pathlib import Path

import cuda_programs
from cuda_programs import FIRST, Compiler, programs

sys.path.insert(0, str(cuda_programs.HERE.parent / "harness"))
from tap_report import Report  # noqa: E402  pylint: disable=wrong-import-position


def write(folder, names):
    compiler = Compiler()
    chosen = programs(names or None)
    compiler.compile_all(chosen)
    cuda_programs.CU.joinpath("golden").mkdir(exist_ok=True)
    for program in chosen:
        done = cuda_programs.run(program, compiler.link(program, program.runtimes[0], folder))
        print(program.name, done.returncode, done.stderr)
        program.golden.write_text(done.stdout)


def main():
    with tempfile.TemporaryDirectory() as temporary:
        if "--write" in sys.argv:
            return write(Path(temporary), sys.argv[2:])
        report = Report()
        why = cuda_programs.missing()
        if why:
            report.skip("programs of CUDA's runtime", why)
            return report.end()
        compiler = Compiler()
        chosen = programs(FIRST)
        compiler.compile_all(chosen)
        for program in chosen:
            for abi in program.runtimes:
                report.run(f"{program.name} with libcudart.so.{abi}",
                           lambda program=program, abi=abi: cuda_programs.prints_golden(
                               program, compiler.link(program, abi, temporary)))
        return report.end()


if __name__ == "__main__":
    sys.exit(main())
