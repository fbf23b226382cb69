#!/usr/bin/env python3
"""The newest nvcc of PyPI, whose PTX is newer than the driver."""
import client

client.run("today", "kernels_nvcc.py")
