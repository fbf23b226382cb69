"""gpumem's Buffers in NumPy, without a copy."""
import numpy

import gpumem as cc
from tap import expect, expect_equal, main, raises

BYTES = 4096


def test_an_array_is_the_memory_itself():
    with cc.LegacyPinnedMemoryResource().allocate(BYTES) as buffer:
        array = buffer.numpy("f4", (32, 32))
        array[:] = numpy.arange(1024, dtype="f4").reshape(32, 32)
        expect_equal(array.ctypes.data, int(buffer.handle))
        expect_equal(bytes(buffer.read(0, BYTES)), array.tobytes())
        expect_equal(numpy.frombuffer(memoryview(buffer), dtype="f4")[5], 5)
        expect_equal(buffer.numpy().shape, (BYTES,))
        other = numpy.from_dlpack(buffer)
        expect_equal((other.dtype, other.nbytes), (numpy.dtype("i1"), BYTES))
        other[0] = 99
        expect_equal(array.view("i1")[0, 0], 99)


def test_an_array_outlives_the_buffer():
    buffer = cc.LegacyPinnedMemoryResource().allocate(BYTES)
    array = buffer.numpy()
    array[:] = 7
    buffer.close()
    expect(buffer.is_closed)
    expect_equal(int(array.sum()), 7 * BYTES)


def test_a_buffer_shrinks_when_its_array_is_gone():
    memory = cc.VirtualMemoryResource(0, {"location_type": "host"})
    with memory.allocate(4 << 20) as buffer:
        array = buffer.numpy("u4")
        array[:] = 3
        raises(cc.errors.BusyError, buffer.shrink, 2 << 20)
        expect_equal(buffer.size, 4 << 20)
        del array
        buffer.shrink(2 << 20)
        expect_equal(buffer.numpy("u4").tolist(), [3] * (1 << 19))


def test_shapes_and_memory_that_do_not_fit_are_refused():
    with cc.LegacyPinnedMemoryResource().allocate(BYTES) as buffer:
        raises(ValueError, buffer.numpy, "f4", (33, 32))
        raises(TypeError, buffer.numpy, "no such type")
    with cc.DeviceMemoryResource(0).allocate(BYTES) as buffer:
        raises(BufferError, buffer.numpy)
        buffer.write(numpy.arange(4, dtype="u1"))
        expect_equal(bytes(buffer.read(0, 4)), bytes(range(4)))


main(globals())
