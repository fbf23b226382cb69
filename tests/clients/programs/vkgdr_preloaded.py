"""vkgdr's wheel with this project's library preloaded: all that it does beside its own library, and
what that one does not do."""
import vkgdr
from vkgdr import OpenFlags

import tap
import vkgdr_client
from tap import expect, expect_equal, raises


def test_the_library_is_ours():
    handle = vkgdr.Vkgdr.open_current_context()
    error = raises(vkgdr.VkgdrError, vkgdr.RawMemory, handle, 0)
    expect_equal(str(error), "vkgdr_memory_alloc: 0 bytes were requested")


def test_flags_that_exclude_one_another():
    error = raises(vkgdr.VkgdrError, vkgdr.Vkgdr, 0,
                   OpenFlags.REQUIRE_COHERENT_BIT | OpenFlags.FORCE_NON_COHERENT_BIT)
    expect("cannot be required" in str(error), str(error))
    expect(str(raises(vkgdr.VkgdrError, vkgdr.Vkgdr, 0, 8)).endswith("unknown flags 0x8"))


def test_small_buffers_lie_side_by_side():
    handle = vkgdr.Vkgdr.open_current_context()
    buffers = [vkgdr.RawMemory(handle, 64) for _ in range(1000)]
    pointers = sorted(memory.device_ptr for memory in buffers)
    expect_equal({b - a for a, b in zip(pointers, pointers[1:])}, {256})
    for memory in buffers:
        memory.free()


if __name__ == "__main__":
    try:
        tap.main({**vars(vkgdr_client), **globals()})
    finally:
        vkgdr_client.CONTEXT.pop()
