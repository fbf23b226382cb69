#!/usr/bin/env python3
"""What ./dev test does with stages: one count at the end of all, failures that can be repeated, the times."""
import argparse
import io
import json
import os
import re
import sys
from pathlib import Path

import launch
import run
import screen
import session
import stages
import summary
import times

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "harness"))
from tap_report import run_in_folders  # noqa: E402  pylint: disable=wrong-import-position


class Call:
    """A session with stages of ours, and what it printed. Its builds are commands that note themselves."""

    def __init__(self, folder, *groups, pattern="", long=None, tests=()):
        self.out = io.StringIO()
        options = argparse.Namespace(pattern=pattern, jobs=2, records=folder, long=long, only=None, all=False)
        with screen.logged(folder / "tests.log") as log:
            shown = screen.Screen(log, out=self.out)
            self.session = session.Session(options, shown)
            self.session.configured = lambda build: True
            self.session.build = lambda name, targets: targets and self.built.append((name, targets))
            self.built = []
            if tests:
                self.session.tests_of = lambda suite, stage: list(tests)
            for group in groups:
                self.session.run_together(group)
            self.status = summary.sum_up(shown, self.session.outcomes)
        self.lines = self.out.getvalue().splitlines()
        self.log = (folder / "tests.log").read_text().splitlines()


def step(title, command, **more):
    return stages.Step(title, ("sh", "-c", command), **more)


def test(name, command, where="release"):
    return launch.Test(name, ("sh", "-c", command), environment=dict(os.environ), where=where, repeat=f"again {name}")


SUITE = stages.Suite("release", "release", ())


def several_suites_end_with_one_count(folder):
    first = stages.Stage("first", "", (step("a step", "true"), step("none here", "echo skip: no such thing; exit 77")))
    second = stages.Stage("second", "", (step("another", "echo '[1/2] good'; echo bad; false"),))
    call = Call(folder, (first,), (second,))
    problems = [] if call.status == 1 else ["no failure"]
    for wanted in ("ok   a step (0 s)", "skip none here (0 s)", "     | bad", "     failed: exit status 1",
                   "     repeat: ./dev test --only second '^another$'", "skipped (1, for 1 reason):",
                   "failed: another: exit status 1"):
        if call.lines.count(wanted) != 1:
            problems.append(f"'{wanted}' is there {call.lines.count(wanted)} times")
    if call.lines[-1] != "1 passed, 1 failed, 1 skipped" or any("[1/2]" in line for line in call.lines):
        problems.append("another end, or more than what failed")
    return problems + (call.lines if problems else [])


def tests_of_several_stages_are_one_queue(folder):
    tests = [test("unit/test_a", "exit 0"), test("unit/test_b", "exit 3", "asan")]
    both = (stages.Stage("one", "", (SUITE,)),)
    call = Call(folder, both, tests=tests)
    wanted = ["FAIL asan: unit/test_b", "     failed: exit status 3", "     repeat: again unit/test_b",
              "FAIL tests: asan, release: 1 passed, 1 failed (0 s)"]
    found = [line for line in call.lines if any(line.startswith(start) for start in wanted)]
    problems = [] if len(found) == len(wanted) and call.lines[-1] == "1 passed, 1 failed" else call.lines
    if not any(re.match("ok +unit/test_a", line) for line in call.log):
        problems += ["the log:", *call.log]
    return problems


def a_program_that_is_not_built_is_one_failure(folder):
    program = str(launch.SOURCE / "build/tests/nowhere/run")
    tests = [launch.Test(f"nowhere/test_{name}", (program, name), repeat="again") for name in "abc"]
    call = Call(folder, (stages.Stage("one", "", (SUITE,)),), tests=[*tests, test("unit/test_a", "exit 0")])
    good = call.lines[-1] == "1 passed, 1 failed" and any("3 tests not run" in line for line in call.lines)
    return [] if good else call.lines


def a_pattern_selects_steps_and_builds_nothing_else(folder):
    stage = stages.Stage("one", "", (step("first", "true", build="asan", targets=("x",)),
                                     step("second", "true", build="tsan", targets=("y",))))
    call = Call(folder, (stage,), pattern="^second$")
    good = call.lines[-1] == "1 passed, 0 failed" and call.built == [("tsan", ["y"])]
    return [] if good else [repr(call.built), *call.lines]


def the_whole_is_built_for_whole_suites_alone(folder):
    problems = []
    stage = stages.TEST[0]
    for pattern, wanted in (("", ["all"]), ("^unit/softgpu/", None)):
        call = Call(folder, pattern=pattern)
        suites = [(suite, call.session.tests_of(suite, stage)) for suite in stage.items]
        targets = call.session.targets("release", suites, [])
        if wanted and targets != wanted or \
                not wanted and ("all" in targets or "tests/unit/softgpu/run" not in targets):
            problems.append(f"'{pattern}' builds {targets}")
    return problems


def a_long_step_tells_how_far_it_is(folder):
    every, screen.EVERY = screen.EVERY, 0
    try:
        stage = stages.Stage("one", "", (step("a build", "echo '[3/7] Building C'; sleep 1"),))
        lines = Call(folder, (stage,)).lines
    finally:
        screen.EVERY = every
    return [] if any(re.fullmatch(r"\.\.\.  a build, \d s, step 3 of 7", line) for line in lines) else lines


