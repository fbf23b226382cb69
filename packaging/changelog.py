#!/usr/bin/env python3
"""CHANGELOG.md in the form of Debian's changelogs, compressed.

changelog.py SOURCE OUT: the date of a version is that of the newest commit (or SOURCE_DATE_EPOCH), so that
the same sources give the same file.
"""
import email.utils
import gzip
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

MAINTAINER = "gpumem developers <gpumem@localhost>"
VERSION = re.compile(r"^## (\d+(?:\.\d+)+)", re.M)


def date_of(source):
    stamp = os.environ.get("SOURCE_DATE_EPOCH")
    if stamp is None:
        done = subprocess.run(["git", "-C", source, "log", "-1", "--format=%ct"],
                              capture_output=True, text=True, check=False)
        stamp = done.stdout.strip() or str(int((source / "CHANGELOG.md").stat().st_mtime))
    return email.utils.formatdate(int(stamp))


def entry(version, text, date):
    lines = [textwrap.fill(line[2:], 76, initial_indent="  * ", subsequent_indent="    ",
                           break_long_words=False, break_on_hyphens=False)
             for line in text.splitlines() if line.startswith("- ")]
    changes = "\n".join(lines or ["  * " + " ".join(text.split())])
    return f"gpumem ({version}) unstable; urgency=medium\n\n{changes}\n\n -- {MAINTAINER}  {date}\n"


def main():
    source, out = Path(sys.argv[1]), Path(sys.argv[2])
    parts = VERSION.split((source / "CHANGELOG.md").read_text())[1:]
    assert parts, "CHANGELOG.md names no version"
    date = date_of(source)
    text = "\n".join(entry(version, body.partition("\n")[2], date)
                     for version, body in zip(parts[::2], parts[1::2]))
    out.write_bytes(gzip.compress(text.encode(), 9, mtime=0))


if __name__ == "__main__":
    main()
