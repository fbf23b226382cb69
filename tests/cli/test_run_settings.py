#!/usr/bin/env python3
"""A wrong option never gives a green job: settings are checked before anything is started, a fault
that was never reached is told, and what a test runner captured is said again at the end."""
import os
import re
import subprocess
import sys

import harness
from harness import expect, expect_status

SOFTGPU = harness.BUILD / "lib" / "gpumem" / "softgpu"

# Calls the driver as often as it is told to, with standard error captured as pytest does it, and
# ends with success whatever is answered: a job of tests that are skipped.
PROGRAM = """
import ctypes, os, subprocess, sys, tempfile
words = sys.argv[1:]
saved, capture = os.dup(2), tempfile.TemporaryFile()
if "capture" in words:
    os.dup2(capture.fileno(), 2)
if "idle" not in words:
    cuda = ctypes.CDLL("libcuda.so.1")
    pointer, context = ctypes.c_uint64(), ctypes.c_void_p()
    print("init", cuda.cuInit(0))
    cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
    cuda.cuCtxSetCurrent(context)
    for word in words:
        if word.startswith("cuMemAlloc"):
            print(word, getattr(cuda, word)(ctypes.byref(pointer), ctypes.c_size_t(4096)))
    if "leak" not in words:
        cuda.cuMemFree_v2(pointer)
        cuda.cuDevicePrimaryCtxRelease_v2(0)
for word in words:
    if word.startswith("child="):
        done = subprocess.run([sys.executable, __file__, *word[6:].split(",")])
        print("child", done.returncode)
os.dup2(saved, 2)
sys.exit(5 if "fail" in words else 0)
"""


environment = harness.bare_environment


def program(folder):
    path = folder / "program.py"
    path.write_text(PROGRAM)
    return [sys.executable, str(path)]


def run(folder, *arguments, words=(), **more):
    return harness.run_program(arguments, *program(folder), *words, env=environment(**more))


def without_run(folder, *words, **more):
    """The variables alone, as the page about softgpu has it."""
    return subprocess.run([*program(folder), *words], timeout=50, stdin=subprocess.DEVNULL,
                          env=environment(LD_LIBRARY_PATH=str(SOFTGPU), **more),
                          capture_output=True, text=True, check=False)


UUID = "6d657361-3232-2e33-2e36-000000000000"
OUT = "CUDA_ERROR_OUT_OF_MEMORY"
WRONG = [
    (["--fault", f"cuMemAllocc_v2:1:{OUT}:before"], "no function 'cuMemAllocc_v2'"),
    (["--fault", f"cuMemAlloc:x:{OUT}:before"], "no count 'x'"),
    (["--fault", "cuMemAlloc:1:CUDA_ERROR_OOM:before"], "no result 'CUDA_ERROR_OOM'"),
    (["--fault", f"cuMemAlloc:1:{OUT}:sometimes"], "no mode 'sometimes'"),
    (["--fault", "cuMemAlloc"], "fewer than four parts"),
    (["--profile", "z900"], "there is no profile z900"),
    (["--profile", "/nowhere/mine.ini"], "/nowhere/mine.ini"),
    (["--trace", "/nowhere/trace"], "/nowhere/trace"),
    (["--fail-on", "leeks"], "fault, leaks, or leaks of a kind"),
    (["--fail-on", "fault"], "fault only with SOFTGPU_FAULT"),
    (["--memory", "9999999999T"], "memory"),
    (["--uuid", "mesa22.3.6"], "UUID 1 of the list is no UUID"),
    (["--uuid", f"{UUID},{UUID}"], "UUID 2 of the list was given before"),
    (["--devices", "2", "--uuid", f"{UUID},{UUID[:-1]}1,{UUID[:-1]}2"],
     "there are 3 of them for 2 devices"),
]

VARIABLES = [
    ("SOFTGPU_FAULT", f"cuMemAllocc_v2:1:{OUT}:before", "no function 'cuMemAllocc_v2'"),
    ("SOFTGPU_PROFILE", "z900", "there is no profile z900"),
    ("SOFTGPU_DEVICES", "9", "SOFTGPU_DEVICES='9' is not understood"),
    ("SOFTGPU_SCHEDULE", "fast", "SOFTGPU_SCHEDULE='fast'"),
    ("SOFTGPU_LANES", "independent", "only with SOFTGPU_SCHEDULE=random"),
    ("SOFTGPU_LEAKS", "yes", "SOFTGPU_LEAKS='yes'"),
    ("SOFTGPU_TRACE", "/nowhere/trace", "/nowhere/trace"),
    ("SOFTGPU_FAULTS", "x", "SOFTGPU_FAULTS is no variable"),
    ("SOFTGPU_FAIL_ON", "leeks", "fault, leaks, or leaks of a kind"),
    ("SOFTGPU_UUID", "0" * 32, "UUID 1 of the list is all zeros"),
]


