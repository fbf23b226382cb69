"""Virtual environments with client programs' packages, made once in the build folder.

environment.py BUILD makes all of them.

An environment is complete when its stamp holds the text of its requirements; a changed list, or an
installation that was cut off, makes it anew.
"""
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
NAMES = ("cccl", "cuda12", "cuda13", "llvm", "numba", "numpy", "pycuda", "science", "today")


class Unavailable(Exception):
    """The package index cannot be reached, or has no package for this Python."""


def run(*command, **more):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False, **more)
    if done.returncode != 0:
        tail = "\n".join(done.stdout.splitlines()[-12:])
        raise Unavailable(f"{' '.join(str(word) for word in command[:6])}: {tail}")
    return done.stdout


def pip(folder, *arguments, **more):
    return run(folder / "bin" / "python", "-m", "pip", "--disable-pip-version-check", "--quiet",
               *arguments, **more)


def build_pycuda(folder, driver):
    """pycuda has no wheels: its source is built against the softgpu library in `driver`."""
    work = folder / "source"
    work.mkdir(exist_ok=True)
    pip(folder, "download", "--no-deps", "--no-build-isolation", "--no-binary", "pycuda",
        "--dest", work, "pycuda")
    archive = next(work.glob("pycuda-*.tar.gz"))
    run("tar", "-xzf", archive, "-C", work)
    source = next(path for path in work.glob("pycuda-*") if path.is_dir())
    headers = next((folder / "lib").glob("python*/site-packages/nvidia/*/include/cuda.h"))
    settings = {"BOOST_INC_DIR": [], "BOOST_LIB_DIR": [], "USE_SHIPPED_BOOST": True,
                "BOOST_PYTHON_LIBNAME": ["boost_python"], "BOOST_THREAD_LIBNAME": ["boost_thread"],
                "CUDA_TRACE": False, "CUDA_ROOT": str(headers.parents[1]), "CUDA_ENABLE_GL": False,
                "CUDA_ENABLE_CURAND": False, "CUDADRV_LIB_DIR": [str(driver)],
                "CUDADRV_LIBNAME": ["cuda"], "CXXFLAGS": ["-O0"], "LDFLAGS": []}
    (source / "siteconf.py").write_text("".join(f"{key} = {value!r}\n"
                                                for key, value in settings.items()))
    pip(folder, "install", "--no-build-isolation", "--no-deps", source)
    shutil.rmtree(work)


def stamp_of(name):
    text = (HERE / f"requirements-{name}.txt").read_text() + sys.version
    return hashlib.sha256(text.encode()).hexdigest()


def python_of(name, build):
    """The environment's interpreter, made if it must be. Raises Unavailable."""
    folder = Path(build) / "clients" / name
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(folder.parent / f"{name}.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return make(name, folder, build)


def make(name, folder, build):
    stamp = folder / "complete"
    python = folder / "bin" / "python"
    if stamp.exists() and stamp.read_text() == stamp_of(name):
        return python
    shutil.rmtree(folder, ignore_errors=True)
    venv.create(folder, with_pip=True, symlinks=True)
    # Packages are read by this machine alone: byte code made when first needed costs less.
    pip(folder, "install", "--no-compile", "-r", HERE / f"requirements-{name}.txt",
        env=dict(os.environ, PIP_RETRIES="2"))
    if name == "pycuda":
        build_pycuda(folder, Path(build).resolve() / "lib" / "gpumem" / "softgpu")
    stamp.write_text(stamp_of(name))
    return python


def main():
    for name in NAMES:
        try:
            print(python_of(name, sys.argv[1]))
        except Unavailable as why:
            print(f"no environment {name}: {why}")


if __name__ == "__main__":
    main()
