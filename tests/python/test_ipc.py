#!/usr/bin/env python3
"""Memory between processes: pools by handle, UUID and registry, buffers by descriptor, and multiprocessing."""
import errno
import gc
import multiprocessing
import os
import pickle
import sys
import unittest
import uuid
from multiprocessing import resource_sharer

import suite

import gpumem as cc

MIB = 1 << 20
SECONDS = 100
KINDS = ("device", "pinned", "virtual")


def resource_of(kind):
    return {"device": lambda: cc.DeviceMemoryResource(0, {"ipc_enabled": True}),
            "pinned": lambda: cc.PinnedMemoryResource({"ipc_enabled": True}),
            "virtual": lambda: cc.VirtualMemoryResource(0)}[kind]()


def received(channel):
    return channel.get(timeout=SECONDS) if hasattr(channel, "get") else channel.recv()


def end_for_good(*_):
    os._exit(9)  # a Buffer that was not closed, or another thing that is only warned of


def use_what_comes(channel, buffers, answers):
    """In another process: reads what the owner wrote, writes, closes."""
    sys.unraisablehook = end_for_good
    buffers = buffers or received(channel)
    for value, buffer in enumerate(buffers):
        assert buffer.is_mapped and buffer.read(0, 2) == bytes([value, value]), (value, buffer.read(0, 2))
        buffer.fill(100 + value)
        buffer.read(0, 1)
    pools = [each.memory_resource for each in buffers]
    pools = [pool for pool in pools if pool is not None]
    assert pools[0] is pools[-1] or len({id(pool) for pool in pools}) == 2, pools
    for buffer in buffers:
        buffer.close()
    answers.send(len(buffers))
    answers.close()


def offer(channel, answers):
    """In another process, which owns: sends buffers and waits until they are done with."""
    sys.unraisablehook = end_for_good
    buffers = [resource_of(kind).allocate(2 * MIB) for kind in KINDS]
    for buffer in buffers:
        buffer.fill(7)
        buffer.read(0, 1)
    channel.send(buffers)
    answers.recv()
    assert [each.read(0, 1) for each in buffers] == [b"\x08"] * 3
    for buffer in buffers:
        buffer.close()


def record_event(descriptor, answers):
    sys.unraisablehook = end_for_good
    event = cc.Event.from_ipc_descriptor(descriptor)
    stream = cc.Device(0).create_stream()
    stream.record(event)
    event.sync()
    answers.send(event.is_done)
    event.close()
    stream.close()


