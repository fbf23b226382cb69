/*
 * Pools for captured graphs over a caching resource. Contracts: gpumem/caching.h.
 */
#ifndef GPUMEM_CPP_CAPTURE_HPP
#define GPUMEM_CPP_CAPTURE_HPP

#include <gpumem/cpp/resource.hpp>

namespace gpumem {
inline namespace GPUMEM_CPP_MODE {

/* While it lives, allocations on its stream come from its pool. Create it before the capture
 * begins, and end it after the capture has ended. */
class capture_scope {
  public:
    capture_scope(capture_scope &&other) noexcept
        : pool_(std::exchange(other.pool_, nullptr)), stream_(other.stream_) {
    }
    capture_scope &operator=(capture_scope &&) = delete;
    ~capture_scope() {
        if (pool_)
            detail::told(gpumem_capture_pool_end(pool_, stream_));
    }

    /* Ends it now, and reports a refusal, after which it goes on. Does nothing once ended. */
    result<void> try_end() noexcept {
        if (pool_ == nullptr)
            return {};
        const gpumem_status status = gpumem_capture_pool_end(pool_, stream_);
        if (status == GPUMEM_OK)
            pool_ = nullptr;
        return detail::checked(status);
    }
#if GPUMEM_CPP_EXCEPTIONS
    void end() {
        or_throw(try_end());
    }
#endif

  private:
    friend class capture_pool;
    capture_scope(gpumem_capture_pool *pool, CUstream stream) noexcept
        : pool_(pool), stream_(stream) {
    }
    gpumem_capture_pool *pool_;
    CUstream stream_;
};

/*
 * Owns the memory of captured graphs. After destruction the memory becomes available to others once
 * the stream of the last launch, set by launched(), has passed. If none was set, the graphs count
 * as done. It is two pointers large, because of that stream.
 */
class capture_pool {
  public:
    using handle_type = gpumem_capture_pool *;

    /* Owns nothing. */
    capture_pool() noexcept = default;
    capture_pool(capture_pool &&other) noexcept : last_(other.last_), handle_(other.release()) {
    }
    capture_pool &operator=(capture_pool &&other) noexcept {
        if (this != &other) {
            reset();
            last_ = other.last_;
            handle_ = other.release();
        }
        return *this;
    }
    ~capture_pool() {
        reset();
    }

    /* `caching` is a caching resource, which must outlive the pool. */
    static result<capture_pool> try_create(resource_ref caching) noexcept {
        return detail::created<capture_pool>(
            [&](auto *made) { return gpumem_capture_pool_create(caching.get(), made); });
    }
    /* Takes ownership of a pointer of the C interface. */
    [[nodiscard]] static capture_pool adopt(handle_type handle) noexcept {
        capture_pool made;
        made.handle_ = handle;
        return made;
    }
    /* Releases ownership of the pointer. */
    [[nodiscard]] handle_type release() noexcept {
        return std::exchange(handle_, nullptr);
    }
    handle_type get() const noexcept {
        return handle_;
    }
    explicit operator bool() const noexcept {
        return handle_ != nullptr;
    }

    /* Allocations on `stream` come from the pool while the returned object lives, which must be
     * destroyed before the pool. */
    result<capture_scope> try_begin(CUstream stream) const noexcept {
        const gpumem_status status = gpumem_capture_pool_begin(handle_, stream);
        if (status != GPUMEM_OK)
            return unexpected(error::last(status));
        return capture_scope(handle_, stream);
    }
    /* Records that a graph was launched on `stream`, after which the memory may be reused. No
     * driver call. */
    void launched(CUstream stream) noexcept {
        last_ = stream;
    }
    /* Destroys the pool, ordered after the stream of the last launch; never blocks for that. */
    void reset() noexcept {
        if (handle_type former = release())
            detail::told(gpumem_capture_pool_destroy(former, last_));
    }
    /* The same, but reports a refusal, after which it still owns the pool. */
    result<void> try_close() noexcept {
        const gpumem_status status = gpumem_capture_pool_destroy(handle_, last_);
        if (status == GPUMEM_OK)
            handle_ = nullptr;
        return detail::checked(status);
    }
#if GPUMEM_CPP_EXCEPTIONS
    static capture_pool create(resource_ref caching) {
        return or_throw(try_create(caching));
    }
    [[nodiscard]] capture_scope begin(CUstream stream) const {
        return or_throw(try_begin(stream));
    }
    void close() {
        or_throw(try_close());
    }
#endif

  private:
    CUstream last_ = GPUMEM_STREAM_NONE;
    handle_type handle_ = nullptr;
};

} // namespace GPUMEM_CPP_MODE
} // namespace gpumem

#endif
