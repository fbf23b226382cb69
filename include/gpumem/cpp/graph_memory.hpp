/* Memory allocated by graphs. Contracts: gpumem/graph_memory.h. */
#ifndef GPUMEM_CPP_GRAPH_MEMORY_HPP
#define GPUMEM_CPP_GRAPH_MEMORY_HPP

#include <gpumem/cpp/device.hpp>
#include <gpumem/graph_memory.h>

namespace gpumem {
inline namespace GPUMEM_CPP_MODE {

inline result<std::uint64_t>
try_graph_memory_get_attribute(device_ref device,
                               gpumem_graph_memory_attribute attribute) noexcept {
    return detail::fetched<std::uint64_t>([&](auto *value) {
        return gpumem_graph_memory_get_attribute(device.get(), attribute, value);
    });
}

inline result<void> try_graph_memory_set_attribute(device_ref device,
                                                   gpumem_graph_memory_attribute attribute,
                                                   std::uint64_t value) noexcept {
    return detail::checked(gpumem_graph_memory_set_attribute(device.get(), attribute, value));
}

inline result<void> try_graph_memory_trim(device_ref device) noexcept {
    return detail::checked(gpumem_graph_memory_trim(device.get()));
}

#if GPUMEM_CPP_EXCEPTIONS

inline std::uint64_t graph_memory_get_attribute(device_ref device,
                                                gpumem_graph_memory_attribute attribute) {
    return or_throw(try_graph_memory_get_attribute(device, attribute));
}

inline void graph_memory_set_attribute(device_ref device, gpumem_graph_memory_attribute attribute,
                                       std::uint64_t value) {
    detail::require(gpumem_graph_memory_set_attribute(device.get(), attribute, value));
}

inline void graph_memory_trim(device_ref device) {
    detail::require(gpumem_graph_memory_trim(device.get()));
}

#endif

} // namespace GPUMEM_CPP_MODE
} // namespace gpumem

#endif
