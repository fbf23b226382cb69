#!/usr/bin/env python3
"""docs/coverage.md says what the built softgpu does."""
import os
import sys

import coverage_table

build = os.environ.get("GPUMEM_BUILD_DIR", coverage_table.SOURCE / "build")
made = coverage_table.table_of(coverage_table.rows_of(build))
kept = coverage_table.TABLE.read_text() if coverage_table.TABLE.exists() else ""
print("1..1")
if made != kept:
    print("# docs/coverage.md is out of date: tests/docs/coverage_table.py BUILD --write")
    print("not ok 1 - coverage_table")
    sys.exit(1)
print("ok 1 - coverage_table")
