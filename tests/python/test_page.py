#!/usr/bin/env python3
"""The programs of docs/python.md run, each in a process of its own, under Python's own checks."""
import re
import unittest

import suite

PAGE = (suite.SOURCE / "docs/python.md").read_text()


class Page(unittest.TestCase):
    def test_each_program_runs(self):
        programs = re.findall(r"^```python\n(.*?)^```$", PAGE, re.M | re.S)
        self.assertGreaterEqual(len(programs), 7)
        for program in programs:
            with self.subTest(program=program[:60]):
                done = suite.child(program, flags=("-X", "dev", "-W", "error"))
                self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))


if __name__ == "__main__":
    suite.main()
