#!/usr/bin/env python3
"""Compares the results of kernels on softgpu with recordings of hardware, bit for bit.

    compare.py [--build FOLDER] [--recording FOLDER] [--run FOLDER] [--keep FOLDER] [--only TEXT] [--every N]
               [--programs N] [--long] [--all]

Without --run the recorder is run on softgpu: forms and scenes whole, of the approximate functions one block
in --every, of the programs the first --programs and those of failures.txt (with --long all of both: half an hour).
A recording is a folder of forms.txt, scenes.txt, approximate.txt and programs.txt, each perhaps .xz or .gz; what it lacks
is not compared. A program whose answer differs counts as equal where plain.txt, the answers of programs that were
compiled without optimising, has the same.

Printed are the figures by instruction, then each line that differs, with the first inputs that differ, and
its reason from reasons.txt (`REGULAR EXPRESSION => reason`, searched for in the line's name). Exit status 0
when every difference has a reason.
"""
import argparse
import gzip
import lzma
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.join(HERE, "../../..")
KINDS = ("forms", "scenes", "approximate", "programs")
# Answers without values: the kernel was not run, or ended.
WORDS = re.compile(r"^(refused|fault|ended): ")


def read_text(path):
    """A recording's lines, from name to answer; None if there is no such file."""
    for end, opener in ((".xz", lzma.open), (".gz", gzip.open), ("", open)):
        if os.path.exists(path + end):
            with opener(path + end, "rt", encoding="utf-8") as file:
                lines = [line.rstrip("\n") for line in file if not line.startswith("#")]
            return dict(line.split("\t", 1) for line in lines if "\t" in line)
    return None


def read_reasons(path):
    reasons = []
    with open(path, encoding="utf-8") as file:
        for line in file:
            if line.strip() and not line.startswith("#"):
                pattern, arrow, reason = line.strip().partition(" => ")
                if not arrow:
                    raise SystemExit(f"compare: {path} has a line without ' => ': {line.strip()}")
                reasons.append((re.compile(pattern), reason))
    return reasons


def unfold(answer):
    """One entry for each thread: `1,2*3` is 1,2 three times."""
    values = []
    for word in answer.split(" "):
        value, star, times = word.partition("*")
        values += [value] * (int(times) if star else 1)
    return values


def instruction_of(kind, name):
    """The name under which a line is counted."""
    if kind != "forms":
        return name.split(" ")[0] if kind == "approximate" else kind
    words = [word for word in re.split(r"[ ;{}]+", name) if word]
    known = [word for word in words if re.match(r"[a-z]\w*\.", word) and not word.startswith(("st.", "mov.b128"))]
    if name.startswith("st.") and known and known[0].startswith("ld."):
        return "ld, st"
    return (known[0] if known else words[0]).split(".")[0]


class Tally:
    """Lines and values by instruction."""

    def __init__(self):
        self.rows = {}

    def add(self, instruction, lines, values):
        row = self.rows.setdefault(instruction, {"equal": 0, "differing": 0, "refused": 0, "same": 0, "other": 0})
        for key, number in (*lines.items(), *values.items()):
            row[key] += number

    def total(self, key):
        return sum(row[key] for row in self.rows.values())

    def show(self):
        print(f"{'instruction':<24}{'forms equal':>12}{'differing':>10}{'refused':>9}{'values equal':>14}{'differing':>11}")
        for name, row in sorted(self.rows.items()):
            print(f"{name:<24}{row['equal']:>12}{row['differing']:>10}{row['refused']:>9}{row['same']:>14}"
                  f"{row['other']:>11}")


def inputs_of(recorder, form):
    done = subprocess.run([recorder, "inputs", form], stdout=subprocess.PIPE, text=True, check=False)
    return done.stdout.split("\n") if done.returncode == 0 else []


def compare_line(recorded, actual):
    """(positions that differ, number compared); `-` was not asked for."""
    if WORDS.match(recorded) or WORDS.match(actual):
        return ([] if recorded == actual else [0]), 1
    wanted, got = unfold(recorded), unfold(actual)
    pairs = [(i, pair) for i, pair in enumerate(zip(wanted, got)) if "-" not in pair]
    places = [i for i, (a, b) in pairs if a != b]
    if len(wanted) != len(got):
        places.append(min(len(wanted), len(got)))
    return places, len(pairs)


def show_difference(kind, name, recorded, actual, places, options):
    print(f"{kind}: {name}")
    if WORDS.match(recorded) or WORDS.match(actual):
        print(f"    recorded: {recorded[:100]}\n    actual:   {actual[:100]}")
        return
    wanted, got = unfold(recorded), unfold(actual)
    inputs = inputs_of(options.recorder, name) if kind == "forms" else []
    for place in places[:options.show]:
        of = inputs[place] if place < len(inputs) else f"number {place}"
        print(f"    {of}: recorded {wanted[place] if place < len(wanted) else 'nothing'}, "
              f"actual {got[place] if place < len(got) else 'nothing'}")
    if len(places) > options.show:
        print(f"    and {len(places) - options.show} more")


