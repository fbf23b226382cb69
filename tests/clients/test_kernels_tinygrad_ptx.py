#!/usr/bin/env python3
"""tinygrad's kernels on softgpu: PTX that it writes itself."""
import client

client.run("numba", "kernels_tinygrad.py", arguments=["CUDA:PTX"])
