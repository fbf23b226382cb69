#!/usr/bin/env python3
"""Computes which functions of softgpu are real, instead of believing a list.

A function is real when a conformance test of it passes, and fails once every call of that function
answers success without doing anything (SOFTGPU_FAULT==function:*:SUCCESS:skip). The harness overlooks
bad calls that are no longer refused, so that only a missing effect counts. Functions that answer an
error to whatever is asked for (SG_REFUSES in entry/rules.def) must never be seen to succeed, and those
whose effect no program can see (entry/unobservable.def) are listed as such.

    prove.py            works the proofs out and writes src/softgpu/entry/coverage.def
    prove.py --check    tries the proofs that stand there; fails when one is none, and when an
                        implemented function has none
    prove.py --list     says for each implemented function what was found

A proof is PROGRAM:TEST, preceded by `ptds ` where it was found with GPUMEM_TWIN=ptds.
Standard output is TAP for --check.
"""
import argparse
import collections
import concurrent.futures
import ctypes
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
ENTRY = SOURCE / "src" / "softgpu" / "entry"
COVERAGE = ENTRY / "coverage.def"
FUNCTIONS = SOURCE / "include" / "gpumem" / "functions.def"
ROW = re.compile(r"^CU_FN\((\w+), (\w+), (\d+), (PLAIN|PTDS|PTSZ),", re.M)
PROVED = re.compile(r'^SG_PROVED\((\w+), "(ptds )?([^:"]+):([^"]+)"\)$', re.M)
# Not from the beginning of a line: a failed teardown's words have no end of line of their own.
FAILED = re.compile(r"\[\s+(?:FAILED|ERROR)\s+\] (\S+)$", re.M)
OK = re.compile(r"\[\s+OK\s+\] (\S+)$", re.M)
RUN = re.compile(r"\[ RUN\s+\] (\S+)$", re.M)
WHOLE_SECONDS = 60
# A skipped call may leave a test waiting for what never comes. That is a failure, and a slow one: it
# is cut short after a multiple of the time that the test takes by itself.
PATIENCE = 5
LEAST_SECONDS = 2
REFUSALS = re.compile("refus|argument|must|cannot|can_not|bad|wrong|needs|not_|first_abi|null")
# How many further tests are tried for one that fails at once, where one was found that waits.
BETTER = 4
# A test that fails by luck of timing is a poor proof: it must fail so often in a row to be chosen.
TRIES_TO_CHOOSE = 10
# It may still meet a machine where the skipped call is not missed each time: a proof holds when one of
# so many tries notices. One that never notices fails whatever the number.
TRIES_TO_HOLD = 3
REFUSED, UNPROVED, REAL = 2, 3, 1

Proof = collections.namedtuple("Proof", "twin program test")


def proof_text(proof):
    return f"{'ptds ' if proof.twin else ''}{proof.program}:{proof.test}"


class Control(ctypes.Structure):
    """The head of softgpu_control up to function_state."""
    _fields_ = [("size", ctypes.c_size_t)] + [
        (name, ctypes.c_void_p) for name in
        ("fault_arm", "fault_disarm", "call_count", "state_dump", "free_text", "leak_report",
         "schedule_set", "function_state")]


def function_states(library):
    """Exported name -> state, as the built library says."""
    # A process of its own would be cleaner; but nothing is called here that starts anything.
    engine = ctypes.CDLL(str(library))
    engine.softgpu_get_control.restype = ctypes.POINTER(Control)
    control = engine.softgpu_get_control(1).contents
    ask = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)(control.function_state)
    symbols = [match.group(1) for match in ROW.finditer(FUNCTIONS.read_text())]
    return {symbol: ask(symbol.encode(), None) for symbol in symbols}


def unobservable():
    text = (ENTRY / "unobservable.def").read_text()
    return set(re.findall(r"^SG_UNOBSERVABLE\((\w+),", text, re.M))


def wrong_successes(test, refused):
    """Functions listed as refused that the test saw succeed."""
    return sorted(test.called & refused)


def kinds():
    return {match.group(1): match.group(4) for match in ROW.finditer(FUNCTIONS.read_text())}


