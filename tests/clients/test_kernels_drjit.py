#!/usr/bin/env python3
"""Dr.Jit's kernels on softgpu."""
import client

client.run("llvm", "kernels_drjit.py")
