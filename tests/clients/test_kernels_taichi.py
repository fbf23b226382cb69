#!/usr/bin/env python3
"""Taichi's kernels on softgpu."""
import client

client.run("llvm", "kernels_taichi.py")
