"""cuda.core with kernels, as its users write programs: streams and events, graphs, arrays of other libraries, linking,
caches of programs, cooperative launches and clusters."""
import tempfile

import cuda.core
import numpy
from cuda.core import (Device, DeviceMemoryResource, EventOptions, LaunchConfig, LegacyPinnedMemoryResource, Linker,
                       LinkerOptions, ObjectCode, Program, ProgramOptions, launch)
from cuda.core.utils import (FileStreamProgramCache, InMemoryProgramCache, StridedMemoryView,
                             args_viewable_as_strided_memory, make_program_cache_key)

from tap import Skip, expect, expect_equal, main, raises

DEVICE = Device()
DEVICE.set_current()
STREAM = DEVICE.create_stream()
ARCHITECTURE = f"sm_{DEVICE.arch}"
PINNED = LegacyPinnedMemoryResource()


def pinned(count, dtype):
    """An array that kernels reach, and what keeps it."""
    buffer = PINNED.allocate(count * numpy.dtype(dtype).itemsize)
    array = numpy.from_dlpack(buffer).view(dtype)
    array[:] = 0
    return buffer, array


def compiled(source, kind="cubin", **options):
    return Program(source, "c++", ProgramOptions(std="c++17", arch=ARCHITECTURE, **options)).compile(kind)


STEPS = compiled(r"""
extern "C" __global__ void fill(int *a, int n, int value) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) a[i] = value;
}
extern "C" __global__ void add(int *a, int n, int value) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) a[i] += value;
}
extern "C" __global__ void gather(const int *a, int n, int *out) { atomicAdd(out, a[(threadIdx.x * 7) % n]); }
""")
FILL, ADD, GATHER = (STEPS.get_kernel(name) for name in ("fill", "add", "gather"))
WIDE = LaunchConfig(grid=4, block=64)


def n(value):
    return numpy.int32(value)


SAXPY = r"""
template <typename T> __global__ void saxpy(T a, const T *x, const T *y, T *out, size_t n) {
    for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        out[i] = a * x[i] + y[i];
}
"""


def test_template_kernels_are_compiled_and_run():
    program = Program(SAXPY, "c++", ProgramOptions(std="c++11", arch=ARCHITECTURE))
    code = program.compile("cubin", name_expressions=("saxpy<float>", "saxpy<double>"))
    for name, dtype in (("saxpy<float>", numpy.float32), ("saxpy<double>", numpy.float64)):
        count = 1000
        buffers = [pinned(count, dtype) for _ in range(3)]
        buffers[0][1][:] = numpy.arange(count) / 4
        buffers[1][1][:] = numpy.arange(count)[::-1]
        launch(STREAM, LaunchConfig(grid=2, block=256), code.get_kernel(name), dtype(2), *(b[0] for b in buffers),
               numpy.uint64(count))
        STREAM.sync()
        expect(numpy.array_equal(buffers[2][1], 2 * buffers[0][1] + buffers[1][1]), name)


def test_a_compiled_cubin_holds_its_ptx():
    expect(bytes(compiled('extern "C" __global__ void k() {}').code).lstrip(b"\0").find(b".visible .entry k") >= 0)


def test_a_kernel_uses_dynamic_shared_memory():
    code = compiled('extern __shared__ int part[]; extern "C" __global__ void k(int *a) {'
                    "part[threadIdx.x * 1024] = threadIdx.x; __syncthreads(); a[threadIdx.x] ="
                    "part[(blockDim.x - 1 - threadIdx.x) * 1024]; }")
    kernel = code.get_kernel("k")
    buffer, values = pinned(12, numpy.int32)
    not_opted_in = LaunchConfig(grid=1, block=16, shmem_size=65536)
    raises(cuda.core._utils.cuda_utils.CUDAError, launch, STREAM, not_opted_in, kernel, buffer)
    launch(STREAM, LaunchConfig(grid=1, block=12, shmem_size=49152), kernel, buffer)
    STREAM.sync()
    expect(numpy.array_equal(values, numpy.arange(12)[::-1]))


def test_events_order_kernels_of_two_streams():
    other = DEVICE.create_stream()
    memory = DeviceMemoryResource(DEVICE).allocate(4 * 256, stream=STREAM)
    (result, out) = pinned(1, numpy.int32)
    launch(STREAM, WIDE, FILL, memory, n(256), n(5))
    event = STREAM.record(options=EventOptions())
    other.wait(event)
    launch(other, WIDE, ADD, memory, n(256), n(2))
    launch(other, LaunchConfig(grid=1, block=32), GATHER, memory, n(256), result)
    other.sync()
    expect_equal(int(out[0]), 32 * 7)
    memory.close(other)
    other.close()


