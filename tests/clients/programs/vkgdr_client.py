"""vkgdr: device memory that Vulkan allocates and maps, and the CUDA driver imports."""
import gc
import multiprocessing
import os

import numpy
import pycuda.driver as cuda
import pycuda.gpuarray
import vkgdr
import vkgdr.pycuda

from tap import expect, expect_equal, main, raises

cuda.init()
# Processes that this one starts import it too, and have none.
FIRST = multiprocessing.current_process().name == "MainProcess"
CONTEXT = cuda.Device(0).retain_primary_context() if FIRST else None
if CONTEXT:
    CONTEXT.push()

SIZES = (1, 13, 4096, 65536, (1 << 20) + 17)


def pattern(size, seed):
    return numpy.random.default_rng(seed).integers(0, 256, size, dtype=numpy.uint8)


def host_of(memory):
    return numpy.array(memory, copy=False).view(numpy.uint8)


def read_device(pointer, size):
    back = numpy.empty(size, numpy.uint8)
    cuda.memcpy_dtoh(back, pointer)
    return back


def test_a_device_is_opened_by_number_and_by_context():
    vkgdr.Vkgdr(0)
    vkgdr.Vkgdr(0, vkgdr.OpenFlags.REQUIRE_COHERENT_BIT)
    vkgdr.Vkgdr.open_current_context()


def test_bytes_are_transferred_in_both_directions():
    handle = vkgdr.Vkgdr.open_current_context(vkgdr.OpenFlags.REQUIRE_COHERENT_BIT)
    for size in SIZES:
        memory = vkgdr.RawMemory(handle, size)
        expect_equal(len(memory), size)
        expect(memory.is_coherent)
        expect_equal(memory.non_coherent_atom_size, 1)
        host = host_of(memory)
        expect_equal(host.nbytes, size)
        host[:] = pattern(size, size)
        expect(numpy.array_equal(read_device(memory.device_ptr, size), pattern(size, size)))
        cuda.memcpy_htod(memory.device_ptr, pattern(size, size + 1))
        expect(numpy.array_equal(host, pattern(size, size + 1)))
        cuda.memset_d8(memory.device_ptr, 0x5a, size)
        CONTEXT.synchronize()
        expect((host == 0x5a).all())
        del host
        memory.free()


def test_host_and_device_offsets_agree():
    handle = vkgdr.Vkgdr.open_current_context()
    memory = vkgdr.RawMemory(handle, 1 << 16)
    host = host_of(memory)
    host[:] = 0
    cuda.memcpy_htod(memory.device_ptr + 4097, pattern(333, 1))
    expect(numpy.array_equal(host[4097:4097 + 333], pattern(333, 1)))
    expect(not host[:4097].any() and not host[4097 + 333:].any())
    host[-1] = 7
    expect_equal(read_device(memory.device_ptr + (1 << 16) - 1, 1)[0], 7)
    memory.free()


def test_several_buffers_do_not_overlap():
    handle = vkgdr.Vkgdr.open_current_context()
    buffers = [vkgdr.RawMemory(handle, 5000 + i) for i in range(20)]
    expect_equal(len({memory.device_ptr for memory in buffers}), 20)
    for number, memory in enumerate(buffers):
        host_of(memory)[:] = pattern(5000 + number, number)
    for number, memory in enumerate(buffers):
        expect(numpy.array_equal(read_device(memory.device_ptr, 5000 + number),
                                 pattern(5000 + number, number)))
    for memory in buffers:
        memory.free()


def test_accessing_freed_memory_from_the_device_fails():
    handle = vkgdr.Vkgdr.open_current_context()
    memory = vkgdr.RawMemory(handle, 4096)
    pointer = memory.device_ptr
    memory.free()
    memory.free()
    raises(cuda.LogicError, cuda.memcpy_dtoh, bytearray(16), pointer)


def test_forced_non_coherent_memory_is_flushed_and_invalidated():
    handle = vkgdr.Vkgdr.open_current_context(vkgdr.OpenFlags.FORCE_NON_COHERENT_BIT)
    memory = vkgdr.RawMemory(handle, 1 << 16)
    expect(not memory.is_coherent)
    atom = memory.non_coherent_atom_size
    expect(atom >= 1 and atom & (atom - 1) == 0)
    host_of(memory)[:] = pattern(1 << 16, 3)
    memory.flush(0, 1 << 16)
    expect(numpy.array_equal(read_device(memory.device_ptr, 1 << 16), pattern(1 << 16, 3)))
    cuda.memset_d8(memory.device_ptr, 9, 1 << 16)
    memory.invalidate(0, 1 << 16)
    expect((host_of(memory) == 9).all())
    memory.free()


def test_vkgdr_memory_backs_a_gpu_array():
    handle = vkgdr.Vkgdr.open_current_context()
    memory = vkgdr.pycuda.Memory(handle, 4 * 1000)
    array = pycuda.gpuarray.GPUArray((1000,), numpy.float32, gpudata=memory)
    values = numpy.arange(1000, dtype=numpy.float32)
    host_of(memory).view(numpy.float32)[:] = values
    expect(numpy.array_equal(array.get(), values))
    array.set(values[::-1].copy())
    expect(numpy.array_equal(host_of(memory).view(numpy.float32), values[::-1]))
    pointer = memory.device_ptr
    del array, memory
    gc.collect()
    raises(cuda.LogicError, cuda.memcpy_dtoh, bytearray(16), pointer)


def test_errors_name_the_failed_call():
    handle = vkgdr.Vkgdr.open_current_context()
    error = raises(vkgdr.VkgdrError, vkgdr.RawMemory, handle, 1 << 55)
    expect("vkAllocateMemory" in str(error) or "vkCreateBuffer" in str(error), str(error))
    error = raises(vkgdr.VkgdrError, vkgdr.Vkgdr, 77)
    expect("CUDA_ERROR_INVALID_DEVICE" in str(error), str(error))


def opened(queue, current):
    """What opening says in a process of its own."""
    try:
        if current:
            vkgdr.Vkgdr.open_current_context()
        else:
            vkgdr.Vkgdr(0)
        queue.put("opened")
    except vkgdr.VkgdrError as error:
        queue.put(str(error))


def opened_elsewhere(current):
    spawn = multiprocessing.get_context("spawn")
    queue = spawn.Queue()
    child = spawn.Process(target=opened, args=(queue, current))
    child.start()
    text = queue.get(timeout=40)
    child.join(40)
    return text


def test_opening_without_a_current_context_fails():
    text = opened_elsewhere(True)
    expect("CUDA_ERROR_INVALID_CONTEXT" in text, text)


def test_a_device_with_another_uuid_is_not_matched():
    expect_equal(opened_elsewhere(False), "opened")
    uuid = os.environ["SOFTGPU_UUID"]
    os.environ["SOFTGPU_UUID"] = ""
    text = opened_elsewhere(False)
    os.environ["SOFTGPU_UUID"] = uuid
    expect_equal(text, "no Vulkan device matching the CUDA device found")


if __name__ == "__main__":
    try:
        main(globals())
    finally:
        CONTEXT.pop()
