#!/usr/bin/env python3
"""What was lent holds, what is used stays, whatever the order of the end; threads, forks and the exit."""
import ctypes
import gc
import sys
import threading
import unittest

import suite

import gpumem as cc

MIB = 1 << 20


class Lending(unittest.TestCase):
    def setUp(self):
        self.pinned = cc.PinnedMemoryResource()
        self.virtual = cc.VirtualMemoryResource(0)

    def test_a_memoryview_holds_the_memory(self):
        host = cc.VirtualMemoryResource(0, {"location_type": "host"})
        buffer = host.allocate(2 * MIB)
        view = memoryview(buffer)
        self.assertEqual((view.format, view.nbytes, view.readonly), ("B", 2 * MIB, False))
        view[0] = 7
        buffer.close()
        self.assertEqual((view[0], host.stats().committed_bytes), (7, 2 * MIB))
        view.release()
        self.assertEqual(host.stats().committed_bytes, 0)

    def test_device_memory_has_no_memoryview(self):
        with cc.DeviceMemoryResource(0).allocate(64) as buffer, self.assertRaisesRegex(BufferError, "CPU"):
            memoryview(buffer)

    def test_held_memory_does_not_shrink(self):
        with self.virtual.allocate(4 * MIB) as buffer:
            with buffer.hold(), self.assertRaises(cc.BusyError):
                buffer.shrink(2 * MIB)
            hold = buffer.hold()
            with self.assertRaises(cc.BusyError):
                buffer.shrink(2 * MIB)
            hold.release()
            tensor = buffer.__dlpack__(stream=-1)
            with self.assertRaises(cc.BusyError):
                buffer.shrink(2 * MIB)
            del tensor
            buffer.shrink(2 * MIB)
            self.assertEqual(buffer.__cuda_array_interface__["data"], (buffer.handle, False))
            with self.assertRaises(cc.BusyError):
                buffer.shrink(MIB)

    def test_a_buffer_whose_address_was_given_away_is_freed_with_its_object(self):
        buffer = self.virtual.allocate(2 * MIB)
        buffer.__cuda_array_interface__
        buffer.close()
        self.assertEqual((buffer.is_closed, self.virtual.stats().committed_bytes), (True, 2 * MIB))
        del buffer
        self.assertEqual(self.virtual.stats().committed_bytes, 0)

    def test_dlpack_in_both_forms(self):
        name = ctypes.pythonapi.PyCapsule_GetName
        name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
        stream = cc.Device(0).create_stream()
        with self.virtual.allocate(2 * MIB) as buffer:
            self.assertEqual(buffer.__dlpack_device__(), (2, 0))
            for options, wanted in (({}, b"dltensor"), ({"max_version": (1, 0)}, b"dltensor_versioned"),
                                    ({"stream": stream}, b"dltensor"), ({"stream": -1, "dl_device": (2, 0)}, b"dltensor"),
                                    ({"copy": False, "max_version": (0, 8)}, b"dltensor")):
                self.assertEqual(name(buffer.__dlpack__(**options)), wanted)
            for options in ({"copy": True}, {"dl_device": (1, 0)}):
                with self.assertRaises(BufferError):
                    buffer.__dlpack__(**options)
        stream.close()

    def test_what_is_lent_keeps_a_closed_resource(self):
        pool = cc.PinnedMemoryResource({})
        buffer = pool.allocate(64)
        view = memoryview(buffer)
        buffer.close()
        pool.close()
        del pool, buffer
        gc.collect()
        view[1] = 2
        self.assertEqual(view[1], 2)


class Ends(unittest.TestCase):
    def test_every_order_of_the_end(self):
        for order in ("rbs", "rsb", "brs", "bsr", "srb", "sbr"):
            device = cc.Device(0)
            objects = {"s": device.create_stream(), "r": cc.CachingMemoryResource(cc.DeviceMemoryResource(0, {}))}
            objects["b"] = objects["r"].allocate(4096, stream=objects["s"])
            for name in order:
                objects.pop(name).close()

    def test_a_buffer_closed_beside_a_call_ends_when_that_returns(self):
        resource = cc.VirtualMemoryResource(0)
        stream = cc.Device(0).create_stream()
        for _ in range(20):
            buffer = resource.allocate(4 * MIB)
            start, failures = threading.Barrier(3), []

            def use():
                start.wait()
                try:
                    while True:
                        buffer.fill(1, stream=stream)
                        buffer.grow(8 * MIB)
                        buffer.shrink(4 * MIB)
                except RuntimeError as error:
                    if "closed" not in str(error):
                        failures.append(error)

            threads = [threading.Thread(target=use) for _ in range(2)]
            for thread in threads:
                thread.start()
            start.wait()
            buffer.close()
            for thread in threads:
                thread.join(60)
            self.assertEqual(failures, [])
        self.assertEqual(resource.stats().committed_bytes, 0)
        stream.close()

    def test_a_library_ends_with_what_was_made_of_it(self):
        library = cc.open("softgpu")
        pool = cc.DeviceMemoryResource(library.device(0))
        buffer = pool.allocate(64)
        library.close()
        buffer.fill(3)
        buffer.close()


