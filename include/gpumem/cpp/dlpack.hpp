/*
 * Tensors by DLPack. Contracts: gpumem/dlpack.h, under the C call of the same name.
 */
#ifndef GPUMEM_CPP_DLPACK_HPP
#define GPUMEM_CPP_DLPACK_HPP

#include <gpumem/cpp/buffer.hpp>
#include <gpumem/dlpack.h>

namespace gpumem {
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
