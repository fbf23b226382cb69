#!/usr/bin/env python3
"""Each options struct has its macro, and the macros work as a user writes them: in C11, C17 and C++20,
compiled by both compilers without a warning, the struct alive for as long as the call lasts."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tests/harness"))
from tap_report import Report  # noqa: E402  pylint: disable=wrong-import-position
BUILD = Path(os.environ.get("GPUMEM_BUILD_DIR", SOURCE / "build"))
PROGRAM = Path(__file__).with_name("option_macros.c")
COMPILERS = [("gcc", "c", "c11"), ("gcc", "c", "c17"), ("clang", "c", "c17"),
             ("g++", "c++", "c++20"), ("clang++", "c++", "c++20")]
# Without optimisation and with it; a struct that is gone too early shows under the sanitizer.
VARIANTS = [("-O0",), ("-O2",), ("-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")]
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror"]
# Of the headers' macros alone; the program is C as well.
OLD_CASTS = """#include <gpumem/gpumem.h>
gpumem_status all(gpumem_resource *resource, gpumem_buffer **buffer);
gpumem_status all(gpumem_resource *resource, gpumem_buffer **buffer) {
    const CUstream streams[] = {GPUMEM_STREAM_LEGACY, GPUMEM_STREAM_PER_THREAD,
                                GPUMEM_STREAM_NONE};
    return gpumem_buffer_allocate(resource, 1, GPUMEM_BUFFER_OPTIONS(.stream = streams[0]), buffer);
}
"""
STRUCT = re.compile(r"^\} (gpumem_\w+_options);$", re.M)

# A pointer that outlives its struct: clang says so where it can.
DANGLING = """#include <gpumem/gpumem.h>
const gpumem_buffer_options *kept(void);
const gpumem_buffer_options *kept(void) {
    const gpumem_buffer_options *options = GPUMEM_BUFFER_OPTIONS(.alignment = 64);
    return options;
}
"""

REPORT = Report()
report, skip = REPORT.expect, REPORT.skip


def compile_command(compiler, language, standard):
    return [compiler, "-x", language, f"-std={standard}", *WARNINGS, "-I", str(SOURCE / "include")]


def compiles(compiler, text, *flags):
    done = subprocess.run(
        [*compile_command(compiler, "c++", "c++20"), *flags, "-fsyntax-only", "-"],
        input=text, capture_output=True, text=True, check=False)
    return done.returncode == 0, done.stderr


def try_program(compiler, language, standard, variant, folder):
    """Compiles the program, runs it; what was said, or None when all is well."""
    program = Path(folder) / "program"
    done = subprocess.run(
        [*compile_command(compiler, language, standard), *variant, str(PROGRAM),
         "-x", "none", "-o", str(program), f"-L{BUILD}/lib", "-lgpumem", f"-Wl,-rpath,{BUILD}/lib"],
        capture_output=True, text=True, check=False)
    if done.returncode == 0:
        # What the driver keeps to the end of the process is its own.
        environment = dict(os.environ, GPUMEM_DRIVER="softgpu", ASAN_OPTIONS="detect_leaks=0")
        done = subprocess.run([str(program)], capture_output=True, text=True, check=False,
                              env=environment)
    return None if done.returncode == 0 else done.stdout + done.stderr


def every_struct_has_its_macro():
    for header in sorted((SOURCE / "include/gpumem").glob("*.h")):
        text = header.read_text()
        for name in STRUCT.findall(text):
            line = f"#define {name.upper()}(...) GPUMEM_OPTIONS({name}, __VA_ARGS__)\n"
            flat = re.sub(r"\s*\\\n\s*", " ", text)
            report(line in flat, f"{name} has its macro", f"{header.name} lacks: {line}")
            report(f"GPUMEM_{name[7:].upper()}(" in PROGRAM.read_text(), f"{name} is tried",
                   f"{PROGRAM.name} does not use it")


def main():
    every_struct_has_its_macro()
    for compiler, language, standard in COMPILERS:
        if not shutil.which(compiler):
            skip(f"macros with {compiler} {standard}", f"{compiler} is not installed")
            continue
        for variant in VARIANTS:
            with tempfile.TemporaryDirectory() as folder:
                said = try_program(compiler, language, standard, variant, folder)
            report(said is None, f"{compiler} {standard} {' '.join(variant[:2])}", said or "")
    for compiler in filter(shutil.which, ("g++", "clang++")):
        good, said = compiles(compiler, OLD_CASTS, "-Wold-style-cast")
        report(good, f"the macros have no old-style cast, {compiler}", said)
    if shutil.which("clang++"):
        good, said = compiles("clang++", DANGLING)
        report(not good and "dangling" in said.lower(),
               "clang++ warns of a struct that is kept past its expression", said)
    return REPORT.end()


if __name__ == "__main__":
    sys.exit(main())
