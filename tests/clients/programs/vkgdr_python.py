"""gpumem.vkgdr, and the distribution that has the name vkgdr: what vkgdr's own programs use, each line
of its reference, and the interfaces that are more than that."""
import gc
import inspect
import os
import subprocess
import sys
import weakref

import numpy
import pycuda.driver as cuda
import vkgdr
import vkgdr.pycuda

import gpumem.vkgdr
import gpumem.vkgdr.pycuda
import tap
import vkgdr_client
from tap import expect, expect_equal, raises
from vkgdr_client import host_of, pattern, read_device

CONTEXT = vkgdr_client.CONTEXT
SIZE = 5000


def opened(flags=0):
    return vkgdr.Vkgdr.open_current_context(flags)


def test_the_vkgdr_package_is_an_alias_of_gpumem_vkgdr():
    for name in ("OpenFlags", "RawMemory", "Vkgdr", "VkgdrError"):
        expect(getattr(vkgdr, name) is getattr(gpumem.vkgdr, name), name)
    expect(vkgdr.pycuda.Memory is gpumem.vkgdr.pycuda.Memory)


def test_signatures_are_those_of_vkgdr():
    expect_equal(str(inspect.signature(vkgdr.Vkgdr)), "(device: int, flags: int = 0)")
    for kind in vkgdr.RawMemory, vkgdr.pycuda.Memory:
        parameters = inspect.signature(kind.__init__).parameters
        expect_equal(list(parameters), ["self", "owner", "size", "flags"])
        expect_equal(parameters["flags"].default, 0)
    expect_equal(str(inspect.signature(vkgdr.RawMemory.free)), "(self) -> None")
    for name in ("flush", "invalidate"):
        expect_equal(list(inspect.signature(getattr(vkgdr.RawMemory, name)).parameters),
                     ["self", "offset", "size"])


def test_flags_have_vkgdrs_values_and_are_checked():
    expect_equal([int(flag) for flag in vkgdr.OpenFlags], [1, 2, 4])
    expect_equal(vkgdr.OpenFlags(1), vkgdr.OpenFlags.CURRENT_CONTEXT_BIT)
    both = vkgdr.OpenFlags.CURRENT_CONTEXT_BIT | vkgdr.OpenFlags.REQUIRE_COHERENT_BIT
    vkgdr.Vkgdr(77, both)
    raises(vkgdr.VkgdrError, vkgdr.Vkgdr, 77)
    raises(vkgdr.VkgdrError, vkgdr.Vkgdr, 0, 8)
    expect(not vkgdr.RawMemory(vkgdr.Vkgdr(0, 6), 64).is_coherent)


def test_a_subclass_opens_an_instance_of_itself():
    class Other(vkgdr.Vkgdr):
        pass

    expect(type(Other.open_current_context()) is Other)
    expect(type(opened()) is vkgdr.Vkgdr)


def test_invalid_arguments_are_refused():
    handle = opened()
    raises(vkgdr.VkgdrError, vkgdr.RawMemory, handle, 64, 1)
    raises(vkgdr.VkgdrError, vkgdr.RawMemory, handle, 0)
    for size in (-1, 1 << 64):
        raises(OverflowError, vkgdr.RawMemory, handle, size)
    raises(OverflowError, vkgdr.Vkgdr, 1 << 40)
    raises(TypeError, vkgdr.RawMemory, 0, 64)
    raises(TypeError, vkgdr.RawMemory, handle, "64")
    expect(issubclass(vkgdr.VkgdrError, RuntimeError))


def test_memory_keeps_its_owner_alive():
    handle = opened()
    memory = vkgdr.RawMemory(handle, SIZE)
    alive = weakref.ref(handle)
    del handle
    gc.collect()
    expect(alive() is not None)
    host_of(memory)[:] = pattern(SIZE, 1)
    expect(numpy.array_equal(read_device(memory.device_ptr, SIZE), pattern(SIZE, 1)))
    memory.free()
    del memory
    gc.collect()
    expect(alive() is None)


def test_memory_may_be_freed_twice_but_not_used_afterwards():
    memory = vkgdr.RawMemory(opened(), SIZE)
    memory.free()
    memory.free()
    for use in (lambda: memory.device_ptr, lambda: len(memory), lambda: memory.is_coherent,
                lambda: memory.non_coherent_atom_size, lambda: memory.flush(0, 1),
                lambda: memory.invalidate(0, 1), lambda: memory.__array_interface__,
                lambda: memory.__cuda_array_interface__, memory.__dlpack__, memory.as_memoryview):
        raises(ValueError, use)


