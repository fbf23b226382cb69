"""The files of the project: what git tracks, and what it would if it were added."""
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tests/harness"))
from tap_report import run_all as tap  # noqa: E402,F401  pylint: disable=wrong-import-position,unused-import


def project_files(root=SOURCE):
    """Paths relative to root. A tree without git (a planted one, a release archive) is walked."""
    if (root / ".git").exists():
        done = subprocess.run(
            ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
            cwd=root, capture_output=True, text=True, check=True)
        found = [Path(name) for name in done.stdout.split("\0") if name]
    else:
        found = [path.relative_to(root) for path in root.rglob("*") if path.is_file()]
        found = [path for path in found if not path.parts[0].startswith(("build", "bundle"))]
    return sorted(path for path in found if (root / path).is_file())
