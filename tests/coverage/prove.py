#!/usr/bin/env python3
"""Computes which functions of softgpu are real, instead of believing a list.

A function is real when a conformance test of it passes, and fails once every call of that function
answers success without doing anything (SOFTGPU_FAULT==function:*:SUCCESS:skip). The harness overlooks
bad calls that are no longer refused, so that only a missing effect counts. Functions that answer an
error to whatever is asked for (SG_REFUSES in entry/rules.def) must never be seen to succeed, and those
whose effect no program can see (entry/unobservable.def) are listed as such.

    prove.py [NAME...]  tries the proofs of src/softgpu/entry/coverage.def, of all functions or of those named,
                        looks for others where there is none that holds, and writes them there. With names
                        it takes seconds; without, a minute or two, and says what succeeds although it is
                        listed as refused. With --anew no proof is believed, and the whole takes an hour
    prove.py --check    tries the proofs that stand there; fails when one is none, and when an
                        implemented function has none
    prove.py --list     says for each implemented function what was found, and writes nothing

A proof is FILE:TEST of tests/conformance, preceded by `ptds ` where it was found with GPUMEM_TWIN=ptds.
Standard output is TAP for --check.
"""
import argparse
import collections
import concurrent.futures
import ctypes
import os
import re
import sys
from pathlib import Path

import trial
from search import Search

ENTRY = trial.SOURCE / "src" / "softgpu" / "entry"
COVERAGE = ENTRY / "coverage.def"
FUNCTIONS = trial.SOURCE / "include" / "gpumem" / "functions.def"
ROW = re.compile(r"^CU_FN\((\w+), (\w+), (\d+), (PLAIN|PTDS|PTSZ),", re.M)
PROVED = re.compile(r'^SG_PROVED\((\w+), "(ptds )?([^:"]+):([^"]+)"\)$', re.M)
# A proof may meet a machine where the skipped call is not missed each time: it holds when one of so many
# tries notices. One that never notices fails whatever the number.
TRIES_TO_HOLD = 3
REFUSED, UNPROVED, REAL = 2, 3, 1


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
    return {symbol: ask(symbol.encode(), None) for symbol in kinds()}


def unobservable():
    text = (ENTRY / "unobservable.def").read_text()
    return set(re.findall(r"^SG_UNOBSERVABLE\((\w+),", text, re.M))


def kinds():
    return {match.group(1): match.group(4) for match in ROW.finditer(FUNCTIONS.read_text())}


def read_coverage():
    return {m.group(1): trial.Proof(bool(m.group(2)), m.group(3), m.group(4))
            for m in PROVED.finditer(COVERAGE.read_text())}


def write_coverage(proofs):
    head = COVERAGE.read_text().split("*/", 1)[0] + "*/\n/* clang-format off */\n"
    rows = "".join(f'SG_PROVED({symbol}, "{trial.text_of(proofs[symbol])}")\n'
                   for symbol in sorted(proofs))
    COVERAGE.write_text(head + rows + "/* clang-format on */\n#undef SG_PROVED\n")


def explain(by_itself, runs):
    """Why a proof does not hold: what the test did by itself, or with the function skipped."""
    for status, output in runs:
        print(f"#   {'by itself' if by_itself else 'skipped'}: exit status {status}")
        for line in output.splitlines()[-20:]:
            print(f"#     {line}")


class Trials:
    """Which proofs hold: each test is run by itself once, and with the function skipped until it notices."""

    def __init__(self, runner, known, pool):
        self.runner = runner
        self.known = known
        self.said = collections.defaultdict(list)
        proofs = sorted(set(known.values()))
        self.seconds = {}
        for proof, (seconds, seen) in zip(proofs, pool.map(runner.passes, proofs)):
            self.seconds[proof] = seconds
            if seconds is None:
                self.said[proof].append(seen)

    def holds(self, symbol):
        proof = self.known[symbol]
        took = self.seconds[proof]
        return took is not None and any(
            trial.try_skip(self.runner, symbol, proof, took, self.said[symbol]) != trial.HOLDS_NOT
            for _ in range(TRIES_TO_HOLD))

    def explain(self, symbol):
        proof = self.known[symbol]
        explain(self.seconds[proof] is None, self.said[symbol] or self.said[proof])


