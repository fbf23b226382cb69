#!/usr/bin/env python3
"""Shrinks a random program (ptx_record programs) whose answers are wrong: leaves out statements for as long as
it stays wrong, and writes what is left to failures/SEED.ptx.

    reduce.py SEED [--drivers softgpu,nvidia] [--expect FILE] [--recorder FILE] [-o FOLDER]

Wrong is: the two drivers answer differently; with one driver (the default, softgpu), it does not end with an
answer, or levels of its interpreter differ.
"""
import argparse
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def answer(options, driver, drop):
    environment = dict(os.environ, GPUMEM_DRIVER=driver, SOFTGPU_LOG="off")
    try:
        done = subprocess.run([options.recorder, "answer", "--from", options.seed, "--drop", ",".join(map(str, drop))],
                              env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                              timeout=options.seconds, check=False)
    except subprocess.TimeoutExpired:
        return "ended: time is up"
    return done.stdout if done.returncode in (0, 1) else f"ended: status {done.returncode}"


def kind(text):
    return text.strip() if text.startswith(("fault", "refused", "ended")) else "answers"


def wrong(options, drop):
    """What is wrong with the answers, or None."""
    answers = [answer(options, driver, drop) for driver in options.drivers.split(",")]
    if len(answers) == 1:
        return kind(answers[0]) if kind(answers[0]) != "answers" else None
    if kind(answers[0]) != kind(answers[1]):
        return f"{kind(answers[0])} and {kind(answers[1])}"
    return "answers differ" if answers[0] != answers[1] else None


def show(options, drop):
    return subprocess.run([options.recorder, "show", "--from", options.seed, "--drop", ",".join(map(str, drop))],
                          stdout=subprocess.PIPE, text=True, check=True).stdout


def shrink(options, count, why):
    """Leaves out statements in ever smaller groups, as long as the same thing stays wrong."""
    kept, size = list(range(1, count + 1)), max(count // 2, 1)
    dropped = []
    while True:
        changed = False
        for start in range(0, len(kept), size):
            group = kept[start:start + size]
            if group and wrong(options, dropped + group) == why:
                dropped += group
                changed = True
        kept = [number for number in kept if number not in dropped]
        if size == 1 and not changed:
            return dropped
        size = max(size // 2, 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("seed")
    parser.add_argument("--drivers", default="softgpu")
    parser.add_argument("--recorder", default=os.path.join(HERE, "../../../build/tests/parity/ptx_record"))
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("-o", default=os.path.join(HERE, "failures"))
    options = parser.parse_args()
    why = wrong(options, [])
    if why is None:
        print(f"seed {options.seed}: nothing is wrong")
        return 0
    count = int(show(options, []).rsplit("/*", 1)[1].split()[0])
    dropped = shrink(options, count, why)
    os.makedirs(options.o, exist_ok=True)
    path = os.path.join(options.o, f"{options.seed}.ptx")
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"// {why}\n// without statements {','.join(map(str, sorted(dropped)))}\n{show(options, dropped)}")
    print(f"seed {options.seed}: {why}; {count - len(dropped)} of {count} statements are left in {path}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
