/*
 * How the C++ interface reports failures: by throwing gpumem::error, or in a gpumem::result.
 *
 * Each call that can fail has two forms. `grow` throws gpumem::error; `try_grow` throws nothing and
 * returns a result. Without exceptions (-fno-exceptions) only the `try_` forms are declared.
 *
 * A result is std::expected<T, gpumem::error> where the standard library has it (C++23), else a
 * class of this header with part of the same interface. Everything that depends on this choice or
 * on exceptions is in a separate inline namespace, so that mixing objects of differently compiled
 * files is a link error.
 */
#ifndef GPUMEM_CPP_ERROR_HPP
#define GPUMEM_CPP_ERROR_HPP

#if !defined(__cplusplus) || __cplusplus < 202002L
#error "gpumem.hpp needs C++20 or later; gpumem.h is for C and for any C++"
#endif

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <gpumem/status.h>
#include <new>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>
#include <version>

#if defined(__cpp_lib_expected) && __cpp_lib_expected >= 202202L
#include <expected>
#define GPUMEM_CPP_EXPECTED 1
#else
#define GPUMEM_CPP_EXPECTED 0
#endif
#if defined(__cpp_exceptions)
#define GPUMEM_CPP_EXCEPTIONS 1
#else
#define GPUMEM_CPP_EXCEPTIONS 0
#endif

#if GPUMEM_CPP_EXPECTED && GPUMEM_CPP_EXCEPTIONS
#define GPUMEM_CPP_MODE expected_throwing
#elif GPUMEM_CPP_EXPECTED
#define GPUMEM_CPP_MODE expected_plain
#elif GPUMEM_CPP_EXCEPTIONS
#define GPUMEM_CPP_MODE result_throwing
#else
#define GPUMEM_CPP_MODE result_plain
#endif

