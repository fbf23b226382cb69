#!/usr/bin/env python3
"""docs/cuda-programs.md and docs/sharing.md: their programs in C, C++ and CUDA are built by the page's own commands and
run, against an installation; docs/ci.md's files are well formed. (Programs in Python: clients/test_page_programs.py.)"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import shown
from pages import SOURCE, blocks

sys.path.insert(0, str(SOURCE / "tests/harness"))
from tap_report import Report  # noqa: E402  pylint: disable=wrong-import-position

BUILD = Path(os.environ.get("GPUMEM_BUILD_DIR", SOURCE / "build"))
RESULT = "y[999] = 1999"
# What a section's commands need, besides a C compiler.
NEEDS = {"A program of nvcc": "nvcc", "C and the driver API": "nvcc", "clang, without a toolkit": "clang"}
SANITIZED = os.environ.get("GPUMEM_SANITIZE", "off") != "off"


def environment(prefix):
    more = {"PATH": f"{prefix}/bin:{os.environ['PATH']}:/usr/local/cuda/bin", "SOFTGPU_MEMORY": "1G",
            "PKG_CONFIG_PATH": f"{next(prefix.rglob('gpumem.pc')).parent}",
            "LD_LIBRARY_PATH": str(next(prefix.rglob("libgpumem.so.0")).parent)}
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("SOFTGPU_", "GPUMEM_DRIVER"))}
    return {**kept, **more}


def run(command, folder, env):
    done = subprocess.run(["sh", "-c", command], cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}: status {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


def section(title, parts, folder, env):
    """Its files are written, its commands run in order; the last one prints the result."""
    said = ""
    for name, text in shown.files(parts).items():
        (folder / name).write_text(text)
    commands = shown.commands(parts)
    assert len(commands) >= 2, f"{title} has hardly any command"
    for command, comment in commands:
        said = run(command, folder, env)
        if "=" in comment:
            assert comment in said, f"{command} prints {said}, and the page says {comment}"
    assert RESULT in said, f"the last command of '{title}' prints {said}"


def shared_cache(folder, env):
    """The whole program of sharing.md is the file of examples/cpp, and prints what the page says."""
    page = (SOURCE / "docs/sharing.md").read_text()
    program = (SOURCE / "examples/cpp/kv_cache.cpp").read_text()
    assert blocks(page, "cpp") == [program], "docs/sharing.md shows another program"
    (folder / "kv_cache.cpp").write_text(program)
    command = re.search(r"^c\+\+ .*kv_cache.*$", page, re.M).group(0)
    run(f"{command} -Wall -Wextra -Wpedantic -Wconversion -Werror", folder, env)
    said = run("GPUMEM_DRIVER=softgpu ./kv_cache ./cache.socket", folder, env)
    assert blocks(page, "")[-1] == said, said


def vulkan_program(folder, env):
    """docs/vkgdr.md's, with the UUID that the page's own command finds. Returns why it cannot be tried, or None."""
    parts = shown.sections("vkgdr.md")["Without a GPU"]
    for name, text in shown.files(parts).items():
        (folder / name).write_text(text)
    build, find, start = shown.commands(parts)
    run(build[0], folder, env)
    found = subprocess.run(["sh", "-c", find[0]], cwd=folder, env=env, capture_output=True, text=True, check=False).stdout
    if "UUID" not in found:
        return "Mesa's lavapipe is not installed"
    uuid = found.split()[-1]
    said = run(re.sub(r"--uuid \S+", f"--uuid {uuid}", start[0]), folder, env)
    assert start[1] in said, said
    return None


def ci_files():
    """The two YAML files have the lines that the page's commands have, and are indented by spaces; the third's
    instructions are known."""
    parts = shown.sections("ci.md")
    known = {"FROM", "RUN", "COPY", "ENV", "ENTRYPOINT", "CMD"}
    for title, language in (("GitHub", "yaml"), ("GitLab", "yaml"), ("A container", "dockerfile")):
        text = next(body for kind, body in parts[title] if kind == language)
        assert "\t" not in text and "gpumem" in text, title
        for line in text.splitlines():
            if language == "dockerfile":
                assert line.split()[0] in known, line
    try:
        import yaml  # pylint: disable=import-outside-toplevel
    except ImportError:
        return
    for title in "GitHub", "GitLab":
        yaml.safe_load(next(body for kind, body in parts[title] if kind == "yaml"))


def ci_commands(folder, env):
    """Each command that ci.md shows with a program of one's own, with a program that opens the driver; those of
    pytest, ctest and make with a suite that is one."""
    program = "import ctypes\nassert ctypes.CDLL('libcuda.so.1').cuInit(0) == 0\n"
    (folder / "my_tests").write_text(f"#!/usr/bin/env python3\n{program}c = ctypes.CDLL('libcuda.so.1')\n"
                                     "x, p, d = ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_int()\n"
                                     "c.cuDevicePrimaryCtxRetain(ctypes.byref(x), 0); c.cuCtxSetCurrent(x)\n"
                                     "c.cuMemAlloc_v2(ctypes.byref(p), 64); c.cuMemFree_v2(p)\n")
    (folder / "my_tests").chmod(0o755)
    (folder / "Makefile").write_text("check:\n\t./my_tests\n")
    (folder / "build").mkdir()
    (folder / "build/CTestTestfile.cmake").write_text(f'add_test(one "{folder}/my_tests")\n')
    tried = 0
    for title in "pytest, ctest, make", "Errors on purpose":
        for command, _ in shown.commands(shown.sections("ci.md")[title]):
            if "pytest" not in command:
                run(command, folder, env)
                tried += 1
    assert tried >= 7, f"only {tried} commands"


def main():
    report = Report()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        report.run("ci.md's files are well formed", ci_files)
        if SANITIZED:
            report.skip("programs of pages", "a sanitizer's library is not for programs of one's own")
            return report.end()
        prefix = folder / "prefix"
        subprocess.run(["cmake", "--install", BUILD, "--prefix", prefix], stdout=subprocess.DEVNULL, check=True)
        env = environment(prefix)
        parts = shown.sections("cuda-programs.md")
        work = folder / "kernels"
        work.mkdir()
        for title, need in NEEDS.items():
            if shutil.which(need, path=env["PATH"]):
                report.run(f"'{title}' of docs/cuda-programs.md runs as it is shown", section, title, parts[title], work, env)
            else:
                report.skip(f"'{title}' of docs/cuda-programs.md runs as it is shown", f"{need} is not installed")
        (folder / "vkgdr").mkdir()
        why = []
        report.run("the program of docs/vkgdr.md runs as it is shown", lambda: why.append(vulkan_program(folder / "vkgdr", env)))
        if any(why):
            report.skip("the program of docs/vkgdr.md, with a Vulkan driver", why[0])
        (folder / "ci").mkdir()
        report.run("the commands of docs/ci.md run", ci_commands, folder / "ci", env)
        (folder / "share").mkdir()
        if shutil.which("c++"):
            report.run("the program of docs/sharing.md runs as it is shown", shared_cache, folder / "share", env)
        else:
            report.skip("the program of docs/sharing.md runs as it is shown", "no C++ compiler is installed")
    return report.end()


if __name__ == "__main__":
    sys.exit(main())
