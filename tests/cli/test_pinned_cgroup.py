#!/usr/bin/env python3
"""Pinned memory in a real memory control group: the library refuses before the kernel kills."""
import ctypes
import os
import subprocess
import sys

import harness
from control_group import group_of
from harness import Skip, expect

MIB = 1 << 20
OUT_OF_HOST_MEMORY = 3
AUTO, REGISTERED, ALLOCATED, POOL = range(4)


class PinnedOptions(ctypes.Structure):
    """gpumem_pinned_options."""
    _fields_ = [("size", ctypes.c_size_t), ("method", ctypes.c_int), ("flags", ctypes.c_uint),
                ("numa_bind", ctypes.c_int), ("numa_node", ctypes.c_int),
                ("touch_threads", ctypes.c_uint), ("slab_bytes", ctypes.c_size_t),
                ("maximum_bytes", ctypes.c_uint64), ("keep_bytes", ctypes.c_uint64),
                ("keep_nothing", ctypes.c_int), ("ipc", ctypes.c_int), ("pool", ctypes.c_int),
                ("huge_pages", ctypes.c_int)]


def pin(method, mib, times):
    """Takes buffers and writes to all of each; the status of the one that was refused, or 0."""
    library = ctypes.CDLL(str(harness.BUILD / "lib" / "libgpumem.so"))
    opened, device, resource = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    slab = 2 * MIB if method != POOL else 0
    options = PinnedOptions(ctypes.sizeof(PinnedOptions), method, slab_bytes=slab)
    if (library.gpumem_open(None, ctypes.byref(opened)) or
            library.gpumem_device_open(opened, 0, ctypes.byref(device)) or
            library.gpumem_pinned_resource_create(device, ctypes.byref(options),
                                                  ctypes.byref(resource))):
        return 100
    library.gpumem_buffer_host_pointer.restype = ctypes.c_void_p
    for _ in range(times):
        buffer = ctypes.c_void_p()
        status = library.gpumem_buffer_allocate(resource, ctypes.c_size_t(mib * MIB), None,
                                                ctypes.byref(buffer))
        if status:
            return status
        ctypes.memset(library.gpumem_buffer_host_pointer(buffer), 1, mib * MIB)
    return 0


def run_in(join, method, mib, times):
    if harness.SANITIZE != "off":
        raise Skip("python cannot load a library with a sanitizer")
    env = harness.environment()
    env.pop("SOFTGPU_MEMORY")
    return subprocess.run([sys.executable, __file__, str(method), str(mib), str(times)], env=env,
                          preexec_fn=lambda: join.write_text("0"), stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=50, check=False)


def check(process, wanted, what):
    expect(process.returncode == wanted,
           f"{what}: status {process.returncode}, not {wanted}\n{process.stderr}")


def test_one_allocation_beyond_the_limit_is_refused(_folder):
    for method in (AUTO, REGISTERED, ALLOCATED, POOL):
        with group_of(200 * MIB) as join:
            check(run_in(join, method, 400, 1), OUT_OF_HOST_MEMORY, f"method {method}")


def test_many_allocations_beyond_the_limit_are_refused(_folder):
    for method in (REGISTERED, ALLOCATED, POOL):
        with group_of(200 * MIB) as join:
            check(run_in(join, method, 10, 40), OUT_OF_HOST_MEMORY, f"method {method}")


def test_allocations_within_the_limit_succeed(_folder):
    for method in (REGISTERED, ALLOCATED, POOL):
        with group_of(400 * MIB) as join:
            check(run_in(join, method, 10, 4), 0, f"method {method}")


if __name__ == "__main__":
    if len(sys.argv) == 4:
        os._exit(pin(*map(int, sys.argv[1:])))
    harness.main(globals())
