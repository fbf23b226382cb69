"""gpumem as a project that faults are planted in: in a copy of the tree, with a build of its own, so that a run
that is killed leaves no fault in your sources.

Tests that only open the libraries need nothing but those. The others have the archives inside them, so that each
fault links their programs again: some of them have their turn early, the rest when the others found nothing."""
import collections
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import changes
import hunt

SOURCE = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tests" / "coverage"))
import suites  # noqa: E402
from lines import checksum  # noqa: E402,F401
from reach import Reach, Stale  # noqa: E402

# Quick to compile and to link, and optimised as the build is that coverage was measured in.
OPTIONS = ["-DCMAKE_BUILD_TYPE=Mutate", "-DCMAKE_C_FLAGS_MUTATE=-O1", "-DCMAKE_LINK_DEPENDS_NO_SHARED=ON",
           "-DGPUMEM_LANES_V4=OFF", "-DGPUMEM_BENCH=OFF"]
LIBRARIES = ["gpumem", "vkgdr", "softgpu", "softgpu_shim", "softgpu_audit"]
# In the build with counters a test takes so many times as long as here, or more: 2.7 to 19 times were seen.
COUNTERS_COST = 3
# The limit of a test: its time in the build with counters, times this, and not less than that.
PATIENCE, LEAST_SECONDS = 2, 5
# How many tests have the first turn, and how many programs are linked for the second; then twice as many.
FIRST_TESTS, FIRST_PROGRAMS = 16, 6
# A test named like the source goes before quicker ones, unless it takes longer than this.
NAMED_SECONDS = 5
# A script there runs programs that are not linked again for it.
AMONG_LINKED = re.compile(r"(unit|fault)/.*\.(py|sh)$")

Test = collections.namedtuple("Test", "name command target seconds")


def measured(coverage):
    """Which tests run what, measured now where that is not known of these sources."""
    try:
        return Reach(coverage)
    except Stale as reason:
        print(f"measuring what the tests run: {reason}", flush=True)
    # Tests that fail there are not asked about faults.
    subprocess.run([sys.executable, SOURCE / "tests/coverage/lines.py", "--build", coverage], check=False)
    return Reach(coverage)


class Workshop:
    def __init__(self, folder, coverage):
        self.tree, self.build_folder = folder / "tree", folder / "build"
        self.reach = measured(coverage)
        self.running = suites.Running(self.build_folder)
        self.tests = {name: Test(name, command, suites.target_of(command, self.build_folder), self.seconds(name))
                      for name, command in suites.tests_of(self.build_folder) if not AMONG_LINKED.match(name)}
        self.planted = set()

    def seconds(self, name):
        return self.reach.outcomes.get(name, {"seconds": 0})["seconds"]

    # ---- the copy and its build ----------------------------------------------------------------

    def prepare(self, jobs):
        self.copy_tree()
        subprocess.run(["cmake", "-S", self.tree, "-B", self.build_folder, "-G", "Ninja", *OPTIONS], check=True,
                       stdout=subprocess.DEVNULL)
        self.jobs = jobs
        if not self.ninja("all"):
            raise SystemExit("mutate: the copy of the tree does not build")

    def copy_tree(self):
        """Without the times of files: one that is mended has to look new to ninja."""
        listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=SOURCE,
                                check=True, stdout=subprocess.PIPE, text=True).stdout
        wanted = {name for name in listed.split("\0") if name and (SOURCE / name).is_file()}
        for name in wanted:
            old, new = SOURCE / name, self.tree / name
            if not new.exists() or old.read_bytes() != new.read_bytes():
                new.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(old, new)
        for path in list(self.tree.rglob("*")):
            if path.is_file() and str(path.relative_to(self.tree)) not in wanted:
                path.unlink()

    def ninja(self, *targets):
        done = subprocess.run(["ninja", "-C", self.build_folder, "-j", str(self.jobs), *targets], check=False,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return done.returncode == 0

    # ---- sources -------------------------------------------------------------------------------

    def sources(self):
        return sorted(source for source in self.reach.sources if source.endswith(".c"))

    def lines(self, source):
        return self.reach.lines(source)

    def read(self, source):
        return (SOURCE / source).read_text()

    def split(self, source):
        text = self.read(source)
        return text.split("\n"), changes.code_of(text).split("\n")

    def plant(self, source, text):
        self.planted.add(source)
        (self.tree / source).write_text(text)

    def mend(self, source):
        self.plant(source, self.read(source))

    def compiled(self, source):
        objects = [f"{thing}.o" for thing in self.reach.sources[source]["objects"]]
        if source in self.planted and not self.ninja(*objects):
            return None
        return [(self.build_folder / thing).read_bytes() for thing in objects]

    # ---- tests ---------------------------------------------------------------------------------

    def tests_named(self, names):
        return [self.tests[name] for name in sorted(names) if name in self.tests]

    def rounds(self, source, line):
        """Lists of tests: by turns those that open the libraries and those that are linked again, each time
        twice as many as before."""
        words = set(re.findall(r"[a-z]{4,}", Path(source).stem))

        def order(test):
            named = sum(word in test.name for word in words) if test.seconds <= NAMED_SECONDS else 0
            return -named, test.seconds, test.name
        tests = sorted(self.tests_named(self.reach.tests(source, line)), key=order)
        opening = [test for test in tests if not self.is_linked(test)]
        linked = {}
        for test in tests:
            if self.is_linked(test):
                linked.setdefault(test.target, []).append(test)
        programs, found, step = list(linked.values()), [], 1
        while opening or programs:
            found.append(opening[:step * FIRST_TESTS])
            found.append([test for part in programs[:step * FIRST_PROGRAMS] for test in part])
            opening, programs = opening[step * FIRST_TESTS:], programs[step * FIRST_PROGRAMS:]
            step *= 2
        return [part for part in found if part]

    @staticmethod
    def is_linked(test):
        """Whether its program has the archives in it."""
        return test.name.startswith(("unit/", "fault/")) and test.target is not None

    def build(self, tests):
        return self.ninja(*LIBRARIES, *sorted({test.target for test in tests if self.is_linked(test)}))

    def fails(self, test, seconds):
        if seconds < test.seconds / COUNTERS_COST:
            return None
        wanted = max(PATIENCE * test.seconds, LEAST_SECONDS)
        outcome = self.running.run(test.name, test.command, min(wanted, seconds))
        failure = outcome.failures[0] if outcome.failures else ""
        return None if failure.startswith(hunt.NO_END) and seconds < wanted else failure


def jobs_here():
    return len(os.sched_getaffinity(0))
