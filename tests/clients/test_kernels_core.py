#!/usr/bin/env python3
"""cuda.core's kernels on softgpu."""
import client

client.run_with_kernels("numba", "kernels_core.py")
