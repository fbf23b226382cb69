#!/usr/bin/env python3
"""The same as test_kernels_nvrtc.py with the newest NVRTC and nvJitLink, whose PTX is newer than the driver."""
import client

client.run("today", "kernels_nvrtc.py")
