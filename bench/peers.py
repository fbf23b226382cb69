#!/usr/bin/env python3
"""The cost of an allocation and its free in other allocators, from their own language.

peers.py [--rounds N] [--only NAME,...]

PyTorch's caching allocator, CuPy's pools, cuda.core's and RMM's memory resources are measured in
Python, as their users call them, each in a process of its own: one thread, one stream, medians of
rounds. The first row is the bare driver from Python, by ctypes; the last column is the ratio to it
at 64 KiB. The C programs beside this one have the library's own figures and the bare driver's from
C. What is not installed says so. On a machine without a GPU:

    gpumem run --softgpu -- python3 peers.py
"""
import argparse
import ctypes
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

SIZES = (256, 4 << 10, 64 << 10, 1 << 20, 64 << 20)
COMPARED = 64 << 10
ROUND_SECONDS = 0.02


class Row:
    """`pair(size)` allocates and frees; sizes are those that make sense for it, `most` the pairs of
    a round."""

    def __init__(self, name, pair, sizes=SIZES, most=1000000):
        self.name, self.pair, self.sizes, self.most = name, pair, sizes, most


# ---- The peers: each returns its version and its rows --------------------------------------------

def bare():
    cuda = ctypes.CDLL("libcuda.so.1")

    def must(result):
        if result != 0:
            raise RuntimeError(f"the driver answered {result}")

    context, pool, stream = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    keep, version = ctypes.c_uint64(2**64 - 1), ctypes.c_int()
    release_threshold, non_blocking = 4, 1
    must(cuda.cuInit(0))
    must(cuda.cuDriverGetVersion(ctypes.byref(version)))
    must(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
    must(cuda.cuCtxSetCurrent(context))
    must(cuda.cuDeviceGetDefaultMemPool(ctypes.byref(pool), 0))
    must(cuda.cuMemPoolSetAttribute(pool, release_threshold, ctypes.byref(keep)))
    must(cuda.cuStreamCreate(ctypes.byref(stream), non_blocking))
    allocate, free = cuda.cuMemAllocFromPoolAsync, cuda.cuMemFreeAsync
    allocate.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_void_p]
    free.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    pointer = ctypes.c_void_p()
    made = ctypes.byref(pointer)

    def pair(size):
        if allocate(made, size, pool, stream) or free(pointer, stream):
            raise RuntimeError("the driver refused an allocation or a free")

    return str(version.value), [Row("cuMemAllocFromPoolAsync, by ctypes", pair)]


def bindings():
    from cuda.bindings import driver
    import cuda.bindings

    def must(answer):
        if answer[0] != driver.CUresult.CUDA_SUCCESS:
            raise RuntimeError(str(answer[0]))
        return answer[1] if len(answer) == 2 else None

    must(driver.cuInit(0))
    device = must(driver.cuDeviceGet(0))
    must(driver.cuCtxSetCurrent(must(driver.cuDevicePrimaryCtxRetain(device))))
    pool = must(driver.cuDeviceGetDefaultMemPool(device))
    keep = driver.cuuint64_t(2**64 - 1)
    attribute = driver.CUmemPool_attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
    must(driver.cuMemPoolSetAttribute(pool, attribute, keep))
    stream = must(driver.cuStreamCreate(1))

    def pair(size):
        refused, pointer = driver.cuMemAllocFromPoolAsync(size, pool, stream)
        freed, = driver.cuMemFreeAsync(pointer, stream)
        if refused or freed:
            raise RuntimeError("the driver refused an allocation or a free")

    return cuda.bindings.__version__, [Row("driver.cuMemAllocFromPoolAsync", pair)]


