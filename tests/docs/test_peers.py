#!/usr/bin/env python3
"""docs/peers.md: each row has an answer for everyone, each 'yes' of ours names calls and a test that exist, and a 'no'
names none."""
import re
import sys

from pages import CALL, CODE, SOURCE, TEST, declared, missing_test, public_headers, report, rows_of

ANSWERS = ("yes", "partly", "no", "not found")
COLUMNS = 6
# What is not one call: the whole interface, a command, and the Python package.
WITHOUT_CALL = ("every call", "gpumem run", "the package `gpumem`")


def starts_well(cell):
    return re.match(rf"(?:{'|'.join(ANSWERS)})(?:$|:| \()", cell) is not None


def problems_of_row(cells, headers):
    if len(cells) != COLUMNS:
        return [f"{len(cells)} cells"]
    what, ours, shown, *theirs = cells
    found = [f"'{cell}' is no answer" for cell in (ours, *theirs) if not starts_well(cell)]
    calls = CALL.findall(" ".join(CODE.findall(ours)))
    tests = TEST.findall(" ".join(CODE.findall(shown)))
    found += [f"{call} is not declared" for call in calls if not declared(call, headers)]
    found += [problem for where, name in tests if (problem := missing_test(where, name))]
    if ours.startswith("no"):
        if calls or shown != "–":
            found.append("a 'no' names calls or tests")
    elif not tests:
        found.append("no test")
    elif not calls and not any(text in ours for text in WITHOUT_CALL):
        found.append("no call")
    return found if what else ["nothing is compared"]


def problems_of(text, headers):
    return [f"line {number}: {problem}" for number, cells in rows_of(text)
            for problem in problems_of_row(cells, headers)]


def planted(headers):
    """Rows with one mistake each, and one with none."""
    good = ["a row", "yes: `gpumem_open`", "`unit/test_limit:a_limit_counts_the_bytes_the_upstream_handed_out`", "no", "partly: x",
            "not found (#1)"]
    wrong = [(1, "yes: `gpumem_no_such_call`"), (1, "yes"), (1, "no"), (1, "perhaps"), (2, "–"),
             (2, "`unit/test_no_such`"), (2, "`unit/test_limit:no_such`"), (3, ""), (4, "surely"), (5, "unknown"), (0, "")]
    missed = [f"{text!r} in column {column} goes unnoticed" for column, text in wrong
              if not problems_of_row(good[:column] + [text] + good[column + 1:], headers)]
    return missed + [f"a right row: {problem}" for problem in problems_of_row(good, headers)]


def main():
    headers = public_headers()
    # The last table has no answers.
    text = (SOURCE / "docs/peers.md").read_text().partition("\n## Others")[0]
    rows = [cells for _, cells in rows_of(text) if len(cells) == COLUMNS]
    return report([
        ("rows are complete and name existing tests and functions", problems_of(text, headers)),
        ("planted mistakes are detected", planted(headers)),
        ("rows with both answers exist", [] if sum(cells[1].startswith("yes") for cells in rows) > 20
         and sum(cells[1] == "no" for cells in rows) > 3 else ["hardly any rows"]),
    ])


sys.exit(main())