def test_events_time_kernels():
    timed = EventOptions(timing_enabled=True)
    (buffer, _) = pinned(256, numpy.int32)
    begin = STREAM.record(options=timed)
    launch(STREAM, WIDE, FILL, buffer, n(256), n(1))
    end = STREAM.record(options=timed)
    end.sync()
    expect(end - begin >= 0)


def test_a_graph_of_kernels_runs_and_updates():
    (buffer, values) = pinned(256, numpy.int32)
    builder = DEVICE.create_graph_builder().begin_building()
    launch(builder, WIDE, FILL, buffer, n(256), n(1))
    left, right = builder.split(2)
    launch(left, LaunchConfig(grid=2, block=64), ADD, buffer, n(128), n(10))
    half = int(buffer.handle) + 4 * 128
    launch(right, LaunchConfig(grid=2, block=64), ADD, half, n(128), n(20))
    builder = type(builder).join(left, right)
    launch(builder, WIDE, ADD, buffer, n(256), n(100))
    graph = builder.end_building().complete()
    for _ in range(3):
        values[:] = -1
        graph.launch(STREAM)
        STREAM.sync()
        expect(numpy.array_equal(values, [111] * 128 + [121] * 128), values)
    graph.close()


def test_kernels_set_graph_conditions():
    try:
        code = compiled(r"""
            extern "C" __device__ __cudart_builtin__ void CUDARTAPI
                cudaGraphSetConditional(cudaGraphConditionalHandle handle, unsigned value);
            extern "C" __global__ void again(cudaGraphConditionalHandle handle, int *rounds) {
                cudaGraphSetConditional(handle, ++*rounds < 5);
            }""")
    except Exception as error:  # NVRTC has no declaration of the handle then
        raise Skip(f"NVRTC does not know conditional handles: {type(error).__name__}") from error
    (buffer, values) = pinned(2, numpy.int32)
    builder = DEVICE.create_graph_builder().begin_building()
    condition = builder.create_condition(default_value=1)
    body = builder.while_loop(condition).begin_building()
    launch(body, LaunchConfig(grid=1, block=1), ADD, int(buffer.handle) + 4, n(1), n(3))
    launch(body, LaunchConfig(grid=1, block=1), code.get_kernel("again"), condition, buffer)
    body.end_building()
    graph = builder.end_building().complete()
    graph.launch(STREAM)
    STREAM.sync()
    expect_equal(values.tolist(), [5, 15])


