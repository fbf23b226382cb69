#!/usr/bin/env python3
"""Every public header compiles alone, as C17 and C++17 (those of C++ as C++20 and C++23), with both
compilers, without a warning; and the memory API's headers go with cuda.h in either order.

All of them beside cuda.h are one compilation, because what compiles alone needs nothing before it."""
import functools
import os
import shutil
import subprocess
import sys
from pathlib import Path

import headers

SOURCE = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tests/harness"))
from tap_report import Report  # noqa: E402  pylint: disable=wrong-import-position
BUILD = Path(os.environ.get("GPUMEM_BUILD_DIR", SOURCE / "build"))
COMPILERS = [("gcc", "c", "c17"), ("clang", "c", "c17"), ("g++", "c++", "c++17"),
             ("clang++", "c++", "c++17")]
# clang 14 calls C++23 by its working name, which g++ 12 knows too.
CPP_COMPILERS = [("g++", "c++20"), ("clang++", "c++2b")]
MODES = ("-fexceptions", "-fno-exceptions")
# What a header lacks alone, it lacks with either compiler, because both have the same library: each looks at one mode.
# All headers together are compiled with both in both.
ALONE = {"g++": MODES[:1], "clang++": MODES[1:]}
if os.environ.get("GPUMEM_TEST_LONG"):
    CPP_COMPILERS += [("g++", "c++2b"), ("clang++", "c++20")]
    ALONE = {"g++": MODES, "clang++": MODES}
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror"]
# Needs a library that is not here: clients/test_cccl.py compiles it, with the newest.
WITH_CCCL = Path("gpumem/cpp/cuda_mr.hpp")
# These declare CUDA's own types and say so: with cuda.h they must refuse, with a message.
WITHOUT_CUDA = {"driver.h", "cuda_api.h"}

REPORT = Report()
report, skip = REPORT.expect, REPORT.skip


def compiles(compiler, language, standard, text, *flags):
    command = [compiler, "-x", language, f"-std={standard}", *WARNINGS, "-fsyntax-only",
               "-I", str(SOURCE / "include"), *flags, "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    return done.returncode == 0, done.stderr


@functools.lru_cache(None)
def declares_cuda(header):
    """Whether a header pulls in cuda_api.h."""
    done = subprocess.run(["cc", "-I", str(SOURCE / "include"), "-MM", str(header)],
                          capture_output=True, text=True, check=True)
    return "gpumem/cuda_api.h" in done.stdout


def cpp_headers(cuda, why_not):
    """The C++ interface's headers: alone, with exceptions and without, and beside cuda.h."""
    include = SOURCE / "include"
    public = sorted(path.relative_to(include) for path in include.rglob("*.hpp"))
    assert Path("gpumem/gpumem.hpp") in public, "the headers of C++ are not found"
    for compiler, standard in CPP_COMPILERS:
        if not shutil.which(compiler):
            skip(f"headers of C++ with {compiler} {standard}", f"{compiler} is not installed")
            continue
        good, said = compiles(compiler, "c++", standard, f"#include <{WITH_CCCL}>\n")
        report(not good and "needs CCCL" in said, f"{WITH_CCCL} says what it needs, {compiler} {standard}", said)
        for header in public:
            if header == WITH_CCCL:
                continue
            text = f"#include <{header}>\n#include <{header}>\n"
            for mode in MODES if header.name == "gpumem.hpp" else ALONE[compiler]:
                report(*_titled(compiles(compiler, "c++", standard, text, mode),
                                f"{header} alone, {compiler} {standard} {mode}"))
        ours, theirs = "#include <gpumem/gpumem.hpp>\n", "#include <cuda.h>\n"
        for order in (ours + theirs, theirs + ours):
            title = f"gpumem.hpp {'before' if order.startswith(ours) else 'after'} cuda.h, {compiler} {standard}"
            if cuda is None:
                skip(title, why_not)
            else:
                report(*_titled(compiles(compiler, "c++", standard, order, "-isystem", str(cuda)), title))


def beside_cuda(language_of, public, cuda):
    """Those that declare CUDA's types refuse it, each; all others go with it, before it and after it."""
    compiler, language, standard = language_of
    theirs, isystem = "#include <cuda.h>\n", ["-isystem", str(cuda)]
    others = []
    for header in public:
        ours = f"#include <{header.relative_to(SOURCE / 'include')}>\n"
        if not declares_cuda(header):
            others.append((header.name, ours))
            continue
        good, output = compiles(compiler, language, standard, theirs + ours, *isystem)
        report(not good and "include one of them" in output,
               f"{header.name} after cuda.h is refused plainly, {compiler}", output)
    whole = "".join(ours for _, ours in others)
    for first in ("before", "after"):
        def goes(ours, after=first == "after"):
            return compiles(compiler, language, standard, theirs + ours if after else ours + theirs, *isystem)
        result = goes(whole)
        report(*_titled(result, f"all others {first} cuda.h, {compiler}"))
        for name, ours in [] if result[0] else others:  # which it was
            report(*_titled(goes(ours), f"{name} {first} cuda.h, {compiler}"))


def main():
    include = SOURCE / "include"
    public = [*sorted((include / "gpumem").glob("*.h")), *sorted(include.glob("*.h"))]
    assert include / "vkgdr.h" in public, "vkgdr's header is not found"
    cuda, why_not = headers.find("13.0", BUILD)
    for compiler, language, standard in COMPILERS:
        if not shutil.which(compiler):
            skip(f"headers with {compiler}", f"{compiler} is not installed")
            continue
        for header in public:
            text = f"#include <{header.relative_to(include)}>\n" * 2
            report(*_titled(compiles(compiler, language, standard, text),
                            f"{header.name} alone, {compiler} {standard}"))
        # A header that does not compile must be noticed, or nothing above means anything.
        good, _ = compiles(compiler, language, standard,
                           "#include <gpumem/status.h>\nstatic int planted(long x) { return x; }\n")
        report(not good, f"a planted warning is an error, {compiler}")
        if cuda is None:
            skip(f"headers with cuda.h, {compiler}", why_not)
        else:
            beside_cuda((compiler, language, standard), public, cuda)
    names = {header.name for header in public if declares_cuda(header)}
    report(names == WITHOUT_CUDA, "only driver.h and cuda_api.h declare CUDA's types",
           f"those that do: {sorted(names)}")
    cpp_headers(cuda, why_not)
    return REPORT.end()


def _titled(result, title):
    good, output = result
    return good, title, output


if __name__ == "__main__":
    sys.exit(main())
