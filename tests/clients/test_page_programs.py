#!/usr/bin/env python3
"""The programs in Python of docs/cuda-programs.md and docs/ci.md."""
import client

client.run("numba", "page_programs.py")
