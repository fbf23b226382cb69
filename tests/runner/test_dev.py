#!/usr/bin/env python3
"""./dev itself: help without a build, wrong arguments, what it says is missing, no file left in the
temporary folder, and nothing running once it was killed. Nothing is built: cmake is one of ours."""
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import processes

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "harness"))
from tap_report import run_in_folders  # noqa: E402  pylint: disable=wrong-import-position

SOURCE = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("GPUMEM_BUILD_DIR", SOURCE / "build"))
COMMANDS = ("demo", "test", "bench", "parity", "prove", "coverage", "mutate", "clients", "lint", "fuzz", "package", "release",
            "api", "docs", "floors", "bundle", "deps", "format")
# A test that is quick and needs a build.
QUICK = "docs/test_coverage_table"
# What the commands call, of ours: each writes its name and number, and then does as $STAYS says.
STUB = """#!/bin/sh
[ "$1" != --version ] || exit 0
echo "${0##*/} $$ $*" >>"$NOTES"
case " $STAYS " in *" ${0##*/} "*) sh -c 'echo "child $$" >>"$NOTES"; sleep 1000' ;; esac
[ "${0##*/}" != cmake ] || { echo '[3/7] Building'; echo 'a warning'; }
exit ${STUB_STATUS:-0}
"""
INSTALLED = "#!/bin/sh\necho installed\n"
MISSING = "#!/bin/sh\nexit 1\n"
NOBODY = '#!/bin/sh\n[ "$1" != -u ] || { echo 1000; exit; }\nexec /usr/bin/id "$@"\n'


# Not on a machine with nothing.
TOOLS = ("cc", "gcc", "g++", "c++", "clang", "cmake", "ninja", "make", "clang-format", "clang-tidy", "cppcheck",
         "shellcheck", "pkg-config", "meson", "file", "readelf")
# A compiler that finds the C library's headers alone.
BARE_COMPILER = """#!/bin/sh
[ "$1" != -E ] || { ! grep -E 'lz4|zstd|zlib|vulkan|cmocka'; exit; }
"""


class Place:
    """A folder for one try: programs of ours in front of the PATH, notes, temporary files. `hidden`: commands that
    are not there; `more`: others of ours."""

    def __init__(self, folder, packages=INSTALLED, hidden=(), more=None, **environment):
        self.notes = folder / "notes"
        self.temporary = folder / "temporary"
        programs = folder / "programs"
        for each in self.temporary, programs:
            each.mkdir()
        ours = {"cmake": STUB, "clang-format": STUB, "clang-tidy": STUB, "cppcheck": STUB, "dpkg-query": packages,
                "id": NOBODY, "sudo": "#!/bin/sh\nexit 1\n", **(more or {})}
        for name, text in ours.items():
            if name not in hidden:
                (programs / name).write_text(text)
                (programs / name).chmod(0o755)
        path = f"{programs}:{os.environ['PATH']}"
        if hidden:
            path = f"{programs}:{self.without(hidden, folder / 'rest')}"
        self.environment = dict(os.environ, PATH=path,
                                NOTES=str(self.notes), TMPDIR=str(self.temporary),
                                GPUMEM_TEST_RECORDS=str(folder / "records"), **environment)

    @staticmethod
    def without(hidden, rest):
        """All commands of the system but these."""
        rest.mkdir()
        for program in Path("/usr/bin").iterdir():
            if program.name not in hidden:
                (rest / program.name).symlink_to(program)
        return rest

    def start(self, *arguments):
        return subprocess.Popen([str(SOURCE / "dev"), *arguments], env=self.environment,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True, start_new_session=True)

    def run(self, *arguments):
        process = self.start(*arguments)
        output, _ = process.communicate(timeout=processes.PATIENCE)
        return process.returncode, output

    def called(self):
        return self.notes.read_text().splitlines() if self.notes.exists() else []

    def left(self):
        return sorted(path.name for path in self.temporary.rglob("*"))


def help_builds_nothing(folder):
    place = Place(folder)
    problems = []
    for command in COMMANDS:
        for arguments in ([command, "--help"], [command, "-h"], ["help", command]):
            status, output = place.run(*arguments)
            if status != 0 or f"usage: ./dev {command}" not in output:
                problems.append(f"{arguments}: status {status}: {output}")
            problems += [f"{len(line)} columns: {line}" for line in output.splitlines() if len(line) > 80]
    problems += [f"{len(line)} columns: {line}" for line in place.run("help")[1].splitlines() if len(line) > 80]
    status, output = place.run("test", "--all", "--help")
    if status != 0 or "--long" not in output:
        problems.append(f"test --all --help: {status}: {output}")
    return problems + place.called()


