#!/usr/bin/env python3
"""The programs with kernels are right, and so no checker finds anything in them, whatever the schedule: look-back
scans, reductions by the last block, grids and clusters that meet, double buffers, warps' tiles. And they still print
what they print without a checker."""
import json
import os
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import test_programs  # noqa: E402  pylint: disable=wrong-import-position
from test_programs import run_all  # noqa: E402  pylint: disable=wrong-import-position

SCHEDULES = [("", {}), (", late", {"SOFTGPU_SCHEDULE": "late"}),
             (", in random order", {"SOFTGPU_SCHEDULE": "random", "SOFTGPU_SEED": "7"})]
# A launch that is refused, as it should be.
REFUSED = {"large_shared": "cuLaunchKernel answered CUDA_ERROR_INVALID_VALUE"}
SANITIZED = os.environ.get("GPUMEM_SANITIZE", "off") != "off"


def problems_of(name, variables):
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report"
        done = test_programs.run(name, {"SOFTGPU_CHECK": "memory,race,init,sync", "SOFTGPU_CHECK_FORMAT": "json",
                                        "SOFTGPU_CHECK_OUTPUT": str(report), **variables})
        lines = [json.loads(line) for line in report.read_text().splitlines()] if report.exists() else []
    if done.returncode != 0:
        return [f"{name}: status {done.returncode}", *done.stdout.splitlines()[-5:], *done.stderr.splitlines()[-20:]]
    if done.stdout != test_programs.golden_of(name).read_text():
        return [f"{name} prints something else:", *done.stdout.splitlines()[:20]]
    if not lines:
        return [f"{name}: there is no report"]
    found = [json.dumps(line) for line in lines[:-1] if line.get("what") != REFUSED.get(name)]
    counts = [lines[-1][level] for level in ("errors", "warnings", "info")]
    if found or counts != [0, int(name in REFUSED), 0]:
        return [f"{name}: found {json.dumps(lines[-1])}", *found[:6]]
    return []


def all_are_silent(variables):
    return [problem for name in test_programs.names() for problem in problems_of(name, variables)]


def main():
    if os.environ.get("GPUMEM_SANITIZE") == "thread" and os.environ.get("GPUMEM_TEST_LONG") != "1":
        print("1..0 # SKIP checked kernels run with one worker; with --long under ThreadSanitizer, too")
        return 0
    schedules = SCHEDULES[:1] if SANITIZED else SCHEDULES
    return run_all((f"correct programs have no findings{how}", lambda variables=variables: all_are_silent(variables))
                   for how, variables in schedules)


if __name__ == "__main__":
    sys.exit(main())