def busy_loops_end_with_what_ran_beside_them(folder):
    loaded = stages.Suite("loaded", "release", (), beside=3)
    counts = "ps -o args= --ppid $PPID 2>/dev/null | grep -c '[w]hile :; do :' || true"
    call = Call(folder, (stages.Stage("one", "", (loaded,)),),
                tests=[test("unit/test_a", f"n=$({counts}); echo $n; test $n = 3")])
    left = [pid for pid in os.listdir("/proc") if pid.isdigit() and parent_of(pid) == os.getpid()]
    return [] if call.status == 0 and not left else [f"left: {left}", *call.lines]


def parent_of(pid):
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return None
    return int(text[text.rindex(")") + 2:].split()[1])


def every_failure_can_be_repeated(folder):
    """The command that is printed selects this test, in this stage, and no other."""
    problems = []
    for long, group in ((None, (*stages.TEST, *stages.MORE)), ([], stages.PARTS)):
        call = Call(folder, long=long)
        for stage in group:
            for suite in (item for item in stage.items if isinstance(item, stages.Suite)):
                tests = call.session.tests_of(suite, stage)
                if not tests:
                    problems.append(f"{stage.name} has no test")
                    continue
                words = [word.strip("'") for word in tests[-1].repeat.split()[2:]]
                arguments, sys.argv = sys.argv, ["session", *words]
                try:
                    options = session.parse()
                finally:
                    sys.argv = arguments
                chosen = [each for part in session.chosen_stages(options) for each in part]
                again = {found.name for part in chosen for item in part.items if isinstance(item, stages.Suite)
                         for found in Call(folder, pattern=options.pattern, long=long).session.tests_of(item, part)}
                if stage not in chosen or again != {tests[-1].name}:
                    problems.append(f"{tests[-1].repeat}: {again}")
    return problems


def every_test_is_in_some_stage(folder):
    """Of ./dev test --all, or else of --long."""
    call = Call(folder)
    named = {test.name for stage in (*stages.TEST, *stages.MORE, *stages.PARTS) for suite in stage.items
             if isinstance(suite, stages.Suite) for test in call.session.tests_of(suite, stage)}
    every = {str(path.relative_to(launch.SOURCE / "tests").with_suffix("" if path.suffix == ".c" else path.suffix))
             for path in launch.SOURCE.glob("tests/**/test_*") if path.suffix in (".c", ".py", ".sh")}
    return sorted(every - named)


NINJA_LOG = """# ninja log v5
0\t1500\t0\tsrc/CMakeFiles/a.dir/base/a.c.o\tx
0\t2000\t0\ttests/CMakeFiles/unit.dir/__/src/base/a.c.o\tx
0\t500\t0\ttests/CMakeFiles/unit.dir/unit/test_b.c.o\tx
0\t250\t0\tlib/liba.so\tx
0\t9000\t0\tsrc/CMakeFiles/a.dir/base/deleted.c.o\tx
"""


def the_times_of_runs_are_a_table(folder):
    """Measured ones stay until they are measured again; what was compiled is read from ninja's logs."""
    kept, builds = folder / "times.json", [folder / "build", folder / "build-asan"]
    for build in builds:
        for line in NINJA_LOG.splitlines()[1:-1]:
            output = build / line.split("\t")[3]
            output.parent.mkdir(parents=True, exist_ok=True)
            output.write_text("")
        (build / ".ninja_log").write_text(NINJA_LOG)
    first, second = run.Outcome("unit/test_a"), run.Outcome("cli/test_b.py", "asan")
    first.seconds, first.processor_seconds, second.seconds = 2.0, 0.5, 7.0
    times.keep(kept, [first, second], [("a step", 3.0)])
    first.seconds = 2.5
    times.keep(kept, [first], [("another", 1.0)])
    shown = [" ".join(line.split()) for line in times.write(kept, builds, folder / "times.txt")]
    problems = []
    for wanted in ("3.0 a step", "1.0 another", "1 2.5 0.5 2.0 release: unit", "1 7.0 0.0 7.0 asan: cli",
                   "2.5 0.5 unit/test_a", "7.0 0.0 asan: cli/test_b.py", "3 4.0 1 0.2 build-asan",
                   "4 7.0 src/base/a.c", "2 1.0 tests/unit/test_b.c", "1 7.0 sources, each 4 times in 2 builds"):
        if wanted not in shown:
            problems.append(f"no line '{wanted}'")
    if json.loads(kept.read_text())["tests"]["release"]["unit/test_a"] != [2.5, 0.5]:
        problems.append("the last time is not kept")
    if "7.0         0.0  asan: cli/test_b.py" not in (folder / "times.txt").read_text():
        problems.append("the file has no table")
    return problems + (shown if problems else [])


def main():
    tests = [several_suites_end_with_one_count, tests_of_several_stages_are_one_queue,
             a_program_that_is_not_built_is_one_failure, a_pattern_selects_steps_and_builds_nothing_else,
             the_whole_is_built_for_whole_suites_alone, a_long_step_tells_how_far_it_is,
             busy_loops_end_with_what_ran_beside_them, every_failure_can_be_repeated, every_test_is_in_some_stage,
             the_times_of_runs_are_a_table]
    return run_in_folders(tests)


if __name__ == "__main__":
    sys.exit(main())
