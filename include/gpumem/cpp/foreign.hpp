/*
 * Buffers over memory that the library did not allocate. Contracts: gpumem/foreign.h, under the C
 * call of the same name.
 */
#ifndef GPUMEM_CPP_FOREIGN_HPP
#define GPUMEM_CPP_FOREIGN_HPP

#include <gpumem/cpp/buffer.hpp>
#include <gpumem/foreign.h>
#include <memory>
#include <type_traits>

namespace gpumem {
inline namespace GPUMEM_CPP_MODE {

class deleter_ref;

namespace detail {

template <class F>
concept gives_memory_back = !std::is_same_v<std::remove_cvref_t<F>, deleter_ref> &&
                            std::is_object_v<std::remove_reference_t<F>> &&
                            std::is_invocable_v<F &, CUdeviceptr, std::size_t, CUstream>;

} // namespace detail

/*
 * A callable that gives memory back: it takes the address, the bytes and a stream. It is borrowed,
 * and must live until it is called, which may be after the buffer is gone: temporaries do not
 * compile. Its exceptions are swallowed, and it counts as called.
 */
class deleter_ref {
  public:
    deleter_ref() noexcept = default;
    template <detail::gives_memory_back F>
    deleter_ref(F &callable) noexcept
        : user_(const_cast<void *>(static_cast<const void *>(std::addressof(callable)))),
          fn_([](void *user, CUdeviceptr pointer, std::size_t bytes, CUstream stream) {
              detail::kept_call([&] { (*static_cast<F *>(user))(pointer, bytes, stream); });
          }) {
    }
    template <detail::gives_memory_back F> deleter_ref(const F &&) = delete;

    gpumem_deleter_fn fn() const noexcept {
        return fn_;
    }
    void *user() const noexcept {
        return user_;
    }

  private:
    void *user_ = nullptr;
    gpumem_deleter_fn fn_ = nullptr;
};

/* gpumem_foreign_options; `deleter` without `user`. */
struct foreign_options {
    CUstream stream = nullptr;
    deleter_ref deleter = {};
    bool stream_ordered = false;
    bool read_only = false;
    bool host_only = false;
};

namespace detail {

inline gpumem_foreign_options in_c(const foreign_options &from) noexcept {
    gpumem_foreign_options to{};
    to.size = sizeof to;
    to.stream = from.stream;
    to.deleter = from.deleter.fn();
    to.user = from.deleter.user();
    to.stream_ordered = from.stream_ordered;
    to.read_only = from.read_only;
    to.host_only = from.host_only;
    return to;
}

} // namespace detail

inline result<buffer> try_buffer_from_pointer(device_ref device, CUdeviceptr pointer,
                                              std::size_t bytes,
                                              const foreign_options &options = {}) noexcept {
    const gpumem_foreign_options in_c = detail::in_c(options);
    return detail::created<buffer>([&](auto *made) {
        return gpumem_buffer_from_pointer(device.get(), pointer, bytes, &in_c, made);
    });
}

/* gpumem_register_options */
struct register_options {
    CUstream stream = nullptr;
    bool read_only = false;
};

inline result<buffer> try_buffer_register(device_ref device, void *address, std::size_t bytes,
                                          const register_options &options = {}) noexcept {
    gpumem_register_options in_c = {};
    in_c.size = sizeof in_c;
    in_c.stream = options.stream;
    in_c.read_only = options.read_only;
    return detail::created<buffer>([&](auto *made) {
        return gpumem_buffer_register(device.get(), address, bytes, &in_c, made);
    });
}

#if GPUMEM_CPP_EXCEPTIONS
inline buffer buffer_register(device_ref device, void *address, std::size_t bytes,
                              const register_options &options = {}) {
    return or_throw(try_buffer_register(device, address, bytes, options));
}

inline buffer buffer_from_pointer(device_ref device, CUdeviceptr pointer, std::size_t bytes,
                                  const foreign_options &options = {}) {
    return or_throw(try_buffer_from_pointer(device, pointer, bytes, options));
}
#endif

} // namespace GPUMEM_CPP_MODE
} // namespace gpumem

#endif