def test_invalid_options_prevent_the_program_from_starting(folder):
    for arguments, text in WRONG:
        process = run(folder, *arguments)
        expect(process.returncode == 2, f"{arguments}: {process.returncode} {process.stderr}")
        expect(process.stdout == "", f"{arguments}: it was started: {process.stdout}")
        expect(text in process.stderr, f"{arguments}: {process.stderr!r} does not say {text!r}")


def test_a_uuid_option_reaches_the_program(folder):
    process = run(folder, "--devices", "2", "--uuid", UUID)
    expect_status(process, 0)
    process = harness.run_program(["--uuid", UUID, "--"], "sh", "-c", "echo $SOFTGPU_UUID")
    expect(process.stdout.strip() == UUID, process.stdout + process.stderr)


def test_an_invalid_profile_file_prevents_the_program_from_starting(folder):
    (folder / "p.ini").write_text("[device]\nname = X\nmemory = lots\n")
    process = run(folder, "--profile", str(folder / "p.ini"))
    expect_status(process, 2)
    expect("memory = lots" in process.stderr and process.stdout == "", process.stderr)


def test_invalid_variables_prevent_the_program_from_starting(folder):
    for variable, value, text in VARIABLES:
        process = run(folder, **{variable: value})
        expect(process.returncode == 2, f"{variable}: {process.returncode} {process.stderr}")
        expect(process.stdout == "" and text in process.stderr, f"{variable}: {process.stderr!r}")


def test_invalid_variables_fail_a_program_started_without_run(folder):
    for variable, value, text in VARIABLES:
        for words in ((), ("capture",)):
            process = without_run(folder, *words, **{variable: value})
            expect(process.returncode == 2,
                   f"{variable} {words}: {process.returncode} {process.stdout}{process.stderr}")
            expect("init 802" in process.stdout, f"{variable}: {process.stdout}")
            expect(process.stderr.count(text) == 1, f"{variable} {words}: {process.stderr!r}")
    # Its own failure stays its own.
    expect_status(without_run(folder, "fail", SOFTGPU_DEVICES="9"), 5)
    expect_status(without_run(folder, "idle", SOFTGPU_DEVICES="9"), 0)


def test_a_fault_without_a_suffix_applies_to_all_versions(folder):
    calls = ("cuMemAlloc_v2", "cuMemAlloc")  # the first version refuses such a context with 201
    for fault, answers in ((f"cuMemAlloc:*:{OUT}:before", (2, 2)),
                           (f"cuMemAlloc_v2:*:{OUT}:before", (2, 201)),
                           (f"=cuMemAlloc:*:{OUT}:before", (0, 2)),
                           (f"cuMemAlloc:2:{OUT}:before", (0, 2))):
        process = run(folder, "--fault", fault, words=calls)
        expect_status(process, 0)
        for name, answer in zip(calls, answers):
            expect(f"{name} {answer}\n" in process.stdout, f"{fault}: {process.stdout}")
        expect("never reached" not in process.stderr, f"{fault}: {process.stderr}")


def test_an_unreached_fault_is_reported(folder):
    fault = f"cuMemAlloc:2:{OUT}:before"
    for words in (("cuMemAlloc_v2",), ("cuMemAlloc_v2", "capture"), ("idle",)):
        process = run(folder, "--fault", fault, words=words)
        expect_status(process, 0)
        expect(process.stderr.count("never reached") == 1 and fault in process.stderr,
               f"{words}: {process.stderr}")
        process = run(folder, "--fault", fault, "--fail-on", "fault", words=words)
        expect_status(process, 9)
    process = run(folder, "--fault", fault, "--fail-on", "fault", words=("fail",))
    expect_status(process, 5)
    process = without_run(folder, "cuMemAlloc_v2", "capture", SOFTGPU_FAULT=fault)
    expect_status(process, 0)
    expect(process.stderr.count("never reached") == 1, process.stderr)
    expect("called 1 time\n" in process.stderr, process.stderr)
    expect_status(without_run(folder, "cuMemAlloc_v2", SOFTGPU_FAULT=fault, SOFTGPU_FAIL_ON="fault"), 9)


