#!/usr/bin/env python3
"""Every proof in coverage.def holds, and every implemented function has one."""
import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
BUILD = os.environ.get("GPUMEM_BUILD_DIR", str(HERE.parents[1] / "build"))
os.execv(sys.executable, [sys.executable, str(HERE / "prove.py"), "--check", "--build", BUILD])
