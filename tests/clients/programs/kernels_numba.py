"""numba-cuda with kernels: what its compiler makes, through nvJitLink's LTO."""
import math

import numba_cuda
import numpy
from numba import cuda, float32, int32

from tap import expect, expect_equal, main


@cuda.jit
def square(a, b):
    i = cuda.grid(1)
    if i < a.size:
        b[i] = a[i] * a[i]


def test_an_elementwise_kernel_is_correct():
    a = numpy.arange(1000, dtype=numpy.float64)
    b = numpy.zeros_like(a)
    square[8, 128](a, b)
    expect(numpy.array_equal(b, a * a))
    wide = numpy.arange(100, dtype=numpy.int64)
    out = numpy.zeros_like(wide)
    square[1, 128](wide, out)  # another signature: compiled anew
    expect(numpy.array_equal(out, wide * wide))


@cuda.jit
def product(a, b, c):
    left, right = cuda.shared.array((8, 8), float32), cuda.shared.array((8, 8), float32)
    x, y = cuda.grid(2)
    i, j = cuda.threadIdx.x, cuda.threadIdx.y
    total = float32(0)
    for k in range(a.shape[1] // 8):
        left[i, j] = a[x, j + 8 * k]
        right[i, j] = b[i + 8 * k, y]
        cuda.syncthreads()
        for n in range(8):
            total += left[i, n] * right[n, j]
        cuda.syncthreads()
    c[x, y] = total


def test_tiled_matrix_multiplication_agrees_with_numpy():
    a = (numpy.arange(1024) % 7).reshape(32, 32).astype(numpy.float32)
    b = (numpy.arange(1024) % 5).reshape(32, 32).astype(numpy.float32)
    c = numpy.zeros_like(a)
    product[(4, 4), (8, 8)](a, b, c)
    expect(numpy.array_equal(c, a @ b))


@cuda.jit
def warps(out):
    lane = cuda.laneid
    value = cuda.shfl_xor_sync(0xffffffff, lane, 1)
    out[cuda.threadIdx.x] = value + 100 * cuda.popc(cuda.ballot_sync(0xffffffff, lane < 5))


def test_warp_operations_are_correct():
    out = numpy.zeros(64, numpy.int32)
    warps[1, 64](out)
    expect(numpy.array_equal(out, (numpy.arange(64) % 32 ^ 1) + 500))


@cuda.jit
def count(values, bins):
    i = cuda.grid(1)
    if i < values.size:
        cuda.atomic.add(bins, values[i], 1)


def test_atomic_counts_agree_with_numpy():
    values = (numpy.arange(5000) * 7 % 16).astype(numpy.int32)
    bins = numpy.zeros(16, numpy.int32)
    count[40, 128](values, bins)
    expect(numpy.array_equal(bins, numpy.bincount(values, minlength=16)))


@cuda.jit(device=True)
def fall(x, y):
    return math.hypot(x, y) + math.floor(x)


@cuda.jit
def calls(a, out):
    i = cuda.grid(1)
    part = cuda.local.array(4, int32)
    for k in range(4):
        part[k] = i * k
    out[i] = fall(a[i], 0.0) + part[i % 4]


def test_kernels_call_functions_and_use_local_memory():
    a = numpy.linspace(0, 9, 64)
    out = numpy.zeros_like(a)
    calls[2, 32](a, out)
    i = numpy.arange(64)
    expect(numpy.array_equal(out, a + numpy.floor(a) + i * (i % 4)))


def test_a_reduction_agrees_with_numpy():
    add = cuda.reduce(lambda a, b: a + b)
    values = numpy.arange(3000, dtype=numpy.float64)
    expect_equal(float(add(values)), float(values.sum()))


if __name__ == "__main__":
    print(f"# numba-cuda {numba_cuda.__version__}")
    main(globals())
