#!/usr/bin/env python3
"""The bundle's script: without a driver it says so at once, before it makes a file to load."""
import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "harness"))
from tap_report import run_in_folders  # noqa: E402  pylint: disable=wrong-import-position

SOURCE = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("GPUMEM_BUILD_DIR", SOURCE / "build"))
COMMANDS = ("load", "conformance", "programs", "cuda", "parity-record", "ptx-record", "bench", "caches", "torch", "all")


class Bundle:
    """A bundle with the real command and nothing else; what makes its file is noted."""

    def __init__(self, folder):
        self.folder = folder
        (folder / "bundle/bin").mkdir(parents=True)
        (folder / "bundle/run.sh").write_text((SOURCE / "tests/bundle/run.sh").read_text())
        (folder / "bundle/bin/gpumem").symlink_to(BUILD / "bin/gpumem")
        programs = folder / "programs"
        programs.mkdir()
        for name in "openssl", "head":
            (programs / name).write_text('#!/bin/sh\necho "${0##*/}" >>"$NOTES"\nexec /usr/bin/head "$@"\n')
            (programs / name).chmod(0o755)
        self.environment = dict(
            os.environ, PATH=f"{programs}:{os.environ['PATH']}", NOTES=str(folder / "notes"),
            OUT=str(folder / "out"), LOAD_MIB="4")

    def run(self, driver, *arguments):
        done = subprocess.run(
            ["sh", str(self.folder / "bundle/run.sh"), *arguments], cwd=self.folder,
            env=dict(self.environment, GPUMEM_DRIVER=driver), stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, check=False)
        return done.returncode, done.stdout

    def made(self):
        notes = self.folder / "notes"
        return notes.exists() or (self.folder / "load.bin").exists()


def without_a_driver(folder):
    problems = []
    bundle = Bundle(folder)
    for command in COMMANDS:
        status, output = bundle.run("/nonexistent/libcuda.so.1", command)
        if status != 2 or "/nonexistent/libcuda.so.1" not in output:
            problems.append(f"{command}: status {status}: {output}")
        if bundle.made():
            problems.append(f"{command} made a file first")
    return problems


def with_a_driver(folder):
    bundle = Bundle(folder)
    status, output = bundle.run("softgpu", "load")
    problems = [] if status == 0 and "checked" in output else [f"status {status}: {output}"]
    if not (folder / "notes").exists() or (folder / "load.bin").exists():
        problems.append("the file was not made, or is still there")
    return problems


def programs_are_compared(folder):
    """The same text is a success, another one and a program that fails are not."""
    bundle = Bundle(folder)
    problems = []
    programs = folder / "bundle/tests/programs"
    (programs / "golden").mkdir(parents=True)
    for name, body in (("right", "echo text"), ("wrong", "echo other"), ("bad", "echo text; exit 3"),
                       ("unable", "echo 'skip: no such device'; exit 77"), ("large", 'echo "$GPUMEM_TEST_LONG"')):
        (programs / name).write_text(f"#!/bin/sh\n{body}\n")
        (programs / name).chmod(0o755)
    for names, wanted, line in ((["right.txt", "unable.txt"], 0, "unable.txt: skip: no such device"),
                                (["right.txt", "wrong.txt"], 1, "wrong.txt: differs"),
                                (["right.txt", "bad.txt"], 1, "bad.txt: failed with status 3"),
                                (["unable.txt"], 1, "unable.txt: skip: no such device"),
                                (["large.long.txt", "right.txt"], 0, "large.long.txt: the same")):
        for path in (programs / "golden").iterdir():
            path.unlink()
        for name in names:
            (programs / "golden" / name).write_text("1\n" if "long" in name else "text\n")
        status, output = bundle.run("softgpu", "programs")
        if status != wanted or line not in output.splitlines():
            problems.append(f"{names}: status {status}: {output}")
    return problems


def programs_of_the_runtime_are_compared(folder):
    """Each with ours, and with NVIDIA's runtime where the driver is not softgpu's."""
    bundle = Bundle(folder)
    cuda = folder / "bundle/tests/cuda"
    for path in ("13", "12", "nvidia/13", "golden", "../../lib/gpumem/runtime/13", "../../lib/gpumem/runtime/12"):
        (cuda / path).mkdir(parents=True)
    problems = []
    for body, wanted, lines in (("echo text", 0, ["one 12 ours: the same", "one 13 ours: the same"]),
                                ('echo "${LD_LIBRARY_PATH%%:*}" | grep -q runtime/13 && echo text', 1,
                                 ["one 12 ours: failed with status 1", "one 13 ours: the same"]),
                                ("echo other", 1, ["one 12 ours: differs", "one 13 ours: differs"]),
                                ("echo skip: alone; exit 77", 1, ["one 12 ours: skip: alone", "one 13 ours: skip: alone"])):
        (cuda / "golden/one.txt").write_text("text\n")
        for abi in "13", "12":
            (cuda / abi / "one").write_text(f"#!/bin/sh\n{body}\n")
            (cuda / abi / "one").chmod(0o755)
            (cuda / abi / "one.part.so").write_text("is no program")
        status, output = bundle.run("softgpu", "cuda")
        if status != wanted or output.splitlines() != lines:
            problems.append(f"{body}: status {status}: {output}")
    return problems


def wrong_words(folder):
    bundle = Bundle(folder)
    problems = []
    for words, wanted in ((["nothing"], 2), (["--help"], 0)):
        status, output = bundle.run("softgpu", *words)
        if status != wanted or "usage: run.sh" not in output or (folder / "out").exists():
            problems.append(f"{words}: status {status}: {output}")
    return problems


def main():
    tests = [without_a_driver, with_a_driver, programs_are_compared,
             programs_of_the_runtime_are_compared, wrong_words]
    return run_in_folders(tests, "bundle/run.sh ")


if __name__ == "__main__":
    sys.exit(main())
