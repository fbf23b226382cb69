/*
 * Buffers. Contracts: gpumem/buffer.h and gpumem/copy.h, of the call that a member is named after.
 */
#ifndef GPUMEM_CPP_BUFFER_HPP
#define GPUMEM_CPP_BUFFER_HPP

#include <gpumem/buffer.h>
#include <gpumem/copy.h>
#include <gpumem/cpp/resource.hpp>

namespace gpumem {
inline namespace GPUMEM_CPP_MODE {

class buffer;
class hold;

class buffer_ref : public borrowed<gpumem_buffer> {
  public:
    buffer_ref(gpumem_buffer *handle) noexcept : borrowed(handle) {
    }
    buffer_ref(buffer &&) = delete; /* it would be freed at once */

    CUdeviceptr pointer() const noexcept {
        return gpumem_buffer_pointer(get());
    }
    /* NULL where the CPU has no access. */
    void *host_pointer() const noexcept {
        return gpumem_buffer_host_pointer(get());
    }
    std::size_t size() const noexcept {
        return gpumem_buffer_size(get());
    }
    std::size_t capacity() const noexcept {
        return gpumem_buffer_capacity(get());
    }
    std::size_t committed() const noexcept {
        return gpumem_buffer_committed(get());
    }
    std::size_t chunks() const noexcept {
        return gpumem_buffer_chunks(get());
    }
    device_ref device() const noexcept {
        return gpumem_buffer_device(get());
    }
    /* Of NULL: imported. */
    resource_ref resource() const noexcept {
        return gpumem_buffer_resource(get());
    }

    result<void> try_use(CUstream stream) const noexcept {
        return detail::checked(gpumem_buffer_use(get(), stream));
    }
    result<void> try_grow(std::size_t bytes, CUstream stream = nullptr) const noexcept {
        return detail::checked(gpumem_buffer_grow(get(), bytes, stream));
    }
    result<void> try_shrink(std::size_t bytes, CUstream stream = nullptr) const noexcept {
        return detail::checked(gpumem_buffer_shrink(get(), bytes, stream));
    }
    /* Lasts as long as what it returns. */
    result<gpumem::hold> try_hold() const noexcept;

    /* Copies are queued, not done, on return: the host's memory must stay until `stream` has passed
     * them. Temporaries do not. */
    result<void> try_write(std::size_t offset, std::span<const std::byte> from,
                           CUstream stream = nullptr) const noexcept {
        return detail::checked(
            gpumem_buffer_write(get(), offset, from.data(), from.size(), stream));
    }
    result<void> try_read(std::size_t offset, std::span<std::byte> to,
                          CUstream stream = nullptr) const noexcept {
        return detail::checked(gpumem_buffer_read(get(), offset, to.data(), to.size(), stream));
    }
    result<void> try_copy_from(std::size_t offset, buffer_ref from, std::size_t from_offset,
                               std::size_t bytes, CUstream stream = nullptr) const noexcept {
        return detail::checked(
            gpumem_buffer_copy(get(), offset, from.get(), from_offset, bytes, stream));
    }
    result<void> try_fill(std::size_t offset, std::size_t bytes, unsigned char value,
                          CUstream stream = nullptr) const noexcept {
        return detail::checked(gpumem_buffer_fill(get(), offset, bytes, value, stream));
    }
#if GPUMEM_CPP_EXCEPTIONS
    void use(CUstream stream) const {
        detail::require(gpumem_buffer_use(get(), stream));
    }
    void grow(std::size_t bytes, CUstream stream = nullptr) const {
        detail::require(gpumem_buffer_grow(get(), bytes, stream));
    }
    void shrink(std::size_t bytes, CUstream stream = nullptr) const {
        detail::require(gpumem_buffer_shrink(get(), bytes, stream));
    }
    [[nodiscard]] gpumem::hold hold() const;
    void write(std::size_t offset, std::span<const std::byte> from,
               CUstream stream = nullptr) const {
        detail::require(gpumem_buffer_write(get(), offset, from.data(), from.size(), stream));
    }
    void read(std::size_t offset, std::span<std::byte> to, CUstream stream = nullptr) const {
        detail::require(gpumem_buffer_read(get(), offset, to.data(), to.size(), stream));
    }
    void copy_from(std::size_t offset, buffer_ref from, std::size_t from_offset, std::size_t bytes,
                   CUstream stream = nullptr) const {
        detail::require(gpumem_buffer_copy(get(), offset, from.get(), from_offset, bytes, stream));
    }
    void fill(std::size_t offset, std::size_t bytes, unsigned char value,
              CUstream stream = nullptr) const {
        detail::require(gpumem_buffer_fill(get(), offset, bytes, value, stream));
    }
#endif
};

/* Owns a buffer. Going, it is freed behind the streams that it was told of (stream of allocation,
 * use, copies); free names one more. */
class buffer : public owner<buffer, buffer_ref> {
  public:
    static gpumem_status give_back(gpumem_buffer *handle) noexcept {
        return gpumem_buffer_free(handle, nullptr);
    }
    result<void> try_free(CUstream stream) noexcept {
        const gpumem_status status = gpumem_buffer_free(get(), stream);
        if (status == GPUMEM_OK)
            handle_ = nullptr;
        return detail::checked(status);
    }
#if GPUMEM_CPP_EXCEPTIONS
    void free(CUstream stream) {
        or_throw(try_free(stream));
    }
#endif
};

/* One hold of a buffer, released when it goes. The buffer may be freed before: its memory then goes
 * back here. */
class hold : public owner<hold, borrowed<gpumem_buffer>> {
  public:
    static gpumem_status give_back(gpumem_buffer *handle) noexcept {
        return handle ? gpumem_buffer_release(handle) : GPUMEM_OK;
    }
};

inline result<hold> buffer_ref::try_hold() const noexcept {
    const gpumem_status status = gpumem_buffer_hold(get());
    if (status != GPUMEM_OK)
        return unexpected(error::last(status));
    return gpumem::hold::adopt(get());
}

inline result<buffer> resource_ref::try_allocate(std::size_t bytes,
                                                 const buffer_options &options) const noexcept {
    const gpumem_buffer_options in_c = detail::in_c(options);
    return detail::created<buffer>(
        [&](auto *made) { return gpumem_buffer_allocate(get(), bytes, &in_c, made); });
}

/* gpumem_copy, gpumem_fill: between any addresses, of which the library knows nothing. */
inline result<void> try_copy(device_ref device, CUdeviceptr to, CUdeviceptr from, std::size_t bytes,
                             CUstream stream = nullptr) noexcept {
    return detail::checked(gpumem_copy(device.get(), to, from, bytes, stream));
}

inline result<void> try_fill(device_ref device, CUdeviceptr to, std::size_t bytes,
                             unsigned char value, CUstream stream = nullptr) noexcept {
    return detail::checked(gpumem_fill(device.get(), to, bytes, value, stream));
}

#if GPUMEM_CPP_EXCEPTIONS
inline hold buffer_ref::hold() const {
    return or_throw(try_hold());
}

inline buffer resource_ref::allocate(std::size_t bytes, const buffer_options &options) const {
    return or_throw(try_allocate(bytes, options));
}

inline void copy(device_ref device, CUdeviceptr to, CUdeviceptr from, std::size_t bytes,
                 CUstream stream = nullptr) {
    detail::require(gpumem_copy(device.get(), to, from, bytes, stream));
}

inline void fill(device_ref device, CUdeviceptr to, std::size_t bytes, unsigned char value,
                 CUstream stream = nullptr) {
    detail::require(gpumem_fill(device.get(), to, bytes, value, stream));
}
#endif

} // namespace GPUMEM_CPP_MODE
} // namespace gpumem

#endif
