#!/usr/bin/env python3
"""SlangPy's kernels on softgpu."""
import client

client.run("numba", "kernels_slang.py")
