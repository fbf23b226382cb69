#!/usr/bin/env python3
"""OpenMM on softgpu: as it is, under the checkers, and under five orders of warps and blocks."""
import subprocess
import sys
import tempfile
from pathlib import Path

CLIENTS = Path(__file__).resolve().parents[1] / "clients"
sys.path[:0] = [str(CLIENTS), str(CLIENTS.parent / "harness")]
import client  # noqa: E402  pylint: disable=wrong-import-position
import environment  # noqa: E402  pylint: disable=wrong-import-position
from tap_report import Report  # noqa: E402  pylint: disable=wrong-import-position

# It leaves what its contexts have to their end, and keeps what it does not read of sums in shared memory.
SUPPRESSED = "leak\nunused\n"


def main():
    client.long_only()
    try:
        python = environment.python_of("openmm", client.BUILD)
    except environment.Unavailable as why:
        client.skip(f"no environment openmm: {(str(why).strip().splitlines() or [''])[-1]}")
    report = Report()
    with tempfile.TemporaryDirectory() as folder:
        suppressions = Path(folder) / "suppressions"
        suppressions.write_text(SUPPRESSED)
        checked = ["--suppressions", suppressions, "--error-exitcode", "9", "--check"]
        for title, options in (("as it is", []), ("under the checker of races", [*checked, "race"]),
                               ("under all checkers", [*checked, "memory,init,race,sync"]),
                               *((f"with seed {seed}", ["--schedule", "random", "--seed", str(seed)])
                                 for seed in range(1, 6))):
            command = [client.BUILD / "bin" / "gpumem", "run", "--softgpu", "--memory", "2G", *options, "--", python,
                       CLIENTS / "programs" / "openmm_forces.py"]
            done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  text=True, check=False)
            report.expect(done.returncode == 0 and "\nok 5" in done.stdout, title, done.stdout)
    return report.end()


if __name__ == "__main__":
    sys.exit(main())
