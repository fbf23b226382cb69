#!/usr/bin/env python3
"""numba-cuda's kernels on softgpu."""
import client

client.run_with_kernels("numba", "kernels_numba.py")
