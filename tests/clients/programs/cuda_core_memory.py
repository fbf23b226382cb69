"""gpumem.cuda_core: memory of gpumem's resources in programs of cuda.core, whose launch takes no other Buffers."""
import gc

import cuda.core
import numpy
from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch

import gpumem as cc
from gpumem.cuda_core import MemoryResource
from tap import expect, expect_equal, main, raises

MIB = 1 << 20
DEVICE = Device()
DEVICE.set_current()
STREAM = DEVICE.create_stream()
SOURCE = r"""
extern "C" __global__ void squares(long long *out, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        out[i] = (long long)i * i;
}
"""
SQUARES = Program(SOURCE, "c++", ProgramOptions(arch=f"sm_{DEVICE.arch}")).compile("cubin").get_kernel("squares")


def resources():
    return [cc.DeviceMemoryResource(0), cc.CachingMemoryResource(cc.DeviceMemoryResource(0)),
            cc.VirtualMemoryResource(0), cc.PinnedMemoryResource(), cc.LegacyPinnedMemoryResource(),
            cc.ManagedMemoryResource(), cc.LimitMemoryResource(cc.DeviceMemoryResource(0), 64 * MIB)]


def squares_in(buffer, count):
    launch(STREAM, LaunchConfig(grid=4, block=64), SQUARES, buffer, numpy.int32(count))
    STREAM.sync()
    with cc.Buffer.from_handle(int(buffer.handle), 8 * count) as seen:
        expect_equal(numpy.frombuffer(seen.read(), "i8").tolist(), [n * n for n in range(count)])


def test_a_kernel_runs_in_memory_of_each_resource():
    for ours in resources():
        resource = MemoryResource(ours)
        expect(isinstance(resource, cuda.core.MemoryResource))
        for stream in (STREAM, None):
            buffer = resource.allocate(8000, stream=stream)
            expect(type(buffer) is cuda.core.Buffer and buffer.size >= 8000 and buffer.memory_resource is resource)
            squares_in(buffer, 1000)
            buffer.close(STREAM)
        STREAM.sync()
        expect_equal((ours.stats().allocations, resource._open), (0, {}))


def test_it_says_what_its_resource_says():
    for ours in resources():
        resource = MemoryResource(ours)
        expect_equal((resource.device_id, resource.is_device_accessible, resource.is_host_accessible,
                      resource.is_managed),
                     (ours.device_id, ours.is_device_accessible, ours.is_host_accessible, ours.is_managed))
        expect(resource.resource is ours and "gpumem.cuda_core" in repr(resource))


def test_it_is_the_resource_of_a_device_of_cuda_core():
    before = DEVICE.memory_resource
    ours = cc.DeviceMemoryResource(0, {"max_size": 64 * MIB})
    DEVICE.memory_resource = MemoryResource(ours)
    buffer = DEVICE.allocate(4096, stream=STREAM)
    expect_equal(ours.stats().allocations, 1)
    squares_in(buffer, 500)
    del buffer
    gc.collect()
    STREAM.sync()
    expect_equal(ours.stats().allocations, 0)
    DEVICE.memory_resource = before


def test_a_buffer_grows_behind_cuda_cores():
    resource = MemoryResource(cc.VirtualMemoryResource(0))
    first = resource.allocate(2 * MIB, stream=STREAM)
    ours = resource.buffer_of(first)
    ours.grow(8 * MIB)
    expect_equal((first.size, ours.size, int(first.handle)), (2 * MIB, 8 * MIB, ours.handle))
    whole = cuda.core.Buffer.from_handle(ours.handle, ours.size, owner=first)
    squares_in(whole, MIB)
    first.close()
    raises(ValueError, resource.buffer_of, first)
    raises(ValueError, resource.buffer_of, whole)


def test_nothing_is_allocated_for_a_size_of_zero():
    resource = MemoryResource(cc.DeviceMemoryResource(0))
    with resource.allocate(0, stream=STREAM) as buffer:
        expect_equal((int(buffer.handle), buffer.size), (0, 0))


def test_refusals_are_gpumems():
    raises(TypeError, MemoryResource, DEVICE.memory_resource)
    resource = MemoryResource(cc.LimitMemoryResource(cc.DeviceMemoryResource(0), MIB))
    raises(cc.OutOfMemoryError, resource.allocate, 2 * MIB, stream=STREAM)
    raises(OverflowError, resource.allocate, -1, stream=STREAM)
    raises(ValueError, resource.deallocate, 4096, 10)
    kept = resource.allocate(1000, stream=STREAM)
    resource.close()
    expect(resource.is_closed)
    raises(RuntimeError, resource.allocate, 10, stream=STREAM)
    kept.close()


main(globals())