def invalid_arguments_build_nothing(folder):
    place = Place(folder)
    problems = []
    for arguments in (["test", "--quik"], ["test", "a", "b"], ["test", "("], ["test", "--only"],
                      ["test", "--only", "x"], ["test", "--all", "--long"], ["test", "--long", "x"],
                      ["lint", "x"], ["lint", "format", "x"], ["deps", "x"], ["nothing"], ["prove"],
                      ["package", "x"], ["release", "x"], ["docs", "x"], ["bundle", "x"], ["format", "x"]):
        status, output = place.run(*arguments)
        if status != 2 or not output.strip():
            problems.append(f"{arguments}: status {status}: {output}")
    return problems + place.called()


# What a command needs, and what another does.
NEEDED = {
    "demo": (["gcc", "cmake"], ["python3", "clang", "cppcheck", "python3-venv", "g++"]),
    "bench": (["gcc", "cmake"], ["python3", "clang", "cppcheck"]),
    "bundle": (["gcc", "cmake"], ["python3", "clang", "cppcheck"]),
    "test": (["gcc", "g++"], ["clang-format", "clang-tidy", "cppcheck", "python3-venv"]),
    "test unit/test_limit": (["gcc"], ["clang-format", "clang-tidy", "cppcheck", "python3-venv"]),
    "test --only asan": (["gcc"], ["clang-tidy", "cppcheck", "python3-venv"]),
    "test --long tidy": (["clang-tidy"], ["python3-venv"]),
    "parity": (["gcc"], ["clang-format", "clang-tidy", "cppcheck", "python3-venv"]),
    "test --all": (["gcc", "clang-tidy", "cppcheck", "python3-venv", "g++", "pkg-config"], []),
    "test --long": (["gcc", "clang-tidy", "cppcheck", "python3-venv", "g++", "pkg-config"], []),
    "lint": (["clang-tidy", "cppcheck"], ["python3-venv", "dpkg-dev", "mesa-vulkan-drivers"]),
    "clients": (["python3-venv", "g++"], ["clang", "cppcheck"]),
    "fuzz": (["clang", "libclang-rt-dev"], ["cppcheck", "python3-venv"]),
    "package": (["dpkg-dev", "python3-venv"], ["clang", "cppcheck"]),
    "format": (["clang-format"], ["gcc", "cmake", "clang-tidy"]),
}


def only_missing_packages_of_the_command_are_reported(folder):
    place = Place(folder, packages=MISSING, hidden=TOOLS)
    problems = []
    for command, (needed, others) in NEEDED.items():
        status, output = place.run(*command.split())
        lines = [line.strip() for line in output.splitlines()]
        install = [line for line in lines if "apt-get install" in line]
        if status != 2 or len(install) != 1:
            problems.append(f"{command}: status {status}: {output}")
            continue
        if "sudo apt-get update" not in lines[:lines.index(install[0])]:
            problems.append(f"{command}: no apt-get update before: {output}")
        packages = install[0].split("--no-install-recommends")[1].split()
        repeated = {name for name in packages if packages.count(name) > 1}
        lacking, foreign = set(needed) - set(packages), set(others) & set(packages)
        if repeated or lacking or foreign:
            problems.append(f"{command}: repeats {repeated}, lacks {lacking}, has {foreign}")
    return problems + place.called()


def what_is_there_is_used(folder):
    """Whoever installed it; and what is missing but not needed stops nothing."""
    problems = []
    for number, (more, hidden, wanted, generator) in enumerate((
            ({}, (), "", ""), ({"cc": BARE_COMPILER}, (), "without liblz4-dev libvulkan-dev libzstd-dev zlib1g-dev,", ""),
            ({}, ("ninja",), "", " -G Unix Makefiles"))):
        (folder / str(number)).mkdir()
        place = Place(folder / str(number), packages=MISSING, hidden=hidden, more=more, STUB_STATUS="1")
        _, output = place.run("demo")
        configured = [line.split(" ", 2)[2] for line in place.called() if "--preset release" in line]
        if configured[:1] != [f"--preset release{generator}"] or wanted not in output or "are missing" in output:
            problems.append(f"{hidden}, {list(more)}: {place.called()}: {output}")
    return problems


def an_old_cmake_is_not_used(folder):
    problems = []
    for number, (version, enough) in enumerate((("3.21.4", False), ("2.8.12", False), ("3.22.1", True), ("4.4.0", True))):
        (folder / str(number)).mkdir()
        stub = f'#!/bin/sh\n[ "$1" != --version ] || {{ echo "cmake version {version}"; exit; }}\necho used >>"$NOTES"; exit 1\n'
        place = Place(folder / str(number), packages=MISSING, more={"cmake": stub})
        _, output = place.run("demo")
        if bool(place.called()) != enough or ("apt-get install" in output and " cmake" in output) == enough:
            problems.append(f"{version}: {place.called()}: {output}")
    return problems


