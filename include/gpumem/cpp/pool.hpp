/*
 * The driver's pools, and sharing them with other processes. Contracts: gpumem/pool.h, under the C
 * call of the same name. Each takes the resource itself, not a wrapper around it.
 */
#ifndef GPUMEM_CPP_POOL_HPP
#define GPUMEM_CPP_POOL_HPP

#include <gpumem/cpp/buffer.hpp>
#include <gpumem/pool.h>
#include <gpumem/pool_interop.h>

namespace gpumem {
inline namespace GPUMEM_CPP_MODE {

/* A pool's UUID, the same in all processes that share it. */
using pool_uuid = std::span<const unsigned char, 16>;

inline result<gpumem_pool_info> try_pool_info(resource_ref pool) noexcept {
    return detail::fetched<gpumem_pool_info>(
        [&](auto *info) { return gpumem_pool_get_info(pool.get(), info); });
}

inline result<std::uint64_t> try_pool_get_attribute(resource_ref pool,
                                                    gpumem_pool_attribute attribute) noexcept {
    return detail::fetched<std::uint64_t>(
        [&](auto *value) { return gpumem_pool_get_attribute(pool.get(), attribute, value); });
}

inline result<void> try_pool_set_attribute(resource_ref pool, gpumem_pool_attribute attribute,
                                           std::uint64_t value) noexcept {
    return detail::checked(gpumem_pool_set_attribute(pool.get(), attribute, value));
}

/* Its descriptor belongs to the resource: do not close it. */
inline result<gpumem_pool_share_handle> try_pool_share_handle(resource_ref pool) noexcept {
    return detail::fetched<gpumem_pool_share_handle>(
        [&](auto *handle) { return gpumem_pool_get_share_handle(pool.get(), handle); });
}

/* A mapped pool. The descriptor in `handle` remains the caller's. */
inline result<resource>
try_pool_from_share_handle(device_ref device, const gpumem_pool_share_handle &handle) noexcept {
    return detail::created<resource>(
        [&](auto *made) { return gpumem_pool_from_share_handle(device.get(), &handle, made); });
}

/* `socket` is a connected Unix socket. Blocks until the other side has mapped the pool. */
inline result<void> try_pool_send(resource_ref pool, int socket,
                                  const share_options &options = {}) noexcept {
    const gpumem_share_options in_c = detail::in_c(options);
    return detail::checked(gpumem_pool_send(pool.get(), socket, &in_c));
}

inline result<resource> try_pool_receive(device_ref device, int socket,
                                         const share_options &options = {}) noexcept {
    const gpumem_share_options in_c = detail::in_c(options);
    return detail::created<resource>(
        [&](auto *made) { return gpumem_pool_receive(device.get(), socket, &in_c, made); });
}

/* Returns the mapped pool under that UUID: `pool`, or one registered earlier. Ownership does not
 * change. */
inline result<resource_ref> try_pool_register(resource_ref pool, pool_uuid uuid) noexcept {
    gpumem_resource *registered = nullptr;
    const gpumem_status status = gpumem_pool_register(pool.get(), uuid.data(), &registered);
    if (status != GPUMEM_OK)
        return unexpected(error::last(status));
    return resource_ref(registered);
}

/* Borrowed: the owner that destroys the pool must make sure that nobody has just found it. */
inline result<resource_ref> try_pool_from_registry(library_ref library, pool_uuid uuid) noexcept {
    gpumem_resource *found = nullptr;
    const gpumem_status status = gpumem_pool_from_registry(library.get(), uuid.data(), &found);
    if (status != GPUMEM_OK)
        return unexpected(error::last(status));
    return resource_ref(found);
}

/* `buffer` must exist until every importer has freed its own: see hold. */
inline result<gpumem_pool_share_buffer> try_pool_export_buffer(buffer_ref buffer) noexcept {
    return detail::fetched<gpumem_pool_share_buffer>(
        [&](auto *shared) { return gpumem_pool_export_buffer(buffer.get(), shared); });
}

inline result<buffer> try_pool_import_buffer(resource_ref mapped,
                                             const gpumem_pool_share_buffer &shared) noexcept {
    return detail::created<buffer>(
        [&](auto *made) { return gpumem_pool_import_buffer(mapped.get(), &shared, made); });
}

#if GPUMEM_CPP_EXCEPTIONS

inline gpumem_pool_info pool_info(resource_ref pool) {
    return or_throw(try_pool_info(pool));
}

inline std::uint64_t pool_get_attribute(resource_ref pool, gpumem_pool_attribute attribute) {
    return or_throw(try_pool_get_attribute(pool, attribute));
}

inline void pool_set_attribute(resource_ref pool, gpumem_pool_attribute attribute,
                               std::uint64_t value) {
    detail::require(gpumem_pool_set_attribute(pool.get(), attribute, value));
}

inline gpumem_pool_share_handle pool_share_handle(resource_ref pool) {
    return or_throw(try_pool_share_handle(pool));
}

inline resource pool_from_share_handle(device_ref device, const gpumem_pool_share_handle &handle) {
    return or_throw(try_pool_from_share_handle(device, handle));
}

inline void pool_send(resource_ref pool, int socket, const share_options &options = {}) {
    or_throw(try_pool_send(pool, socket, options));
}

inline resource pool_receive(device_ref device, int socket, const share_options &options = {}) {
    return or_throw(try_pool_receive(device, socket, options));
}

inline resource_ref pool_register(resource_ref pool, pool_uuid uuid) {
    return or_throw(try_pool_register(pool, uuid));
}

inline resource_ref pool_from_registry(library_ref library, pool_uuid uuid) {
    return or_throw(try_pool_from_registry(library, uuid));
}

inline gpumem_pool_share_buffer pool_export_buffer(buffer_ref buffer) {
    return or_throw(try_pool_export_buffer(buffer));
}

inline buffer pool_import_buffer(resource_ref mapped, const gpumem_pool_share_buffer &shared) {
    return or_throw(try_pool_import_buffer(mapped, shared));
}

#endif

} // namespace GPUMEM_CPP_MODE
} // namespace gpumem

#endif
