/*
 * A JSON snapshot of what is held. Contracts: gpumem/snapshot.h, under the C call of the same name;
 * an overload that takes a library covers all devices that it has open.
 */
#ifndef GPUMEM_CPP_SNAPSHOT_HPP
#define GPUMEM_CPP_SNAPSHOT_HPP

#include <cstdlib>
#include <gpumem/cpp/device.hpp>
#include <gpumem/cpp/wrappers.hpp>
#include <gpumem/snapshot.h>
#include <memory>
#include <string_view>

namespace gpumem {

/* gpumem_snapshot_options */
struct snapshot_options {
    bool without_buffers = false;
    bool without_pieces = false;
};

namespace detail {

inline gpumem_snapshot_options in_c(const snapshot_options &from) noexcept {
    gpumem_snapshot_options to{};
    to.size = sizeof to;
    to.without_buffers = from.without_buffers;
    to.without_pieces = from.without_pieces;
    return to;
}

struct text_end {
    void operator()(char *text) const noexcept {
        std::free(text);
    }
};

} // namespace detail

/* Owns a snapshot's text: UTF-8, 0-terminated. */
class snapshot_text {
  public:
    explicit snapshot_text(char *text) noexcept : text_(text) {
    }
    const char *c_str() const noexcept {
        return text_.get();
    }
    std::string_view view() const noexcept {
        return text_ ? std::string_view(text_.get()) : std::string_view();
    }

  private:
    std::unique_ptr<char, detail::text_end> text_;
};

inline namespace GPUMEM_CPP_MODE {

namespace detail {

template <class Call> result<snapshot_text> told(Call &&call) noexcept {
    char *text = nullptr;
    const gpumem_status status = call(&text);
    if (status != GPUMEM_OK) [[unlikely]]
        return unexpected(error::last(status));
    return snapshot_text(text);
}

} // namespace detail

inline result<snapshot_text> try_snapshot(device_ref device,
                                          const snapshot_options &options = {}) noexcept {
    const gpumem_snapshot_options in_c = detail::in_c(options);
    return detail::told([&](char **text) { return gpumem_snapshot(device.get(), &in_c, text); });
}

inline result<snapshot_text> try_snapshot(library_ref library,
                                          const snapshot_options &options = {}) noexcept {
    const gpumem_snapshot_options in_c = detail::in_c(options);
    return detail::told(
        [&](char **text) { return gpumem_library_snapshot(library.get(), &in_c, text); });
}

/* Calls `write` with the text, as std::string_view, piece by piece; it returns 0 or an errno, or
 * nothing. An exception from it ends the writing, and is rethrown, even by this form. */
template <detail::takes_text F>
result<void> try_write_snapshot(device_ref device, F &&write,
                                const snapshot_options &options = {}) {
    const gpumem_snapshot_options in_c = detail::in_c(options);
    detail::lent<std::remove_reference_t<F>> call(write);
    const gpumem_status status = gpumem_snapshot_write(device.get(), &in_c, &call.write, &call);
    call.rethrow();
    return detail::checked(status);
}

template <detail::takes_text F>
result<void> try_write_snapshot(library_ref library, F &&write,
                                const snapshot_options &options = {}) {
    const gpumem_snapshot_options in_c = detail::in_c(options);
    detail::lent<std::remove_reference_t<F>> call(write);
    const gpumem_status status =
        gpumem_library_snapshot_write(library.get(), &in_c, &call.write, &call);
    call.rethrow();
    return detail::checked(status);
}

#if GPUMEM_CPP_EXCEPTIONS
inline snapshot_text snapshot(device_ref device, const snapshot_options &options = {}) {
    return or_throw(try_snapshot(device, options));
}

inline snapshot_text snapshot(library_ref library, const snapshot_options &options = {}) {
    return or_throw(try_snapshot(library, options));
}

template <detail::takes_text F>
void write_snapshot(device_ref device, F &&write, const snapshot_options &options = {}) {
    or_throw(try_write_snapshot(device, write, options));
}

template <detail::takes_text F>
void write_snapshot(library_ref library, F &&write, const snapshot_options &options = {}) {
    or_throw(try_write_snapshot(library, write, options));
}
#endif

} // namespace GPUMEM_CPP_MODE
} // namespace gpumem

#endif