class References(unittest.TestCase):
    def test_no_call_keeps_an_object(self):
        stream = cc.Device(0).create_stream()
        pool = cc.CachingMemoryResource(cc.DeviceMemoryResource(0))
        host = cc.PinnedMemoryResource()

        def act():
            with pool.allocate(4096, stream=stream) as buffer, pool.allocate(4096) as other, host.allocate(64) as pinned:
                buffer.copy_to(other, stream=stream)
                buffer.fill(1)
                buffer.view(0, 5).close()
                buffer.__dlpack__(max_version=(1, 0))
                with memoryview(pinned), buffer.hold():
                    pass
                for wrong in (lambda: pool.allocate(-1), lambda: buffer.fill("a"), lambda: buffer.grow(1 << 40),
                              lambda: pool.allocate(1, colour=2), lambda: buffer.copy_to(pinned)):
                    try:
                        wrong()
                    except Exception as error:  # pylint: disable=broad-except
                        error.__traceback__ = None
                stream.record().close()
                pool.stats()
                pool.properties  # pylint: disable=pointless-statement
                cc.Buffer.from_handle(buffer.handle, 4096, owner=buffer).close()

        for _ in range(20):
            act()
        gc.collect()
        before = sys.getallocatedblocks()
        for _ in range(300):
            act()
        gc.collect()
        self.assertLess(sys.getallocatedblocks() - before, 300, "one of each round is kept")
        stream.close()


class Exits(unittest.TestCase):
    def run_child(self, program, **more):
        # From 3.12 on Python itself warns of forks beside threads, which a driver has.
        done = suite.child("import gpumem as cc\n" + program, flags=("-W", "ignore:This process"), **more)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        return done.stdout

    def test_the_end_of_a_program_leaves_nothing_behind(self):
        self.run_child("p = cc.DeviceMemoryResource(0)\nb = p.allocate(64)\nc = cc.CachingMemoryResource(p)\n"
                       "d = c.allocate(64)\ns = cc.Device(0).create_stream()\ne = s.record()\nb.fill(1)\n"
                       "v = cc.VirtualMemoryResource(0).allocate(1)\nw = v.view(0, 5)\nm = b.copy_to()\n")

    def test_buffers_in_cycles_at_the_end(self):
        self.run_child("class A: pass\na = A(); a.a = a; a.b = cc.DeviceMemoryResource(0).allocate(64)\n")

    def test_daemon_threads_at_the_end(self):
        self.run_child("import threading\np = cc.CachingMemoryResource(cc.DeviceMemoryResource(0))\n"
                       "def work():\n    while True:\n        p.allocate(64).close()\n"
                       "for _ in range(3): threading.Thread(target=work, daemon=True).start()\n"
                       "import time; time.sleep(0.05)\n", SOFTGPU_FAIL_ON="")

    def test_a_forked_child_gets_an_error_and_no_wait(self):
        told = self.run_child(
            "import os\np = cc.DeviceMemoryResource(0)\nb = p.allocate(64)\npid = os.fork()\n"
            "if pid == 0:\n"
            "    try: p.allocate(64)\n    except cc.ForkedError: pass\n    else: os._exit(3)\n"
            "    b.close(); p.close(); os._exit(0)\n"
            "print(os.waitpid(pid, 0)[1])\nb.close()\n")
        self.assertEqual(told, "0\n")

    def test_a_buffer_that_was_not_closed_is_named_with_its_line(self):
        done = suite.child("import gpumem as cc\np = cc.VirtualMemoryResource(0)\nb = p.allocate(64)\ndel b\n",
                           flags=("-X", "dev"))
        self.assertRegex(done.stderr, r"ResourceWarning: a Buffer of 2097152 bytes, made at <string>:3, was not closed")

    def test_log_lines_go_to_logging(self):
        told = self.run_child(
            "import logging, sys\nlogging.basicConfig(stream=sys.stdout, level=logging.DEBUG)\n"
            "p = cc.LoggingMemoryResource(cc.DeviceMemoryResource(0))\np.allocate(64).close()\n", GPUMEM_LOG="info")
        self.assertIn("INFO:gpumem:", told)


if __name__ == "__main__":
    suite.main()
