"""The tests whose reach is measured, and how one of them is run: as tests/runner does it.

Parity is replayed by chapters (what a scenario's name begins with), each a test of its own."""
import os
import re
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parents[1]
sys.path.insert(0, str(SOURCE / "tests" / "runner"))
import catalogue  # noqa: E402
import guard  # noqa: E402
from clock import LOAD, Clock  # noqa: E402
from launch import Test, run_one  # noqa: E402

FOLDERS = ["unit", "fault", "conformance", "programs", "cli"]
PARITY = SOURCE / "tests" / "parity"
# Its chapter; scenarios of one macro have one declaration.
SCENARIO = r'\bSCENARIO(?:_IS|_IN)?\([^,"]+,\s*"([\w-]+)/'


def chapters():
    rows = "".join(path.read_text() for path in (PARITY / "scenarios").glob("*.c"))
    found = sorted(set(re.findall(SCENARIO, rows)))
    if not found:
        raise SystemExit("tests/parity/scenarios: no SCENARIO was found")
    return found


def replay(build, chapter):
    """The command for one chapter. What softgpu answers stays in a folder of the build."""
    runs = build / "chapters" / chapter
    return sys.executable, str(PARITY / "replay.py"), "--build", str(build), "--jobs", "2", "--runs", str(runs), \
        "--scenario", f"{chapter}/"


def tests_of(build, pattern=""):
    """(name, command) of each test whose name matches."""
    found = catalogue.discover(build, FOLDERS)
    found += [(f"parity/{chapter}", replay(build, chapter)) for chapter in chapters()]
    return [test for test in found if re.search(pattern, test[0])]


def slow_first(tests):
    """A long test that starts last would run alone."""
    seconds = catalogue.fallback_times()
    return sorted(tests, key=lambda test: -seconds.get(test[0], catalogue.UNKNOWN))


def target_of(command, build):
    """What ninja calls the program of a test; None for a script, which runs what every build has."""
    program = Path(command[0])
    return str(program.relative_to(build)) if program.is_relative_to(build) else None


class Running:
    """Runs tests of one build."""

    def __init__(self, build):
        self.environment = catalogue.environment_of(build, "off", False)
        self.clock = Clock(LOAD, len(os.sched_getaffinity(0)))
        for chapter in chapters():
            (build / "chapters" / chapter).mkdir(parents=True, exist_ok=True)

    def run(self, name, command, limit, **more):
        """What the runner makes of it: an outcome with its failures, seconds and output."""
        return run_one(Test(name, command, limit, dict(self.environment, **more)), self.clock)


def enter_guard():
    """Goes on in a process that is ended with this one, with a folder for all temporary files."""
    folder = tempfile.mkdtemp(prefix="gpumem-tests-")
    guard.enter(folder)
    tempfile.tempdir = folder
