// Resources as CCCL's: its concepts, its type-erased resources and its buffer, on softgpu.
#include <array>
#include <cstdio>
#include <cstring>
#include <cuda/buffer>
#include <cuda/devices>
#include <cuda/memory_resource>
#include <cuda/stream>
#include <gpumem/cpp/cuda_mr.hpp>
#include <gpumem/gpumem.hpp>
#include <span>

namespace {

using cuda::mr::device_accessible;
using cuda::mr::host_accessible;
using on_device = gpumem::cuda_mr_resource<device_accessible>;
using on_both = gpumem::cuda_mr_resource<device_accessible, host_accessible>;
static_assert(cuda::mr::resource_with<on_device, device_accessible>);
static_assert(!cuda::mr::synchronous_resource_with<on_device, host_accessible>);
static_assert(cuda::mr::resource_with<on_both, device_accessible, host_accessible>);

int number = 0, wrong = 0;

void tell(bool good, const char *what) {
    std::printf("%s %d - %s\n", good ? "ok" : "not ok", ++number, what);
    wrong += !good;
}

std::uint64_t allocations(gpumem::resource_ref memory) {
    return memory.stats().allocations;
}

template <class Adaptor> bool refuses(gpumem::resource_ref memory) {
    try {
        (void)Adaptor(memory);
    } catch (const gpumem::error &why) {
        return why.status() == GPUMEM_ERROR_INVALID_ARGUMENT && std::strstr(why.message(), "CPU");
    }
    return false;
}

void is_a_resource_of_any_kind(gpumem::resource_ref memory, cuda::stream_ref stream) {
    cuda::mr::any_resource<device_accessible> any{on_device(memory)};
    void *ordered = any.allocate(stream, 1000, 512), *plain = any.allocate_sync(64, 16);
    tell(allocations(memory) == 2 && reinterpret_cast<std::uintptr_t>(ordered) % 512 == 0,
         "any_resource allocates from the resource, aligned");
    any.deallocate(stream, ordered, 1000, 512);
    any.deallocate_sync(plain, 64, 16);
    tell(any == cuda::mr::any_resource<device_accessible>(on_device(memory)),
         "equal over one resource");
    on_device itself(memory);
    cuda::mr::resource_ref<device_accessible> ref{itself};
    ref.deallocate(stream, ref.allocate(stream, 4096, 256), 4096, 256);
    tell(allocations(memory) == 0, "what is given back is freed");
    try {
        (void)ref.allocate(stream, std::size_t{1} << 40, 256);
        tell(false, "an allocation that fails throws");
    } catch (const gpumem::error &why) {
        tell(why.status() == GPUMEM_ERROR_OUT_OF_MEMORY, "an allocation that fails throws");
    }
}

void holds_a_buffer_of_cccls(gpumem::resource_ref memory, cuda::stream_ref stream) {
    const std::array<int, 5> numbers{1, 2, 3, 4, 5};
    std::array<int, 5> back{};
    {
        auto buffer = cuda::make_buffer<int>(stream, on_device(memory), numbers);
        gpumem::buffer seen = gpumem::buffer_from_pointer(
            memory.device(), reinterpret_cast<CUdeviceptr>(buffer.data()), sizeof back);
        stream.sync();
        seen.read(0, std::as_writable_bytes(std::span(back)));
        gpumem::stream_ref(memory.device()).synchronize();
        tell(back == numbers && allocations(memory) == 1,
             "a cuda::buffer has its numbers in the resource");
        auto larger = cuda::make_buffer<int>(stream, on_device(memory), 1000, 7);
        tell(allocations(memory) == 2 && larger.size() == 1000, "and is filled");
    }
    stream.sync();
    tell(allocations(memory) == 0, "and frees it, in the order of its stream");
}

void the_cpu_reads_what_it_may(gpumem::resource_ref memory, cuda::stream_ref stream) {
    auto buffer = cuda::make_buffer<int>(stream, on_both(memory), 100, 7);
    stream.sync();
    tell(buffer.data()[99] == 7, "the CPU reads a buffer of memory for both");
}

} // namespace

int main() {
    gpumem::library library = gpumem::library::open();
    gpumem::device device = gpumem::device::open(library, 0);
    cuda::stream stream{cuda::devices[0]};
    gpumem::resource pool = gpumem::device_pool_resource(device);
    gpumem::resource pinned = gpumem::pinned_resource(device);
    gpumem::resource managed = gpumem::managed_resource(device);
    gpumem::resource mapped = gpumem::mapped_resource(device);
    for (const gpumem::resource *memory : {&pool, &mapped, &managed}) {
        is_a_resource_of_any_kind(*memory, stream);
        holds_a_buffer_of_cccls(*memory, stream);
    }
    the_cpu_reads_what_it_may(pinned, stream);
    the_cpu_reads_what_it_may(managed, stream);
    tell(refuses<on_both>(pool), "host_accessible is refused for a device pool");
    tell(refuses<on_both>(mapped), "and for memory that the CPU has at another address");
    std::printf("1..%d\n", number);
    return wrong != 0;
}
