#!/usr/bin/env python3
"""The same as test_kernels_core_programs.py with the newest cuda.core and NVRTC, whose PTX is newer than the driver."""
import client

client.run("today", "kernels_core_programs.py")
