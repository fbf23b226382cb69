"""cuda.core as its users write it: resources, streams, events, graphs, textures, sharing."""
import ctypes
import multiprocessing
import os
import tempfile

import cuda.core
from cuda.core import (Buffer, Device, DeviceMemoryResource, DeviceMemoryResourceOptions,
                       EventOptions, GraphMemoryResource, LegacyPinnedMemoryResource, Linker,
                       LinkerOptions, ManagedMemoryResource, ObjectCode, PinnedMemoryResource,
                       PinnedMemoryResourceOptions, VirtualMemoryResource,
                       VirtualMemoryResourceOptions, LaunchConfig, launch)
from cuda.core import graph as graphs
from cuda.core import texture as textures

import images
from tap import Skip, expect, expect_equal, main, raises

SIZE = 1 << 20


def begin():
    device = Device(0)
    device.set_current()
    return device, device.create_stream()


def host_view(buffer):
    return (ctypes.c_ubyte * buffer.size).from_address(int(buffer.handle))


def read_back(buffer, stream):
    """The bytes of a device buffer, through pinned memory."""
    pinned = LegacyPinnedMemoryResource().allocate(buffer.size, stream=stream)
    buffer.copy_to(pinned, stream=stream)
    stream.sync()
    data = bytes(host_view(pinned))
    pinned.close(stream)
    return data


def test_device_properties_are_queried():
    device, _ = begin()
    expect_equal(device.name, "NVIDIA H200")
    expect_equal(tuple(device.compute_capability), (9, 0))
    expect(device.properties.multiprocessor_count > 0)
    expect_equal(len(Device.get_all_devices()), 1)
    expect_equal(len(device.uuid), 36)


def test_calls_of_the_runtime_inside_are_answered():
    device, stream = begin()
    buffer = device.allocate(SIZE, stream=stream)
    buffer.fill(1, stream=stream)
    device.sync()
    expect(stream.is_done if hasattr(stream, "is_done") else True)
    expect_equal(len(device.pci_bus_id.split(":")), 3)
    buffer.close(stream)


def test_the_device_pool_allocates_and_copies():
    device, stream = begin()
    first = device.allocate(SIZE, stream=stream)
    first.fill(0x5a, stream=stream)
    second = device.allocate(SIZE, stream=stream)
    first.copy_to(second, stream=stream)
    expect_equal(read_back(second, stream), b"\x5a" * SIZE)
    first.close(stream)
    second.close(stream)
    stream.sync()


def test_a_pool_does_not_exceed_its_maximum_size():
    device, stream = begin()
    pool = DeviceMemoryResource(device, DeviceMemoryResourceOptions(max_size=64 << 20))
    buffer = pool.allocate(32 << 20, stream=stream)
    expect(pool.attributes.used_mem_current >= 32 << 20)
    raises(Exception, pool.allocate, 128 << 20, stream=stream)
    buffer.close(stream)
    stream.sync()
    pool.close()


def test_pinned_memory_is_visible_to_the_device():
    _, stream = begin()
    resource = PinnedMemoryResource()
    buffer = resource.allocate(4096, stream=stream)
    stream.sync()
    expect(buffer.is_host_accessible and buffer.is_device_accessible)
    host_view(buffer)[17] = 9
    expect_equal(read_back(buffer, stream)[17], 9)
    buffer.close(stream)
    stream.sync()


def test_managed_memory_is_shared_and_prefetched():
    device, stream = begin()
    resource = ManagedMemoryResource()
    buffer = resource.allocate(SIZE, stream=stream)
    stream.sync()
    expect(buffer.is_managed)
    host_view(buffer)[3] = 77
    expect_equal(read_back(buffer, stream)[3], 77)
    buffer.fill(1, stream=stream)
    stream.sync()
    expect_equal(host_view(buffer)[SIZE - 1], 1)
    buffer.prefetch(device, stream=stream)
    stream.sync()
    buffer.close(stream)
    stream.sync()


