/*
 * Resources, and the pools of captures. Contracts: gpumem/resource.h and gpumem/caching.h, under
 * the C call of the same name.
 */
#ifndef GPUMEM_CPP_RESOURCE_HPP
#define GPUMEM_CPP_RESOURCE_HPP

#include <gpumem/buffer.h>
#include <gpumem/caching.h>
#include <gpumem/cpp/device.hpp>
#include <gpumem/managed.h>
#include <gpumem/pinned.h>
#include <gpumem/pool.h>
#include <gpumem/resource.h>
#include <gpumem/virtual.h>
#include <gpumem/wrappers.h>

namespace gpumem {
inline namespace GPUMEM_CPP_MODE {

class resource;
class buffer;
class buffer_ref;

class resource_ref : public borrowed<gpumem_resource> {
  public:
    resource_ref(gpumem_resource *handle) noexcept : borrowed(handle) {
    }
    resource_ref(resource &&) = delete; /* would be destroyed at once */

    device_ref device() const noexcept {
        return gpumem_resource_device(get());
    }
    /* gpumem_buffer_allocate. `bytes` is more than 0. */
    result<buffer> try_allocate(std::size_t bytes,
                                const buffer_options &options = {}) const noexcept;
    /* gpumem_resource_allocate: memory without an owner, for callers that keep addresses. */
    result<CUdeviceptr> try_allocate_pointer(std::size_t bytes,
                                             const buffer_options &options = {}) const noexcept {
        const gpumem_buffer_options in_c = detail::in_c(options);
        return detail::fetched<CUdeviceptr>(
            [&](auto *pointer) { return gpumem_resource_allocate(get(), bytes, &in_c, pointer); });
    }
    /* Frees a result of allocate_pointer, with the same `bytes`; 0: not known. */
    result<void> try_deallocate(CUdeviceptr pointer, std::size_t bytes = 0,
                                CUstream stream = nullptr) const noexcept {
        return detail::checked(gpumem_resource_deallocate(get(), pointer, bytes, stream));
    }
    /* The buffer at a result of allocate_pointer: borrowed. */
    result<buffer_ref> try_find(CUdeviceptr pointer) const noexcept;
    /* Names a stream for it. */
    result<void> try_use(CUdeviceptr pointer, CUstream stream) const noexcept {
        return detail::checked(gpumem_resource_use(get(), pointer, stream));
    }
    /* Its `kind` lives as long as the resource. */
    result<gpumem_resource_properties> try_properties() const noexcept {
        return detail::fetched<gpumem_resource_properties>(
            [this](auto *of) { return gpumem_resource_get_properties(get(), of); });
    }
    result<gpumem_stats> try_stats() const noexcept {
        return detail::fetched<gpumem_stats>(
            [this](auto *stats) { return gpumem_resource_get_stats(get(), stats); });
    }
    result<void> try_trim(std::size_t keep_bytes = 0) const noexcept {
        return detail::checked(gpumem_resource_trim(get(), keep_bytes));
    }
    /* What the device with this ordinal may do with all memory of it. */
    result<void> try_set_access(int ordinal,
                                gpumem_access access = GPUMEM_ACCESS_READ_WRITE) const noexcept {
        return detail::checked(gpumem_resource_set_access(get(), ordinal, access));
    }
    result<gpumem_access> try_get_access(int ordinal) const noexcept {
        return detail::fetched<gpumem_access>(
            [&](auto *access) { return gpumem_resource_get_access(get(), ordinal, access); });
    }
    /* For a pinned resource: pins slabs in the background. */
    result<void> try_warm_up(std::size_t bytes) const noexcept {
        return detail::checked(gpumem_pinned_warm_up(get(), bytes));
    }
    /* For a pinned resource; INVALID_ARGUMENT for others. */
    result<gpumem_pinned_info> try_pinned_info() const noexcept {
        return detail::fetched<gpumem_pinned_info>(
            [this](auto *info) { return gpumem_pinned_get_info(get(), info); });
    }
    /* For a caching resource; INVALID_ARGUMENT for others. */
    result<gpumem_caching_info> try_caching_info() const noexcept {
        return detail::fetched<gpumem_caching_info>(
            [this](auto *info) { return gpumem_caching_get_info(get(), info); });
    }
    /* For a caching resource: call it before `stream` is destroyed. */
    result<void> try_forget_stream(CUstream stream) const noexcept {
        return detail::checked(gpumem_caching_forget_stream(get(), stream));
    }
#if GPUMEM_CPP_EXCEPTIONS
    buffer allocate(std::size_t bytes, const buffer_options &options = {}) const;
    [[nodiscard]] CUdeviceptr allocate_pointer(std::size_t bytes,
                                               const buffer_options &options = {}) const {
        return or_throw(try_allocate_pointer(bytes, options));
    }
    void deallocate(CUdeviceptr pointer, std::size_t bytes = 0, CUstream stream = nullptr) const {
        detail::require(gpumem_resource_deallocate(get(), pointer, bytes, stream));
    }
    buffer_ref find(CUdeviceptr pointer) const;
    void use(CUdeviceptr pointer, CUstream stream) const {
        detail::require(gpumem_resource_use(get(), pointer, stream));
    }
    gpumem_resource_properties properties() const {
        return or_throw(try_properties());
    }
    gpumem_stats stats() const {
        return or_throw(try_stats());
    }
    void set_access(int ordinal, gpumem_access access = GPUMEM_ACCESS_READ_WRITE) const {
        detail::require(gpumem_resource_set_access(get(), ordinal, access));
    }
    gpumem_access get_access(int ordinal) const {
        return or_throw(try_get_access(ordinal));
    }
    void trim(std::size_t keep_bytes = 0) const {
        detail::require(gpumem_resource_trim(get(), keep_bytes));
    }
    gpumem_pinned_info pinned_info() const {
        return or_throw(try_pinned_info());
    }
    gpumem_caching_info caching_info() const {
        return or_throw(try_caching_info());
    }
    void warm_up(std::size_t bytes) const {
        detail::require(gpumem_pinned_warm_up(get(), bytes));
    }
    void forget_stream(CUstream stream) const {
        detail::require(gpumem_caching_forget_stream(get(), stream));
    }
#endif
};

/* Owns a resource. */
class resource : public owner<resource, resource_ref> {
  public:
    /* Ends it with the last of what it has; the object no longer owns it. */
    result<void> try_close_later() noexcept {
        return detail::checked(gpumem_resource_close_later(release()));
    }
    static gpumem_status give_back(gpumem_resource *handle) noexcept {
        return gpumem_resource_destroy(handle);
    }
};

/* ---- Creation -------------------------------------------------------------------------------- */

inline result<resource> try_device_pool_resource(device_ref device,
                                                 const device_pool_options &options = {}) noexcept {
    const gpumem_device_pool_options in_c = detail::in_c(options);
    return detail::created<resource>(
        [&](auto *made) { return gpumem_device_pool_resource_create(device.get(), &in_c, made); });
}

inline result<resource> try_pinned_resource(device_ref device,
                                            const pinned_options &options = {}) noexcept {
    const gpumem_pinned_options in_c = detail::in_c(options);
    return detail::created<resource>(
        [&](auto *made) { return gpumem_pinned_resource_create(device.get(), &in_c, made); });
}

inline result<resource> try_managed_resource(device_ref device,
                                             const managed_options &options = {}) noexcept {
    const gpumem_managed_options in_c = detail::in_c(options);
    return detail::created<resource>(
        [&](auto *made) { return gpumem_managed_resource_create(device.get(), &in_c, made); });
}

inline result<resource> try_virtual_resource(device_ref device,
                                             const virtual_options &options = {}) noexcept {
    const gpumem_virtual_options in_c = detail::in_c(options);
    return detail::created<resource>(
        [&](auto *made) { return gpumem_virtual_resource_create(device.get(), &in_c, made); });
}

/* The upstream of this function and of the next two must outlive the result. */
inline result<resource> try_limiting_resource(resource_ref upstream,
                                              std::uint64_t maximum_bytes) noexcept {
    return detail::created<resource>([&](auto *made) {
        return gpumem_limiting_resource_create(upstream.get(), maximum_bytes, made);
    });
}

inline result<resource> try_logging_resource(resource_ref upstream,
                                             const logging_options &options = {}) noexcept {
    const gpumem_logging_options in_c = detail::in_c(options);
    return detail::created<resource>(
        [&](auto *made) { return gpumem_logging_resource_create(upstream.get(), &in_c, made); });
}

inline result<resource> try_caching_resource(resource_ref upstream,
                                             const caching_options &options = {}) noexcept {
    const gpumem_caching_options in_c = detail::in_c(options);
    return detail::created<resource>(
        [&](auto *made) { return gpumem_caching_resource_create(upstream.get(), &in_c, made); });
}

/* From functions of your own, which must not throw; sets `ops.size`. */
inline result<resource> try_own_resource(device_ref device, gpumem_resource_ops ops,
                                         void *user) noexcept {
    ops.size = sizeof ops;
    return detail::created<resource>(
        [&](auto *made) { return gpumem_resource_create(device.get(), &ops, user, made); });
}

#if GPUMEM_CPP_EXCEPTIONS

inline resource device_pool_resource(device_ref device, const device_pool_options &options = {}) {
    return or_throw(try_device_pool_resource(device, options));
}

inline resource pinned_resource(device_ref device, const pinned_options &options = {}) {
    return or_throw(try_pinned_resource(device, options));
}

inline resource managed_resource(device_ref device, const managed_options &options = {}) {
    return or_throw(try_managed_resource(device, options));
}

inline resource virtual_resource(device_ref device, const virtual_options &options = {}) {
    return or_throw(try_virtual_resource(device, options));
}

inline resource limiting_resource(resource_ref upstream, std::uint64_t maximum_bytes) {
    return or_throw(try_limiting_resource(upstream, maximum_bytes));
}

inline resource logging_resource(resource_ref upstream, const logging_options &options = {}) {
    return or_throw(try_logging_resource(upstream, options));
}

inline resource caching_resource(resource_ref upstream, const caching_options &options = {}) {
    return or_throw(try_caching_resource(upstream, options));
}

inline resource own_resource(device_ref device, const gpumem_resource_ops &ops, void *user) {
    return or_throw(try_own_resource(device, ops, user));
}

#endif

} // namespace GPUMEM_CPP_MODE
} // namespace gpumem

#include <gpumem/cpp/buffer.hpp> /* allocate returns one */

#endif
