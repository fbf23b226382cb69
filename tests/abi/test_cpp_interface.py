#!/usr/bin/env python3
"""gpumem.hpp: it covers the C interface, its options are C's, it compiles without a warning with both
compilers in C++20 and C++23, with exceptions and without, costs what the C calls cost, refuses what
would go wrong, and works: programs of a user's run on softgpu."""
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
INCLUDE = SOURCE / "include/gpumem"
PROGRAMS = Path(__file__).with_name("cpp")
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Wold-style-cast", "-Werror"]
# clang 14 calls C++23 by its working name, which g++ 12 knows too.
MODES = [("g++", "c++20"), ("clang++", "c++2b")]
LONG = bool(os.environ.get("GPUMEM_TEST_LONG"))
if LONG:
    MODES += [("g++", "c++2b"), ("clang++", "c++20")]
SANITIZED = ("-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
LINK = [f"-L{BUILD}/lib", "-lgpumem", f"-Wl,-rpath,{BUILD}/lib", "-pthread"]

# Of the C interface, and used from C++ as they are: no handle, no failure to tell.
AS_THEY_ARE = {"gpumem_last_error", "gpumem_status_name", "gpumem_set_log",
               "gpumem_version", "gpumem_location_name",
               "gpumem_access_name", "gpumem_handle_type_name", "gpumem_capability_name",
               "gpumem_set_last_error", "gpumem_mapped_method_name"}
# The driver's own API and softgpu's controls are interfaces of their own.
OTHER_INTERFACES = {"driver.h", "softgpu.h", "cuda_api.h"}

# Their functions are callables in C++.
WITH_CALLABLES = {"gpumem_load_options", "gpumem_trace_options", "gpumem_failure_callback_options",
                  "gpumem_foreign_options"}
# Counts are part of the spans that they count.
NOT_MEMBERS = {"size", "peer_count", "user_count", "ndim"}

BEGIN = "#include <gpumem/gpumem.hpp>\n"
# title, text that compiles, what is put in its place and must not compile
REFUSED = [
    ("a borrowed handle of a temporary", "auto e = gpumem::device::open(l); gpumem::device_ref r = e;",
     "gpumem::device_ref r = gpumem::device::open(l);"),
    ("a copy of an owner", "gpumem::buffer b; gpumem::buffer c = std::move(b);",
     "gpumem::buffer b; gpumem::buffer c = b;"),
    ("assignment to a borrowed handle", "gpumem::resource_ref a = nullptr, b = a;",
     "gpumem::resource_ref a = nullptr, b = a; a = b;"),
    ("owning a C pointer unsaid", "auto b = gpumem::buffer::adopt(nullptr);",
     "gpumem_buffer *p = nullptr; gpumem::buffer b = p;"),
    ("the handle of a destroyed stream", "auto s = gpumem::stream::create(d); CUstream r = s;",
     "CUstream r = gpumem::stream::create(d);"),
    ("an ignored result", "if (!gpumem::buffer().try_close()) q = nullptr;",
     "gpumem::buffer().try_close();"),
    ("a callable of a temporary, to be kept",
     "auto f = [q](const gpumem_allocation_failure &) { return q ? GPUMEM_FAILURE_RETRY : GPUMEM_FAILURE_GIVE_UP; };"
     " gpumem::failure_callback_options o{.fn = f};",
     "gpumem::failure_callback_options o{.fn = [q](const gpumem_allocation_failure &) "
     "{ return q ? GPUMEM_FAILURE_RETRY : GPUMEM_FAILURE_GIVE_UP; }};"),
    ("a watch by a temporary callable",
     "auto f = [](const gpumem_watch_event &) {}; "
     "auto w = gpumem::watch::create(gpumem::buffer_ref(nullptr), f);",
     "auto w = gpumem::watch::create(gpumem::buffer_ref(nullptr), "
     "[](const gpumem_watch_event &) {});"),
    ("options in another order", "gpumem::buffer_options o{.alignment = 1, .capacity = 2};",
     "gpumem::buffer_options o{.capacity = 2, .alignment = 1};"),
]

REPORT = Report()
report, skip = REPORT.expect, REPORT.skip


def without_comments(text):
    return re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.S)


def compile_text(compiler, standard, text, *flags):
    done = subprocess.run(
        [compiler, "-x", "c++", f"-std={standard}", *WARNINGS, *flags, "-I", str(SOURCE / "include"),
         "-fsyntax-only", "-"], input=text, capture_output=True, text=True, check=False)
    return done.returncode == 0, done.stderr


