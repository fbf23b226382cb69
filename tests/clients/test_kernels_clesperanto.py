#!/usr/bin/env python3
"""pyclesperanto's kernels on softgpu."""
import client

client.run("science", "kernels_clesperanto.py")
