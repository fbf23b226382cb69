#!/usr/bin/env python3
"""hashcat, from Debian's packages, on softgpu."""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "clients"))
import client  # noqa: E402  pylint: disable=wrong-import-position

client.long_only()
client.run_debian("hashcat", "hashcat.py", name="numba")