def c_functions():
    names = set()
    for header in INCLUDE.glob("*.h"):
        if header.name not in OTHER_INTERFACES:
            text = without_comments(header.read_text())
            names |= set(re.findall(r"GPUMEM_API[^;]*?\b(gpumem_\w+)\(", text))
    return names


def every_c_function_is_called():
    called = set()
    for header in INCLUDE.glob("cpp/*.hpp"):
        called |= set(re.findall(r"\b(gpumem_\w+)\(", without_comments(header.read_text())))
    names = c_functions()
    assert {"gpumem_open", "gpumem_buffer_grow", "gpumem_import_create"} <= names, "not found"
    missing = sorted(names - called - AS_THEY_ARE)
    report(not missing, "every function of the C interface is in the C++ interface",
           "not called in include/gpumem/cpp:\n" + "\n".join(missing))
    gone = sorted(AS_THEY_ARE - names)
    report(not gone, "C functions that C++ uses directly exist", "\n".join(gone))


def members(text, name):
    body = re.search(r"struct " + name + r" \{(.*?)\n\}", without_comments(text), re.S)
    if not body:
        return None
    declared = [part.split("=")[0].strip() for part in body.group(1).split(";") if part.strip()]
    return [re.search(r"\(\*(\w+)\)", each).group(1) if "(*" in each else
            re.search(r"(\w+)$", each).group(1) for each in declared]


def options_are_those_of_c():
    ours = "".join(path.read_text() for path in INCLUDE.glob("cpp/*.hpp"))
    for header in sorted(INCLUDE.glob("*.h")):
        text = header.read_text()
        for name in re.findall(r"^typedef struct (gpumem_\w+_options) \{", text, re.M):
            wanted = [each for each in members(text, name) if each not in NOT_MEMBERS]
            if name in WITH_CALLABLES:
                wanted.remove("user")  # the callable has it
            found = members(ours, name.removeprefix("gpumem_"))
            report(found == wanted, f"{name} has the same members in C++", f"{wanted}\n{found}")


def run_program(name, compiler, standard, folder, *flags):
    """Compiles and runs; what was said, or None when all is well."""
    program = Path(folder) / name
    done = subprocess.run(
        [compiler, f"-std={standard}", *WARNINGS, *flags, "-I", str(SOURCE / "include"),
         str(PROGRAMS / f"{name}.cpp"), "-o", str(program), *LINK],
        capture_output=True, text=True, check=False)
    if done.returncode == 0:
        # What the driver keeps to the end of the process is its own.
        environment = dict(os.environ, ASAN_OPTIONS="detect_leaks=0")
        environment.pop("GPUMEM_DRIVER", None)
        done = subprocess.run([str(program)], capture_output=True, text=True, check=False,
                              env=environment)
    return None if done.returncode == 0 else done.stdout + done.stderr


def programs_run(compiler, standard):
    with tempfile.TemporaryDirectory() as folder:
        for name, flags in (("throwing", ("-O2",)), ("throwing", SANITIZED),
                            ("plain", ("-O2", "-fno-exceptions", "-fno-rtti"))):
            # What sanitizers look at is the same in every standard, and with either compiler.
            if flags is SANITIZED and (compiler, standard) != MODES[0]:
                continue
            said = run_program(name, compiler, standard, folder, *flags)
            report(said is None, f"{name}.cpp, {compiler} {standard} {flags[-1]}", said or "")


def goes_with_the_driver_api(compiler, standard):
    for other in ("cuda_api.h", "driver.h", "softgpu.h"):
        for text in (BEGIN + f"#include <gpumem/{other}>\n", f"#include <gpumem/{other}>\n" + BEGIN):
            good, said = compile_text(compiler, standard, text)
            order = "before" if text.startswith(BEGIN) else "after"
            report(good, f"gpumem.hpp {order} {other}, {compiler} {standard}", said)


def function(name, statements):
    parameters = "(gpumem::library_ref l, gpumem::device_ref d, gpumem_library *q)"
    return f"void {name}{parameters};\nvoid {name}{parameters} {{\n    (void)l, (void)d, (void)q;\n    {statements}\n}}\n"


def titled(result, title):
    good, said = result
    return good, title, said


def precompile(compiler, standard, folder, flags):
    """The header once for many compilations; the flags that use it. g++ finds it by its name."""
    made = Path(folder) / "gpumem/gpumem.hpp.gch"
    made.parent.mkdir()
    subprocess.run([compiler, "-x", "c++-header", f"-std={standard}", *WARNINGS, "-I",
                    str(SOURCE / "include"), *flags, str(INCLUDE / "gpumem.hpp"), "-o", str(made)],
                   check=True)
    return ["-I", str(folder)] if compiler == "g++" else ["-include-pch", str(made)]