def prove(search, symbols, known, pool):
    """Function -> proof, of those that can be proved. What is known is tried first."""
    kind = kinds()
    trials = Trials(search.runner, {symbol: known[symbol] for symbol in symbols if symbol in known}, pool)

    def proof_of(symbol):
        if symbol in known and trials.holds(symbol):
            return known[symbol]
        return search.find(symbol, kind[symbol] != "PLAIN")
    found = dict(zip(symbols, pool.map(proof_of, symbols)))
    return {symbol: proof for symbol, proof in found.items() if proof}


def check(runner, implemented, pool):
    """TAP: one line for each proof, and one for functions without proof and proofs without function."""
    known = read_coverage()
    missing = sorted(set(implemented) - set(known))
    foreign = sorted(set(known) - set(implemented))
    symbols = sorted(set(known) & set(implemented))
    trials = Trials(runner, known, pool)
    true = list(pool.map(trials.holds, symbols))

    print(f"1..{len(symbols) + 2}")
    number = 0
    for symbol, proved in zip(symbols, true):
        number += 1
        print(f"{'ok' if proved else 'not ok'} {number} - {symbol}: {trial.text_of(known[symbol])}")
        if not proved:
            trials.explain(symbol)
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


def work_out(runner, arguments, states, pool):
    """Looks for proofs, writes them, says what was found. True when each function asked for has one."""
    hidden = unobservable()
    implemented = sorted(s for s, state in states.items() if state != REFUSED and s not in hidden)
    refused = {s for s, state in states.items() if state == REFUSED}
    asked = arguments.names or implemented
    strange = sorted(set(asked) - set(implemented))
    if strange:
        sys.exit(f"prove.py: not implemented, or without an effect that can be seen: {' '.join(strange)}")
    known = {symbol: proof for symbol, proof in read_coverage().items() if symbol in implemented}
    search = Search(runner)
    proofs = prove(search, asked, {} if arguments.anew else known, pool)
    if not arguments.names:
        for complaint in search.successes(refused, pool):
            print(f"note: {complaint}")
    for symbol in asked:
        if arguments.list or arguments.names or symbol not in proofs:
            print(f"{symbol}: {trial.text_of(proofs[symbol]) if symbol in proofs else 'unproved'}")
    if not arguments.list:
        write_coverage({**{s: p for s, p in known.items() if s not in asked}, **proofs})
    kind = kinds()
    twins = sum(kind[symbol] != "PLAIN" for symbol in proofs)
    print(f"{len(proofs)} of {len(asked)} functions proved ({twins} twins)"
          + ("" if arguments.names else f", {len(hidden)} have no effect to be seen, {len(refused)} refused"))
    return len(proofs) == len(asked)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--check", action="store_true", help="try the proofs of coverage.def")
    mode.add_argument("--list", action="store_true", help="say what was found, write nothing")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these functions")
    parser.add_argument("--anew", action="store_true", help="believe no proof that is known")
    parser.add_argument("--build", type=Path, default=trial.SOURCE / "build", help="the build folder")
    # Some of them wait, for what a skipped call would have brought about.
    parser.add_argument("-j", type=int, default=3 * (os.cpu_count() or 1), help="tests at a time")
    arguments = parser.parse_args()

    library = arguments.build / "lib" / "gpumem" / "softgpu" / "libsoftgpu.so.0"
    if not library.exists():
        sys.exit(f"prove.py: there is no {library}: build first, or give --build")
    runner = trial.Runner(arguments.build.resolve())
    states = function_states(library.resolve())
    with concurrent.futures.ThreadPoolExecutor(arguments.j) as pool:
        if arguments.check:
            hidden = unobservable()
            return 0 if check(runner, [s for s, state in states.items() if state != REFUSED and s not in hidden],
                              pool) else 1
        return 0 if work_out(runner, arguments, states, pool) else 1


if __name__ == "__main__":
    sys.exit(main())
