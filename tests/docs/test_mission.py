#!/usr/bin/env python3
"""docs/mission.md: every call, member and test that its tables name exists, and each row has both."""
import re
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
CODE = re.compile(r"`([^`]+)`")
CALL = re.compile(r"\b(?:gpumem|GPUMEM)_\w+(?:\.\w+)?")
TEST = re.compile(r"(?:tests/)?(\w+(?:/\w+)*/test_\w+)(?:\.\w+)?(?::\s*(\w+))?")


def rows_of(text):
    """(number, cells) of each row that is neither a table's head nor the line under it."""
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        following = lines[number] if number < len(lines) else ""
        if not line.startswith("|") or line.startswith("|--") or following.startswith("|--"):
            continue
        yield number, [cell.strip() for cell in line.strip().strip("|").split("|")]


def declared(name, headers):
    """Whether a name, or a member of a struct, is in the public headers."""
    name, _, member = name.partition(".")
    if not re.search(rf"\b{name}\b", headers):
        return False
    body = re.search(rf"typedef struct {name} {{(.*?)\n}} {name};", headers, re.S)
    return not member or bool(body and re.search(rf"\b{member}\b", body.group(1)))


def missing_test(where, name, root):
    files = sorted((root / "tests").glob(f"{where}.*"))
    if not files:
        return f"there is no test {where}"
    if name and not any(re.search(rf"\b{name}\b", file.read_text()) for file in files):
        return f"{where} has no {name}"
    return None


def problems_of(text, root):
    headers = "".join(path.read_text() for path in sorted((root / "include/gpumem").glob("*.h")))
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
results = [("what docs/mission.md names exists", problems_of(text, SOURCE)),
           ("planted mistakes are found", planted()),
           ("the tables have rows", [] if len(list(rows_of(text))) > 30 else ["hardly any"])]
print(f"1..{len(results)}")
for number, (title, problems) in enumerate(results, 1):
    print(f"{'not ' if problems else ''}ok {number} - {title}")
    for problem in problems:
        print(f"# {problem}")
sys.exit(any(problems for _, problems in results))
