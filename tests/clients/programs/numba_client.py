"""numba-cuda's driver layer: arrays, mapped and pinned memory, streams, events, sharing.

Its kernels need the compiler's libraries and an engine; what is tried here is what host code does.
"""
import multiprocessing

import numba_cuda
import numpy
from numba import cuda
from numba.cuda.cudadrv.driver import driver

import images
from tap import expect, expect_equal, main, raises


def test_device_properties_are_queried():
    # cuda.is_available() asks for the compiler's library, too.
    expect(driver.is_available)
    device = cuda.get_current_device()
    expect_equal(device.compute_capability, (9, 0))
    expect_equal(len(cuda.gpus), 1)
    free, total = cuda.current_context().get_memory_info()
    expect(0 < free <= total)


def test_arrays_are_copied_to_the_device_and_back():
    data = numpy.arange(10000, dtype=numpy.float32).reshape(100, 100)
    array = cuda.to_device(data)
    expect(numpy.array_equal(array.copy_to_host(), data))
    expect(numpy.array_equal(array[10:20].copy_to_host(), data[10:20]))
    other = cuda.device_array_like(array)
    other.copy_to_device(array)
    expect(numpy.array_equal(other.copy_to_host(), data))


def test_asynchronous_copies_run_in_streams():
    stream = cuda.stream()
    data = cuda.pinned_array(4096, dtype=numpy.uint8)
    data[:] = 7
    array = cuda.to_device(data, stream=stream)
    back = cuda.pinned_array(4096, dtype=numpy.uint8)
    array.copy_to_host(back, stream=stream)
    stream.synchronize()
    expect((back == 7).all())
    with stream.auto_synchronize():
        array.copy_to_host(back, stream=stream)


def test_events_measure_elapsed_time():
    first, last = cuda.event(), cuda.event()
    stream = cuda.stream()
    first.record(stream)
    last.record(stream)
    last.synchronize()
    expect(last.query())
    expect(cuda.event_elapsed_time(first, last) >= 0)


def test_mapped_and_pinned_arrays_are_created():
    data = cuda.mapped_array(1024, dtype=numpy.int32)
    data[:] = 5
    expect_equal(int(data.sum()), 5 * 1024)
    with cuda.pinned(numpy.zeros(4096)):
        pass


def test_managed_arrays_are_read_and_written_by_the_host():
    data = cuda.managed_array(1024, dtype=numpy.int32)
    data[:] = 6
    cuda.current_context().synchronize()
    expect_equal(int(data.sum()), 6 * 1024)


def test_a_memset_sets_device_memory():
    array = cuda.device_array(4096, dtype=numpy.uint8)
    cuda.cudadrv.driver.device_memset(array, 0x5c, 4096)
    expect((array.copy_to_host() == 0x5c).all())


def test_an_image_and_its_variables_are_loaded():
    context = cuda.current_context()
    module = context.create_module_ptx(images.TEXT)
    function = module.get_function("add")
    expect(function.attrs.maxthreads > 0)
    expect(context.get_max_potential_block_size is not None)
    pointer, size = module.get_global_symbol("table")
    expect_equal(size, 32)
    expect(pointer is not None)


def importer(handle, answers):
    with handle as array:
        answers.put(array.copy_to_host()[:4].tolist())


def test_memory_is_shared_with_a_spawned_process():
    array = cuda.to_device(numpy.arange(1024, dtype=numpy.int32))
    handle = array.get_ipc_handle()
    spawn = multiprocessing.get_context("spawn")
    answers = spawn.Queue()
    child = spawn.Process(target=importer, args=(handle, answers))
    child.start()
    expect_equal(answers.get(timeout=40), [0, 1, 2, 3])
    child.join(40)
    expect_equal(child.exitcode, 0)


def test_a_refused_allocation_raises_an_error():
    raises(cuda.cudadrv.driver.CudaAPIError, cuda.current_context().memalloc, 1 << 60)


if __name__ == "__main__":
    print(f"# numba-cuda {numba_cuda.__version__}")
    main(globals())
