"""pycuda with kernels: SourceModule, which runs nvcc, and what pycuda generates by itself."""
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
from pycuda.compiler import SourceModule
from pycuda.elementwise import ElementwiseKernel
from pycuda.reduction import ReductionKernel

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


if __name__ == "__main__":
    print(f"# pycuda {pycuda.VERSION_TEXT}")
    try:
        main(globals())
    finally:
        CONTEXT.pop()
