"""cuda.core, numba and ctypes in a process that was started as any other, after gpumem.softgpu.use(). It is run
without `gpumem run`; what needs a process of its own has one."""
import subprocess
import sys
import textwrap

from tap import expect, expect_equal, main

FIRST = "import gpumem as cc\ncc.softgpu.use(memory='1G')\n"


def run(program):
    """The lines that it prints, under the checks of Python's own."""
    done = subprocess.run([sys.executable, "-X", "dev", "-c", FIRST + textwrap.dedent(program)], capture_output=True,
                          text=True, check=False)
    expect(done.returncode == 0, done.stdout + done.stderr)
    return done.stdout.split("\n")[:-1]


def test_numba_compiles_and_launches():
    expect_equal(run("""
        import warnings
        import numpy
        from numba import cuda
        warnings.simplefilter("ignore")
        @cuda.jit
        def double(a):
            i = cuda.grid(1)
            if i < a.size:
                a[i] *= 2
        a = cuda.to_device(numpy.arange(10, dtype='f4'))
        double[1, 32](a)
        print(a.copy_to_host().tolist() == [2 * n for n in range(10)], cuda.get_current_device().name)
    """), ["True NVIDIA H200"])


# PTX, machine code, and machine code that nvJitLink makes of two.
KERNELS = """
    import numpy
    from cuda.core import Device, LaunchConfig, Linker, LinkerOptions, Program, ProgramOptions, launch
    device = Device(0)
    device.set_current()
    stream, arch = device.create_stream(), f"sm_{device.arch}"
    source = 'extern "C" __global__ void fill(int *a, int n) { if (threadIdx.x < n) a[threadIdx.x] = 3 * threadIdx.x; }'
    def compiled(text, kind, **options):
        return Program(text, "c++", ProgramOptions(arch=arch, **options)).compile(kind)
    def works(code):
        buffer = device.allocate(256, stream=stream)
        launch(stream, LaunchConfig(grid=1, block=64), code.get_kernel("fill"), buffer, numpy.int32(64))
        stream.sync()
        with cc.Buffer.from_handle(int(buffer.handle), 256) as ours:
            print(numpy.frombuffer(ours.read(), "i4").tolist() == [3 * n for n in range(64)])
        buffer.close()
    works(compiled(source, "ptx"))
    works(compiled(source, "cubin"))
    helped = 'extern "C" __device__ int three(int n) { return 3 * n; }'
    caller = 'extern "C" __device__ int three(int n);' + source.replace("3 * threadIdx.x", "three(threadIdx.x)")
    parts = [compiled(text, "ptx", relocatable_device_code=True) for text in (helped, caller)]
    works(Linker(*parts, options=LinkerOptions(arch=arch)).link("cubin"))
"""


def test_nvrtc_and_nvjitlink_hand_their_ptx_over():
    expect_equal(run(KERNELS), ["True"] * 3)


def test_ctypes_and_the_bindings_of_the_runtime_get_softgpu():
    expect_equal(run("""
        import ctypes, os
        count = ctypes.c_int()
        libcuda = ctypes.CDLL("libcuda.so.1")
        print(libcuda.cuInit(0), libcuda.cuDeviceGetCount(ctypes.byref(count)), count.value)
        from cuda.bindings import runtime
        error, count = runtime.cudaGetDeviceCount()
        print(int(error), count, "libcudart.so.13" in open("/proc/self/maps").read())
    """), ["0 0 1", "0 1 True"])


main(globals())
