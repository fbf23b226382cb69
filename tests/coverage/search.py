"""Looks for the conformance test that proves a function: among those whose source names it, then among all
others that call it."""
import re
import threading

import trial

CONFORMANCE = trial.SOURCE / "tests" / "conformance"
TEST = re.compile(r"^TEST(?:_WITH|_WHERE|_IS)?\((\w+)", re.M)
REFUSALS = re.compile("refus|argument|must|cannot|can_not|bad|wrong|needs|not_|first_abi|null")
# How many further tests are tried for one that fails at once, where one was found that waits.
BETTER = 4


class Kept:
    """What a function of a key gave, computed once, whoever asks; different keys at the same time."""

    def __init__(self, function):
        self.function = function
        self.lock = threading.Lock()
        self.locks = {}
        self.values = {}

    def __call__(self, *key):
        with self.lock:
            lock = self.locks.setdefault(key, threading.Lock())
        with lock:
            if key not in self.values:
                self.values[key] = self.function(*key)
            return self.values[key]


def bodies(source):
    """Test -> its text, of a file's text."""
    starts = list(TEST.finditer(source))
    ends = [start.start() for start in starts[1:]] + [len(source)]
    return {start.group(1): source[start.start():end] for start, end in zip(starts, ends)}


class Search:
    def __init__(self, runner):
        self.runner = runner
        self.tests = runner.tests()
        self.sources = {path.stem: path.read_text() for path in CONFORMANCE.glob("test_*.c")}
        self.traced = Kept(runner.traced)

    def named(self, symbol):
        """Tests to try, best first: those that name the function, then the others of their files."""
        word, found = word_of(symbol), []
        for file, source in self.sources.items():
            if word.search(source) and file in self.tests:
                texts = bodies(source)
                found += [(not word.search(texts.get(test, "")), file, test) for test in self.tests[file]]
        return sorted(found, key=lambda row: (row[0], *rank(symbol, row[1], row[2])))

    def calling(self, symbol, twin):
        """Of files that do not name the function: their tests, if any calls it all the same."""
        for file in sorted(self.tests):
            if not word_of(symbol).search(self.sources.get(file, "")):
                _, called, _ = self.traced(file, twin)
                if symbol in called:
                    yield from ((False, file, test) for test in self.tests[file])

    def find(self, symbol, twin):
        """The first proof among the tests that call the function: those named like it first, and last those that
        by their name are about refusals. One that fails is better than one that waits."""
        waiting, tries = None, 0
        for candidates in (self.named(symbol), self.calling(symbol, twin)):
            for _, file, test in candidates:
                passes, called, seconds = self.traced(file, twin, test)
                if not passes or symbol not in called:
                    continue
                proof = trial.Proof(twin, file, test)
                kind = trial.steadily(self.runner, symbol, proof, seconds)
                if kind == trial.FAILS:
                    return proof
                if kind == trial.WAITS:
                    waiting = waiting or proof
                tries += waiting is not None
                if tries > BETTER:
                    return waiting
            if waiting:
                return waiting
        return None

    def successes(self, refused, pool):
        """Complaints: functions that are listed as refused, and the files whose tests saw them succeed."""
        jobs = [(file, twin) for file in sorted(self.tests) for twin in (False, True)]
        complaints = []
        for (file, twin), (passes, called, _) in zip(jobs, pool.map(lambda job: self.traced(*job), jobs)):
            name = f"{'ptds ' if twin else ''}{file}"
            if not passes:
                complaints.append(f"{name} does not pass by itself")
            complaints += [f"{symbol} is listed as refused and succeeds in {name}"
                           for symbol in sorted(called & refused)]
        return complaints


def word_of(symbol):
    """How tests write the function: a twin is called under the name of what it is the twin of."""
    return re.compile(rf"\b{re.sub('_pt[ds][sz]$', '', symbol)}\b")


def rank(symbol, file, test):
    words = re.sub(r"(_v\d+)?(_pt[ds]z?s?)?$", "", symbol)
    words = {word.lower() for word in re.findall(r"[A-Z][a-z]+", words) if len(word) > 3}
    about = sum(word in f"{file} {test}" for word in words)
    return bool(REFUSALS.search(test)), -about, file, test
