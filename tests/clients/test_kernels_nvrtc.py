#!/usr/bin/env python3
"""NVRTC's and nvJitLink's own interfaces, whose results run on softgpu."""
import client

client.run("numba", "kernels_nvrtc.py")
