/*
 * A resource as a std::pmr::memory_resource, for containers of the standard library in memory that
 * the device can use too: pinned, managed, mapped. Needs exceptions. Not part of gpumem.hpp.
 *
 *     gpumem::pmr_resource shared(pinned);
 *     std::pmr::vector<float> numbers(1000, &shared);
 */
#ifndef GPUMEM_CPP_PMR_HPP
#define GPUMEM_CPP_PMR_HPP

#include <algorithm>
#include <gpumem/cpp/resource.hpp>
#include <memory_resource>
#include <mutex>
#include <unordered_map>

namespace gpumem {
inline namespace GPUMEM_CPP_MODE {

#if GPUMEM_CPP_EXCEPTIONS

/*
 * Borrows `memory`, which must outlive it. The constructor throws gpumem::error, INVALID_ARGUMENT,
 * if the CPU cannot use the memory. Whatever is still allocated at its end is freed then. Equal to
 * itself alone.
 *
 * Each allocation is a buffer that names no stream: work of the device must be done before a
 * container that it uses frees. The addresses are the CPU's; in mapped memory the device may have
 * another one. Throws std::bad_alloc when memory or a limit runs out (gpumem_last_error says more),
 * gpumem::error for other failures. Thread-safe, with a lock of its own.
 */
class pmr_resource : public std::pmr::memory_resource {
  public:
    explicit pmr_resource(resource_ref memory) : memory_(memory) {
        if (!memory.properties().host_accessible)
            detail::require(gpumem_set_last_error(
                GPUMEM_ERROR_INVALID_ARGUMENT,
                "a container's memory must be accessible to the CPU: pinned, managed or mapped"));
    }

  private:
    void *do_allocate(std::size_t bytes, std::size_t alignment) override {
        result<buffer> made =
            memory_.try_allocate(std::max<std::size_t>(bytes, 1),
                                 {.stream = GPUMEM_STREAM_NONE, .alignment = alignment});
        if (!made && made.error().status() >= GPUMEM_ERROR_OUT_OF_MEMORY &&
            made.error().status() <= GPUMEM_ERROR_OUT_OF_CAPACITY)
            throw std::bad_alloc();
        buffer taken = or_throw(std::move(made));
        void *const pointer = taken.host_pointer();
        const std::lock_guard<std::mutex> locked(lock_);
        buffers_.emplace(pointer, std::move(taken));
        return pointer;
    }
    void do_deallocate(void *pointer, std::size_t, std::size_t) override {
        const std::lock_guard<std::mutex> locked(lock_);
        buffers_.erase(pointer);
    }
    bool do_is_equal(const std::pmr::memory_resource &other) const noexcept override {
        return this == &other;
    }

    const resource_ref memory_;
    std::mutex lock_;
    std::unordered_map<void *, buffer> buffers_;
};

#endif

} // namespace GPUMEM_CPP_MODE
} // namespace gpumem

#endif
