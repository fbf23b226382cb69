#!/usr/bin/env python3
"""The Debian package and the wheel: made by ./dev package, laid out anywhere, they run programs."""
import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]

NO_WHEEL = 77  # of make.sh: without a network there is nothing to pack a wheel with

# A program that knows nothing of gpumem; its child must get the same driver.
PROGRAM = """
import ctypes, subprocess, sys
cuda = ctypes.CDLL("libcuda.so.1")
name = ctypes.create_string_buffer(64)
assert cuda.cuInit(0) == 0 and cuda.cuDeviceGetName(name, 64, 0) == 0
print(name.value.decode(), flush=True)
if "child" not in sys.argv:
    subprocess.run([sys.executable, __file__, "child"], check=True)
"""


def run(*command, **more):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False, **more)
    assert done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout}"
    return done.stdout


def clean_environment():
    """Nothing that this machine's shell sets may help to find the libraries."""
    return {"PATH": "/usr/bin:/bin", "HOME": os.environ.get("HOME", "/"), "LANG": "C.UTF-8"}


def try_command(command, folder):
    program = folder / "program.py"
    program.write_text(PROGRAM)
    for python in sys.executable, "/usr/bin/python3":
        if Path(python).exists():
            said = run(command, "run", "--softgpu", "--memory", "64M", "--", python, program,
                       env=clean_environment(), cwd="/")
            assert said.splitlines() == ["NVIDIA H200", "NVIDIA H200"], said
    functions = run(command, "driver", "--driver", "softgpu", env=clean_environment(), cwd="/")
    assert "cuMemAlloc_v2" in functions, functions


def check_needed(library):
    """Nothing but the C library, and one another."""
    said = run("objdump", "-p", library)
    needed = {line.split()[1] for line in said.splitlines() if line.split()[:1] == ["NEEDED"]}
    foreign = needed - {"libc.so.6", "ld-linux-x86-64.so.2", "libsoftgpu.so.0", "libgpumem.so.0"}
    assert needed and not foreign, f"{library} needs {foreign or 'nothing: was it read?'}"


def test_deb(dist, folder):
    package = next(dist.glob("gpumem_*.deb"))
    run("dpkg-deb", "-x", package, folder)
    for path in folder.rglob("libcuda.so*"):
        assert path.parent.name == "softgpu", f"{path} is on the loader's default path"
    depends = run("dpkg-deb", "-f", package, "Depends")
    assert {name.split()[0] for name in depends.split(",")} == {"libc6"}, depends
    try_command(folder / "usr/bin/gpumem", folder)
    source = folder / "use.c"
    source.write_text('#include <gpumem/gpumem.h>\n'
                      'int main(void) { return !(gpumem_version() > 0); }\n')
    run("cc", source, "-o", folder / "use", f"-I{folder}/usr/include", f"-L{folder}/usr/lib",
        "-lgpumem", f"-Wl,-rpath,{folder}/usr/lib")
    run(folder / "use")


def test_wheel(dist, folder):
    venv.create(folder / "venv", with_pip=True, symlinks=True)
    pip = [folder / "venv/bin/python", "-m", "pip", "--disable-pip-version-check", "--quiet"]
    run(*pip, "install", "--no-index", next(dist.glob("gpumem-*.whl")))
    command = folder / "venv/bin/gpumem"
    try_command(command, folder)
    for library in (folder / "venv/lib").glob("**/lib*.so*"):
        if "site-packages" not in library.parts:
            check_needed(library)
    run(*pip, "uninstall", "--yes", "gpumem")
    # pip leaves empty folders.
    left = [str(path) for path in (folder / "venv").rglob("*gpu*") if path.is_file()]
    assert not command.exists() and not left, left


def main():
    with tempfile.TemporaryDirectory() as folder:
        dist = Path(folder) / "dist"
        made = subprocess.run([SOURCE / "packaging/make.sh", dist], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False)
        assert made.returncode in (0, NO_WHEEL), made.stdout
        tests = [(name, test) for name, test in globals().items() if name.startswith("test_")]
        print(f"1..{len(tests)}")
        failed = 0
        for number, (name, test) in enumerate(tests, 1):
            if test is test_wheel and made.returncode == NO_WHEEL:
                print(f"ok {number} - {name} # SKIP {made.stdout.strip().splitlines()[-1]}")
                continue
            work = Path(folder) / name
            work.mkdir()
            try:
                test(dist, work)
                print(f"ok {number} - {name}")
            except AssertionError as error:
                failed = 1
                print("".join(f"# {line}\n" for line in str(error).splitlines()), end="")
                print(f"not ok {number} - {name}")
        sys.exit(failed)


if __name__ == "__main__":
    main()
