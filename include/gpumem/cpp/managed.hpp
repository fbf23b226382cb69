/*
 * Working with managed memory. Contracts: gpumem/managed.h, under the C call of the same name.
 */
#ifndef GPUMEM_CPP_MANAGED_HPP
#define GPUMEM_CPP_MANAGED_HPP

#include <gpumem/cpp/buffer.hpp>
#include <gpumem/managed.h>

namespace gpumem {
inline namespace GPUMEM_CPP_MODE {

/* A place for pages: a device by its ordinal, the host, or one of its nodes. */
struct managed_place {
    gpumem_location location = GPUMEM_LOCATION_DEVICE;
    int id = 0;
};

inline result<void> try_advise(buffer_ref buffer, std::size_t offset, std::size_t bytes,
                               gpumem_advice advice, managed_place place = {}) noexcept {
    return detail::checked(
        gpumem_buffer_advise(buffer.get(), offset, bytes, advice, place.location, place.id));
}

/* Queued but not done on return. */
inline result<void> try_prefetch(buffer_ref buffer, std::size_t offset, std::size_t bytes,
                                 managed_place place, CUstream stream = nullptr) noexcept {
    return detail::checked(
        gpumem_buffer_prefetch(buffer.get(), offset, bytes, place.location, place.id, stream));
}

/* `options` may move the pages in the same step. */
inline result<void> try_discard(buffer_ref buffer, std::size_t offset, std::size_t bytes,
                                CUstream stream, const discard_options &options = {}) noexcept {
    const gpumem_discard_options in_c = detail::in_c(options);
    return detail::checked(gpumem_buffer_discard(buffer.get(), offset, bytes, &in_c, stream));
}

inline result<gpumem_managed_range> try_get_managed_range(buffer_ref buffer, std::size_t offset,
                                                          std::size_t bytes) noexcept {
    return detail::fetched<gpumem_managed_range>([&](auto *range) {
        return gpumem_buffer_get_managed_range(buffer.get(), offset, bytes, range);
    });
}

#if GPUMEM_CPP_EXCEPTIONS

inline void advise(buffer_ref buffer, std::size_t offset, std::size_t bytes, gpumem_advice advice,
                   managed_place place = {}) {
    or_throw(try_advise(buffer, offset, bytes, advice, place));
}

inline void prefetch(buffer_ref buffer, std::size_t offset, std::size_t bytes, managed_place place,
                     CUstream stream = nullptr) {
    or_throw(try_prefetch(buffer, offset, bytes, place, stream));
}

inline void discard(buffer_ref buffer, std::size_t offset, std::size_t bytes, CUstream stream,
                    const discard_options &options = {}) {
    or_throw(try_discard(buffer, offset, bytes, stream, options));
}

inline gpumem_managed_range get_managed_range(buffer_ref buffer, std::size_t offset,
                                              std::size_t bytes) {
    return or_throw(try_get_managed_range(buffer, offset, bytes));
}

#endif

} // namespace GPUMEM_CPP_MODE
} // namespace gpumem

#endif
