#!/usr/bin/env python3
"""gprMax on softgpu."""
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "clients"))
import client  # noqa: E402  pylint: disable=wrong-import-position
import environment  # noqa: E402  pylint: disable=wrong-import-position

client.long_only()
try:
    pycuda = environment.python_of("pycuda", client.BUILD)
except environment.Unavailable as why:
    client.skip(f"no environment pycuda: {(str(why).strip().splitlines() or [''])[-1]}")
os.environ["PYTHONPATH"] = str(next(pycuda.parents[1].glob("lib/python*/site-packages")))
client.run("gprmax", "gprmax_waves.py")
