#!/usr/bin/env python3
"""What clang warns of, in every source of a build folder: its compilations, without the code that they make.

    clang_warnings.py BUILD
"""
import concurrent.futures
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path


def look(entry):
    """What is said of one source. Generated sources are looked at where they are made already."""
    words = shlex.split(entry["command"])
    at = words.index("-o")
    del words[at:at + 2]
    words[words.index("-c")] = "-fsyntax-only"
    done = subprocess.run(words, cwd=entry["directory"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", check=False)
    return done.returncode, done.stdout


def main():
    entries = json.loads((Path(sys.argv[1]) / "compile_commands.json").read_text())
    seen, chosen = set(), []
    for entry in entries:
        # A source that is compiled for several targets differs in what it links, or in levels of one machine.
        if entry["file"] not in seen and os.path.exists(entry["file"]):
            seen.add(entry["file"])
            chosen.append(entry)
    bad = 0
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for number, (status, text) in enumerate(pool.map(look, chosen), 1):
            print(f"[{number}/{len(chosen)}] looked at", flush=True)
            bad += status != 0
            if text.strip():
                print(text.rstrip(), flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
