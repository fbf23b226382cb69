"""Programs in Python as docs/cuda-programs.md and docs/ci.md show them: each is written to files and started by the
page's own command, below the `gpumem run` that this program is started by."""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tap import expect, main

SOURCE = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(SOURCE / "tests/docs"))
import shown  # noqa: E402  pylint: disable=wrong-import-position


def run(folder, *command, **environment):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False,
                          env=dict(os.environ, PYTHONDONTWRITEBYTECODE="1", **environment))
    return done.returncode, done.stdout + done.stderr


def write(folder, parts):
    for name, text in shown.files(parts).items():
        (folder / name).write_text(text)


def kernel(title):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        parts = shown.sections("cuda-programs.md")[title]
        write(folder, parts)
        command = next(line for line, _ in shown.commands(parts) if "gpumem run" in line).partition(" -- ")[2].split()
        status, said = run(folder, sys.executable, *command[1:])
        expect(status == 0 and "y[999] = 1999" in said, said)


def test_the_program_of_cuda_core_prints_its_result():
    kernel("Python: cuda.core with NVRTC")


def test_the_program_of_numba_prints_its_result():
    kernel("Python: numba-cuda")


def suite(folder, **environment):
    write(folder, shown.sections("ci.md")["pytest, ctest, make"])
    return run(folder, sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", **environment)


def test_the_fixture_gives_a_device():
    with tempfile.TemporaryDirectory() as name:
        status, said = suite(Path(name))
        expect(status == 0 and "1 passed" in said, said)


def test_the_fixture_skips_with_a_reason_without_a_device():
    with tempfile.TemporaryDirectory() as name:
        status, said = suite(Path(name), CUDA_VISIBLE_DEVICES="")
        expect(status == 0 and "1 skipped" in said and "gpumem run --softgpu" in said, said)


def test_numba_frees_all_memory_with_the_setting_of_ci_md_alone():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder, shown.sections("cuda-programs.md")["Python: numba-cuda"])
        command = next(line for line, _ in shown.commands(shown.sections("ci.md")["Which leaks count"]))
        key, _, value = command.split()[0].partition("=")
        expect("--fail-on leaks:memory" in command, command)
        for setting, wanted in (({}, 9), ({key: value}, 0)):
            status, said = run(folder, sys.executable, "saxpy_numba.py", SOFTGPU_FAIL_ON="leaks:memory", **setting)
            expect(status == wanted, f"{setting}: {status}, {said}")


def test_the_suite_of_softgpu_md_passes_with_and_without_its_fault():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder, shown.sections("softgpu.md")["Using it"])
        pytest = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k")
        status, said = run(folder, *pytest, "not without_memory")
        expect(status == 0 and "1 passed" in said, said)
        status, said = run(folder, *pytest, "without_memory", SOFTGPU_FAULT="cuMemAlloc:1:CUDA_ERROR_OUT_OF_MEMORY:before")
        expect(status == 0 and "1 passed" in said, said)


main(globals())
