/*
 * Handles: a pointer of the C interface, borrowed or owned.
 *
 * `x_ref` is a borrowed pointer with the calls as members: it is copied freely, cannot be assigned
 * to (like a C++ reference), and must not outlive the object. `x` owns: it can be moved, and gives
 * the object back when it goes. An `x` can stand wherever an `x_ref` is asked for. Both are as
 * large as the pointer, and calls on them are the C calls.
 *
 * A handle is a pointer also for threads: calls on it are as thread-safe as the C calls, while
 * moving, resetting and destroying the handle itself is for one thread at a time.
 *
 * Objects must go in the order that the C interface asks for: buffers before their resource, that
 * before its device, that before the library. Members and local variables that are declared in the
 * order library, device, resource, buffer do. What is refused in a destructor is told to
 * gpumem::set_refusal, and the object stays; close() tells it to the caller instead.
 */
#ifndef GPUMEM_CPP_HANDLE_HPP
#define GPUMEM_CPP_HANDLE_HPP

#include <cstdio>
#include <gpumem/cpp/error.hpp>
#include <gpumem/types.h>
#include <type_traits>

namespace gpumem {
inline namespace GPUMEM_CPP_MODE {

/* Receives what a destructor or reset could not give back, and why. From any thread. */
using refusal_fn = void (*)(const gpumem_error &why) noexcept;

namespace detail {

inline void print_refusal(const gpumem_error &why) noexcept {
    std::fprintf(stderr, "gpumem: not given back: %s: %s\n", gpumem_status_name(why.status),
                 why.message);
}

inline std::atomic<refusal_fn> refusal{print_refusal};

inline void told(gpumem_status status) noexcept {
    /* A forked child owns nothing of what it inherited: there is nothing to give back. */
    if (status != GPUMEM_OK && status != GPUMEM_ERROR_FORKED) [[unlikely]]
        refusal.load(std::memory_order_acquire)(*gpumem_last_error());
}

} // namespace detail

/* Sets who is told; NULL: the default, a line on standard error. Returns who was. Thread-safe. */
inline refusal_fn set_refusal(refusal_fn fn) noexcept {
    return detail::refusal.exchange(fn ? fn : detail::print_refusal, std::memory_order_acq_rel);
}

/* A borrowed pointer. It may be NULL; calls on that do what they do in C. */
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

/* The owner over a borrowed handle. `Self` says how to give back: a static give_back. */
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

    /* Takes a pointer of the C interface into its care; NULL gives a handle that owns nothing. */
    [[nodiscard]] static Self adopt(handle_type handle) noexcept {
        Self made;
        made.handle_ = handle;
        return made;
    }
    /* Gives the pointer out of its care; the caller gives it back, by the C call. */
    [[nodiscard]] handle_type release() noexcept {
        return std::exchange(this->handle_, nullptr);
    }
    /* Gives the object back, and owns `handle` from now on. */
    void reset(handle_type handle = nullptr) noexcept {
        if (handle_type former = std::exchange(this->handle_, handle))
            detail::told(Self::give_back(former));
    }
    /* Gives the object back and says so if that is refused: it then still owns it. */
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

/* Calls what an object keeps: what it throws goes no further, for there is no call that it could
 * come out of. */
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

/* What `create` stores through its pointer, owned. */
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
