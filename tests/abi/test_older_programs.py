#!/usr/bin/env python3
"""Programs compiled against older headers keep working. Each versioned struct has a row in
src/base/struct_sizes.def and has only grown since; programs in C and C++ run on a library whose
structs are larger than theirs: with headers cut back to the first release on this library, and with
these headers on a library whose every struct has a member more."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tests/harness"))
from tap_report import Report  # noqa: E402  pylint: disable=wrong-import-position
BUILD = Path(os.environ.get("GPUMEM_BUILD_DIR", SOURCE / "build"))
HERE = Path(__file__).parent
TABLE = SOURCE / "src/base/struct_sizes.def"
# softgpu fills its controls itself, and says how many it has. The rest have no versioned structs.
OTHERS = {"softgpu.h", "cuda_api.h", "dlpack_abi.h"}
STRUCT = re.compile(r"typedef struct (gpumem_\w+) \{\s*size_t size;(.*?)\n\} \1;", re.S)
LATER = "added_later"
COMPILERS = [("gcc", "c", "c17"), ("clang", "c", "c17"), ("g++", "c++", "c++20")]
# Compiled in the build, against these headers: results and options of every chapter.
CONFORMANCE = ["every_resource", "library_buffers", "library_mapped", "library_pools",
               "library_share", "library_snapshot", "library_streams", "library_virtual", "wrappers"]

REPORT = Report()
report, skip = REPORT.expect, REPORT.skip


def run(command, **more):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True,
                          check=False, **more)
    return done.returncode, done.stdout + done.stderr


# ---- The table ----------------------------------------------------------------------------------

def without_comments(text):
    return re.sub(r"/\*.*?\*/", lambda found: "\n" * found.group().count("\n"), text, flags=re.S)


def headers(include):
    return [path for path in sorted((include / "gpumem").glob("*.h")) if path.name not in OTHERS]


def members_of(body):
    """The declarations, without their semicolons, and the names that they declare."""
    declared = [part.strip() for part in body.split(";") if part.strip()]
    names = [re.search(r"\(\*(\w+)\)|(\w+)(?:\[[^]]*\])?$", each) for each in declared]
    return [(each, name.group(1) or name.group(2)) for each, name in zip(declared, names)]


def structs_of(include):
    found = {}
    for path in headers(include):
        for name, body in STRUCT.findall(without_comments(path.read_text())):
            found[name] = members_of(body)
    return found


def read_table(path):
    return {name: int(size) for name, size in
            re.findall(r"^GM_STRUCT\((\w+), (\d+)\)$", path.read_text(), re.M)}


def layouts_of(include, structs, folder):
    """Of each struct its size, and of each member where it begins and ends."""
    lines = ["#include <stdio.h>", "#include <gpumem/gpumem.h>", "#include <gpumem/driver.h>", "int main(void) {"]
    for name, members in structs.items():
        lines.append(f'printf("{name} - %zu 0\\n", sizeof({name}));')
        for _, member in members:
            lines.append(f'printf("{name} {member} %zu %zu\\n", offsetof({name}, {member}), '
                         f'offsetof({name}, {member}) + sizeof((({name} *)0)->{member}));')
    source, program = folder / "layouts.c", folder / "layouts"
    source.write_text("\n".join(lines + ["return 0; }"]))
    code, said = run(["gcc", "-w", "-I", include, source, "-o", program])
    if code:
        return None, said
    layouts = {}
    for line in run([program])[1].splitlines():
        name, member, begin, end = line.split()
        layouts.setdefault(name, {})[member] = (int(begin), int(end))
    return layouts, ""


def judge(include, table, folder):
    """What is wrong with the structs beside the table."""
    structs = structs_of(include)
    problems = [f"{name} has no row: add GM_STRUCT({name}, its size)" for name in structs
                if name not in table]
    problems += [f"{name} has a row, and is no struct any more" for name in table
                 if name not in structs]
    layouts, said = layouts_of(include, structs, folder)
    if layouts is None:
        return problems + said.splitlines()[:5]
    for name in structs:
        first, size = table.get(name), layouts[name].pop("-")[0]
        if first is None:
            continue
        if size < first:
            problems.append(f"{name} has {size} bytes, and had {first} when it was released")
        for member, (begin, end) in layouts[name].items():
            if begin < first < end:
                problems.append(f"{name}.{member} lies across the first {first} bytes")
        ends = [end for begin, end in layouts[name].values() if begin < first]
        last = max(ends, default=8)
        if (last + 7) // 8 * 8 != first:
            problems.append(f"{name}: the members within {first} bytes end at {last}")
    return problems


# Of buffer options 32 bytes are known: a size, three members of 8 bytes.
PLANTED = [
    ("a struct without a row", "copy.h", "typedef struct gpumem_stream_options {",
     "typedef struct gpumem_fresh {\n    size_t size;\n    int a;\n} gpumem_fresh;\n"
     "typedef struct gpumem_stream_options {"),
    ("a removed struct", "wrappers.h", "typedef struct gpumem_tracked {\n    size_t size;",
     "typedef struct gpumem_tracked {\n    size_t magnitude;"),
    ("a shrunk struct", "library.h", "    unsigned char uuid[16];", ""),
    ("a member in place of two", "stats.h", "uint64_t quarantined;", "uint64_t quarantined[9];"),
]


def copy_of_headers(folder):
    shutil.copytree(SOURCE / "include", folder)
    return folder


def table_is_whole_and_kept():
    table = read_table(TABLE)
    with tempfile.TemporaryDirectory() as name:
        problems = judge(SOURCE / "include", table, Path(name))
    report(not problems, "every versioned struct has a row and has grown only by whole members",
           "\n".join(problems))
    for title, header, text, instead in PLANTED:
        with tempfile.TemporaryDirectory() as name:
            include = copy_of_headers(Path(name) / "include")
            path = include / "gpumem" / header
            before = path.read_text()
            path.write_text(before.replace(text, instead, 1))
            found = path.read_text() != before and judge(include, table, Path(name))
        report(bool(found), f"planted: {title}", "nothing was found")


# ---- Programs -----------------------------------------------------------------------------------

def cut_back(include, folder):
    """These headers as they were at the first release; which structs were larger since."""
    table, structs = read_table(TABLE), structs_of(include)
    layouts, said = layouts_of(include, structs, folder)
    assert layouts, said
    smaller = []
    for path in headers(include):
        text = without_comments(path.read_text())
        for name, body in STRUCT.findall(text):
            kept = [each for each, member in members_of(body)
                    if layouts[name][member][0] < table[name]]
            if len(kept) < len(structs[name]):
                smaller.append(name)
                text = text.replace(body, "\n    " + ";\n    ".join(kept) + ";")
        path.write_text(text)
    layouts, said = layouts_of(include, structs_of(include), folder)
    wrong = [f"{name} has {layouts[name]['-'][0]} bytes instead of {table[name]}"
             for name in (layouts or {}) if layouts[name]["-"][0] != table[name]]
    # Today none is smaller: the table was made anew for docs/api-1.0.md.
    report(layouts is not None and not wrong,
           "struct sizes of older headers agree with the table", said + "\n".join(wrong + smaller))


def make_larger(include):
    """These headers as a later version might have them: each struct with a member more."""
    for path in headers(include):
        text = STRUCT.sub(lambda found: found.group().replace(
            found.group(2), f"{found.group(2)}\n    unsigned long long {LATER};"),
            without_comments(path.read_text()))
        if path.name == "status.h":
            text = re.sub(r"(#define GPUMEM_VERSION_PATCH\s+)\d+", r"\g<1>99", text)
        path.write_text(text)


def build_library(include, folder):
    """This library's sources with those headers. What went wrong, or None."""
    folders = {path.parent for path in (SOURCE / "src").rglob("*.c")
               if not {"softgpu", "vkgdr", "runtime"} & set(path.relative_to(SOURCE / "src").parts[:-1])}

    def compile_folder(part):
        objects = folder / "objects" / part.relative_to(SOURCE)  # two may have files of one name
        objects.mkdir(parents=True, exist_ok=True)  # one may lie in another, made by the other thread
        sources = sorted(path for path in part.glob("*.c") if path.name != "absent.c")  # of a build without Vulkan
        return run(["gcc", "-std=c17", "-D_GNU_SOURCE", "-w", "-fPIC", "-fvisibility=hidden", "-c",
                    "-DGPUMEM_BUILD", f'-DGPUMEM_INSTALL_LIBDIR="{BUILD}/lib"', "-I", include,
                    "-I", SOURCE / "src", *sources], cwd=objects)

    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(compile_folder, sorted(folders)))
    if any(code for code, _ in done):
        return "".join(said for _, said in done)
    (folder / "gpumem").symlink_to(BUILD / "lib/gpumem")  # softgpu, where the library looks first
    library = folder / "libgpumem.so.0"
    code, said = run(["gcc", "-shared", "-o", library, f"-Wl,-soname,{library.name}",
                      f"-Wl,--version-script={SOURCE}/src/gpumem.map",
                      *sorted((folder / "objects").rglob("*.o")), "-pthread", "-ldl"])
    return said if code else None


