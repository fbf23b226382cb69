/*
 * Sharing with other processes. Contracts: gpumem/share.h, under the C call of the same name.
 */
#ifndef GPUMEM_CPP_SHARE_HPP
#define GPUMEM_CPP_SHARE_HPP

#include <gpumem/cpp/buffer.hpp>
#include <gpumem/cpp/stream.hpp>
#include <gpumem/share.h>

namespace gpumem {
inline namespace GPUMEM_CPP_MODE {

/* Owns the export of an event, or of a buffer as it was when the export was created or updated. */
class exported : public owner<exported, borrowed<gpumem_export>> {
  public:
    static result<exported> try_create(buffer_ref buffer) noexcept {
        return detail::created<exported>(
            [&](auto *made) { return gpumem_export_create(buffer.get(), made); });
    }
    /* The event must have been made with `.interprocess`. */
    static result<exported> try_create_event(event_ref event) noexcept {
        return detail::created<exported>([&](auto *made) {
            return gpumem_export_create_event(event.device().get(), event.get(), made);
        });
    }
    /* Adds the buffer's growth. */
    result<void> try_update() const noexcept {
        return detail::checked(gpumem_export_update(get()));
    }
    /* The buffer can shrink again; importers' updates are refused. */
    result<void> try_detach() const noexcept {
        return detail::checked(gpumem_export_detach(get()));
    }
    /* What an importer needs, valid until the export is updated or destroyed. Do not close the
     * descriptors. */
    result<gpumem_export_info> try_info() const noexcept {
        return detail::fetched<gpumem_export_info>(
            [this](auto *info) { return gpumem_export_get_info(get(), info); });
    }
    /* `socket` is a connected Unix socket. Blocks until the other side has mapped it. */
    result<void> try_send(int socket, const share_options &options = {}) const noexcept {
        const gpumem_share_options in_c = detail::in_c(options);
        return detail::checked(gpumem_export_send(get(), socket, &in_c));
    }
    /* Waits for an importer's request for growth, and answers it. */
    result<void> try_answer(int socket, const share_options &options = {}) const noexcept {
        const gpumem_share_options in_c = detail::in_c(options);
        return detail::checked(gpumem_export_answer(get(), socket, &in_c));
    }
    static gpumem_status give_back(gpumem_export *handle) noexcept {
        return gpumem_export_destroy(handle);
    }
#if GPUMEM_CPP_EXCEPTIONS
    static exported create(buffer_ref buffer) {
        return or_throw(try_create(buffer));
    }
    static exported create_event(event_ref event) {
        return or_throw(try_create_event(event));
    }
    void update() const {
        or_throw(try_update());
    }
    void detach() const {
        or_throw(try_detach());
    }
    void answer(int socket, const share_options &options = {}) const {
        or_throw(try_answer(socket, options));
    }
    gpumem_export_info info() const {
        return or_throw(try_info());
    }
    void send(int socket, const share_options &options = {}) const {
        or_throw(try_send(socket, options));
    }
#endif
};

/* gpumem_import_receive */
inline result<buffer> try_receive_buffer(device_ref device, int socket,
                                         const share_options &options = {}) noexcept {
    const gpumem_share_options in_c = detail::in_c(options);
    return detail::created<buffer>(
        [&](auto *made) { return gpumem_import_receive(device.get(), socket, &in_c, made); });
}

/* gpumem_import_create; the descriptors remain the caller's. */
inline result<buffer> try_import_buffer(device_ref device, std::span<const std::byte> description,
                                        std::span<const int> descriptors,
                                        const share_options &options = {}) noexcept {
    const gpumem_share_options in_c = detail::in_c(options);
    return detail::created<buffer>([&](auto *made) {
        return gpumem_import_create(device.get(), description.data(), description.size(),
                                    descriptors.data(), descriptors.size(), &in_c, made);
    });
}

/* gpumem_import_update: adds the growth of the exporter's buffer, at an unchanged address. */
inline result<void> try_update_import(buffer_ref imported, int socket,
                                      const share_options &options = {}) noexcept {
    const gpumem_share_options in_c = detail::in_c(options);
    return detail::checked(gpumem_import_update(imported.get(), socket, &in_c));
}

/* gpumem_import_extend; the descriptors, of the growth only, remain the caller's. */
inline result<void> try_extend_import(buffer_ref imported, std::span<const std::byte> description,
                                      std::span<const int> descriptors,
                                      const share_options &options = {}) noexcept {
    const gpumem_share_options in_c = detail::in_c(options);
    return detail::checked(gpumem_import_extend(imported.get(), description.data(),
                                                description.size(), descriptors.data(),
                                                descriptors.size(), &in_c));
}

/* gpumem_import_receive_event */
inline result<event> try_receive_event(device_ref device, int socket,
                                       const share_options &options = {}) noexcept {
    const gpumem_share_options in_c = detail::in_c(options);
    CUevent made = nullptr;
    const gpumem_status status = gpumem_import_receive_event(device.get(), socket, &in_c, &made);
    if (status != GPUMEM_OK)
        return unexpected(error::last(status));
    return event::adopt(device, made);
}

/* gpumem_import_create_event */
inline result<event> try_import_event(device_ref device,
                                      std::span<const std::byte> description) noexcept {
    CUevent made = nullptr;
    const gpumem_status status =
        gpumem_import_create_event(device.get(), description.data(), description.size(), &made);
    if (status != GPUMEM_OK)
        return unexpected(error::last(status));
    return event::adopt(device, made);
}

#if GPUMEM_CPP_EXCEPTIONS
inline void update_import(buffer_ref imported, int socket, const share_options &options = {}) {
    or_throw(try_update_import(imported, socket, options));
}

inline void extend_import(buffer_ref imported, std::span<const std::byte> description,
                          std::span<const int> descriptors, const share_options &options = {}) {
    or_throw(try_extend_import(imported, description, descriptors, options));
}

inline event receive_event(device_ref device, int socket, const share_options &options = {}) {
    return or_throw(try_receive_event(device, socket, options));
}

inline event import_event(device_ref device, std::span<const std::byte> description) {
    return or_throw(try_import_event(device, description));
}

inline buffer receive_buffer(device_ref device, int socket, const share_options &options = {}) {
    return or_throw(try_receive_buffer(device, socket, options));
}

inline buffer import_buffer(device_ref device, std::span<const std::byte> description,
                            std::span<const int> descriptors, const share_options &options = {}) {
    return or_throw(try_import_buffer(device, description, descriptors, options));
}
#endif

} // namespace GPUMEM_CPP_MODE
} // namespace gpumem

#endif
