/*
 * Stores to device memory that the CPU has mapped. Contracts: gpumem/mapped_store.h.
 */
#ifndef GPUMEM_CPP_MAPPED_STORE_HPP
#define GPUMEM_CPP_MAPPED_STORE_HPP

#include <cstddef>
#include <gpumem/cpp/error.hpp>
#include <gpumem/mapped_store.h>
#include <memory>
#include <type_traits>

namespace gpumem {
inline namespace GPUMEM_CPP_MODE {

/* One object; at most 64 bytes are stored in place. */
template <class T>
requires std::is_trivially_copyable_v<T>
inline void store(T *to, const std::type_identity_t<T> &from) noexcept {
    gpumem_store(to, std::addressof(from), sizeof from);
}

/* Any number of bytes. */
inline void store_bytes(void *to, const void *from, std::size_t bytes) noexcept {
    gpumem_store_bytes(to, from, bytes);
}

inline void store_fence() noexcept {
    gpumem_store_fence();
}

} // namespace GPUMEM_CPP_MODE
} // namespace gpumem

#endif
