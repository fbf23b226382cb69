#!/usr/bin/env python3
"""tinygrad's kernels on softgpu: by NVRTC."""
import client

client.run("numba", "kernels_tinygrad.py", arguments=["CUDA"])