class Runner:
    def __init__(self, build):
        self.folder = build / "tests" / "conformance"
        base = {k: v for k, v in os.environ.items() if not k.startswith(("SOFTGPU_", "CMOCKA_"))}
        base.update(GPUMEM_DRIVER="softgpu")
        base.pop("GPUMEM_TEST", None)
        base.pop("GPUMEM_TWIN", None)
        self.base = base

    def programs(self):
        return sorted(p.name for p in self.folder.glob("test_*")
                      if p.is_file() and os.access(p, os.X_OK))

    def run(self, program, twin=False, test=None, skip=None, trace=None, seconds=WHOLE_SECONDS):
        """(exit status or None for a time-out, output)."""
        environment = dict(self.base)
        if twin:
            environment["GPUMEM_TWIN"] = "ptds"
        if test:
            environment["GPUMEM_TEST"] = test
        if skip:
            environment["SOFTGPU_FAULT"] = f"={skip}:*:SUCCESS:skip"
        if trace:
            environment["SOFTGPU_TRACE"] = trace
        # A test that fails half way leaves its files: in a folder that goes with it.
        with tempfile.TemporaryFile() as output, tempfile.TemporaryDirectory() as folder:
            environment["TMPDIR"] = folder
            process = subprocess.Popen(
                [str(self.folder / program)], env=environment, stdin=subprocess.DEVNULL,
                stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
            try:
                status = process.wait(timeout=seconds)
            except subprocess.TimeoutExpired:
                status = None
            finally:
                # Children that the program left behind are of its session.
                try:
                    os.killpg(process.pid, 9)
                except ProcessLookupError:
                    pass
                process.wait()
            output.seek(0)
            return status, output.read().decode(errors="replace")


Test = collections.namedtuple("Test", "proof called seconds")


def look(runner, program, twin):
    """What a program's tests call with success when nothing is skipped, and how long they take."""
    status, output = runner.run(program, twin)
    if status != 0:
        return [], f"{'ptds ' if twin else ''}{program} does not pass by itself"
    tests = []
    for test in OK.findall(output):
        with tempfile.NamedTemporaryFile(prefix="gpumem-trace-") as trace:
            start = time.monotonic()
            runner.run(program, twin, test=test, trace=trace.name)
            seconds = time.monotonic() - start
            called = {line.split()[2].split("(")[0] for line in trace.read().decode().splitlines()
                      if line.endswith(" CUDA_SUCCESS")}
        tests.append(Test(Proof(twin, program, test), called, seconds))
    return tests, None


FAILS, WAITS, HOLDS_NOT = "fails", "waits", "passes"


def try_skip(runner, symbol, proof, seconds, tried=None):
    """What the test does when the function is skipped. That it did not begin is nothing, but for the
    functions that the beginning itself is a test of. `tried` gets what was seen."""
    status, output = runner.run(proof.program, proof.twin, test=proof.test, skip=symbol,
                                seconds=max(LEAST_SECONDS, PATIENCE * seconds))
    if tried is not None:
        tried.append((status, output))
    begun = proof.test in RUN.findall(output)
    if status == 0:
        return HOLDS_NOT
    if status is None:
        return WAITS if begun else HOLDS_NOT
    if status < 0:
        return FAILS if begun else HOLDS_NOT
    failed = proof.test in FAILED.findall(output) or "GROUP SETUP" in output
    return FAILS if failed else HOLDS_NOT


def steadily(runner, symbol, proof, seconds):
    """What the test does each time that the function is skipped, or HOLDS_NOT."""
    kind = try_skip(runner, symbol, proof, seconds)
    # One that waits is slow to try, and is not chosen where one that fails is found.
    for _ in range(TRIES_TO_CHOOSE - 1 if kind == FAILS else 1):
        if try_skip(runner, symbol, proof, seconds) != kind:
            return HOLDS_NOT
    return kind


def find(runner, symbol, candidates):
    """The first proof among the candidates: those named like the function first, then those that call
    few functions, and last those that by their name are about refusals. One that fails is better than
    one that waits."""
    words = re.sub(r"(_v\d+)?(_pt[ds]z?s?)?$", "", symbol)
    words = {w.lower() for w in re.findall(r"[A-Z][a-z]+", words) if len(w) > 3}

    def order(test):
        about = sum(w in f"{test.proof.program} {test.proof.test}" for w in words)
        return bool(REFUSALS.search(test.proof.test)), -about, len(test.called), test.proof
    waiting, tries = None, 0
    for test in sorted(candidates, key=order):
        kind = steadily(runner, symbol, test.proof, test.seconds)
        if kind == FAILS:
            return test.proof
        if kind == WAITS:
            waiting = waiting or test.proof
        tries += waiting is not None
        if tries > BETTER:
            break
    return waiting


def gather(runner, pool):
    """Every test there is, and complaints."""
    jobs = [(program, twin) for program in runner.programs() for twin in (False, True)]
    found, complaints = [], []
    for tests, complaint in pool.map(lambda job: look(runner, *job), jobs):
        if complaint:
            complaints.append(complaint)
        found += tests
    return found, complaints


def read_coverage():
    return {m.group(1): Proof(bool(m.group(2)), m.group(3), m.group(4))
            for m in PROVED.finditer(COVERAGE.read_text())}


def write_coverage(proofs):
    head = COVERAGE.read_text().split("*/", 1)[0] + "*/\n/* clang-format off */\n"
    rows = "".join(f'SG_PROVED({symbol}, "{proof_text(proofs[symbol])}")\n'
                   for symbol in sorted(proofs))
    COVERAGE.write_text(head + rows + "/* clang-format on */\n#undef SG_PROVED\n")


def work_out(runner, implemented, refused, pool, known):
    """Proofs for all that can be proved. Those already known are tried first."""
    tests, complaints = gather(runner, pool)
    for test in tests:
        complaints += [f"{symbol} is listed as refused and succeeds in {proof_text(test.proof)}"
                       for symbol in wrong_successes(test, refused)]
    callers = collections.defaultdict(list)
    by_proof = {test.proof: test for test in tests}
    for test in tests:
        for symbol in test.called:
            callers[symbol].append(test)

    def prove(symbol):
        old = by_proof.get(known.get(symbol))
        if old and steadily(runner, symbol, old.proof, old.seconds) == FAILS:
            return old.proof
        return find(runner, symbol, callers[symbol])
    found = dict(zip(implemented, pool.map(prove, implemented)))
    return {s: p for s, p in found.items() if p}, complaints


def explain(by_itself, runs):
    """Why a proof does not hold: what the test did by itself, or with the function skipped."""
    for status, output in runs:
        print(f"#   {'by itself' if by_itself else 'skipped'}: exit status {status}")
        for line in output.splitlines()[-20:]:
            print(f"#     {line}")


def check(runner, implemented, pool):
    """TAP: one line for each proof, and one for functions without proof and proofs without function."""
    known = read_coverage()
    missing = sorted(set(implemented) - set(known))
    foreign = sorted(set(known) - set(implemented))
    wanted = sorted(set(known.values()))

    said = collections.defaultdict(list)

    def passes(proof):
        start = time.monotonic()
        status, output = runner.run(proof.program, proof.twin, test=proof.test)
        good = status == 0 and proof.test in OK.findall(output)
        if not good:
            said[proof].append((status, output))
        return time.monotonic() - start if good else None
    seconds = dict(zip(wanted, pool.map(passes, wanted)))
    symbols = sorted(set(known) & set(implemented))

    def holds(symbol):
        took = seconds[known[symbol]]
        return took is not None and any(
            try_skip(runner, symbol, known[symbol], took, said[symbol]) != HOLDS_NOT
            for _ in range(TRIES_TO_HOLD))
    true = list(pool.map(holds, symbols))

    print(f"1..{len(symbols) + 2}")
    number = 0
    for symbol, proved in zip(symbols, true):
        number += 1
        print(f"{'ok' if proved else 'not ok'} {number} - {symbol}: {proof_text(known[symbol])}")
        if not proved:
            explain(seconds[known[symbol]] is None, said[symbol] or said[known[symbol]])
    print(f"{'not ok' if missing else 'ok'} {number + 1} - every implemented function has a proof")
    for symbol in missing:
        print(f"#   unproved: {symbol}")
    print(f"{'not ok' if foreign else 'ok'} {number + 2} - every proof is of an implemented function")
    for symbol in foreign:
        print(f"#   not implemented: {symbol}")
    good = not missing and not foreign and all(true)
    if not good:
        print("# tests/coverage/prove.py, run on a finished build, writes the proofs anew")
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--check", action="store_true", help="try the proofs of coverage.def")
    mode.add_argument("--list", action="store_true", help="say what was found, write nothing")
    parser.add_argument("--build", type=Path, default=SOURCE / "build", help="the build folder")
    parser.add_argument("-j", type=int, default=2, help="programs at a time (default 2)")
    arguments = parser.parse_args()

    library = arguments.build / "lib" / "gpumem" / "softgpu" / "libsoftgpu.so.0"
    if not library.exists():
        sys.exit(f"prove.py: there is no {library}: build first, or give --build")
    runner = Runner(arguments.build.resolve())
    states = function_states(library.resolve())
    hidden = unobservable()
    implemented = sorted(s for s, state in states.items() if state != REFUSED and s not in hidden)
    refused = {s for s, state in states.items() if state == REFUSED}
    with concurrent.futures.ThreadPoolExecutor(arguments.j) as pool:
        if arguments.check:
            return 0 if check(runner, implemented, pool) else 1
        proofs, complaints = work_out(runner, implemented, refused, pool, read_coverage())
    for complaint in complaints:
        print(f"note: {complaint}")
    kind = kinds()
    unproved = [s for s in implemented if s not in proofs]
    for symbol in implemented:
        if arguments.list or symbol in unproved:
            print(f"{symbol}: {proof_text(proofs[symbol]) if symbol in proofs else 'unproved'}")
    if not arguments.list:
        write_coverage(proofs)
    twins = sum(kind[s] != "PLAIN" for s in proofs)
    print(f"{len(proofs)} of {len(implemented)} implemented functions proved ({twins} twins), "
          f"{len(hidden)} have no effect to be seen, {len(refused)} refused")
    return 1 if unproved or complaints else 0


if __name__ == "__main__":
    sys.exit(main())