@args_viewable_as_strided_memory((0,))
def doubled(array, stream):
    view = array.view(stream.handle if hasattr(stream, "handle") else -1)
    expect(view.is_device_accessible)
    count = view.shape[0]
    launch(stream, LaunchConfig(grid=(count + 63) // 64, block=64), ADD, view.ptr, n(count), n(1000))


def test_arrays_of_other_libraries_are_kernel_arguments():
    """By DLPack, and by the protocol of CUDA arrays, which this object speaks as CuPy's arrays do."""
    (buffer, values) = pinned(100, numpy.int32)

    class Array:  # pylint: disable=too-few-public-methods
        __cuda_array_interface__ = {"version": 3, "shape": (100,), "typestr": "<i4", "strides": None,
                                    "data": (int(buffer.handle), False), "stream": None}

    doubled(Array(), STREAM)
    STREAM.sync()
    expect(numpy.array_equal(values, numpy.full(100, 1000)))
    view = StridedMemoryView.from_any_interface(buffer, stream_ptr=-1)
    expect_equal(view.ptr, int(buffer.handle))
    launch(STREAM, LaunchConfig(grid=2, block=64), ADD, view.ptr, n(100), n(1))
    STREAM.sync()
    expect(numpy.array_equal(values, numpy.full(100, 1001)))


PARTS = ['extern "C" __device__ int twice(int); extern "C" __device__ int odd(int);'
         'extern "C" __global__ void k(int *a) { a[threadIdx.x] = twice(odd(threadIdx.x)); }',
         'extern "C" __device__ int twice(int x) { return 2 * x; }',
         'extern "C" __device__ int odd(int x) { return 2 * x + 1; }']


def link(kinds, **options):
    parts = [compiled(text, kind, relocatable_device_code=True,
                      **({"link_time_optimization": True} if kind == "ltoir" else {}))
             for text, kind in zip(PARTS, kinds)]
    code = Linker(*parts, options=LinkerOptions(arch=ARCHITECTURE, **options)).link("cubin")
    (buffer, values) = pinned(32, numpy.int32)
    launch(STREAM, LaunchConfig(grid=1, block=32), code.get_kernel("k"), buffer)
    STREAM.sync()
    expect(numpy.array_equal(values, 4 * numpy.arange(32) + 2), values)


def test_three_ptx_texts_are_linked():
    link(["ptx"] * 3)


def test_lto_ir_of_three_programs_is_linked():
    link(["ltoir"] * 3, link_time_optimization=True)


def test_lto_ir_and_ptx_are_linked():
    link(["ltoir", "ptx", "ptx"], link_time_optimization=True)


def test_compiled_code_can_be_loaded_from_its_bytes():
    for kind, load in (("ptx", ObjectCode.from_ptx), ("cubin", ObjectCode.from_cubin)):
        code = bytes(compiled('extern "C" __global__ void k(int *a) { a[threadIdx.x] = 9; }', kind).code)
        (buffer, values) = pinned(32, numpy.int32)
        launch(STREAM, LaunchConfig(grid=1, block=32), load(code).get_kernel("k"), buffer)
        STREAM.sync()
        expect_equal(values.tolist(), [9] * 32)


def test_compiled_programs_are_cached():
    source, options = 'extern "C" __global__ void k(int *a) { *a = 77; }', ProgramOptions(arch=ARCHITECTURE)
    key = make_program_cache_key(code=source, code_type="c++", options=options, target_type="cubin")
    with tempfile.TemporaryDirectory() as folder:
        for cache in (InMemoryProgramCache(), FileStreamProgramCache(folder)):
            with cache:
                expect(cache.get(key) is None)
                cache[key] = Program(source, "c++", options).compile("cubin")
                code = ObjectCode.from_cubin(bytes(cache[key]))
                (buffer, values) = pinned(1, numpy.int32)
                launch(STREAM, LaunchConfig(grid=1, block=1), code.get_kernel("k"), buffer)
                STREAM.sync()
                expect_equal(int(values[0]), 77)


def test_a_cooperative_launch_runs_all_blocks_concurrently():
    code = compiled(r"""
        extern "C" __global__ void meet(volatile unsigned *count, unsigned *seen) {
            __syncthreads();
            if (threadIdx.x == 0) {
                atomicAdd((unsigned *)count, 1);
                while (*count < gridDim.x) ;
            }
            __syncthreads();
            if (threadIdx.x == 0) seen[blockIdx.x] = *count;
        }""")
    (count, _), (seen, values) = pinned(1, numpy.uint32), pinned(16, numpy.uint32)
    launch(STREAM, LaunchConfig(grid=16, block=64, is_cooperative=True), code.get_kernel("meet"), count, seen)
    STREAM.sync()
    expect_equal(values.tolist(), [16] * 16)


def test_clusters_share_distributed_memory():
    if DEVICE.compute_capability < (9, 0):
        raise Skip("clusters are of compute capability 9.0 on")
    code = compiled(r"""
        extern "C" __global__ void neighbour(unsigned *out) {
            __shared__ unsigned mine;
            unsigned rank, there, at = (unsigned)__cvta_generic_to_shared(&mine);
            asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
            mine = 100 + blockIdx.x;
            asm volatile("barrier.cluster.arrive.release; barrier.cluster.wait.acquire;" ::: "memory");
            asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(at), "r"(rank ^ 1));
            asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(out[blockIdx.x]) : "r"(there) : "memory");
            asm volatile("barrier.cluster.arrive; barrier.cluster.wait;" ::: "memory");
        }""")
    (buffer, values) = pinned(8, numpy.uint32)
    launch(STREAM, LaunchConfig(grid=4, cluster=2, block=1), code.get_kernel("neighbour"), buffer)
    STREAM.sync()
    expect_equal(values.tolist(), [101, 100, 103, 102, 105, 104, 107, 106])


def test_attributes_and_arguments_of_a_kernel_are_queried():
    code = compiled('extern "C" __global__ void __launch_bounds__(128) k(int *a, double b, short c) {'
                    "__shared__ int s[64]; s[threadIdx.x] = c; __syncthreads(); a[0] = s[1]; }")
    kernel = code.get_kernel("k")
    expect_equal(kernel.num_arguments, 3)
    expect_equal([(info.offset, info.size) for info in kernel.arguments_info], [(0, 8), (8, 8), (16, 2)])
    expect_equal(kernel.attributes.max_threads_per_block, 128)
    expect_equal(kernel.attributes.shared_size_bytes, 256)
    expect(kernel.occupancy.max_active_blocks_per_multiprocessor(128, 0) >= 1)


if __name__ == "__main__":
    print(f"# cuda.core {cuda.core.__version__}")
    main(globals())
