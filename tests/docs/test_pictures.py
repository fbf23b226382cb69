#!/usr/bin/env python3
"""README's pictures are what gpumem's programs and committed figures make today."""
import os
import subprocess
import sys
import tempfile
from pathlib import Path
import shutil

from pages import SOURCE, report

BUILD = Path(os.environ.get("GPUMEM_BUILD_DIR", SOURCE / "build"))


def check(root=SOURCE):
    done = subprocess.run([sys.executable, root / "docs/pictures/make.py", "--check", BUILD], capture_output=True, text=True, check=False)
    return done.stdout.splitlines() if done.returncode in (0, 1) and not done.stderr else [done.stdout + done.stderr]


def planted():
    """Figures that changed, and another page of the map."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        for part in ("docs/pictures", "tools/gpumem/map"):
            shutil.copytree(SOURCE / part, root / part)
        shutil.copy(SOURCE / "tools/gpumem/map_demo.c", root / "tools/gpumem")
        (root / "docs/h200.md").write_text((SOURCE / "docs/h200.md").read_text().replace("| 0.047 | 274 |", "| 0.047 | 275 |"))
        with open(root / "tools/gpumem/map/page.css", "a", encoding="utf-8") as css:
            css.write("/* another */\n")
        found = check(root)
    return [] if len(found) == 2 and "small.svg" in found[0] and "map.png" in found[1] else [f"found {found}"]


def used():
    readme = (SOURCE / "README.md").read_text()
    return [name for name in ("map.png", "grow.svg", "small.svg") if f"docs/pictures/{name}" not in readme]


if __name__ == "__main__":
    sys.exit(report([("pictures are current", check()), ("old pictures are noticed", planted()), ("README shows each", used())]))
