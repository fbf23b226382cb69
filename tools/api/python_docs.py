#!/usr/bin/env python3
"""Makes the docstrings of the extension's types of the package's stub, their one source:

    python_docs.py STUB OUTPUT

OUTPUT is C: a row for each class, method and property that has a text, with the signature where Python reads it.
"""
import ast
import json
import sys
from pathlib import Path

# The classes that are C's.
CLASSES = ("Buffer", "Event", "MemoryResource", "Stream")
BEGIN = """/* Docstrings of the extension's types, made by tools/api/python_docs.py of the package's stub. */
#include "docs.h"

const struct core_doc core_docs[] = {
"""


def signature(function):
    """Names and defaults, as __text_signature__ has them; self is written $self."""
    arguments = function.args
    first = [each.arg for each in arguments.posonlyargs + arguments.args]
    classmethod_ = any(getattr(each, "id", "") == "classmethod" for each in function.decorator_list)
    words = ["$type" if classmethod_ else "$self"] + first[1:]
    for number, default in enumerate(reversed(arguments.defaults), 1):
        words[-number] += f"={ast.unparse(default)}"
    if arguments.posonlyargs:
        words.insert(len(arguments.posonlyargs), "/")
    if arguments.vararg or arguments.kwonlyargs:
        words.append(f"*{arguments.vararg.arg if arguments.vararg else ''}")
        words += [each.arg + (f"={ast.unparse(default)}" if default else "")
                  for each, default in zip(arguments.kwonlyargs, arguments.kw_defaults)]
    return f"{function.name}({', '.join(words)})\n--\n\n"


def rows(tree):
    for node in tree.body:
        if not isinstance(node, ast.ClassDef) or node.name not in CLASSES:
            continue
        yield node.name, ast.get_docstring(node) or ""
        for member in node.body:
            if isinstance(member, ast.FunctionDef):
                getter = any(getattr(each, "id", "") == "property" for each in member.decorator_list)
                text = ast.get_docstring(member) or ""
                if text or not getter:
                    yield f"{node.name}.{member.name}", text if getter else signature(member) + text


def main():
    stub, output = map(Path, sys.argv[1:])
    tree = ast.parse(stub.read_text())
    table = "".join(f"    {{{json.dumps(name)}, {json.dumps(text)}}},\n" for name, text in rows(tree))
    output.write_text(BEGIN + table + "    {0, 0},\n};\n")


if __name__ == "__main__":
    main()
