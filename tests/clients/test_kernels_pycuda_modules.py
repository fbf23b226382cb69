#!/usr/bin/env python3
"""pycuda's SourceModule and scans, whose kernels run on softgpu."""
import client

client.run("pycuda", "kernels_pycuda_modules.py")
