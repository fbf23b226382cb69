"""Runs one client program on softgpu and passes on what it says in TAP."""
import os
import subprocess
import sys
from pathlib import Path

import debian
import environment

BUILD = Path(os.environ.get("GPUMEM_BUILD_DIR", environment.HERE.parents[1] / "build"))


def skip(why):
    """Ends the test, as a failure where all must run."""
    if os.environ.get("GPUMEM_CLIENTS") == "required":
        print(why, file=sys.stderr)
        sys.exit(1)
    print(f"1..0 # SKIP {why}")
    sys.exit(0)


def run(name, program, *options, arguments=(), prepared=True, **more):
    """`program` with its arguments in environment `name`, unmodified packages, through the command that
    users have, which gets the options too, or, not prepared, without it. The caches that clients keep are the
    build's. `more`: of the environment."""
    try:
        python = environment.python_of(name, BUILD)
    except environment.Unavailable as why:
        first = str(why).strip().splitlines()
        skip(f"no environment {name}: {first[-1] if first else why}")
    command = [python, environment.HERE / "programs" / program, *arguments]
    if prepared:
        command = [BUILD / "bin" / "gpumem", "run", "--softgpu", "--memory", "1G", *options, "--", *command]
    cache = str(BUILD / "clients" / "cache")
    done = subprocess.run([str(word) for word in command], env=dict(os.environ, XDG_CACHE_HOME=cache, **more),
                          check=False)
    sys.exit(done.returncode)


def run_with_gpumem(name, program, prepared=True):
    """As run, of a program that imports gpumem too."""
    if not list((BUILD / "python/gpumem").glob("_core.*so")):
        skip("the build has no gpumem for Python: no headers of Python (python3-dev)")
    if os.environ.get("GPUMEM_SANITIZE", "off") != "off":
        print("1..0 # SKIP the extension has a sanitizer, and the environment's Python has none")
        sys.exit(0)
    run(name, program, prepared=prepared, PYTHONPATH=str(BUILD / "python"))


def run_debian(package, program, *options, name="numpy"):
    """`program` in environment `name`, which runs what Debian's packages of `package` have: they lie in
    CLIENT_ROOT."""
    try:
        os.environ["CLIENT_ROOT"] = str(debian.root_of(package, BUILD))
    except environment.Unavailable as why:
        skip(f"Debian's packages of {package} cannot be had: {(str(why).strip().splitlines() or [''])[-1]}")
    run(name, program, *options)


def long_only():
    """Ends the test where those that take long are not asked for."""
    if os.environ.get("GPUMEM_TEST_LONG") != "1":
        print("1..0 # SKIP takes long: ./dev test --long applications")
        sys.exit(0)
