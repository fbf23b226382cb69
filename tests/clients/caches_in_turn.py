#!/usr/bin/env python3
"""Runs programs/caches.py on hardware, softgpu, hardware and softgpu again, with the same folders for caches.

caches_in_turn.py GPUMEM PYTHON [DRIVER_FOLDER]

Each run must compute what is right. Those on hardware find their own machine code, and those on softgpu their own
texts: nothing is compiled in the second round. DRIVER_FOLDER has a libcuda.so.1 that stands in for hardware's; it
records the images (standin/standin.c), and computes nothing.
"""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROGRAM = HERE / "programs" / "caches.py"
sys.path.insert(0, str(HERE.parent / "harness"))
from tap_report import Report  # noqa: E402  pylint: disable=wrong-import-position


def environment(folder, **more):
    """Kernels run under softgpu. numba gets a folder that the user has set; others stand where they stand."""
    dropped = ("SOFTGPU_", "LD_AUDIT", "PYCUDA_", "CUPY_", "NUMBA_", "TRITON_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    return dict(kept, HOME=str(folder), XDG_CACHE_HOME=str(folder / "cache"), NUMBA_CACHE_DIR=str(folder / "numba"),
                **more)


def run(words, env):
    done = subprocess.run([str(word) for word in words], env=env, check=False, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(str(word) for word in words)} ended with status {done.returncode}:\n{done.stdout}")
    return done.stdout.splitlines()


def on_hardware(python, folder, driver, number):
    if not driver:
        return run([python, "-W", "ignore", PROGRAM], environment(folder)), None
    record = folder / f"images-{number}"
    lines = run([python, "-W", "ignore", PROGRAM, "unchecked"],
                environment(folder, LD_LIBRARY_PATH=str(driver), STANDIN_RECORD=str(record)))
    return lines, sorted(record.read_text().splitlines())


def files_of(folder):
    """All files of caches, with when they were written; not those of locks and of what was used when."""
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*")
            if path.is_file() and not path.is_symlink() and path.stat().st_size and "tmp" not in path.relative_to(folder).parts}


def texts_and_machine_code(files):
    """Which of the files hold machine code for a GPU, and which PTX, or machine code that holds its PTX."""
    kinds = {}
    for path in files:
        data = path.read_bytes()
        if b".softgpu." in data or (b"\x7fELF" not in data and b".visible .entry" in data):
            kinds[path] = "text"
        elif b"\x7fELF" in data:
            kinds[path] = "machine code"
    return kinds


def check(gpumem, python, driver, folder):
    softgpu = [gpumem, "run", "--softgpu", "--memory", "256M", "--", python, "-W", "ignore", PROGRAM]
    ran, images = on_hardware(python, folder, driver, 1)
    if not ran:
        return None
    after_hardware = files_of(folder)
    if run(softgpu, environment(folder)) != ran:
        return "other kernels ran on softgpu"
    after_softgpu = files_of(folder)
    changed = [str(path) for path, when in after_hardware.items() if after_softgpu.get(path) != when]
    if changed:
        return f"softgpu changed what hardware cached: {changed}"
    kinds = texts_and_machine_code(after_softgpu)
    wrong = [str(path) for path, kind in kinds.items() if (kind == "text") == (path in after_hardware)]
    if wrong or len(set(kinds.values())) != 2:
        return f"machine code and texts are not apart: {wrong or kinds}"
    if on_hardware(python, folder, driver, 2) != (ran, images):
        return "hardware loaded other images in its second run"
    if images is not None and any(not line.startswith("machine ") for line in images):
        return f"hardware was given texts: {images}"
    if run(softgpu, environment(folder)) != ran:
        return "other kernels ran on softgpu in its second run"
    if {path: when for path, when in files_of(folder).items() if path in kinds} != {
            path: when for path, when in after_softgpu.items() if path in kinds}:
        return "something was compiled again"
    print(f"# {', '.join(ran)}; {sum(kind == 'text' for kind in kinds.values())} texts and "
          f"{sum(kind != 'text' for kind in kinds.values())} images of machine code are apart")
    return ""


def main():
    gpumem, python = sys.argv[1:3]
    driver = sys.argv[3] if len(sys.argv) > 3 else None
    with tempfile.TemporaryDirectory() as folder:
        wrong = check(gpumem, python, driver, Path(folder))
    report = Report()
    if wrong is None:
        report.skip("caches in turn", f"{python} has none of numba-cuda, cuda.core and pycuda")
    else:
        report.result("caches in turn", wrong)
    return report.end()


if __name__ == "__main__":
    sys.exit(main())
