#!/usr/bin/env python3
"""bench/peers.py: rows for what is installed, and a word for what is not."""
import subprocess
import sys

import client
import environment

sys.path.insert(0, str(environment.HERE.parent / "harness"))
from tap_report import run_all  # noqa: E402  pylint: disable=wrong-import-position

PEERS = environment.HERE.parents[1] / "bench" / "peers.py"


def rows(*arguments):
    """The lines that it prints, by what they begin with."""
    python = environment.python_of("cuda13", client.BUILD)
    command = [client.BUILD / "bin" / "gpumem", "run", "--softgpu", "--memory", "4G", "--", python,
               PEERS, "--rounds", "1", *arguments]
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False)
    return done.returncode, done.stdout


def has_times(text, name, count):
    line = next((line for line in text.splitlines() if line.strip().startswith(name)), "")
    return sum(word.replace(".", "", 1).isdigit() for word in line.split()) == count


def main():
    try:
        status, text = rows("--only", "driver,cuda.bindings,cuda.core,RMM")
    except environment.Unavailable as why:
        print(f"1..0 # SKIP no environment cuda13: {str(why).strip().splitlines()[-1]}")
        return 0
    checks = {
        "installed_packages_are_measured": status == 0 and has_times(text, "cuMemAllocFromPoolAsync, by", 6) and
            has_times(text, "driver.cuMemAllocFromPoolAsync", 6) and
            has_times(text, "DeviceMemoryResource", 6) and
            has_times(text, "PinnedMemoryResource", 6) and
            has_times(text, "VirtualMemoryResource", 2),
        "missing_packages_are_reported": "RMM: not measured (ModuleNotFoundError" in text,
        "an_unknown_name_is_refused": rows("--only", "nobody")[0] == 2,
    }
    return run_all((name, "" if passed else text) for name, passed in checks.items())


if __name__ == "__main__":
    sys.exit(main())
