/*
 * A resource as one of CCCL's, NVIDIA's C++ core libraries: it models cuda::mr::resource, for
 * cuda::buffer and whatever else takes one. Needs CCCL 3 or later (cuda/memory_resource), which
 * does not come with gpumem, and exceptions; any C++ compiler will do. Not part of gpumem.hpp.
 *
 *     auto numbers = cuda::make_buffer<int>(
 *         stream, gpumem::cuda_mr_resource<cuda::mr::device_accessible>(memory), 1000, 7);
 */
#ifndef GPUMEM_CPP_CUDA_MR_HPP
#define GPUMEM_CPP_CUDA_MR_HPP

#if !__has_include(<cuda/memory_resource>)
#error "gpumem/cpp/cuda_mr.hpp needs CCCL: put its include folder on the compiler's path"
#endif

#include <cuda/memory_resource>
#include <gpumem/cpp/resource.hpp>

namespace gpumem {
inline namespace GPUMEM_CPP_MODE {

/*
 * Borrows `memory`, which must outlive it, its copies, and what they allocate. `Properties` are
 * device_accessible, host_accessible or both. Throws gpumem::error: INVALID_ARGUMENT where the
 * memory does not have the property; host_accessible means at the device's address, so mapped
 * memory has it only on coherent platforms (one byte is allocated to see). Equal over the same
 * resource.
 *
 * `allocate` is gpumem_resource_allocate, `deallocate` gpumem_resource_deallocate, in the order of
 * the stream, and allocate_sync names no stream. An allocation that fails throws gpumem::error; of
 * 0 bytes it is NULL. Thread-safe.
 */
template <class... Properties> class cuda_mr_resource {
    template <class Property>
    static constexpr bool has = (std::is_same_v<Property, Properties> || ...);

  public:
    using default_queries = cuda::mr::properties_list<Properties...>;

    explicit cuda_mr_resource(resource_ref memory) : memory_(memory.get()) {
        if (has<cuda::mr::device_accessible> && !memory.properties().device_accessible)
            refuse("device_accessible: the device has no access to this memory");
        if (has<cuda::mr::host_accessible>) {
            const buffer tried = memory.allocate(1, {.stream = GPUMEM_STREAM_NONE});
            if (tried.host_pointer() != reinterpret_cast<void *>(tried.pointer()))
                refuse("host_accessible: the CPU has no access to this memory at the device's "
                       "address");
        }
    }
    void *allocate(cuda::stream_ref stream, std::size_t bytes, std::size_t alignment = 256) {
        const resource_ref memory = memory_;
        return bytes == 0 ? nullptr
                          : reinterpret_cast<void *>(memory.allocate_pointer(
                                bytes, {.stream = stream.get(), .alignment = alignment}));
    }
    void deallocate(cuda::stream_ref stream, void *pointer, std::size_t bytes,
                    std::size_t = 256) noexcept {
        CUstream order = stream.get() ? stream.get() : GPUMEM_STREAM_LEGACY;
        detail::told(gpumem_resource_deallocate(memory_, reinterpret_cast<CUdeviceptr>(pointer),
                                                bytes, order));
    }
    void *allocate_sync(std::size_t bytes, std::size_t alignment = 256) {
        return allocate(cuda::stream_ref(GPUMEM_STREAM_NONE), bytes, alignment);
    }
    void deallocate_sync(void *pointer, std::size_t bytes, std::size_t = 256) noexcept {
        deallocate(cuda::stream_ref(GPUMEM_STREAM_NONE), pointer, bytes);
    }
    friend bool operator==(const cuda_mr_resource &, const cuda_mr_resource &) noexcept = default;
    template <class Property>
    requires has<Property>
    friend constexpr void get_property(const cuda_mr_resource &, Property) noexcept {
    }

  private:
    static void refuse(const char *why) {
        detail::require(gpumem_set_last_error(GPUMEM_ERROR_INVALID_ARGUMENT, why));
    }
    gpumem_resource *memory_;
};

} // namespace GPUMEM_CPP_MODE
} // namespace gpumem

#endif
