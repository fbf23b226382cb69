"""The tests whose reach is measured, and how one of them is run: as tests/runner does it.

Parity is replayed by chapters (what a scenario's name begins with), each a test of its own."""
import os
import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parents[1]
sys.path.insert(0, str(SOURCE / "tests" / "runner"))
import run as runner  # noqa: E402

FOLDERS = ["unit", "fault", "conformance", "programs", "cli"]
SCENARIOS = SOURCE / "tests" / "parity" / "scenarios"


def chapters():
    rows = "".join(path.read_text() for path in SCENARIOS.glob("*.c"))
    return sorted(set(re.findall(r'\{(?:\.name = )?"([\w-]+)/[\w/-]+", ', rows)))


def tests_of(build, pattern=""):
    """(name, command) of each test whose name matches."""
    found = runner.discover(build, FOLDERS)
    found += [(f"parity/{chapter}", [sys.executable, str(HERE / "replay.py"), str(build), chapter])
              for chapter in chapters()]
    return [test for test in found if re.search(pattern, test[0])]


def target_of(command, build):
    """What ninja calls the program of a test; None for a script, which runs what every build has."""
    program = Path(command[0])
    return str(program.relative_to(build)) if program.is_relative_to(build) else None


class Running:
    """Runs tests of one build, several at a time."""

    def __init__(self, build):
        self.environment = runner.make_environment(build, "softgpu", "off", False)
        self.clock = runner.Clock(runner.LOAD, len(os.sched_getaffinity(0)))

    def run(self, name, command, limit, **more):
        """What the runner makes of it: an outcome with its failures, seconds and output."""
        return runner.run_one(name, command, limit, dict(self.environment, **more), self.clock)
