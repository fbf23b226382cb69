#!/usr/bin/env python3
"""The runtime module of cuda.bindings 12.9, on gpumem's libcudart."""
import client

client.run("cuda12", "bindings_runtime.py", "--devices", "2")
