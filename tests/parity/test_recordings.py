#!/usr/bin/env python3
"""What softgpu answers is what was recorded of hardware, or there is a reason why not."""
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
BUILD = Path(os.environ.get("GPUMEM_BUILD_DIR", HERE.parents[1] / "build")).resolve()


def main():
    print("1..1")
    done = subprocess.run([sys.executable, HERE / "replay.py", "--build", BUILD], check=False, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode == 2:
        print("skip: tests/parity/recordings has no recording of hardware")
        print("ok 1 - softgpu answers what hardware answered # SKIP no recording")
        return 0
    said = done.stdout.splitlines()
    print(f"{'not ' if done.returncode else ''}ok 1 - softgpu answers what hardware answered, or there is a reason")
    if done.returncode:
        # A difference is four lines, the last its reason; reports of sanitizers come first.
        wrong = [at for at, line in enumerate(said) if "no reason recorded" in line]
        for at in wrong[:20]:
            said += said[max(0, at - 3):at + 1]
        for line in said[:60] + said[-80:]:
            print(f"# {line}")
    for line in said[-3:]:
        print(f"# {line}")
    return 1 if done.returncode else 0


if __name__ == "__main__":
    sys.exit(main())
