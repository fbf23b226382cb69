#!/usr/bin/env python3
"""gpumem driver on a driver that is older than the table of functions: it is asked for nothing newer
than itself, which it would count as an error."""
import json
import subprocess

import harness
from harness import expect, expect_status

VERSION = 12080
# It has a function of each name that it knows, and exports one that is newer than it says.
DRIVER = """#include <stdio.h>
static int any(void) { return 0; }
int cuInit(unsigned flags) { return 0; }
int cuDeviceGetHostAtomicCapabilities(void) { return 0; }
%s
int cuGetProcAddress_v2(const char *name, void **fn, int version, unsigned long flags, int *status) {
    if (version > %d)
        fprintf(stderr, "asked for %%s of %%d\\n", name, version);
    *fn = version > %d ? 0 : (void *)any;
    *status = 0;
    return version > %d;
}
"""
GET_VERSION = "int cuDriverGetVersion(int *version) { *version = %d; return 0; }" % VERSION


def rows_of(folder, get_version):
    source, library = folder / "driver.c", folder / "libcuda.so.1"
    source.write_text(DRIVER % (get_version, VERSION, VERSION, VERSION))
    subprocess.run(["cc", "-w", "-shared", "-fPIC", str(source), "-o", str(library)], check=True, timeout=50)
    process = harness.run("driver", "--json", "--driver", str(library))
    expect_status(process, 0)
    return json.loads(process.stdout), process.stderr


def test_a_driver_is_not_asked_for_newer_functions(folder):
    rows, said = rows_of(folder, GET_VERSION)
    expect("asked" not in said, said)
    newer = [row for row in rows if row["version"] > VERSION]
    expect(newer and len(newer) < len(rows), f"{len(newer)} of {len(rows)} are newer")
    for row in rows:
        exported = row["name"] == "cuDeviceGetHostAtomicCapabilities"
        there = row["version"] <= VERSION or exported
        expect(row["status"] == ("real" if there else "missing"), row)


def test_a_driver_without_a_version_is_asked_for_all(folder):
    rows, said = rows_of(folder, "")
    expect(said.count("asked for") == sum(row["version"] > VERSION for row in rows), said)


if __name__ == "__main__":
    harness.main([test_a_driver_is_not_asked_for_newer_functions,
                  test_a_driver_without_a_version_is_asked_for_all])
