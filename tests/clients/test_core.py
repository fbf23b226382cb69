#!/usr/bin/env python3
"""cuda.core on softgpu."""
import client

client.run("cuda13", "core.py")
