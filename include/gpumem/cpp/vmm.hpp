/*
 * Virtual memory by hand. Contracts: gpumem/vmm.h, under the C call of the same name.
 */
#ifndef GPUMEM_CPP_VMM_HPP
#define GPUMEM_CPP_VMM_HPP

#include <gpumem/cpp/device.hpp>
#include <gpumem/vmm.h>

namespace gpumem {
inline namespace GPUMEM_CPP_MODE {

/* Owns a reservation of addresses. Destroy it after what is mapped in it. */
class reservation : public owner<reservation, borrowed<gpumem_reservation>> {
  public:
    static result<reservation> try_create(device_ref device, std::size_t bytes,
                                          const reservation_options &options = {}) noexcept {
        const gpumem_reservation_options in_c = detail::in_c(options);
        return detail::created<reservation>([&](auto *made) {
            return gpumem_reservation_create(device.get(), bytes, &in_c, made);
        });
    }
    /* Where it is, and how large. */
    result<gpumem_reservation_info> try_info() const noexcept {
        return detail::fetched<gpumem_reservation_info>(
            [this](auto *info) { return gpumem_reservation_get_info(get(), info); });
    }
    /* Unmaps all mappings of the range, or none. */
    result<void> try_unmap(std::size_t offset, std::size_t bytes) const noexcept {
        return detail::checked(gpumem_reservation_unmap(get(), offset, bytes));
    }
    /* For all mappings of the range, or none. `ordinal` is that of a device; -1 is the CPU. */
    result<void> try_set_access(std::size_t offset, std::size_t bytes, int ordinal,
                                gpumem_access access = GPUMEM_ACCESS_READ_WRITE) const noexcept {
        return detail::checked(
            gpumem_reservation_set_access(get(), offset, bytes, ordinal, access));
    }
    static gpumem_status give_back(gpumem_reservation *handle) noexcept {
        return gpumem_reservation_destroy(handle);
    }
#if GPUMEM_CPP_EXCEPTIONS
    static reservation create(device_ref device, std::size_t bytes,
                              const reservation_options &options = {}) {
        return or_throw(try_create(device, bytes, options));
    }
    gpumem_reservation_info info() const {
        return or_throw(try_info());
    }
    void unmap(std::size_t offset, std::size_t bytes) const {
        detail::require(gpumem_reservation_unmap(get(), offset, bytes));
    }
    void set_access(std::size_t offset, std::size_t bytes, int ordinal,
                    gpumem_access access = GPUMEM_ACCESS_READ_WRITE) const {
        detail::require(gpumem_reservation_set_access(get(), offset, bytes, ordinal, access));
    }
#endif
};

/* The granularity, in bytes, of sizes and offsets of such memory. */
inline result<std::size_t>
try_physical_granularity(device_ref device, const physical_options &options = {},
                         gpumem_granularity_kind kind = GPUMEM_GRANULARITY_RECOMMENDED) noexcept {
    const gpumem_physical_options in_c = detail::in_c(options);
    return detail::fetched<std::size_t>(
        [&](auto *bytes) { return gpumem_physical_granularity(device.get(), &in_c, kind, bytes); });
}

/* Owns memory without an address. Destroy it after its mappings. */
class physical : public owner<physical, borrowed<gpumem_physical>> {
  public:
    static result<physical> try_create(device_ref device, std::size_t bytes,
                                       const physical_options &options = {}) noexcept {
        const gpumem_physical_options in_c = detail::in_c(options);
        return detail::created<physical>(
            [&](auto *made) { return gpumem_physical_create(device.get(), bytes, &in_c, made); });
    }
    /* A descriptor remains the caller's. */
    static result<physical> try_import_from(device_ref device,
                                            const gpumem_physical_share_handle &handle,
                                            std::size_t bytes) noexcept {
        return detail::created<physical>(
            [&](auto *made) { return gpumem_physical_import(device.get(), &handle, bytes, made); });
    }
    /* The memory mapped at an address, whoever mapped it; `bytes` may be 0. */
    static result<physical> try_from_address(device_ref device, CUdeviceptr address,
                                             std::size_t bytes = 0) noexcept {
        return detail::created<physical>([&](auto *made) {
            return gpumem_physical_from_address(device.get(), address, bytes, made);
        });
    }
    result<gpumem_physical_properties> try_properties() const noexcept {
        return detail::fetched<gpumem_physical_properties>(
            [this](auto *filled) { return gpumem_physical_get_properties(get(), filled); });
    }
    /* A descriptor is a new one, which the caller closes. */
    result<gpumem_physical_share_handle> try_export(gpumem_handle_type type) const noexcept {
        return detail::fetched<gpumem_physical_share_handle>([&](auto *handle) {
            handle->type = type;
            return gpumem_physical_export(get(), handle);
        });
    }
    static gpumem_status give_back(gpumem_physical *handle) noexcept {
        return gpumem_physical_destroy(handle);
    }
#if GPUMEM_CPP_EXCEPTIONS
    static physical create(device_ref device, std::size_t bytes,
                           const physical_options &options = {}) {
        return or_throw(try_create(device, bytes, options));
    }
    static physical import_from(device_ref device, const gpumem_physical_share_handle &handle,
                                std::size_t bytes) {
        return or_throw(try_import_from(device, handle, bytes));
    }
    static physical from_address(device_ref device, CUdeviceptr address, std::size_t bytes = 0) {
        return or_throw(try_from_address(device, address, bytes));
    }
    gpumem_physical_properties properties() const {
        return or_throw(try_properties());
    }
    [[nodiscard]] gpumem_physical_share_handle export_as(gpumem_handle_type type) const {
        return or_throw(try_export(type));
    }
#endif
};

/* Owns the mapping of memory at an offset of a reservation. */
class mapping : public owner<mapping, borrowed<gpumem_mapping>> {
  public:
    static result<mapping> try_create(const reservation &where, std::size_t offset,
                                      const physical &memory) noexcept {
        return detail::created<mapping>([&](auto *made) {
            return gpumem_mapping_create(where.get(), offset, memory.get(), made);
        });
    }
    /* Where it is, how large, and whether it is mapped still. */
    result<gpumem_mapping_info> try_info() const noexcept {
        return detail::fetched<gpumem_mapping_info>(
            [this](auto *info) { return gpumem_mapping_get_info(get(), info); });
    }
    /* `ordinal` is that of a device; -1 is the CPU. Access is set through the reservation. */
    result<gpumem_access> try_get_access(int ordinal) const noexcept {
        return detail::fetched<gpumem_access>(
            [&](auto *access) { return gpumem_mapping_get_access(get(), ordinal, access); });
    }
    static gpumem_status give_back(gpumem_mapping *handle) noexcept {
        return gpumem_mapping_destroy(handle);
    }
#if GPUMEM_CPP_EXCEPTIONS
    static mapping create(const reservation &where, std::size_t offset, const physical &memory) {
        return or_throw(try_create(where, offset, memory));
    }
    gpumem_mapping_info info() const {
        return or_throw(try_info());
    }
    gpumem_access get_access(int ordinal) const {
        return or_throw(try_get_access(ordinal));
    }
#endif
};

#if GPUMEM_CPP_EXCEPTIONS
inline std::size_t
physical_granularity(device_ref device, const physical_options &options = {},
                     gpumem_granularity_kind kind = GPUMEM_GRANULARITY_RECOMMENDED) {
    return or_throw(try_physical_granularity(device, options, kind));
}
#endif

} // namespace GPUMEM_CPP_MODE
} // namespace gpumem

#endif
