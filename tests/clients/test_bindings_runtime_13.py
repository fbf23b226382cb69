#!/usr/bin/env python3
"""The runtime module of cuda.bindings 13, on gpumem's libcudart."""
import client

client.run("cuda13", "bindings_runtime.py", "--devices", "2")
