"""NVRTC, nvJitLink and nvFatbin straight from C's interface, as programs without a wrapper call them, and the driver beside."""
import ctypes
import os
import struct
import sysconfig
import tempfile

from tap import expect, expect_equal, main, raises

FOLDER = os.path.join(sysconfig.get_paths()["purelib"], "nvidia", "cu13", "lib")
NVRTC = ctypes.CDLL(os.path.join(FOLDER, "libnvrtc.so.13"))
JITLINK = ctypes.CDLL(os.path.join(FOLDER, "libnvJitLink.so.13"))
FATBIN = ctypes.CDLL(os.path.join(FOLDER, "libnvfatbin.so.13"))
CUDA = ctypes.CDLL("libcuda.so.1")
CUBIN, PTX, LTOIR, FATBINARY, ANY = 1, 2, 3, 4, 10  # as nvJitLink numbers its inputs


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


def run(image, name=b"k", threads=32, grid=0):
    """What the kernel writes for each thread; with a grid, for each block of a cooperative launch."""
    module, function, memory = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint64()
    values = (ctypes.c_int * threads)()
    check(CUDA.cuModuleLoadData(ctypes.byref(module), image))
    check(CUDA.cuModuleGetFunction(ctypes.byref(function), module, name))
    check(CUDA.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(4 * threads)))
    parameters = (ctypes.c_void_p * 1)(pointer_to(memory))
    check(CUDA.cuMemsetD8_v2(memory, 0, ctypes.c_size_t(4 * threads)))
    if grid:
        check(CUDA.cuLaunchCooperativeKernel(function, grid, 1, 1, 1, 1, 1, 0, None, parameters))
    else:
        check(CUDA.cuLaunchKernel(function, 1, 1, 1, threads, 1, 1, 0, None, parameters, None))
    check(CUDA.cuMemcpyDtoH_v2(values, memory, ctypes.c_size_t(4 * threads)))
    check(CUDA.cuMemFree_v2(memory))
    check(CUDA.cuModuleUnload(module))
    return list(values)


def fatbin_of(cubin, architecture=None):
    """What nvFatbin makes of machine code."""
    handle, size = ctypes.c_void_p(), ctypes.c_size_t()
    check(FATBIN.nvFatbinCreate(ctypes.byref(handle), None, ctypes.c_size_t(0)))
    check(FATBIN.nvFatbinAddCubin(handle, cubin, ctypes.c_size_t(len(cubin)), (architecture or ARCHITECTURE).encode(),
                                  b"part"))
    check(FATBIN.nvFatbinSize(handle, ctypes.byref(size)))
    made = ctypes.create_string_buffer(size.value)
    check(FATBIN.nvFatbinGet(handle, made))
    check(FATBIN.nvFatbinDestroy(ctypes.byref(handle)))
    return made.raw


def sections_of(image):
    """Of an ELF: the bytes of each section by name."""
    expect_equal(image[:5], b"\x7fELF\x02")
    offset, (size, count, names) = struct.unpack_from("<Q", image, 40)[0], struct.unpack_from("<HHH", image, 58)
    headers = [struct.unpack_from("<IIQQQQ", image, offset + size * i) for i in range(count)]
    table = image[headers[names][4]:]
    return {table[row[0]:table.index(b"\0", row[0])].decode(): image[row[4]:row[4] + row[5]] for row in headers}


SQUARES = 'extern "C" __global__ void k(int *a) { a[threadIdx.x] = threadIdx.x * threadIdx.x; }'


def test_requesting_a_cubin_returns_one_that_holds_its_ptx():
    image = Compiled(SQUARES, f"--gpu-architecture=sm_{ARCHITECTURE}").bytes_of("CUBIN")
    sections = sections_of(image)
    expect(sections[".text.k"] and b".visible .entry k" in sections[".softgpu.ptx"], sections.keys())
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


def part(text, kind, architecture=None):
    code = f"-arch=sm_{architecture or ARCHITECTURE}"
    if kind == LTOIR:
        return Compiled(text, code, "-rdc=true", "-dlto").bytes_of("LTOIR")
    if kind in (CUBIN, FATBINARY):
        cubin = Compiled(text, code, "-rdc=true").bytes_of("CUBIN")
        return cubin if kind == CUBIN else fatbin_of(cubin, architecture)
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
    sections = sections_of(image)
    expect(".text.k" not in sections and b"\0k\0" in sections[".strtab"], sections.keys())
    expect_equal(run(image), WANTED)