def test_parts_of_memory_are_flushed_and_invalidated():
    memory = vkgdr.RawMemory(opened(vkgdr.OpenFlags.FORCE_NON_COHERENT_BIT), 1 << 16)
    expect(not memory.is_coherent)
    atom = memory.non_coherent_atom_size
    host_of(memory)[:] = 3
    memory.flush(0, 1 << 16)
    host_of(memory)[atom:3 * atom] = 4
    memory.flush(atom, 2 * atom)
    expect((read_device(memory.device_ptr + atom, 2 * atom) == 4).all())
    cuda.memset_d8(memory.device_ptr, 5, 1 << 16)
    memory.invalidate(0, 1 << 16)
    expect((host_of(memory) == 5).all())
    raises(OverflowError, memory.flush, -1, 1)
    memory.free()
    memory = vkgdr.RawMemory(opened(vkgdr.OpenFlags.REQUIRE_COHERENT_BIT), SIZE)
    expect(memory.is_coherent)
    expect_equal(memory.non_coherent_atom_size, 1)
    memory.free()


def test_a_missing_library_is_named_in_the_error():
    done = subprocess.run([sys.executable, "-c", "import gpumem.vkgdr"], stderr=subprocess.PIPE,
                          text=True, check=False, env=dict(os.environ, GPUMEM_VKGDR="/nowhere/lib.so"))
    last = done.stderr.splitlines()[-1]
    expect_equal(done.returncode, 1)
    expect(last.startswith("ImportError: libvkgdr.so.1") and "/nowhere/lib.so" in last, last)


# ---- Other views of the bytes -------------------------------------------------------------------

def test_memory_has_numpys_array_interface():
    memory = vkgdr.RawMemory(opened(), SIZE)
    interface = memory.__array_interface__
    expect_equal((interface["shape"], interface["typestr"], interface["version"]), ((SIZE,), "|V1", 3))
    expect_equal(interface["data"][1], False)
    expect_equal(numpy.asarray(memory).ctypes.data, interface["data"][0])
    memory.free()


def test_memory_has_the_cuda_array_interface():
    memory = vkgdr.RawMemory(opened(), SIZE)
    interface = memory.__cuda_array_interface__
    expect_equal(interface["data"], (memory.device_ptr, False))
    expect_equal((interface["shape"], interface["typestr"], interface["version"]), ((SIZE,), "|u1", 3))
    memory.free()


def test_memory_supports_the_buffer_protocol():
    memory = vkgdr.RawMemory(opened(), SIZE)
    view = memoryview(memory) if sys.version_info >= (3, 12) else memory.as_memoryview()
    expect_equal((view.nbytes, view.format, view.readonly), (SIZE, "B", False))
    view[:] = pattern(SIZE, 2).tobytes()
    expect(numpy.array_equal(read_device(memory.device_ptr, SIZE), pattern(SIZE, 2)))
    memory.free()


def test_a_view_keeps_the_memory_alive():
    memory = vkgdr.pycuda.Memory(opened(), SIZE)
    pointer, alive = memory.device_ptr, weakref.ref(memory)
    views = [memory.as_memoryview(), numpy.asarray(memory)]
    del memory
    while views:
        gc.collect()
        expect(alive() is not None)
        views[0][:1] = b"x" if isinstance(views[0], memoryview) else views[0][1:2]
        views.pop(0)
    gc.collect()
    expect(alive() is None)
    raises(cuda.LogicError, cuda.memcpy_dtoh, bytearray(16), pointer)


class HostTensor:
    """Asks for the CPU's side, as consumers for the CPU do that know DLPack's newer form."""

    def __init__(self, memory):
        self.memory = memory

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, **more):
        return self.memory.__dlpack__(**{**more, "dl_device": (1, 0)})


def test_memory_is_exchanged_by_dlpack_on_the_cpu():
    memory = vkgdr.pycuda.Memory(opened(), SIZE)
    alive = weakref.ref(memory)
    array = numpy.from_dlpack(HostTensor(memory))
    expect_equal((array.shape, array.dtype), ((SIZE,), numpy.uint8))
    host_of(memory)[:] = pattern(SIZE, 3)
    expect(numpy.array_equal(array, pattern(SIZE, 3)))
    expect_equal(array.ctypes.data, memory.__array_interface__["data"][0])
    del memory
    gc.collect()
    expect(alive() is not None, "the array does not keep the memory")
    del array
    gc.collect()
    expect(alive() is None, "the array's end does not let go of the memory")


def test_memory_is_exchanged_by_dlpack_on_the_device():
    memory = vkgdr.RawMemory(opened(), SIZE)
    expect_equal(memory.__dlpack_device__(), (2, 0))
    references = sys.getrefcount(memory)
    for more in ({}, {"max_version": (1, 0)}, {"max_version": (0, 8)}, {"stream": 1},
                 {"dl_device": (2, 0), "copy": False}):
        capsule = memory.__dlpack__(**more)
        versioned = more.get("max_version", (0,))[0] >= 1
        expect('"dltensor_versioned"' in repr(capsule) if versioned else '"dltensor"' in repr(capsule),
               repr(capsule))
        expect(sys.getrefcount(memory) > references)
        del capsule
        expect_equal(sys.getrefcount(memory), references)
    raises(BufferError, memory.__dlpack__, copy=True)
    raises(BufferError, memory.__dlpack__, dl_device=(2, 1))
    memory.free()