def test_a_virtual_memory_buffer_grows():
    device, stream = begin()
    resource = VirtualMemoryResource(device, VirtualMemoryResourceOptions())
    buffer = resource.allocate(2 << 20)
    buffer.fill(0x11, stream=stream)
    stream.sync()
    grown = resource.modify_allocation(buffer, 8 << 20)
    expect(grown.size >= 8 << 20)
    expect_equal(read_back(grown, stream)[:2 << 20], b"\x11" * (2 << 20))
    grown.close()


def test_events_order_and_time_streams():
    device, stream = begin()
    other = device.create_stream()
    options = EventOptions(timing_enabled=True)
    first, last = device.create_event(options), device.create_event(options)
    stream.record(first)
    buffer = device.allocate(SIZE, stream=stream)
    buffer.fill(1, stream=stream)
    stream.record(last)
    other.wait(last)
    other.sync()
    expect(last.is_done)
    expect(last - first >= 0)
    buffer.close(stream)
    stream.sync()


def test_a_captured_graph_runs():
    device, stream = begin()
    source = device.allocate(4096, stream=stream)
    target = device.allocate(4096, stream=stream)
    source.fill(0x21, stream=stream)
    target.fill(0, stream=stream)
    stream.sync()
    builder = device.create_graph_builder().begin_building()
    source.copy_to(target, stream=builder)
    graph = builder.end_building().complete()
    expect_equal(read_back(target, stream)[0], 0)
    graph.upload(stream)
    graph.launch(stream)
    expect_equal(read_back(target, stream), b"\x21" * 4096)
    graph.close()
    builder.close()


def test_an_explicitly_defined_graph_runs():
    device, stream = begin()
    target = device.allocate(4096, stream=stream)
    target.fill(0, stream=stream)
    stream.sync()
    called = []
    definition = graphs.GraphDefinition()
    node = definition.memset(target, 0x42, 4096)
    node.callback(lambda: called.append(1))
    expect_equal(len(definition.nodes()), 2)
    expect_equal(len(definition.edges()), 1)
    graph = definition.instantiate()
    graph.launch(stream)
    stream.sync()
    expect_equal(called, [1])
    expect_equal(read_back(target, stream), b"\x42" * 4096)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "graph.dot")
        definition.debug_dot_print(path)
        with open(path, encoding="utf-8") as file:
            expect("digraph" in file.read())


def test_a_graph_splits_and_joins():
    device, stream = begin()
    left = device.allocate(4096, stream=stream)
    right = device.allocate(4096, stream=stream)
    stream.sync()
    builder = device.create_graph_builder().begin_building()
    one, two = builder.split(2)
    left.fill(1, stream=one)
    right.fill(2, stream=two)
    joined = graphs.GraphBuilder.join(one, two)
    graph = joined.end_building().complete()
    graph.launch(stream)
    expect_equal((read_back(left, stream)[9], read_back(right, stream)[9]), (1, 2))


def test_a_graph_allocates_memory():
    device, stream = begin()
    resource = GraphMemoryResource(device)
    target = device.allocate(4096, stream=stream)
    stream.sync()
    builder = device.create_graph_builder().begin_building()
    scratch = resource.allocate(4096, stream=builder)
    scratch.fill(0x66, stream=builder)
    scratch.copy_to(target, stream=builder)
    scratch.close(builder)
    graph = builder.end_building().complete()
    graph.launch(stream)
    expect_equal(read_back(target, stream), b"\x66" * 4096)
    graph.close()


def test_an_image_and_its_kernels_are_loaded():
    begin()
    code = ObjectCode.from_ptx(images.TEXT.encode())
    kernel = code.get_kernel("add")
    expect_equal(kernel.num_arguments, 4)
    expect_equal([(info.offset, info.size) for info in kernel.arguments_info],
                 [(0, 8), (8, 8), (16, 4), (32, 32)])
    expect(kernel.attributes.max_threads_per_block > 0)
    expect(kernel.occupancy.max_active_blocks_per_multiprocessor(128, 0) > 0)
    expect(code.get_kernel("nothing").num_arguments == 0)


