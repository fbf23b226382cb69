"""pycuda with kernels: SourceModule, which runs nvcc, as programs use it, and what pycuda generates by itself."""
import os
import sysconfig

os.environ["PATH"] += ":" + os.path.join(sysconfig.get_paths()["purelib"], "nvidia", "cu13", "bin")

import numpy
import pycuda
import pycuda.driver as cuda

cuda.init()
CONTEXT = cuda.Device(0).retain_primary_context()
CONTEXT.push()

from pycuda import gpuarray
from pycuda.compiler import SourceModule, compile as compile_source
from pycuda.elementwise import ElementwiseKernel
from pycuda.reduction import ReductionKernel
from pycuda.scan import ExclusiveScanKernel, InclusiveScanKernel

from tap import expect, expect_equal, main


def test_a_source_module_is_compiled_and_run():
    module = SourceModule("""
        __constant__ float factor;
        __global__ void scale(float *out, const float *in, int n) {
            int i = blockIdx.x * blockDim.x + threadIdx.x;
            if (i < n) out[i] = factor * in[i];
        }""", no_extern_c=False)
    address, _ = module.get_global("factor")
    cuda.memcpy_htod(address, numpy.float32(3))
    values = numpy.arange(1000, dtype=numpy.float32)
    out = numpy.zeros_like(values)
    module.get_function("scale")(cuda.Out(out), cuda.In(values), numpy.int32(1000), block=(128, 1, 1), grid=(8, 1))
    expect(numpy.array_equal(out, 3 * values))


def test_an_elementwise_kernel_is_correct():
    kernel = ElementwiseKernel("float a, float *x, float *y", "y[i] = a * x[i] + y[i]", "axpy")
    x, y = (gpuarray.to_gpu(numpy.arange(2000, dtype=numpy.float32) + k) for k in (0, 1))
    kernel(numpy.float32(2), x, y)
    expect(numpy.array_equal(y.get(), 3 * numpy.arange(2000, dtype=numpy.float32) + 1))


def test_a_reduction_agrees_with_numpy():
    kernel = ReductionKernel(numpy.int32, neutral="0", reduce_expr="a+b", map_expr="x[i]*x[i]", arguments="int *x")
    values = numpy.arange(500, dtype=numpy.int32)
    expect_equal(int(kernel(gpuarray.to_gpu(values)).get()), int((values * values).sum()))


def test_array_arithmetic_agrees_with_numpy():
    a = gpuarray.to_gpu(numpy.arange(100, dtype=numpy.float64))
    expect(numpy.array_equal((a * 2 + a).get(), 3 * numpy.arange(100)))


def test_tiled_matrix_multiplication_agrees_with_numpy():
    module = SourceModule(r"""
        #define T 16
        __global__ void product(const float *a, const float *b, float *c, int n) {
            __shared__ float left[T][T], right[T][T];
            int row = blockIdx.y * T + threadIdx.y, column = blockIdx.x * T + threadIdx.x;
            float sum = 0;
            for (int k = 0; k < n; k += T) {
                left[threadIdx.y][threadIdx.x] = a[row * n + k + threadIdx.x];
                right[threadIdx.y][threadIdx.x] = b[(k + threadIdx.y) * n + column];
                __syncthreads();
                for (int i = 0; i < T; i++) sum += left[threadIdx.y][i] * right[i][threadIdx.x];
                __syncthreads();
            }
            c[row * n + column] = sum;
        }""")
    a = (numpy.arange(64 * 64) % 11 - 5).reshape(64, 64).astype(numpy.float32)
    b = (numpy.arange(64 * 64) % 7 - 3).reshape(64, 64).astype(numpy.float32)
    c = numpy.zeros_like(a)
    module.get_function("product")(cuda.In(a), cuda.In(b), cuda.Out(c), numpy.int32(64), block=(16, 16, 1),
                                   grid=(4, 4))
    expect(numpy.array_equal(c, a @ b))


