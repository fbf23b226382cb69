#!/usr/bin/env python3
"""Programs of CUDA's runtime, compiled by nvcc and run on softgpu with our libcudart, print what cu/golden has, which an
H200 prints too with NVIDIA's. Each is linked with both of ours.

`test_cuda_programs.py --write` writes cu/golden anew."""
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))
from tap_report import Report  # noqa: E402  pylint: disable=wrong-import-position

BUILD = Path(os.environ.get("GPUMEM_BUILD_DIR", HERE.parents[1] / "build")).resolve()
SANITIZED = os.environ.get("GPUMEM_SANITIZE", "off") != "off"
CU = HERE / "cu"
TARGET = ("-gencode", "arch=compute_80,code=compute_80")
# The linked image has machine code alone there, as where nvcc is told no architecture of PTX.
RELOCATABLE = ("-rdc=true", "-gencode", "arch=compute_90,code=[sm_90,compute_90]")


def nvcc():
    found = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
    return Path(found).resolve() if found else None


def programs():
    """Name and sources; those of a folder are one program of relocatable code."""
    files = {path.stem: [path] for path in CU.glob("*.cu")}
    folders = {path.parent.name: sorted(path.parent.glob("*.cu")) for path in CU.glob("*/*.cu")}
    return sorted((files | folders).items())


def must(command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")


def compile_program(folder, name, sources):
    """Objects by nvcc, those of device code that was linked among them, and what links them further."""
    flags = ["--cudart=shared", *(RELOCATABLE if len(sources) > 1 else TARGET)]
    objects = [folder / f"{name}.{source.stem}.o" for source in sources]
    for source, result in zip(sources, objects):
        must([nvcc(), *flags, "-c", source, "-o", result])
    if len(sources) == 1:
        return objects
    linked = folder / f"{name}.link.o"
    must([nvcc(), *flags, "-dlink", *objects, "-o", linked])
    return [*objects, linked, "-L", nvcc().parents[1] / "lib64", "-lcudadevrt"]


def link_program(objects, name, folder, abi):
    """With our library of that soname, by its path."""
    program, library = folder / f"{name}.{abi}", BUILD / f"lib/gpumem/runtime/{abi}"
    must(["c++", *objects, f"{library}/libcudart.so.{abi}", f"-Wl,-rpath,{library}", "-o", program])
    return program


def run(program, **variables):
    environment = {key: value for key, value in os.environ.items() if not key.startswith("SOFTGPU_")}
    environment.update(LD_LIBRARY_PATH=str(BUILD / "lib/gpumem/softgpu"), **variables)
    return subprocess.run([str(program)], env=environment, check=False, capture_output=True, text=True, errors="replace")


def prints_golden(folder, name, objects, abi):
    done = run(link_program(objects, name, folder, abi))
    path = CU / "golden" / f"{name}.txt"
    wanted = path.read_text() if path.exists() else "(nothing: there is no such file)\n"
    if done.returncode == 0 and done.stdout == wanted:
        return []
    got, want = done.stdout.splitlines(), wanted.splitlines()
    return [f"status {done.returncode}", *(f"  has   {line}" for line in got if line not in want),
            *(f"  wants {line}" for line in want if line not in got), *done.stderr.splitlines()[-20:]]


def write(folder):
    (CU / "golden").mkdir(exist_ok=True)
    for name, sources in programs():
        done = run(link_program(compile_program(folder, name, sources), name, folder, "13"))
        print(name, done.returncode, done.stderr)
        (CU / "golden" / f"{name}.txt").write_text(done.stdout)


def main():
    report = Report()
    if nvcc() is None or SANITIZED:
        report.skip("programs of CUDA's runtime", "nvcc is not here" if nvcc() is None else "a sanitizer's library needs its program")
        return report.end()
    with tempfile.TemporaryDirectory() as temporary:
        if "--write" in sys.argv:
            return write(Path(temporary))
        for name, sources in programs():
            objects = compile_program(Path(temporary), name, sources)
            for abi in ("13", "12"):
                report.run(f"{name} with libcudart.so.{abi}", prints_golden, Path(temporary), name, objects, abi)
    return report.end()


if __name__ == "__main__":
    sys.exit(main())
