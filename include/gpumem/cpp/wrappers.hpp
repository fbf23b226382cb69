/*
 * Resources that wrap other resources. Contracts: gpumem/wrappers.h, under the C call of the same
 * name. The wrapped resource must outlive the wrapper.
 */
#ifndef GPUMEM_CPP_WRAPPERS_HPP
#define GPUMEM_CPP_WRAPPERS_HPP

#include <cerrno>
#include <gpumem/cpp/buffer.hpp>
#include <gpumem/wrappers.h>
#include <memory>
#include <string_view>
#include <type_traits>

namespace gpumem {
inline namespace GPUMEM_CPP_MODE {

class write_ref;
class failure_ref;

namespace detail {

/* Takes text; returns 0 or an errno, or nothing. */
template <class F>
concept takes_text = !std::is_same_v<std::remove_cvref_t<F>, write_ref> &&
                     std::is_object_v<std::remove_reference_t<F>> &&
                     (std::is_invocable_r_v<int, F &, std::string_view> ||
                      std::is_void_v<std::invoke_result_t<F &, std::string_view>>);

/* Receives allocations; returns whether to go on, or nothing. */
template <class F>
concept visits_tracked = std::is_object_v<std::remove_reference_t<F>> &&
    (std::is_invocable_r_v<bool, F &, const gpumem_tracked &> ||
     std::is_void_v<std::invoke_result_t<F &, const gpumem_tracked &>>);

template <class F>
concept answers_failures =
    !std::is_same_v<std::remove_cvref_t<F>, failure_ref> &&
    std::is_object_v<std::remove_reference_t<F>> &&
    std::is_invocable_r_v<gpumem_failure_answer, F &, const gpumem_allocation_failure &>;

/* The result of a callable, or `silence` if it returns nothing. */
template <class Answer, class F, class Told>
Answer answer(F &callable, Answer silence, const Told &told) {
    if constexpr (std::is_void_v<std::invoke_result_t<F &, const Told &>>) {
        callable(told);
        return silence;
    } else {
        return callable(told);
    }
}

/* A callable for the duration of one C call, and its exception, which must not pass through C. */
template <class F> class lent {
  public:
    explicit lent(F &callable) noexcept : callable_(callable) {
    }
    lent(const lent &) = delete;
    lent &operator=(const lent &) = delete;

    static int write(void *user, const char *text, std::size_t bytes) noexcept {
        return static_cast<lent *>(user)->guarded(
            [&](F &callable) { return answer(callable, 0, std::string_view(text, bytes)); }, EIO);
    }
    static int visit(void *user, const gpumem_tracked *tracked) noexcept {
        return static_cast<lent *>(user)->guarded(
            [&](F &callable) { return answer(callable, true, *tracked) ? 0 : 1; }, 1);
    }
    /* Call this after the C call. */
    void rethrow() const {
#if GPUMEM_CPP_EXCEPTIONS
        if (thrown_)
            std::rethrow_exception(thrown_);
#endif
    }

  private:
    template <class Call> int guarded(Call &&call, [[maybe_unused]] int stop) noexcept {
#if GPUMEM_CPP_EXCEPTIONS
        try {
            return call(callable_);
        } catch (...) {
            thrown_ = std::current_exception();
            return stop;
        }
#else
        return call(callable_);
#endif
    }
    F &callable_;
#if GPUMEM_CPP_EXCEPTIONS
    std::exception_ptr thrown_;
#endif
};

/* The result of a callable that a resource keeps, or `otherwise` if it throws, because there is no
 * call from which the exception could be thrown. */
template <class Answer, class Call>
Answer kept_answer(Call &&call, [[maybe_unused]] Answer otherwise) noexcept {
#if GPUMEM_CPP_EXCEPTIONS
    try {
        return call();
    } catch (...) {
        return otherwise;
    }
#else
    return call();
#endif
}

} // namespace detail

/*
 * A callable that takes a trace's text, as std::string_view, and returns 0 or an errno, or nothing.
 * It is borrowed, and must outlive the resource, which also writes when it is destroyed:
 * temporaries do not compile. An exception counts as EIO, which trace_flush reports.
 */
class write_ref {
  public:
    write_ref() noexcept = default;
    template <detail::takes_text F>
    write_ref(F &callable) noexcept
        : user_(const_cast<void *>(static_cast<const void *>(std::addressof(callable)))),
          fn_([](void *user, const char *text, std::size_t bytes) -> int {
              return detail::kept_answer(
                  [&] {
                      return detail::answer(*static_cast<F *>(user), 0,
                                            std::string_view(text, bytes));
                  },
                  EIO);
          }) {
    }
    template <detail::takes_text F> write_ref(const F &&) = delete;

    gpumem_write_fn fn() const noexcept {
        return fn_;
    }
    void *user() const noexcept {
        return user_;
    }

  private:
    void *user_ = nullptr;
    gpumem_write_fn fn_ = nullptr;
};

/*
 * A callable that is called when an allocation fails, and returns what to do. It is borrowed, and
 * must outlive the resource: temporaries do not compile. If it throws, the allocation fails as for
 * GIVE_UP, and the exception is swallowed.
 */
class failure_ref {
  public:
    failure_ref() noexcept = default;
    template <detail::answers_failures F>
    failure_ref(F &callable) noexcept
        : user_(const_cast<void *>(static_cast<const void *>(std::addressof(callable)))),
          fn_([](void *user, const gpumem_allocation_failure *failure) -> gpumem_failure_answer {
              return detail::kept_answer<gpumem_failure_answer>(
                  [&] { return (*static_cast<F *>(user))(*failure); }, GPUMEM_FAILURE_GIVE_UP);
          }) {
    }
    template <detail::answers_failures F> failure_ref(const F &&) = delete;

    gpumem_failure_callback_fn fn() const noexcept {
        return fn_;
    }
    void *user() const noexcept {
        return user_;
    }

  private:
    void *user_ = nullptr;
    gpumem_failure_callback_fn fn_ = nullptr;
};

/* gpumem_trace_options; `write` without `user`. */
struct trace_options {
    const char *path = nullptr;
    write_ref write = {};
    std::size_t buffer_bytes = 0;
};

/* gpumem_failure_callback_options; `fn` without `user`. */
struct failure_callback_options {
    failure_ref fn = {};
    unsigned maximum_retries = 0;
};

namespace detail {

inline gpumem_trace_options in_c(const trace_options &from) noexcept {
    gpumem_trace_options to{};
    to.size = sizeof to;
    to.path = from.path;
    to.write = from.write.fn();
    to.user = from.write.user();
    to.buffer_bytes = from.buffer_bytes;
    return to;
}

inline gpumem_failure_callback_options in_c(const failure_callback_options &from) noexcept {
    gpumem_failure_callback_options to{};
    to.size = sizeof to;
    to.fn = from.fn.fn();
    to.user = from.fn.user();
    to.maximum_retries = from.maximum_retries;
    return to;
}

} // namespace detail

/* ---- A log that can be replayed -------------------------------------------------------------- */

inline result<resource> try_trace_resource(resource_ref upstream,
                                           const trace_options &options) noexcept {
    const gpumem_trace_options in_c = detail::in_c(options);
    return detail::created<resource>(
        [&](auto *made) { return gpumem_trace_resource_create(upstream.get(), &in_c, made); });
}

inline result<void> try_trace_note(resource_ref trace, const char *text) noexcept {
    return detail::checked(gpumem_trace_note(trace.get(), text));
}

inline result<void> try_trace_flush(resource_ref trace) noexcept {
    return detail::checked(gpumem_trace_flush(trace.get()));
}

/* ---- Call sites of live allocations ---------------------------------------------------------- */

inline result<resource> try_tracking_resource(resource_ref upstream,
                                              const tracking_options &options = {}) noexcept {
    const gpumem_tracking_options in_c = detail::in_c(options);
    return detail::created<resource>(
        [&](auto *made) { return gpumem_tracking_resource_create(upstream.get(), &in_c, made); });
}

/* Calls `visitor` with each gpumem_tracked; it returns whether to go on, or nothing. An exception
 * from it ends the visit, and is rethrown, even by this form. */
template <detail::visits_tracked F>
result<void> try_tracking_visit(resource_ref tracking, F &&visitor) {
    detail::lent<std::remove_reference_t<F>> call(visitor);
    const gpumem_status status = gpumem_tracking_visit(tracking.get(), &call.visit, &call);
    call.rethrow();
    return detail::checked(status);
}

/* Calls `write` with the text, as std::string_view, piece by piece; it returns 0 or an errno, or
 * nothing. An exception from it ends the report, and is rethrown, even by this form. */
template <detail::takes_text F>
result<void> try_tracking_report(resource_ref tracking, gpumem_report_format format, F &&write) {
    detail::lent<std::remove_reference_t<F>> call(write);
    const gpumem_status status = gpumem_tracking_report(tracking.get(), format, &call.write, &call);
    call.rethrow();
    return detail::checked(status);
}

/* ---- Alignment ------------------------------------------------------------------------------- */

inline result<resource> try_alignment_resource(resource_ref upstream,
                                               const alignment_options &options = {}) noexcept {
    const gpumem_alignment_options in_c = detail::in_c(options);
    return detail::created<resource>(
        [&](auto *made) { return gpumem_alignment_resource_create(upstream.get(), &in_c, made); });
}

/* ---- When memory runs out -------------------------------------------------------------------- */

inline result<resource>
try_failure_callback_resource(resource_ref upstream,
                              const failure_callback_options &options) noexcept {
    const gpumem_failure_callback_options in_c = detail::in_c(options);
    return detail::created<resource>([&](auto *made) {
        return gpumem_failure_callback_resource_create(upstream.get(), &in_c, made);
    });
}

inline result<resource> try_fallback_resource(resource_ref first, resource_ref second) noexcept {
    return detail::created<resource>([&](auto *made) {
        return gpumem_fallback_resource_create(first.get(), second.get(), made);
    });
}

inline result<resource_ref> try_fallback_source(buffer_ref buffer) noexcept {
    gpumem_resource *source = nullptr;
    const gpumem_status status = gpumem_fallback_get_source(buffer.get(), &source);
    if (status != GPUMEM_OK)
        return unexpected(error::last(status));
    return resource_ref(source);
}

#if GPUMEM_CPP_EXCEPTIONS

inline resource trace_resource(resource_ref upstream, const trace_options &options) {
    return or_throw(try_trace_resource(upstream, options));
}

inline void trace_note(resource_ref trace, const char *text) {
    detail::require(gpumem_trace_note(trace.get(), text));
}

inline void trace_flush(resource_ref trace) {
    detail::require(gpumem_trace_flush(trace.get()));
}

inline resource tracking_resource(resource_ref upstream, const tracking_options &options = {}) {
    return or_throw(try_tracking_resource(upstream, options));
}

template <detail::visits_tracked F> void tracking_visit(resource_ref tracking, F &&visitor) {
    or_throw(try_tracking_visit(tracking, visitor));
}

template <detail::takes_text F>
void tracking_report(resource_ref tracking, gpumem_report_format format, F &&write) {
    or_throw(try_tracking_report(tracking, format, write));
}

inline resource alignment_resource(resource_ref upstream, const alignment_options &options = {}) {
    return or_throw(try_alignment_resource(upstream, options));
}

inline resource failure_callback_resource(resource_ref upstream,
                                          const failure_callback_options &options) {
    return or_throw(try_failure_callback_resource(upstream, options));
}

inline resource fallback_resource(resource_ref first, resource_ref second) {
    return or_throw(try_fallback_resource(first, second));
}

inline resource_ref fallback_source(buffer_ref buffer) {
    return or_throw(try_fallback_source(buffer));
}

#endif

} // namespace GPUMEM_CPP_MODE
} // namespace gpumem

#endif
