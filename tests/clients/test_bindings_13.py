#!/usr/bin/env python3
"""cuda.bindings 13 on softgpu."""
import client

client.run("cuda13", "bindings.py")
