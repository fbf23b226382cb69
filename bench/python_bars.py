#!/usr/bin/env python3
"""What the Python package costs beside cuda.core and beside C, in one process: batches in turn, the median of the
ratios of neighbours. Run by a Python that has cuda.core:

    python3 bench/python_bars.py [BUILD]

Batches are short and waited for: longer ones reach another regime of softgpu's queue.
"""
import ctypes
import statistics
import subprocess
import sys
import time
from pathlib import Path

BUILD = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).resolve().parents[1] / "build").resolve()
BATCH, ROUNDS = 400, 61
MIB = 1 << 20


def batch(function, count):
    begin = time.perf_counter()
    for _ in range(count):
        function()
    return (time.perf_counter() - begin) / count


def compare(name, ours, theirs, wait, bar, count=BATCH):
    """Prints ours over theirs, and our microseconds."""
    ratios, mine = [], []
    for _ in range(3):
        batch(ours, count), batch(theirs, count)
    for _ in range(ROUNDS):
        one = batch(ours, count)
        wait()
        other = batch(theirs, count)
        wait()
        ratios.append(one / other)
        mine.append(one)
    ratio = statistics.median(ratios)
    print(f"{name:44} {ratio:6.3f} x (bar {bar:g}), {statistics.median(mine) * 1e6:8.3f} us"
          f"{'' if ratio <= bar else '  MISSED'}", flush=True)


def import_cost(module):
    """CPU seconds of an import, beyond an empty interpreter."""
    def run(program):
        code = f"import time\n{program}\nprint(time.process_time())"
        path = f"import sys; sys.path.insert(0, {str(BUILD / 'python')!r})"
        return min(float(subprocess.run([sys.executable, "-c", f"{path}\n{code}"], capture_output=True, text=True,
                                        check=True).stdout) for _ in range(7))
    return run(f"import {module}") - run("pass")


def main():
    ctypes.CDLL(str(BUILD / "lib/gpumem/softgpu/libcuda.so.1"), mode=ctypes.RTLD_GLOBAL)
    sys.path.insert(0, str(BUILD / "python"))
    import cuda.core as core  # pylint: disable=import-outside-toplevel,import-error
    import gpumem  # pylint: disable=import-outside-toplevel
    library = gpumem.open(str(BUILD / "lib/gpumem/softgpu/libsoftgpu.so.0"))
    gpumem._library._default = library
    theirs = core.Device(0)
    theirs.set_current()
    their_stream, stream = theirs.create_stream(), library.device(0).create_stream()
    their_pool, pool = theirs.memory_resource, gpumem.DeviceMemoryResource(0)
    cache = gpumem.CachingMemoryResource(pool)
    core_virtual = core.VirtualMemoryResource(0)
    virtual = gpumem.VirtualMemoryResource(0)
    cached = gpumem.VirtualMemoryResource(0, {"cache_bytes": 64 * MIB})

    def wait():
        stream.sync()
        their_stream.sync()

    def with_core():
        their_pool.allocate(65536, stream=their_stream).close()

    compare("allocate + close 64 KiB, pool", lambda: pool.allocate(65536, stream=stream).close(), with_core, wait, 0.8)
    compare("allocate + close 64 KiB, cache", lambda: cache.allocate(65536, stream=stream).close(), with_core, wait, 0.3)
    compare("virtual 2 MiB", lambda: virtual.allocate(2 * MIB).close(),
            lambda: core_virtual.allocate(2 * MIB).close(), wait, 1.0, 40)
    compare("virtual 2 MiB, cached", lambda: cached.allocate(2 * MIB).close(),
            lambda: core_virtual.allocate(2 * MIB).close(), wait, 0.1, 40)
    ours, other = pool.allocate(64, stream=stream), their_pool.allocate(64, stream=their_stream)
    compare(".handle", lambda: ours.handle, lambda: other.handle, wait, 1.0)
    compare(".size", lambda: ours.size, lambda: other.size, wait, 1.0)
    ours.close()
    other.close()
    costs = import_cost("gpumem"), import_cost("cuda.core")
    print(f"{'import, CPU':44} {costs[0] / costs[1]:6.3f} x (bar 0.15), {costs[0] * 1e3:8.3f} ms")


if __name__ == "__main__":
    main()
