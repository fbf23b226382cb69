"""A program whose kernels are cached on disk: by numba, by cuda.core, by pycuda, whichever is installed.

caches.py [unchecked]  unchecked: nothing looks at what kernels computed
"""
import os
import sys
import sysconfig

os.environ["PATH"] += ":" + os.path.join(sysconfig.get_paths()["purelib"], "nvidia", "cu13", "bin")

try:
    import numpy
except ModuleNotFoundError:
    sys.exit(0)  # none of the packages is here, then

CHECKED = "unchecked" not in sys.argv[1:]


def expect(name, got, wanted):
    if CHECKED and not numpy.array_equal(got, wanted):
        sys.exit(f"{name} computed {got}, not {wanted}")
    print(f"{name} ran")


def run_numba():
    from numba import cuda

    @cuda.jit(cache=True)
    def scaled(values, factor):
        i = cuda.grid(1)
        if i < values.size:
            values[i] *= factor

    values = numpy.arange(64, dtype=numpy.float32)
    scaled[1, 64](values, 3.0)
    expect("numba", values, 3 * numpy.arange(64))


def run_core():
    from cuda.core import Device, LaunchConfig, LegacyPinnedMemoryResource, ObjectCode, Program, ProgramOptions, launch
    from cuda.core.utils import FileStreamProgramCache, make_program_cache_key
    device = Device()
    device.set_current()
    stream = device.create_stream()
    source = 'extern "C" __global__ void k(int *a) { a[threadIdx.x] = 2 * threadIdx.x; }'
    options = ProgramOptions(arch=f"sm_{device.arch}")
    key = make_program_cache_key(code=source, code_type="c++", options=options, target_type="cubin")
    with FileStreamProgramCache() as cache:
        if cache.get(key) is None:
            cache[key] = Program(source, "c++", options).compile("cubin")
        code = ObjectCode.from_cubin(bytes(cache[key]))
    buffer = LegacyPinnedMemoryResource().allocate(4 * 32)
    values = numpy.from_dlpack(buffer).view(numpy.int32)
    launch(stream, LaunchConfig(grid=1, block=32), code.get_kernel("k"), buffer)
    stream.sync()
    expect("cuda.core", values, 2 * numpy.arange(32))


def run_pycuda():
    import pycuda.autoinit  # noqa: F401
    from pycuda import driver
    from pycuda.compiler import SourceModule
    values = numpy.arange(32, dtype=numpy.int32)
    kernel = SourceModule("__global__ void k(int *a) { a[threadIdx.x] += 5; }").get_function("k")
    kernel(driver.InOut(values), block=(32, 1, 1))
    expect("pycuda", values, numpy.arange(32) + 5)


def main():
    for package, run in (("numba_cuda", run_numba), ("cuda.core", run_core), ("pycuda", run_pycuda)):
        try:
            __import__(package)
        except ModuleNotFoundError:
            continue
        run()


if __name__ == "__main__":
    main()
