#!/usr/bin/env python3
"""pycuda's kernels on softgpu."""
import client

client.run_with_kernels("pycuda", "kernels_pycuda.py")
