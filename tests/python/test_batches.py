#!/usr/bin/env python3
"""gpumem.utils: copies, prefetches and discards of several Buffers, and hints about copies."""
import threading
import unittest

import suite

import gpumem as cc
from gpumem import utils

KIB, MIB = 1 << 10, 1 << 20
Options = utils.CopyOptions


class Batches(unittest.TestCase):
    def setUp(self):
        self.device = cc.Device(0)
        self.stream = self.device.create_stream()
        self.pool = cc.DeviceMemoryResource(0)
        self.addCleanup(self.stream.close)

    def buffers(self, *sizes, resource=None):
        made = [(resource or self.pool).allocate(size) for size in sizes]
        for each in made:
            self.addCleanup(each.close)
        return made

    def filled(self, *values, size=4 * KIB):
        made = self.buffers(*[size] * len(values))
        for each, value in zip(made, values):
            each.fill(value)
        return made

    def test_a_batch_copies_each_to_its_own(self):
        for stream in (self.stream, None, cc.PER_THREAD_DEFAULT_STREAM):
            for options in (None, Options(), Options("any"), Options("during_api_call", overlap_mode=
                                                                     utils.MemcpyOverlapMode.PREFER_OVERLAP_WITH_COMPUTE),
                            Options(src_location_hint=self.device, dst_location_hint=cc.Host())):
                with self.subTest(stream=stream, options=options):
                    sources, targets = self.filled(1, 2, 3), self.filled(0, 0, 0)
                    self.stream.sync()
                    utils.copy_batch(stream, sources, targets, options=options)
                    self.assertEqual([each.read(0, 2, stream=stream) for each in targets],
                                     [b"\1\1", b"\2\2", b"\3\3"])

    def test_options_are_for_each_copy_or_for_all(self):
        sources, targets = self.filled(1, 2), self.filled(0, 0)
        utils.copy_batch(None, sources, targets, options=[Options("any"), Options("stream")])
        self.assertEqual([each.read(0, 1) for each in targets], [b"\1", b"\2"])
        self.assertEqual(utils._hints(Options("any"), 3), ((3, 0, 0, 0, 0, 0),) * 3)
        self.assertEqual(utils._hints([Options(overlap_mode="prefer_overlap_with_compute"),
                                       Options(dst_location_hint=cc.Host(0))], 2),
                         ((1, 1, 0, 0, 0, 0), (1, 0, 0, 0, 3, 0)))

    def test_the_hints_reach_the_driver_in_one_call(self):
        program = """
import sys
import gpumem as cc
pool = cc.DeviceMemoryResource(0)
stream = cc.Device(0).create_stream()
with pool.allocate(64) as a, pool.allocate(64) as b, pool.allocate(64) as c, pool.allocate(64) as d:
    for options in (None, cc.utils.CopyOptions("any")):
        cc.utils.copy_batch(stream, [a, b], [c, d], options=options)
    a.copy_to(c, stream=stream, options=cc.utils.CopyOptions("during_api_call"))
    stream.sync()
stream.close()
"""
        done = suite.child(program, SOFTGPU_TRACE="-")
        self.assertEqual(done.returncode, 0, done.stderr)
        calls = [line for line in done.stderr.splitlines() if " cuMemcpy" in line]
        self.assertEqual(["cuMemcpyBatchAsync" in line for line in calls], [True] * 3, calls)

    def test_a_copy_takes_options(self):
        (source,), (target,) = self.filled(5), self.filled(0)
        for stream in (self.stream, None):
            for order in utils.MemcpySrcAccessOrder:
                target.fill(0)
                self.assertIs(source.copy_to(target, stream=stream, options=Options(order)), target)
                self.assertEqual(target.read(0, 1, stream=stream), b"\5")
                target.fill(0)
                target.copy_from(source, stream=stream, options=Options(order))
                self.assertEqual(target.read(0, 1, stream=stream), b"\5")
        with source.copy_to(stream=self.stream, options=Options()) as other:
            self.assertEqual(other.read(0, 1), b"\5")
        for options in ("any", {"src_access_order": "any"}, 5):
            with self.subTest(options=options), self.assertRaisesRegex(TypeError, "options"):
                source.copy_to(target, stream=self.stream, options=options)

    def test_wrong_options_are_refused_by_name(self):
        (source,), (target,) = self.filled(5), self.filled(0)
        for options, error, word in ((Options("soon"), ValueError, "src_access_order"),
                                     (Options(5), TypeError, "src_access_order"),
                                     (Options(overlap_mode="no"), ValueError, "overlap_mode"),
                                     (Options(src_location_hint="x"), TypeError, "src_location_hint"),
                                     (Options(dst_location_hint=-1), ValueError, "dst_location_hint"),
                                     ([Options()] * 2, ValueError, "2 for 1"), (["any"], TypeError, "CopyOptions")):
            with self.subTest(options=options), self.assertRaisesRegex(error, word):
                utils.copy_batch(self.stream, [source], [target], options=options)
        self.assertEqual(target.read(0, 1), b"\0")

    def test_wrong_batches_are_refused_and_nothing_is_copied(self):
        sources, targets, (small, closed) = self.filled(1, 2), self.filled(0, 0), self.buffers(64, 64)
        closed.close()
        for given, error, word in (((sources[0], targets), TypeError, "srcs"), ((sources, targets[0]), TypeError, "dsts"),
                                   ((sources, targets[:1]), ValueError, "2 and 1"),
                                   ((sources, [targets[0], small]), ValueError, "copy 1"),
                                   ((sources, [targets[0], closed]), RuntimeError, "closed"),
                                   ((sources, [targets[0], b"x"]), TypeError, "dsts"), ((5, targets), TypeError, "")):
            with self.subTest(word=word), self.assertRaisesRegex(error, word):
                utils.copy_batch(self.stream, *given)
        for stream in (cc.LEGACY_DEFAULT_STREAM, 0, 1):
            with self.assertRaisesRegex(TypeError, "legacy"):
                utils.copy_batch(stream, sources, targets)
            with self.assertRaisesRegex(TypeError, "legacy"):
                sources[0].copy_to(targets[0], stream=stream, options=Options())
        with self.assertRaisesRegex(TypeError, "stream"):
            utils.copy_batch("s", sources, targets)
        self.assertEqual([each.read(0, 1) for each in targets], [b"\0", b"\0"])

    def test_empty_and_repeated_buffers(self):
        utils.copy_batch(self.stream, [], [])
        empty, other = self.buffers(0, 0)
        utils.copy_batch(self.stream, [empty], [other], options=Options())
        source, first, second = self.filled(9, 0, 0)
        utils.copy_batch(None, [source, source, empty], [first, second, other])
        self.assertEqual((first.read(0, 1), second.read(0, 1)), (b"\x09", b"\x09"))

    def test_threads_with_crossed_batches_do_not_wait_for_ever(self):
        buffers = self.filled(1, 2, 3, 4)

        def work(order):
            for _ in range(100):
                utils.copy_batch(None, [buffers[n] for n in order[:2]], [buffers[n] for n in order[2:]])

        threads = [threading.Thread(target=work, args=(order,)) for order in ((0, 1, 2, 3), (3, 2, 1, 0), (1, 3, 0, 2))]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        self.assertEqual(len(buffers[0].read()), 4 * KIB)

    def test_managed_buffers_are_moved_and_given_up_together(self):
        resource = cc.ManagedMemoryResource({"method": "allocated"})
        first, second = self.buffers(2 * MIB, 2 * MIB, resource=resource)
        for stream in (self.stream, None):
            utils.prefetch_batch(stream, [first, second], [cc.Host(), self.device])
            self.assertEqual((first.last_prefetch_location, second.last_prefetch_location), (cc.Host(), self.device))
            utils.prefetch_batch(stream, [first, second], 0)
            self.assertEqual(first.last_prefetch_location, self.device)
            utils.discard_batch(stream, [first, second])
            utils.discard_prefetch_batch(stream, (first, second), cc.Host())
            self.assertEqual(second.last_prefetch_location, cc.Host())
        first.fill(1)
        self.assertEqual(first.read(0, 1), b"\1")

    def test_batches_of_managed_memory_refuse_what_is_wrong(self):
        resource = cc.ManagedMemoryResource({"method": "allocated"})
        first, second = self.buffers(2 * MIB, 2 * MIB, resource=resource)
        plain, = self.buffers(64)
        for act in (utils.prefetch_batch, utils.discard_prefetch_batch, lambda s, b, _: utils.discard_batch(s, b)):
            for buffers, error, word in ((first, TypeError, "buffers"), ([first, plain], ValueError, "managed"),
                                         ([first, 5], TypeError, "buffers"), (5, TypeError, "")):
                with self.subTest(word=word), self.assertRaisesRegex(error, word):
                    act(self.stream, buffers, 0)
            with self.assertRaisesRegex(TypeError, "legacy"):
                act(cc.LEGACY_DEFAULT_STREAM, [first, second], 0)
        for locations, error in (([0], ValueError), ("x", TypeError), (None, TypeError), (-1, ValueError),
                                 ([0, "y"], TypeError)):
            for act in (utils.prefetch_batch, utils.discard_prefetch_batch):
                with self.subTest(locations=locations), self.assertRaises(error):
                    act(self.stream, [first, second], locations)
        self.assertIsNone(first.last_prefetch_location)


if __name__ == "__main__":
    suite.main()
