/*
 * Connections for sharing by path. Contracts: gpumem/connect.h, under the C call of the same name.
 */
#ifndef GPUMEM_CPP_CONNECT_HPP
#define GPUMEM_CPP_CONNECT_HPP

#include <gpumem/connect.h>
#include <gpumem/cpp/handle.hpp>
#include <gpumem/cpp/options.hpp>

namespace gpumem {
inline namespace GPUMEM_CPP_MODE {

/* Owns a connected socket, and knows the process at its other end. Converts to the `int socket`
 * that calls take. */
class connection {
  public:
    connection() noexcept = default;
    connection(int socket, const gpumem_connection_peer &peer) noexcept
        : socket_(socket), peer_(peer) {
    }
    connection(connection &&other) noexcept
        : socket_(std::exchange(other.socket_, -1)), peer_(other.peer_) {
    }
    connection &operator=(connection &&other) noexcept {
        if (this != &other) {
            reset();
            socket_ = std::exchange(other.socket_, -1);
            peer_ = other.peer_;
        }
        return *this;
    }
    connection(const connection &) = delete;
    connection &operator=(const connection &) = delete;
    ~connection() {
        reset();
    }

    int get() const noexcept {
        return socket_;
    }
    operator int() const &noexcept {
        return socket_;
    }
    operator int() && = delete; /* would be closed */
    explicit operator bool() const noexcept {
        return socket_ >= 0;
    }
    /* 0 for a process in another PID namespace. */
    int pid() const noexcept {
        return peer_.pid;
    }
    unsigned user() const noexcept {
        return peer_.user;
    }
    /* Releases ownership of the descriptor; the caller closes it. */
    [[nodiscard]] int release() noexcept {
        return std::exchange(socket_, -1);
    }
    void reset() noexcept {
        if (const int former = release(); former >= 0)
            (void)::close(former);
    }

  private:
    int socket_ = -1;
    gpumem_connection_peer peer_{};
};

namespace detail {

template <class Make> result<connection> connected(Make &&make) noexcept {
    int socket = -1;
    gpumem_connection_peer peer{};
    peer.size = sizeof peer;
    const gpumem_status status = make(&socket, &peer);
    if (status != GPUMEM_OK)
        return unexpected(error::last(status));
    return connection(socket, peer);
}

} // namespace detail

/* Owns a listener at a path. */
class listener : public owner<listener, borrowed<gpumem_listener>> {
  public:
    static result<listener> try_create(const char *path,
                                       const connect_options &options = {}) noexcept {
        const gpumem_connect_options in_c = detail::in_c(options);
        return detail::created<listener>(
            [&](auto *made) { return gpumem_listen(path, &in_c, made); });
    }
    /* For polling; it belongs to the listener. */
    int descriptor() const noexcept {
        return gpumem_listener_descriptor(get());
    }
    result<connection> try_accept(const connect_options &options = {}) const noexcept {
        const gpumem_connect_options in_c = detail::in_c(options);
        return detail::connected([&](int *socket, gpumem_connection_peer *peer) {
            return gpumem_accept(get(), &in_c, socket, peer);
        });
    }
    static gpumem_status give_back(gpumem_listener *handle) noexcept {
        return gpumem_listener_close(handle);
    }
#if GPUMEM_CPP_EXCEPTIONS
    static listener create(const char *path, const connect_options &options = {}) {
        return or_throw(try_create(path, options));
    }
    connection accept(const connect_options &options = {}) const {
        return or_throw(try_accept(options));
    }
#endif
};

/* gpumem_connect */
inline result<connection> try_connect(const char *path,
                                      const connect_options &options = {}) noexcept {
    const gpumem_connect_options in_c = detail::in_c(options);
    return detail::connected([&](int *socket, gpumem_connection_peer *peer) {
        return gpumem_connect(path, &in_c, socket, peer);
    });
}

#if GPUMEM_CPP_EXCEPTIONS
inline connection connect(const char *path, const connect_options &options = {}) {
    return or_throw(try_connect(path, options));
}
#endif

} // namespace GPUMEM_CPP_MODE
} // namespace gpumem

#endif
