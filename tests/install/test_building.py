#!/usr/bin/env python3
"""Programs are built against an installed folder, in each way that docs/building-with-gpumem.md shows; the page shows
the example's own files. (The Debian package and the wheel: package/test_package.py.)"""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import building

sys.path.insert(0, str(building.SOURCE / "tests/harness"))
from tap_report import Report  # noqa: E402  pylint: disable=wrong-import-position

BUILD = Path(os.environ.get("GPUMEM_BUILD_DIR", building.SOURCE / "build"))


def main():
    report = Report()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subprocess.run(["cmake", "--install", BUILD, "--prefix", folder / "first"], stdout=subprocess.DEVNULL, check=True)
        (folder / "first").rename(folder / "moved")
        building.ways(folder / "moved", folder, report, "of an installation that was moved")
    return report.end()


if __name__ == "__main__":
    sys.exit(main())