def test_a_kernel_is_launched():
    _, stream = begin()
    kernel = ObjectCode.from_ptx(images.TEXT.encode()).get_kernel("nothing")
    launch(stream, LaunchConfig(grid=1, block=32), kernel)
    stream.sync()


def test_an_unsupported_kernel_is_refused_at_launch():
    """On softgpu; hardware runs it."""
    _, stream = begin()
    kernel = ObjectCode.from_ptx(images.REFUSED.encode()).get_kernel("fences")
    error = raises(Exception, launch, stream, LaunchConfig(grid=1, block=128), kernel)
    expect("NOT_SUPPORTED" in str(error), str(error))


def test_the_driver_links_ptx():
    begin()
    linker = Linker(ObjectCode.from_ptx(images.TEXT.encode()), options=LinkerOptions(arch="sm_90"))
    if Linker.which_backend() != "driver":
        raise Skip("cuda.core links with nvJitLink here, not with the driver")
    expect(linker.link("cubin").get_kernel("nothing") is not None)


def test_textures_and_surfaces_are_created():
    device, stream = begin()
    array = device.create_opaque_array(textures.OpaqueArrayOptions(
        shape=(16, 8), format="float32", num_channels=1, is_surface_load_store=True))
    data = bytearray(bytes(range(64)) * 8)
    array.copy_from(data, stream=stream)
    back = bytearray(len(data))
    array.copy_to(back, stream=stream)
    stream.sync()
    expect_equal(back, data)
    resource = textures.ResourceDescriptor.from_opaque_array(array)
    texture = device.create_texture_object(resource=resource)
    surface = device.create_surface_object(resource=resource)
    expect(texture.handle and surface.handle)
    texture.close()
    surface.close()
    array.close()


def test_a_green_context_runs_streams():
    device, _ = begin()
    groups, _rest = device.resources.sm.split(cuda.core.SMResourceOptions(count=16))
    context = device.create_context(cuda.core.ContextOptions(resources=groups))
    before = device.set_current(context)
    stream = device.create_stream()
    stream.sync()
    stream.close()
    device.set_current(before)


def importer(pool, buffer, answers):
    device, stream = begin()
    data = read_back(buffer, stream)
    buffer.fill(0x78, stream=stream)
    stream.sync()
    answers.put((data[:16], pool.is_mapped, device.name))
    buffer.close(stream)
    stream.sync()


def test_a_pool_is_shared_with_a_spawned_process():
    device, stream = begin()
    pool = DeviceMemoryResource(device, DeviceMemoryResourceOptions(ipc_enabled=True,
                                                                    max_size=64 << 20))
    buffer = pool.allocate(4096, stream=stream)
    buffer.fill(0x34, stream=stream)
    stream.sync()
    spawn = multiprocessing.get_context("spawn")
    answers = spawn.Queue()
    child = spawn.Process(target=importer, args=(pool, buffer, answers))
    child.start()
    expect_equal(answers.get(timeout=40), (b"\x34" * 16, True, "NVIDIA H200"))
    child.join(40)
    expect_equal(child.exitcode, 0)
    expect_equal(read_back(buffer, stream), b"\x78" * 4096)
    buffer.close(stream)
    stream.sync()
    pool.close()


def test_a_shareable_pinned_pool_allocates():
    _, stream = begin()
    pool = PinnedMemoryResource(PinnedMemoryResourceOptions(ipc_enabled=True))
    buffer = pool.allocate(4096, stream=stream)
    stream.sync()
    host_view(buffer)[0] = 5
    expect_equal(read_back(buffer, stream)[0], 5)
    buffer.close(stream)
    stream.sync()
    pool.close()


def test_a_buffer_is_made_from_a_foreign_pointer():
    device, stream = begin()
    owner = device.allocate(4096, stream=stream)
    view = Buffer.from_handle(int(owner.handle), 4096, owner=owner)
    view.fill(3, stream=stream)
    expect_equal(read_back(owner, stream)[5], 3)


if __name__ == "__main__":
    print(f"# cuda.core {cuda.core.__version__}")
    main(globals())
