"""cuda.core with kernels: NVRTC's programs, linked texts, LTO, names of C++, launches, a cache on disk."""
import os
import pathlib

import cuda.core
import numpy
from cuda.core import (Device, LaunchConfig, LegacyPinnedMemoryResource, Linker, LinkerOptions, ObjectCode, Program,
                       ProgramOptions, launch)

from tap import expect, expect_equal, main, raises

DEVICE = Device()
DEVICE.set_current()
STREAM = DEVICE.create_stream()
ARCHITECTURE = f"sm_{DEVICE.arch}"

SAXPY = r"""
template <typename T> __global__ void saxpy(T a, const T *x, const T *y, T *out, size_t n) {
    for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        out[i] = a * x[i] + y[i];
}
"""


def pinned(count, dtype):
    """An array that kernels reach, and what keeps it."""
    buffer = LegacyPinnedMemoryResource().allocate(count * numpy.dtype(dtype).itemsize)
    return buffer, numpy.from_dlpack(buffer).view(dtype)


def compiled(source, kind="cubin", **options):
    return Program(source, "c++", ProgramOptions(std="c++17", arch=ARCHITECTURE, **options)).compile(kind)


def run(kernel, *arguments, grid=1, block=32, shared=0):
    launch(STREAM, LaunchConfig(grid=grid, block=block, shmem_size=shared), kernel, *arguments)
    STREAM.sync()


def test_template_kernels_are_compiled_and_run():
    program = Program(SAXPY, "c++", ProgramOptions(std="c++11", arch=ARCHITECTURE))
    code = program.compile("cubin", name_expressions=("saxpy<float>", "saxpy<double>"))
    for name, dtype in (("saxpy<float>", numpy.float32), ("saxpy<double>", numpy.float64)):
        count = 1000
        buffers = [pinned(count, dtype) for _ in range(3)]
        buffers[0][1][:] = numpy.arange(count) / 4
        buffers[1][1][:] = numpy.arange(count)[::-1]
        run(code.get_kernel(name), dtype(2), *(b[0] for b in buffers), numpy.uint64(count), grid=2, block=256)
        expect(numpy.array_equal(buffers[2][1], 2 * buffers[0][1] + buffers[1][1]), name)


def test_compiling_to_a_cubin_returns_ptx():
    expect(bytes(compiled('extern "C" __global__ void k() {}').code).lstrip(b"\0").find(b".visible .entry k") >= 0)


def test_ptx_is_loaded_unchanged():
    text = bytes(compiled('extern "C" __global__ void k(int *p) { *p = 5; }', "ptx").code)
    buffer, value = pinned(1, numpy.int32)
    run(ObjectCode.from_ptx(text).get_kernel("k"), buffer, block=1)
    expect_equal(int(value[0]), 5)


CALLER = 'extern "C" __device__ int f(int); extern "C" __global__ void k(int *a) { a[threadIdx.x] = f(threadIdx.x); }'
CALLED = 'extern "C" __device__ int f(int x) { return 3 * x; }'


def linked(kind, **options):
    parts = [compiled(text, kind, relocatable_device_code=True, **options) for text in (CALLER, CALLED)]
    code = Linker(*parts, options=LinkerOptions(arch=ARCHITECTURE, **({"link_time_optimization": True} if options else {}))
                  ).link("cubin")
    buffer, values = pinned(32, numpy.int32)
    run(code.get_kernel("k"), buffer)
    expect(numpy.array_equal(values, 3 * numpy.arange(32)))


def test_ptx_texts_are_linked():
    linked("ptx")


def test_lto_ir_is_linked():
    linked("ltoir", link_time_optimization=True)


def test_a_kernel_uses_dynamic_shared_memory():
    code = compiled('extern __shared__ int part[]; extern "C" __global__ void k(int *a) {'
                    "part[threadIdx.x * 1024] = threadIdx.x; __syncthreads(); a[threadIdx.x] ="
                    "part[(blockDim.x - 1 - threadIdx.x) * 1024]; }")
    kernel = code.get_kernel("k")
    buffer, values = pinned(12, numpy.int32)
    raises(cuda.core._utils.cuda_utils.CUDAError, run, kernel, buffer, block=16, shared=65536)  # not opted in
    run(kernel, buffer, block=12, shared=49152)
    expect(numpy.array_equal(values, numpy.arange(12)[::-1]))


def test_the_disk_cache_is_redirected():
    from cuda.core.utils import FileStreamProgramCache
    home = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
    ours = pathlib.Path(os.environ["GPUMEM_CACHE_OF_CUDA_PYTHON_HERE"])
    expect(ours != home / "cuda-python")
    with FileStreamProgramCache() as cache:
        cache[b"a key of gpumem's tests"] = compiled('extern "C" __global__ void k() {}')
        expect(cache.get(b"a key of gpumem's tests") is not None)
    expect(any(path.is_file() for path in ours.rglob("*")), f"nothing below {ours}")


if __name__ == "__main__":
    print(f"# cuda.core {cuda.core.__version__}")
    main(globals())
