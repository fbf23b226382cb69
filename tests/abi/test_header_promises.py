#!/usr/bin/env python3
"""Options, capabilities and members that no call stands behind yet say so where they are declared, and
stop saying so once there is one."""
import re
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tests/harness"))
from tap_report import run_all  # noqa: E402  pylint: disable=wrong-import-position
INCLUDE = SOURCE / "include/gpumem"

# What is declared, where, and what the call behind it would have in its name.
WITHOUT_A_CALL = [
    ("library.h", r"\bGPUMEM_CAPABILITY_EVENT_IPC\b", 1, r"gpumem_(event_\w*(export|import|ipc)|(export|import)_\w*event)"),
]


def comment_of(text, start, end):
    """The comment before a declaration, if one ends there, and the one behind it on its line."""
    before = re.search(r"/\*(?:(?!\*/).)*\*/\s*$", text[:text.rindex("\n", 0, start) + 1], re.S)
    after = re.match(r"[^\n/]*(/\*.*?\*/)?", text[end:], re.S)
    return (before.group(0) if before else "") + (after.group(1) or "")


def functions():
    """Names of all public functions."""
    text = "".join(path.read_text() for path in INCLUDE.glob("*.h"))
    return set(re.findall(r"\b(gpumem_\w+)\(", re.sub(r"/\*.*?\*/", "", text, flags=re.S)))


def main():
    names = functions()
    assert "gpumem_buffer_allocate" in names, "the functions are not found"
    problems = []
    for header, declared, count, call in WITHOUT_A_CALL:
        text = (INCLUDE / header).read_text()
        found = list(re.finditer(declared + r"(?=[^;{}]*$|.*)", text))
        if len(found) != count:
            problems.append(f"{header}: {declared} is there {len(found)} times, not {count}")
        behind = sorted(name for name in names if re.search(call, name))
        for match in found:
            comment = " ".join(comment_of(text, match.start(), match.end()).replace("\n     * ", " ").split())
            says = re.search(r"\bno(ne)?\b[^.]*\byet\b", comment, re.I) is not None
            if behind and says:
                problems.append(f"{header}: {declared} says that there is no call, but: {behind}")
            elif not behind and not says:
                problems.append(f"{header}: {declared} does not say that no call is behind it yet: "
                                f"'{comment}'")
    return run_all([("what no call stands behind says so", problems)])


if __name__ == "__main__":
    sys.exit(main())
