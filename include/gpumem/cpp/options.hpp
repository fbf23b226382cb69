/*
 * The options of the C interface for C++20's designated initialisers: same names, same order, same
 * defaults, without `size`. The structs of the C interface document the members. Made by
 * tools/api/options_hpp.py from tools/api/api.json.
 *
 *     memory.allocate(bytes, {.stream = stream, .capacity = most});
 */
#ifndef GPUMEM_CPP_OPTIONS_HPP
#define GPUMEM_CPP_OPTIONS_HPP

#include <cstddef>
#include <cstdint>
#include <gpumem/buffer.h>
#include <gpumem/caching.h>
#include <gpumem/connect.h>
#include <gpumem/copy.h>
#include <gpumem/library.h>
#include <gpumem/managed.h>
#include <gpumem/mapped.h>
#include <gpumem/pinned.h>
#include <gpumem/pool.h>
#include <gpumem/ring.h>
#include <gpumem/share.h>
#include <gpumem/snapshot.h>
#include <gpumem/virtual.h>
#include <gpumem/vmm.h>
#include <gpumem/wrappers.h>
#include <span>

namespace gpumem {

/* gpumem_buffer_options */
struct buffer_options {
    CUstream stream = nullptr;
    std::size_t alignment = 0;
    std::size_t capacity = 0;
};

/* gpumem_caching_options */
struct caching_options {
    std::size_t segment_bytes = 0;
    std::size_t maximum_small_bytes = 0;
    std::size_t thread_bytes = 0;
    std::uint64_t maximum_bytes = 0;
    std::size_t idle_bytes = 0;
    double committed_ratio = 0;
    std::uint64_t reserve_bytes = 0;
    bool never_waits = false;
};

/* gpumem_connect_options; `users` with its count. */
struct connect_options {
    int timeout_ms = 0;
    std::span<const unsigned> users = {};
    unsigned permissions = 0;
    unsigned backlog = 0;
};

/* gpumem_stream_options */
struct stream_options {
    bool blocking = false;
    int priority = 0;
};

/* gpumem_event_options */
struct event_options {
    bool timing = false;
    bool blocking_wait = false;
    bool interprocess = false;
};

/* gpumem_open_options */
struct open_options {
    const char *driver = nullptr;
};

/* gpumem_managed_options */
struct managed_options {
    gpumem_managed_place preferred = GPUMEM_MANAGED_ANYWHERE;
    bool read_mostly = false;
    gpumem_managed_method method = GPUMEM_MANAGED_ALLOCATED;
    gpumem_pool_choice pool = GPUMEM_POOL_CURRENT;
    int numa_node = 0;
};

/* gpumem_discard_options */
struct discard_options {
    bool prefetch = false;
    gpumem_location location = GPUMEM_LOCATION_DEVICE;
    int ordinal_or_node = 0;
};

/* gpumem_mapped_options */
struct mapped_options {
    gpumem_mapped_method method = GPUMEM_MAPPED_ANY;
    bool method_strict = false;
    bool require_coherent = false;
    bool force_non_coherent = false;
    std::size_t capacity = 0;
    std::size_t maximum_chunk_bytes = 0;
    std::uint64_t cache_bytes = 0;
    std::size_t slab_bytes = 0;
    std::uint64_t maximum_bytes = 0;
};

/* gpumem_mapped_calibrate_options */
struct mapped_calibrate_options {
    std::size_t maximum_bytes = 0;
    std::uint64_t run_nanoseconds = 0;
    bool keep_nothing = false;
};

/* gpumem_host_view_options */
struct host_view_options {
    gpumem_mapped_method method = GPUMEM_MAPPED_ANY;
    bool method_strict = false;
    bool require_coherent = false;
    bool force_non_coherent = false;
};

/* gpumem_pinned_options */
struct pinned_options {
    gpumem_pinned_method method = GPUMEM_PINNED_AUTO;
    unsigned flags = 0;
    bool numa_bind = false;
    int numa_node = 0;
    unsigned touch_threads = 0;
    std::size_t slab_bytes = 0;
    std::uint64_t maximum_bytes = 0;
    std::uint64_t keep_bytes = 0;
    bool keep_nothing = false;
    bool ipc = false;
    gpumem_pool_choice pool = GPUMEM_POOL_CURRENT;
    gpumem_huge_pages huge_pages = GPUMEM_HUGE_PAGES_TRANSPARENT;
};

/* gpumem_device_pool_options */
struct device_pool_options {
    gpumem_pool_choice pool = GPUMEM_POOL_CURRENT;
    std::uint64_t release_threshold = 0;
    std::uint64_t maximum_bytes = 0;
    bool ipc = false;
    gpumem_handle_type handle_type = GPUMEM_HANDLE_POSIX_FD;
};

/* gpumem_ring_options */
struct ring_options {
    std::size_t chunk_bytes = 0;
    std::size_t chunk_count = 0;
    std::size_t alignment = 0;
    bool mirrored = false;
};

/* gpumem_share_options */
struct share_options {
    int timeout_ms = 0;
    gpumem_access access = GPUMEM_ACCESS_READ_WRITE;
    std::size_t maximum_bytes = 0;
    std::size_t capacity = 0;
};

/* gpumem_snapshot_options */
struct snapshot_options {
    gpumem_device *device = nullptr;
    bool without_buffers = false;
    bool without_pieces = false;
};

/* gpumem_virtual_options; `peers` with its count. */
struct virtual_options {
    gpumem_allocation_type allocation_type = GPUMEM_ALLOCATION_PINNED;
    gpumem_location location = GPUMEM_LOCATION_DEVICE;
    int numa_node = 0;
    gpumem_handle_type handle_type = GPUMEM_HANDLE_POSIX_FD;
    bool handle_strict = false;
    bool gpu_direct_rdma = false;
    bool compression = false;
    gpumem_granularity_kind granularity = GPUMEM_GRANULARITY_RECOMMENDED;
    CUdeviceptr address_hint = 0;
    std::size_t address_alignment = 0;
    std::span<const int> peers = {};
    gpumem_access self_access = GPUMEM_ACCESS_READ_WRITE;
    gpumem_access peer_access = GPUMEM_ACCESS_READ_WRITE;
    std::size_t capacity = 0;
    std::size_t minimum_chunk_bytes = 0;
    std::size_t maximum_chunk_bytes = 0;
    unsigned growth_percent = 0;
    bool exact_growth = false;
    std::size_t give_back_bytes = 0;
    std::uint64_t cache_bytes = 0;
};

/* gpumem_reservation_options */
struct reservation_options {
    std::size_t alignment = 0;
    CUdeviceptr address_hint = 0;
};

/* gpumem_physical_options */
struct physical_options {
    gpumem_allocation_type allocation_type = GPUMEM_ALLOCATION_PINNED;
    gpumem_location location = GPUMEM_LOCATION_DEVICE;
    int numa_node = 0;
    gpumem_handle_type handle_type = GPUMEM_HANDLE_POSIX_FD;
    bool gpu_direct_rdma = false;
    bool compression = false;
};

/* gpumem_logging_options */
struct logging_options {
    gpumem_log_level level = GPUMEM_LOG_DEFAULT;
    const char *name = nullptr;
    gpumem_log_fn fn = nullptr;
    void *user = nullptr;
};

/* gpumem_tracking_options */
struct tracking_options {
    unsigned frames = 0;
};

/* gpumem_alignment_options */
struct alignment_options {
    std::size_t alignment = 0;
    std::size_t size_multiple = 0;
    std::size_t threshold = 0;
};

namespace detail {

inline gpumem_buffer_options in_c(const buffer_options &from) noexcept {
    gpumem_buffer_options to{};
    to.size = sizeof to;
    to.stream = from.stream;
    to.alignment = from.alignment;
    to.capacity = from.capacity;
    return to;
}

inline gpumem_caching_options in_c(const caching_options &from) noexcept {
    gpumem_caching_options to{};
    to.size = sizeof to;
    to.segment_bytes = from.segment_bytes;
    to.maximum_small_bytes = from.maximum_small_bytes;
    to.thread_bytes = from.thread_bytes;
    to.maximum_bytes = from.maximum_bytes;
    to.idle_bytes = from.idle_bytes;
    to.committed_ratio = from.committed_ratio;
    to.reserve_bytes = from.reserve_bytes;
    to.never_waits = from.never_waits;
    return to;
}

inline gpumem_connect_options in_c(const connect_options &from) noexcept {
    gpumem_connect_options to{};
    to.size = sizeof to;
    to.timeout_ms = from.timeout_ms;
    to.users = from.users.data();
    to.user_count = from.users.size();
    to.permissions = from.permissions;
    to.backlog = from.backlog;
    return to;
}

inline gpumem_stream_options in_c(const stream_options &from) noexcept {
    gpumem_stream_options to{};
    to.size = sizeof to;
    to.blocking = from.blocking;
    to.priority = from.priority;
    return to;
}

inline gpumem_event_options in_c(const event_options &from) noexcept {
    gpumem_event_options to{};
    to.size = sizeof to;
    to.timing = from.timing;
    to.blocking_wait = from.blocking_wait;
    to.interprocess = from.interprocess;
    return to;
}

inline gpumem_open_options in_c(const open_options &from) noexcept {
    gpumem_open_options to{};
    to.size = sizeof to;
    to.driver = from.driver;
    return to;
}

inline gpumem_managed_options in_c(const managed_options &from) noexcept {
    gpumem_managed_options to{};
    to.size = sizeof to;
    to.preferred = from.preferred;
    to.read_mostly = from.read_mostly;
    to.method = from.method;
    to.pool = from.pool;
    to.numa_node = from.numa_node;
    return to;
}

inline gpumem_discard_options in_c(const discard_options &from) noexcept {
    gpumem_discard_options to{};
    to.size = sizeof to;
    to.prefetch = from.prefetch;
    to.location = from.location;
    to.ordinal_or_node = from.ordinal_or_node;
    return to;
}

inline gpumem_mapped_options in_c(const mapped_options &from) noexcept {
    gpumem_mapped_options to{};
    to.size = sizeof to;
    to.method = from.method;
    to.method_strict = from.method_strict;
    to.require_coherent = from.require_coherent;
    to.force_non_coherent = from.force_non_coherent;
    to.capacity = from.capacity;
    to.maximum_chunk_bytes = from.maximum_chunk_bytes;
    to.cache_bytes = from.cache_bytes;
    to.slab_bytes = from.slab_bytes;
    to.maximum_bytes = from.maximum_bytes;
    return to;
}

inline gpumem_mapped_calibrate_options in_c(const mapped_calibrate_options &from) noexcept {
    gpumem_mapped_calibrate_options to{};
    to.size = sizeof to;
    to.maximum_bytes = from.maximum_bytes;
    to.run_nanoseconds = from.run_nanoseconds;
    to.keep_nothing = from.keep_nothing;
    return to;
}

inline gpumem_host_view_options in_c(const host_view_options &from) noexcept {
    gpumem_host_view_options to{};
    to.size = sizeof to;
    to.method = from.method;
    to.method_strict = from.method_strict;
    to.require_coherent = from.require_coherent;
    to.force_non_coherent = from.force_non_coherent;
    return to;
}

inline gpumem_pinned_options in_c(const pinned_options &from) noexcept {
    gpumem_pinned_options to{};
    to.size = sizeof to;
    to.method = from.method;
    to.flags = from.flags;
    to.numa_bind = from.numa_bind;
    to.numa_node = from.numa_node;
    to.touch_threads = from.touch_threads;
    to.slab_bytes = from.slab_bytes;
    to.maximum_bytes = from.maximum_bytes;
    to.keep_bytes = from.keep_bytes;
    to.keep_nothing = from.keep_nothing;
    to.ipc = from.ipc;
    to.pool = from.pool;
    to.huge_pages = from.huge_pages;
    return to;
}

inline gpumem_device_pool_options in_c(const device_pool_options &from) noexcept {
    gpumem_device_pool_options to{};
    to.size = sizeof to;
    to.pool = from.pool;
    to.release_threshold = from.release_threshold;
    to.maximum_bytes = from.maximum_bytes;
    to.ipc = from.ipc;
    to.handle_type = from.handle_type;
    return to;
}

inline gpumem_ring_options in_c(const ring_options &from) noexcept {
    gpumem_ring_options to{};
    to.size = sizeof to;
    to.chunk_bytes = from.chunk_bytes;
    to.chunk_count = from.chunk_count;
    to.alignment = from.alignment;
    to.mirrored = from.mirrored;
    return to;
}

inline gpumem_share_options in_c(const share_options &from) noexcept {
    gpumem_share_options to{};
    to.size = sizeof to;
    to.timeout_ms = from.timeout_ms;
    to.access = from.access;
    to.maximum_bytes = from.maximum_bytes;
    to.capacity = from.capacity;
    return to;
}

inline gpumem_snapshot_options in_c(const snapshot_options &from) noexcept {
    gpumem_snapshot_options to{};
    to.size = sizeof to;
    to.device = from.device;
    to.without_buffers = from.without_buffers;
    to.without_pieces = from.without_pieces;
    return to;
}

inline gpumem_virtual_options in_c(const virtual_options &from) noexcept {
    gpumem_virtual_options to{};
    to.size = sizeof to;
    to.allocation_type = from.allocation_type;
    to.location = from.location;
    to.numa_node = from.numa_node;
    to.handle_type = from.handle_type;
    to.handle_strict = from.handle_strict;
    to.gpu_direct_rdma = from.gpu_direct_rdma;
    to.compression = from.compression;
    to.granularity = from.granularity;
    to.address_hint = from.address_hint;
    to.address_alignment = from.address_alignment;
    to.peers = from.peers.data();
    to.peer_count = from.peers.size();
    to.self_access = from.self_access;
    to.peer_access = from.peer_access;
    to.capacity = from.capacity;
    to.minimum_chunk_bytes = from.minimum_chunk_bytes;
    to.maximum_chunk_bytes = from.maximum_chunk_bytes;
    to.growth_percent = from.growth_percent;
    to.exact_growth = from.exact_growth;
    to.give_back_bytes = from.give_back_bytes;
    to.cache_bytes = from.cache_bytes;
    return to;
}

inline gpumem_reservation_options in_c(const reservation_options &from) noexcept {
    gpumem_reservation_options to{};
    to.size = sizeof to;
    to.alignment = from.alignment;
    to.address_hint = from.address_hint;
    return to;
}

inline gpumem_physical_options in_c(const physical_options &from) noexcept {
    gpumem_physical_options to{};
    to.size = sizeof to;
    to.allocation_type = from.allocation_type;
    to.location = from.location;
    to.numa_node = from.numa_node;
    to.handle_type = from.handle_type;
    to.gpu_direct_rdma = from.gpu_direct_rdma;
    to.compression = from.compression;
    return to;
}

inline gpumem_logging_options in_c(const logging_options &from) noexcept {
    gpumem_logging_options to{};
    to.size = sizeof to;
    to.level = from.level;
    to.name = from.name;
    to.fn = from.fn;
    to.user = from.user;
    return to;
}

inline gpumem_tracking_options in_c(const tracking_options &from) noexcept {
    gpumem_tracking_options to{};
    to.size = sizeof to;
    to.frames = from.frames;
    return to;
}

inline gpumem_alignment_options in_c(const alignment_options &from) noexcept {
    gpumem_alignment_options to{};
    to.size = sizeof to;
    to.alignment = from.alignment;
    to.size_multiple = from.size_multiple;
    to.threshold = from.threshold;
    return to;
}

} // namespace detail
} // namespace gpumem

#endif
