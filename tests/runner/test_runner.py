#!/usr/bin/env python3
"""The runner must report what must_fail does: failures, deaths, hangs, lost tests, silent skips."""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import run as runner

HERE = Path(__file__).resolve().parent
RUNNER = HERE / "run.py"
PROGRAM = Path(os.environ.get("GPUMEM_BUILD_DIR", HERE.parents[1] / "build")) / \
    "tests/runner/must_fail"

# command, exit status, last line, and what the output must mention
CASES = [
    (f"{PROGRAM} pass", 0, "3 passed, 0 failed", ""),
    (f"{PROGRAM} fail", 1, "2 passed, 1 failed", "1 != 0x2"),
    (f"{PROGRAM} crash", 1, None, "killed by SIGABRT"),
    (f"{PROGRAM} hang", 1, None, "no end after "),
    (f"{PROGRAM} leave", 1, None, "tests gave no result"),
    (f"{PROGRAM} skip", 0, "2 passed, 0 failed, 1 skipped", "the reason of must_fail"),
    (f"{PROGRAM} silent", 1, "2 passed, 1 failed", "skipped without a reason"),
    (f"{PROGRAM} exit", 1, "3 passed, 1 failed", "exit status 3"),
    ("sh -c 'exit 0'", 0, "1 passed, 0 failed", ""),
    ("sh -c 'exit 1'", 1, "0 passed, 1 failed", "exit status 1"),
    ("sh -c 'echo skip: no such thing here; exit 77'", 0, "0 passed, 0 failed, 1 skipped",
     "no such thing here"),
    ("sh -c 'exit 77'", 1, "0 passed, 1 failed", "without a reason"),
    ("/nonexistent/test_program", 1, "0 passed, 1 failed", "cannot start"),
    # A child left behind holds the output open; it must neither delay nor survive the test.
    ("sh -c 'sleep 30 & exit 0'", 0, "1 passed, 0 failed", ""),
]


def check(command, status, last, mention):
    done = subprocess.run(
        [sys.executable, str(RUNNER), "--timeout", "2", "--load", "/dev/null", "--command", command],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=20, check=False)
    lines = done.stdout.splitlines() or [""]
    problems = []
    if done.returncode != status:
        problems.append(f"exit status {done.returncode}, expected {status}")
    if last is not None and lines[-1] != last:
        problems.append(f"last line '{lines[-1]}', expected '{last}'")
    if last is None and ", 0 failed" in lines[-1]:
        problems.append(f"last line '{lines[-1]}' tells of no failure")
    if mention not in done.stdout:
        problems.append(f"'{mention}' is not mentioned")
    return problems, done.stdout


def run(*arguments):
    done = subprocess.run([sys.executable, str(RUNNER), *arguments], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=20, check=False)
    return done.returncode, done.stdout.splitlines()


SCRIPT = "printf '%s\\n' 1..3 'ok 1 - good' '# a comment' 'not ok 2 - bad one' plain 'ok 3 - fine'"


def check_failures_last():
    """What went well is left out of what failed, and the end names the failure."""
    _, lines = run("--command", f'sh -c "{SCRIPT}"')
    problems = [f"'{line}' is shown" for line in lines if "| ok " in line]
    for wanted in ("# a comment", "plain", "not ok 2 - bad one"):
        if f"     | {wanted}" not in lines:
            problems.append(f"'{wanted}' is not shown")
    if not lines[-2].startswith("failed: sh ") or not lines[-2].endswith(": bad one"):
        problems.append(f"the line before the count is '{lines[-2]}'")
    _, lines = run("--verbose", "--command", f'sh -c "{SCRIPT}"')
    if "     | ok 1 - good" not in lines:
        problems.append("--verbose leaves lines out")
    return problems


def check_sum():
    """A tally of two suites and a step: all failures, then the sum."""
    problems = []
    with tempfile.TemporaryDirectory() as folder:
        tally = Path(folder) / "tally"
        tally.write_text("")
        if run("--sum", str(tally)) != (1, ["0 passed, 0 failed"]):
            problems.append("an empty tally is no failure")
        run("--tally", str(tally), "--title", "fine", "--command", "true")
        if run("--sum", str(tally)) != (0, ["1 passed, 0 failed"]):
            problems.append("a tally of successes is no success")
        run("--tally", str(tally), "--title", "broken", "--command", "false", "--command", "true")
        with tally.open("a") as file:
            file.write("0 1 0\nfailed: a step\n0 0 1\n")
        expected = (1, ["failed: broken: false: exit status 1", "failed: a step",
                        "2 passed, 2 failed, 1 skipped"])
        if run("--sum", str(tally)) != expected:
            problems.append(f"{run('--sum', str(tally))} is not {expected}")
    return problems


