#!/usr/bin/env python3
"""Each driver call of each method fails once, in three modes: an exception or a result, and afterwards nothing is
left that was not there before, and the method works."""
import ctypes
import gc
import os
import unittest
import warnings

os.environ["GPUMEM_TEST_LOSES"] = "1"  # what a driver refuses to take back is lost

import suite  # noqa: E402  pylint: disable=wrong-import-position

import gpumem as cc  # noqa: E402  pylint: disable=wrong-import-position

MIB = 1 << 20
MODES = {"before": 1, "after": 2, "from": 3}
MOST = 400  # of one method: one that is never past its last call would not end
CODE = 999  # CUDA_ERROR_UNKNOWN


class Control:
    """softgpu's faults (gpumem/softgpu.h), by ctypes: members of struct softgpu_control in their order."""

    MEMBERS = ("fault_arm", "fault_disarm", "call_count", "state_dump", "free_text", "leak_report")

    def __init__(self):
        library = ctypes.CDLL(cc.default_library().driver_path, os.RTLD_NOLOAD | os.RTLD_LOCAL)
        library.softgpu_get_control.restype = ctypes.c_void_p
        address = library.softgpu_get_control(1)
        word = ctypes.sizeof(ctypes.c_void_p)

        def member(name, result, *arguments):
            place = address + word * (1 + self.MEMBERS.index(name))
            return ctypes.CFUNCTYPE(result, *arguments)(ctypes.c_void_p.from_address(place).value)

        self.arm = member("fault_arm", ctypes.c_int, ctypes.c_char_p, ctypes.c_uint64, ctypes.c_int, ctypes.c_int)
        self.disarm = member("fault_disarm", ctypes.c_uint64)
        self._dump = member("state_dump", ctypes.c_void_p)
        self._free = member("free_text", None, ctypes.c_void_p)

    def state(self):
        text = self._dump()
        try:
            return ctypes.string_at(text).decode()
        finally:
            self._free(text)


class Faults(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.control = Control()
        cls.device = cc.Device(0)
        cls.stream = cls.device.create_stream()
        cls.device._internal_stream  # pylint: disable=pointless-statement

    @classmethod
    def tearDownClass(cls):
        cls.stream.close()
        del cls.stream, cls.device, cls.control

    def settle(self):
        gc.collect()
        self.stream.sync()  # the pool gives back what is freed in order of it
        self.device.trim(wait=True)

    def lost(self):
        return self.device.stats().quarantined

    def sweep(self, name, act, compares=True):
        """`act` does something and ends all that it made, itself or by Python's references."""
        act()
        self.settle()
        before, lost = self.control.state(), self.lost()
        for mode, number in MODES.items():
            reached = True
            for call in range(1, MOST):
                if not reached:
                    break
                with self.subTest(method=name, mode=mode, call=call), warnings.catch_warnings():
                    warnings.simplefilter("ignore", ResourceWarning)
                    self.control.arm(b"*", call, CODE, number)
                    try:
                        act()
                    except (cc.Error, BufferError) as error:
                        self.assertTrue(str(error))
                        error.__traceback__ = None
                    finally:
                        reached = self.control.disarm() > 0
                    self.settle()
                    if compares and mode == "before" and self.lost() == lost:
                        self.assertEqual(self.control.state(), before)
                    before, lost = self.control.state(), self.lost()
            self.assertLess(call, MOST - 1, name)
        act()

    def test_each_method_of_a_pools_buffer(self):
        def act():
            pool = cc.DeviceMemoryResource(0)
            with pool.allocate(4096, stream=self.stream) as first, pool.allocate(4096) as second:
                first.fill(1, stream=self.stream)
                first.copy_to(second, stream=self.stream)
                second.copy_from(first)
                second.read(0, 16)
                second.write(b"1234")
                first.order(self.stream)
                first.use(self.stream)
                with first.view(0, 16) as view:
                    view.fill(3)
                first.__dlpack__(stream=-1)
                first.attributes  # pylint: disable=pointless-statement

        self.sweep("pool", act)

    def test_each_method_of_a_virtual_buffer(self):
        def act():
            resource = cc.VirtualMemoryResource(0, {"give_back_bytes": 2 * MIB})
            with resource.allocate(2 * MIB) as buffer:
                with resource.modify_allocation(buffer, 4 * MIB) as second:
                    second.fill(1, stream=self.stream)
                buffer.grow(6 * MIB)
                buffer.shrink(4 * MIB)
                buffer.decommit(0, 2 * MIB)
                buffer.recommit(0, 2 * MIB)
                buffer.set_access(0, "r")
                buffer.set_access(0, "rw")
                buffer.move_to_capacity(2 << 30)
                with buffer.hold(), buffer.watch(lambda event: None):
                    buffer.layout()

        self.sweep("virtual", act)

    def test_each_method_of_host_memory(self):
        def act():
            for resource in (cc.PinnedMemoryResource({}), cc.LegacyPinnedMemoryResource({"slab_bytes": 65536}),
                             cc.VirtualMemoryResource(0, {"location_type": "host"})):
                with resource.allocate(4096) as buffer, memoryview(buffer) as view:
                    view[0] = 1

        self.sweep("host", act)

    def test_each_method_of_wrappers(self):
        def act():
            cache = cc.CachingMemoryResource(cc.TrackingMemoryResource(cc.DeviceMemoryResource(0, {})))
            with cache.allocate(4096, stream=self.stream) as buffer, cache.allocate(100):
                buffer.fill(1)
            cache.trim()
            cache.upstream.report()

        self.sweep("wrappers", act)

    def test_each_method_between_processes(self):
        def act():
            pool = cc.DeviceMemoryResource(0, {"ipc_enabled": True})
            mapped = cc.DeviceMemoryResource.from_allocation_handle(0, pool.allocation_handle)
            with pool.allocate(4096) as buffer, cc.Buffer.from_ipc_descriptor(mapped, buffer.ipc_descriptor) as other:
                other.fill(1)
            with cc.VirtualMemoryResource(0).allocate(2 * MIB) as buffer:
                cc.Buffer.from_ipc_descriptor(None, buffer.ipc_descriptor).close()

        self.sweep("between processes", act)

    def test_each_method_of_managed_memory(self):
        resource = cc.ManagedMemoryResource({"method": "allocated"})

        def act():
            with resource.allocate(2 * MIB) as buffer:
                buffer.read_mostly = True
                buffer.preferred_location = cc.Host()
                buffer.accessed_by = {0}
                buffer.accessed_by = {cc.Host()}
                buffer.prefetch(0)
                buffer.discard(stream=self.stream)
                buffer.discard_prefetch(0, stream=self.stream)

        self.sweep("managed", act)

    def test_batches(self):
        pool = cc.DeviceMemoryResource(0)

        def act():
            with pool.allocate(4096, stream=self.stream) as first, pool.allocate(4096, stream=self.stream) as second:
                cc.utils.copy_batch(self.stream, [first], [second])
                first.copy_to(second, stream=self.stream, options=cc.utils.CopyOptions("any"))

        self.sweep("batches", act)

    def test_streams_and_events(self):
        def act():
            stream = self.device.create_stream()
            try:
                with_event = stream.record()
                try:
                    stream.wait(with_event)
                    stream.sync()
                    with_event.sync()
                finally:
                    with_event.close()
            finally:
                stream.close()

        # A stream or event that the driver refuses to destroy is its own to lose; nothing counts those.
        self.sweep("streams", act, compares=False)


if __name__ == "__main__":
    suite.main()
