#!/usr/bin/env python3
"""The conformance programs that launch kernels, under other schedules and with other numbers of threads than those
with which they run by themselves; and with SOFTGPU_KERNELS=0, when launching is refused."""
import os
import re
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "harness"))
import c_test  # noqa: E402
from tap_report import Report  # noqa: E402

BUILD = Path(os.environ.get("GPUMEM_BUILD_DIR", Path(__file__).resolve().parents[2] / "build")).resolve()


def run(program, **variables):
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("SOFTGPU_", "CMOCKA_"))}
    environment.update(GPUMEM_DRIVER="softgpu", **variables)
    done = subprocess.run(c_test.command(BUILD, f"conformance/{program}"), env=environment, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    return done.returncode, done.stdout


def runs(program, **variables):
    status, output = run(program, **variables)
    return status == 0 and "[       OK ]" in output, output


def refuses():
    status, output = run("test_kernel_run", SOFTGPU_KERNELS="0")
    return status == 0 and len(re.findall(r"^skip: the driver runs no kernels", output, re.M)) == 5, output


LONG = os.environ.get("GPUMEM_TEST_LONG") == "1"
SANITIZED = os.environ.get("GPUMEM_SANITIZE", "off") != "off"
# Each when work is done late, in a random order, and with one worker. Sanitizers look at the paths through the code
# and at what threads share, of which the random order has the most: with them the others are for long runs.
PROGRAMS = [
    ("kernels compute, wait and fault in stream order", "test_kernel_run"),
    ("symbols of several PTX texts are linked", "test_kernel_link"),
    ("mbarriers, asynchronous copies and clusters work", "test_kernel_async"),
    ("kernels run in graphs", "test_graph_kernel_run"),
    ("every launch call works", "test_launch_calls"),
    ("cooperative launches work", "test_cooperative_run"),
    ("dependent kernels may begin early", "test_dependent_launch"),
    ("kernels may wait for each other", "test_kernel_waits"),
    ("lanes join where their ways meet", "test_kernel_joins"),
    ("kernels of Triton's compiler are correct", "triton/test_triton_kernels"),
    ("memory may be freed while kernels are queued", "test_kernel_freed_memory"),
    ("objects may be destroyed while a kernel runs", "test_kernel_destroyed_objects"),
    ("barriers count warps", "test_kernel_barriers"),
    ("kernel output appears at synchronization", "test_kernel_print"),
    ("kernels of fatbins run", "test_fatbin_text"),
    ("kernels allocate heap memory", "test_kernel_heap"),
    ("kernels set graph conditions", "test_kernel_conditions"),
    ("kernel faults are reported", "test_kernel_faults"),
    ("graphs with kernels are updated", "test_graph_update"),
    ("memory is freed after the kernel that uses it", "test_kernel_freed_later"),
    ("kernel faults are reported for every launch call", "test_kernel_fault_launches"),
    ("many threads launch kernels and destroy their objects", "test_kernel_stress"),
]
SETTINGS = [
    (", in a random order", {"SOFTGPU_SCHEDULE": "random", "SOFTGPU_SEED": "11"}),
    (", counted", {"SOFTGPU_PROFILE_KERNELS": "/dev/null"}),
    (", late", {"SOFTGPU_SCHEDULE": "late"}),
    (", with one worker", {"SOFTGPU_WORKERS": "1"}),
]
# An eighth of the multiprocessors, all of which have blocks that meet.
MORE = {"test_cooperative_run": {"SOFTGPU_PROFILE": "mig"}}
if SANITIZED and not LONG:
    del SETTINGS[1:]


def runs_with(program, variables):
    return lambda: runs(program, **MORE.get(program, {}), **variables)


TESTS = [
    *((title + how, runs_with(program, variables)) for title, program in PROGRAMS for how, variables in SETTINGS),
    ("kernels that wait for each other, all on one thread",
     lambda: runs("test_kernel_waits", SOFTGPU_WORKERS="1", SOFTGPU_KERNEL_WORKERS="1")),
    ("blocks that wait for earlier ones, with one thread for a kernel", lambda: runs("test_kernel_blocks", SOFTGPU_KERNEL_WORKERS="1")),
    ("the same with five threads for a kernel", lambda: runs("test_kernel_blocks", SOFTGPU_KERNEL_WORKERS="5")),
    *((f"what Triton's compiler makes, on profile {profile}",
       lambda profile=profile: runs("triton/test_triton_kernels", SOFTGPU_PROFILE=profile))
      for profile in ("a100", "rtx5090", "h100")),
    *((f"{title} takes PTX", lambda more=more: runs("test_ptx_version", **more)) for title, more in (
        ("a newer driver", {"SOFTGPU_DRIVER_VERSION": "13.7"}), ("a driver like the recorded one", {"SOFTGPU_PTX": "driver"}),
        ("a newer driver, as it does,", {"SOFTGPU_PTX": "driver", "SOFTGPU_DRIVER_VERSION": "13.3"}))),
    ("with SOFTGPU_KERNELS=0 launching is refused", refuses),
]


def main():
    report = Report()
    for title, test in TESTS:
        good, output = test()
        report.expect(good, title, "\n".join(output.splitlines()[-40:]))
    return report.end()


if __name__ == "__main__":
    sys.exit(main())
