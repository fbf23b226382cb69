#!/usr/bin/env python3
"""Managed memory in Python: where resources prefer it, advice about buffers, and moving their pages."""
import unittest

import suite

import gpumem as cc

MIB = 1 << 20


class Managed(unittest.TestCase):
    def setUp(self):
        self.device = cc.Device(0)
        self.stream = self.device.create_stream()
        self.addCleanup(self.stream.close)
        self.resource = cc.ManagedMemoryResource({"method": "allocated"})
        self.buffer = self.resource.allocate(2 * MIB)
        self.addCleanup(self.buffer.close)

    def set(self, name, value, buffer=None):
        setattr(buffer or self.buffer, name, value)

    def test_a_resource_says_where_its_memory_is_kept(self):
        node = max(self.device.properties.host_numa_node, 0)
        rows = [({}, None, -1), ({"preferred_location": 0}, ("device", 0), 0),
                ({"preferred_location": self.device}, ("device", 0), 0),
                ({"preferred_location": -1}, ("host", None), -1),
                ({"preferred_location": 0, "preferred_location_type": "device"}, ("device", 0), 0),
                ({"preferred_location_type": "host"}, ("host", None), -1),
                ({"preferred_location": cc.Host()}, ("host", None), -1),
                ({"preferred_location_type": "host_numa"}, ("host_numa", node), -1),
                ({"preferred_location": 0, "preferred_location_type": "host_numa"}, ("host_numa", 0), -1)]
        for options, place, device in rows:
            for method in ("pool", "allocated"):
                with self.subTest(options=options, method=method):
                    resource = cc.ManagedMemoryResource(options | {"method": method})
                    self.assertEqual((resource.preferred_location, resource.device_id), (place, device))
                    with resource.allocate(4096) as buffer:
                        self.assertIs(type(buffer), cc.ManagedBuffer)
                        self.assertTrue(buffer.is_managed)
        self.assertIsNone(cc.ManagedMemoryResource().preferred_location)

    def test_places_that_do_not_go_together_are_refused(self):
        for place, kind, error in ((None, "device", ValueError), (-1, "device", ValueError), (0, "host", ValueError),
                                   (-1, "host_numa", ValueError), (0, "moon", ValueError), (99, None, ValueError),
                                   ("x", None, TypeError), (1.5, None, TypeError)):
            with self.subTest(place=place, kind=kind), self.assertRaises(error):
                cc.ManagedMemoryResource({"preferred_location": place, "preferred_location_type": kind})

    def test_advice_is_given_and_read_back(self):
        buffer = self.buffer
        self.assertEqual((buffer.read_mostly, buffer.preferred_location, len(buffer.accessed_by)), (False, None, 0))
        for value in (True, False):
            buffer.read_mostly = value
            self.assertEqual(buffer.read_mostly, value)
        for value, found in ((self.device, self.device), (cc.Host(), cc.Host()), (0, self.device), (None, None)):
            buffer.preferred_location = value
            self.assertEqual(buffer.preferred_location, found)
        for value in (cc.Host(0), cc.Host.numa_current()):  # which is taken, but not reported, on an H200 too
            buffer.preferred_location = value
            buffer.preferred_location = None
            self.assertIsNone(buffer.preferred_location)

    def test_accessed_by_is_a_set_of_places(self):
        places = self.buffer.accessed_by
        places.add(self.device)
        self.assertEqual((list(places), self.device in places, cc.Host() in places), ([self.device], True, False))
        self.buffer.accessed_by = [cc.Host()]
        self.assertEqual(list(places), [cc.Host()])
        places.update([0, cc.Host()])
        self.assertEqual(places, {self.device, cc.Host()})
        self.assertNotEqual(places, {0})
        places.discard(0)
        places.discard(0)
        places.discard(cc.Host(0))
        with self.assertRaises(KeyError):
            places.remove(0)
        places.remove(cc.Host())
        self.assertEqual((len(places), repr(places)), (0, "{}"))
        places.add(0)
        places.clear()
        self.assertEqual(list(places), [])

    def test_wrong_places_change_nothing(self):
        self.buffer.accessed_by = {0}
        for name, value, error in (("accessed_by", {cc.Host(), 99}, ValueError), ("accessed_by", 5, TypeError),
                                   ("accessed_by", [cc.Host(), cc.Host(0)], ValueError),
                                   ("accessed_by", [cc.Host(), "x"], TypeError), ("accessed_by", {-1}, ValueError),
                                   ("preferred_location", "moon", TypeError), ("preferred_location", -1, ValueError),
                                   ("preferred_location", 99, ValueError),
                                   ("preferred_location", cc.Host(4000), ValueError)):
            with self.subTest(name=name, value=value), self.assertRaises(error):
                self.set(name, value)
        for location, error in ((None, TypeError), ("x", TypeError), (-1, ValueError), (99, ValueError),
                                (cc.Host(4000), ValueError), (True, TypeError)):
            for act in (self.buffer.prefetch, self.buffer.discard_prefetch):
                with self.subTest(location=location), self.assertRaises(error):
                    act(location, stream=self.stream)
        self.assertEqual((self.buffer.accessed_by, self.buffer.preferred_location), ({0}, None))
        with self.assertRaises(AttributeError):
            self.buffer.colour = 1

    def test_pages_are_moved_and_given_up(self):
        buffer = self.buffer
        self.assertIsNone(buffer.last_prefetch_location)
        buffer.fill(3)
        buffer.prefetch(self.device)
        self.assertEqual((buffer.last_prefetch_location, buffer.read(0, 1)), (self.device, b"\3"))
        buffer.prefetch(cc.Host(), stream=self.stream)
        self.stream.sync()
        self.assertEqual((buffer.last_prefetch_location, buffer.read(0, 1)), (cc.Host(), b"\3"))
        buffer.discard_prefetch(0, stream=self.stream)
        self.assertEqual(buffer.last_prefetch_location, self.device)
        for stream in (None, self.stream):
            buffer.discard(stream=stream)
        with self.assertRaisesRegex(ValueError, "legacy"):
            buffer.discard(stream=cc.LEGACY_DEFAULT_STREAM)
        buffer.fill(4)
        self.assertEqual(buffer.read(0, 1), b"\4")

    def test_memory_of_a_pool_takes_no_advice_but_moves(self):
        with cc.ManagedMemoryResource().allocate(2 * MIB) as buffer:
            for name, value in (("read_mostly", True), ("preferred_location", 0), ("preferred_location", None),
                                ("accessed_by", {0})):
                with self.subTest(name=name), self.assertRaisesRegex(cc.NotSupportedError, "pool"):
                    self.set(name, value, buffer)
            with self.assertRaises(NotImplementedError):
                buffer.accessed_by.add(0)
            self.assertEqual((buffer.read_mostly, len(buffer.accessed_by)), (False, 0))
            buffer.prefetch(0, stream=self.stream)
            buffer.discard(stream=self.stream)
            buffer.fill(1)

    def test_a_closed_buffer_and_other_memory_are_refused(self):
        with self.resource.allocate(4096) as buffer:
            with buffer.view(0, 64) as view, cc.ManagedBuffer.from_handle(buffer.handle, 64, owner=buffer) as other:
                self.assertEqual((type(view), type(other)), (cc.ManagedBuffer,) * 2)
                other.read_mostly = True
                self.assertTrue(view.read_mostly)
        for act in (lambda: buffer.read_mostly, lambda: buffer.accessed_by, lambda: buffer.prefetch(0),
                    lambda: buffer.discard(), lambda: self.set("read_mostly", True, buffer)):
            with self.assertRaisesRegex(RuntimeError, "closed"):
                act()
        with cc.DeviceMemoryResource(0).allocate(64) as buffer:
            with cc.ManagedBuffer.from_handle(buffer.handle, 64, owner=buffer) as other, \
                    self.assertRaisesRegex(ValueError, "not managed"):
                other.read_mostly = True
        with self.assertRaises(RuntimeError):
            cc.ManagedBuffer()

    def test_a_wrapper_around_it_hands_out_the_same_kind(self):
        with cc.LimitMemoryResource(self.resource, 8 * MIB).allocate(4096) as buffer:
            buffer.read_mostly = True
            self.assertTrue(buffer.read_mostly)
        with cc.LimitMemoryResource(cc.DeviceMemoryResource(0), 8 * MIB).allocate(4096) as buffer:
            self.assertIs(type(buffer), cc.Buffer)


if __name__ == "__main__":
    suite.main()
