/*
 * Buffers. Contracts: gpumem/buffer.h and gpumem/copy.h, under the C call of the same name.
 */
#ifndef GPUMEM_CPP_BUFFER_HPP
#define GPUMEM_CPP_BUFFER_HPP

#include <gpumem/buffer.h>
#include <gpumem/copy.h>
#include <gpumem/cpp/resource.hpp>
#include <gpumem/layout.h>
#include <gpumem/view.h>

namespace gpumem {
inline namespace GPUMEM_CPP_MODE {

class buffer;
class hold;

class buffer_ref : public borrowed<gpumem_buffer> {
  public:
    buffer_ref(gpumem_buffer *handle) noexcept : borrowed(handle) {
    }
    buffer_ref(buffer &&) = delete; /* would be freed at once */

    CUdeviceptr pointer() const noexcept {
        return gpumem_buffer_pointer(get());
    }
    /* NULL if the CPU has no access. */
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
    /* Refers to NULL for an imported or foreign buffer. */
    device_ref device() const noexcept {
        return gpumem_buffer_device(get());
    }
    resource_ref resource() const noexcept {
        return gpumem_buffer_resource(get());
    }

    result<void> try_use(CUstream stream) const noexcept {
        return detail::checked(gpumem_buffer_use(get(), stream));
    }
    /* `stream` waits for all streams that were named, and is named too. */
    result<void> try_order(CUstream stream) const noexcept {
        return detail::checked(gpumem_buffer_order(get(), stream));
    }
    result<void> try_grow(std::size_t bytes, CUstream stream = nullptr) const noexcept {
        return detail::checked(gpumem_buffer_grow(get(), bytes, stream));
    }
    result<void> try_shrink(std::size_t bytes, CUstream stream = nullptr) const noexcept {
        return detail::checked(gpumem_buffer_shrink(get(), bytes, stream));
    }
    /* The hold lasts as long as the returned object. */
    result<gpumem::hold> try_hold() const noexcept;

    /* On return, copies are queued but not done: host memory must exist until `stream` has passed
     * them, so temporaries will not do. */
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
    /* The same, but done on return. */
    /* Copies of rows. The host side is the first byte of the first row; `rows` gives the extent of
     * the others. */
    result<void> try_write_2d(std::size_t offset, const void *from, const gpumem_rows &rows,
                              CUstream stream = nullptr) const noexcept {
        return detail::checked(gpumem_buffer_write_2d(get(), offset, from, &rows, stream));
    }
    result<void> try_read_2d(std::size_t offset, void *to, const gpumem_rows &rows,
                             CUstream stream = nullptr) const noexcept {
        return detail::checked(gpumem_buffer_read_2d(get(), offset, to, &rows, stream));
    }
    result<void> try_copy_from_2d(std::size_t offset, buffer_ref from, std::size_t from_offset,
                                  const gpumem_rows &rows,
                                  CUstream stream = nullptr) const noexcept {
        return detail::checked(
            gpumem_buffer_copy_2d(get(), offset, from.get(), from_offset, &rows, stream));
    }
    /* Repeats a pattern of 1, 2 or 4 bytes. */
    result<void> try_fill_pattern(std::size_t offset, std::size_t bytes,
                                  std::span<const std::byte> pattern,
                                  CUstream stream = nullptr) const noexcept {
        return detail::checked(gpumem_buffer_fill_pattern(get(), offset, bytes, pattern.data(),
                                                          pattern.size(), stream));
    }
    /* For virtual buffers, whose memory is in chunks; `ordinal` is that of a device. */
    result<void> try_set_access(std::size_t offset, std::size_t bytes, int ordinal,
                                gpumem_access access = GPUMEM_ACCESS_READ_WRITE,
                                CUstream stream = nullptr) const noexcept {
        return detail::checked(
            gpumem_buffer_set_access(get(), offset, bytes, ordinal, access, stream));
    }
    result<void> try_recommit(std::size_t offset, std::size_t bytes) const noexcept {
        return detail::checked(gpumem_buffer_recommit(get(), offset, bytes));
    }
    result<void> try_mark_shared() const noexcept {
        return detail::checked(gpumem_buffer_mark_shared(get()));
    }
    result<gpumem_access> try_get_access(std::size_t offset, int ordinal) const noexcept {
        return detail::fetched<gpumem_access>(
            [&](auto *access) { return gpumem_buffer_get_access(get(), offset, ordinal, access); });
    }
    /* Returns the bytes that the driver took back. */
    result<std::size_t> try_decommit(std::size_t offset, std::size_t bytes,
                                     CUstream stream = nullptr) const noexcept {
        return detail::fetched<std::size_t>([&](auto *released) {
            return gpumem_buffer_decommit(get(), offset, bytes, stream, released);
        });
    }
    /* Returns the new address, also that of pointer() from now on. */
    result<CUdeviceptr> try_move_to_capacity(std::size_t capacity,
                                             CUstream stream = nullptr) const noexcept {
        return detail::fetched<CUdeviceptr>([&](auto *address) {
            return gpumem_buffer_move_to_capacity(get(), capacity, stream, address);
        });
    }
    result<gpumem_buffer_attributes> try_attributes() const noexcept {
        return detail::fetched<gpumem_buffer_attributes>(
            [this](auto *of) { return gpumem_buffer_get_attributes(get(), of); });
    }
    /* Fills in as many `segments` as fit; segment_count is their total number. */
    result<gpumem_layout> try_layout(std::span<gpumem_segment> segments = {}) const noexcept {
        return detail::fetched<gpumem_layout>([&](auto *of) {
            return gpumem_buffer_get_layout(get(), of, segments.data(), segments.size());
        });
    }
    /* A part of this buffer as a buffer of its own, which holds this one. */
    result<buffer> try_view(std::size_t offset, std::size_t bytes) const noexcept;
#if GPUMEM_CPP_EXCEPTIONS
    void use(CUstream stream) const {
        detail::require(gpumem_buffer_use(get(), stream));
    }
    void order(CUstream stream) const {
        detail::require(gpumem_buffer_order(get(), stream));
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
    void write_2d(std::size_t offset, const void *from, const gpumem_rows &rows,
                  CUstream stream = nullptr) const {
        detail::require(gpumem_buffer_write_2d(get(), offset, from, &rows, stream));
    }
    void read_2d(std::size_t offset, void *to, const gpumem_rows &rows,
                 CUstream stream = nullptr) const {
        detail::require(gpumem_buffer_read_2d(get(), offset, to, &rows, stream));
    }
    void copy_from_2d(std::size_t offset, buffer_ref from, std::size_t from_offset,
                      const gpumem_rows &rows, CUstream stream = nullptr) const {
        detail::require(
            gpumem_buffer_copy_2d(get(), offset, from.get(), from_offset, &rows, stream));
    }
    void fill_pattern(std::size_t offset, std::size_t bytes, std::span<const std::byte> pattern,
                      CUstream stream = nullptr) const {
        detail::require(gpumem_buffer_fill_pattern(get(), offset, bytes, pattern.data(),
                                                   pattern.size(), stream));
    }
    void set_access(std::size_t offset, std::size_t bytes, int ordinal,
                    gpumem_access access = GPUMEM_ACCESS_READ_WRITE,
                    CUstream stream = nullptr) const {
        detail::require(gpumem_buffer_set_access(get(), offset, bytes, ordinal, access, stream));
    }
    void recommit(std::size_t offset, std::size_t bytes) const {
        detail::require(gpumem_buffer_recommit(get(), offset, bytes));
    }
    void mark_shared() const {
        detail::require(gpumem_buffer_mark_shared(get()));
    }
    gpumem_access get_access(std::size_t offset, int ordinal) const {
        return or_throw(try_get_access(offset, ordinal));
    }
    std::size_t decommit(std::size_t offset, std::size_t bytes, CUstream stream = nullptr) const {
        return or_throw(try_decommit(offset, bytes, stream));
    }
    CUdeviceptr move_to_capacity(std::size_t capacity, CUstream stream = nullptr) const {
        return or_throw(try_move_to_capacity(capacity, stream));
    }
    gpumem_buffer_attributes attributes() const {
        return or_throw(try_attributes());
    }
    gpumem_layout layout(std::span<gpumem_segment> segments = {}) const {
        return or_throw(try_layout(segments));
    }
    [[nodiscard]] buffer view(std::size_t offset, std::size_t bytes) const;
#endif
};

/* Owns a buffer. The destructor frees it, ordered after the streams that it knows of (that of the
 * allocation, use, copies); free names one more. */
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

/* One hold of a buffer, released by the destructor. The buffer may be freed earlier: its memory
 * then goes back at the release. */
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

inline result<buffer_ref> resource_ref::try_find(CUdeviceptr pointer) const noexcept {
    gpumem_buffer *found = nullptr;
    const gpumem_status status = gpumem_resource_find(get(), pointer, &found);
    if (status != GPUMEM_OK) [[unlikely]]
        return unexpected(error::last(status));
    return buffer_ref(found);
}

inline result<buffer> buffer_ref::try_view(std::size_t offset, std::size_t bytes) const noexcept {
    return detail::created<buffer>(
        [&](auto *made) { return gpumem_buffer_view(get(), offset, bytes, made); });
}

inline result<buffer> resource_ref::try_allocate(std::size_t bytes,
                                                 const buffer_options &options) const noexcept {
    const gpumem_buffer_options in_c = detail::in_c(options);
    return detail::created<buffer>(
        [&](auto *made) { return gpumem_buffer_allocate(get(), bytes, &in_c, made); });
}

/* Many copies at once. Reports how they were queued. */
inline result<gpumem_batch_report> try_copy_batch(std::span<const gpumem_buffer_copy_item> items,
                                                  CUstream stream = nullptr) noexcept {
    return detail::fetched<gpumem_batch_report>([&](auto *report) {
        return gpumem_buffer_copy_batch(items.data(), items.size(), stream, report);
    });
}

#if GPUMEM_CPP_EXCEPTIONS
inline hold buffer_ref::hold() const {
    return or_throw(try_hold());
}

inline buffer_ref resource_ref::find(CUdeviceptr pointer) const {
    return or_throw(try_find(pointer));
}

inline buffer buffer_ref::view(std::size_t offset, std::size_t bytes) const {
    return or_throw(try_view(offset, bytes));
}

inline buffer resource_ref::allocate(std::size_t bytes, const buffer_options &options) const {
    return or_throw(try_allocate(bytes, options));
}

inline gpumem_batch_report copy_batch(std::span<const gpumem_buffer_copy_item> items,
                                      CUstream stream = nullptr) {
    return or_throw(try_copy_batch(items, stream));
}

#endif

} // namespace GPUMEM_CPP_MODE
} // namespace gpumem

#endif
