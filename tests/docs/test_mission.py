#!/usr/bin/env python3
"""docs/mission.md: every call, member and test that its tables name exists, and each row has both."""
import sys

from pages import CALL, CODE, SOURCE, TEST, declared, missing_test, public_headers, report, rows_of


def problems_of(text, root):
    headers = public_headers(root)
    found = []
    for number, cells in rows_of(text):
        named = " ".join(CODE.findall(" ".join(cells[1:-1])))
        calls, tests = CALL.findall(named), TEST.findall(" ".join(CODE.findall(cells[-1])))
        found += [f"line {number}: {call} is not declared" for call in calls
                  if not declared(call, headers)]
        found += [f"line {number}: {problem}" for where, name in tests
                  if (problem := missing_test(where, name, root))]
        if not tests:
            found.append(f"line {number}: no test")
    return found


def planted():
    """That each kind of mistake is noticed, and a right row is not."""
    row = "| a | b | c |\n|---|---|---|\n| `x` | `{}` | `{}` |\n"
    good = "gpumem_virtual_options.addr_hint", "unit/test_low_level:a_mapping_holds_bytes"
    cases = [(good, 0), (("gpumem_no_such_call", good[1]), 1),
             (("gpumem_virtual_options.no_member", good[1]), 1),
             ((good[0], "unit/test_no_such"), 1), ((good[0], "unit/test_low_level:no_such"), 1),
             ((good[0], "nothing"), 1)]
    return [f"{cells}: {problems_of(row.format(*cells), SOURCE)}" for cells, wanted in cases
            if len(problems_of(row.format(*cells), SOURCE)) != wanted]


text = (SOURCE / "docs/mission.md").read_text()
sys.exit(report([("what docs/mission.md names exists", problems_of(text, SOURCE)),
                 ("planted mistakes are found", planted()),
                 ("the tables have rows", [] if len(list(rows_of(text))) > 30 else ["hardly any"])]))
