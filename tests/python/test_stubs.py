#!/usr/bin/env python3
"""The stub says what the package has: its names and docstrings, and what mypy's stubtest compares where mypy is."""
import ast
import importlib.util
import inspect
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import suite

import gpumem

PACKAGE = suite.SOURCE / "python/gpumem"
STUB = ast.parse((PACKAGE / "__init__.pyi").read_text())

# Checked by mypy --strict, as a user's program is.
USER = """
import gpumem as cc

def work(device: cc.Device, stream: cc.Stream) -> bytes:
    pool = cc.DeviceMemoryResource(device, cc.DeviceMemoryResourceOptions(max_size=1 << 20))
    with pool.allocate(4096, stream=stream) as buffer, buffer.copy_to(stream=stream) as other:
        buffer.fill(b"ab", stream=stream)
        return other.read(0, 16)

reveal: int = cc.VirtualMemoryResource(0).allocate(5).handle
"""


def with_mypy(*command):
    """Runs a module of mypy's on the stubs alone, or skips."""
    python = os.environ.get("GPUMEM_MYPY", sys.executable)
    if python == sys.executable and not importlib.util.find_spec("mypy"):
        raise unittest.SkipTest("mypy is not installed (GPUMEM_MYPY may name a Python that has it)")
    with tempfile.TemporaryDirectory() as folder:
        stubs = Path(folder) / "stubs/gpumem"
        stubs.mkdir(parents=True)
        for name in ("__init__.pyi", "errors.py", "typing.py", "utils.pyi", "_enums.py", "py.typed"):
            shutil.copy(PACKAGE / name, stubs)
        (Path(folder) / "user.py").write_text(USER)
        done = subprocess.run([python, "-m", *command], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, check=False, env=suite.environment(MYPYPATH=str(stubs.parent)))
    return "" if done.returncode == 0 else done.stdout


class Stubs(unittest.TestCase):
    def classes(self):
        return {node.name: node for node in STUB.body if isinstance(node, ast.ClassDef) and node.name[0] != "_"}

    def test_each_public_name_is_in_the_stub(self):
        names = set()
        for node in STUB.body:
            names |= {alias.asname or alias.name for alias in getattr(node, "names", [])}
            names |= {getattr(node, "name", ""), getattr(getattr(node, "target", None), "id", "")}
        self.assertEqual(sorted(set(gpumem.__all__) - names), [])

    def test_each_public_member_of_a_class_is_in_the_stub(self):
        for name, node in self.classes().items():
            written = {getattr(each, "name", getattr(getattr(each, "target", None), "id", "")) for each in node.body}
            present = {member for member in vars(getattr(gpumem, name)) if member[0] != "_"}
            if not name.endswith("Options") and name != "Status":
                self.assertEqual(sorted(present - written), [], name)

    def test_docstrings_of_the_extension_are_the_stubs(self):
        for name in ("Buffer", "MemoryResource", "Stream", "Event"):
            node = self.classes()[name]
            self.assertEqual(getattr(gpumem, name).__doc__, ast.get_docstring(node))
            for member in node.body:
                text = ast.get_docstring(member) if isinstance(member, ast.FunctionDef) else None
                found = vars(getattr(gpumem, name)).get(getattr(member, "name", ""))
                if text and not inspect.isfunction(getattr(found, "__func__", found)) and not isinstance(found, property):
                    self.assertEqual(found.__doc__, text, member.name)
        self.assertEqual(gpumem.Buffer.fill.__text_signature__, "($self, value, *, stream=None)")

    def test_stubtest_finds_no_difference(self):
        self.assertEqual(with_mypy("mypy.stubtest", "gpumem", "--concise", "--ignore-missing-stub"), "")

    def test_a_program_passes_mypys_strict_checks(self):
        self.assertEqual(with_mypy("mypy", "--strict", "user.py"), "")


if __name__ == "__main__":
    suite.main()