def core():
    import cuda.core
    from cuda.core import Device, DeviceMemoryResource, PinnedMemoryResource, VirtualMemoryResource
    device = Device(0)
    device.set_current()
    stream = device.create_stream()

    def rows_of(name, make, **more):
        try:
            resource = make()
            resource.allocate(1 << 20, stream=stream).close(stream)
        except Exception as why:  # what a driver lacks
            return [Row(f"{name}: {why}", None)]
        return [Row(name, lambda size: resource.allocate(size, stream=stream).close(stream),
                    **more)]

    rows = rows_of("DeviceMemoryResource", lambda: DeviceMemoryResource(device))
    rows += rows_of("PinnedMemoryResource", PinnedMemoryResource)
    # Version 1.2.2 retains the handle to free it and releases one reference of two: few pairs.
    rows += rows_of("VirtualMemoryResource", lambda: VirtualMemoryResource(device),
                    sizes=(1 << 20, 64 << 20), most=10)
    return cuda.core.__version__, rows


def torch():
    import torch as pytorch
    stream = pytorch.cuda.Stream()

    def raw(size):
        pointer = pytorch.cuda.caching_allocator_alloc(size, 0, stream)
        pytorch.cuda.caching_allocator_delete(pointer)

    def tensor(size):
        pytorch.empty(size, dtype=pytorch.uint8, device="cuda")

    def pinned(size):
        pytorch.empty(size, dtype=pytorch.uint8, pin_memory=True)

    pytorch.empty(1, device="cuda")
    return pytorch.__version__, [
        Row("caching_allocator_alloc and _delete", raw),
        Row("torch.empty on the device", tensor),
        Row("torch.empty, pin_memory", pinned),
    ]


def cupy():
    import cupy as package
    pool, ordered = package.cuda.MemoryPool(), package.cuda.MemoryAsyncPool()
    stream = package.cuda.Stream(non_blocking=True)
    stream.use()
    return package.__version__, [
        Row("MemoryPool.malloc", pool.malloc),
        Row("MemoryAsyncPool.malloc", ordered.malloc),
    ]


def rmm():
    import rmm as package
    stream = package.pylibrmm.stream.Stream()

    def pair_of(resource):
        def pair(size):
            resource.deallocate(resource.allocate(size, stream), size, stream)
        return pair

    pool = package.mr.PoolMemoryResource(package.mr.CudaMemoryResource(), initial_pool_size=1 << 30)
    return package.__version__, [
        Row("PoolMemoryResource", pair_of(pool)),
        Row("CudaAsyncMemoryResource", pair_of(package.mr.CudaAsyncMemoryResource())),
    ]


class Options(ctypes.Structure):
    """gpumem_buffer_options as in include/gpumem/buffer.h."""
    _fields_ = [("size", ctypes.c_size_t), ("stream", ctypes.c_void_p),
                ("alignment", ctypes.c_size_t), ("capacity", ctypes.c_size_t)]


def ours():
    above = Path(__file__).resolve().parents[1]  # of the bundle, or of the sources
    paths = [folder / "lib" / "libgpumem.so.0" for folder in (above, above / "build")]
    library = ctypes.CDLL(str(next((path for path in paths if path.exists()), paths[0])))

    def must(status):
        if status != 0:
            raise RuntimeError(f"gpumem answered {status}")

    opened, device, stream = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    pool, cache = ctypes.c_void_p(), ctypes.c_void_p()
    must(library.gpumem_open(None, ctypes.byref(opened)))
    must(library.gpumem_device_open(opened, 0, ctypes.byref(device)))
    must(library.gpumem_stream_create(device, None, ctypes.byref(stream)))
    must(library.gpumem_device_pool_resource_create(device, None, ctypes.byref(pool)))
    must(library.gpumem_caching_resource_create(pool, None, ctypes.byref(cache)))
    options = Options(ctypes.sizeof(Options), stream)
    buffer = ctypes.c_void_p()
    given, made = ctypes.byref(options), ctypes.byref(buffer)
    allocate, free = library.gpumem_buffer_allocate, library.gpumem_buffer_free
    free.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    allocate.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_void_p]

    def pair_of(resource):
        def pair(size):
            if allocate(resource, size, given, made) or free(buffer, None):
                raise RuntimeError("gpumem refused an allocation or a free")
        return pair

    version = library.gpumem_version()
    return f"{version // 10000}.{version // 100 % 100}.{version % 100}", [
        Row("caching resource, by ctypes", pair_of(cache)),
        Row("device pool, by ctypes", pair_of(pool)),
    ]


