#!/usr/bin/env python3
"""Blender's Cycles on softgpu. Its kernels' frames need more than the stack of 1,024 bytes that a context begins with."""
import sys
import tempfile
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tests" / "clients"))
import client  # noqa: E402  pylint: disable=wrong-import-position

client.long_only()
with tempfile.TemporaryDirectory() as folder:
    profile = Path(folder) / "deep.ini"
    profile.write_text((SOURCE / "profiles" / "h200.ini").read_text().replace("STACK_SIZE = 1024", "STACK_SIZE = 64K"))
    client.run("cycles", "blender_pictures.py", "--memory", "4G", "--profile", profile)
