#!/usr/bin/env python3
"""IREE's kernels on softgpu."""
import client

client.run("science", "kernels_iree.py")
