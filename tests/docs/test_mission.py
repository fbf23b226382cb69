#!/usr/bin/env python3
"""docs/mission.md: every call, member and test that its tables name exists, and each row has both."""
import ast
import re
import sys

import pages
from pages import CODE, SOURCE, TEST, declared, report, rows_of

CALL = re.compile(r"\b(?:gpumem|GPUMEM|vkgdr|VKGDR)_\w+(?:\.\w+)?")
# Python's names outside of vkgdr.
OURS = re.compile(r"\bgpumem\.((?:vmm\b|[A-Z]\w+)(?:\.\w+)*)")
PYTHON = re.compile(r"\bgpumem\.vkgdr(?:\.(\w+(?:\.\w+)*))?")


def members_of(tree, classes):
    """Each class of a module with what it defines, and its bases of `classes`."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            names = {each.name for each in node.body if isinstance(each, ast.FunctionDef)}
            for each in node.body:
                if isinstance(each, ast.AnnAssign):
                    names.add(ast.unparse(each.target))
                if isinstance(each, ast.Assign):
                    names |= {target.id for target in each.targets if isinstance(target, ast.Name)}
            bases = {ast.unparse(base) for base in node.bases}
            classes[node.name] = names.union(*(classes.get(base, set()) for base in bases))


def python_names(root):
    """Dotted names below gpumem.vkgdr: its modules, their classes, and these' members."""
    folder, classes = root / "python/gpumem/vkgdr", {}
    found = set()
    for prefix, file in ("", "__init__.py"), ("pycuda.", "pycuda.py"):
        before = set(classes)
        members_of(ast.parse((folder / file).read_text()), classes)
        for name in classes.keys() - before:
            found |= {f"{prefix}{name}"} | {f"{prefix}{name}.{member}" for member in classes[name]}
    return found | {"pycuda"}


def other_python_names(root):
    """Dotted names below gpumem, of the stub, and of gpumem.vmm."""
    found = {"vmm"}
    for prefix, file in ("", "__init__.pyi"), ("vmm.", "vmm.py"):
        tree, classes = ast.parse((root / "python/gpumem" / file).read_text()), {}
        members_of(tree, classes)
        top = {getattr(node, "name", ast.unparse(getattr(node, "target", node))) for node in tree.body}
        found |= {prefix + name for name in top}
        found |= {f"{prefix}{name}.{member}" for name, members in classes.items() for member in members}
    return found


def programs_of(file):
    """A test of clients runs a program; that may have the tests of another one too."""
    folder = file.parent / "programs"
    texts = [file.read_text()]
    for _ in range(2):
        named = set(re.findall(r"\b(\w+)\.py\"|^import (\w+)$", "\n".join(texts), re.M))
        more = [folder / f"{one or other}.py" for one, other in named]
        texts = [file.read_text()] + [path.read_text() for path in more if path.exists()]
    return "\n".join(texts)


def missing_test(where, name, root):
    file = root / "tests" / f"{where}.py"
    if not where.startswith("clients/") or not file.exists():
        return pages.missing_test(where, name, root)
    if name and not re.search(rf"\bdef {name}\b", programs_of(file)):
        return f"{where} has no {name}"
    return None


def problems_of(text, root):
    headers = pages.public_headers(root) + (root / "include/vkgdr.h").read_text()
    python, others = python_names(root), other_python_names(root)
    found = []
    for number, cells in rows_of(text):
        named = " ".join(CODE.findall(" ".join(cells[1:-1])))
        calls, tests = CALL.findall(named), TEST.findall(" ".join(CODE.findall(cells[-1])))
        found += [f"line {number}: {call} is not declared" for call in calls
                  if not declared(call, headers)]
        found += [f"line {number}: there is no gpumem.vkgdr.{name}"
                  for name in PYTHON.findall(named) if name and name not in python]
        found += [f"line {number}: there is no gpumem.{name}" for name in OURS.findall(named) if name not in others]
        found += [f"line {number}: {problem}" for where, name in tests
                  if (problem := missing_test(where, name, root))]
        if not tests:
            found.append(f"line {number}: no test")
    return found


def planted():
    """That each kind of mistake is noticed, and a right row is not."""
    row = "| a | b | c |\n|---|---|---|\n| `x` | `{}` | `{}` |\n"
    good = "gpumem_virtual_options.address_hint", "unit/test_low_level:a_mapping_keeps_its_bytes"
    cases = [(good, 0), (("gpumem_no_such_call", good[1]), 1),
             (("gpumem_virtual_options.no_member", good[1]), 1),
             ((good[0], "unit/test_no_such"), 1), ((good[0], "unit/test_low_level:no_such"), 1),
             ((good[0], "nothing"), 1), (("vkgdr_no_such_call", good[1]), 1),
             (("gpumem.vkgdr.pycuda.Memory.flush", "clients/test_vkgdr_python:test_a_device_is_opened_by_number_and_by_context"), 0),
             (("gpumem.vkgdr.RawMemory.no_such", good[1]), 1),
             (("gpumem.vmm.Reservation.map", good[1]), 0), (("gpumem.vmm.no_such", good[1]), 1),
             (("gpumem.PinnedMemoryResource.no_such", good[1]), 1),
             ((good[0], "clients/test_vkgdr_python:test_no_such"), 1)]
    return [f"{cells}: {problems_of(row.format(*cells), SOURCE)}" for cells, wanted in cases
            if len(problems_of(row.format(*cells), SOURCE)) != wanted]


text = (SOURCE / "docs/mission.md").read_text()
sys.exit(report([("everything named in docs/mission.md exists", problems_of(text, SOURCE)),
                 ("planted mistakes are detected", planted()),
                 ("the tables have rows", [] if len(list(rows_of(text))) > 30 else ["hardly any"])]))
