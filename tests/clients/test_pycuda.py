#!/usr/bin/env python3
"""pycuda on softgpu."""
import client

client.run("pycuda", "pycuda_client.py")
