#!/usr/bin/env python3
"""Virtual memory by hand in Python: what the reference's manager does, where we differ, and who keeps what."""
import gc
import os
import unittest

import suite

import gpumem as cc
from gpumem import vmm

MIB = 1 << 20
GRANULE = vmm.granularity(0)


def buffer_over(mapping):
    """A Buffer over a mapping's bytes, which copies and fills take."""
    return cc.Buffer.from_handle(mapping.address, mapping.size, owner=mapping)


class ByHand(unittest.TestCase):
    def test_reserved_addresses_have_no_memory_until_it_is_mapped(self):
        device = cc.Device(0)
        before = device.stats().committed_bytes
        with vmm.reserve(4 * GRANULE) as reservation:
            self.assertEqual((reservation.size, reservation.mappings), (4 * GRANULE, ()))
            self.assertEqual(device.stats().committed_bytes, before)
            with vmm.PhysicalMemory(GRANULE) as memory:
                self.assertEqual(device.stats().committed_bytes, before + GRANULE)
                mapping = reservation.map(memory, GRANULE)
                self.assertEqual((mapping.address, mapping.size, mapping.offset, mapping.state),
                                 (reservation.address + GRANULE, GRANULE, GRANULE, "mapped"))
                self.assertEqual(mapping.get_access(0), "none")
                mapping.set_access(0)
                with buffer_over(mapping) as buffer:
                    buffer.fill(7)
                    self.assertEqual(buffer.read(0, 2), b"\7\7")
                mapping.close()
            self.assertEqual(device.stats().committed_bytes, before)

    def test_unmapped_memory_keeps_its_bytes_and_is_mapped_elsewhere(self):
        with vmm.reserve(4 * GRANULE) as one, vmm.reserve(GRANULE) as other, vmm.PhysicalMemory(GRANULE) as memory:
            first = one.map(memory)
            one.set_access(0, "rw", 0, GRANULE)
            with buffer_over(first) as buffer:
                buffer.fill(9)
            one.unmap()
            self.assertEqual((first.state, one.mappings), ("unmapped", ()))
            with self.assertRaisesRegex(RuntimeError, "unmapped"):
                first.set_access(0)
            with other.map(memory) as second:
                second.set_access(cc.Device(0), "r")
                self.assertEqual(second.get_access(0), "r")
                with buffer_over(second) as buffer:
                    self.assertEqual(buffer.read(0, 1), b"\11")

    def test_ranges_are_whole_mappings_and_holes_may_only_be_unmapped(self):
        with vmm.reserve(4 * GRANULE) as reservation, vmm.PhysicalMemory(2 * GRANULE) as memory:
            mapping = reservation.map(memory, GRANULE)
            for call in (lambda: reservation.unmap(0, 2 * GRANULE), lambda: reservation.unmap(0, 5 * GRANULE),
                         lambda: reservation.set_access(0), lambda: reservation.set_access(0, "rw", GRANULE, GRANULE),
                         lambda: reservation.map(memory, 3 * GRANULE), lambda: reservation.map(memory, 1),
                         lambda: reservation.map(memory, 2 * GRANULE)):
                with self.assertRaises(ValueError):
                    call()
            self.assertEqual((mapping.state, mapping.get_access(0)), ("mapped", "none"))
            reservation.set_access(0, cc.typing.VirtualMemoryAccessType.READ, GRANULE, 2 * GRANULE)
            self.assertEqual(mapping.get_access(0), "r")
            reservation.set_access(0, None, GRANULE, 2 * GRANULE)
            self.assertEqual(mapping.get_access(0), "none")

    def test_alignment_applies_to_the_address_alone_and_zero_is_the_granularity(self):
        with vmm.reserve(GRANULE, alignment=64 * MIB) as reservation:
            self.assertEqual(reservation.address % (64 * MIB), 0)
        with vmm.reserve(GRANULE, alignment=0) as reservation:
            self.assertEqual(reservation.address % cc.Device(0).granularity_minimum, 0)
            free = reservation.address
        with vmm.reserve(GRANULE, address=free) as reservation:
            self.assertEqual(reservation.address, free)

    def test_wrong_arguments_are_refused_by_name(self):
        rows = [(lambda: vmm.reserve(0), ValueError, "bytes|size"),
                (lambda: vmm.reserve(GRANULE + 1), ValueError, "multiple"),
                (lambda: vmm.reserve(GRANULE, alignment=3), ValueError, "power of two"),
                (lambda: vmm.reserve(-1), OverflowError, ""),
                (lambda: vmm.reserve(GRANULE, device=99), ValueError, "device_id"),
                (lambda: vmm.PhysicalMemory(0), ValueError, ""),
                (lambda: vmm.PhysicalMemory(1), ValueError, "multiple"),
                (lambda: vmm.PhysicalMemory(GRANULE, options={"colour": 1}), TypeError, "colour"),
                (lambda: vmm.PhysicalMemory(GRANULE, options=5), TypeError, "options"),
                (lambda: vmm.PhysicalMemory(GRANULE, options={"handle_type": "win32_kmt"}), cc.NotSupportedError,
                 "win32_kmt"),
                (lambda: vmm.PhysicalMemory(GRANULE, options={"allocation_type": "managed"}), cc.NotSupportedError,
                 "managed"),
                (lambda: vmm.PhysicalMemory.import_fd(-1, GRANULE), OSError, "fd"),
                (lambda: vmm.PhysicalMemory.from_address(5), ValueError, ""),
                (vmm.Mapping, RuntimeError, "map")]
        with vmm.reserve(GRANULE) as reservation:
            rows += [(lambda: reservation.map(5), TypeError, "memory"),
                     (lambda: reservation.set_access(0, "moon"), ValueError, "moon")]
            for number, (call, error, word) in enumerate(rows):
                with self.subTest(row=number), self.assertRaisesRegex(error, word):
                    call()

    def test_what_is_mapped_is_not_closed(self):
        reservation, memory = vmm.reserve(GRANULE), vmm.PhysicalMemory(GRANULE)
        reservation.map(memory)
        with self.assertRaisesRegex(cc.BusyError, "mapped"):
            reservation.close()
        with self.assertRaisesRegex(cc.BusyError, "mapped"):
            memory.close()
        self.assertFalse(reservation.is_closed or memory.is_closed)
        reservation.unmap()
        memory.close()
        reservation.close()
        reservation.close()
        self.assertTrue(reservation.is_closed and memory.is_closed)
        for call in (lambda: reservation.map(memory), lambda: reservation.unmap(), memory.export_fd):
            with self.assertRaises(RuntimeError):
                call()

    def test_a_reservation_keeps_its_mappings_and_a_mapping_its_memory(self):
        device = cc.Device(0)
        before = device.stats().committed_bytes
        reservation = vmm.reserve(2 * GRANULE)
        reservation.map(vmm.PhysicalMemory(GRANULE)).set_access(0)
        gc.collect()
        self.assertEqual([each.get_access(0) for each in reservation.mappings], ["rw"])
        mapping = reservation.map(vmm.PhysicalMemory(GRANULE), GRANULE)
        del reservation
        gc.collect()
        self.assertEqual((mapping.state, device.stats().committed_bytes), ("mapped", before + GRANULE))
        del mapping
        gc.collect()
        self.assertEqual(device.stats().committed_bytes, before)

    def test_memory_is_exported_imported_and_found_by_its_address(self):
        with vmm.reserve(3 * GRANULE) as reservation, vmm.PhysicalMemory(GRANULE) as memory:
            self.assertEqual((memory.properties.bytes, memory.properties.location, memory.properties.exports_fd),
                             (GRANULE, "device", True))
            fd = memory.export_fd()
            try:
                imported = vmm.PhysicalMemory.import_fd(fd, GRANULE)
            finally:
                os.close(fd)
            for number, each in enumerate((memory, imported)):
                reservation.map(each, number * GRANULE).set_access(0)
            found = vmm.PhysicalMemory.from_address(reservation.address)
            reservation.map(found, 2 * GRANULE).set_access(0)
            self.assertEqual((imported.size, found.size), (GRANULE, GRANULE))
            first, second, third = map(buffer_over, reservation.mappings)
            first.fill(b"\1\2")
            self.assertEqual((second.read(0, 2), third.read(0, 2)), (b"\1\2", b"\1\2"))
            for each in (first, second, third):
                each.close()
            reservation.unmap()
            imported.close()
            found.close()

    def test_host_memory_is_for_the_cpu_too(self):
        options = vmm.PhysicalMemoryOptions(location_type="host", handle_type=None)
        size = vmm.granularity(0, options, "minimum")
        with vmm.reserve(size) as reservation, vmm.PhysicalMemory(size, options=options) as memory:
            mapping = reservation.map(memory)
            mapping.set_access(cc.Host())
            mapping.set_access(0)
            self.assertEqual((mapping.get_access(-1), mapping.get_access(cc.Host())), ("rw", "rw"))
            with self.assertRaises(cc.NotSupportedError):
                memory.export_fd()
            with buffer_over(mapping) as buffer:
                buffer.write(b"both")
                with memoryview(buffer) as view:
                    self.assertEqual(bytes(view[:4]), b"both")
            reservation.unmap()

    def test_a_refused_call_changes_nothing(self):
        program = """
import gpumem as cc
from gpumem import vmm
size = vmm.granularity(0)
reservation = memory = mapping = None
refused = 0
for step in range(20):
    try:
        reservation = reservation or vmm.reserve(size)
        memory = memory or vmm.PhysicalMemory(size)
        mapping = mapping or reservation.map(memory)
        mapping.set_access(0)
        assert mapping.get_access(0) == "rw"
        reservation.unmap()
        memory.close()
        reservation.close()
        break
    except cc.Error as error:
        refused += 1
print(refused)
"""
        # A refused unmap is tried again by the library.
        for call, refused in (("cuMemAddressReserve", "1"), ("cuMemCreate", "1"), ("cuMemMap", "1"),
                              ("cuMemSetAccess", "1"), ("cuMemUnmap", "0")):
            with self.subTest(call=call):
                done = suite.child(program, SOFTGPU_FAULT=f"{call}:1:CUDA_ERROR_INVALID_VALUE:before")
                self.assertEqual((done.returncode, done.stdout.strip()), (0, refused), done.stderr)


if __name__ == "__main__":
    suite.main()
