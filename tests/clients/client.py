"""Runs one client program on softgpu and passes on what it says in TAP."""
import os
import subprocess
import sys
from pathlib import Path

import environment

BUILD = Path(os.environ.get("GPUMEM_BUILD_DIR", environment.HERE.parents[1] / "build"))


def skip(why):
    """Ends the test, as a failure where all must run."""
    if os.environ.get("GPUMEM_CLIENTS") == "required":
        print(why, file=sys.stderr)
        sys.exit(1)
    print(f"1..0 # SKIP {why}")
    sys.exit(0)


def prepare_kernels():
    """Kernels run from here on; the caches that clients keep are the build's."""
    os.environ["SOFTGPU_KERNELS"] = "1"
    os.environ["XDG_CACHE_HOME"] = str(BUILD / "clients" / "cache")


def run_with_kernels(name, program, *options):
    """The same as run, with kernels."""
    prepare_kernels()
    run(name, program, *options)


def run(name, program, *options):
    """`program` in environment `name`, unmodified packages, through the command that users have,
    which gets the options too."""
    try:
        python = environment.python_of(name, BUILD)
    except environment.Unavailable as why:
        first = str(why).strip().splitlines()
        skip(f"no environment {name}: {first[-1] if first else why}")
    command = [BUILD / "bin" / "gpumem", "run", "--softgpu", "--memory", "1G", *options, "--", python,
               environment.HERE / "programs" / program]
    sys.exit(subprocess.run([str(word) for word in command], check=False).returncode)
