#!/usr/bin/env python3
"""The runner must report what must_fail does: failures, deaths, hangs, lost tests, silent skips."""
import io
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import catalogue
import clock
import launch
import screen
import threaded

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "harness"))
from tap_report import run_all  # noqa: E402  pylint: disable=wrong-import-position

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
    ("sh -c 'sleep 300 & exit 0'", 0, "1 passed, 0 failed", ""),
]


def run(*arguments, **environment):
    done = subprocess.run([sys.executable, str(RUNNER), *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env=dict(os.environ, **environment), text=True, check=False)
    return done.returncode, done.stdout.splitlines()


def check(command, status, last, mention):
    limit = "1" if "hang" in command else "60"
    code, lines = run("--timeout", limit, "--command", command)
    problems = []
    if code != status:
        problems.append(f"exit status {code}, expected {status}")
    if last is not None and lines[-1] != last:
        problems.append(f"last line '{lines[-1]}', expected '{last}'")
    if last is None and ", 0 failed" in lines[-1]:
        problems.append(f"last line '{lines[-1]}' tells of no failure")
    if mention not in "\n".join(lines):
        problems.append(f"'{mention}' is not mentioned")
    return problems + ([f"| {line}" for line in lines] if problems else [])


SCRIPT = "printf '%s\\n' 1..3 'ok 1 - good' '# a comment' 'not ok 2 - bad one' plain 'ok 3 - fine'"


def failures_are_shown_whole_and_named_at_the_end():
    """What went well is left out of what failed, but for who wants all, and in the log."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        _, lines = run("--command", f'sh -c "{SCRIPT}"', "--command", "true", "--log", str(log))
        problems = [f"'{line}' is shown" for line in lines if "| ok " in line or re.match("ok +true", line)]
        for wanted in ("# a comment", "plain", "not ok 2 - bad one"):
            if f"     | {wanted}" not in lines:
                problems.append(f"'{wanted}' is not shown")
        if not lines[-2].startswith("failed: sh ") or not lines[-2].endswith(": bad one"):
            problems.append(f"the line before the count is '{lines[-2]}'")
        if f"every line is in {log}" not in lines:
            problems.append("the log is not named")
        written = log.read_text().splitlines()
        if not any(re.match("ok +true", line) for line in written) or "     failed: bad one" not in written:
            problems.append(f"the log: {written}")
    _, lines = run("--verbose", "--command", f'sh -c "{SCRIPT}"', "--command", "echo said")
    if "     | ok 1 - good" not in lines or "     | said" not in lines:
        problems.append("--verbose leaves lines out")
    return problems


def a_failure_names_the_command_that_repeats_it():
    _, lines = run("--build", "/nonexistent", "--match", "^unit/test_limit$", "unit")
    repeat = [line.strip().removeprefix("repeat: ") for line in lines if line.startswith("     repeat: ")]
    if len(repeat) != 1 or repeat[0] not in lines[-2]:
        return [f"repeat: {repeat}", *lines]
    done = subprocess.run(repeat[0], shell=True, cwd=launch.SOURCE, capture_output=True, text=True, check=False)
    return [] if done.stdout.splitlines()[-1] == "0 passed, 1 failed" else done.stdout.splitlines()


def skips_are_a_table():
    """The same reason with other numbers or names is one line with a count; the most frequent first."""
    commands = [f"sh -c 'echo skip: {reason}; exit 77'" for reason in (
        "no shell", "no device 1 of 2 for cuMemAlloc_v2", "no device 3 of 40 for cuMemFree", "no shell here",
        "no shell")]
    _, lines = run(*(word for command in commands for word in ("--command", command)))
    at = lines.index("skipped (5, for 3 reasons):")
    table = [line.split("  (")[0] for line in lines[at + 1:at + 4]]
    wanted = ["     2  no device … of … for …", "     2  no shell", "     1  no shell here"]
    return [] if table == wanted and lines[-1] == "0 passed, 0 failed, 5 skipped" else lines


def the_ten_slowest_are_told():
    _, lines = run("--jobs", "12", *(word for i in range(12) for word in ("--command", f"sh -c 'sleep 0.{i:02}'")))
    at = lines.index("slowest:")
    table = [line for line in lines[at + 1:] if re.match(r" *\d+\.\d s  sh -c ", line)]
    seconds = [float(line.split()[0]) for line in table]
    return [] if len(table) == 10 and seconds == sorted(seconds, reverse=True) else lines


def progress_is_told_every_ten_seconds():
    """Where no terminal is, and no sooner; a step begins to count anew."""
    out, now = io.StringIO(), [0.0]
    shown = screen.Screen(out=out, now=lambda: now[0])
    for second in range(26):
        now[0] = second
        if second == 12:
            shown.start()
        shown.progress(f"{second}")
    return [] if out.getvalue() == "...  10\n...  22\n" else [repr(out.getvalue())]


def progress_is_a_bar_on_a_terminal():
    """One line, written over; a failure takes its place."""
    ours, theirs = os.openpty()
    with subprocess.Popen([sys.executable, str(RUNNER), "--jobs", "1", "--command", "sleep 1", "--command", "false"],
                          stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        text = b""
        try:
            while more := os.read(ours, 65536):
                text += more
        except OSError:
            pass  # how a terminal ends whose last process has gone
        process.wait()
    os.close(ours)
    text = text.decode()
    problems = []
    if not re.search(r"\r\x1b\[K\[\.+\] 0 of 2 programs, 0 failed, \d s  sleep 1", text):
        problems.append("no bar")
    if not re.search(r"\r\x1b\[K\[#+\.+\] 1 of 2 programs, 0 failed", text):
        problems.append("the bar does not grow")
    if "\r\x1b[KFAIL false" not in text or not text.rstrip().endswith("1 passed, 1 failed"):
        problems.append("a failure does not take the bar's place")
    return problems + ([repr(text)] if problems else [])


def what_is_left_in_the_temporary_folder_is_a_failure():
    """A folder for each test, empty at its begin; what is left in it goes."""
    problems = []
    with tempfile.TemporaryDirectory() as folder:
        for command, expected in [
                ("sh -c 'test -d \"$TMPDIR\" && test -z \"$(ls -A $TMPDIR)\"'", "1 passed, 0 failed"),
                ("sh -c 'touch $TMPDIR/kept $TMPDIR/too'", "1 passed, 1 failed"),
                ("sh -c 'mkdir $TMPDIR/a; touch $TMPDIR/a/b; sleep 600'", "0 passed, 1 failed")]:
            _, lines = run("--timeout", "1", "--command", command, "--command", "true", TMPDIR=folder)
            # The second command tells whether a test sees what another left.
            expected = expected.replace("1 passed", "2 passed").replace("0 passed", "1 passed")
            if lines[-1] != expected:
                problems += [command, *lines]
            if "kept" in command and "left in the temporary folder: kept, too" not in "\n".join(lines):
                problems += [f"{command}: the files are not named", *lines]
            if os.listdir(folder):
                problems.append(f"{command}: there is still {os.listdir(folder)}")
    return problems


class Machine:
    """Time and load as they are told to a Clock, whatever this machine does: `loads` by second, the last for ever."""

    def __init__(self, folder, processors, loads, stolen=0):
        self.now, self.loads, self.stolen = 0.0, loads, stolen
        self.load, self.state = folder / "load", folder / "state"
        self.load.write_text("")
        self.clock = clock.Clock(self.load, processors, self.state)
        self.clock.state = self.state
        self.tell()

    def tell(self):
        self.load.write_text(f"{self.loads[min(int(self.now), len(self.loads) - 1)]} 1 1 1/1 1\n")
        ticks = int(self.now * 100)
        self.state.write_text(f"cpu  {ticks * (1 - self.stolen):.0f} 0 0 0 0 0 0 {ticks * self.stolen:.0f} 0 0\n")

    def wait(self, seconds, limit):
        """Whether what takes so long ends within the limit, and when."""
        def ended(step):
            self.now += min(step, max(seconds - self.now, 0.0)) if self.now + step >= seconds else step
            self.tell()
            return self.now >= seconds

        return self.clock.wait(ended, limit)[0], self.now


def limits_grow_with_the_load():
    """A loaded machine has more time, an idle one has not; a hang still ends."""
    problems = []
    with tempfile.TemporaryDirectory() as folder:
        for what, loads, stolen, seconds, ends, at in [
                ("an idle machine, a test within its limit", [0], 0, 0.9, True, 0.9),
                ("an idle machine, a hang", [0], 0, 600, False, 1.0),
                ("as many tasks as processors, a hang", [4], 0, 600, False, 1.0),
                ("four tasks on each processor", [16], 0, 3.5, True, 3.5),
                ("four tasks on each processor, a hang", [16], 0, 600, False, 4.0),
                ("no load stretches without an end", [40000], 0, 600, False, 20.0),
                ("a load that goes: what it took still counts for less", [16, 16, 0], 0, 2.4, True, 2.4),
                ("half of the time is another machine's", [0], 0.5, 1.7, True, 1.7),
                ("half of the time is another machine's, a hang", [0], 0.5, 600, False, 2.0)]:
            got, now = Machine(Path(folder), 4, loads, stolen).wait(seconds, 1.0)
            # The first look knows of no time before it, and so of none that was taken.
            if got != ends or abs(now - at) > clock.TICK:
                problems.append(f"{what}: {'ended' if got else 'was ended'} after {now:.2f} s, not {at:g}")
    return problems


def a_limit_that_was_stretched_is_told_of():
    problems = []
    with tempfile.TemporaryDirectory() as folder:
        quiet = clock.Clock(Path(folder) / "none", 2)
        test = launch.Test("a", ("true",), 10.0)
        for seconds, counted, mention in ((1, 1, ""), (6, 6, "near its limit of 10 s"), (30, 6, "was stretched: 30 s")):
            note = launch.note_of(test, seconds, counted, True, quiet)
            if bool(mention) != bool(note) or mention not in note:
                problems.append(f"{seconds} s that count for {counted}: '{note}'")
    return problems


def long_tests_are_asked_for():
    """--long is what tests are told, and gives them time; without it they are not, whoever asks."""
    problems = []
    for options, command in [(["--long"], "sh -c 'test \"$GPUMEM_TEST_LONG\" = 1'"),
                             ([], "sh -c 'test -z \"${GPUMEM_TEST_LONG+x}\"'"),
                             (["--long", "--timeout", "0.1"], "sleep 1")]:
        status, lines = run(*options, "--command", command, GPUMEM_TEST_LONG="from outside")
        if status != 0:
            problems.append(f"{options} {command}: {lines}")
    return problems


def long_tests_go_first():
    """By what was measured, else by what is committed, which names tests; the others keep their order."""
    slow = catalogue.fallback_times()
    folders = sorted(path.name for path in launch.SOURCE.glob("tests/*") if path.is_dir())
    lost = sorted(set(slow) - {name for name, _ in catalogue.discover(Path("build"), folders)})
    problems = [f"slow.txt names what is no test: {', '.join(lost)}"] if lost else []
    first = max(slow, key=slow.get)
    reader = min(catalogue.READERS)
    given = [launch.Test(name, ()) for name in (reader, "unit/a", first, "unit/b", "unit/c")]
    earlier = {"release": {first: [0.1, 0], "unit/c": [90, 9], reader: [300, 9]}}
    for measured, wanted in (({}, [first, "unit/a", "unit/b", "unit/c", reader]),
                             (earlier, ["unit/c", "unit/a", "unit/b", first, reader])):
        order = [test.name for test in catalogue.longest_first(given, measured)]
        if order != wanted:
            problems.append(f"the order with {measured} is {order}")
    return problems


def tests_of_c_are_started_by_file():
    tests = dict(catalogue.discover(Path("/b"), ["unit", "runner"]))
    wanted = {"unit/test_limit": ("/b/tests/unit/run", "test_limit"),
              "unit/vkgdr/test_slabs": ("/b/tests/unit/vkgdr/run", "test_slabs"),
              "runner/test_runner.py": (sys.executable, str(HERE / "test_runner.py"))}
    return [f"{name} is {tests.get(name)}" for name, command in wanted.items() if tests.get(name) != command]


def only_what_tests_need_is_built():
    problems = []
    for names, wanted, others in (
            (["unit/softgpu/test_tree"], {"tests/unit/softgpu/run"}, {"all", "tests/unit/run", "parity", "bench/all"}),
            (["docs/test_cpp.sh"], {"cpp_page", "gpumem"}, {"all", "tests/unit/run", "parity"}),
            (["nowhere/test_x"], {"all"}, set())):
        targets = set(catalogue.targets_of(names))
        if wanted - targets or others & targets:
            problems.append(f"{names}: {targets}")
    for folder in {name.partition("/")[0] for name, _ in catalogue.discover(Path("b"), every_folder())}:
        if folder not in catalogue.TARGETS and folder != "long":
            problems.append(f"what tests/{folder} needs is not known")
    return problems


def every_folder():
    return sorted(path.name for path in launch.SOURCE.glob("tests/*") if path.is_dir())


def whatever_starts_threads_is_under_the_thread_sanitizer():
    """Each file of src/ that starts threads is named, and has tests; those that start some are found."""
    problems = []
    starting = {str(path.relative_to(launch.SOURCE)) for path in launch.SOURCE.glob("src/**/*.c")
                if threaded.STARTS.search(path.read_text())} - {"src/base/thread.c"}
    names = [name for name, _ in catalogue.discover(Path("b"), ["unit", "conformance"])]
    for path in sorted(starting ^ set(threaded.PARTS)):
        problems.append(f"{path}: {'is not in threaded.py' if path in starting else 'starts no thread'}")
    for path, pattern in threaded.PARTS.items():
        if not any(re.search(pattern, name) for name in names):
            problems.append(f"{path}: no test has its threads run")
    for name, wanted in (("unit/test_caching_threads", True), ("unit/softgpu/test_tree", False),
                         ("conformance/test_kernels.py", True)):
        if name in names and threaded.has_threads(name) != wanted:
            problems.append(f"{name} {'has no' if wanted else 'has'} threads")
    return problems


def nothing_that_matches_is_a_failure():
    """A misspelt pattern must not look like success."""
    status, lines = run("--match", "^no such test$", "runner")
    return [] if status == 1 and lines[-1] == "0 passed, 1 failed" else lines


def main():
    tests = [(command.replace(str(PROGRAM), "must_fail"), lambda case=(command, *expected): check(*case))
             for command, *expected in CASES]
    tests += [(function.__name__.replace("_", " "), function) for function in (
        failures_are_shown_whole_and_named_at_the_end, a_failure_names_the_command_that_repeats_it, skips_are_a_table,
        the_ten_slowest_are_told, progress_is_told_every_ten_seconds, progress_is_a_bar_on_a_terminal,
        what_is_left_in_the_temporary_folder_is_a_failure, limits_grow_with_the_load,
        a_limit_that_was_stretched_is_told_of, long_tests_are_asked_for, long_tests_go_first,
        tests_of_c_are_started_by_file, only_what_tests_need_is_built,
        whatever_starts_threads_is_under_the_thread_sanitizer, nothing_that_matches_is_a_failure)]
    return run_all(tests)


if __name__ == "__main__":
    sys.exit(main())
