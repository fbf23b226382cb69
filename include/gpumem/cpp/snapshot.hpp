/*
 * A JSON snapshot of what is held. Contracts: gpumem/snapshot.h, under the C call of the same name;
 * an overload that takes a library covers all devices that it has open.
 */
#ifndef GPUMEM_CPP_SNAPSHOT_HPP
#define GPUMEM_CPP_SNAPSHOT_HPP

#include <cstdlib>
#include <gpumem/cpp/device.hpp>
#include <gpumem/cpp/options.hpp>
#include <gpumem/cpp/wrappers.hpp>
#include <gpumem/snapshot.h>
#include <memory>
#include <string_view>

namespace gpumem {

namespace detail {

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

inline result<snapshot_text> try_snapshot(library_ref library,
                                          const snapshot_options &options = {}) noexcept {
    const gpumem_snapshot_options in_c = detail::in_c(options);
    return detail::told([&](char **text) { return gpumem_snapshot(library.get(), &in_c, text); });
}

/* Calls `write` with the text, as std::string_view, piece by piece; it returns 0 or an errno, or
 * nothing. An exception from it ends the writing, and is rethrown, even by this form. */
template <detail::takes_text F>
result<void> try_write_snapshot(library_ref library, F &&write,
                                const snapshot_options &options = {}) {
    const gpumem_snapshot_options in_c = detail::in_c(options);
    detail::lent<std::remove_reference_t<F>> call(write);
    const gpumem_status status = gpumem_snapshot_write(library.get(), &in_c, &call.write, &call);
    call.rethrow();
    return detail::checked(status);
}

#if GPUMEM_CPP_EXCEPTIONS
inline snapshot_text snapshot(library_ref library, const snapshot_options &options = {}) {
    return or_throw(try_snapshot(library, options));
}

template <detail::takes_text F>
void write_snapshot(library_ref library, F &&write, const snapshot_options &options = {}) {
    or_throw(try_write_snapshot(library, write, options));
}
#endif

} // namespace GPUMEM_CPP_MODE
} // namespace gpumem

#endif
