#!/usr/bin/env python3
"""Devices, streams, events, libraries and errors."""
import unittest

import suite

import gpumem as cc


class Streams(unittest.TestCase):
    def setUp(self):
        self.device = cc.Device(0)

    def test_devices_are_one_object_each(self):
        self.assertIs(cc.Device(0), cc.Device(0))
        self.assertIs(cc.Device(), cc.Device.get_all_devices()[0])
        self.assertIs(cc.Device(cc.Device(0)), cc.Device(0))
        for wrong in (-1, 99):
            with self.assertRaisesRegex(ValueError, "device_id"):
                cc.Device(wrong)
        with self.assertRaises(TypeError):
            cc.Device("0")

    def test_a_device_describes_itself(self):
        device = self.device
        self.assertEqual((device.device_id, device.name, tuple(device.compute_capability)), (0, "NVIDIA H200", (9, 0)))
        self.assertRegex(device.uuid, "^[0-9a-f-]{36}$")
        self.assertIs(device.library.device_by_uuid(device.uuid), device)
        self.assertRegex(device.pci_bus_id, "^[0-9a-f]{4}:")
        free, total = device.memory_info()
        self.assertTrue(0 < free <= total)
        self.assertTrue(device.capability("virtual_memory").supported)
        with self.assertRaisesRegex(ValueError, "flying"):
            device.capability("flying")
        self.assertGreaterEqual(device.granularity_recommended, device.granularity_minimum)
        self.assertFalse(device.can_access_peer(device))
        self.assertEqual(device.stats().allocations, 0)
        self.assertIn("devices", device.snapshot())
        device.trim(wait=True)
        device.set_current()
        device.sync()

    def test_the_devices_resource_can_be_replaced(self):
        former = self.device.memory_resource
        self.assertIsInstance(former, cc.DeviceMemoryResource)
        mine = cc.LimitMemoryResource(former, 1 << 20)
        self.device.memory_resource = mine
        self.addCleanup(setattr, self.device, "memory_resource", former)
        with self.device.allocate(64) as buffer:
            self.assertIs(buffer.memory_resource, mine)
        with self.assertRaisesRegex(TypeError, "memory_resource"):
            self.device.memory_resource = 5

    def test_streams_have_options_and_order(self):
        with_options = self.device.create_stream(options={"nonblocking": False, "priority": -1})
        plain = self.device.create_stream(options=cc.StreamOptions())
        self.assertEqual((with_options.is_nonblocking, plain.is_nonblocking, with_options.priority), (False, True, -1))
        self.assertIs(plain.device, self.device)
        self.assertEqual(plain.__cuda_stream__(), (0, plain.handle))
        self.assertEqual(cc.Stream.from_handle(plain.handle), plain)
        self.assertIs(self.device.create_stream(plain), plain)
        plain.wait(with_options)
        plain.wait(with_options.record())
        plain.sync()
        self.assertTrue(plain.is_done)
        for stream in (plain, with_options):
            stream.close()
            stream.close()
            self.assertTrue(stream.is_closed)
        with self.assertRaisesRegex(ValueError, "closed"):
            self.device.allocate(64, stream=plain)
        with self.assertRaisesRegex(TypeError, "StreamOptions"):
            self.device.create_stream(options=cc.EventOptions())
        with self.assertRaisesRegex(TypeError, "colour"):
            self.device.create_stream(options={"colour": 1})

    def test_events_measure_and_tell(self):
        stream = self.device.create_stream()
        options = cc.EventOptions(timing_enabled=True)
        first = stream.record(options=options)
        second = stream.record(self.device.create_event(options))
        second.sync()
        self.assertTrue(second.is_done)
        self.assertGreaterEqual(second - first, 0.0)
        self.assertEqual((first.is_timing_enabled, first.is_blocking_sync, first.is_ipc_enabled), (True, False, False))
        first.close()
        with self.assertRaisesRegex(RuntimeError, "closed"):
            stream.record(first)
        stream.close()
        second.close()

    def test_no_stream_is_not_a_stream_of_cuda(self):
        self.assertEqual(cc.NO_STREAM.handle, 2**64 - 1)
        with self.assertRaises(RuntimeError):
            cc.NO_STREAM.__cuda_stream__()
        for stream in (cc.NO_STREAM, cc.LEGACY_DEFAULT_STREAM):
            stream.close()
            self.assertFalse(stream.is_closed)

    def test_a_stream_that_a_buffer_names_outlives_its_close(self):
        pool, stream, other = self.device.memory_resource, self.device.create_stream(), self.device.create_stream()
        buffer = pool.allocate(64, stream=stream)
        buffer.fill(1, stream=other)
        stream.close()
        other.close()
        buffer.close()

    def test_libraries_are_opened_side_by_side(self):
        self.assertIs(cc.default_library(), cc.default_library())
        with cc.open("softgpu") as library:
            self.assertEqual(library.driver_kind, "softgpu")
            self.assertIsNot(library.devices[0], self.device)
            pool = cc.DeviceMemoryResource(library.device(0))
            stream = self.device.create_stream()
            with self.assertRaisesRegex(ValueError, "another opened driver"):
                pool.allocate(64, stream=stream)
            stream.close()
            self.assertEqual(library.stats().allocations, 0)
        self.assertTrue(library.is_closed)
        with self.assertRaises(cc.NoDriverError) as caught:
            cc.open("/no/such/library.so")
        self.assertEqual(caught.exception.status, cc.Status.NO_DRIVER)

    def test_hosts_are_values(self):
        self.assertEqual(cc.Host(1), cc.Host(1))
        self.assertNotEqual(cc.Host(), cc.Host.numa_current())
        self.assertEqual(len({cc.Host(), cc.Host(), cc.Host(0)}), 2)
        for wrong in (lambda: cc.Host(-1), lambda: cc.Host(0, True)):
            with self.assertRaises(ValueError):
                wrong()


class Errors(unittest.TestCase):
    def test_each_status_has_a_class(self):
        from gpumem import errors
        self.assertEqual(set(errors.CLASSES), set(cc.Status) - {cc.Status.OK})
        for status, kind in errors.CLASSES.items():
            error = errors.make(status, 2, 0, 22, "cuMemAlloc", "a text")
            self.assertIs(type(error), kind)
            self.assertIsInstance(error, cc.Error)
            self.assertEqual((error.status, error.driver_code, error.system_code, error.call),
                             (status, 2, 22, "cuMemAlloc"))
            self.assertTrue(str(error).startswith("a text"), str(error))


class Imports(unittest.TestCase):
    def test_the_import_opens_nothing_and_loads_little(self):
        done = suite.child("import sys\nbefore = set(sys.modules)\nimport gpumem\n"
                           "new = {name for name in set(sys.modules) - before if not name.startswith('gpumem')}\n"
                           "print(sorted(new - {'atexit', 'operator', '_operator'}), gpumem.__version__)", GPUMEM_DRIVER="/no/driver")
        self.assertEqual((done.stdout.split()[:1], done.stderr), (["[]"], ""))

    def test_all_names_are_there(self):
        for name in (*cc.__all__, "typing", "vkgdr"):
            if name != "vkgdr":  # needs libvkgdr
                self.assertTrue(hasattr(cc, name), name)
        with self.assertRaises(AttributeError):
            cc.no_such_name  # pylint: disable=pointless-statement

    def test_headers_and_libraries_are_found(self):
        from pathlib import Path
        self.assertTrue((Path(cc.get_include()) / "gpumem/gpumem.h").exists())
        self.assertTrue((Path(cc.get_library_dir()) / "libgpumem.so.0").exists())


if __name__ == "__main__":
    suite.main()
