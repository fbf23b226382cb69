#!/usr/bin/env python3
"""Checkers say nothing of programs that are right: those of tests/programs print what they print without, and
--check memory,init has nothing to report."""
import os
import subprocess
from pathlib import Path

import harness
from checked import SILENT
from harness import expect

PROGRAMS = Path(__file__).resolve().parents[1] / "programs"
WORKERS = 2
# A launch that is refused, as it should be.
REFUSED = {"large_shared": ("(memory, api-error): cuLaunchKernel answered CUDA_ERROR_INVALID_VALUE",
                            SILENT.replace("0 warnings", "1 warnings"))}


def run(name, **variables):
    environment = {key: value for key, value in os.environ.items() if not key.startswith("SOFTGPU_")}
    environment.update(GPUMEM_DRIVER="softgpu", SOFTGPU_CHECK="memory,init", **variables)
    return subprocess.Popen([harness.BUILD / "tests/programs" / name], env=environment, text=True, errors="replace",
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)


def problem_of(name, process):
    out, text = process.communicate()
    golden = (PROGRAMS / "golden" / f"{name}.txt").read_text()
    warning, end = REFUSED.get(name, ("", SILENT))
    expected = text == SILENT if not warning else warning in text and text.endswith(end)
    if process.returncode == 0 and out == golden and expected:
        return ""
    return f"{name}: status {process.returncode}\n{text[-3000:]}{'' if out == golden else out[-1000:]}"


def each_is_silent(**variables):
    names = sorted(path.stem for path in PROGRAMS.glob("*.c"))
    expect(len(names) > 30, f"{len(names)} programs")
    problems = []
    for first in range(0, len(names), WORKERS):
        some = [(name, run(name, **variables)) for name in names[first:first + WORKERS]]
        problems += [problem_of(name, process) for name, process in some]
    expect(not any(problems), "\n".join(filter(None, problems)))


def test_correct_programs_have_no_findings(_folder):
    each_is_silent()


def test_correct_programs_have_no_findings_in_random_order(_folder):
    each_is_silent(SOFTGPU_SCHEDULE="random", SOFTGPU_SEED="5")


harness.main_unless_sanitized([test_correct_programs_have_no_findings, test_correct_programs_have_no_findings_in_random_order])
