"""The files of the project: what git tracks, and what it would if it were added."""
import subprocess
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]


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


def tap(results):
    """Prints [(title, problems)] as TAP; returns the exit status."""
    print(f"1..{len(results)}")
    for number, (title, problems) in enumerate(results, 1):
        print(f"{'not ' if problems else ''}ok {number} - {title}")
        for problem in problems[:40]:
            print(f"# {problem}")
        if len(problems) > 40:
            print(f"# and {len(problems) - 40} more")
    return 1 if any(problems for _, problems in results) else 0