def test_a_fault_may_be_reached_by_any_process_of_the_job(folder):
    """Of several, one that does is enough, and the others are no failures."""
    fault = f"cuMemAlloc:1:{OUT}:before"
    for words in (("child=cuMemAlloc_v2",), ("idle", "child=cuMemAlloc_v2"),
                  ("cuMemAlloc_v2", "child=capture"), ("idle", "child=cuMemAlloc_v2,child=x")):
        process = run(folder, "--fault", fault, "--fail-on", "fault", words=words)
        expect_status(process, 0)
        expect("never reached" not in process.stderr and "child 0" in process.stdout,
               f"{words}: {process.stdout}{process.stderr}")


def test_exit_status_and_signal_of_the_program_are_kept(folder):
    fault = ("--fault", f"cuInit:1:{OUT}:before")
    expect_status(run(folder, *fault, words=("fail",)), 5)
    for arguments, status in ((("sh", "-c", "kill -9 $$"), -9), (("sh", "-c", "exit 7"), 7),
                              (("/dev/null",), 126), (("no-such-program",), 127)):
        process = harness.run_program([*fault, "--"], *arguments, env=environment(PATH="/usr/bin:/bin"))
        expect_status(process, status)


def test_signals_are_forwarded_to_the_program(folder):
    marker = folder / "pid"
    os.mkfifo(marker)
    process = subprocess.Popen([harness.COMMAND, "run", "--softgpu", "--fault",
                                f"cuInit:1:{OUT}:before", "--", "sh", "-c",
                                f"trap 'exit 3' TERM; echo $$ > {marker}; while :; do sleep 0.05; done"],
                               env=environment(), stdin=subprocess.DEVNULL, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    marker.read_text()
    process.terminate()
    _, errors = process.communicate(timeout=50)
    expect(process.returncode == 3, f"{process.returncode} {errors}")


def test_leaks_fail_the_job_on_request(folder):
    for words, status in ((("cuMemAlloc_v2", "leak"), 9), (("cuMemAlloc_v2",), 0),
                          (("cuMemAlloc_v2", "leak", "fail"), 5),
                          (("cuMemAlloc_v2", "child=cuMemAlloc_v2,leak"), 9),
                          (("cuMemAlloc_v2", "leak", "capture"), 9)):
        process = run(folder, "--fail-on", "leaks", words=words)
        expect_status(process, status)
        expect(("still live" in process.stderr) == ("leak" in " ".join(words)), process.stderr)
    expect_status(run(folder, "--leaks", words=("cuMemAlloc_v2", "leak")), 0)
    expect_status(without_run(folder, "cuMemAlloc_v2", "leak", SOFTGPU_FAIL_ON="leaks"), 9)
    expect_status(without_run(folder, "cuMemAlloc_v2", SOFTGPU_FAIL_ON="leaks"), 0)


def seed_of(text):
    found = re.search(r"--seed (\d+)", text)
    expect(found, f"no seed in {text!r}")
    return found[1]


def test_a_random_schedule_prints_its_seed_before_the_program_starts(folder):
    """By run itself, before a test runner captures anything; and one seed for all processes."""
    seeds = set()
    for _ in range(4):
        process = run(folder, "--schedule", "random", words=("cuMemAlloc_v2", "capture", "child=x"))
        expect_status(process, 0)
        expect(process.stderr.startswith("gpumem: random schedule"), process.stderr)
        expect(process.stderr.count("seed") == process.stderr.count(seed_of(process.stderr)) or
               "SOFTGPU_SEED" not in process.stderr, process.stderr)
        expect("SOFTGPU_SEED" not in process.stderr, f"softgpu drew another: {process.stderr}")
        seeds.add(seed_of(process.stderr))
    expect(len(seeds) > 1, f"always {seeds}")
    expect(seed_of(run(folder, SOFTGPU_SCHEDULE="random").stderr), "by the variable")
    expect(seed_of(run(folder, "--schedule", "random", "--seed", "77").stderr) == "77", "given")
    process = harness.run_program(["--schedule", "random", "--"], "sh", "-c", "echo $SOFTGPU_SEED")
    expect(process.stdout.strip() == seed_of(process.stderr), "printed one, set another")
    expect("seed" not in run(folder, "--schedule", "late").stderr, "a seed for nothing")
    said = run(folder, "--schedule", "random", "--lanes", "independent", "--seed", "5").stderr
    expect("random schedule with independent lanes; --lanes independent --seed 5 repeats it" in said, said)


def test_a_seed_chosen_by_softgpu_is_printed_despite_captured_output(folder):
    for words in ((), ("capture",)):
        process = without_run(folder, *words, SOFTGPU_SCHEDULE="random")
        expect_status(process, 0)
        expect(process.stderr.count("SOFTGPU_SEED=") == 1, f"{words}: {process.stderr}")


harness.main_unless_sanitized(globals())