def test_prepared_calls_use_dynamic_shared_memory():
    module = SourceModule(r"""
        extern __shared__ int part[];
        __global__ void turn(int *a) {
            part[threadIdx.x] = a[threadIdx.x];
            __syncthreads();
            a[threadIdx.x] = part[blockDim.x - 1 - threadIdx.x];
        }""")
    kernel = module.get_function("turn")
    kernel.prepare("P")
    values = gpuarray.to_gpu(numpy.arange(100, dtype=numpy.int32))
    kernel.prepared_call((1, 1), (100, 1, 1), values.gpudata, shared_size=400)
    expect(numpy.array_equal(values.get(), numpy.arange(100)[::-1]))


def test_kernels_read_structs_with_pointers():
    module = SourceModule(r"""
        struct Row { int length; float *values; };
        __global__ void twice(Row *rows) {
            Row row = rows[blockIdx.x];
            for (int i = threadIdx.x; i < row.length; i += blockDim.x) row.values[i] *= 2;
        }""")
    rows = [gpuarray.to_gpu(numpy.arange(size, dtype=numpy.float32)) for size in (5, 70)]
    table = numpy.zeros(2, dtype=[("length", numpy.int32), ("pad", numpy.int32), ("values", numpy.uint64)])
    for entry, row in zip(table, rows):
        entry["length"], entry["values"] = row.size, int(row.gpudata)
    module.get_function("twice")(cuda.In(table), block=(32, 1, 1), grid=(2, 1))
    for row in rows:
        expect(numpy.array_equal(row.get(), 2 * numpy.arange(row.size)))


def test_kernels_of_streams_are_ordered_by_events():
    module = SourceModule(r"""
        __global__ void add(int *a, int value) { atomicAdd(&a[threadIdx.x], value); }""")
    add, memory = module.get_function("add"), gpuarray.zeros(64, numpy.int32)
    streams = [cuda.Stream() for _ in range(4)]
    for value, stream in enumerate(streams):
        add(memory.gpudata, numpy.int32(10 ** value), block=(64, 1, 1), stream=stream)
    for stream in streams:
        stream.synchronize()
    expect(numpy.array_equal(memory.get(), numpy.full(64, 1111)))


def test_templates_and_compiler_options_are_supported():
    module = SourceModule(r"""
        template <typename T, int F> __device__ T times(T x) { return F * x; }
        extern "C" __global__ void k(double *a) { a[threadIdx.x] = times<double, FACTOR>(a[threadIdx.x]); }""",
                          no_extern_c=True, options=["-DFACTOR=6", "-O3"])
    values = gpuarray.to_gpu(numpy.arange(32, dtype=numpy.float64))
    module.get_function("k")(values.gpudata, block=(32, 1, 1))
    expect(numpy.array_equal(values.get(), 6 * numpy.arange(32)))


def test_kernel_output_appears_at_synchronization():
    """The text appears at the next synchronization, on standard output."""
    module = SourceModule(r"""
        #include <cstdio>
        extern "C" __global__ void k() { if (threadIdx.x == 3) printf("# thread %d of %s, %.2f\n", 3, "k", 1.5); }""",
                          no_extern_c=True)
    CONTEXT.synchronize()
    reader, writer = os.pipe()
    kept = os.dup(1)
    os.dup2(writer, 1)
    try:
        module.get_function("k")(block=(32, 1, 1))
        CONTEXT.synchronize()
    finally:
        os.dup2(kept, 1)
        os.close(writer)
        os.close(kept)
    with os.fdopen(reader) as said:
        expect_equal(said.read(), "# thread 3 of k, 1.50\n")


def test_prefix_sums_agree_with_numpy():
    values = numpy.arange(1, 3001, dtype=numpy.int32) % 17
    for kind, wanted in ((InclusiveScanKernel, values.cumsum()), (ExclusiveScanKernel, values.cumsum() - values)):
        words = (numpy.int32, "a+b") if kind is InclusiveScanKernel else (numpy.int32, "a+b", 0)
        expect(numpy.array_equal(kind(*words)(gpuarray.to_gpu(values)).get(), wanted), kind.__name__)


def test_nvcc_returns_ptx():
    image = compile_source("__global__ void k(int *a) { *a = 1; }")
    expect(b".visible .entry" in image, image[:32])


if __name__ == "__main__":
    print(f"# pycuda {pycuda.VERSION_TEXT}")
    try:
        main(globals())
    finally:
        CONTEXT.pop()