def check_temporary_folder():
    """A folder for each test, empty at its begin; what is left in it is a failure, and goes."""
    problems = []
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ, TMPDIR=folder)
        for command, expected in [
                ("sh -c 'test -d \"$TMPDIR\" && test -z \"$(ls -A $TMPDIR)\"'", "1 passed, 0 failed"),
                ("sh -c 'touch $TMPDIR/kept $TMPDIR/too'", "1 passed, 1 failed"),
                ("sh -c 'mkdir $TMPDIR/a; touch $TMPDIR/a/b; sleep 60'", "0 passed, 1 failed")]:
            done = subprocess.run(
                [sys.executable, str(RUNNER), "--timeout", "1", "--load", "/dev/null", "--command",
                 command, "--command", "true"],
                env=environment, capture_output=True, text=True, check=False)
            # The second command tells whether a test sees what another left.
            expected = expected.replace("1 passed", "2 passed").replace("0 passed", "1 passed")
            if done.stdout.splitlines()[-1] != expected:
                problems.append(f"{command}: {done.stdout}")
            if "kept" in command and "left in the temporary folder: kept, too" not in done.stdout:
                problems.append(f"{command}: the files are not named: {done.stdout}")
            if os.listdir(folder):
                problems.append(f"{command}: there is still {os.listdir(folder)}")
    return problems


def check_load():
    """A loaded machine has more time, and is told of; an idle one has not; a hang still ends."""
    problems = []
    processors = len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as folder:
        load = Path(folder) / "load"
        for tasks, command, last, mention in [
                (4 * processors, "sleep 2", "1 passed, 0 failed", "was stretched"),
                (4 * processors, "sleep 60", "0 passed, 1 failed", "no end after 4 s"),
                (processors, "sleep 60", "0 passed, 1 failed", "no end after 1 s"),
                (1000 * processors, "sleep 2", "1 passed, 0 failed", "was stretched"),
                (0, "sleep 0.8", "1 passed, 0 failed", "near its limit of 1 s"),
                (0, "sleep 0.1", "1 passed, 0 failed", "")]:
            load.write_text(f"{tasks}.00 1.00 1.00 1/1 1\n")
            _, lines = run("--timeout", "1", "--load", str(load), "--command", command)
            if lines[-1] != last or mention not in "\n".join(lines):
                problems.append(f"{tasks} tasks, {command}: {lines}")
            if not mention and any("note:" in line for line in lines):
                problems.append(f"{tasks} tasks, {command}: {lines}")
        # The load is gone by the time the limit would be reached: what it took still counts for less.
        load.write_text(f"{4 * processors}.00 1.00 1.00 1/1 1\n")
        passing = f"sh -c 'sleep 0.9; echo 0.00 >{load}; sleep 0.4'"
        _, lines = run("--timeout", "1", "--load", str(load), "--command", passing)
        if lines[-1] != "1 passed, 0 failed":
            problems.append(f"a load that goes: {lines}")
    return problems


def check_long():
    """--long is what tests are told, and gives them time; without it they are not, whoever asks."""
    problems = []
    os.environ["GPUMEM_TEST_LONG"] = "from outside"
    for options, command in [(["--long"], "sh -c 'test \"$GPUMEM_TEST_LONG\" = 1'"),
                             ([], "sh -c 'test -z \"${GPUMEM_TEST_LONG+x}\"'"),
                             (["--long", "--timeout", "0.1"], "sleep 1")]:
        status, lines = run(*options, "--load", "/dev/null", "--command", command)
        if status != 0:
            problems.append(f"{options} {command}: {lines}")
    del os.environ["GPUMEM_TEST_LONG"]
    return problems


def check_slow_first():
    """What is named as slow is a test, and goes first; the others keep their order."""
    names = runner.SLOW.read_text().split()
    folders = sorted(path.name for path in runner.SOURCE.glob("tests/*") if path.is_dir())
    tests = runner.discover(Path("build"), folders)
    lost = sorted(set(names) - {name for name, _ in tests})
    problems = [f"slow.txt names what is no test: {', '.join(lost)}"] if lost else []
    if len(set(names)) != len(names):
        problems.append("slow.txt names a test twice")
    given = [(name, []) for name in ["unit/a", names[1], "unit/b", names[0]]]
    order = [name for name, _ in runner.slow_first(given)]
    if order != [names[0], names[1], "unit/a", "unit/b"]:
        problems.append(f"the order is {order}")
    return problems


def main():
    more = [("only failures are shown", check_failures_last), ("a tally is summarized", check_sum),
            ("leftover temporary files are a failure", check_temporary_folder),
            ("time limits grow with the machine's load", check_load), ("long tests run only on request", check_long),
            ("slow tests run first", check_slow_first)]
    print(f"1..{len(CASES) + 1 + len(more)}")
    bad = 0
    for number, (command, *expected) in enumerate(CASES, 1):
        problems, output = check(command, *expected)
        name = command.replace(str(PROGRAM), "must_fail")
        print(f"{'not ' if problems else ''}ok {number} - {name}")
        if problems:
            bad += 1
            for line in problems + output.splitlines():
                print(f"# {line}")
    # No tests at all is a failure too: a misspelt pattern must not look like success.
    empty = subprocess.run([sys.executable, str(RUNNER), "--match", "^no such test$", "runner"],
                           stdout=subprocess.PIPE, text=True, check=False)
    good = empty.returncode == 1 and empty.stdout.splitlines()[-1] == "0 passed, 1 failed"
    print(f"{'' if good else 'not '}ok {len(CASES) + 1} - a pattern that matches no test is a failure")
    for number, (name, function) in enumerate(more, len(CASES) + 2):
        problems = function()
        bad += bool(problems)
        print(f"{'not ' if problems else ''}ok {number} - {name}")
        for line in problems:
            print(f"# {line}")
    return 1 if bad or not good else 0


if __name__ == "__main__":
    sys.exit(main())