def misuse_is_refused(compiler, standard):
    # Unused variables are part of the examples.
    quiet = ["-Wno-unused-variable", "-Wno-unused-but-set-variable", "-Wno-unused-but-set-parameter"]
    with tempfile.TemporaryDirectory() as folder:
        flags = [*quiet, *precompile(compiler, standard, folder, quiet)]
        good = BEGIN + "".join(function(f"good{i}", text) for i, (_, text, _) in enumerate(REFUSED))
        report(*titled(compile_text(compiler, standard, good, *flags),
                       f"what is allowed compiles, {compiler} {standard}"))
        for title, _, text in REFUSED:
            compiles, _ = compile_text(compiler, standard, BEGIN + function("bad", text), *flags)
            report(not compiles, f"refused: {title}, {compiler} {standard}", "it compiles")


def modes_do_not_meet(compiler):
    """A function compiled without exceptions is not found by a file with them."""
    user = BEGIN + "void meet(gpumem::buffer_ref);\nint main() { meet(nullptr); }\n"
    maker = BEGIN + "void meet(gpumem::buffer_ref);\nvoid meet(gpumem::buffer_ref) {}\n"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "user.cpp").write_text(user)
        (folder / "maker.cpp").write_text(maker)
        for flag, links in (("-fexceptions", True), ("-fno-exceptions", False)):
            command = [compiler, "-std=c++20", "-I", str(SOURCE / "include")]
            subprocess.run([*command, flag, "-c", "maker.cpp", "-o", "maker.o"], cwd=folder, check=True)
            done = subprocess.run([*command, "user.cpp", "maker.o", "-o", "both", *LINK], cwd=folder,
                                  capture_output=True, text=True, check=False)
            good = done.returncode == 0 if links else "undefined reference" in done.stderr
            report(good, f"a file made with {flag} {'links' if links else 'is refused'}, {compiler}",
                   done.stderr)


def code_of(listing, prefix):
    """The instructions of each function with this prefix, addresses and names taken out."""
    found = {}
    for name, text in re.findall(r"<" + prefix + r"(\w+)>:\n(.*?)(?:\n\n|\Z)", listing, re.S):
        lines = [line.split(":", 1)[1] for line in text.splitlines() if ":" in line]
        lines = [re.sub(r"\b[0-9a-f]+ <in_\w+\+(0x[0-9a-f]+)>", r"\1", line).strip() for line in lines]
        found[name] = [line for line in lines if not re.match(r"(data16|cs|nop|xchg +%ax,%ax)", line)]
    return found


def costs_are_those_of_c(compiler):
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "costs.o"
        subprocess.run([compiler, "-std=c++20", "-O2", "-fno-exceptions", "-fcf-protection=none", "-I",
                        str(SOURCE / "include"), "-c", str(PROGRAMS / "costs.cpp"), "-o", str(made)],
                       check=True)
        listing = subprocess.run(["objdump", "-dr", "--no-show-raw-insn", str(made)],
                                 capture_output=True, text=True, check=True).stdout
    in_c, in_cpp = code_of(listing, "in_c_"), code_of(listing, "in_cpp_")
    wanted = set(re.findall(r"^PAIR\([^,]*, (\w+)", (PROGRAMS / "costs.cpp").read_text(), re.M))
    report(wanted == set(in_c) == set(in_cpp), f"matching C and C++ functions are found, {compiler}", listing)
    for name in sorted(wanted):
        report(in_c.get(name) == in_cpp.get(name) and in_c[name], f"{name} costs as in C, {compiler}",
               f"C: {in_c.get(name)}\nC++: {in_cpp.get(name)}")


def main():
    every_c_function_is_called()
    options_are_those_of_c()
    for compiler, standard in MODES:
        if not shutil.which(compiler):
            skip(f"{compiler} {standard}", f"{compiler} is not installed")
            continue
        if LONG or compiler == "g++":
            goes_with_the_driver_api(compiler, standard)
        programs_run(compiler, standard)
    # That headers compile with clang++ is of test_public_headers.py; what they refuse it refuses, too.
    for compiler in filter(shutil.which, ("g++", "clang++") if LONG else ("g++",)):
        misuse_is_refused(compiler, "c++20")
        modes_do_not_meet(compiler)
        costs_are_those_of_c(compiler)
        good, said = compile_text(compiler, "c++17", BEGIN)
        report(not good and "needs C++20" in said, f"C++17 is refused with a clear error, {compiler}", said)
    return REPORT.end()


if __name__ == "__main__":
    sys.exit(main())
