#!/usr/bin/env python3
"""merge.py and compare.py on recordings with planted faults; output in TAP."""

import contextlib
import io
import os
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import compare  # noqa: E402  pylint: disable=wrong-import-position
import lines  # noqa: E402  pylint: disable=wrong-import-position
import merge  # noqa: E402  pylint: disable=wrong-import-position
HEADER = ("# parity date 2026-01-01 kernel 6 x86_64 seed {seed}\n"
          "# program {program}\n"
          "# driver nvidia api 13000 file libcuda.so.1 init 0\n"
          "# device NVIDIA H200 count 1 ecc 1 imex no\n"
          "# module NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release\n")

RUN = """memory/a#000 cuMemAlloc_v2@3020 ok (&p, 4096) -> CUDA_SUCCESS {p=@p align=2M}
memory/a#001 cuMemGetAddressRange_v2@3020 ok (&base, &size, p) -> CUDA_SUCCESS {base=@p, size=4096}
memory/a#002 cuMemFree_v2@3020 ok (p) -> CUDA_SUCCESS
memory/a#003 cuMemFree_v2@3020 twice (p) -> CUDA_ERROR_INVALID_VALUE
memory/a#004 cuCtxSynchronize@2000 after () -> CUDA_SUCCESS
memory/b#000 cuCtxGetDevice@2000 ok (&n) -> CUDA_SUCCESS {n=0}
memory/b#001 cuCtxGetDevice@2000 ok (&n) -> CUDA_SUCCESS {n=0}
memory/b#002 cuCtxGetFlags@7000 of-device (n, &flags) -> CUDA_SUCCESS {flags=8}
memory/b#003 see content () -> 0x01
"""


