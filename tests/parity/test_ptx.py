#!/usr/bin/env python3
"""What kernels answer on softgpu is what was recorded of hardware; the comparison sees a difference; no
instruction is without forms and without a reason for that; programs that failed once do not."""
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent / "ptx"
BUILD = Path(os.environ.get("GPUMEM_BUILD_DIR", HERE.parents[2] / "build")).resolve()
RECORDER = BUILD / "tests/parity/ptx_record"


# What a sanitizer finds is in how a program is run, and not in the values that it is run with.
SAMPLE = ["--every", "4096", "--programs", "100"] if os.environ.get("GPUMEM_SANITIZE", "off") != "off" else []
LATE = 50 if SAMPLE else 150


def environment():
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SOFTGPU_")}
    return dict(kept, GPUMEM_DRIVER="softgpu", SOFTGPU_LOG="off", SOFTGPU_MEMORY="1G", SOFTGPU_PROFILE="h200")


def compare(*arguments):
    done = subprocess.run([sys.executable, HERE / "compare.py", "--build", BUILD, *map(str, arguments)], check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode, done.stdout


def recorded(kept):
    """The answers on an eager schedule stay in a folder for each recording, for programs_end."""
    recordings = sorted((HERE / "recordings").glob("*/"))
    if not recordings:
        return None
    problems = []
    for recording in recordings:
        extra = ["--long"] if os.environ.get("GPUMEM_TEST_LONG") == "1" else SAMPLE
        (kept / recording.name).mkdir()
        status, output = compare("--recording", recording, "--keep", kept / recording.name, *extra)
        if status != 0:
            problems += [recording.name, *output.splitlines()[-60:]]
        print(f"# {recording.name}: {output.splitlines()[-1] if output else 'nothing'}")
    return problems


def planted():
    """A recording whose answer to 2 + 3 is another is reported with these inputs."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "forms.txt"
        subprocess.run([RECORDER, "forms", "--only", "add.u32 ", "-o", path], env=environment(), check=True)
        text = path.read_text()
        status, output = compare("--recording", folder, "--only", "add.u32 ")
        problems = [] if status == 0 and " 0 differing" in output else ["an equal one is reported", *output.splitlines()]
        name, answers = next(line for line in text.splitlines() if line.startswith("add.u32 $0")).split("\t")
        inputs = subprocess.run([RECORDER, "inputs", name], stdout=subprocess.PIPE, text=True, check=True).stdout
        place = inputs.split("\n").index("2,3")
        spec = importlib.util.spec_from_file_location("compare", HERE / "compare.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        values = module.unfold(answers)
        if values[place] != "5":
            problems.append(f"2 + 3 is {values[place]}")
        values[place] = "6"
        path.write_text(text.replace(answers, " ".join(values)))
        status, output = compare("--recording", folder, "--only", "add.u32 ")
        if status != 1 or "2,3: recorded 6, actual 5" not in output:
            problems += ["a difference is not reported", *output.splitlines()]
    return problems


def optimised():
    """An answer that only a program without optimising gave is no difference; one that neither gave is."""
    with tempfile.TemporaryDirectory() as folder:
        right = Path(folder) / "plain.txt"
        subprocess.run([RECORDER, "plain", "--to", "3", "-o", right], env=environment(), check=True)
        lines = right.read_text().splitlines()
        answer = next(line for line in lines if line.startswith("1\t"))
        other = "1\t" + "0" * 16
        (Path(folder) / "programs.txt").write_text("\n".join(lines).replace(answer, other) + "\n")
        status, output = compare("--recording", folder, "--programs", 3)
        problems = [] if status == 0 and "programs: 1 equal only" in output else ["reported", *output.splitlines()]
        right.write_text("\n".join(lines).replace(answer, other[:-1] + "1") + "\n")
        status, output = compare("--recording", folder, "--programs", 3)
        if status != 1 or "programs: 1\n" not in output:
            problems += ["an answer that neither gave is not reported", *output.splitlines()]
    return problems


def forms_module():
    spec = importlib.util.spec_from_file_location("forms", HERE / "forms.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def complete():
    """Each rule's operation has forms, or a reason why it has none."""
    forms = forms_module()
    text = "".join(path.read_text() for path in (HERE / "forms").iterdir())
    excused = set(" ".join(forms.OTHERWISE.values()).split())
    problems = []
    for op in sorted({rule[0] for rule in forms.read_rules()}):
        has = re.search(rf'[" }};]{re.escape(op)}[. ]', text) is not None
        if not has and op not in excused:
            problems.append(f"{op} has no form and no reason in OTHERWISE")
        if op in excused and op in forms.REGULAR + forms.BY_HAND:
            problems.append(f"{op} has forms and an excuse")
    return problems


def current():
    """forms/ is what forms.py makes, and the recorder has all of it."""
    made = {path.name: path.read_text() for path in (HERE / "forms").iterdir()}
    recorder = (HERE / "forms.c").read_text()
    left_out = [name for name in made if f'#include "forms/{name}"' not in recorder]
    if left_out:
        return [f"forms.c does not include {', '.join(sorted(left_out))}"]
    if shutil.which("ptxas") is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, HERE / "forms.py", "-o", folder], check=True, stdout=subprocess.DEVNULL)
        if {path.name: path.read_text() for path in Path(folder).iterdir()} != made:
            return ["forms/ is not what forms.py makes; run it, and record anew what is new"]
    return []


def programs_end(kept):
    """Each of some hundred programs ends with an answer, the same one on late schedules."""
    eager = next(iter(sorted(kept.glob("*/programs.txt"))), None)
    if eager is None:
        return None
    late = kept / "late.txt"
    subprocess.run([RECORDER, "programs", "--to", str(LATE), "--jobs", "2", "-o", late],
                   env=dict(environment(), SOFTGPU_SCHEDULE="late"), check=True)
    answers = [[line for line in path.read_text().splitlines() if re.match(r"\d+\t", line)][:LATE]
               for path in (eager, late)]
    problems = [line for line in answers[0] if re.search(r"\t(fault|refused|ended)", line)]
    problems += [f"{a} and late {b}" for a, b in zip(*answers) if a != b]
    if not len(answers[0]) == len(answers[1]) == LATE:
        problems.append(f"{len(answers[0])} answers, and {len(answers[1])} late")
    return problems


TESTS = [
    ("softgpu agrees with hardware or has a recorded reason", recorded, "there is no recording yet"),
    ("a planted difference is reported with its inputs", planted, ""),
    ("differences by optimization are distinguished", optimised, ""),
    ("each instruction has forms or a recorded reason", complete, ""),
    ("the forms agree with the decoder's rules", current, "there is no ptxas"),
    ("random programs end under every schedule", programs_end, "there is no recording yet"),
]


def main():
    print(f"1..{len(TESTS)}")
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        results = [test(*([Path(folder)] if test in (recorded, programs_end) else [])) for _, test, _ in TESTS]
    for number, ((title, _, why), problems) in enumerate(zip(TESTS, results), 1):
        if problems is None:
            print(f"skip: {why}")
            print(f"ok {number} - {title} # SKIP {why}")
            continue
        failed += bool(problems)
        print(f"{'not ' if problems else ''}ok {number} - {title}")
        for line in problems[:80]:
            print(f"# {line}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