def temporary_files_are_removed(folder):
    """Neither when all goes well nor when a build fails."""
    problems = []
    for number, (arguments, status) in enumerate(
            [(["test", QUICK], "0"), (["test", QUICK], "1"), (["demo", "/nonexistent"], "1"), (["bench"], "1"),
             (["bundle"], "1"), (["package"], "1"), (["parity"], "1")]):
        (folder / str(number)).mkdir()
        place = Place(folder / str(number), STUB_STATUS=status)
        code, output = place.run(*arguments)
        if str(min(code, 1)) != status or not place.called():
            problems.append(f"{arguments}: status {code}: {output}")
        if status == "1" and ("a warning" not in output or "[3/7]" in output):
            problems.append(f"{arguments} shows more or less than what failed: {output}")
        problems += [f"{arguments} left {name}" for name in place.left()]
    return problems


def a_long_build_reports_its_progress(folder):
    """Without Python, too: a machine on which nothing but the demo is wanted has none."""
    place = Place(folder)
    cmake = folder / "programs/cmake"
    cmake.write_text("#!/bin/sh\n[ \"$1\" = --build ] || exit 0\n"
                     "echo '[3/7] Building C'; echo stays >>\"$NOTES\"; sleep 1000\n")
    process = place.start("demo")
    try:
        lines = [process.stdout.readline(), process.stdout.readline()]
    finally:
        process.kill()
        process.communicate()
    return [] if re.fullmatch(r"\.\.\.  building, \d+ s, step 3 of 7\n", lines[1]) else [f"said {lines}"]


def the_demo_and_the_tests_have_one_configuration(folder):
    """Else what one of them compiled the other would compile again. Whoever calls CMake himself has no -Werror."""
    problems, presets = [], []
    for number, arguments in enumerate((["demo"], ["test", QUICK], ["bench"], ["parity"])):
        (folder / str(number)).mkdir()
        place = Place(folder / str(number), STUB_STATUS="1")
        place.run(*arguments)
        configured = [line.split(" ", 2)[2] for line in place.called() if "--preset release" in line
                      and "--build" not in line]
        presets += configured
        if not configured:
            problems.append(f"{arguments} configures nothing: {place.called()}")
    if set(presets) != {"--preset release"}:
        problems.append(f"different configurations: {set(presets)}")
    if not re.search(r"option\(GPUMEM_WERROR .* OFF\)", (SOURCE / "cmake/GpumemOptions.cmake").read_text()):
        problems.append("-Werror is on for everybody")
    return problems


def stages_and_parts_are_listed(folder):
    """And nothing is built for that."""
    place = Place(folder)
    problems = []
    for option, wanted in (("--all", ("release", "asan", "lint")), ("--long", ("programs", "threads", "mutate"))):
        status, output = place.run("test", option, "--list")
        named = [line.split()[0] for line in output.splitlines()]
        if status != 0 or set(wanted) - set(named) or len(set(named)) != len(named):
            problems.append(f"{option}: {status}: {output}")
    return problems + place.called()


def a_cache_of_compilations_is_used_where_there_is_one(folder):
    """Unless somebody set the launcher, to nothing too."""
    problems = []
    for number, (environment, wanted) in enumerate((({}, "ccache"), ({"CMAKE_C_COMPILER_LAUNCHER": ""}, ""))):
        (folder / str(number)).mkdir()
        place = Place(folder / str(number), **environment)
        if not environment:
            place.environment.pop("CMAKE_C_COMPILER_LAUNCHER", None)
        programs = folder / str(number) / "programs"
        (programs / "ccache").write_text(STUB)
        (programs / "ccache").chmod(0o755)
        (programs / "cmake").write_text('#!/bin/sh\necho "launcher: $CMAKE_C_COMPILER_LAUNCHER" >>"$NOTES"\n')
        place.run("test", QUICK)
        if set(place.called()) != {f"launcher: {wanted}"}:
            problems.append(f"{environment}: {place.called()}")
    return problems