def environment(library=None):
    with_library = {"LD_LIBRARY_PATH": str(library)} if library else {}
    return dict(os.environ, GPUMEM_DRIVER="softgpu", SOFTGPU_LOG="off", **with_library)


def compile_and_run(compiler, language, standard, include, folder, library=None, source=None):
    program = folder / f"program-{compiler}"
    code, said = run([compiler, "-x", language, f"-std={standard}", "-Wall", "-Wextra", "-Werror",
                      "-I", include, source or HERE / "older_program.c", "-x", "none", "-o", program,
                      f"-L{BUILD}/lib", "-lgpumem", f"-Wl,--enable-new-dtags,-rpath,{BUILD}/lib",
                      "-pthread"])
    return (code, said) if code else run([program], env=environment(library))


def older_headers_on_this_library():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        include = copy_of_headers(folder / "include")
        cut_back(include, folder)
        for compiler, language, standard in COMPILERS:
            title = f"a program of the first release, {compiler} {standard}"
            if not shutil.which(compiler):
                skip(title, f"{compiler} is not installed")
                continue
            code, said = compile_and_run(compiler, language, standard, include, folder)
            report(code == 0, title, said)


def this_programs_on_a_later_library():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        include = copy_of_headers(folder / "include")
        make_larger(include)
        grown = sum(LATER in path.read_text() and path.read_text().count(LATER)
                    for path in headers(include))
        report(grown == len(read_table(TABLE)), "every struct of the later library is larger",
               f"{grown} of {len(read_table(TABLE))}")
        said = build_library(include, folder)
        report(said is None, "a later library builds", said or "")
        if said is not None:
            return
        for compiler, language, standard in COMPILERS:
            title = f"a program of today's headers on it, {compiler} {standard}"
            if not shutil.which(compiler):
                skip(title, f"{compiler} is not installed")
                continue
            code, said = compile_and_run(compiler, language, standard, SOURCE / "include", folder,
                                         folder)
            report(code == 0 and re.search(r"^library \d*99$", said, re.M), title, said)
        if shutil.which("g++"):
            code, said = compile_and_run("g++", "c++", "c++20", SOURCE / "include", folder, folder,
                                         HERE / "cpp/throwing.cpp")
            report(code == 0, "a program of today's gpumem.hpp on it", said)
        for test in CONFORMANCE:
            code, said = run([BUILD / "tests/conformance/run", f"test_{test}"],
                             env=environment(folder), cwd=folder)
            report(code == 0, f"conformance/test_{test} on it", "\n".join(
                line for line in said.splitlines() if "OK ]" not in line and "RUN  " not in line))


def main():
    missing = [name for name in ("lib/libgpumem.so", "tests/conformance/run") if not (BUILD / name).exists()]
    if missing:
        report(False, "what is tested is built", f"{BUILD} lacks {' and '.join(missing)}: "
               "./dev test abi/test_older_programs builds what this needs")
        return REPORT.end()
    table_is_whole_and_kept()
    older_headers_on_this_library()
    this_programs_on_a_later_library()
    return REPORT.end()


if __name__ == "__main__":
    sys.exit(main())
