#!/usr/bin/env python3
"""vkgdr's own wheel, unmodified, with libvkgdr.so.1 of this project preloaded."""
import os

import client
import lavapipe

try:
    UUID = lavapipe.device_uuid()
except lavapipe.Unavailable as why:
    client.skip(f"no software Vulkan: {why}")
os.environ["LD_PRELOAD"] = str(client.BUILD / "lib" / "libvkgdr.so.1")
client.run("pycuda", "vkgdr_preloaded.py", "--uuid", UUID)
