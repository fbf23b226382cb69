#!/usr/bin/env python3
"""Compares the answers of a CUDA runtime of ours with a recording of NVIDIA's, line by line.

compare.py RECORDING RUN: RUN is what the program printed that questions.py made of RECORDING, with the arguments that
`compare.py --arguments RECORDING` prints. Exit status 0 when at most one line in a hundred differs, each for a reason.

Where NVIDIA's crashed or hung, ours answers cudaErrorInvalidValue; a crash of ours is a failure, whatever is recorded.
Reasons are in reasons.txt: `REGULAR EXPRESSION => reason`, searched for in `libcudart.so.N question = recorded -> ours`."""
import re
import sys
from pathlib import Path

from questions import SOURCE, read_answers

HERE = Path(__file__).resolve().parent
OF_12 = "^libcudart.so.12 "  # a reason that begins so is why 13's recording does not say what 12 answers
REFUSED = "1, peek 1, last 1, then 0"


def other_in_12():
    """The functions that 12 has with other parameters, or not at all."""
    text = (SOURCE / "src/runtime/runtime.def").read_text()
    return set(re.findall(r"^RT_\w+\((\w+), ONLY13,", text, re.M))


def arguments(recorded, abi):
    """For the program: where its children end, and what 12 is not asked."""
    out = []
    for number, (question, answer, lost) in enumerate(recorded):
        if answer.startswith("signal") or lost:
            out.append(str(number))
        if abi == "12" and question.partition("(")[0] in other_in_12():
            out.append(f"x{number}")
    return out


def short(answer, lost):
    """`9` where the failure is kept, and taken once."""
    same = re.fullmatch(r"(\d+), peek \1, last \1, then 0", answer)
    return (same[1] if same else answer) + (", and the context is lost" if lost else "")


def read_reasons():
    rows = [line.partition(" => ") for line in (HERE / "reasons.txt").read_text().splitlines()
            if line and not line.startswith("#")]
    return [(re.compile(pattern), reason) for pattern, _, reason in rows]


def compare(recorded, got, abi="13"):
    """(lines compared, differences with their reason or None, crashes)."""
    by_question = {question: (answer, lost) for question, answer, lost in got}
    left_out = other_in_12() if abi == "12" else ()
    reasons, count, differing, crashes = read_reasons(), 0, [], []
    for question, answer, lost in recorded:
        if question.partition("(")[0] in left_out:
            continue
        count += 1
        crashed = answer.startswith("signal")
        wanted = short(REFUSED, False) if crashed else short(answer, lost)
        mine, mine_lost = by_question.get(question, ("nothing", False))
        actual = short(mine, mine_lost)
        if mine.startswith("signal"):
            crashes.append(f"{question}: {mine}")
        if actual != wanted:
            text = f"libcudart.so.{abi} {question} = {answer if crashed else wanted} -> {actual}"
            pattern, reason = next(((each, why) for each, why in reasons if each.search(text)), (None, None))
            if pattern and pattern.pattern.startswith(OF_12):
                count -= 1
            else:
                differing.append((text, reason))
    return count, differing, crashes


def problems_of(recorded, got, abi="13"):
    count, differing, crashes = compare(recorded, got, abi)
    found = [f"crashed: {each}" for each in crashes]
    found += [f"no reason: {text}" for text, reason in differing if reason is None]
    if len(differing) * 100 > count:
        found.append(f"{len(differing)} of {count} lines differ, more than one in a hundred")
    print(f"# libcudart.so.{abi}: {count - len(differing)} of {count} lines agree, {len(differing)} differ with a reason"
          if not found else f"# libcudart.so.{abi}: {len(differing)} of {count} lines differ")
    return found


def main():
    if sys.argv[1] == "--arguments":
        print(*arguments(read_answers(sys.argv[2]), "13"))
        return 0
    found = problems_of(read_answers(sys.argv[1]), read_answers(sys.argv[2]))
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
