#!/usr/bin/env python3
"""Our libcudart, over softgpu, answers some 3,000 questions with wrong arguments as NVIDIA's did on an H200: line by line,
with the last error after each, and without a crash. The program is compiled by nvcc, whose headers it needs.

With GPUMEM_TEST_LONG=1 all pairs of wrong arguments, too, each in a process of its own, for crashes alone."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "runtime"), str(HERE.parent / "harness")]
import compare as answers  # noqa: E402  pylint: disable=wrong-import-position
from questions import read_answers  # noqa: E402  pylint: disable=wrong-import-position
from tap_report import Report  # noqa: E402  pylint: disable=wrong-import-position

BUILD = Path(os.environ.get("GPUMEM_BUILD_DIR", HERE.parents[1] / "build")).resolve()
MEMORY = 150109880320  # of an H200


def nvcc_of_13():
    """nvcc's path, or why there is none that will do: the questions have the parameters of 13's functions."""
    found = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
    if os.environ.get("GPUMEM_SANITIZE", "off") != "off":
        return None, "a sanitizer's library needs its program"
    if not found:
        return None, "nvcc is not here"
    version = re.search(r"release (\d+)\.", subprocess.run([found, "--version"], capture_output=True, text=True, check=False).stdout)
    return (found, "") if version and version[1] == "13" else (None, "nvcc is not one of CUDA 13")


def compiled(nvcc, folder, *chosen):
    """The program of what questions.py writes when it is given `chosen`."""
    source, program = folder / "questions.cu", folder / "questions.o"
    subprocess.run([sys.executable, HERE / "runtime/questions.py", source, *chosen], check=True, stdout=subprocess.DEVNULL)
    done = subprocess.run([nvcc, "--cudart=shared", "-gencode", "arch=compute_80,code=compute_80", "-Xcompiler", "-w", "-c",
                           source, "-o", program], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise AssertionError(f"nvcc: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return program


def ask(objects, folder, abi, arguments):
    """The file with what libcudart.so.ABI of ours answers."""
    library = BUILD / f"lib/gpumem/runtime/{abi}"
    program, output = folder / f"questions.{abi}", folder / f"answers.{abi}"
    subprocess.run(["c++", objects, f"{library}/libcudart.so.{abi}", f"-Wl,-rpath,{library}", "-o", program], check=True)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SOFTGPU_")}
    environment.update(LD_LIBRARY_PATH=str(BUILD / "lib/gpumem/softgpu"), SOFTGPU_PROFILE="h200", SOFTGPU_MEMORY=str(MEMORY),
                       SOFTGPU_LOG="off", SOFTGPU_PTX="driver", GPUMEM_RUNTIME_LOG="off")
    started = time.monotonic()
    with open(output, "w", encoding="utf-8") as file:
        subprocess.run([program, "t60", *arguments], env=environment, stdout=file, check=True, cwd=folder)
    print(f"# {time.monotonic() - started:.1f} s")
    return output


def agrees(recording, objects, folder, abi):
    recorded = read_answers(recording)
    return answers.problems_of(recorded, read_answers(ask(objects, folder, abi, answers.arguments(recorded, abi))), abi)


def none_crashes(nvcc, folder):
    objects = compiled(nvcc, folder, "--all", Path(nvcc).resolve().parents[1] / "include/cuda_runtime_api.h")
    most = 50000  # more than there are: each question ends its process
    got = read_answers(ask(objects, folder, "13", map(str, range(most))))
    print(f"# {len(got)} questions")
    return [f"{question}: {answer}" for question, answer, _ in got if answer.startswith("signal")] + \
        ([] if 10000 < len(got) < most else [f"{len(got)} questions were asked"])


def planted(recording):
    """A difference, a crash and an answer too few are seen."""
    recorded = read_answers(recording)
    same = [[question, answers.REFUSED if answer.startswith("signal") else answer, lost] for question, answer, lost in recorded]
    at = next(number for number, (_, answer, _) in enumerate(recorded) if answer == answers.REFUSED)
    found = answers.problems_of(recorded, same)
    for changed, wanted in ((["0, peek 0, last 0, then 0"], "no reason: "), (["1, peek 0, last 0, then 0"], "no reason: "),
                            (["signal 11"], "crashed: "), ([], "no reason: ")):
        other = same[:at] + [[recorded[at][0], answer, False] for answer in changed] + same[at + 1:]
        if not any(text.startswith(wanted) for text in answers.problems_of(recorded, other)):
            found.append(f"not seen: {changed}")
    return found


def main():
    report = Report()
    nvcc, reason = nvcc_of_13()
    for recording in sorted((HERE / "runtime/recordings").glob("*.txt.xz")):
        report.run("differences from the recording are seen", planted, recording)
        if nvcc is None:
            report.skip("a CUDA runtime's answers", reason)
            continue
        with tempfile.TemporaryDirectory() as temporary:
            objects = compiled(nvcc, Path(temporary), recording)
            for abi in ("13", "12"):
                report.run(f"libcudart.so.{abi} answers as NVIDIA's did", agrees, recording, objects, Path(temporary), abi)
    if nvcc and os.environ.get("GPUMEM_TEST_LONG") == "1":
        with tempfile.TemporaryDirectory() as temporary:
            report.run("no pair of wrong arguments crashes", none_crashes, nvcc, Path(temporary))
    return report.end()


if __name__ == "__main__":
    sys.exit(main())
