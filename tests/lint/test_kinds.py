#!/usr/bin/env python3
"""Every kind of resource that the public headers declare has a row in tests/harness/kinds.def, and what is done
with each kind is done by that list."""
import re
import sys
import tempfile
from pathlib import Path

from files import SOURCE, tap

LIST = "tests/harness/kinds.def"
# Where something is done with each kind.
USERS = ("tests/conformance/resource_kinds.h", "tests/conformance/test_wrappers.c",
         "tests/fault/test_free_of_driver_calls.c", "tests/fault/test_wrapper_sweeps.c",
         "tests/unit/test_wrapper_threads.c")
DECLARED = re.compile(r"\bgpumem_(\w+)_resource_create\(")
COMMENT = re.compile(r"/\*.*?\*/", re.S)


def declared(root):
    """{kind: whether it lies over another resource}"""
    kinds = {}
    for path in sorted((root / "include/gpumem").glob("*.h")):
        for match in re.finditer(DECLARED.pattern + r"\s*(\w+)", COMMENT.sub("", path.read_text())):
            kinds[match.group(1)] = match.group(2) == "gpumem_resource"
    return kinds


def rows(root):
    found = re.findall(r"^(MEMORY|WRAPPER|CACHE)\((\w+)", (root / LIST).read_text(), re.M)
    return {name: sort != "MEMORY" for sort, name in found}


def wrong_rows(root):
    kinds, listed = declared(root), rows(root)
    problems = [f"{LIST} has no row for gpumem_{kind}_resource_create" for kind in kinds if kind not in listed]
    problems += [f"{LIST}: {kind} is no kind of resource" for kind in listed if kind not in kinds]
    problems += [f"{LIST}: {kind} is {'' if kinds[kind] else 'not '}over another resource"
                 for kind in listed if kind in kinds and kinds[kind] != listed[kind]]
    return problems if kinds else ["the headers declare no resource"]


def wrong_users(root):
    return [f"{user} does not go by {LIST}" for user in USERS
            if not re.search(r"WRAPPERS|\"kinds.def\"", (root / user).read_text())]


def planted():
    """What is said of a tree with a resource without a row, a row without one, and a user that lists by hand."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for name in (LIST, "include/gpumem/some.h", *USERS):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text('#include "kinds.def"\n')
        (root / "include/gpumem/some.h").write_text(
            "/* gpumem_said_resource_create( */ gpumem_status gpumem_known_resource_create(gpumem_device *device);\n"
            "gpumem_status gpumem_new_resource_create(\n    gpumem_resource *upstream);\n")
        (root / LIST).write_text("MEMORY(known)\nWRAPPER(gone, NULL)\n")
        (root / USERS[0]).write_text("made[6]\n")
        said = wrong_rows(root) + wrong_users(root)
    wanted = ["gpumem_new_resource_create", "gone", USERS[0]]
    good = len(said) == len(wanted) and all(word in line for word, line in zip(wanted, said))
    return [] if good else [f"said of a planted tree: {said}"]


def main():
    return tap([
        ("each kind of resource has a row", wrong_rows(SOURCE)),
        ("what is done with each kind goes by the list", wrong_users(SOURCE)),
        ("a kind without a row is detected", planted()),
    ])


if __name__ == "__main__":
    sys.exit(main())
