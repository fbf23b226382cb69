#!/usr/bin/env python3
"""Virtual memory in Python: buffers that grow in place, and the options of the reference, one by one."""
import unittest

import suite

import gpumem as cc

MIB = 1 << 20


class Virtual(unittest.TestCase):
    def test_sizes_are_rounded_up_and_address_space_is_kept_for_growth(self):
        resource = cc.VirtualMemoryResource(0)
        with resource.allocate(3 * MIB) as buffer:
            self.assertEqual((buffer.size, buffer.capacity, buffer.committed), (4 * MIB, 1 << 30, 4 * MIB))
        with resource.allocate(MIB, capacity=8 * MIB) as buffer:
            self.assertEqual((buffer.size, buffer.capacity), (2 * MIB, 8 * MIB))
        with self.assertRaisesRegex(ValueError, "size"):
            resource.allocate(0)
        with self.assertRaises(OverflowError):
            resource.allocate(-1)

    def test_a_buffer_grows_and_shrinks_in_place(self):
        resource = cc.VirtualMemoryResource(0)
        with resource.allocate(2 * MIB) as buffer:
            address = buffer.handle
            buffer.fill(1)
            buffer.grow(6 * MIB)
            self.assertEqual((buffer.handle, buffer.size, buffer.read(0, 2)), (address, 6 * MIB, b"\1\1"))
            buffer.shrink(4 * MIB)
            self.assertEqual(buffer.size, 4 * MIB)
            with self.assertRaises(cc.OutOfCapacityError):
                buffer.grow(2 << 30)
            with self.assertRaisesRegex(ValueError, "size"):
                buffer.shrink(0)
            self.assertEqual(buffer.size, 4 * MIB)

    def test_holes_moves_access_and_layout(self):
        resource = cc.VirtualMemoryResource(0, {"give_back_bytes": 2 * MIB})
        with resource.allocate(8 * MIB) as buffer:
            self.assertEqual(buffer.decommit(2 * MIB, 2 * MIB), 2 * MIB)
            self.assertEqual(buffer.committed, 6 * MIB)
            buffer.recommit(0, buffer.size)
            layout, segments = buffer.layout()
            self.assertEqual((layout.bytes, sum(size for _, size, _ in segments)), (8 * MIB, 8 * MIB))
            buffer.set_access(0, "r")
            self.assertEqual(buffer.get_access(0), "r")
            with self.assertRaises(cc.NotPermittedError):
                buffer.fill(0)
            buffer.set_access(cc.Device(0), "rw")
            buffer.fill(3)
            address = buffer.move_to_capacity(2 << 30)
            self.assertEqual((buffer.handle, buffer.capacity, buffer.read(0, 1)), (address, 2 << 30, b"\3"))

    def test_modify_allocation_gives_a_second_buffer_over_the_same_memory(self):
        resource = cc.VirtualMemoryResource(0)
        first = resource.allocate(2 * MIB)
        first.fill(5)
        second = resource.modify_allocation(first, 5 * MIB)
        third = resource.modify_allocation(second, 8 * MIB)
        self.assertEqual([(each.handle, each.size) for each in (first, second, third)],
                         [(first.handle, 2 * MIB), (first.handle, 5 * MIB), (first.handle, 8 * MIB)])
        self.assertIsNot(first, second)
        with resource.modify_allocation(third, MIB) as fourth:
            self.assertEqual(fourth.size, 8 * MIB)
        with self.assertRaises(cc.BusyError):
            third.shrink(2 * MIB)
        first.close()
        self.assertEqual(resource.stats().allocations, 1)
        third.fill(6)
        self.assertEqual(second.read(0, 1), b"\6")
        with self.assertRaises(cc.OutOfCapacityError):
            resource.modify_allocation(third, 2 << 30)
        second.close()
        third.close()
        self.assertEqual(resource.stats().committed_bytes, 0)
        with self.assertRaises(RuntimeError):
            resource.modify_allocation(third, MIB)
        with self.assertRaisesRegex(TypeError, "buf"):
            resource.modify_allocation(cc.DeviceMemoryResource(0).allocate(0), MIB)

    def test_each_option_reaches_the_library(self):
        def allocated(resource):
            with resource.allocate(MIB) as buffer:
                return buffer.handle, buffer.capacity

        rows = [
            ({"location_type": "host"}, lambda r: r.is_host_accessible),
            ({"location_type": cc.typing.VirtualMemoryLocationType.HOST_NUMA}, lambda r: r.is_host_accessible),
            ({"location_type": "host_numa_current"}, lambda r: r.properties.location.startswith("host_numa")),
            ({"handle_type": None}, lambda r: r.handle_type is None),
            ({"handle_type": "fabric"}, lambda r: r.handle_type == "fabric" or r.properties.note),
            ({"granularity": "minimum"}, lambda r: r.properties.granularity == r.device.granularity_minimum),
            ({"gpu_direct_rdma": True}, lambda r: True),
            ({"addr_align": 16 * MIB}, lambda r: allocated(r)[0] % (16 * MIB) == 0),
            ({"addr_hint": None}, lambda r: True),
            ({"self_access": None}, lambda r: r.get_access(0) == "none"),
            ({"self_access": "r"}, lambda r: r.get_access(0) == "r"),
            ({"capacity": 64 * MIB}, lambda r: allocated(r)[1] == 64 * MIB),
            ({"maximum_chunk_bytes": 4 * MIB}, lambda r: r.properties.maximum_chunk_bytes == 4 * MIB),
            ({"cache_bytes": 64 * MIB}, lambda r: r.is_stream_ordered),
        ]
        for options, holds in rows:
            with self.subTest(options=options):
                self.assertTrue(holds(cc.VirtualMemoryResource(0, options)))
        self.assertEqual(cc.VirtualMemoryResource(0).config, cc.VirtualMemoryResourceOptions())

    def test_wrong_options_are_refused_by_name(self):
        for options, error, word in (({"location_type": "moon"}, ValueError, "location"),
                                     ({"handle_type": "win32_kmt"}, cc.NotSupportedError, "win32_kmt"),
                                     ({"allocation_type": "managed"}, cc.NotSupportedError, "managed"),
                                     ({"addr_align": 3}, ValueError, "alignment"),
                                     ({"peers": [99]}, ValueError, "99"),
                                     ({"peers": 5}, TypeError, ""),
                                     ({"colour": 1}, TypeError, "colour"),
                                     ({"capacity": -1}, OverflowError, "capacity")):
            with self.subTest(options=options), self.assertRaisesRegex(error, word):
                cc.VirtualMemoryResource(0, options)

    def test_mapped_memory_is_the_cpus_too(self):
        resource = cc.MappedMemoryResource(0)
        self.assertIn(resource.method, ("descriptor", "vulkan_import", "vulkan_export", "dma_buf", "host", "coherent"))
        with resource.allocate(4096) as buffer:
            with memoryview(buffer) as view:
                view[:4] = b"host"
            buffer.flush()
            self.assertEqual(buffer.read(0, 4), b"host")
            buffer.publish(b"data", 0, 64, 7)
            self.assertEqual((buffer.read(0, 4), buffer.read(64, 4)), (b"data", b"\7\0\0\0"))
            self.assertGreaterEqual(buffer.non_coherent_atom_size, 1)

    def test_a_host_view_maps_a_virtual_buffer(self):
        with cc.VirtualMemoryResource(0).allocate(2 * MIB) as buffer, buffer.host_view() as view:
            with memoryview(view) as bytes_:
                bytes_[:2] = b"ab"
            self.assertEqual((buffer.read(0, 2), view.handle), (b"ab", buffer.handle))


if __name__ == "__main__":
    suite.main()
