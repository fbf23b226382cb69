#!/usr/bin/env python3
"""What prove.py says of functions that are listed as refused and succeed, how it reads a test's output, and in
which order it looks at tests."""
import concurrent.futures
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import search  # noqa: E402
import trial  # noqa: E402
from tap_report import run_all  # noqa: E402

REFUSED = {"cuGetExportTable", "cuDeviceGetLuid"}
SOURCES = {
    "test_other": "TEST(bytes_are_set) {\n    set();\n}\n",
    "test_memory": "static void set(void) {\n    cu.cuMemAlloc_v2(&p, 1);\n}\nTEST(memory_is_freed) {\n    set();\n}\n"
                   "TEST_WITH(bad_sizes, a, b) {\n    cu.cuMemAlloc_v2(&p, 0);\n}\n"
                   "TEST(memory_is_there) {\n    cu.cuMemAlloc_v2(&p, 2);\n}\n",
    "test_old": "TEST(old_memory) {\n    cu.cuMemAlloc(&p, 2);\n}\n",
}
TESTS = {"test_other": ["bytes_are_set"], "test_memory": ["memory_is_freed", "bad_sizes", "memory_is_there"],
         "test_old": ["old_memory"]}


class Planted:
    """In place of a runner: what its files' tests call."""

    def __init__(self, called):
        self.called = called

    def tests(self):
        return TESTS

    def traced(self, file, twin, test=None):
        return not (file == "test_old" and twin), self.called if file == "test_other" else set(), 1.0


def complaints(called):
    looked = search.Search(Planted(called))
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        return looked.successes(REFUSED, pool)


def order(symbol):
    looked = search.Search(Planted(set()))
    looked.sources = SOURCES
    return [test for _, _, test in looked.named(symbol)]


def main():
    fails = ["ptds test_old does not pass by itself"]
    # As seen where standard output is a file, and the teardown's message comes in between.
    torn = "test.c:68: error: Failure!Test teardown failed[  ERROR   ] shown\n"
    results = [
        ("refused functions raise no complaint", complaints({"cuMemAlloc_v2"}) == fails),
        ("a function that succeeds raises a complaint", sorted(complaints({"cuDeviceGetLuid", "cuMemAlloc_v2"})) == sorted(
            [f"cuDeviceGetLuid is listed as refused and succeeds in {of}test_other" for of in ("", "ptds ")]
            + fails)),
        ("a failure is recognized after other output", trial.FAILED.findall(torn) == ["shown"]),
        ("tests that name a function come first, those about refusals behind them",
         order("cuMemAlloc_v2") == ["memory_is_there", "bad_sizes", "memory_is_freed"]),
        ("an older version is another function", order("cuMemAlloc") == ["old_memory"]),
        ("a twin is written like what it is the twin of", order("cuMemAlloc_v2_ptds") == order("cuMemAlloc_v2")),
    ]
    return run_all((name, [] if good else ["it is not so"]) for name, good in results)


if __name__ == "__main__":
    sys.exit(main())