namespace gpumem {
inline namespace GPUMEM_CPP_MODE {

/*
 * A failure, with everything that gpumem_last_error reported about it. It is a value: it stays
 * valid after further failures, and can be passed to other threads. Copying shares the text and
 * cannot fail. If there is no memory for the text, it has the status's text instead.
 */
class error : public std::exception {
  public:
    /* The failure for which a gpumem call in this thread has just returned `status`. */
    [[gnu::cold, gnu::noinline]] static error last(gpumem_status status) noexcept {
        error made(status);
        const gpumem_error *told = gpumem_last_error();
        if (told->status == status) {
            made.driver_code_ = told->driver_code;
            made.system_code_ = told->system_code;
            made.text_ = text::make(told->call, told->message);
        }
        return made;
    }

    /* A failure with only a status. */
    explicit error(gpumem_status status) noexcept : status_(status) {
    }
    error(const error &other) noexcept
        : std::exception(other), status_(other.status_), driver_code_(other.driver_code_),
          system_code_(other.system_code_), text_(text::share(other.text_)) {
    }
    error &operator=(const error &other) noexcept {
        text *shared = text::share(other.text_);
        text::drop(text_);
        status_ = other.status_;
        driver_code_ = other.driver_code_;
        system_code_ = other.system_code_;
        text_ = shared;
        return *this;
    }
    ~error() override {
        text::drop(text_);
    }

    gpumem_status status() const noexcept {
        return status_;
    }
    /* CUresult, or 0. */
    int driver_code() const noexcept {
        return driver_code_;
    }
    /* errno, or 0. */
    int system_code() const noexcept {
        return system_code_;
    }
    /* The driver or system call that failed, or "". Lives as long as this object or a copy. */
    const char *call() const noexcept {
        return text_ ? text_->call() : "";
    }
    /* What was requested, what refused it, what to do about it if known. Never NULL; lives
     * likewise.
     */
    const char *message() const noexcept {
        return text_ ? text_->message() : gpumem_status_name(status_);
    }
    const char *what() const noexcept override {
        return message();
    }

  private:
    /* Both strings in one block, message first, with a reference count. */
    class text {
      public:
        static text *make(const char *call, const char *message) noexcept {
            const std::size_t call_bytes = std::strlen(call) + 1;
            const std::size_t message_bytes = std::strlen(message) + 1;
            void *block = std::malloc(sizeof(text) + message_bytes + call_bytes);
            if (block == nullptr)
                return nullptr;
            text *made = new (block) text(message_bytes);
            std::memcpy(made->bytes(), message, message_bytes);
            std::memcpy(made->bytes() + message_bytes, call, call_bytes);
            return made;
        }
        static text *share(text *shared) noexcept {
            if (shared)
                shared->owners_.fetch_add(1, std::memory_order_relaxed);
            return shared;
        }
        static void drop(text *shared) noexcept {
            if (shared && shared->owners_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
                shared->~text();
                std::free(shared);
            }
        }
        const char *message() noexcept {
            return bytes();
        }
        const char *call() noexcept {
            return bytes() + message_bytes_;
        }

      private:
        explicit text(std::size_t message_bytes) noexcept : message_bytes_(message_bytes) {
        }
        char *bytes() noexcept {
            return reinterpret_cast<char *>(this + 1);
        }
        std::atomic<std::size_t> owners_{1};
        std::size_t message_bytes_;
    };

    gpumem_status status_;
    int driver_code_ = 0;
    int system_code_ = 0;
    text *text_ = nullptr;
};

#if GPUMEM_CPP_EXPECTED

template <class T> using result = std::expected<T, error>;
using unexpected = std::unexpected<error>;

#else

/* What a function returns in place of a value: `return gpumem::unexpected(failure);`. */
class unexpected {
  public:
    explicit unexpected(gpumem::error failure) noexcept : failure_(std::move(failure)) {
    }
    const gpumem::error &error() const noexcept {
        return failure_;
    }

  private:
    gpumem::error failure_;
};

/*
 * A value or a failure: the most used part of std::expected<T, gpumem::error>. `*` and `->` require
 * a value, error() a failure: check first. value() of a failure throws it (here gpumem::error
 * itself, where std::expected throws std::bad_expected_access; or_throw behaves the same for both),
 * and aborts without exceptions.
 */
template <class T> class [[nodiscard]] result {
  public:
    using value_type = T;
    using error_type = gpumem::error;

    result(T value) noexcept : either_(std::in_place_index<0>, std::move(value)) {
    }
    result(const unexpected &failure) noexcept : either_(std::in_place_index<1>, failure.error()) {
    }

    bool has_value() const noexcept {
        return either_.index() == 0;
    }
    explicit operator bool() const noexcept {
        return has_value();
    }
    T &operator*() &noexcept {
        return *std::get_if<0>(&either_);
    }
    const T &operator*() const &noexcept {
        return *std::get_if<0>(&either_);
    }
    T &&operator*() &&noexcept {
        return std::move(*std::get_if<0>(&either_));
    }
    T *operator->() noexcept {
        return std::get_if<0>(&either_);
    }
    const T *operator->() const noexcept {
        return std::get_if<0>(&either_);
    }
    const gpumem::error &error() const noexcept {
        return *std::get_if<1>(&either_);
    }
    T &value() & {
        demand();
        return **this;
    }
    const T &value() const & {
        demand();
        return **this;
    }
    T &&value() && {
        demand();
        return std::move(**this);
    }
    template <class U> T value_or(U &&otherwise) && {
        return has_value() ? std::move(**this) : static_cast<T>(std::forward<U>(otherwise));
    }

  private:
    void demand() const {
        if (has_value())
            return;
#if GPUMEM_CPP_EXCEPTIONS
        throw error();
#else
        std::abort();
#endif
    }
    std::variant<T, gpumem::error> either_;
};

template <> class [[nodiscard]] result<void> {
  public:
    using value_type = void;
    using error_type = gpumem::error;

    result() noexcept = default;
    result(const unexpected &failure) noexcept : failure_(failure.error()) {
    }
    bool has_value() const noexcept {
        return !failure_;
    }
    explicit operator bool() const noexcept {
        return has_value();
    }
    const gpumem::error &error() const noexcept {
        return *failure_;
    }
    void operator*() const noexcept {
    }
    void value() const {
        if (has_value())
            return;
#if GPUMEM_CPP_EXCEPTIONS
        throw error();
#else
        std::abort();
#endif
    }

  private:
    std::optional<gpumem::error> failure_;
};

#endif

#if GPUMEM_CPP_EXCEPTIONS

/* Returns the value or throws gpumem::error, whichever class result is. */
template <class T> T or_throw(result<T> &&either) {
    if (!either) [[unlikely]]
        throw either.error();
    if constexpr (!std::is_void_v<T>)
        return std::move(*either);
}

#endif

namespace detail {

inline result<void> checked(gpumem_status status) noexcept {
    if (status != GPUMEM_OK) [[unlikely]]
        return unexpected(error::last(status));
    return {};
}

/* Returns what `call` stores through its pointer. A struct with a size gets it first. */
template <class T, class Call> result<T> fetched(Call &&call) noexcept {
    T value{};
    if constexpr (requires { value.size; })
        value.size = sizeof value;
    const gpumem_status status = call(&value);
    if (status != GPUMEM_OK) [[unlikely]]
        return unexpected(error::last(status));
    return value;
}

#if GPUMEM_CPP_EXCEPTIONS

[[noreturn, gnu::cold, gnu::noinline]] inline void throw_last(gpumem_status status) {
    throw error::last(status);
}

inline void require(gpumem_status status) {
    if (status != GPUMEM_OK) [[unlikely]]
        throw_last(status);
}

#endif

} // namespace detail
} // namespace GPUMEM_CPP_MODE
} // namespace gpumem

#endif
