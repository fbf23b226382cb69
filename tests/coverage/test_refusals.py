#!/usr/bin/env python3
"""What prove.py says of functions that are listed as refused and succeed, and how it reads a test."""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import prove  # noqa: E402

REFUSED = {"cuGetExportTable", "cuDeviceGetLuid"}
CASES = [
    ("refused functions raise no complaint", {"cuMemAlloc_v2"}, []),
    ("a function that succeeds raises a complaint", {"cuDeviceGetLuid", "cuMemAlloc_v2"}, ["cuDeviceGetLuid"]),
]


def main():
    results = []
    for name, called, wanted in CASES:
        test = prove.Test(prove.Proof(False, "program", "test"), called, 1.0)
        results.append((prove.wrong_successes(test, REFUSED) == wanted, name))
    # As seen where standard output is a file, and the teardown's message comes in between.
    torn = "test.c:68: error: Failure!Test teardown failed[  ERROR   ] shown\n"
    results.append((prove.FAILED.findall(torn) == ["shown"], "a failure is recognized after other output"))
    print(f"1..{len(results)}")
    for number, (good, name) in enumerate(results, 1):
        print(f"{'ok' if good else 'not ok'} {number} - {name}")
    return 0 if all(good for good, _ in results) else 1


if __name__ == "__main__":
    sys.exit(main())
