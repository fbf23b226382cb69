/*
 * Rings of chunks that the CPU fills and the device reads. Contracts: gpumem/ring.h, under the C
 * call of the same name.
 */
#ifndef GPUMEM_CPP_RING_HPP
#define GPUMEM_CPP_RING_HPP

#include <gpumem/cpp/resource.hpp>
#include <gpumem/ring.h>
#include <span>

namespace gpumem {
inline namespace GPUMEM_CPP_MODE {

/* Owns a ring. Destroy it before the resource of its memory. */
class ring : public owner<ring, borrowed<gpumem_ring>> {
  public:
    /* For timeouts: no limit. */
    static constexpr int no_limit = -1;

    static result<ring> try_create(resource_ref resource, const ring_options &options) noexcept {
        const gpumem_ring_options in_c = detail::in_c(options);
        return detail::created<ring>(
            [&](auto *made) { return gpumem_ring_create(resource.get(), &in_c, made); });
    }
    /* `bytes` of 0: the ring's chunk_bytes. */
    result<gpumem_ring_chunk> try_acquire(std::size_t bytes = 0,
                                          int timeout_ms = no_limit) const noexcept {
        return detail::fetched<gpumem_ring_chunk>(
            [&](auto *chunk) { return gpumem_ring_acquire(get(), bytes, timeout_ms, chunk); });
    }
    result<void> try_write(std::uint64_t sequence, std::size_t offset,
                           std::span<const std::byte> from) const noexcept {
        return detail::checked(
            gpumem_ring_write(get(), sequence, offset, from.data(), from.size()));
    }
    result<void> try_flush(std::uint64_t sequence, std::size_t offset,
                           std::size_t bytes) const noexcept {
        return detail::checked(gpumem_ring_flush(get(), sequence, offset, bytes));
    }
    result<void> try_commit(std::uint64_t sequence, std::size_t bytes) const noexcept {
        return detail::checked(gpumem_ring_commit(get(), sequence, bytes));
    }
    result<void> try_abandon(std::uint64_t sequence) const noexcept {
        return detail::checked(gpumem_ring_abandon(get(), sequence));
    }
    result<gpumem_ring_chunk> try_consume(int timeout_ms = no_limit) const noexcept {
        return detail::fetched<gpumem_ring_chunk>(
            [&](auto *chunk) { return gpumem_ring_consume(get(), timeout_ms, chunk); });
    }
    result<void> try_release(std::uint64_t sequence, std::span<const CUstream> streams = {},
                             std::span<const CUevent> events = {}) const noexcept {
        return detail::checked(gpumem_ring_release(get(), sequence, streams.data(), streams.size(),
                                                   events.data(), events.size()));
    }
    /* gpumem_ring_close; close() ends the object, as of every handle. */
    result<void> try_stop() const noexcept {
        return detail::checked(gpumem_ring_close(get()));
    }
    result<gpumem_ring_info> try_info() const noexcept {
        return detail::fetched<gpumem_ring_info>(
            [&](auto *info) { return gpumem_ring_get_info(get(), info); });
    }
    static gpumem_status give_back(gpumem_ring *handle) noexcept {
        return gpumem_ring_destroy(handle);
    }
#if GPUMEM_CPP_EXCEPTIONS
    static ring create(resource_ref resource, const ring_options &options) {
        return or_throw(try_create(resource, options));
    }
    gpumem_ring_chunk acquire(std::size_t bytes = 0, int timeout_ms = no_limit) const {
        return or_throw(try_acquire(bytes, timeout_ms));
    }
    void write(std::uint64_t sequence, std::size_t offset, std::span<const std::byte> from) const {
        detail::require(gpumem_ring_write(get(), sequence, offset, from.data(), from.size()));
    }
    void flush(std::uint64_t sequence, std::size_t offset, std::size_t bytes) const {
        detail::require(gpumem_ring_flush(get(), sequence, offset, bytes));
    }
    void commit(std::uint64_t sequence, std::size_t bytes) const {
        detail::require(gpumem_ring_commit(get(), sequence, bytes));
    }
    void abandon(std::uint64_t sequence) const {
        detail::require(gpumem_ring_abandon(get(), sequence));
    }
    gpumem_ring_chunk consume(int timeout_ms = no_limit) const {
        return or_throw(try_consume(timeout_ms));
    }
    void release(std::uint64_t sequence, std::span<const CUstream> streams = {},
                 std::span<const CUevent> events = {}) const {
        detail::require(gpumem_ring_release(get(), sequence, streams.data(), streams.size(),
                                            events.data(), events.size()));
    }
    void stop() const {
        detail::require(gpumem_ring_close(get()));
    }
    gpumem_ring_info info() const {
        return or_throw(try_info());
    }
#endif
};

} // namespace GPUMEM_CPP_MODE
} // namespace gpumem

#endif
