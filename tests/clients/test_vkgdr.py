#!/usr/bin/env python3
"""vkgdr's own wheel on softgpu, with Mesa's software Vulkan driver."""
import client
import lavapipe

try:
    UUID = lavapipe.device_uuid()
except lavapipe.Unavailable as why:
    client.skip(f"no software Vulkan: {why}")
client.run("pycuda", "vkgdr_client.py", "--uuid", UUID)
