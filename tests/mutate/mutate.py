#!/usr/bin/env python3
"""Plants faults in src/, one at a time, and says which ones the tests find.

    mutate.py N [--seed S]     N one-place changes, chosen by the seed over all folders of src/
    mutate.py --again LIST     those of a list once more, after the tests or the sources have changed
    mutate.py --score LIST     only what a list says

The tests that run the changed line, as ./dev coverage measured it, look for the fault: those that are quick
first, until one fails. The results go into a list (--list FILE, else one in build-mutate/, which is begun anew
when src/ or tests/ have changed), and the same command goes on where it was ended. faults.py says what they mean,
changes.py which changes there are.

Exit status: 0 when each fault has its result and, with --again, all that were found before are found; 1 when one
is not; 3 when the time of this batch was over first."""
import argparse
import sys
import time
from pathlib import Path

import faults
import hunt
import workshop

TIME_OVER = 3


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("count", nargs="?", type=int, metavar="N")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--again", type=Path, metavar="LIST")
    parser.add_argument("--found", action="store_true", help="with --again: only those that were found")
    parser.add_argument("--score", type=Path, metavar="LIST")
    parser.add_argument("--list", type=Path, help="the file for the results")
    parser.add_argument("--minutes", type=float, default=60, help="for this batch (default: 60)")
    parser.add_argument("--seconds", type=float, default=300, help="for each fault, at most (default: 300)")
    parser.add_argument("--jobs", type=int, default=workshop.jobs_here())
    parser.add_argument("--coverage", type=Path, default=workshop.SOURCE / "build-coverage")
    parser.add_argument("--folder", type=Path, default=workshop.SOURCE / "build-mutate")
    options = parser.parse_args()
    if sum(bool(given) for given in (options.count, options.again, options.score)) != 1:
        parser.error("one of N, --again LIST and --score LIST")
    if not options.list:
        # Of this state of things: what was found in another has to be found again.
        name = f"again-{options.again.stem}" if options.again else f"faults-{options.count}-{options.seed}"
        options.list = options.folder / f"{name}-{workshop.checksum('src', 'tests')[:12]}.jsonl"
    return options


def lost(old, new):
    """Faults that were found, and are not any more; those whose line is gone cannot be."""
    return [fault for fault, row in old.items() if row["result"] == faults.FOUND and fault in new
            and new[fault]["result"] not in (faults.FOUND, faults.GONE)]


def work(options, record, old, end):
    """Whether every fault has its result."""
    project = workshop.Workshop(options.folder.resolve(), options.coverage.resolve())
    project.prepare(options.jobs)
    looking = hunt.Hunt(project, record, options.jobs, options.seconds)
    if options.again:
        complete = looking.again(old, end)
    else:
        complete = looking.run(options.count, options.seed, end)
    return looking.check_finders() and complete


def main():
    options = parse()
    if options.score:
        print(faults.score(faults.Record(options.score).counted()))
        return 0
    end = time.monotonic() + 60 * options.minutes
    workshop.suites.enter_guard()
    old = faults.Record(options.again).counted() if options.again else {}
    if options.found:
        old = {fault: row for fault, row in old.items() if row["result"] == faults.FOUND}
    record = faults.Record(options.list)
    complete = work(options, record, old, end)
    rows = record.counted()
    print(f"\n{faults.score(rows)}")
    for fault in lost(old, record.rows):
        print(f"found before and not now: {fault.source}: {fault.text.strip()}")
    print(f"{len(rows)} faults, {sum(row['result'] == faults.FOUND for row in rows.values())} found; {options.list}")
    if not complete:
        print("the time is over: the same command goes on")
        return TIME_OVER
    return 1 if lost(old, record.rows) else 0


if __name__ == "__main__":
    sys.exit(main())