class Processes(unittest.TestCase):
    def setUp(self):
        self.addCleanup(resource_sharer.stop)
        self.addCleanup(gc.collect)

    def started(self, method, target, *arguments):
        process = multiprocessing.get_context(method).Process(target=target, args=arguments)
        process.start()
        return process

    def ended(self, process):
        process.join(SECONDS)
        code = process.exitcode
        process.close()
        self.assertEqual(code, 0)

    def owned(self):
        """Five buffers, two each of a pool for devices and one for the CPU, and one of virtual memory."""
        pools = {kind: resource_of(kind) for kind in KINDS}
        buffers = [pools[kind].allocate(2 * MIB) for kind in ("device", "pinned", "virtual", "pinned", "device")]
        for value, buffer in enumerate(buffers):
            self.addCleanup(buffer.close)
            buffer.fill(value)
            buffer.read(0, 1)  # another process's streams are not ordered after ours
        return buffers

    def check(self, method, way):
        context, buffers = multiprocessing.get_context(method), self.owned()
        answer, answers = context.Pipe(duplex=False)
        queue = context.Queue() if way == "queue" else None
        near, far = context.Pipe() if way == "pipe" else (None, None)
        process = self.started(method, use_what_comes, queue or far, buffers if way == "argument" else None, answers)
        (queue.put if queue else near.send if near else len)(buffers)
        self.assertTrue(answer.poll(SECONDS))
        self.assertEqual(answer.recv(), 5)
        self.ended(process)
        for value, buffer in enumerate(buffers):
            self.assertEqual(buffer.read(0, 2), bytes([100 + value] * 2))
            buffer.close()
        if queue:
            queue.close()
            queue.join_thread()
        for end in (answer, answers, near, far):
            if end:
                end.close()

    def test_buffers_go_to_a_spawned_process_as_argument(self):
        self.check("spawn", "argument")

    def test_buffers_go_to_a_spawned_process_through_a_queue(self):
        self.check("spawn", "queue")

    def test_buffers_go_to_a_spawned_process_through_a_pipe(self):
        self.check("spawn", "pipe")

    def test_buffers_go_to_a_process_of_the_forkserver_in_each_way(self):
        for way in ("argument", "queue", "pipe"):
            with self.subTest(way=way):
                self.check("forkserver", way)

    def test_buffers_come_from_a_child_and_a_pool_comes_once(self):
        context = multiprocessing.get_context("spawn")
        near, far = context.Pipe()
        answers, answer = context.Pipe(duplex=False)
        process = self.started("spawn", offer, far, answers)
        self.assertTrue(near.poll(SECONDS))
        buffers = near.recv()
        for buffer in buffers:
            self.assertEqual(buffer.read(0, 1), b"\x07")
            buffer.fill(8)
            buffer.read(0, 1)
        self.assertEqual([buffer.is_mapped for buffer in buffers], [True] * 3)
        self.assertIsNone(buffers[2].memory_resource)
        self.assertIs(cc.DeviceMemoryResource.from_registry(buffers[0].memory_resource.uuid),
                      buffers[0].memory_resource)
        for buffer in buffers:
            buffer.close()
        answer.send("done")
        self.ended(process)
        for end in (near, far, answers, answer):
            end.close()

    def test_an_event_is_recorded_by_another_process(self):
        context = multiprocessing.get_context("spawn")
        answers, answer = context.Pipe(duplex=False)
        event = cc.Device(0).create_event({"ipc_enabled": True})
        process = self.started("spawn", record_event, event.ipc_descriptor, answer)
        self.assertTrue(answers.poll(SECONDS))
        self.assertTrue(answers.recv())
        self.ended(process)
        self.assertTrue(event.is_done)
        event.close()
        answers.close()
        answer.close()

    def test_a_handle_and_a_descriptor_are_pickled_by_themselves(self):
        near, far = multiprocessing.Pipe()
        for kind in ("device", "pinned"):
            pool = resource_of(kind)
            with pool.allocate(4096) as buffer:
                near.send((pool.allocation_handle, buffer.ipc_descriptor))
                handle, descriptor = far.recv()
                self.assertEqual((handle.uuid, descriptor.size), (pool.uuid, 4096))
                self.assertNotEqual(int(handle), int(pool.allocation_handle))
                where = (0,) if kind == "device" else ()
                mapped = type(pool).from_allocation_handle(*where, handle)
                handle.close()
                with cc.Buffer.from_ipc_descriptor(mapped, descriptor, stream=cc.NO_STREAM) as other:
                    self.assertEqual((other.size, other.memory_resource), (4096, mapped))
        near.close()
        far.close()


