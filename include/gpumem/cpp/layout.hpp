/*
 * Notification before memory goes away. Contracts: gpumem/layout.h. The layout of a buffer is its
 * member layout.
 */
#ifndef GPUMEM_CPP_LAYOUT_HPP
#define GPUMEM_CPP_LAYOUT_HPP

#include <concepts>
#include <gpumem/cpp/buffer.hpp>
#include <gpumem/layout.h>
#include <memory>
#include <type_traits>

namespace gpumem {
inline namespace GPUMEM_CPP_MODE {

class watch_fn_ref;
class registrar_ref;

namespace detail {

template <class F>
concept hears_of_watch = !std::is_same_v<std::remove_cvref_t<F>, watch_fn_ref> &&
                         std::is_object_v<std::remove_reference_t<F>> &&
                         std::is_invocable_v<F &, const gpumem_watch_event &>;

template <class T>
concept registers_ranges = !std::is_same_v<std::remove_cvref_t<T>, registrar_ref> &&
                           std::is_object_v<std::remove_reference_t<T>> &&
                           requires(T & registrar, const gpumem_watch_event &event) {
    { registrar.added(event) } -> std::same_as<gpumem_status>;
    registrar.gone(event);
};

} // namespace detail

/*
 * A callable that is called before memory goes away, from any thread, and from two at once. It is
 * borrowed, and must outlive the watch: temporaries do not compile. Its exceptions are swallowed,
 * and the memory goes away all the same.
 */
class watch_fn_ref {
  public:
    template <detail::hears_of_watch F>
    watch_fn_ref(F &callable) noexcept
        : user_(const_cast<void *>(static_cast<const void *>(std::addressof(callable)))),
          fn_([](void *user, const gpumem_watch_event *event) {
              detail::kept_call([&] { (*static_cast<F *>(user))(*event); });
          }) {
    }
    template <detail::hears_of_watch F> watch_fn_ref(const F &&) = delete;

    gpumem_watch_fn fn() const noexcept {
        return fn_;
    }
    void *user() const noexcept {
        return user_;
    }

  private:
    void *user_;
    gpumem_watch_fn fn_;
};

/*
 * An object that is told of ranges of memory: gpumem_status added(event), and gone(event).
 * Borrowed, as a watch_fn_ref. An exception of added refuses the range with
 * GPUMEM_ERROR_CANCELLED.
 */
class registrar_ref {
  public:
    template <detail::registers_ranges T>
    registrar_ref(T &registrar) noexcept
        : user_(const_cast<void *>(static_cast<const void *>(std::addressof(registrar)))),
          added_([](void *user, const gpumem_watch_event *event) {
              gpumem_status status = GPUMEM_ERROR_CANCELLED;
              detail::kept_call([&] { status = static_cast<T *>(user)->added(*event); });
              return status;
          }),
          gone_([](void *user, const gpumem_watch_event *event) {
              detail::kept_call([&] { static_cast<T *>(user)->gone(*event); });
          }) {
    }
    template <detail::registers_ranges T> registrar_ref(const T &&) = delete;

    gpumem_add_fn added() const noexcept {
        return added_;
    }
    gpumem_watch_fn gone() const noexcept {
        return gone_;
    }
    void *user() const noexcept {
        return user_;
    }

  private:
    void *user_;
    gpumem_add_fn added_;
    gpumem_watch_fn gone_;
};

/* Owns a watch of a buffer or a resource (gpumem_buffer_watch, gpumem_resource_watch), or of a
 * caching resource's ranges (gpumem_resource_watch_ranges), which it may outlive. Destroying it
 * ends the watch: the callable is then not running, and is not called again. Inside a callable of a
 * watch it waits for no other thread: see gpumem_watch_destroy.
 */
class watch : public owner<watch, borrowed<gpumem_watch>> {
  public:
    static result<watch> try_create(buffer_ref buffer, watch_fn_ref told) noexcept {
        return detail::created<watch>([&](auto *made) {
            return gpumem_buffer_watch(buffer.get(), told.fn(), told.user(), made);
        });
    }
    static result<watch> try_create(resource_ref resource, watch_fn_ref told) noexcept {
        return detail::created<watch>([&](auto *made) {
            return gpumem_resource_watch(resource.get(), told.fn(), told.user(), made);
        });
    }
    static result<watch> try_create_of_ranges(resource_ref resource, registrar_ref told) noexcept {
        return detail::created<watch>([&](auto *made) {
            return gpumem_resource_watch_ranges(resource.get(), told.added(), told.gone(),
                                                told.user(), made);
        });
    }
    static gpumem_status give_back(gpumem_watch *handle) noexcept {
        return gpumem_watch_destroy(handle);
    }
#if GPUMEM_CPP_EXCEPTIONS
    static watch create(buffer_ref buffer, watch_fn_ref told) {
        return or_throw(try_create(buffer, told));
    }
    static watch create(resource_ref resource, watch_fn_ref told) {
        return or_throw(try_create(resource, told));
    }
    static watch create_of_ranges(resource_ref resource, registrar_ref told) {
        return or_throw(try_create_of_ranges(resource, told));
    }
#endif
};

} // namespace GPUMEM_CPP_MODE
} // namespace gpumem

#endif
