#!/usr/bin/env python3
"""Runs each tests/cli/golden/NAME.sh and compares with NAME.out beside it.

A script gets the command as $GPUMEM. Its two outputs are joined, and paths of this build replaced.
`GPUMEM_UPDATE=1 tests/cli/test_golden.py` writes the files anew; read the difference before
committing it.
"""
import difflib
import os
import subprocess

import harness

FOLDER = harness.SOURCE / "tests" / "cli" / "golden"


def normalize(text):
    return text.replace(str(harness.BUILD), "BUILD").replace(str(harness.SOURCE), "SOURCE")


def make_test(script):
    golden = script.with_suffix(".out")

    def test(folder):
        process = subprocess.run(["sh", str(script)], cwd=folder, timeout=50, check=False,
                                 env=harness.environment(GPUMEM=harness.COMMAND), text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                 stdin=subprocess.DEVNULL)
        text = normalize(process.stdout) + f"exit status {process.returncode}\n"
        if os.environ.get("GPUMEM_UPDATE"):
            golden.write_text(text)
        expected = golden.read_text() if golden.exists() else ""
        difference = difflib.unified_diff(expected.splitlines(), text.splitlines(),
                                          golden.name, "now", lineterm="")
        harness.expect(text == expected, "\n".join(difference))

    test.__name__ = "test_" + script.stem
    return test


harness.main([make_test(script) for script in sorted(FOLDER.glob("*.sh"))])
