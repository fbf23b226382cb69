/*
 * The library and its devices. Contracts: gpumem/library.h, under the C call of the same name.
 */
#ifndef GPUMEM_CPP_DEVICE_HPP
#define GPUMEM_CPP_DEVICE_HPP

#include <gpumem/cpp/handle.hpp>
#include <gpumem/cpp/options.hpp>
#include <gpumem/stats.h>

namespace gpumem {
inline namespace GPUMEM_CPP_MODE {

class library;
class device;

/* Bytes of a device's memory. */
struct device_memory {
    std::uint64_t free_bytes;
    std::uint64_t total_bytes;
};

class library_ref : public borrowed<gpumem_library> {
  public:
    library_ref(gpumem_library *handle) noexcept : borrowed(handle) {
    }
    library_ref(library &&) = delete; /* would be closed at once */

    /* The opened driver, for gpumem/driver.h; borrowed. */
    const gpumem_driver *driver() const noexcept {
        return gpumem_library_driver(get());
    }
    result<gpumem_library_info> try_info() const noexcept {
        return detail::fetched<gpumem_library_info>(
            [this](auto *info) { return gpumem_library_get_info(get(), info); });
    }
    /* Describes a device, which need not be open. */
    result<gpumem_device_info> try_device_info(int ordinal) const noexcept {
        return detail::fetched<gpumem_device_info>(
            [&](auto *info) { return gpumem_device_get_info(get(), ordinal, info); });
    }
    result<gpumem_vulkan_info> try_device_vulkan_info(int ordinal) const noexcept {
        return detail::fetched<gpumem_vulkan_info>(
            [&](auto *info) { return gpumem_device_get_vulkan_info(get(), ordinal, info); });
    }
    result<gpumem_stats> try_stats() const noexcept {
        return detail::fetched<gpumem_stats>(
            [this](auto *stats) { return gpumem_library_get_stats(get(), stats); });
    }
#if GPUMEM_CPP_EXCEPTIONS
    gpumem_library_info info() const {
        return or_throw(try_info());
    }
    gpumem_device_info device_info(int ordinal) const {
        return or_throw(try_device_info(ordinal));
    }
    gpumem_vulkan_info device_vulkan_info(int ordinal) const {
        return or_throw(try_device_vulkan_info(ordinal));
    }
    gpumem_stats stats() const {
        return or_throw(try_stats());
    }
#endif
};

/* Owns an opened library. */
class library : public owner<library, library_ref> {
  public:
    static result<library> try_open(const open_options &options = {}) noexcept;
#if GPUMEM_CPP_EXCEPTIONS
    static library open(const open_options &options = {});
#endif
    /* Ends it with the last of its devices; the object no longer owns it. */
    result<void> try_close_later() noexcept {
        return detail::checked(gpumem_close_later(release()));
    }
    static gpumem_status give_back(gpumem_library *handle) noexcept {
        return gpumem_close(handle);
    }
};

class device_ref : public borrowed<gpumem_device> {
  public:
    device_ref(gpumem_device *handle) noexcept : borrowed(handle) {
    }
    device_ref(device &&) = delete; /* would be closed at once */

    int ordinal() const noexcept {
        return gpumem_device_ordinal(get());
    }
    CUdevice cuda_device() const noexcept {
        return gpumem_device_handle(get());
    }
    /* The primary context; borrowed. */
    CUcontext context() const noexcept {
        return gpumem_device_context(get());
    }
    library_ref library() const noexcept {
        return gpumem_device_library(get());
    }
    result<gpumem_device_info> try_info() const noexcept {
        return detail::fetched<gpumem_device_info>([this](auto *info) {
            return gpumem_device_get_info(library().get(), ordinal(), info);
        });
    }
    result<device_memory> try_memory() const noexcept {
        return detail::fetched<device_memory>([this](device_memory *memory) {
            return gpumem_device_get_memory(get(), &memory->free_bytes, &memory->total_bytes);
        });
    }
    /* `peer` is an ordinal. */
    result<bool> try_can_access_peer(int peer) const noexcept {
        return detail::fetched<bool>(
            [&](bool *can) { return gpumem_device_can_access_peer(get(), peer, can); });
    }
    result<gpumem_capability_report> try_capability(gpumem_capability capability) const noexcept {
        return detail::fetched<gpumem_capability_report>(
            [&](auto *report) { return gpumem_device_get_capability(get(), capability, report); });
    }
    result<gpumem_stats> try_stats() const noexcept {
        return detail::fetched<gpumem_stats>(
            [this](auto *stats) { return gpumem_device_get_stats(get(), stats); });
    }
    /* With `wait`, also waits, by events, for frees that queued work holds back. */
    result<void> try_trim(bool wait = false) const noexcept {
        return detail::checked(gpumem_device_trim(get(), wait));
    }
#if GPUMEM_CPP_EXCEPTIONS
    gpumem_device_info info() const {
        return or_throw(try_info());
    }
    device_memory memory() const {
        return or_throw(try_memory());
    }
    bool can_access_peer(int peer) const {
        return or_throw(try_can_access_peer(peer));
    }
    gpumem_capability_report capability(gpumem_capability capability) const {
        return or_throw(try_capability(capability));
    }
    gpumem_stats stats() const {
        return or_throw(try_stats());
    }
    void trim(bool wait = false) const {
        detail::require(gpumem_device_trim(get(), wait));
    }
#endif
};

/* Owns one opening of a device. */
class device : public owner<device, device_ref> {
  public:
    static result<device> try_open(library_ref library, int ordinal = 0) noexcept;
    static result<device> try_open(library_ref library,
                                   std::span<const unsigned char, 16> uuid) noexcept;
#if GPUMEM_CPP_EXCEPTIONS
    static device open(library_ref library, int ordinal = 0);
    static device open(library_ref library, std::span<const unsigned char, 16> uuid);
#endif
    /* Ends it with the last of what it has; the object no longer owns it. */
    result<void> try_close_later() noexcept {
        return detail::checked(gpumem_device_close_later(release()));
    }
    static gpumem_status give_back(gpumem_device *handle) noexcept {
        return gpumem_device_close(handle);
    }
};

inline result<library> library::try_open(const open_options &options) noexcept {
    const gpumem_open_options in_c = detail::in_c(options);
    return detail::created<library>([&](auto *made) { return gpumem_open(&in_c, made); });
}

inline result<device> device::try_open(library_ref library, int ordinal) noexcept {
    return detail::created<device>(
        [&](auto *made) { return gpumem_device_open(library.get(), ordinal, made); });
}

inline result<device> device::try_open(library_ref library,
                                       std::span<const unsigned char, 16> uuid) noexcept {
    return detail::created<device>(
        [&](auto *made) { return gpumem_device_open_uuid(library.get(), uuid.data(), made); });
}

#if GPUMEM_CPP_EXCEPTIONS
inline library library::open(const open_options &options) {
    return or_throw(try_open(options));
}

inline device device::open(library_ref library, int ordinal) {
    return or_throw(try_open(library, ordinal));
}

inline device device::open(library_ref library, std::span<const unsigned char, 16> uuid) {
    return or_throw(try_open(library, uuid));
}
#endif

} // namespace GPUMEM_CPP_MODE
} // namespace gpumem

#endif
