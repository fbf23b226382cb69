#!/usr/bin/env python3
"""What prove.py says of functions that are listed as refused and succeed, and how it reads a test."""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import prove  # noqa: E402

REFUSED = {"cuLaunchKernel", "cuLaunchGrid"}
OF_CAPTURES = {"cuLaunchKernel"}
CASES = [
    ("none that succeeds is no complaint", {"cuMemAlloc_v2"}, []),
    ("a launch outside of captures is one", {"cuLaunchKernel", "cuMemAlloc_v2"}, ["cuLaunchKernel"]),
    ("a launch that a capture may have taken is none",
     {"cuLaunchKernel", "cuStreamBeginCapture_v2_ptsz"}, []),
    ("what captures do not take is one with them, too",
     {"cuLaunchGrid", "cuStreamBeginCapture_v2"}, ["cuLaunchGrid"]),
]


def main():
    results = []
    for name, called, wanted in CASES:
        test = prove.Test(prove.Proof(False, "program", "test"), called, 1.0)
        results.append((prove.wrong_successes(test, REFUSED, OF_CAPTURES) == wanted, name))
    # As seen where standard output is a file, and the teardown's message comes in between.
    torn = "test.c:68: error: Failure!Test teardown failed[  ERROR   ] shown\n"
    results.append((prove.FAILED.findall(torn) == ["shown"], "a failure is read behind other words"))
    listed = prove.captured()
    results.append(({"cuLaunchKernel", "cuLaunchKernelEx_ptsz"} <= listed, "launches are listed"))
    print(f"1..{len(results)}")
    for number, (good, name) in enumerate(results, 1):
        print(f"{'ok' if good else 'not ok'} {number} - {name}")
    return 0 if all(good for good, _ in results) else 1


if __name__ == "__main__":
    sys.exit(main())
