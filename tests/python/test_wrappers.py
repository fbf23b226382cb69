#!/usr/bin/env python3
"""Resources around resources, and callbacks: what they are told, what they raise."""
import io
import logging
import sys
import unittest

import suite

import gpumem as cc

MIB = 1 << 20


class Wrappers(unittest.TestCase):
    def setUp(self):
        self.pool = cc.DeviceMemoryResource(0)
        self.stream = cc.Device(0).create_stream()
        self.addCleanup(self.stream.close)

    def test_a_cache_hands_out_the_same_memory_again(self):
        cache = cc.CachingMemoryResource(self.pool, {"segment_bytes": 4 * MIB})
        with cache.allocate(4096, stream=self.stream) as buffer:
            address = buffer.handle
        with cache.allocate(4096, stream=self.stream) as buffer:
            self.assertEqual((buffer.handle, cache.info().segments), (address, 1))
        cache.trim()
        self.assertEqual(cache.info().segments, 0)
        with cache.allocate(4096) as buffer:  # of no stream: ready for all
            buffer.fill(2)
            self.assertEqual(buffer.read(0, 1), b"\2")
        with cache.capture_pool() as pool:
            pool.begin(self.stream)
            with self.assertRaises(cc.InvalidArgumentError):
                pool.begin(self.stream)
            pool.end(self.stream)
        cache.forget_stream(self.stream)
        with self.assertRaisesRegex(TypeError, "upstream"):
            cc.CachingMemoryResource(5)

    def test_a_limit(self):
        limited = cc.LimitMemoryResource(self.pool, 8192)
        with limited.allocate(8192):
            with self.assertRaises(cc.OutOfCapacityError):
                limited.allocate(1)
        limited.allocate(1).close()

    def test_alignment(self):
        aligned = cc.AlignmentMemoryResource(self.pool, 1 << 16)
        with aligned.allocate(5) as buffer:
            self.assertEqual((buffer.handle % (1 << 16), buffer.size), (0, 5))
        with self.assertRaises(ValueError):
            cc.AlignmentMemoryResource(self.pool, 3)

    def test_a_fallback_names_its_source(self):
        second = cc.PinnedMemoryResource()
        both = cc.FallbackMemoryResource(cc.LimitMemoryResource(self.pool, 64), second)
        with both.allocate(64) as small, both.allocate(128) as large:
            self.assertIs(both.source_of(small), both.upstream)
            self.assertIs(both.source_of(large), second)
            with self.assertRaises(cc.InvalidArgumentError):
                with self.pool.allocate(1) as foreign:
                    both.source_of(foreign)

    def test_lines_go_to_the_logger_that_was_named(self):
        text = io.StringIO()
        logger = logging.Logger("mine")
        logger.addHandler(logging.StreamHandler(text))
        logged = cc.LoggingMemoryResource(self.pool, logger)
        logged.allocate(777).close()
        self.assertIn("777", text.getvalue())
        with self.assertRaisesRegex(TypeError, "logger"):
            cc.LoggingMemoryResource(self.pool, 5)

    def test_tracking_reports_lines_of_python(self):
        tracking = cc.TrackingMemoryResource(self.pool)
        self.assertEqual(tracking.report(), "nothing is live\n")
        buffers = [tracking.allocate(100) for _ in range(3)]
        report = tracking.report()
        self.assertRegex(report, rf"^300 bytes in 3 allocations: {__file__}:\d+\n$")
        self.assertEqual([row[2] for row in tracking.live()], [100, 100, 100])
        for buffer in buffers:
            buffer.close()

    def test_a_failure_is_told_and_tried_again(self):
        limited = cc.LimitMemoryResource(self.pool, 4096)
        kept, told = [limited.allocate(4096)], []

        def callback(failure):
            told.append((failure.bytes, failure.status, failure.attempt))
            if kept:
                kept.pop().close()
                return True
            return False

        resource = cc.FailureMemoryResource(limited, callback, max_retries=3)
        resource.allocate(1000).close()
        self.assertEqual(told, [(1000, cc.Status.OUT_OF_CAPACITY, 1)])
        with self.assertRaises(cc.OutOfCapacityError):
            resource.allocate(5000)
        with self.assertRaisesRegex(TypeError, "callback"):
            cc.FailureMemoryResource(limited, None)

    def test_what_a_callback_raises_is_raised_by_the_call(self):
        def callback(failure):
            raise KeyError(failure.bytes)

        resource = cc.FailureMemoryResource(cc.LimitMemoryResource(self.pool, 10), callback)
        with self.assertRaises(KeyError) as caught:
            resource.allocate(11)
        self.assertIsInstance(caught.exception.__context__, cc.OutOfCapacityError)

    def test_watches_are_told_before_memory_goes(self):
        resource = cc.VirtualMemoryResource(0, {"give_back_bytes": 2 * MIB})
        told = []
        with resource.watch(told.append) as watch:
            buffer = resource.allocate(6 * MIB)
            address = buffer.handle
            one = buffer.watch(lambda event: told.append(event))
            buffer.shrink(4 * MIB)
            buffer.decommit(0, 2 * MIB)
            one.close()
            buffer.close()
            self.assertEqual([(each.reason, each.base - address, each.bytes) for each in told[:4]],
                             [("shrink", 4 * MIB, 2 * MIB)] * 2 + [("decommit", 0, 2 * MIB)] * 2)
            self.assertEqual([each.reason for each in told[4:]], ["free"])
        self.assertTrue(watch.is_closed and one.is_closed)
        with self.assertRaisesRegex(TypeError, "callback"):
            resource.watch(5)

    def test_a_watch_that_raises_does_so_in_the_call_and_uses_of_its_buffer_are_refused(self):
        resource = cc.VirtualMemoryResource(0, {"give_back_bytes": 2 * MIB})
        buffer = resource.allocate(4 * MIB)

        def callback(event):
            if event.reason == "shrink":
                buffer.fill(1)

        with buffer.watch(callback):
            with self.assertRaises(cc.BusyError):
                buffer.shrink(2 * MIB)
            self.assertEqual(buffer.size, 2 * MIB)
            buffer.close()
        self.assertEqual(resource.stats().committed_bytes, 0)

    def test_what_a_callback_raises_without_a_call_is_unraisable(self):
        resource, seen = cc.VirtualMemoryResource(0), []
        former, sys.unraisablehook = sys.unraisablehook, lambda told: seen.append(told.exc_type)
        self.addCleanup(setattr, sys, "unraisablehook", former)
        buffer = resource.allocate(2 * MIB)
        with buffer.watch(lambda event: 1 / 0), self.assertWarns(ResourceWarning):
            del buffer
        self.assertEqual(seen, [ZeroDivisionError])

    def test_dlpack_both_ways(self):
        with self.pool.allocate(256) as buffer:
            buffer.fill(4)
            with cc.Buffer.from_dlpack(buffer) as other:
                self.assertEqual((other, other.read(0, 1)), (buffer, b"\4"))
                with self.assertRaises(TypeError):
                    cc.Buffer.from_dlpack(5) if hasattr(5, "__dlpack__") else cc._core.from_dlpack(5, 5, None)

    def test_memory_of_python_is_pinned_and_used(self):
        memory = bytearray(1 << 16)
        with cc.Buffer.register(memory) as buffer:
            buffer.fill(6)
            self.assertEqual((memory[0], memory[-1], buffer.size), (6, 6, 1 << 16))
            with self.assertRaises(BufferError):
                memory.append(1)
        memory.append(1)


if __name__ == "__main__":
    suite.main()
