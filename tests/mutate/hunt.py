"""Plants faults one after the other and has the tests look for each.

The project is asked for everything that is its own business:

    sources(), lines(source), read(source), split(source)    what can be changed
    plant(source, text), mend(source)                        a source with a fault, and as it was
    compiled(source)                                         the machine code, or None
    rounds(source, line)                                     the tests that run the line, in the order of their turns
    build(tests)                                             whether the programs of these tests are made
    fails(test, seconds)                                     what failed, or "", or None where the time is too short
"""
import concurrent.futures
import time

import faults

# What the runner says of a test that did not end.
NO_END = "no end"


class Hunt:
    def __init__(self, project, record, jobs=2, seconds=300):
        self.project, self.record = project, record
        self.jobs, self.seconds = jobs, seconds

    def chosen(self, count, seed):
        """The faults of a seed, those of all folders by turns: how many are right is known when each was tried.
        What was drawn and is none makes place for the next."""
        folders = {}
        for source in self.project.sources():
            folders.setdefault(source.rpartition("/")[0], []).append(source)
        sizes = {folder: sum(len(self.project.lines(source)) for source in sources)
                 for folder, sources in folders.items()}
        given = faults.shares({folder: size for folder, size in sizes.items() if size}, count)
        drawn = {folder: faults.draws_of_folder(self.project, folder, folders[folder], seed) for folder in given}
        for turn in range(max(given.values(), default=0)):
            for folder in sorted(given):
                if turn < given[folder]:
                    yield drawn[folder]

    def next_of(self, drawn):
        """The next fault of a folder that is none of those dropped; whether it has its result already."""
        for fault in drawn:
            row = self.record.rows.get(fault)
            if row is None or row["result"] != faults.DROPPED:
                return fault, self.is_done(row)
        return None, True

    def is_done(self, row):
        """What was cut is tried again by a run that gives more time."""
        return row is not None and (row["result"] != faults.CUT or row["limit"] >= self.seconds)

    def run(self, count, seed, end):
        """Tries as many as the time allows. Whether all of them have their results."""
        for drawn in self.chosen(count, seed):
            while True:
                fault, done = self.next_of(drawn)
                if done:
                    break
                row = self.attempt(fault, end)
                if row is None:
                    return False
                if row["result"] != faults.DROPPED:
                    break
        return True

    def again(self, old, end):
        """The same faults as those of another list."""
        for fault in old:
            if not self.is_done(self.record.rows.get(fault)) and self.attempt(fault, end) is None:
                return False
        return True

    def attempt(self, fault, end):
        """The row of one fault; None when there was no time for it."""
        begin = time.monotonic()
        limit = min(begin + self.seconds, end)
        if begin >= end:
            return None
        result, by, ran = self.try_fault(fault, limit)
        if result == faults.CUT and limit == end:
            return None
        line = fault.number(self.project.read(fault.source))
        row = self.record.add(fault, line, result, by=by, tests=ran, limit=self.seconds,
                              seconds=round(time.monotonic() - begin, 1))
        if result != faults.DROPPED:
            print(f"{result:9} {fault.source}:{line}: {fault.change}"
                  f"{f' (by {by})' if by else ''}, {row['seconds']:.0f} s", flush=True)
        return row

    def try_fault(self, fault, limit):
        """(result, the test that found it, the number of tests that ran)."""
        project, text = self.project, self.project.read(fault.source)
        line = fault.number(text)
        if line is None:
            return faults.GONE, "", 0
        rounds = [[test for test in part if test.name not in self.record.unstable]
                  for part in project.rounds(fault.source, line)]
        before = project.compiled(fault.source)
        project.plant(fault.source, fault.planted(text))
        try:
            after = project.compiled(fault.source)
            if after is None or after == before:
                return faults.DROPPED, "", 0
            if not any(rounds):
                return faults.UNREACHED, "", 0
            return self.search(rounds, limit)
        finally:
            project.mend(fault.source)

    def search(self, rounds, limit):
        ran = 0
        for tests in rounds:
            if not self.project.build(tests):
                return faults.FOUND, "the build", ran
            by, count, all_ran = self.run_round(tests, limit)
            ran += count
            if by:
                return faults.FOUND, by, ran
            if not all_ran:
                return faults.CUT, "", ran
        return faults.SURVIVED, "", ran

    def run_round(self, tests, limit):
        """(who found it, how many ran, whether all did). No further test begins once one has found it."""
        found, ran = [], []

        def one(test):
            if found:
                return
            failure = self.failure(test, limit)
            if failure is not None:
                ran.append(test)
            if failure:
                found.append(test.name)
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            list(pool.map(one, tests))
        return (found[0] if found else ""), len(ran), len(ran) == len(tests)

    def failure(self, test, limit):
        """A failure that does not come again was the machine's. One that has no end is not waited for twice."""
        first = self.project.fails(test, limit - time.monotonic())
        if not first or first.startswith(NO_END):
            return first
        return self.project.fails(test, limit - time.monotonic())

    def check_finders(self):
        """Runs those tests that found something without any fault: one that fails all the same is trusted no
        more. Whether all can be."""
        names = {row["by"] for row in self.record.counted().values() if row["by"]} - {"the build"}
        tests = self.project.tests_named(names)
        self.project.build(tests)
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            failed = [test.name for test, what in
                      zip(tests, pool.map(lambda test: self.project.fails(test, self.seconds), tests)) if what]
        for name in failed:
            print(f"{name} fails without any fault: what it found does not count")
            self.record.distrust(name)
        return not failed
