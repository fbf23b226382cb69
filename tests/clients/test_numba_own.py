#!/usr/bin/env python3
"""numba-cuda's own tests with kernels: the modules that numba_own_tests.ini lists.

With GPUMEM_TEST_LONG=1 all of them, and each test that is left out alone, which must still fail.
"""
import configparser
import os
import subprocess
import sys
import tempfile

import client
import environment

LIST = environment.HERE / "numba_own_tests.ini"
PACKAGE = "numba.cuda.tests."
PROGRAM = environment.HERE / "programs" / "own_tests.py"
SETTINGS = ("when", "without")


def read_list():
    """For each module: its settings, and the tests that are left out, with the reasons."""
    parser = configparser.ConfigParser(interpolation=None, delimiters=("=",), default_section="")
    parser.optionxform = str
    parser.read_string(LIST.read_text())
    modules = {}
    for name in parser.sections():
        items = dict(parser[name])
        settings = {key: items.pop(key) for key in SETTINGS if key in items}
        modules[name] = (settings, items)
    return modules


def run_python(arguments, without=()):
    """The environment's Python on softgpu, without variables that are named."""
    python = environment.python_of("numba", client.BUILD)
    unset = [word for name in without for word in ("-u", name)]
    command = [client.BUILD / "bin" / "gpumem", "run", "--softgpu", "--memory", "1G", "--", "env", *unset, python, "-W",
               "ignore", *arguments]
    # Python finds modules in the current folder too, and one of ours has a package's name.
    return subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", check=False, cwd=tempfile.gettempdir())


def run_modules(modules, number):
    """Those without settings in one process, others in one each; returns the next number and whether all passed."""
    together = [name for name, (settings, _) in modules.items() if "without" not in settings]
    good = True
    for names in [together] + [[name] for name in modules if name not in together]:
        words = [word for name in names for word in (PACKAGE + name, *(f"-{test}" for test in modules[name][1]))]
        done = run_python([PROGRAM, *words], modules[names[0]][0].get("without", "").split())
        seen = 0
        for line in done.stdout.splitlines():
            if line.startswith(("ok ", "not ok ")):
                status, _, rest = line.partition(" - ")
                print(f"{status.rpartition(' ')[0]} {number + seen} - {rest}", flush=True)
                seen += 1
            elif not line.startswith("1.."):
                print(f"# {line.removeprefix('# ')}")
        for name in names[seen:]:
            print(f"not ok {number + seen} - {name}: the process ended with status {done.returncode}")
            seen += 1
        good = good and done.returncode == 0
        number += seen
    return number, good


def still_fails(module, test, without):
    """A test that is left out, by itself."""
    return run_python(["-m", "unittest", "-b", f"{PACKAGE}{module}.{test}"], without).returncode != 0


def main():
    long = os.environ.get("GPUMEM_TEST_LONG") == "1"
    modules = {name: row for name, row in read_list().items() if long or row[0].get("when") != "long"}
    left_out = [(name, test) for name, (_, tests) in modules.items() for test in tests] if long else []
    try:
        environment.python_of("numba", client.BUILD)
    except environment.Unavailable as why:
        client.skip(f"no environment numba: {str(why).strip().splitlines()[-1]}")
    print(f"1..{len(modules) + len(left_out)}", flush=True)
    number, good = run_modules(modules, 1)
    for name, test in left_out:
        fails = still_fails(name, test, modules[name][0].get("without", "").split())
        print(f"{'ok' if fails else 'not ok'} {number} - {name} {test} is left out because it fails", flush=True)
        good = good and fails
        number += 1
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