PEERS = {"driver": bare, "cuda.bindings": bindings, "cuda.core": core, "PyTorch": torch,
         "CuPy": cupy, "RMM": rmm, "gpumem": ours}


# ---- Measuring -----------------------------------------------------------------------------------

def time_pairs(pair, size, count):
    start = time.perf_counter()
    for _ in range(count):
        pair(size)
    return (time.perf_counter() - start) / count


def measure(row, size, rounds):
    """Microseconds a pair."""
    time_pairs(row.pair, size, 3)
    count = max(3, int(ROUND_SECONDS / max(time_pairs(row.pair, size, 5), 1e-7)))
    count = min(count, row.most)
    return 1e6 * statistics.median(time_pairs(row.pair, size, count) for _ in range(rounds))


def run_one(name, rounds):
    """Runs in a process of its own; what it measured, as JSON."""
    try:
        version, rows = PEERS[name]()
    except (ImportError, OSError, AttributeError) as why:
        print(json.dumps({"missing": f"{type(why).__name__}: {why}"}))
        return
    found = []
    for row in rows:
        times = {}
        for size in row.sizes if row.pair else ():
            try:
                times[size] = measure(row, size, rounds)
            except Exception as why:  # a refused size is not a time
                print(f"{name}, {row.name}, {size} bytes: {why}", file=sys.stderr)
        found.append({"name": row.name, "times": times})
    print(json.dumps({"version": version, "rows": found}))


def ask(name, rounds):
    command = [sys.executable, __file__, "--one", name, "--rounds", str(rounds)]
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=120, check=False)
    except subprocess.TimeoutExpired:
        return {"missing": "no answer within 120 s"}
    last = done.stdout.strip().splitlines()[-1:]
    if done.returncode != 0 or not last:
        reason = (done.stderr.strip().splitlines() or ["it printed nothing"])[-1]
        return {"missing": f"ended with status {done.returncode}: {reason}"}
    sys.stderr.write(done.stderr)
    return json.loads(last[0])


def title_of(size):
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB" if size >= 1024 \
        else f"{size} B"


def print_rows(name, found, baseline):
    if "missing" in found:
        print(f"{name}: not measured ({found['missing']})")
        return
    print(f"{name} {found['version']}, from Python")
    for row in found["rows"]:
        cells = "".join(f"{row['times'][str(size)]:10.3f}" if str(size) in row["times"]
                        else f"{'-':>10}" for size in SIZES)
        time_of = row["times"].get(str(COMPARED))
        ratio = f"{time_of / baseline:8.3f}" if time_of and baseline else f"{'-':>8}"
        print(f"  {row['name']:36.36}{cells}{ratio}")


def time_compared(found):
    """Of the first row; None if there is none."""
    return found["rows"][0]["times"].get(str(COMPARED)) if "rows" in found else None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", help="of " + ", ".join(PEERS))
    parser.add_argument("--one", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        run_one(arguments.one, arguments.rounds)
        return 0
    names = arguments.only.split(",") if arguments.only else list(PEERS)
    unknown = [name for name in names if name not in PEERS]
    if unknown:
        parser.error(f"{unknown[0]} is none of {', '.join(PEERS)}")
    print("allocate + free, one thread, one stream, microseconds a pair, medians of "
          f"{arguments.rounds} rounds\n{'':38}" + "".join(f"{title_of(s):>10}" for s in SIZES) +
          f"{'ratio':>8}")
    baseline = None
    for name in names:
        found = ask(name, arguments.rounds)
        baseline = time_compared(found) if name == "driver" else baseline
        print_rows(name, found, baseline)
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
