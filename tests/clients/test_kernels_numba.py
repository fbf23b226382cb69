#!/usr/bin/env python3
"""numba-cuda's kernels on softgpu."""
import client

client.run("numba", "kernels_numba.py")