def the_demo_builds_the_commands_that_it_suggests(folder):
    """The program that docs/api-tour.md begins with."""
    place = Place(folder, GPUMEM_DRIVER="softgpu")
    file = folder / "file"
    file.write_bytes(bytes(range(256)) * 64)
    status, output = place.run("demo", str(file))
    built = " ".join(line for line in place.called() if " --build " in line).split()
    problems = [] if status == 0 else [f"status {status}: {output}"]
    named = re.findall(r"^next: GPUMEM_DRIVER=softgpu build/(\S+),", output, re.M)
    page = (SOURCE / "docs/api-tour.md").read_text()
    targets = (BUILD / "build.ninja").read_text()
    for path in named or ["nothing"]:
        target = f"example_{Path(path).name}"
        if target not in built or f"build {path}: " not in targets or f"build/{path}`" not in page:
            problems.append(f"the demo names {path}: {output}")
    return problems


def packages_that_were_made_are_named_when_one_is_not(folder):
    """Without a network there is a Debian package and no wheel: this is not a failure of both."""
    copy = folder / "copy"
    for name in ("tools/dev", "packaging", "tests/runner"):
        shutil.copytree(SOURCE / name, copy / name)
    shutil.copy(SOURCE / "dev", copy / "dev")
    (copy / "packaging/make.sh").write_text("#!/bin/sh\nmkdir -p $1; touch $1/gpumem_1.deb; echo 'make.sh: no wheel: why'\nexit 77\n")
    place = Place(folder)
    done = subprocess.run([copy / "dev", "package"], env=place.environment, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, check=False)
    good = done.returncode == 2 and "made: dist/gpumem_1.deb" in done.stdout and "no wheel: why" in done.stderr
    return [] if good and "failed" not in done.stderr else [f"status {done.returncode}: {done.stdout}{done.stderr}"]


def nothing_outlives(command, number, group=False):
    """Of a group, as a terminal's Ctrl-C is."""
    def check(folder):
        place = Place(folder, STAYS="cmake")
        process = place.start(*command)
        pids = []
        try:
            if not processes.wait_until(lambda: any(line.startswith("child ")
                                                    for line in place.called())):
                return [f"{command} did not start: {place.called()}"]
            pids = processes.descendants(process.pid)
            pids += [int(line.split()[1]) for line in place.called()]
            (os.killpg if group else os.kill)(process.pid, number)
            process.communicate(timeout=processes.PATIENCE)
            if not processes.wait_until(lambda: not any(map(processes.is_running, pids))):
                return ["something still runs"]
            if not processes.wait_until(lambda: not place.left()):
                return [f"left {place.left()}"]
            return [] if process.returncode else ["exit status 0"]
        finally:
            processes.end([*pids, process.pid])
            process.wait()
    check.__name__ = f"nothing_outlives_{command[0]}_and_{number.name}{' to its group' if group else ''}"
    return check


def killing_parity_ends_its_scenarios(folder):
    """The real recorder, of a build that cmake need not make: its scenarios are stopped, so that they do not end
    by themselves."""
    place = Place(folder, GPUMEM_PARITY_RUNS=str(folder))
    process = place.start("parity")

    def scenarios():
        found = []
        for pid in processes.descendants(process.pid):
            try:
                words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if words[:2] == [b"parity", b"one"]:
                os.kill(pid, signal.SIGSTOP)
                found.append(pid)
        return found

    pids = []
    try:
        if not processes.wait_until(scenarios):
            return ["no scenario was seen to run"]
        pids = processes.descendants(process.pid)
        process.kill()
        process.communicate(timeout=processes.PATIENCE)
        if not processes.wait_until(lambda: not any(map(processes.is_running, pids))):
            return [f"still running: {[pid for pid in pids if processes.is_running(pid)]}"]
        return [] if processes.wait_until(lambda: not place.left()) else [f"left {place.left()}"]
    finally:
        processes.end([*pids, process.pid])
        process.wait()


def main():
    tests = [help_builds_nothing, invalid_arguments_build_nothing,
             only_missing_packages_of_the_command_are_reported, what_is_there_is_used, an_old_cmake_is_not_used, temporary_files_are_removed,
             a_long_build_reports_its_progress, the_demo_and_the_tests_have_one_configuration,
             stages_and_parts_are_listed, a_cache_of_compilations_is_used_where_there_is_one,
             the_demo_builds_the_commands_that_it_suggests, packages_that_were_made_are_named_when_one_is_not]
    tests += [nothing_outlives(command, number)
              for command in (["test"], ["test", QUICK], ["parity"], ["bench"], ["demo"])
              for number in (signal.SIGKILL, signal.SIGTERM)]
    tests += [nothing_outlives(command, signal.SIGINT, group=True)
              for command in (["test", QUICK], ["parity"])]
    tests += [killing_parity_ends_its_scenarios]
    return run_in_folders(tests)


if __name__ == "__main__":
    sys.exit(main())
