#!/usr/bin/env python3
"""Every program of examples/ is built and runs on softgpu, leaves nothing behind, prints what its page says that it
prints, and is explained by a page."""
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from pages import SOURCE, blocks, report

BUILD = Path(os.environ.get("GPUMEM_BUILD_DIR", SOURCE / "build"))
# Its output has a log's path in it, and no page shows it.
WITHOUT_OUTPUT = {"arena"}


def run(program):
    """Leaks are reported when the process ends."""
    env = dict(os.environ, GPUMEM_DRIVER="softgpu", SOFTGPU_MEMORY="1G", SOFTGPU_LEAKS="1")
    # A Vulkan loader unloads its drivers, and what they leave has no name that could be suppressed.
    if os.environ.get("GPUMEM_SANITIZE", "off") != "off":
        env["GPUMEM_VULKAN"] = "off"
    with tempfile.TemporaryDirectory() as folder:
        return subprocess.run([program], env=env, cwd=folder, capture_output=True, text=True, timeout=200,
                              stdin=subprocess.DEVNULL, check=False)


def pages_of(name, pages):
    return {page: text for page, text in pages.items() if f"examples/{name}.c" in text}


def expected(name, pages):
    """The block that follows 'It prints' in the page that explains the program."""
    for text in pages_of(name, pages).values():
        following = text.partition("\nIt prints\n")[2]
        if following and (f"The whole program is [`examples/{name}.c`]" in text or f"also\n`examples/{name}.c`" in text):
            return blocks(following, "")[0]
    return None


def problems_of(name, build, pages):
    program = build / "examples" / name
    if not program.exists():
        return [f"{program} is not built"]
    if not pages_of(name, pages):
        return [f"no page explains examples/{name}.c"]
    done = run(program)
    if done.returncode != 0 or done.stderr:
        return [f"exit status {done.returncode}\n{done.stdout}{done.stderr}"]
    wanted = expected(name, pages)
    if wanted is None:
        return [] if name in WITHOUT_OUTPUT and done.stdout else ["no page says what it prints"]
    return [] if done.stdout == wanted else [f"prints\n{done.stdout}and its page says\n{wanted}"]


def repeated_programs(pages):
    """A page that shows a whole program of examples/ shows it as it is."""
    wrong = []
    for page, text in pages.items():
        # Its programs are built by its own commands: test_cuda_programs_page.py.
        for block in blocks(text, "c") if page not in ("cuda-programs.md", "vkgdr.md") else ():
            names = re.findall(r"`examples/(\w+)\.c`", text)
            if "int main(" in block and not any((SOURCE / f"examples/{name}.c").read_text() == block
                                                for name in names):
                wrong.append(f"{page}: its program is none of {names}")
    return wrong


def files_to_build_with(pages):
    """What tests/install builds with is what the page shows."""
    shown = {kind: blocks(pages["building-with-gpumem.md"], kind) for kind in ("cmake", "make", "meson")}
    files = {"cmake": "CMakeLists.txt", "make": "Makefile", "meson": "meson.build"}
    wrong = [f"examples/building/{name} is not in building-with-gpumem.md" for kind, name in files.items()
             if shown[kind] != [(SOURCE / "examples/building" / name).read_text()]]
    if blocks((SOURCE / "README.md").read_text(), "c") != [(SOURCE / "examples/building/first.c").read_text()]:
        wrong.append("README's program is not examples/building/first.c")
    return wrong


def planted(pages):
    """An example that is not built, not explained, or prints something else."""
    with tempfile.TemporaryDirectory() as folder:
        build = Path(folder)
        (build / "examples").mkdir()
        cases = {"nowhere": None, "unexplained": "echo", "grow": "echo something else", "arena": "echo left >&2",
                 "tour": "exit 1"}
        for name, text in cases.items():
            if text:
                (build / "examples" / name).write_text(f"#!/bin/sh\n{text}\n")
                (build / "examples" / name).chmod(0o755)
        return [f"{name} goes unnoticed" for name in cases if not problems_of(name, build, pages)]


def main():
    pages = {path.name: path.read_text() for path in [*sorted((SOURCE / "docs").glob("*.md"))]}
    files = [path for path in sorted((SOURCE / "examples").iterdir()) if path.name not in ("CMakeLists.txt", "building", "cpp")]
    results = [(f"{path.name} runs and prints what its page says", problems_of(path.stem, BUILD, pages))
               for path in files if path.suffix == ".c"]
    results.append(("each file of examples/ is a program that is run",
                    [path.name for path in files if path.suffix != ".c"] or
                    ([] if len(results) > 4 else ["hardly any"])))
    results.append(("pages show programs unchanged", repeated_programs(pages)))
    results.append(("files to build with are shown unchanged", files_to_build_with(pages)))
    results.append(("planted mistakes are detected", planted(pages)))
    return report(results)


sys.exit(main())
