#!/usr/bin/env python3
"""gpumem.softgpu.use: softgpu in the place of a process's driver. Each use is a process of its own; what
compilers and other packages see of it is in tests/clients/test_softgpu_use.py."""
import unittest

import suite

import gpumem as cc


class Use(unittest.TestCase):
    def lines(self, program, **more):
        """What a program prints that was not started for softgpu."""
        done = suite.child("import gpumem as cc\n" + program, flags=("-X", "dev", "-W", "error"), GPUMEM_DRIVER="",
                           SOFTGPU_FAIL_ON="", **more)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout.splitlines()

    def test_libraries_find_it_by_the_drivers_name(self):
        self.assertEqual(self.lines("""
import ctypes
cc.softgpu.use(profile="a100", memory=1 << 30, devices=2)
driver = ctypes.CDLL("libcuda.so.1")
name, count = ctypes.create_string_buffer(64), ctypes.c_int()
driver.cuInit(0)
driver.cuDeviceGetCount(ctypes.byref(count))
driver.cuDeviceGetName(name, 64, 0)
print(count.value, "A100" in name.value.decode())
library = cc.default_library()
print(library.driver_kind, len(library.devices), library.device(1).memory_info()[1] <= 1 << 30)
"""), ["2 True", "softgpu 2 True"])

    def test_processes_that_are_started_later_are_on_it_too(self):
        self.assertEqual(self.lines("""
import subprocess, sys
cc.softgpu.use(devices=3)
child = "import ctypes; n = ctypes.c_int(); d = ctypes.CDLL('libcuda.so.1'); d.cuInit(0); d.cuDeviceGetCount(ctypes.byref(n)); print(n.value)"
print(subprocess.run([sys.executable, "-c", child], capture_output=True, text=True, check=True).stdout.strip())
"""), ["3"])

    def test_again_it_does_nothing_and_other_settings_are_refused(self):
        self.assertEqual(self.lines("""
cc.softgpu.use(devices=2)
cc.softgpu.use(devices=2)
cc.softgpu.use()
try:
    cc.softgpu.use(devices=1)
except cc.BusyError as error:
    print("devices=2" in str(error))
"""), ["True"])

    def test_a_driver_that_is_open_is_named(self):
        for opened in ("import ctypes; ctypes.CDLL(folder + '/gpumem/softgpu/libcuda.so.1')",
                       "cc.open('softgpu').devices"):
            with self.subTest(opened=opened):
                self.assertEqual(self.lines(f"""
import os
folder = cc.get_library_dir()
kept = {opened.replace("import ctypes; ctypes", "__import__('ctypes')")}
before = dict(os.environ)
try:
    cc.softgpu.use()
except cc.BusyError as error:
    print("softgpu/lib" in str(error), "before anything else" in str(error), os.environ == before)
"""), ["True True True"])

    def test_wrong_settings_are_refused_and_change_nothing(self):
        self.assertEqual(self.lines("""
import os
before = dict(os.environ)
for more, kind in (({"profile": "moon"}, ValueError), ({"memory": "5X"}, ValueError), ({"devices": 99}, ValueError),
                   ({"devices": True}, TypeError), ({"memory": 1.5}, TypeError)):
    try:
        cc.softgpu.use(**more)
    except kind as error:
        print(next(iter(more)) in str(error).lower(), os.environ == before)
cc.softgpu.use()
"""), ["True True"] * 5)

    def test_below_gpumem_run_it_keeps_what_that_has_set(self):
        self.assertEqual(self.lines("""
cc.softgpu.use()
print(len(cc.default_library().devices))
""", SOFTGPU_DEVICES="4"), ["4"])

    def test_the_module_is_loaded_when_it_is_named(self):
        self.assertIn("softgpu", dir(cc))
        self.assertEqual(self.lines("import sys; print('gpumem.softgpu' in sys.modules)"), ["False"])


if __name__ == "__main__":
    suite.main()
