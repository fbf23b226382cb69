/*
 * Streams and events. Contracts: gpumem/copy.h, under the C call of the same name.
 *
 * A stream can be passed wherever a call takes a CUstream; streams of other libraries can be used
 * by their handle, or with stream_ref. A stream or event needs its device for each call, so handles
 * are two pointers large.
 */
#ifndef GPUMEM_CPP_STREAM_HPP
#define GPUMEM_CPP_STREAM_HPP

#include <gpumem/copy.h>
#include <gpumem/cpp/device.hpp>

namespace gpumem {
inline namespace GPUMEM_CPP_MODE {

class stream;
class event;

/* A borrowed CUDA handle, and the device to whose context it belongs. */
template <class C> class on_device {
  public:
    using handle_type = C;

    on_device(const on_device &) noexcept = default;
    on_device &operator=(const on_device &) = delete;

    C get() const noexcept {
        return handle_;
    }
    device_ref device() const noexcept {
        return device_;
    }
    operator C() const &noexcept {
        return handle_;
    }
    operator C() && = delete; /* the owner would be gone */

  protected:
    on_device(device_ref device, C handle) noexcept : device_(device.get()), handle_(handle) {
    }
    ~on_device() = default;
    gpumem_device *device_;
    C handle_;
};

class event_ref : public on_device<CUevent> {
  public:
    event_ref(device_ref device, CUevent handle) noexcept : on_device(device, handle) {
    }
    event_ref(event &&) = delete;

    /* Marks this point of `stream`. */
    result<void> try_record(CUstream stream = nullptr) const noexcept {
        return detail::checked(gpumem_event_record(device_, handle_, stream));
    }
    /* True if the stream has passed the mark, or there is none yet. */
    result<bool> try_done() const noexcept {
        return detail::fetched<bool>(
            [this](bool *done) { return gpumem_event_query(device_, handle_, done); });
    }
    result<void> try_synchronize() const noexcept {
        return detail::checked(gpumem_event_synchronize(device_, handle_));
    }
    /* Milliseconds from `start` to this event. */
    result<float> try_milliseconds_since(const event_ref &start) const noexcept {
        return detail::fetched<float>(
            [&](float *time) { return gpumem_event_elapsed(device_, start.get(), handle_, time); });
    }
#if GPUMEM_CPP_EXCEPTIONS
    void record(CUstream stream = nullptr) const {
        detail::require(gpumem_event_record(device_, handle_, stream));
    }
    bool done() const {
        return or_throw(try_done());
    }
    void synchronize() const {
        detail::require(gpumem_event_synchronize(device_, handle_));
    }
    float milliseconds_since(const event_ref &start) const {
        return or_throw(try_milliseconds_since(start));
    }
#endif
};

class stream_ref : public on_device<CUstream> {
  public:
    /* NULL, the default: the legacy default stream. */
    explicit stream_ref(device_ref device, CUstream handle = nullptr) noexcept
        : on_device(device, handle) {
    }
    stream_ref(stream &&) = delete;

    result<void> try_synchronize() const noexcept {
        return detail::checked(gpumem_stream_synchronize(device_, handle_));
    }
    /* Whether all queued work is done. */
    result<bool> try_done() const noexcept {
        return detail::fetched<bool>(
            [this](bool *done) { return gpumem_stream_query(device_, handle_, done); });
    }
    /* Work queued from now on waits for `event`. */
    result<void> try_wait(CUevent event) const noexcept {
        return detail::checked(gpumem_stream_wait_event(device_, handle_, event));
    }
#if GPUMEM_CPP_EXCEPTIONS
    void synchronize() const {
        detail::require(gpumem_stream_synchronize(device_, handle_));
    }
    bool done() const {
        return or_throw(try_done());
    }
    void wait(CUevent event) const {
        detail::require(gpumem_stream_wait_event(device_, handle_, event));
    }
#endif
};

/* The owner over a borrowed handle with its device; see owner. */
template <class Self, class Ref> class owner_on_device : public Ref {
  public:
    using handle_type = typename Ref::handle_type;

    owner_on_device() noexcept : Ref(nullptr, nullptr) {
    }
    owner_on_device(owner_on_device &&other) noexcept : Ref(other.device(), other.release()) {
    }
    owner_on_device &operator=(owner_on_device &&other) noexcept {
        if (this != &other) {
            reset();
            this->device_ = other.device_;
            this->handle_ = other.release();
        }
        return *this;
    }
    owner_on_device(const owner_on_device &) = delete;
    owner_on_device &operator=(const owner_on_device &) = delete;
    ~owner_on_device() {
        reset();
    }

    /* Takes ownership of a handle. */
    [[nodiscard]] static Self adopt(device_ref device, handle_type handle) noexcept {
        Self made;
        made.device_ = device.get();
        made.handle_ = handle;
        return made;
    }
    /* Releases ownership of the handle. */
    [[nodiscard]] handle_type release() noexcept {
        return std::exchange(this->handle_, nullptr);
    }
    explicit operator bool() const noexcept {
        return this->handle_ != nullptr;
    }
    void reset() noexcept {
        if (handle_type former = release())
            detail::told(Self::give_back(this->device_, former));
    }
    /* Destroys the object now, and reports a refusal, after which it still owns it. */
    result<void> try_close() noexcept {
        if (this->handle_ == nullptr)
            return {};
        const gpumem_status status = Self::give_back(this->device_, this->handle_);
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

/* Owns a stream. Free the buffers that use it before it is destroyed. */
class stream : public owner_on_device<stream, stream_ref> {
  public:
    static result<stream> try_create(device_ref device,
                                     const stream_options &options = {}) noexcept;
    static gpumem_status give_back(gpumem_device *device, CUstream handle) noexcept {
        return gpumem_stream_destroy(device, handle);
    }
#if GPUMEM_CPP_EXCEPTIONS
    static stream create(device_ref device, const stream_options &options = {});
#endif
};

/* Owns an event. */
class event : public owner_on_device<event, event_ref> {
  public:
    static result<event> try_create(device_ref device, const event_options &options = {}) noexcept;
    static gpumem_status give_back(gpumem_device *device, CUevent handle) noexcept {
        return gpumem_event_destroy(device, handle);
    }
#if GPUMEM_CPP_EXCEPTIONS
    static event create(device_ref device, const event_options &options = {});
#endif
};

inline result<stream> stream::try_create(device_ref device,
                                         const stream_options &options) noexcept {
    const gpumem_stream_options in_c = detail::in_c(options);
    CUstream handle = nullptr;
    const gpumem_status status = gpumem_stream_create(device.get(), &in_c, &handle);
    if (status != GPUMEM_OK)
        return unexpected(error::last(status));
    return adopt(device, handle);
}

inline result<event> event::try_create(device_ref device, const event_options &options) noexcept {
    const gpumem_event_options in_c = detail::in_c(options);
    CUevent handle = nullptr;
    const gpumem_status status = gpumem_event_create(device.get(), &in_c, &handle);
    if (status != GPUMEM_OK)
        return unexpected(error::last(status));
    return adopt(device, handle);
}

#if GPUMEM_CPP_EXCEPTIONS
inline stream stream::create(device_ref device, const stream_options &options) {
    return or_throw(try_create(device, options));
}

inline event event::create(device_ref device, const event_options &options) {
    return or_throw(try_create(device, options));
}
#endif

} // namespace GPUMEM_CPP_MODE
} // namespace gpumem

#endif
