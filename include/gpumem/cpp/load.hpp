/*
 * Files into buffers, and checksums. Contracts: gpumem/load.h, under the C call of the same name.
 */
#ifndef GPUMEM_CPP_LOAD_HPP
#define GPUMEM_CPP_LOAD_HPP

#include <gpumem/cpp/buffer.hpp>
#include <gpumem/load.h>
#include <memory>
#include <type_traits>

namespace gpumem {
inline namespace GPUMEM_CPP_MODE {

class progress_ref;

namespace detail {

template <class F>
concept tells_progress = !std::is_same_v<std::remove_cvref_t<F>, progress_ref> &&
                         std::is_object_v<std::remove_reference_t<F>> &&
                         std::is_invocable_r_v<bool, F &, const gpumem_load_progress &>;

} // namespace detail

/*
 * A callable (or the address of a function) that receives progress and returns whether to go on;
 * false ends the operation with CANCELLED. It is borrowed, and must outlive the call that it is
 * passed to. An exception from it stops the operation and is rethrown by that call, even by its
 * `try_` form.
 */
class progress_ref {
  public:
    progress_ref() noexcept = default;
    template <detail::tells_progress F>
    progress_ref(F &&callable) noexcept
        : target_(const_cast<void *>(static_cast<const void *>(std::addressof(callable)))),
          call_([](void *target, const gpumem_load_progress &now) -> bool {
              return (*static_cast<std::remove_reference_t<F> *>(target))(now);
          }) {
    }
    explicit operator bool() const noexcept {
        return call_ != nullptr;
    }
    bool operator()(const gpumem_load_progress &now) const {
        return call_(target_, now);
    }

  private:
    void *target_ = nullptr;
    bool (*call_)(void *, const gpumem_load_progress &) = nullptr;
};

/* gpumem_load_options; `progress` without `user`. */
struct load_options {
    std::size_t chunk_bytes = 0;
    unsigned threads = 0;
    resource_ref pinned = nullptr;
    progress_ref progress = {};
};

/* The result of a load. */
struct loaded {
    gpumem::buffer buffer;
    gpumem_load_report report;
};

namespace detail {

/* The options for one call, and the exception of its callable. */
class load_call {
  public:
    explicit load_call(const load_options &from) noexcept : progress_(from.progress) {
        options_.size = sizeof options_;
        options_.chunk_bytes = from.chunk_bytes;
        options_.threads = from.threads;
        options_.pinned = from.pinned.get();
        options_.progress = progress_ ? &load_call::tell : nullptr;
        options_.user = this;
    }
    load_call(const load_call &) = delete;
    load_call &operator=(const load_call &) = delete;

    const gpumem_load_options *get() const noexcept {
        return &options_;
    }
    /* Call this after the C call: exceptions must not pass through C. */
    void rethrow() const {
#if GPUMEM_CPP_EXCEPTIONS
        if (thrown_)
            std::rethrow_exception(thrown_);
#endif
    }

  private:
    static int tell(void *user, const gpumem_load_progress *now) {
        load_call *self = static_cast<load_call *>(user);
#if GPUMEM_CPP_EXCEPTIONS
        try {
            return self->progress_(*now) ? 0 : 1;
        } catch (...) {
            self->thrown_ = std::current_exception();
            return 1;
        }
#else
        return self->progress_(*now) ? 0 : 1;
#endif
    }
    progress_ref progress_;
    gpumem_load_options options_{};
#if GPUMEM_CPP_EXCEPTIONS
    std::exception_ptr thrown_;
#endif
};

} // namespace detail

inline result<loaded> try_load_file(resource_ref resource, const char *path,
                                    const load_options &options = {}) {
    const detail::load_call call(options);
    gpumem_buffer *handle = nullptr;
    gpumem_load_report report{};
    report.size = sizeof report;
    const gpumem_status status =
        gpumem_load_file(resource.get(), path, call.get(), &handle, &report);
    buffer made = buffer::adopt(handle);
    call.rethrow();
    if (status != GPUMEM_OK)
        return unexpected(error::last(status));
    return loaded{std::move(made), report};
}

/* gpumem_buffer_checksum */
inline result<std::uint64_t> try_checksum(buffer_ref buffer, const load_options &options = {}) {
    const detail::load_call call(options);
    std::uint64_t checksum = 0;
    const gpumem_status status = gpumem_buffer_checksum(buffer.get(), call.get(), &checksum);
    call.rethrow();
    if (status != GPUMEM_OK)
        return unexpected(error::last(status));
    return checksum;
}

inline result<std::uint64_t> try_file_checksum(const char *path, const load_options &options = {}) {
    const detail::load_call call(options);
    std::uint64_t checksum = 0;
    const gpumem_status status = gpumem_file_checksum(path, call.get(), &checksum);
    call.rethrow();
    if (status != GPUMEM_OK)
        return unexpected(error::last(status));
    return checksum;
}

#if GPUMEM_CPP_EXCEPTIONS
inline loaded load_file(resource_ref resource, const char *path, const load_options &options = {}) {
    return or_throw(try_load_file(resource, path, options));
}

inline std::uint64_t checksum(buffer_ref buffer, const load_options &options = {}) {
    return or_throw(try_checksum(buffer, options));
}

inline std::uint64_t file_checksum(const char *path, const load_options &options = {}) {
    return or_throw(try_file_checksum(path, options));
}
#endif

} // namespace GPUMEM_CPP_MODE
} // namespace gpumem

#endif