class Tools(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()

    def tearDown(self):
        self.folder.cleanup()

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)

    def read(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return file.read()

    def run_tool(self, tool, *args):
        """As a program would: its exit status, and what it prints."""
        output = io.StringIO()
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
            try:
                status = tool.main(list(args)) or 0
            except SystemExit as end:
                status = end.code if isinstance(end.code, int) else 1
                print(end.code)
        return status, output.getvalue()

    def merge(self, *texts, extra=(), programs="1111111"):
        runs = [self.write(f"run{i}.txt", HEADER.format(seed=i, program=programs[i]) + text)
                for i, text in enumerate(texts)]
        return self.run_tool(merge, *runs, "-o", self.path("recording.txt"), *extra)

    def compare(self, recorded, actual, reasons="", extra=()):
        status, text = self.merge(recorded, recorded, recorded)
        self.assertEqual(status, 0, text)
        return self.run_tool(compare, self.path("recording.txt"),
                             self.write("actual.txt", actual),
                             "--reasons", self.write("reasons.txt", reasons), *extra)

    def last(self, text):
        return text.strip().splitlines()[-1]


class Merge(Tools):
    def test_equal_runs_are_scored(self):
        status, text = self.merge(RUN, RUN, RUN)
        self.assertEqual(status, 0, text)
        self.assertIn("9 scored, 0 unstable, 0 unconfirmed, 0 ended", text)
        self.assertNotIn("!", self.read("recording.txt").split("\n\n", 1)[1])

    def test_order_of_runs_does_not_matter(self):
        shuffled = "\n".join(sorted(RUN.splitlines(), reverse=True)) + "\n"
        # Two lines that look the same are numbered in their order; these two have the same answer.
        status, text = self.merge(RUN, shuffled, RUN)
        self.assertEqual(status, 0, text)
        self.assertIn("9 scored, 0 unstable", text)

    def test_one_other_answer_makes_a_line_unstable(self):
        status, text = self.merge(RUN, RUN, RUN.replace("size=4096", "size=8192"))
        self.assertEqual(status, 0, text)
        self.assertIn("8 scored, 1 unstable", text)
        self.assertIn("!unstable 001 cuMemGetAddressRange_v2", self.read("recording.txt"))
        self.assertIn("size=4096} | CUDA_SUCCESS {base=@p, size=4096} | CUDA_SUCCESS {base=@p, size=8192}",
                      self.read("recording.txt"))

    def test_a_line_that_one_run_lacks_is_unstable_and_kept(self):
        without = RUN.replace("memory/a#004 cuCtxSynchronize@2000 after () -> CUDA_SUCCESS\n", "")
        for runs in ((without, RUN, RUN), (RUN, RUN, without)):
            _, text = self.merge(*runs)
            self.assertIn("8 scored, 1 unstable", text)
            self.assertIn("(missing)", self.read("recording.txt"))

    def test_a_line_that_older_builds_lack_is_unconfirmed(self):
        old = RUN.replace("memory/a#004 cuCtxSynchronize@2000 after () -> CUDA_SUCCESS\n", "")
        _, text = self.merge(old, old, RUN, programs="112")
        self.assertIn("8 scored, 0 unstable, 1 unconfirmed", text)
        self.assertIn("!unconfirmed 004 cuCtxSynchronize", self.read("recording.txt"))
        _, text = self.merge(old, RUN, RUN, programs="122")
        self.assertIn("8 scored, 0 unstable, 1 unconfirmed", text)
        _, text = self.merge(old, RUN, RUN, RUN, programs="1222")
        self.assertIn("9 scored, 0 unstable, 0 unconfirmed", text)

    def test_a_line_that_a_run_of_the_same_build_lacks_is_unstable(self):
        without = RUN.replace("memory/a#004 cuCtxSynchronize@2000 after () -> CUDA_SUCCESS\n", "")
        _, text = self.merge(without, RUN, RUN, RUN, programs="1111")
        self.assertIn("8 scored, 1 unstable", text)

    def test_a_line_that_the_newest_build_lacks_is_left_out(self):
        young = RUN.replace("memory/a#004 cuCtxSynchronize@2000 after () -> CUDA_SUCCESS\n", "")
        _, text = self.merge(RUN, RUN, RUN, young, programs="1112")
        self.assertIn("8 scored, 0 unstable, 0 unconfirmed", text)
        self.assertNotIn("cuCtxSynchronize", self.read("recording.txt"))

    def test_a_run_of_some_scenarios_says_nothing_of_the_others(self):
        few = "".join(line for line in RUN.splitlines(True) if line.startswith("memory/b"))
        few = few.replace("memory/b#003 see content () -> 0x01\n", "")
        _, text = self.merge(RUN, RUN, RUN, few, few, few, programs="111222")
        self.assertIn("8 scored, 0 unstable, 0 unconfirmed", text)
        self.assertIn("cuCtxSynchronize", self.read("recording.txt"))
        self.assertNotIn("see content", self.read("recording.txt"))

    def test_another_answer_of_an_older_build_is_unstable(self):
        _, text = self.merge(RUN.replace("size=4096", "size=8192"), RUN, RUN, RUN, programs="1222")
        self.assertIn("8 scored, 1 unstable", text)

    def test_a_line_that_killed_its_process_is_marked(self):
        died = RUN.replace("twice (p) -> CUDA_ERROR_INVALID_VALUE", "twice (p) -> SIGNAL 11")
        _, text = self.merge(died, died, died)
        self.assertIn("8 scored, 0 unstable, 0 unconfirmed, 1 ended", text)
        self.assertIn("!ended 003 cuMemFree_v2@3020 twice (p) -> SIGNAL 11", self.read("recording.txt"))

    def test_a_run_cut_off_by_the_deadline_says_nothing_of_that_scenario(self):
        cut = RUN.split("memory/a#003")[0] + "memory/a -> TIMEOUT\n"
        cut += "".join(line for line in RUN.splitlines(True) if line.startswith("memory/b"))
        _, text = self.merge(RUN, RUN, cut, RUN)
        self.assertIn("9 scored, 0 unstable, 0 unconfirmed, 0 ended", text)
        _, text = self.merge(RUN, RUN, cut)
        self.assertRegex(text, "0 unstable, [1-9] unconfirmed, 0 ended")
        _, text = self.merge(cut, cut, cut)
        self.assertIn("0 unstable, 0 unconfirmed, 1 ended", text)

    def test_two_runs_are_too_few(self):
        status, text = self.merge(RUN, RUN)
        self.assertNotEqual(status, 0)
        self.assertIn("three runs are needed", text)
        self.assertFalse(os.path.exists(self.path("recording.txt")))
        status, text = self.merge(RUN, RUN, extra=("--few",))
        self.assertEqual(status, 0, text)

    def test_a_recording_reads_as_the_runs_it_came_from(self):
        status, text = self.compare(RUN, RUN)
        self.assertEqual(status, 0, text)
        self.assertEqual(self.last(text), "parity: 8 equal, 0 differing")

    def test_a_text_that_is_no_run_is_refused(self):
        status, text = self.merge("not a line\n", RUN, RUN)
        self.assertNotEqual(status, 0)
        self.assertIn("no answer in: not a line", text)


class Compare(Tools):
    def test_planted_difference_is_found_and_fails(self):
        status, text = self.compare(RUN, RUN.replace("-> CUDA_ERROR_INVALID_VALUE", "-> CUDA_SUCCESS"))
        self.assertEqual(status, 1)
        self.assertIn("recorded: CUDA_ERROR_INVALID_VALUE", text)
        self.assertIn("actual:   CUDA_SUCCESS", text)
        self.assertIn("no reason recorded", text)
        self.assertEqual(self.last(text), "parity: 7 equal, 1 differing")

    def test_a_reason_passes_and_takes_nothing_out_of_the_count(self):
        status, text = self.compare(RUN, RUN.replace("-> CUDA_ERROR_INVALID_VALUE", "-> CUDA_SUCCESS"),
                                    "# a comment => is none\ncuMemFree_v2@\\d+ twice => frees are forgiven\n")
        self.assertEqual(status, 0, text)
        self.assertIn("reason:   frees are forgiven", text)
        self.assertEqual(self.last(text), "parity: 7 equal, 1 differing")

    def test_a_reason_for_another_line_does_not_help(self):
        status, text = self.compare(RUN, RUN.replace("-> CUDA_ERROR_INVALID_VALUE", "-> CUDA_SUCCESS"),
                                    "cuMemFree_v2@\\d+ ok => something else\n")
        self.assertEqual(status, 1)
        self.assertIn("no longer needed: the reason cuMemFree_v2@\\d+ ok", text)

    def test_a_line_that_is_no_reason_is_refused(self):
        status, text = self.compare(RUN, RUN, "cuMemFree_v2 has no arrow\n")
        self.assertEqual(status, 1)
        self.assertIn("has a line without", text)

    def test_an_output_differs_where_the_result_is_equal(self):
        status, text = self.compare(RUN, RUN.replace("size=4096", "size=65536"))
        self.assertEqual(status, 1)
        self.assertEqual(self.last(text), "parity: 7 equal, 1 differing")

    def test_a_missing_line_differs(self):
        status, text = self.compare(RUN, RUN.replace("memory/b#003 see content () -> 0x01\n", ""))
        self.assertEqual(status, 1)
        self.assertIn("actual:   (missing)", text)
        self.assertEqual(self.last(text), "parity: 7 equal, 1 differing")

    def test_a_scenario_that_lacks_something_here_is_named_and_not_compared(self):
        others = "".join(line + "\n" for line in RUN.splitlines() if not line.startswith("memory/b#"))
        lacking = others + "memory/b#000 see absent () -> no toolkit\n"
        status, text = self.compare(RUN, lacking)
        self.assertEqual(status, 0, text)
        self.assertIn("not compared: memory/b: no toolkit\n", text)
        status, text = self.compare(lacking, lacking.replace("no toolkit", "another reason"))
        self.assertEqual(status, 1, text)

    def test_an_empty_run_differs_in_all(self):
        status, text = self.compare(RUN, "# nothing\n")
        self.assertEqual(status, 1)
        self.assertEqual(self.last(text), "parity: 0 equal, 8 differing")

    def test_lines_of_the_same_kind_are_one_point_and_all_must_agree(self):
        actual = RUN.replace("memory/b#001 cuCtxGetDevice@2000 ok (&n) -> CUDA_SUCCESS {n=0}",
                             "memory/b#001 cuCtxGetDevice@2000 ok (&n) -> CUDA_SUCCESS {n=1}")
        status, text = self.compare(RUN, actual, "cuCtxGetDevice => planted\n")
        self.assertEqual(status, 0, text)
        self.assertEqual(self.last(text), "parity: 7 equal, 1 differing")

    def test_use_of_a_differing_variable_follows(self):
        actual = RUN.replace("ok (&n) -> CUDA_SUCCESS {n=0}", "ok (&n) -> CUDA_SUCCESS {n=1}")
        actual = actual.replace("flags=8", "flags=9")
        status, text = self.compare(RUN, actual, "cuCtxGetDevice => planted\n", ("--follows",))
        self.assertEqual(status, 0, text)
        self.assertIn("follows (uses): memory/b cuCtxGetFlags", text)
        self.assertEqual(self.last(text), "parity: 6 equal, 2 differing")

    def test_setting_a_variable_anew_does_not_follow(self):
        """Both lines set n by themselves: the second needs a reason of its own."""
        actual = RUN.replace("#000 cuCtxGetDevice@2000 ok (&n) -> CUDA_SUCCESS {n=0}",
                             "#000 cuCtxGetDevice@2000 ok (&n) -> CUDA_ERROR_UNKNOWN {n=7}")
        actual = actual.replace("#001 cuCtxGetDevice@2000 ok (&n) -> CUDA_SUCCESS {n=0}",
                                "#001 cuCtxGetDevice@2000 ok (&n) -> CUDA_SUCCESS {n=5}")
        _, text = self.compare(RUN, actual, extra=("--follows",))
        self.assertNotIn("follows (uses): memory/b cuCtxGetDevice", text)
        self.assertEqual(text.count("no reason recorded"), 2)

    def test_a_variable_set_equally_again_is_clean(self):
        actual = RUN.replace("#000 cuCtxGetDevice@2000 ok (&n) -> CUDA_SUCCESS {n=0}",
                             "#000 cuCtxGetDevice@2000 ok (&n) -> CUDA_SUCCESS {n=7}")
        actual = actual.replace("flags=8", "flags=9")
        status, text = self.compare(RUN, actual, "cuCtxGetDevice => planted\n", ("--follows",))
        self.assertEqual(status, 1)
        self.assertNotIn("follows (uses): memory/b cuCtxGetFlags", text)

    def test_a_name_first_given_by_a_differing_line_follows(self):
        actual = RUN.replace("ok (&p, 4096) -> CUDA_SUCCESS {p=@p align=2M}",
                             "ok (&p, 4096) -> CUDA_SUCCESS {p=@other align=2M}")
        actual = actual.replace("base=@p", "base=@other")
        status, text = self.compare(RUN, actual, "cuMemAlloc_v2 => planted\n", ("--follows",))
        self.assertEqual(status, 0, text)
        self.assertIn("follows (", text)
        self.assertIn("cuMemGetAddressRange_v2", text)

    def test_lines_behind_an_early_end_follow_it(self):
        head = "".join(RUN.splitlines(keepends=True)[:2])
        died = head + "memory/a#002 cuMemFree_v2@3020 ok (p) -> SIGNAL 11\n" + \
            "".join(RUN.splitlines(keepends=True)[5:])
        status, text = self.compare(RUN, died, "cuMemFree_v2@\\d+ ok => it dies\n", ("--follows",))
        self.assertEqual(status, 0, text)
        self.assertIn("follows (ended): memory/a cuCtxSynchronize", text)
        self.assertEqual(self.last(text), "parity: 5 equal, 3 differing")

    def test_a_setup_that_fails_needs_a_reason(self):
        failed = "".join(RUN.splitlines(keepends=True)[5:]) + \
            "memory/a#000 see setup () -> SETUP_FAILED cuMemAlloc_v2 CUDA_ERROR_OUT_OF_MEMORY\n"
        status, text = self.compare(RUN, failed)
        self.assertEqual(status, 1)
        self.assertIn("SETUP_FAILED cuMemAlloc_v2", text)
        status, text = self.compare(RUN, failed, "SETUP_FAILED cuMemAlloc_v2 => too small\n")
        self.assertEqual(status, 0, text)
        self.assertEqual(self.last(text), "parity: 3 equal, 5 differing")

    def test_unstable_and_ended_lines_are_not_scored(self):
        died = RUN.replace("twice (p) -> CUDA_ERROR_INVALID_VALUE", "twice (p) -> SIGNAL 11")
        status, text = self.compare(died, RUN)
        self.assertEqual(status, 0, text)
        self.assertIn("1 recorded but not scored", text)
        self.assertEqual(self.last(text), "parity: 7 equal, 0 differing")

    def test_lines_that_the_recording_lacks_are_counted(self):
        status, text = self.compare(RUN, RUN + "memory/c#000 cuInit@2000 ok (0) -> CUDA_SUCCESS\n")
        self.assertEqual(status, 0, text)
        self.assertIn("1 not in the recording", text)

    def test_scenario_option_limits_both_sides(self):
        actual = RUN.replace("-> CUDA_ERROR_INVALID_VALUE", "-> CUDA_SUCCESS")
        status, text = self.compare(RUN, actual, extra=("--scenario", "memory/b"))
        self.assertEqual(status, 0, text)
        self.assertEqual(self.last(text), "parity: 3 equal, 0 differing")
        status, text = self.compare(RUN, actual, extra=("--scenario", "nothing"))
        self.assertNotEqual(status, 0)
        self.assertIn("no such scenario", text)

    def test_two_recordings_are_counted_together(self):
        status, _ = self.merge(RUN, RUN, RUN)
        self.assertEqual(status, 0)
        worse = RUN.replace("twice (p) -> CUDA_ERROR_INVALID_VALUE", "twice (p) -> CUDA_SUCCESS")
        same, other = self.write("same.txt", RUN), self.write("other.txt", worse)
        recording, reasons = self.path("recording.txt"), self.write("reasons.txt", "")
        status, text = self.run_tool(compare, recording, same, recording, same, "--reasons", reasons)
        self.assertEqual(status, 0, text)
        self.assertTrue(text.endswith("parity: 8 equal, 0 differing\n"), text)
        status, text = self.run_tool(compare, recording, same, recording, other, "--reasons", reasons)
        self.assertEqual(status, 1, text)
        self.assertTrue(text.endswith("parity: 7 equal, 1 differing\n"), text)
        self.assertIn("of it: 8 equal, 0 differing", text)
        status, text = self.run_tool(compare, recording, same, recording)
        self.assertEqual(status, 2, text)

    def test_a_packed_recording_reads_as_the_plain_one(self):
        runs = [self.write(f"run{i}.txt", HEADER.format(seed=i, program="1") + RUN) for i in range(3)]
        for name in ("plain.txt", "packed.txt.xz"):
            status, text = self.run_tool(merge, *runs, "-o", self.path(name))
            self.assertEqual(status, 0, text)
        plain, packed = lines.read(self.path("plain.txt")), lines.read(self.path("packed.txt.xz"))
        self.assertEqual(plain[0], packed[0])
        self.assertEqual([str(line) for line in plain[1]], [str(line) for line in packed[1]])
        self.assertEqual(len(packed[1]), 9)
        with open(self.path("packed.txt.xz"), "rb") as file:
            self.assertEqual(file.read(6), b"\xfd7zXZ\0")
        self.assertEqual([os.path.basename(path) for path in lines.recordings(self.folder.name)],
                         ["packed.txt.xz", "plain.txt", "run0.txt", "run1.txt", "run2.txt"])

    def test_a_recording_of_two_devices_says_so_in_its_name(self):
        header = HEADER.format(seed=1, program="1").splitlines()
        self.assertEqual(merge.name_of(header), "h200-580.159.04.txt.xz")
        header = [line.replace("count 1", "count 2") for line in header]
        self.assertEqual(merge.name_of(header), "h200x2-580.159.04.txt.xz")


class Real(unittest.TestCase):
    """The files of this folder."""

    def test_a_copy_that_kills_the_process_may_do_so_between_two_calls(self):
        reasons = compare.Reasons(os.path.join(HERE, "reasons.txt"))
        died = {name: lines.parse_line(f"{name} -> SIGNAL 11", None) for name in ("copy-batch/random-source", "copy/a")}
        self.assertIsNotNone(reasons.of(died["copy-batch/random-source"]))
        self.assertIsNone(reasons.of(died["copy/a"]))

    def test_every_reason_is_a_pattern_and_an_explanation(self):
        path = os.path.join(HERE, "reasons.txt")
        with open(path, encoding="utf-8") as file:
            wanted = [text for text in file if text.strip() and not text.startswith("#")]
        reasons = compare.Reasons(path).rows
        self.assertEqual(len(reasons), len(wanted))
        for pattern, reason in reasons:
            self.assertGreater(len(reason), 20, pattern.pattern)
            self.assertIsNone(pattern.search("x/y cuMemAlloc_v2@3020 ok (&p, 4096) -> CUDA_SUCCESS"),
                              f"{pattern.pattern} would explain everything")


def cases(suite):
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from cases(item)
        else:
            yield item


def main():
    tests = list(cases(unittest.defaultTestLoader.loadTestsFromModule(sys.modules[__name__])))
    print(f"1..{len(tests)}")
    failed = 0
    for number, test in enumerate(tests, 1):
        result = unittest.TestResult()
        test.run(result)
        name = test.id().partition(".")[2].replace("_", " ")
        print(f"{'ok' if result.wasSuccessful() else 'not ok'} {number} - {name}")
        failed += not result.wasSuccessful()
        for _, trace in result.failures + result.errors:
            for text in trace.splitlines():
                print(f"# {text}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
