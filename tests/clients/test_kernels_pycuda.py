#!/usr/bin/env python3
"""pycuda's kernels on softgpu."""
import client

client.run("pycuda", "kernels_pycuda.py")
