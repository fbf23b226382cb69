"""pycuda: linked against the driver's exported names, the oldest of them too."""
import multiprocessing

import numpy
import pycuda
import pycuda.driver as cuda
import pycuda.tools

import images
from tap import expect, expect_equal, main, raises

cuda.init()
CONTEXT = cuda.Device(0).retain_primary_context() if __name__ != "__mp_main__" else None
if CONTEXT:
    CONTEXT.push()


def test_device_properties_are_queried():
    device = cuda.Device(0)
    expect_equal(device.name(), "NVIDIA H200")
    expect_equal(device.compute_capability(), (9, 0))
    expect(len(device.get_attributes()) > 50)
    free, total = cuda.mem_get_info()
    expect(0 < free <= total)


def test_copies_and_memsets_move_bytes():
    data = numpy.arange(4096, dtype=numpy.float32)
    memory = cuda.mem_alloc(data.nbytes)
    cuda.memcpy_htod(memory, data)
    back = numpy.empty_like(data)
    cuda.memcpy_dtoh(back, memory)
    expect(numpy.array_equal(back, data))
    other = cuda.to_device(data)
    cuda.memcpy_dtod(memory, other, data.nbytes)
    cuda.memset_d32(memory, 0, data.size)
    cuda.memcpy_dtoh(back, memory)
    expect((back == 0).all())
    memory.free()


def test_events_time_asynchronous_copies():
    stream = cuda.Stream()
    host = cuda.pagelocked_empty(1 << 20, numpy.uint8)
    host[:] = 3
    memory = cuda.mem_alloc(host.nbytes)
    first, last = cuda.Event(), cuda.Event()
    first.record(stream)
    cuda.memcpy_htod_async(memory, host, stream)
    host_back = cuda.pagelocked_zeros(1 << 20, numpy.uint8)
    cuda.memcpy_dtoh_async(host_back, memory, stream)
    last.record(stream)
    last.synchronize()
    expect((host_back == 3).all())
    expect(last.time_since(first) >= 0)
    stream.wait_for_event(last)
    expect(stream.is_done())


def test_pitched_memory_is_copied_by_2d_copies():
    memory, pitch = cuda.mem_alloc_pitch(100, 8, 4)
    expect(pitch >= 100)
    source = numpy.arange(800, dtype=numpy.uint8).reshape(8, 100)
    copy = cuda.Memcpy2D()
    copy.set_src_host(source)
    copy.src_pitch = 100
    copy.set_dst_device(memory)
    copy.dst_pitch = pitch
    copy.width_in_bytes, copy.height = 100, 8
    copy(aligned=True)
    back = numpy.zeros_like(source)
    copy = cuda.Memcpy2D()
    copy.set_src_device(memory)
    copy.src_pitch = pitch
    copy.set_dst_host(back)
    copy.dst_pitch = 100
    copy.width_in_bytes, copy.height = 100, 8
    copy(aligned=False)
    expect(numpy.array_equal(back, source))


def test_managed_memory_is_read_and_written_by_the_host():
    data = cuda.managed_zeros(1024, dtype=numpy.int32, mem_flags=cuda.mem_attach_flags.GLOBAL)
    data[:] = 4
    cuda.Context.synchronize()
    expect_equal(int(data.sum()), 4096)


def test_pycudas_memory_pool_allocates_and_frees():
    pool = pycuda.tools.DeviceMemoryPool()
    blocks = [pool.allocate(10000) for _ in range(8)]
    expect(pool.active_blocks == 8)
    del blocks
    pool.free_held()
    expect_equal(pool.held_blocks, 0)


def test_an_array_is_copied_to_the_host():
    data = numpy.arange(512, dtype=numpy.float32).reshape(16, 32)
    array = cuda.matrix_to_array(data, order="C")
    back = numpy.zeros_like(data)
    copy = cuda.Memcpy2D()
    copy.set_src_array(array)
    copy.set_dst_host(back)
    copy.width_in_bytes = copy.dst_pitch = 128
    copy.height = 16
    copy(aligned=True)
    expect(numpy.array_equal(back, data))
    expect_equal(array.get_descriptor().width, 32)


def test_a_texture_reference_keeps_its_settings():
    reference = cuda.TextureReference()
    reference.set_address_mode(0, cuda.address_mode.CLAMP)
    reference.set_filter_mode(cuda.filter_mode.LINEAR)
    reference.set_flags(cuda.TRSF_NORMALIZED_COORDINATES)
    expect_equal(reference.get_filter_mode(), cuda.filter_mode.LINEAR)
    expect_equal(reference.get_flags(), cuda.TRSF_NORMALIZED_COORDINATES)
    reference.set_format(cuda.array_format.FLOAT, 1)
    memory = cuda.mem_alloc(4096)
    expect_equal(reference.set_address(memory, 4096), 0)


def test_a_module_and_its_variables_are_loaded():
    module = cuda.module_from_buffer(images.TEXT.encode())
    function = module.get_function("add")
    expect(function.get_attribute(cuda.function_attribute.MAX_THREADS_PER_BLOCK) > 0)
    address, size = module.get_global("table")
    back = numpy.zeros(4, dtype=numpy.uint64)
    cuda.memcpy_dtoh(back, address)
    expect_equal((size, back.tolist()), (32, [1, 2, 3, 4]))
    raises(cuda.LogicError, module.get_function, "missing")


def test_kernels_are_launched_by_the_old_interface():
    module = cuda.module_from_buffer(images.TEXT.encode())
    address, _ = module.get_global("counter")
    module.get_function("count")(block=(32, 1, 1), grid=(2, 1))
    back = numpy.zeros(1, dtype=numpy.uint32)
    cuda.memcpy_dtoh(back, address)
    expect_equal(back.tolist(), [41 + 64])
    refused = cuda.module_from_buffer(images.REFUSED.encode()).get_function("fences")
    error = raises(cuda.Error, refused, block=(128, 1, 1), grid=(1, 1))
    expect("supported" in str(error), str(error))


def importer(handle, answers):
    context = cuda.Device(0).retain_primary_context()
    context.push()
    memory = cuda.IPCMemoryHandle(bytearray(handle))
    back = numpy.zeros(64, dtype=numpy.uint8)
    cuda.memcpy_dtoh(back, int(memory))
    answers.put(back.tolist())
    memory.close()
    context.pop()


def test_memory_is_shared_with_a_spawned_process():
    memory = cuda.mem_alloc(1 << 20)
    cuda.memset_d8(memory, 9, 1 << 20)
    spawn = multiprocessing.get_context("spawn")
    answers = spawn.Queue()
    child = spawn.Process(target=importer, args=(bytes(cuda.mem_get_ipc_handle(memory)), answers))
    child.start()
    expect_equal(answers.get(timeout=40), [9] * 64)
    child.join(40)
    expect_equal(child.exitcode, 0)


if __name__ == "__main__":
    print(f"# pycuda {pycuda.VERSION_TEXT}")
    try:
        main(globals())
    finally:
        CONTEXT.pop()