class Refusals(unittest.TestCase):
    """In one process, which maps its own pools."""

    def setUp(self):
        self.pool = cc.DeviceMemoryResource(0, {"ipc_enabled": True})
        self.mapped = cc.DeviceMemoryResource.from_allocation_handle(0, self.pool.allocation_handle)
        self.buffer = self.pool.allocate(4096)
        self.descriptor = self.buffer.ipc_descriptor
        self.addCleanup(self.buffer.close)

    def refused(self, error, word, act, *arguments, **named):
        with self.assertRaisesRegex(error, word):
            act(*arguments, **named)

    def import_from(self, mr, descriptor, **named):
        cc.Buffer.from_ipc_descriptor(mr, descriptor, **named).close()

    def made(self, of, **changes):
        given = {"reserved": of._payload, "size": of.size, "device": of._device,
                 "files": [os.dup(each) for each in of._open_files()]} | changes
        return cc.IPCBufferDescriptor._init(**given)

    def test_what_was_not_made_for_other_processes_says_so(self):
        for pool in (cc.DeviceMemoryResource(0), cc.DeviceMemoryResource(0, {}), cc.PinnedMemoryResource({})):
            with pool.allocate(4096) as buffer:
                self.assertEqual((pool.is_ipc_enabled, pool.is_mapped, buffer.is_mapped), (False, False, False))
                for act in (lambda: pool.allocation_handle, pool.get_allocation_handle, lambda: buffer.ipc_descriptor,
                            lambda: pool.register(uuid.uuid4()), lambda: pickle.dumps(pool),
                            lambda: pickle.dumps(buffer), lambda: self.import_from(pool, self.descriptor)):
                    self.refused(RuntimeError, "not made|without ipc|with ipc", act)
        self.refused(RuntimeError, "ipc_enabled", lambda: cc.Device(0).create_event().ipc_descriptor)
        with cc.LegacyPinnedMemoryResource().allocate(64) as buffer:
            self.refused(RuntimeError, "cannot be exported", lambda: buffer.ipc_descriptor)
        for kind in (cc.IPCBufferDescriptor, cc.IPCAllocationHandle, cc.IPCEventDescriptor):
            self.refused(RuntimeError, "not made by calling", kind)

    def test_the_handle_is_the_pools_and_closed_with_it(self):
        pool = resource_of("pinned")
        handle = pool.allocation_handle
        self.assertIs(pool.get_allocation_handle(), handle)
        self.assertEqual((handle.uuid, int(handle)), (pool.uuid, handle.handle))
        self.assertGreaterEqual(pool.numa_id, 0)
        mapped = cc.PinnedMemoryResource.from_allocation_handle(int(handle))
        self.assertEqual((mapped.is_mapped, mapped.is_handle_owned, mapped.uuid, mapped.device_id),
                         (True, True, None, -1))
        self.assertIs(mapped.register(pool.uuid), mapped)
        self.assertEqual(mapped.uuid, pool.uuid)
        self.assertIs(cc.PinnedMemoryResource.from_registry(pool.uuid), mapped)
        self.assertIs(cc.PinnedMemoryResource.from_allocation_handle(handle), mapped)
        self.assertIs(pickle.loads(pickle.dumps(mapped)), mapped)
        pool.close()
        self.assertTrue(handle.is_closed)
        self.refused(RuntimeError, "closed", lambda: pool.allocation_handle)
        self.refused(RuntimeError, "closed", pickle.dumps, pool)

    def test_handles_that_are_none_are_refused_by_name(self):
        handle = self.pool.allocation_handle
        handle.close()
        for given, error, word in ((-1, ValueError, "-1 is not"), (True, TypeError, "bool"), (None, TypeError, ""),
                                   ("5", TypeError, ""), (handle, ValueError, "closed"),
                                   (99999, cc.SystemCallError, "99999")):
            with self.subTest(given=given):
                self.refused(error, word, cc.DeviceMemoryResource.from_allocation_handle, 0, given)
                if given is not handle:
                    self.refused(error, word, cc.PinnedMemoryResource.from_allocation_handle, given)
        try:
            cc.PinnedMemoryResource.from_allocation_handle(99999)
        except OSError as failed:
            self.assertEqual(failed.errno, errno.EBADF)
        self.refused(ValueError, "99", cc.DeviceMemoryResource.from_allocation_handle, 99,
                     self.pool.allocation_handle)
        self.assertFalse(self.pool.allocation_handle.is_closed)

    def test_the_registry_has_open_pools_under_their_own_uuid(self):
        mine, kind = self.pool.uuid, cc.DeviceMemoryResource
        self.assertIs(kind.from_registry(mine), self.mapped)
        self.assertIs(self.pool.register(mine), self.mapped)
        self.refused(ValueError, "the pool's own is", self.mapped.register, uuid.uuid4())
        self.refused(RuntimeError, "registered", kind.from_registry, uuid.uuid4())
        self.refused(TypeError, "Device", cc.PinnedMemoryResource.from_registry, mine)
        for given, error in (("x", TypeError), (None, TypeError), (uuid.UUID(int=0), ValueError)):
            self.refused(error, "uuid", kind.from_registry, given)
            self.refused(error, "uuid", self.mapped.register, given)
        self.mapped.close()
        self.refused(RuntimeError, "registered", kind.from_registry, mine)
        self.assertIs(self.pool.register(mine), self.pool)

    def test_a_mapped_pool_cannot_allocate_or_be_sent_on(self):
        self.refused(TypeError, "mapped", self.mapped.allocate, 64)
        self.refused(RuntimeError, "owner", lambda: self.mapped.allocation_handle)
        with cc.Buffer.from_ipc_descriptor(self.mapped, self.descriptor) as buffer:
            self.assertEqual((buffer.is_mapped, buffer.memory_resource, buffer.device_id), (True, self.mapped, 0))
            self.refused(TypeError, "mapped", buffer.copy_to)
            self.refused(RuntimeError, "owner", lambda: buffer.ipc_descriptor)
            self.refused(RuntimeError, "owner", pickle.dumps, buffer)
        self.assertFalse(buffer.is_mapped)
        self.refused(RuntimeError, "closed", lambda: buffer.ipc_descriptor)
        self.refused(RuntimeError, "closed", pickle.dumps, buffer)

    def test_the_drivers_bytes_alone_are_a_descriptor_too(self):
        with cc.Buffer.from_ipc_descriptor(self.mapped, self.made(self.descriptor,
                                                                  reserved=self.descriptor._payload[:64])) as buffer:
            self.assertEqual(buffer.size, 4096)

    def test_descriptors_that_are_wrong_are_refused(self):
        second = cc.DeviceMemoryResource(0, {"ipc_enabled": True})
        with second.allocate(64) as other:
            rows = [(self.mapped, other.ipc_descriptor, cc.DataError, "another pool"),
                    (self.mapped, self.made(self.descriptor, reserved=self.descriptor._payload[:10]), ValueError,
                     "too short"),
                    (self.mapped, self.made(self.descriptor, size=1 << 40), ValueError, "received memory has 4096"),
                    (self.mapped, self.made(self.descriptor, size=0), ValueError, "0 bytes"),
                    (self.mapped, self.made(self.descriptor, size=-1), ValueError, "-1 bytes"),
                    (self.mapped, "descriptor", TypeError, "ipc_descriptor"),
                    (self.pool, self.descriptor, RuntimeError, "another process"),
                    (cc.VirtualMemoryResource(0), self.descriptor, TypeError, "mr"),
                    (None, self.descriptor, TypeError, "mr")]
            closed = self.made(self.descriptor)
            closed.close()
            rows.append((self.mapped, closed, ValueError, "closed"))
            for mr, descriptor, error, word in rows:
                with self.subTest(descriptor=descriptor, word=word):
                    self.refused(error, word, self.import_from, mr, descriptor)
        self.refused(TypeError, "stream", self.import_from, self.mapped, self.descriptor, stream="s")
        self.import_from(self.mapped, self.descriptor)
        self.mapped.close()
        self.refused(RuntimeError, "closed", self.import_from, self.mapped, self.descriptor)

    def test_descriptors_of_virtual_memory_that_are_wrong_are_refused(self):
        with cc.VirtualMemoryResource(0).allocate(2 * MIB) as buffer:
            good = buffer.ipc_descriptor
            rows = [({"reserved": good._payload[:-3]}, cc.DataError, "disagree"),
                    ({"reserved": b""}, cc.DataError, ""),
                    ({"files": []}, cc.DataError, "0 are given"),
                    ({"size": 2 * MIB + 5}, cc.DataError, "were said"),
                    ({"size": 2 * MIB - 5}, cc.DataError, "offers more"),
                    ({"device": bytes(16)}, cc.NoDeviceError, "does not see")]
            for changes, error, word in rows:
                with self.subTest(changes=changes):
                    self.refused(error, word, self.import_from, None, self.made(good, **changes))
            self.refused(TypeError, "mr", self.import_from, 5, good)
            for mr in (None, cc.Device(0), buffer.memory_resource):
                self.import_from(mr, good)
            good.close()
            self.refused(ValueError, "closed", self.import_from, None, good)

    def test_a_descriptor_of_virtual_memory_keeps_it_but_binds_nothing(self):
        with cc.VirtualMemoryResource(0).allocate(4 * MIB) as buffer:
            buffer.fill(5)
            descriptor = buffer.ipc_descriptor
            buffer.shrink(2 * MIB)
        with cc.Buffer.from_ipc_descriptor(None, descriptor) as other:
            self.assertEqual((other.size, other.read(0, 1), other.is_mapped), (4 * MIB, b"\5", True))
        self.assertFalse(other.is_mapped)

    def test_what_a_peer_says_is_checked_before_the_driver_sees_it(self):
        program = """
import sys
import gpumem as cc
pool = cc.DeviceMemoryResource(0, {"ipc_enabled": True})
mapped = cc.DeviceMemoryResource.from_allocation_handle(0, pool.allocation_handle)
second = cc.DeviceMemoryResource(0, {"ipc_enabled": True})
with pool.allocate(64) as buffer, second.allocate(64) as other, cc.VirtualMemoryResource(0).allocate(64) as virtual:
    good, far = buffer.ipc_descriptor, virtual.ipc_descriptor
    for mr, wrong in ((mapped, other.ipc_descriptor), (mapped, type(good)._init(good._payload[:10], 64)),
                      (mapped, type(good)._init(good._payload, 0)),
                      (None, type(far)._init(far._payload, far.size, [], far._device)),
                      (None, type(far)._init(far._payload[1:], far.size, [], far._device))):
        try:
            cc.Buffer.from_ipc_descriptor(mr, wrong)
        except RuntimeError as error:
            print(type(error).__name__)
        except ValueError as error:
            print("ValueError")
    print("right ones", file=sys.stderr, flush=True)
    for mr, right in ((mapped, good), (None, far)):
        cc.Buffer.from_ipc_descriptor(mr, right).close()
"""
        done = suite.child(program, SOFTGPU_TRACE="-")
        self.assertEqual(done.stdout.split(), ["DataError", "ValueError", "ValueError", "DataError", "DataError"],
                         done.stderr)
        self.assertEqual(done.returncode, 0, done.stderr)
        wrong, right = done.stderr.split("right ones")
        for call in ("cuMemPoolImportPointer", "cuMemImportFromShareableHandle"):
            self.assertEqual((call + "(" in wrong, call + "(" in right), (False, True), call)

    def test_no_descriptor_of_the_process_is_left_open(self):
        def cycle():
            pool = cc.DeviceMemoryResource(0, {"ipc_enabled": True})
            mapped = cc.DeviceMemoryResource.from_allocation_handle(0, pool.allocation_handle)
            with pool.allocate(64) as buffer, cc.VirtualMemoryResource(0).allocate(64) as virtual:
                self.import_from(mapped, buffer.ipc_descriptor)
                self.import_from(None, virtual.ipc_descriptor)
            mapped.close()
            pool.close()
            cc.Device(0).trim(wait=True)

        cycle()
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(3):
            cycle()
        self.assertEqual(len(os.listdir("/proc/self/fd")), before)


if __name__ == "__main__":
    suite.main()
