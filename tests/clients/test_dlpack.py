#!/usr/bin/env python3
"""NumPy as a consumer of this library's DLPack tensors."""
import client

client.run("numpy", "dlpack_numpy.py")