def compare_kind(kind, recorded, actual, reasons, tally, options):
    """The number of lines that differ without a reason."""
    unexplained = 0
    for name, wanted in recorded.items():
        if options.only not in name:
            continue
        got = actual.get(name)
        if got is None:
            if options.partial(kind):
                continue
            got = "ended: not in the run"
        places, count = compare_line(wanted, got)
        refused = got.startswith("refused: ") and wanted != got
        tally.add(instruction_of(kind, name), {"refused" if refused else "differing" if places else "equal": 1},
                  {} if refused else {"same": count - min(len(places), count), "other": len(places)})
        if not places:
            continue
        reason = next((why for pattern, why in reasons if pattern.search(name)), None)
        unexplained += reason is None
        if options.all or reason is None:
            show_difference(kind, name, wanted, got, places, options)
            print(f"    reason:   {reason or 'no reason recorded'}")
    return unexplained


def without_optimising(options, recorded, actual):
    """The recording of random programs, with the answers that they gave compiled without optimising where those
    are softgpu's: there the compiler has changed what a program does, and not softgpu. And how many these are."""
    plain = read_text(os.path.join(options.recording, "plain.txt")) or {}
    plain.pop("texts", None)
    changed = {name for name, answer in plain.items()
               if name in actual and answer == actual[name] != recorded.get(name, answer)}
    return {name: plain[name] if name in changed else answer for name, answer in recorded.items()}, len(changed)


def run_recorder(options, folder):
    """softgpu's answers, as a recording."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("SOFTGPU_")}
    environment.update(GPUMEM_DRIVER="softgpu", SOFTGPU_PROFILE="h200", SOFTGPU_LOG="off",
                       SOFTGPU_MEMORY="1G")
    jobs = str(os.cpu_count() or 2)
    for kind in KINDS:
        if not os.path.exists(os.path.join(options.recording, kind + ".txt.xz")) and not read_text(
                os.path.join(options.recording, kind + ".txt")):
            continue
        extra = ["--every", str(options.every)] if kind == "approximate" and not options.long else []
        extra += ["--to", str(options.programs)] if kind == "programs" and not options.long else []
        extra += ["--only", options.only] if options.only and kind in ("forms", "approximate") else []
        path = os.path.join(folder, kind + ".txt")
        runs = [extra]
        if kind == "programs" and not options.long:
            runs += [["--from", str(seed), "--to", str(seed + 1)] for seed in once_wrong()
                     if seed >= options.programs]
        for number, arguments in enumerate(runs):
            part = path if number == 0 else path + ".part"
            done = subprocess.run([options.recorder, kind, "--jobs", jobs, *arguments, "-o", part], env=environment,
                                  check=False)
            if done.returncode:
                print(f"compare: the recorder of {kind} ended with status {done.returncode}")
            if number:
                with open(part, encoding="utf-8") as more, open(path, "a", encoding="utf-8") as file:
                    file.write(more.read())


def once_wrong():
    """Seeds of programs whose answers were wrong once."""
    with open(os.path.join(HERE, "failures.txt"), encoding="utf-8") as file:
        return [int(line.split(":")[0]) for line in file if line.strip() and not line.startswith("#")]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", default=os.path.join(SOURCE, "build"))
    parser.add_argument("--recording", default=os.path.join(HERE, "recordings/h200-580.159.04"))
    parser.add_argument("--reasons", default=os.path.join(HERE, "reasons.txt"))
    parser.add_argument("--run", help="a folder of what was answered, instead of running the recorder")
    parser.add_argument("--keep", help="a folder that the recorder's answers are left in")
    parser.add_argument("--every", type=int, default=256, help="one block of the approximate functions in so many")
    parser.add_argument("--programs", type=int, default=400, help="so many random programs")
    parser.add_argument("--only", default="", help="lines whose name contains this")
    parser.add_argument("--show", type=int, default=4, help="inputs to show of a line that differs")
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--all", action="store_true", help="show also what has a reason")
    options = parser.parse_args()
    options.recorder = os.path.join(options.build, "tests/parity/ptx_record")
    options.partial = lambda kind: kind in ("approximate", "programs") and not options.long or bool(options.run)
    reasons = read_reasons(options.reasons)
    tally, unexplained, found, optimised = Tally(), 0, False, 0
    with tempfile.TemporaryDirectory() as folder:
        folder = options.keep or folder
        if not options.run:
            run_recorder(options, folder)
        for kind in KINDS:
            recorded = read_text(os.path.join(options.recording, kind + ".txt"))
            actual = read_text(os.path.join(options.run or folder, kind + ".txt"))
            if recorded is None or (actual is None and options.run):
                continue
            found = True
            if kind == "programs":
                recorded, optimised = without_optimising(options, recorded, actual or {})
            unexplained += compare_kind(kind, recorded, actual or {}, reasons, tally, options)
    if not found:
        print("compare: there is no recording", file=sys.stderr)
        return 2
    tally.show()
    if optimised:
        print(f"programs: {optimised} equal only as the hardware's driver compiles them without optimising")
    print(f"ptx: {tally.total('equal')} lines equal, {tally.total('differing')} differing, {tally.total('refused')} refused"
          f" ({unexplained} without a reason); {tally.total('same')} values equal, {tally.total('other')} differing")
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
