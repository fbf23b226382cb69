#!/usr/bin/env python3
"""cuda.core's kernels on softgpu."""
import client

client.run("numba", "kernels_core.py")
