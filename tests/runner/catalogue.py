"""Which tests there are, what is built for them, and in which order they run."""
import os
import re
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
# Seconds for the programs of a folder on a machine with nothing else to do, where 60 are not enough.
LIMITS = {"abi": 300, "clients": 600, "install": 300, "lint": 300, "nvcc": 600, "package": 1200}
LIMIT = 60
SANITIZED_LIMIT = 240
# With --long.
MORE_TIME = 30
# Seconds of the tests that take longest, for a machine that has not run them yet.
SLOW = Path(__file__).with_name("slow.txt")
# They read what other tests of their folder leave in the build folder, and run again what has left nothing.
READERS = {"fault/test_every_operation.py"}
# Taken for a test of which no time is known.
UNKNOWN = 1.0

# The libraries and programs that a user has, with what they read.
PRODUCT = ("gpumem_command", "gpumem_manual", "gpumem", "gpumem_static", "vkgdr", "softgpu", "softgpu_shim",
           "softgpu_audit", "softgpu_wrappers", "gpumem_profiles", "runtime12", "runtime13")
# What the scripts of a folder run or read; of one script, where it needs more than the others. A program of C
# tests needs its own folder's program, too.
TARGETS = {
    "abi": (*PRODUCT, "tests/conformance/run"),
    "cli": (*PRODUCT, "programs", "examples/all"),
    "clients": (*PRODUCT, "gpumem_python"),
    "conformance": (*PRODUCT, "vulkan_icd", "tests/conformance/run"),
    "coverage": (*PRODUCT, "tests/conformance/run"),
    "docs": (*PRODUCT, "examples/all", "api_tour", "cpp_page"),
    "docs/test_benchmarks.py": (*PRODUCT, "vulkan_icd", "bench/all"),
    "fault": (*PRODUCT, "vulkan_icd", "tests/fault/run"),
    "fuzz": (*PRODUCT, "tests/fuzz/all"),
    "install": PRODUCT,
    "install/test_lean_build.py": (*PRODUCT, "softgpu_static", "gpumem_base"),
    "lint": PRODUCT,
    "long": (*PRODUCT, "tests/conformance/run"),
    "mutate": (),
    "nvcc": PRODUCT,
    "package": PRODUCT,
    "parity": (*PRODUCT, "parity", "ptx_record", "tests/conformance/run"),
    "programs": (*PRODUCT, "programs"),
    "python": (*PRODUCT, "gpumem_python"),
    "runner": (*PRODUCT, "must_fail", "parity"),
    "runtime": PRODUCT,
    "unit": (*PRODUCT, "vulkan_icd"),
}


def folder_of(name):
    return name.partition("/")[0]


def discover(build, folders):
    """(name, command) of each test below tests/<folder>: those of built programs, and scripts as they are.

    They are found by their sources, so that one left over from a deleted source is not run. The C tests of a
    folder are one program, which is started once for each file."""
    tests = []
    for folder in folders:
        root = SOURCE / "tests" / folder
        for path in sorted(root.rglob("test_*")):
            relative = path.relative_to(SOURCE / "tests")
            if path.suffix == ".c":
                program = build / "tests" / relative.parent / "run"
                tests.append((str(relative.with_suffix("")), (str(program), path.stem)))
            elif path.suffix == ".py":
                tests.append((str(relative), (sys.executable, str(path))))
            elif path.suffix == ".sh":
                tests.append((str(relative), ("sh", str(path))))
    return tests


def targets_of(names):
    """What ninja builds for these tests: all, where a test's folder is not known here."""
    wanted = []
    for name in names:
        folder = folder_of(name)
        if folder not in TARGETS:
            return ["all"]
        wanted += TARGETS.get(name, TARGETS[folder])
        if not Path(name).suffix:
            wanted.append(f"tests/{Path(name).parent}/run")
    return list(dict.fromkeys(wanted))


def targets_known(build):
    """The names that a build folder has, once it is configured; None where that is not known. What cannot be built
    here, as a program in C++ without a compiler, is told of by the tests that lack it."""
    try:
        text = (build / "build.ninja").read_text()
    except OSError:
        return None
    return {name for names in re.findall(r"^build ([^:|]+)", text, re.M) for name in names.split()}


def limit_of(name, sanitize, long):
    limit = LIMITS.get(folder_of(name), LIMIT)
    if sanitize != "off":
        limit = max(limit, SANITIZED_LIMIT)
    return limit * (MORE_TIME if long else 1)


def environment_of(build, sanitize, long, driver="softgpu"):
    environment = dict(os.environ)
    environment.pop("GPUMEM_TEST_LONG", None)
    if long:
        environment["GPUMEM_TEST_LONG"] = "1"
    environment.update(
        CMOCKA_MESSAGE_OUTPUT="tap",
        GPUMEM_SOURCE_DIR=str(SOURCE),
        GPUMEM_BUILD_DIR=str(build),
        GPUMEM_SANITIZE=sanitize,
        GPUMEM_DRIVER=driver,
        LC_ALL="C.UTF-8",
    )
    environment.setdefault("ASAN_OPTIONS", "detect_stack_use_after_return=1:strict_string_checks=1")
    environment.setdefault("UBSAN_OPTIONS", "print_stacktrace=1")
    # Threads that run when the process ends are no leak here: a driver never joins its own, and
    # tests of exit leave some on purpose. Each process that ends would wait a second for reports of
    # such threads, and tests start thousands.
    environment.setdefault("TSAN_OPTIONS", "second_deadlock_stack=1:report_thread_leaks=0:atexit_sleep_ms=50")
    return environment


def fallback_times():
    rows = (line.split() for line in SLOW.read_text().splitlines())
    return {name: float(seconds) for seconds, name in rows}


def longest_first(tests, measured):
    """A long test that starts last would run alone. Readers of what others leave come last all the same.
    `measured`: seconds by build and name, of an earlier run."""
    fallback = fallback_times()

    def seconds(test):
        known = measured.get(test.where, {}).get(test.name) or measured.get("release", {}).get(test.name)
        return known[0] if known else fallback.get(test.name, UNKNOWN)

    return sorted(tests, key=lambda test: (test.name not in READERS, seconds(test)), reverse=True)
