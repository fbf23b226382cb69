"""vkgdr's wheel with this project's library preloaded: all that it does beside its own library, and
what that one does not do."""
import os

import numpy
import vkgdr
from vkgdr import OpenFlags

import tap
import vkgdr_client
from tap import expect, expect_equal, raises


def test_the_preloaded_library_is_used():
    handle = vkgdr.Vkgdr.open_current_context()
    error = raises(vkgdr.VkgdrError, vkgdr.RawMemory, handle, 0)
    expect_equal(str(error), "vkgdr_memory_alloc: 0 bytes were requested")


def test_both_flags_of_coherence_open_and_unknown_ones_are_refused():
    vkgdr.Vkgdr(0, OpenFlags.REQUIRE_COHERENT_BIT | OpenFlags.FORCE_NON_COHERENT_BIT)
    expect(str(raises(vkgdr.VkgdrError, vkgdr.Vkgdr, 0, 8)).endswith("unknown flags 0x8"))


def test_small_buffers_are_allocated_contiguously():
    handle = vkgdr.Vkgdr.open_current_context()
    buffers = [vkgdr.RawMemory(handle, 64) for _ in range(1000)]
    pointers = sorted(memory.device_ptr for memory in buffers)
    expect_equal({b - a for a, b in zip(pointers, pointers[1:])}, {256})
    for memory in buffers:
        memory.free()


def test_a_forked_child_does_not_free_its_parents_memory():
    handle = vkgdr.Vkgdr.open_current_context()
    buffers = [vkgdr.RawMemory(handle, size) for size in (64, 1 << 20)]
    for memory in buffers:
        vkgdr_client.host_of(memory)[:64] = vkgdr_client.pattern(64, 1)
    child = os.fork()
    if child == 0:
        texts = [str(raises(vkgdr.VkgdrError, vkgdr.Vkgdr, 0)),
                 str(raises(vkgdr.VkgdrError, vkgdr.RawMemory, handle, 64))]
        for memory in buffers:
            memory.free()
        os._exit(0 if all("parent" in text for text in texts) else 1)
    expect_equal(os.waitpid(child, 0)[1], 0)
    for memory in buffers:
        expect(numpy.array_equal(vkgdr_client.read_device(memory.device_ptr, 64),
                                 vkgdr_client.pattern(64, 1)))
        memory.free()


if __name__ == "__main__":
    try:
        tap.main({**vars(vkgdr_client), **globals()})
    finally:
        vkgdr_client.CONTEXT.pop()
