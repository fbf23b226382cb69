"""NVRTC and nvJitLink straight from C's interface, as programs without a wrapper call them, and the driver beside."""
import ctypes
import os
import sysconfig

from tap import expect, expect_equal, main

FOLDER = os.path.join(sysconfig.get_paths()["purelib"], "nvidia", "cu13", "lib")
NVRTC = ctypes.CDLL(os.path.join(FOLDER, "libnvrtc.so.13"))
JITLINK = ctypes.CDLL(os.path.join(FOLDER, "libnvJitLink.so.13"))
CUDA = ctypes.CDLL("libcuda.so.1")
PTX, LTOIR = 2, 3


def check(result, *text):
    if result:
        raise AssertionError(f"error {result}: {b' '.join(text).decode(errors='replace')}")


def pointer_to(value):
    return ctypes.cast(ctypes.pointer(value), ctypes.c_void_p)


class Compiled:
    """A program of NVRTC."""

    def __init__(self, source, *options, names=()):
        self.program = ctypes.c_void_p()
        check(NVRTC.nvrtcCreateProgram(ctypes.byref(self.program), source.encode(), b"test.cu", 0, None, None))
        for name in names:
            check(NVRTC.nvrtcAddNameExpression(self.program, name.encode()))
        words = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
        self.status = NVRTC.nvrtcCompileProgram(self.program, len(options), words)

    def bytes_of(self, kind):
        size = ctypes.c_size_t()
        check(getattr(NVRTC, f"nvrtcGet{kind}Size")(self.program, ctypes.byref(size)))
        text = ctypes.create_string_buffer(size.value)
        check(getattr(NVRTC, f"nvrtcGet{kind}")(self.program, text))
        return text.raw

    def lowered(self, name):
        found = ctypes.c_char_p()
        check(NVRTC.nvrtcGetLoweredName(self.program, name.encode(), ctypes.byref(found)))
        return found.value


class Linked:
    """A link of nvJitLink; names with a version are what its header makes of the names."""

    def __init__(self, *options):
        words = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
        self.handle = ctypes.c_void_p()
        check(self.call("Create", ctypes.byref(self.handle), len(options), words))

    @staticmethod
    def call(name, *arguments):
        return getattr(JITLINK, f"__nvJitLink{name}_13_0")(*arguments)

    def add(self, kind, data):
        return self.call("AddData", self.handle, kind, data, ctypes.c_size_t(len(data)), b"part")

    def log(self):
        size = ctypes.c_size_t()
        check(self.call("GetErrorLogSize", self.handle, ctypes.byref(size)))
        text = ctypes.create_string_buffer(size.value + 1)
        check(self.call("GetErrorLog", self.handle, text))
        return text.value

    def result(self, kind="Cubin"):
        check(self.call("Complete", self.handle), self.log())
        size = ctypes.c_size_t()
        check(self.call(f"GetLinked{kind}Size", self.handle, ctypes.byref(size)))
        made = ctypes.create_string_buffer(size.value)
        check(self.call(f"GetLinked{kind}", self.handle, made))
        check(self.call("Destroy", ctypes.byref(self.handle)))
        return made.raw


def begin():
    context, number = ctypes.c_void_p(), ctypes.c_int()
    check(CUDA.cuInit(0))
    check(CUDA.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
    check(CUDA.cuCtxSetCurrent(context))
    digits = []
    for attribute in (75, 76):
        check(CUDA.cuDeviceGetAttribute(ctypes.byref(number), attribute, 0))
        digits.append(str(number.value))
    return "".join(digits)


ARCHITECTURE = begin()


def run(image, name=b"k", threads=32):
    """What the kernel writes for each thread."""
    module, function, memory = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint64()
    values = (ctypes.c_int * threads)()
    check(CUDA.cuModuleLoadData(ctypes.byref(module), image))
    check(CUDA.cuModuleGetFunction(ctypes.byref(function), module, name))
    check(CUDA.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(4 * threads)))
    parameters = (ctypes.c_void_p * 1)(pointer_to(memory))
    check(CUDA.cuLaunchKernel(function, 1, 1, 1, threads, 1, 1, 0, None, parameters, None))
    check(CUDA.cuMemcpyDtoH_v2(values, memory, ctypes.c_size_t(4 * threads)))
    check(CUDA.cuMemFree_v2(memory))
    check(CUDA.cuModuleUnload(module))
    return list(values)


