"""What the tests of pages share: tables whose cells name calls and tests, blocks of code, links."""
import re
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tests/harness"))
from tap_report import run_all  # noqa: E402  pylint: disable=wrong-import-position

CODE = re.compile(r"`([^`]+)`")
CALL = re.compile(r"\b(?:gpumem|GPUMEM)_\w+(?:\.\w+)?")
TEST = re.compile(r"(?:tests/)?(\w+(?:/\w+)*/test_\w+)(?:\.\w+)?(?::\s*(\w+))?")
LINK = re.compile(r"\]\(([^)#]+)(?:#[^)]*)?\)")
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)


def rows_of(text):
    """(number, cells) of each row that is neither a table's head nor the line under it."""
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        following = lines[number] if number < len(lines) else ""
        if not line.startswith("|") or line.startswith("|--") or following.startswith("|--"):
            continue
        yield number, [cell.strip() for cell in line.strip().strip("|").split("|")]


def public_headers(root=SOURCE):
    return "".join(path.read_text() for path in sorted((root / "include/gpumem").glob("*.h")))


def declared(name, headers):
    """Whether a name, or a member of a struct, is in the public headers."""
    name, _, member = name.partition(".")
    if not re.search(rf"\b{name}\b", headers):
        return False
    body = re.search(rf"typedef struct {name} {{(.*?)\n}} {name};", headers, re.S)
    return not member or bool(body and re.search(rf"\b{member}\b", body.group(1)))


def missing_test(where, name, root=SOURCE):
    files = sorted((root / "tests").glob(f"{where}.*"))
    if not files:
        return f"there is no test {where}"
    if name and not any(re.search(rf"\b{name}\b", file.read_text()) for file in files):
        return f"{where} has no {name}"
    return None


def blocks(text, language):
    return [body for kind, body in BLOCK.findall(text) if kind == language]


def report(results):
    """Of [(title, problems)]; returns the exit status."""
    return run_all(results)
