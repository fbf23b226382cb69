#!/usr/bin/env python3
"""gpumem.vkgdr, and the name vkgdr for it, in place of vkgdr's wheel."""
import os

import client
import environment
import lavapipe

SOURCE = environment.HERE.parents[1]

try:
    UUID = lavapipe.device_uuid()
except lavapipe.Unavailable as why:
    client.skip(f"no software Vulkan: {why}")
# Before the environment's own packages, of which vkgdr is one.
os.environ["PYTHONPATH"] = f"{SOURCE}/packaging/vkgdr_shim:{client.BUILD}/python"
os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
os.environ["GPUMEM_VKGDR"] = str(client.BUILD / "lib" / "libvkgdr.so.1")
client.run("pycuda", "vkgdr_python.py", "--uuid", UUID)
