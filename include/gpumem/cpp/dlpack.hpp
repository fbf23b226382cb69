/*
 * Tensors by DLPack. Contracts: gpumem/dlpack.h, under the C call of the same name.
 */
#ifndef GPUMEM_CPP_DLPACK_HPP
#define GPUMEM_CPP_DLPACK_HPP

#include <climits>
#include <cstdint>
#include <gpumem/cpp/buffer.hpp>
#include <gpumem/dlpack.h>
#include <span>

namespace gpumem {

/* gpumem_dlpack_options; `shape` with its count, and `strides` none or as many. */
struct dlpack_options {
    std::size_t offset = 0;
    int code = 0;
    int bits = 0;
    int lanes = 0;
    std::span<const std::int64_t> shape = {};
    std::span<const std::int64_t> strides = {};
    bool read_only = false;
    CUstream stream = nullptr;
};

namespace detail {

inline gpumem_dlpack_options in_c(const dlpack_options &from) noexcept {
    gpumem_dlpack_options to{};
    to.size = sizeof to;
    to.offset = from.offset;
    to.code = from.code;
    to.bits = from.bits;
    to.lanes = from.lanes;
    /* If the numbers of strides and shape differ, C would read past the end: -1 is refused. */
    const bool fits = from.shape.size() <= INT_MAX &&
                      (from.strides.empty() || from.strides.size() == from.shape.size());
    to.ndim = fits ? static_cast<int>(from.shape.size()) : -1;
    to.shape = from.shape.data();
    to.strides = from.strides.empty() ? nullptr : from.strides.data();
    to.read_only = from.read_only;
    to.stream = from.stream;
    return to;
}

} // namespace detail

inline namespace GPUMEM_CPP_MODE {

/* Returns a plain pointer, because it is for another library: the consumer calls its deleter
 * once. */
inline result<DLManagedTensorVersioned *>
try_to_dlpack(buffer_ref buffer, const dlpack_options &options = {}) noexcept {
    const gpumem_dlpack_options in_c = detail::in_c(options);
    return detail::fetched<DLManagedTensorVersioned *>(
        [&](auto *made) { return gpumem_buffer_to_dlpack(buffer.get(), &in_c, made); });
}

inline result<DLManagedTensor *>
try_to_dlpack_unversioned(buffer_ref buffer, const dlpack_options &options = {}) noexcept {
    const gpumem_dlpack_options in_c = detail::in_c(options);
    return detail::fetched<DLManagedTensor *>(
        [&](auto *made) { return gpumem_buffer_to_dlpack_unversioned(buffer.get(), &in_c, made); });
}

/* On success the buffer owns the tensor; on failure the caller still does. */
inline result<buffer> try_buffer_from_dlpack(device_ref device, DLManagedTensorVersioned *tensor,
                                             CUstream stream = nullptr) noexcept {
    return detail::created<buffer>(
        [&](auto *made) { return gpumem_buffer_from_dlpack(device.get(), tensor, stream, made); });
}

inline result<buffer> try_buffer_from_dlpack_unversioned(device_ref device, DLManagedTensor *tensor,
                                                         CUstream stream = nullptr) noexcept {
    return detail::created<buffer>([&](auto *made) {
        return gpumem_buffer_from_dlpack_unversioned(device.get(), tensor, stream, made);
    });
}

#if GPUMEM_CPP_EXCEPTIONS
[[nodiscard]] inline DLManagedTensorVersioned *to_dlpack(buffer_ref buffer,
                                                         const dlpack_options &options = {}) {
    return or_throw(try_to_dlpack(buffer, options));
}

[[nodiscard]] inline DLManagedTensor *to_dlpack_unversioned(buffer_ref buffer,
                                                            const dlpack_options &options = {}) {
    return or_throw(try_to_dlpack_unversioned(buffer, options));
}

inline buffer buffer_from_dlpack(device_ref device, DLManagedTensorVersioned *tensor,
                                 CUstream stream = nullptr) {
    return or_throw(try_buffer_from_dlpack(device, tensor, stream));
}

inline buffer buffer_from_dlpack_unversioned(device_ref device, DLManagedTensor *tensor,
                                             CUstream stream = nullptr) {
    return or_throw(try_buffer_from_dlpack_unversioned(device, tensor, stream));
}
#endif

} // namespace GPUMEM_CPP_MODE
} // namespace gpumem

#endif
