#!/usr/bin/env python3
"""Each member of gpumem_stats is in snapshots and in their schema; one that is newer than the first release is in the
changelog too."""
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from pages import SOURCE, report

BUILD = Path(os.environ.get("GPUMEM_BUILD_DIR", SOURCE / "build"))


def members(header):
    body = re.search(r"typedef struct gpumem_stats \{(.*?)\n\} gpumem_stats;", header, re.S).group(1)
    return re.findall(r"uint64_t (\w+);", re.sub(r"/\*.*?\*/", "", body, flags=re.S))


def snapshot():
    """The statistics of every kind of memory's resources, in a real snapshot."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "snapshot.json"
        subprocess.run([BUILD / "bin/gpumem", "map", "--demo", "--driver", "softgpu", "--output", "/dev/null",
                        "--snapshot", path], check=True, timeout=60)
        found = re.findall(r'"statistics": ?(\{[^}]*\})', path.read_text())
    assert len(found) > 5, "hardly any statistics"
    return [set(json.loads(each)) for each in found]


def problems_of(header, snapshots, schema, changelog, first_bytes):
    wanted = members(header)
    later = wanted[(first_bytes - 8) // 8:]
    required = set(schema["$defs"]["statistics"]["required"])
    return ([f"{name} is not in a snapshot" for name in wanted if any(name not in each for each in snapshots)] +
            [f"{name} is not required by docs/snapshot.schema.json" for name in wanted if name not in required] +
            [f"{name} is no member any more" for name in sorted(required - set(wanted))] +
            [f"CHANGELOG.md has no gpumem_stats.{name}" for name in later if f"gpumem_stats.{name}" not in changelog])


def main():
    header = (SOURCE / "include/gpumem/stats.h").read_text()
    sizes = (SOURCE / "src/base/struct_sizes.def").read_text()
    others = (snapshot(), json.loads((SOURCE / "docs/snapshot.schema.json").read_text()),
              (SOURCE / "CHANGELOG.md").read_text(),
              int(re.search(r"GM_STRUCT\(gpumem_stats, (\d+)\)", sizes).group(1)))
    longer = header.replace("} gpumem_stats;", "    uint64_t added_later;\n} gpumem_stats;")
    found = problems_of(longer, *others)
    return report([("statistics are the same in header, snapshot, schema and changelog", problems_of(header, *others)),
                   ("a new member is missed in each", [] if len(found) == 3 else [f"planted, but: {found}"])])


if __name__ == "__main__":
    sys.exit(main())