# Consumers that the interpreter ends after the module, in places that it clears late.
LAST_ONES = """
import atexit, builtins, sys, threading
import numpy, pycuda.driver as cuda, vkgdr, vkgdr.pycuda
cuda.init()
context = cuda.Device(0).retain_primary_context()
context.push()
atexit.register(context.pop)

class HostTensor:
    def __init__(self, memory):
        self.memory = memory
    def __dlpack_device__(self):
        return (1, 0)
    def __dlpack__(self, **more):
        return self.memory.__dlpack__(**{**more, "dl_device": (1, 0)})

handle = vkgdr.Vkgdr.open_current_context()
def array():
    return numpy.from_dlpack(HostTensor(vkgdr.RawMemory(handle, 100)))
builtins.kept = [array(), vkgdr.RawMemory(handle, 100).__dlpack__()]
sys.kept = [array(), vkgdr.RawMemory(handle, 100).__dlpack__(max_version=(1, 0))]
threading.kept = [array(), vkgdr.RawMemory(handle, 1 << 20).as_memoryview()]
numpy.kept = [array() for _ in range(1000)]
"""


def test_dlpack_consumers_may_outlive_the_module():
    done = subprocess.run([sys.executable, "-c", LAST_ONES], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False)
    expect_equal((done.returncode, done.stdout), (0, ""))


# ---- Forks --------------------------------------------------------------------------------------

def in_child(body):
    """What a forked child writes on standard error, and its exit status."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(write, 2)
        try:
            body()
            os._exit(0)
        except BaseException as error:  # the child must not return
            os.write(2, repr(error).encode())
            os._exit(1)
    os.close(write)
    with open(read, encoding="utf-8") as output:
        text = output.read()
    return text, os.waitpid(child, 0)[1]


def test_a_forked_child_does_not_free_its_parents_memory():
    handle = opened()
    raw = vkgdr.RawMemory(handle, SIZE)
    kept = [vkgdr.pycuda.Memory(handle, SIZE), vkgdr.pycuda.Memory(handle, 1 << 20)]
    for memory in (raw, *kept):
        host_of(memory)[:SIZE] = pattern(SIZE, 5)

    def use():
        for wrong in (lambda: vkgdr.Vkgdr(0), lambda: vkgdr.RawMemory(handle, 64)):
            expect("parent" in str(raises(vkgdr.VkgdrError, wrong)))
        raw.free()
        kept.pop().free()
        kept.clear()
        gc.collect()

    expect_equal(in_child(use), ("", 0))
    for memory in (raw, *kept):
        expect(numpy.array_equal(read_device(memory.device_ptr, SIZE), pattern(SIZE, 5)))
    raw.free()


# ---- vkgdr.pycuda -------------------------------------------------------------------------------

def test_pycuda_memory_is_raw_memory_and_a_pointer_holder():
    expect_equal(vkgdr.pycuda.Memory.__bases__, (cuda.PointerHolderBase, vkgdr.RawMemory))
    memory = vkgdr.pycuda.Memory(opened(), SIZE)
    expect_equal(int(memory), memory.device_ptr)
    expect_equal(memory.get_pointer(), memory.device_ptr)
    back = numpy.empty(SIZE, numpy.uint8)
    host_of(memory)[:] = pattern(SIZE, 4)
    cuda.memcpy_dtoh(back, memory)
    expect(numpy.array_equal(back, pattern(SIZE, 4)))
    memory.free()
    memory.free()


def test_pycuda_memory_is_freed_in_its_own_context():
    other = cuda.Device(0).make_context()
    memory = vkgdr.pycuda.Memory(opened(), SIZE)
    large = vkgdr.pycuda.Memory(opened(), 1 << 20)
    pointers = memory.device_ptr, large.device_ptr
    other.pop()
    expect(cuda.Context.get_current() == CONTEXT)
    memory.free()
    del large
    gc.collect()
    expect(cuda.Context.get_current() == CONTEXT, "another context is left current")
    other.push()
    for pointer in pointers:
        raises(cuda.LogicError, cuda.memcpy_dtoh, bytearray(16), pointer)
    other.pop()
    other.detach()


def test_pycuda_memory_needs_a_context():
    handle = opened()
    CONTEXT.pop()
    try:
        error = raises(vkgdr.VkgdrError, vkgdr.pycuda.Memory, handle, SIZE)
    finally:
        CONTEXT.push()
    expect_equal(str(error), "no current CUDA context")


def test_memory_in_a_reference_cycle_is_collected():
    class Holder:
        pass

    handle = opened()
    holder = Holder()
    holder.memory, holder.handle, holder.self = vkgdr.pycuda.Memory(handle, SIZE), handle, holder
    pointer = holder.memory.device_ptr
    del handle, holder
    gc.collect()
    raises(cuda.LogicError, cuda.memcpy_dtoh, bytearray(16), pointer)


if __name__ == "__main__":
    try:
        tap.main({**vars(vkgdr_client), **globals()})
    finally:
        CONTEXT.pop()
