#!/usr/bin/env python3
"""Buffers and the pools of the driver: what cuda.core's tests and the references promise."""
import gc
import unittest
import weakref

import suite

import gpumem as cc

MIB = 1 << 20


class Buffers(unittest.TestCase):
    def setUp(self):
        self.device = cc.Device(0)
        self.stream = self.device.create_stream()
        self.pool = cc.DeviceMemoryResource(0)
        self.addCleanup(self.stream.close)

    def buffer(self, size=4096, resource=None, **options):
        buffer = (resource or self.pool).allocate(size, **options)
        self.addCleanup(buffer.close)
        return buffer

    def test_a_stream_may_be_given_by_position_or_keyword_or_not_at_all(self):
        for options in ((), (self.stream,), (None,)):
            with self.pool.allocate(256, *options) as buffer:
                self.assertEqual(buffer.size, 256)
                self.assertGreater(buffer.handle, 0)
        with self.pool.allocate(256, stream=self.stream) as buffer:
            self.assertIs(buffer.memory_resource, self.pool)

    def test_streams_of_every_form_are_taken(self):
        class Foreign:
            def __init__(self, pair):
                self.pair = pair

            def __cuda_stream__(self):
                return self.pair

        class Cupy:
            ptr = self.stream.handle

        for stream in (self.stream, self.stream.handle, 0, 1, 2, Foreign((0, self.stream.handle)), Cupy(),
                       cc.LEGACY_DEFAULT_STREAM, cc.PER_THREAD_DEFAULT_STREAM, cc.NO_STREAM):
            with self.subTest(stream=stream):
                self.pool.allocate(64, stream=stream).close()
        for stream, error in ((True, TypeError), (-1, OverflowError), (Foreign((1, 5)), TypeError), ("s", TypeError),
                              (1.5, TypeError), (Foreign(3), TypeError)):
            with self.subTest(stream=stream), self.assertRaisesRegex(error, "stream|iterable"):
                self.pool.allocate(64, stream=stream)

    def test_wrong_sizes_are_named_and_change_nothing(self):
        before = self.pool.stats().allocations_total
        for size, error in ((-1, OverflowError), (2**70, OverflowError), (1.5, TypeError), ("1", TypeError),
                            (None, TypeError)):
            with self.subTest(size=size), self.assertRaisesRegex(error, "size"):
                self.pool.allocate(size, stream=self.stream)
        with self.assertRaises(TypeError):
            self.pool.allocate()
        with self.assertRaisesRegex(TypeError, "colour"):
            self.pool.allocate(64, colour=1)
        self.assertEqual(self.pool.stats().allocations_total, before)

    def test_a_size_of_zero_is_a_buffer_of_nothing(self):
        buffer = self.pool.allocate(0)
        self.assertEqual((buffer.handle, buffer.size), (0, 0))
        buffer.close()

    def test_a_closed_buffer_is_empty(self):
        buffer = self.pool.allocate(64)
        buffer.close()
        buffer.close()
        self.assertEqual((buffer.handle, buffer.size, buffer.memory_resource, buffer.is_closed), (0, 0, None, True))
        self.assertFalse(buffer.is_mapped)
        for call in (lambda: buffer.fill(0), lambda: buffer.copy_to(), lambda: buffer.view(0, 1),
                     lambda: memoryview(buffer), lambda: buffer.__dlpack_device__(), lambda: buffer.device_id,
                     lambda: buffer.set_deallocation_stream(self.stream)):
            with self.assertRaisesRegex(RuntimeError, "closed"):
                call()

    def test_fills_of_one_two_and_four_bytes(self):
        buffer = self.buffer(8)
        for value, wanted in ((7, b"\7" * 8), (True, b"\1" * 8), (b"\1\2", b"\1\2" * 4),
                              (bytearray(b"abcd"), b"abcd" * 2), (memoryview(b"z"), b"z" * 8)):
            for stream in (self.stream, None):
                buffer.fill(0xee, stream=stream)
                buffer.fill(value, stream=stream)
                self.assertEqual(buffer.read(), wanted)
        for value, error in ((256, OverflowError), (-1, OverflowError), (b"abc", ValueError), (b"", ValueError),
                             ("a", TypeError), (1.0, TypeError)):
            with self.subTest(value=value), self.assertRaisesRegex(error, "value"):
                buffer.fill(value, stream=self.stream)
        with self.assertRaisesRegex(ValueError, "multiple"):
            self.buffer(7).fill(b"ab", stream=self.stream)
        self.assertEqual(buffer.read(), b"z" * 8)

    def test_copies(self):
        first, second = self.buffer(64), self.buffer(64)
        first.fill(3, stream=self.stream)
        self.assertIs(first.copy_to(second, stream=self.stream), second)
        self.stream.sync()
        self.assertEqual(second.read(), b"\3" * 64)
        third = first.copy_to(stream=self.stream)
        self.assertEqual((third.read(), third.size, third.memory_resource), (b"\3" * 64, 64, self.pool))
        third.close()
        self.assertIsNone(second.copy_from(first))
        for other in (self.buffer(32), self.buffer(128)):
            with self.assertRaisesRegex(ValueError, "same size"):
                first.copy_to(other, stream=self.stream)
        with self.assertRaisesRegex(TypeError, "dst"):
            first.copy_to(b"", stream=self.stream)

    def test_bytes_are_written_and_read(self):
        buffer = self.buffer(16)
        buffer.write(b"0123456789abcdef")
        buffer.write(b"xy", 4, stream=self.stream)
        self.assertEqual(buffer.read(2, 5), b"23xy6")
        with self.assertRaises(cc.InvalidArgumentError):
            buffer.write(b"12345", 12)

    def test_views_share_the_memory(self):
        buffer = self.buffer(64)
        view = buffer.view(16, 8)
        self.assertEqual((view.handle - buffer.handle, view.size), (16, 8))
        view.fill(9)
        self.assertEqual(buffer.read(15, 10)[1:9], b"\t" * 8)
        with self.assertRaisesRegex(ValueError, "offset"):
            buffer.view(60, 8)
        buffer.close()
        self.assertEqual(view.read(), b"\t" * 8)
        view.close()

    def test_equality_is_by_place_and_hash_by_identity(self):
        buffer = self.buffer(64)
        other = cc.Buffer.from_handle(buffer.handle, 64)
        self.assertEqual(buffer, other)
        self.assertNotEqual(buffer, cc.Buffer.from_handle(buffer.handle, 32))
        self.assertEqual(len({buffer, other}), 2)
        self.assertNotEqual(buffer, buffer.handle)

    def test_buffers_take_weak_references_and_no_attributes(self):
        buffer = self.pool.allocate(64)
        gone = []
        reference = weakref.ref(buffer, gone.append)
        with self.assertRaises(AttributeError):
            buffer.colour = 1
        buffer.close()
        del buffer
        self.assertEqual((gone, reference()), ([reference], None))

    def test_a_buffer_is_not_made_by_calling_its_class(self):
        with self.assertRaisesRegex(RuntimeError, "from_handle"):
            cc.Buffer()

        class Special(cc.Buffer):
            pass

        self.assertIsInstance(Special.from_handle(4096, 16), Special)

    def test_foreign_memory_is_used_like_any_other(self):
        buffer = self.buffer(64)
        foreign = cc.Buffer.from_handle(buffer.handle, 64, owner=buffer)
        self.assertIs(foreign.owner, buffer)
        foreign.fill(5)
        self.assertEqual(buffer.read(), b"\5" * 64)
        self.assertTrue(foreign.is_device_accessible)
        self.assertFalse(foreign.is_host_accessible)
        foreign.close()
        nowhere = cc.Buffer.from_handle(0xdead000, 16)
        with self.assertRaises(cc.InvalidArgumentError):
            nowhere.fill(0)
        with self.assertRaisesRegex(ValueError, "mr and owner"):
            cc.Buffer.from_handle(buffer.handle, 64, self.pool, buffer)

    def test_a_buffer_in_a_cycle_is_collected(self):
        before = self.pool.stats().allocations

        class Holder:
            pass

        holder = Holder()
        holder.me, holder.buffer = holder, self.pool.allocate(64)
        with self.assertWarns(ResourceWarning) as caught:
            del holder
            gc.collect()
        self.assertIn(f"{__file__}:", str(caught.warning))
        self.assertEqual(self.pool.stats().allocations, before)

    def test_deallocate_ends_the_open_buffer_at_the_address(self):
        buffer = self.pool.allocate(64)
        with self.assertRaisesRegex(ValueError, "size"):
            self.pool.deallocate(buffer.handle, 32)
        pointer = buffer.handle
        self.pool.deallocate(pointer, 64, self.stream)
        self.assertTrue(buffer.is_closed)
        with self.assertRaisesRegex(ValueError, "ptr"):
            self.pool.deallocate(pointer, 64)

    def test_closing_a_buffer_over_a_resource_of_ours_deallocates_once(self):
        inner = self.pool.allocate(64)
        outer = cc.Buffer.from_handle(inner.handle, 64, self.pool)
        outer.close()
        self.assertTrue(inner.is_closed)

    def test_a_resource_written_in_python(self):
        calls = []

        class Mine(cc.MemoryResource):
            is_device_accessible, is_host_accessible, device_id = True, False, 0

            def allocate(self, size, stream=None):
                return cc.Buffer.from_handle(0x1000, size, self, stream=stream)

            def deallocate(self, ptr, size, stream=None):
                calls.append((ptr, size, stream))
                if size == 13:
                    raise KeyError("refused")

        mine = Mine()
        buffer = mine.allocate(64, self.stream)
        self.assertEqual((buffer.is_device_accessible, buffer.is_host_accessible, buffer.device_id), (True, False, 0))
        buffer.close()
        mine.allocate(32).close(self.stream)
        with self.assertRaisesRegex(KeyError, "refused"):
            mine.allocate(13).close()
        self.assertEqual(calls, [(0x1000, 64, self.stream), (0x1000, 32, self.stream), (0x1000, 13, None)])
        with self.assertRaises(NotImplementedError):
            cc.MemoryResource().allocate(64)

    def test_a_closed_resource_lives_as_long_as_its_buffers(self):
        pool = cc.DeviceMemoryResource(0, {"max_size": 0})
        self.assertTrue(pool.is_handle_owned)
        buffer = pool.allocate(64)
        pool.close()
        self.assertTrue(pool.is_closed)
        with self.assertRaisesRegex(RuntimeError, "closed"):
            pool.allocate(64)
        buffer.fill(1)
        self.assertEqual(buffer.read(0, 2), b"\1\1")
        buffer.close()

    def test_pools_without_options_are_the_drivers(self):
        for kind in (cc.DeviceMemoryResource, lambda options=None: cc.PinnedMemoryResource(options)):
            pool = kind(0) if kind is cc.DeviceMemoryResource else kind()
            self.assertFalse(pool.is_handle_owned)
            pool.close()
            pool.allocate(64).close()
            self.assertIsNone(pool.uuid)

    def test_pool_attributes(self):
        pool = cc.DeviceMemoryResource(0, cc.DeviceMemoryResourceOptions())
        with pool.allocate(MIB):
            self.assertEqual(pool.attributes.used_mem_current, MIB)
        pool.attributes.release_threshold = 5 * MIB
        self.assertEqual(pool.attributes.release_threshold, 5 * MIB)
        self.assertIs(pool.attributes.reuse_allow_opportunistic, True)
        with self.assertRaises(cc.InvalidArgumentError):
            pool.attributes.used_mem_current = 1

    def test_options_are_checked_by_name_and_type(self):
        with self.assertRaisesRegex(TypeError, "colour"):
            cc.DeviceMemoryResource(0, {"colour": 1})
        for wrong in (5, cc.PinnedMemoryResourceOptions()):
            with self.assertRaisesRegex(TypeError, "DeviceMemoryResourceOptions"):
                cc.DeviceMemoryResource(0, wrong)

    def test_accessibility_and_devices_of_each_resource(self):
        rows = [(cc.DeviceMemoryResource(0), (2, 0), True, False, False),
                (cc.PinnedMemoryResource(), (3, 0), True, True, False),
                (cc.LegacyPinnedMemoryResource(), (3, 0), True, True, False),
                (cc.ManagedMemoryResource(), (13, 0), True, True, True),
                (cc.VirtualMemoryResource(0), (2, 0), True, False, False)]
        for resource, pair, device, host, managed in rows:
            with self.subTest(resource=resource), resource.allocate(4096) as buffer:
                self.assertEqual(buffer.__dlpack_device__(), pair)
                self.assertEqual((buffer.is_device_accessible, buffer.is_host_accessible, buffer.is_managed),
                                 (device, host, managed))
                self.assertEqual(resource.is_managed, managed)
        self.assertEqual([row[0].device_id for row in rows], [0, -1, -1, -1, 0])

    def test_out_of_memory_says_what_the_driver_said(self):
        with self.assertRaises(MemoryError) as caught:
            self.pool.allocate(1 << 50, stream=self.stream)
        error = caught.exception
        self.assertIsInstance(error, cc.OutOfMemoryError)
        self.assertIsInstance(error, RuntimeError)
        self.assertIs(cc.CUDAError, cc.Error)
        self.assertEqual((error.status, error.driver_code, error.call),
                         (cc.Status.OUT_OF_MEMORY, 2, "cuMemAllocFromPoolAsync"))
        self.assertIn("CUDA_ERROR_OUT_OF_MEMORY", str(error))


if __name__ == "__main__":
    suite.main()
