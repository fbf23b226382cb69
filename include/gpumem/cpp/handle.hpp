/*
 * Handles: a pointer of the C interface, borrowed or owned.
 *
 * `x_ref` is a borrowed pointer with the calls as members: it can be copied freely, cannot be
 * assigned to (like a C++ reference), and must not outlive the object. `x` owns the object: it can
 * be moved, and its destructor gives the object back. An `x` can be used wherever an `x_ref` is
 * expected. Both have the size of the pointer, and calls on them are the C calls.
 *
 * For threads, too, a handle is a pointer: calls on it are as thread-safe as the C calls, while
 * only one thread at a time may move, reset or destroy the handle itself.
 *
 * Objects must be destroyed in the order that the C interface requires: buffers before their
 * resource, the resource before its device, the device before the library. Members and local
 * variables declared in the order library, device, resource, buffer are. If a destructor is
 * refused, gpumem::set_refusal's callback is called, and the object remains; close() reports it to
 * the caller instead.
 */
#ifndef GPUMEM_CPP_HANDLE_HPP
#define GPUMEM_CPP_HANDLE_HPP

#include <cstdio>
#include <gpumem/cpp/error.hpp>
#include <gpumem/types.h>
#include <type_traits>

namespace gpumem {
inline namespace GPUMEM_CPP_MODE {

/* Called, from any thread, with what a destructor or reset could not give back, and why. */
using refusal_fn = void (*)(const gpumem_error &why) noexcept;

namespace detail {

inline void print_refusal(const gpumem_error &why) noexcept {
    std::fprintf(stderr, "gpumem: not given back: %s: %s\n", gpumem_status_name(why.status),
                 why.message);
}

inline std::atomic<refusal_fn> refusal{print_refusal};

inline void told(gpumem_status status) noexcept {
    /* A forked child owns none of what it inherited: there is nothing to give back. */
    if (status != GPUMEM_OK && status != GPUMEM_ERROR_FORKED) [[unlikely]]
        refusal.load(std::memory_order_acquire)(*gpumem_last_error());
}

} // namespace detail

/* Sets the callback; NULL: the default, a line on standard error. Returns the former one.
 * Thread-safe. */
inline refusal_fn set_refusal(refusal_fn fn) noexcept {
    return detail::refusal.exchange(fn ? fn : detail::print_refusal, std::memory_order_acq_rel);
}

/* A borrowed pointer. It may be NULL; calls on it then do what they do in C. */
template <class C> class borrowed {
  public:
    using handle_type = C *;

    borrowed(const borrowed &) noexcept = default;
    borrowed &operator=(const borrowed &) = delete;

    C *get() const noexcept {
        return handle_;
    }
    explicit operator bool() const noexcept {
        return handle_ != nullptr;
    }
    friend bool operator==(const borrowed &a, const borrowed &b) noexcept {
        return a.handle_ == b.handle_;
    }

  protected:
    explicit borrowed(C *handle) noexcept : handle_(handle) {
    }
    ~borrowed() = default;
    C *handle_;
};

/* The owner over a borrowed handle. `Self` has a static give_back. */
template <class Self, class Ref> class owner : public Ref {
  public:
    using handle_type = typename Ref::handle_type;

    /* Owns nothing. */
    owner() noexcept : Ref(nullptr) {
    }
    owner(owner &&other) noexcept : Ref(other.release()) {
    }
    owner &operator=(owner &&other) noexcept {
        if (this != &other)
            reset(other.release());
        return *this;
    }
    owner(const owner &) = delete;
    owner &operator=(const owner &) = delete;
    ~owner() {
        reset();
    }

    /* Takes ownership of a pointer of the C interface; from NULL, a handle that owns nothing. */
    [[nodiscard]] static Self adopt(handle_type handle) noexcept {
        Self made;
        made.handle_ = handle;
        return made;
    }
    /* Releases ownership of the pointer; the caller gives it back, by the C call. */
    [[nodiscard]] handle_type release() noexcept {
        return std::exchange(this->handle_, nullptr);
    }
    /* Gives the object back, and takes ownership of `handle`. */
    void reset(handle_type handle = nullptr) noexcept {
        if (handle_type former = std::exchange(this->handle_, handle))
            detail::told(Self::give_back(former));
    }
    /* Gives the object back, and reports a refusal, after which it still owns the object. */
    result<void> try_close() noexcept {
        const gpumem_status status = Self::give_back(this->handle_);
        if (status == GPUMEM_OK)
            this->handle_ = nullptr;
        return detail::checked(status);
    }
#if GPUMEM_CPP_EXCEPTIONS
    void close() {
        or_throw(try_close());
    }
#endif
};

namespace detail {

/* Calls a callable that an object keeps. Swallows its exceptions, because there is no call from
 * which they could be thrown. */
template <class Call> void kept_call(Call &&call) noexcept {
#if GPUMEM_CPP_EXCEPTIONS
    try {
        call();
    } catch (...) {
    }
#else
    call();
#endif
}

/* Owns what `create` stores through its pointer. */
template <class Owner, class Create> result<Owner> created(Create &&create) noexcept {
    typename Owner::handle_type handle = nullptr;
    const gpumem_status status = create(&handle);
    if (status != GPUMEM_OK) [[unlikely]]
        return unexpected(error::last(status));
    return Owner::adopt(handle);
}

} // namespace detail
} // namespace GPUMEM_CPP_MODE
} // namespace gpumem

#endif
