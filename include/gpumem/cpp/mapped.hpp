/*
 * Device memory that the CPU writes, and CPU mappings of virtual buffers. Contracts:
 * gpumem/mapped.h, under the C call of the same name.
 */
#ifndef GPUMEM_CPP_MAPPED_HPP
#define GPUMEM_CPP_MAPPED_HPP

#include <gpumem/cpp/buffer.hpp>
#include <gpumem/mapped.h>

namespace gpumem {
inline namespace GPUMEM_CPP_MODE {

inline result<resource> try_mapped_resource(device_ref device,
                                            const mapped_options &options = {}) noexcept {
    const gpumem_mapped_options in_c = detail::in_c(options);
    return detail::created<resource>(
        [&](auto *made) { return gpumem_mapped_resource_create(device.get(), &in_c, made); });
}

/* For the resource itself, not a wrapper around it. */
inline result<gpumem_mapped_info> try_mapped_info(resource_ref mapped) noexcept {
    return detail::fetched<gpumem_mapped_info>(
        [&](auto *info) { return gpumem_mapped_get_info(mapped.get(), info); });
}

/* Of mapped memory or a wrapper around it; takes a second or two. */
inline result<void> try_mapped_calibrate(resource_ref mapped,
                                         const mapped_calibrate_options &options = {}) noexcept {
    const gpumem_mapped_calibrate_options in_c = detail::in_c(options);
    return detail::checked(gpumem_mapped_calibrate(mapped.get(), &in_c));
}

inline result<void> try_mapped_write(buffer_ref buffer, std::size_t offset,
                                     std::span<const std::byte> from) noexcept {
    return detail::checked(gpumem_mapped_write(buffer.get(), offset, from.data(), from.size()));
}

inline result<void> try_mapped_read(buffer_ref buffer, std::size_t offset,
                                    std::span<std::byte> to) noexcept {
    return detail::checked(gpumem_mapped_read(buffer.get(), offset, to.data(), to.size()));
}

inline result<void> try_mapped_flush(buffer_ref buffer, std::size_t offset,
                                     std::size_t bytes) noexcept {
    return detail::checked(gpumem_mapped_flush(buffer.get(), offset, bytes));
}

inline result<void> try_mapped_invalidate(buffer_ref buffer, std::size_t offset,
                                          std::size_t bytes) noexcept {
    return detail::checked(gpumem_mapped_invalidate(buffer.get(), offset, bytes));
}

/* Writes the payload first, then `value` to the word at `flag_offset`. */
inline result<void> try_mapped_publish(buffer_ref buffer, std::size_t offset,
                                       std::span<const std::byte> payload, std::size_t flag_offset,
                                       std::uint32_t value) noexcept {
    return detail::checked(gpumem_mapped_publish(buffer.get(), offset, payload.data(),
                                                 payload.size(), flag_offset, value));
}

/* A view of all of a virtual buffer that the CPU has mapped. */
inline result<buffer> try_host_view(buffer_ref of, const host_view_options &options = {}) noexcept {
    const gpumem_host_view_options in_c = detail::in_c(options);
    return detail::created<buffer>(
        [&](auto *made) { return gpumem_buffer_host_view(of.get(), &in_c, made); });
}

/* Of a host view, or of a buffer of a mapped resource. */
inline result<gpumem_mapped_info> try_buffer_mapped_info(buffer_ref mapped) noexcept {
    return detail::fetched<gpumem_mapped_info>(
        [&](auto *info) { return gpumem_buffer_get_mapped_info(mapped.get(), info); });
}

#if GPUMEM_CPP_EXCEPTIONS

inline resource mapped_resource(device_ref device, const mapped_options &options = {}) {
    return or_throw(try_mapped_resource(device, options));
}

inline gpumem_mapped_info mapped_info(resource_ref mapped) {
    return or_throw(try_mapped_info(mapped));
}

inline buffer host_view(buffer_ref of, const host_view_options &options = {}) {
    return or_throw(try_host_view(of, options));
}

inline gpumem_mapped_info buffer_mapped_info(buffer_ref mapped) {
    return or_throw(try_buffer_mapped_info(mapped));
}

inline void mapped_calibrate(resource_ref mapped, const mapped_calibrate_options &options = {}) {
    const gpumem_mapped_calibrate_options in_c = detail::in_c(options);
    detail::require(gpumem_mapped_calibrate(mapped.get(), &in_c));
}

inline void mapped_write(buffer_ref buffer, std::size_t offset, std::span<const std::byte> from) {
    detail::require(gpumem_mapped_write(buffer.get(), offset, from.data(), from.size()));
}

inline void mapped_read(buffer_ref buffer, std::size_t offset, std::span<std::byte> to) {
    detail::require(gpumem_mapped_read(buffer.get(), offset, to.data(), to.size()));
}

inline void mapped_flush(buffer_ref buffer, std::size_t offset, std::size_t bytes) {
    detail::require(gpumem_mapped_flush(buffer.get(), offset, bytes));
}

inline void mapped_invalidate(buffer_ref buffer, std::size_t offset, std::size_t bytes) {
    detail::require(gpumem_mapped_invalidate(buffer.get(), offset, bytes));
}

inline void mapped_publish(buffer_ref buffer, std::size_t offset,
                           std::span<const std::byte> payload, std::size_t flag_offset,
                           std::uint32_t value) {
    detail::require(gpumem_mapped_publish(buffer.get(), offset, payload.data(), payload.size(),
                                          flag_offset, value));
}

#endif

} // namespace GPUMEM_CPP_MODE
} // namespace gpumem

#endif