SQUARES = 'extern "C" __global__ void k(int *a) { a[threadIdx.x] = threadIdx.x * threadIdx.x; }'


def test_requesting_a_cubin_returns_ptx():
    image = Compiled(SQUARES, f"--gpu-architecture=sm_{ARCHITECTURE}").bytes_of("CUBIN")
    expect(b".visible .entry k" in image, image[:16])
    expect_equal(run(image), [i * i for i in range(32)])


def test_requesting_ptx_returns_ptx():
    image = Compiled(SQUARES, f"--gpu-architecture=compute_{ARCHITECTURE}").bytes_of("PTX")
    expect_equal(run(image), [i * i for i in range(32)])


def test_kernels_are_found_by_their_lowered_names():
    compiled = Compiled("namespace n { template <int F> __global__ void k(int *a) { a[threadIdx.x] = F * threadIdx.x; } }",
                        f"-arch=sm_{ARCHITECTURE}", names=("n::k<3>", "n::k<4>"))
    image = compiled.bytes_of("CUBIN")
    for factor in (3, 4):
        expect_equal(run(image, compiled.lowered(f"n::k<{factor}>")), [factor * i for i in range(32)])


def test_compilation_errors_come_from_nvrtc():
    compiled = Compiled("__global__ void k(int *a) { nowhere(a); }", f"-arch=sm_{ARCHITECTURE}")
    expect_equal(compiled.status, 6)
    size = ctypes.c_size_t()
    check(NVRTC.nvrtcGetProgramLogSize(compiled.program, ctypes.byref(size)))
    log = ctypes.create_string_buffer(size.value)
    check(NVRTC.nvrtcGetProgramLog(compiled.program, log))
    expect(b'"nowhere" is undefined' in log.value, log.value)


PARTS = ('extern "C" __device__ int f(int); extern "C" __global__ void k(int *a) { a[threadIdx.x] = f(threadIdx.x); }',
         'extern "C" __device__ int g(int); extern "C" __device__ int f(int x) { return g(x) + 1; }',
         'extern "C" __device__ int g(int x) { return 5 * x; }')
WANTED = [5 * i + 1 for i in range(32)]


def part(text, kind):
    if kind == LTOIR:
        return Compiled(text, f"-arch=sm_{ARCHITECTURE}", "-rdc=true", "-dlto").bytes_of("LTOIR")
    return Compiled(text, f"-arch=compute_{ARCHITECTURE}", "-rdc=true").bytes_of("PTX")


def link(kinds, *options, result="Cubin"):
    linked = Linked(f"-arch=sm_{ARCHITECTURE}", *options)
    for text, kind in zip(PARTS, kinds):
        check(linked.add(kind, part(text, kind)))
    return linked.result(result)


def test_one_ptx_text_is_linked():
    linked = Linked(f"-arch=sm_{ARCHITECTURE}")
    check(linked.add(PTX, Compiled(SQUARES, f"-arch=compute_{ARCHITECTURE}").bytes_of("PTX")))
    expect_equal(run(linked.result()), [i * i for i in range(32)])


def test_several_ptx_texts_are_linked():
    expect_equal(run(link((PTX, PTX, PTX))), WANTED)


def test_lto_ir_is_linked():
    image = link((LTOIR, LTOIR, LTOIR), "-lto")
    expect(image.lstrip().startswith((b"//", b".version")), image[:16])
    expect_equal(run(image), WANTED)


def test_lto_ir_and_ptx_are_linked():
    expect_equal(run(link((LTOIR, PTX, PTX), "-lto")), WANTED)


def test_requesting_ptx_of_lto_ir_returns_ptx():
    """Then it is nvJitLink's own answer."""
    expect_equal(run(link((LTOIR, LTOIR, LTOIR), "-lto", "-ptx", result="Ptx")), WANTED)


def test_linking_errors_come_from_nvjitlink():
    linked = Linked(f"-arch=sm_{ARCHITECTURE}")
    expect(linked.add(PTX, b".version 7.0\n.target sm_70\nnonsense\n\0") != 0 or linked.call("Complete", linked.handle))
    expect(linked.log().strip(b"\0 \n") != b"", "an empty log")


if __name__ == "__main__":
    main(globals())
