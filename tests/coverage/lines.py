#!/usr/bin/env python3
"""Which lines and branches of src/ the tests run, by folder; and which test runs which line.

    lines.py [--build build-coverage] [--jobs N] [--out FILE] [--match RE | --table]

Builds with counters (cmake --preset coverage), and runs each test there. What its processes counted is kept by itself,
in BUILD/counters/<test>.zip, for reach.py; the sum of all goes into BUILD/lines.json and the table. --match runs
some tests again and keeps what is known of the others; --table only makes the table again.

A line counts as run when some test ran it, whether that test passes or not. Counts are lost of processes that are
killed. Branches are those of the compiler's optimisation level 1: a condition that became arithmetic is none."""
import argparse
import concurrent.futures
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import counters  # noqa: E402
import suites  # noqa: E402

SOURCE = suites.SOURCE
# Seconds for each test, with counters that all threads share, on a machine with nothing else to do.
LIMIT = 400
# What is kept of the output of a test that fails.
OUTPUT = 4000
# Processes of one gcov are slow to start, and few files for one would be many of them.
FILES_AT_ONCE = 100


def make(build, jobs):
    """Builds with counters. What is not shown of it is in BUILD/build.log."""
    print(f"building into {build.name}/ ...", flush=True)
    build.mkdir(exist_ok=True)
    with (build / "build.log").open("w") as log:
        for command in (["cmake", "--preset", "coverage", "-B", build], ["ninja", "-C", build, "-j", str(jobs)]):
            if subprocess.run(command, cwd=SOURCE, stdout=log, stderr=subprocess.STDOUT, check=False).returncode:
                raise SystemExit(f"lines.py: {' '.join(map(str, command))} failed, see {log.name}")


def pack(folder, build, archive):
    """Keeps those counters below `folder` that are not zero."""
    archive.parent.mkdir(parents=True, exist_ok=True)
    root = folder / build.relative_to("/")
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        for path in sorted(root.rglob("*.gcda")):
            data = path.read_bytes()
            if counters.counted(data):
                packed.writestr(str(path.relative_to(root)), data)


def run_counted(running, build, name, command):
    """Runs one test; what it counted is kept. Its row for outcomes.json."""
    with tempfile.TemporaryDirectory(prefix="counters-") as folder:
        outcome = running.run(name, command, LIMIT, GCOV_PREFIX=folder,
                              LD_PRELOAD=str(build / "tests/coverage/libcoverage_exit.so"))
        pack(Path(folder), build, build / "counters" / f"{name}.zip")
    row = {"passed": outcome.passed, "failures": outcome.failures, "skipped": len(outcome.skips),
           "seconds": round(outcome.seconds, 2)}
    return dict(row, output=outcome.output[-OUTPUT:]) if outcome.failures else row


def read_json(path, otherwise):
    return json.loads(path.read_text()) if path.exists() else otherwise


def run_tests(build, tests, jobs):
    """Runs them all, adding to outcomes.json."""
    path = build / "outcomes.json"
    there = {name for name, _ in suites.tests_of(build)}
    outcomes = {name: row for name, row in read_json(path, {}).items() if name in there}
    running, begin = suites.Running(build), time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        started = {pool.submit(run_counted, running, build, *test): test[0] for test in tests}
        for done, future in enumerate(concurrent.futures.as_completed(started), 1):
            name, row = started[future], future.result()
            outcomes[name] = row
            if row["failures"]:
                print(f"FAIL {name}: {'; '.join(row['failures'])}")
            if row["failures"] or done % 20 == 0 or done == len(tests):
                print(f"...  {done} of {len(tests)} tests, {time.monotonic() - begin:.0f} s", flush=True)
                path.write_text(json.dumps(outcomes, indent=0))
    path.write_text(json.dumps(outcomes, indent=0))
    return outcomes


def objects_of(build):
    """The compiler's note of each object of src/, as a path below the build folder, without its ending."""
    return sorted(str(path.relative_to(build))[:-len(".gcno")] for path in (build / "src").rglob("*.gcno"))


def stamps(build):
    return {thing: counters.stamp((build / f"{thing}.gcno").read_bytes()) for thing in objects_of(build)}


def add_up(build, names):
    """The sum of all tests' counters by object, and which tests ran something of it."""
    now, sums, ran, old = stamps(build), {}, {}, set()
    for name in names:
        archive = build / "counters" / f"{name}.zip"
        if not archive.exists():
            continue
        with zipfile.ZipFile(archive) as packed:
            for member in packed.namelist():
                thing, data = member[:-len(".gcda")], packed.read(member)
                if counters.stamp(data) != now.get(thing):
                    old.add(name)
                    continue
                sums.setdefault(thing, counters.Sum()).add(data)
                ran.setdefault(thing, []).append(name)
    if old:
        print(f"{len(old)} tests ran before something was compiled anew: what they did there is not counted")
    return sums, ran


