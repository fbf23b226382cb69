#!/usr/bin/env python3
"""numba-cuda on softgpu."""
import client

client.run("numba", "numba_client.py")
