#!/usr/bin/env python3
"""GCC's OpenMP and OpenACC for devices, from Debian's packages, on softgpu."""
import client

# libgomp keeps a stack for each thread that the device could run: a small device.
client.run_debian("gcc", "offload.py", "--profile", "mig")