def checksum(*folders):
    """Of all sources in these folders: whether what was measured is of them."""
    files = sorted(path for folder in folders for path in (SOURCE / folder).rglob("*")
                   if path.suffix in (".c", ".h", ".def", ".py", ".sh"))
    whole = hashlib.sha256()
    for path in files:
        whole.update(str(path.relative_to(SOURCE)).encode() + b"\0" + path.read_bytes())
    return whole.hexdigest()


def gcov(paths):
    """What gcov says of each .gcda (or, of what never ran, .gcno) file, in the same order."""
    for start in range(0, len(paths), FILES_AT_ONCE):
        part = [str(path) for path in paths[start:start + FILES_AT_ONCE]]
        done = subprocess.run(["gcov", "--json-format", "--stdout", "--branch-probabilities", *part], check=True,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        said = [json.loads(line) for line in done.stdout.splitlines() if line.strip()]
        if len(said) != len(part):
            raise RuntimeError(f"gcov said {len(said)} things of {len(part)} files")
        yield from said


def lines_of(said):
    """{source below src/: {line: (count, [count of each branch])}} of one object."""
    found = {}
    for file in said["files"]:
        path = Path(os.path.normpath(Path(said["current_working_directory"]) / file["file"]))
        if not path.is_relative_to(SOURCE / "src"):
            continue
        lines = found.setdefault(str(path.relative_to(SOURCE)), {})
        for line in file["lines"]:
            count, branches = lines.get(line["line_number"], (0, []))
            lines[line["line_number"]] = (max(count, line["count"]),
                                          branches + [branch["count"] for branch in line["branches"]])
    return found


def merge_branches(one, other):
    """Of two objects with the same line. Where they differ in the number, who has more is believed."""
    if len(one) != len(other):
        return max(one, other, key=len)
    return [max(pair) for pair in zip(one, other)]


def look_at_objects(build, sums):
    """For each source: its lines, its branches, its objects."""
    sources = {}
    with tempfile.TemporaryDirectory() as folder:
        things, paths = objects_of(build), []
        for number, thing in enumerate(things):
            base = Path(folder) / str(number)
            Path(f"{base}.gcno").symlink_to(build / f"{thing}.gcno")
            if thing in sums:
                Path(f"{base}.gcda").write_bytes(sums[thing].to_bytes())
            paths.append(Path(f"{base}.gcda" if thing in sums else f"{base}.gcno"))
        for thing, said in zip(things, gcov(paths)):
            for source, lines in lines_of(said).items():
                entry = sources.setdefault(source, {"objects": [], "lines": {}, "branches": {}})
                entry["objects"].append(thing)
                for line, (count, branches) in lines.items():
                    entry["lines"][line] = max(count, entry["lines"].get(line, 0))
                    if branches:
                        known = entry["branches"].get(line, [])
                        entry["branches"][line] = merge_branches(known, branches)
    return sources


def part(some, every):
    return f"{100 * some / every:.1f}" if every else "-"


def table_rows(sources):
    """[folder, lines, run, branches, taken] of each folder, and their sum."""
    folders = {}
    for source, entry in sources.items():
        row = folders.setdefault(str(Path(source).parent), [0, 0, 0, 0])
        counts = [count for line in entry["branches"].values() for count in line]
        for place, number in enumerate([len(entry["lines"]), sum(map(bool, entry["lines"].values())),
                                        len(counts), sum(map(bool, counts))]):
            row[place] += number
    rows = [[folder, *row] for folder, row in sorted(folders.items())]
    return rows + [["all", *(sum(column) for column in zip(*folders.values()))]]


def table(sources):
    text = ["| folder | lines | run | % | branches | taken | % |", "|---|--:|--:|--:|--:|--:|--:|"]
    for folder, lines, run, branches, taken in table_rows(sources):
        text.append(f"| {folder} | {lines} | {run} | {part(run, lines)} | {branches} | {taken} | "
                    f"{part(taken, branches)} |")
    return "\n".join(text) + "\n"


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", type=Path, default=SOURCE / "build-coverage")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--match", help="run only tests whose name matches, and keep the others' counters")
    parser.add_argument("--table", action="store_true", help="run nothing, make the table again")
    parser.add_argument("--out", type=Path, help="write the table to this file, too")
    options = parser.parse_args()
    options.build = options.build.resolve()
    return options


def main():
    options = parse()
    build = options.build
    suites.enter_guard()
    if not options.table:
        make(build, options.jobs)
    if not (options.match or options.table):
        shutil.rmtree(build / "counters", ignore_errors=True)
        (build / "outcomes.json").unlink(missing_ok=True)
    tests = [] if options.table else suites.tests_of(build, options.match or "")
    outcomes = run_tests(build, suites.slow_first(tests), options.jobs)
    sums, ran = add_up(build, sorted(outcomes))
    sources = look_at_objects(build, sums)
    shutil.rmtree(build / "reach", ignore_errors=True)
    (build / "lines.json").write_text(json.dumps({"of": checksum("src"), "ran": ran, "sources": sources}))
    text = table(sources)
    if options.out:
        options.out.write_text(text)
    print(text)
    failed = [name for name, row in outcomes.items() if row["failures"]]
    print(f"{len(outcomes)} tests, {len(failed)} of them failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
