#!/usr/bin/env python3
"""Each C function has a Python form, or a reason why not; the extension's tables are those of the description."""
import json
import sys
import unittest

import suite

import gpumem

DESCRIPTION = json.loads((suite.SOURCE / "tools/api/api.json").read_text())


def forms():
    lines = (suite.SOURCE / "tests/python/forms.txt").read_text().splitlines()
    return dict(line.split(" ", 1) for line in lines if line.startswith("gpumem_"))


def found(name):
    """The object of a dotted name below gpumem, without calling getters."""
    holder = gpumem
    for part in name.split("."):
        if isinstance(holder, type):
            if part in getattr(holder, "__annotations__", {}) or any(
                    part in getattr(base, "__annotations__", {}) for base in holder.__mro__):
                return True
            holder = next(vars(base)[part] for base in holder.__mro__ if part in vars(base))
        else:
            holder = getattr(holder, part)
    return True


class Forms(unittest.TestCase):
    def test_each_function_has_a_form_or_a_reason(self):
        self.assertEqual(sorted(set(DESCRIPTION["functions"]) ^ set(forms())), [])

    def test_each_form_is_there(self):
        for function, form in forms().items():
            if form.startswith("- "):
                continue
            with self.subTest(function=function, form=form):
                try:
                    self.assertTrue(found(form))
                except (AttributeError, StopIteration):
                    self.fail(f"gpumem has no {form}")

    def test_a_form_that_is_missing_is_noticed(self):
        with self.assertRaises((AttributeError, StopIteration)):
            found("Buffer.no_such_method")

    def test_generated_tables_are_current(self):
        sys.path.insert(0, str(suite.SOURCE / "tools/api"))
        import python_tables  # pylint: disable=import-outside-toplevel
        stale = [path.name for path, text in python_tables.texts(DESCRIPTION).items() if path.read_text() != text]
        self.assertEqual(stale, [], "run ./dev api")


if __name__ == "__main__":
    suite.main()
