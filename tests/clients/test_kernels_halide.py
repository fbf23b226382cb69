#!/usr/bin/env python3
"""Halide's kernels on softgpu."""
import client

client.run("llvm", "kernels_halide.py")
