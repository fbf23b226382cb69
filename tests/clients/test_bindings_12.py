#!/usr/bin/env python3
"""cuda.bindings 12.9 on softgpu."""
import client

client.run("cuda12", "bindings.py")
