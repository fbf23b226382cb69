#!/usr/bin/env python3
"""`./dev test`: builds, runs the suites and steps of stages.py, and sums up.

What one stage does waits for what it needs alone: its builds first, then its tests as one queue, the longest
first, then its steps. The log, the times and their table are in build/ (or where GPUMEM_TEST_RECORDS says)."""
import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import catalogue
import run
import screen as screens
import stages
import summary
import times
from launch import Test
from tap import SKIPPED, REASON, Outcome

SOURCE = Path(__file__).resolve().parents[2]
STEP_OF = re.compile(r"^\[(\d+)/(\d+)\].*", re.M)


class Session:
    """One call of ./dev test: what is asked for, what came out."""

    def __init__(self, options, screen):
        self.options = options
        self.screen = screen
        self.pattern = options.pattern
        self.outcomes = []
        self.steps = []
        self.built = {}
        self.broken = set()
        self.measured = times.read(options.records / "times.json")["tests"]

    # ---- steps ---------------------------------------------------------------------------------

    def command(self, title, command, repeat):
        """A command that is one test: nothing of it is shown but how far it is, and all when it fails."""
        outcome = Outcome(title, repeat=repeat)
        outcome.is_step = True
        self.screen.start()
        with tempfile.TemporaryFile("w+", errors="replace") as sink:
            process = subprocess.Popen(command, cwd=SOURCE, stdin=subprocess.DEVNULL, stdout=sink,
                                       stderr=subprocess.STDOUT)
            while True:
                try:
                    code = process.wait(screens.REFRESH)
                    break
                except subprocess.TimeoutExpired:
                    self.screen.progress(f"{title}, {self.screen.seconds():.0f} s{how_far(sink)}")
            sink.seek(0)
            text = sink.read()
        outcome.seconds = self.screen.seconds()
        outcome.output = without_steps(text)
        reasons = [match.group(1) for match in map(REASON.match, text.splitlines()) if match]
        if code == SKIPPED and reasons:
            outcome.skip("step", reasons[-1])
        elif code:
            outcome.failures.append(f"exit status {code}")
        else:
            outcome.passed = 1
        self.finish(outcome, text)

    def finish(self, outcome, text):
        self.outcomes.append(outcome)
        self.steps.append((outcome.name, outcome.seconds))
        if outcome.failures:
            self.screen.report(outcome)
            return
        word = "ok" if outcome.passed else "skip"
        said = [line for line in text.splitlines() if line.startswith("parity: ")]
        more = f": {said[-1].removeprefix('parity: ')}" if said else ""
        self.screen.say(f"{word:4} {outcome.name}{more} ({outcome.seconds:.0f} s)")
        for line in outcome.output.splitlines():
            self.screen.note(f"     | {line}")

    def build(self, name, targets):
        """Configures once, then builds what was not built before. -k 0: what does not build must not hide the
        state of all the rest."""
        build = stages.BUILDS[name]
        todo = [target for target in targets if target not in self.built.setdefault(name, set())]
        if not todo or "all" in self.built[name]:
            return
        self.built[name].update(todo)
        if not self.configured(build):
            self.broken.add(name)
            return
        known = catalogue.targets_known(build.folder)
        todo = [target for target in todo if known is None or target in known or target == "all"]
        command = ["cmake", "--build", "--preset", build.preset, "-j", str(self.options.jobs)]
        if todo and todo != ["all"]:
            command += ["--target", *todo]
        if todo:
            self.command(build.title, [*command, "--", "-k", "0"], " ".join(command))

    def configured(self, build):
        """A configuration that succeeds is no test of its own."""
        self.screen.start()
        done = subprocess.run(["cmake", "--preset", build.preset], cwd=SOURCE, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        self.steps.append((f"configure {build.folder.name}", self.screen.seconds()))
        if done.returncode:
            outcome = Outcome(f"{build.title}: configuration", repeat=f"cmake --preset {build.preset}")
            outcome.is_step = True
            outcome.output = without_steps(done.stdout)
            outcome.failures.append(f"exit status {done.returncode}")
            self.outcomes.append(outcome)
            self.screen.report(outcome)
        return not done.returncode

    # ---- suites --------------------------------------------------------------------------------

    def tests_of(self, suite, stage):
        build = stages.BUILDS[suite.build]
        environment = catalogue.environment_of(build.folder, build.sanitize, suite.long)
        environment.update(suite.environment)
        tests = []
        for name, command in catalogue.discover(build.folder, suite.folders):
            if not re.search(self.pattern, name) or (suite.chosen and not suite.chosen(name)):
                continue
            limit = catalogue.limit_of(name, build.sanitize, suite.long)
            tests += [Test(name, command, limit, environment, suite.where, self.repeat(stage, name))] * suite.rounds
        return tests

    def repeat(self, stage, name):
        """The command that runs this test again, as it was run here."""
        if self.options.long is not None:
            words = f"--long {stage.name} "
        else:
            words = "" if stage in stages.TEST else f"--only {stage.name} "
        special = re.sub(r"([.+*?^$()\[\]{}|\\])", r"\\\1", name)
        return f"./dev test {words}'^{special}$'"

    def run_together(self, together):
        """Stages of which the tests are one queue: builds, tests, steps."""
        suites = [(suite, self.tests_of(suite, stage)) for stage in together for suite in stage.items
                  if isinstance(suite, stages.Suite)]
        steps = [(step, stage) for stage in together for step in stage.items if isinstance(step, stages.Step)]
        if self.pattern:
            steps = [(step, stage) for step, stage in steps if re.search(self.pattern, step.title)]
        environments = None
        for name in stages.BUILDS:
            self.build(name, self.targets(name, suites, steps))
            if name == "release" and any(suite.where == "clients" and tests for suite, tests in suites):
                environments = self.begin_environments()
        if environments:
            self.wait_for("environments of clients", environments)
        self.run_queues(suites)
        for step, stage in steps:
            if step.build in self.broken:
                continue
            self.command(step.title, step.command, step.repeat or self.repeat(stage, step.title))

    def begin_environments(self):
        """Packages of client programs come over the network: while other builds are made. What cannot be made is
        told by the tests that need it."""
        folder = stages.BUILDS["release"].folder
        return subprocess.Popen([sys.executable, "tests/clients/environment.py", str(folder)], cwd=SOURCE,
                                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def wait_for(self, title, process):
        self.screen.start()
        while process.poll() is None:
            self.screen.progress(f"{title}, {self.screen.seconds():.0f} s")
            time.sleep(screens.REFRESH)
        self.steps.append((title, self.screen.seconds()))

    def targets(self, name, suites, steps):
        """What is built for them; the whole build only for a whole suite that is of all its parts."""
        wanted = []
        for suite, tests in suites:
            if suite.build == name and tests:
                whole = suite.everything and not self.pattern
                wanted += ["all"] if whole else catalogue.targets_of([test.name for test in tests])
        for step, _ in steps:
            if step.build == name:
                wanted += step.targets
        return ["all"] if "all" in wanted else list(dict.fromkeys(wanted))

    def run_queues(self, suites):
        """One queue for all, but for those that run beside busy loops."""
        suites = [(suite, tests) for suite, tests in suites if suite.build not in self.broken]
        queue = [test for suite, tests in suites if not suite.beside for test in tests]
        self.run_tests(queue, "tests")
        for suite, tests in suites:
            if suite.beside and tests:
                loops = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(suite.beside)]
                try:
                    self.run_tests(tests, f"tests beside {suite.beside} busy loops")
                finally:
                    for loop in loops:
                        loop.kill()
                        loop.wait()

    def run_tests(self, tests, what):
        tests, failures = not_built(tests)
        for outcome in failures:
            self.screen.report(outcome)
        self.outcomes += failures
        if not tests:
            return
        tests = catalogue.longest_first(tests, self.measured)
        # One more than there are processors: tests wait for locks, pipes and other processes.
        outcomes = run.run_all(tests, self.screen, self.options.jobs + 1)
        self.outcomes += outcomes
        places = sorted({test.where for test in tests})
        title = f"{what}: {', '.join(places)}"
        self.steps.append((title, self.screen.seconds()))
        failed = any(outcome.failures for outcome in outcomes)
        self.screen.say(f"{'FAIL' if failed else 'ok  '} {title}: {summary.count_line(outcomes)} "
                        f"({self.screen.seconds():.0f} s)")


def without_steps(text):
    """Steps of a build that went well say nothing but that."""
    return "\n".join(line for line in text.splitlines() if not STEP_OF.match(line))


def not_built(tests):
    """Tests of which the program is there; and a failure for each program that is not, however many it has."""
    lacking, kept = {}, []
    for test in tests:
        program = Path(test.command[0])
        if program.is_relative_to(SOURCE) and not program.exists():
            lacking.setdefault((test.where, program), []).append(test)
        else:
            kept.append(test)
    outcomes = []
    for (where, program), those in lacking.items():
        outcome = Outcome(str(program.relative_to(SOURCE)), where, those[0].repeat)
        outcome.failures.append(f"not built, and so {len(those)} tests not run: {those[0].name}"
                                f"{', ...' if len(those) > 1 else ''}")
        outcomes.append(outcome)
    return kept, outcomes


def how_far(sink):
    """How far a build is: ninja counts its steps."""
    sink.flush()
    with open(f"/proc/self/fd/{sink.fileno()}", errors="replace") as file:
        found = STEP_OF.findall(file.read())
    return f", step {found[-1][0]} of {found[-1][1]}" if found else ""


def chosen_stages(options):
    """Groups of stages; each group's tests are one queue."""
    if options.long is not None:
        parts = [part for part in stages.PARTS if not options.long or part.name in options.long]
        return [(part,) for part in parts]
    every = (*stages.TEST, *stages.MORE)
    if options.only:
        return [(stage,) for stage in every if stage.name == options.only]
    return [*((stage,) for stage in stages.TEST), *([stages.MORE] if options.all else [])]


def list_of(options):
    """Names of stages or parts, what they are, and how long each took here."""
    known = times.read(options.records / "times.json")["steps"]
    listed = stages.PARTS if options.long is not None else (*stages.TEST, *stages.MORE)
    lines = []
    for stage in listed:
        seconds = known.get(f"{'--long' if options.long is not None else '--only'} {stage.name}")
        took = f"  ({seconds:.0f} s)" if seconds else ""
        lines.append(f"  {stage.name:18} {stage.what}{took}")
    return lines


def parse():
    parser = argparse.ArgumentParser(prog="./dev test", add_help=False, allow_abbrev=False)
    parser.add_argument("--packages", action="store_true", help="print what tools/dev/packages.sh calls it")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--only", nargs="?", const="")
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--times", action="store_true")
    parser.add_argument("-v", "--verbose", action="store_true")
    parser.add_argument("words", nargs="*")
    options = parser.parse_intermixed_args()
    options.jobs = len(os.sched_getaffinity(0))
    options.records = Path(os.environ.get("GPUMEM_TEST_RECORDS") or SOURCE / "build").resolve()
    names = [stage.name for stage in (*stages.TEST, *stages.MORE)]
    if options.only is not None and options.only not in names:
        wrong(f"there is no stage '{options.only}': {', '.join(names)}")
    if options.all + options.long + (options.only is not None) > 1:
        wrong("--all, --only and --long are different things")
    parts = {part.name for part in stages.PARTS}
    patterns = [word for word in options.words if not options.long or word not in parts]
    options.long = [word for word in options.words if word in parts] if options.long else None
    if options.long == [] and patterns:
        wrong(f"there is no part '{patterns[0]}' (./dev test --long --list)")
    if len(patterns) > 1:
        wrong(f"'{patterns[1]}' is a second regular expression")
    options.pattern = patterns[0] if patterns else ""
    try:
        re.compile(options.pattern)
    except re.error as error:
        wrong(f"'{options.pattern}' is no regular expression: {error}")
    return options


def wrong(what):
    print(f"dev: test: {what} (./dev test --help)", file=sys.stderr)
    sys.exit(2)


def packages_of(options):
    """What is to be installed: a name of tools/dev/packages.sh."""
    if options.list:
        return "nothing"
    wanted = {stage.packages for group in chosen_stages(options) for stage in group}
    return wanted.pop() if len(wanted) == 1 else "all"


def show_times(options):
    folders = sorted(SOURCE.glob("build*"))
    for line in times.write(options.records / "times.json", folders, options.records / "times.txt"):
        print(line)


def run_session(options):
    begin = time.monotonic()
    with screens.logged(options.records / "tests.log") as log:
        screen = screens.Screen(log, options.verbose)
        session = Session(options, screen)
        for group in chosen_stages(options):
            since = time.monotonic()
            session.run_together(group)
            if len(group) == 1 and not options.pattern:
                kind = "--long" if options.long is not None else "--only"
                session.steps.append((f"{kind} {group[0].name}", time.monotonic() - since))
        if not options.pattern and options.long is None and not options.only:
            session.steps.append((f"./dev test{' --all' if options.all else ''}", time.monotonic() - begin))
        measured = [outcome for outcome in session.outcomes if not outcome.is_step and outcome.seconds]
        times.keep(options.records / "times.json", measured, session.steps)
        return summary.sum_up(screen, session.outcomes or [run.nothing_matches(options.pattern)])


def main():
    options = parse()
    if options.packages:
        print(packages_of(options))
        return 0
    if options.list:
        print("\n".join(list_of(options)))
        return 0
    alone = options.times and not (options.all or options.only or options.long is not None or options.pattern)
    status = 0
    if not alone or not (options.records / "times.json").exists():
        run.enter_guard()
        status = run_session(options)
    if options.times:
        show_times(options)
    return status


if __name__ == "__main__":
    sys.exit(main())