def test_compilers_take_each_others_machine_code():
    for kinds, *options in (((CUBIN, CUBIN, CUBIN),), ((FATBINARY, CUBIN, PTX),), ((PTX, FATBINARY, FATBINARY),),
                            ((LTOIR, CUBIN, FATBINARY), "-lto")):
        linked = link(kinds, *options)
        for image in (linked, fatbin_of(linked)):
            expect_equal(run(image), WANTED)
    whole = Compiled(SQUARES, f"-arch=sm_{ARCHITECTURE}").bytes_of("CUBIN")
    expect_equal(run(fatbin_of(whole)), [i * i for i in range(32)])


def test_inputs_that_name_no_kind_are_told_apart():
    linked = Linked(f"-arch=sm_{ARCHITECTURE}")
    for text, kind in zip(PARTS, (CUBIN, PTX, FATBINARY)):
        check(linked.add(ANY, part(text, kind)))
    expect_equal(run(linked.result()), WANTED)


def test_inputs_in_files_are_linked():
    linked = Linked(f"-arch=sm_{ARCHITECTURE}")
    with tempfile.TemporaryDirectory() as folder:
        for text, kind in zip(PARTS, (CUBIN, PTX, FATBINARY)):
            path = os.path.join(folder, f"part{kind}")
            with open(path, "wb") as file:
                file.write(part(text, kind))
            check(linked.call("AddFile", linked.handle, kind, path.encode()))
    expect_equal(run(linked.result()), WANTED)


def test_code_for_newer_devices_is_linked():
    """nvJitLink ends with a fault at a section that it does not know there."""
    for kind in (CUBIN, FATBINARY):
        linked = Linked("-arch=sm_120")
        for text in PARTS:
            check(linked.add(kind, part(text, kind, "120")))
        expect(b"mul.lo.s32" in sections_of(linked.result())[".softgpu.program"], "no text")


def driver_links(inputs, last=None):
    """What cuLink makes of pairs of a kind, as the driver numbers them, and data. Without the last it fails."""
    state, image, size = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_size_t()
    check(CUDA.cuLinkCreate_v2(0, None, None, ctypes.byref(state)))

    def add(kind, data):
        check(CUDA.cuLinkAddData_v2(state, kind, data, ctypes.c_size_t(len(data)), b"part", 0, None, None))

    for one in inputs:
        add(*one)
    if last:
        expect(CUDA.cuLinkComplete(state, ctypes.byref(image), ctypes.byref(size)) != 0, "something undefined is linked")
        add(*last)
    check(CUDA.cuLinkComplete(state, ctypes.byref(image), ctypes.byref(size)))
    made = ctypes.string_at(image, size.value)
    check(CUDA.cuLinkDestroy(state))
    return made


def test_the_driver_links_machine_code():
    kinds = ((CUBIN, 0), (FATBINARY, 2), (PTX, 1))
    expect_equal(run(driver_links([(number, part(text, kind)) for text, (kind, number) in zip(PARTS, kinds)])), WANTED)


MEETS = """
extern "C" __device__ int one();
extern "C" __global__ void k(int *a) {
    a[blockIdx.x] = one();
    int sum = cudaCGSynchronize(cudaCGGetIntrinsicHandle((cudaCGScope)1), 0);
    for (int i = 0; i < gridDim.x; i++)
        sum += ((volatile int *)a)[i];
    cudaCGSynchronize(cudaCGGetIntrinsicHandle((cudaCGScope)1), 0);
    a[blockIdx.x] = sum;
}"""
LAUNCHES = SQUARES + """
extern "C" __global__ void of_kernels(int *a) { *a = cudaGetLastError(); }"""


def test_the_library_of_the_device_runtime_is_linked():
    """The driver alone has what its members call: only a kernel that calls them is refused."""
    with open(os.path.join(FOLDER, "libcudadevrt.a"), "rb") as file:
        library = file.read()
    for source in (SQUARES, LAUNCHES):
        text = Compiled(source, f"-arch=compute_{ARCHITECTURE}", "-rdc=true").bytes_of("PTX")
        linked = Linked(f"-arch=sm_{ARCHITECTURE}")
        check(linked.add(PTX, text))
        check(linked.call("AddData", linked.handle, 6, library, ctypes.c_size_t(len(library)), b"libcudadevrt.a"))
        for image in (driver_links([(4, library), (1, text)]), linked.result()):
            expect_equal(run(image), [i * i for i in range(32)])
            if source == LAUNCHES:
                expect("801" in str(raises(AssertionError, run, image, b"of_kernels")), "not refused")
    text, one = (Compiled(source, f"-arch=compute_{ARCHITECTURE}", "-rdc=true").bytes_of("PTX")
                 for source in (MEETS, 'extern "C" __device__ int one() { return 1; }'))
    for inputs in ((4, library), (1, text)), ((1, text), (4, library)):
        expect_equal(run(driver_links(inputs, (1, one)), grid=8), [8] * 8 + [0] * 24)


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
