/* The enums and structs of the C interface, made by tools/api/python_tables.py (./dev api). */
/* clang-format off */
#include "tables.h"

#include <gpumem/gpumem.h>

static const struct choice gpumem_graph_memory_attribute_rows[] = {
    {"used_current", 0},
    {"used_high", 1},
    {"reserved_current", 2},
    {"reserved_high", 3},
    {NULL, 0},
};
static const struct choice gpumem_watch_reason_rows[] = {
    {"free", 1},
    {"shrink", 2},
    {"access", 3},
    {"decommit", 4},
    {"move", 5},
    {"add", 6},
    {NULL, 0},
};
static const struct choice gpumem_capability_rows[] = {
    {"unified_addressing", 0},
    {"virtual_memory", 1},
    {"handle_posix_fd", 2},
    {"handle_fabric", 3},
    {"gpu_direct_rdma", 4},
    {"gpu_direct_rdma_virtual", 5},
    {"dma_buf", 6},
    {"compression", 7},
    {"device_pool", 8},
    {"device_pool_posix_fd", 9},
    {"host_pool", 10},
    {"host_pool_posix_fd", 11},
    {"host_numa_pool", 12},
    {"host_numa_pool_posix_fd", 13},
    {"host_virtual_memory", 14},
    {"host_numa_virtual_memory", 15},
    {"host_register", 16},
    {"host_register_read_only", 17},
    {"host_registered_same_pointer", 18},
    {"pageable_access", 19},
    {"managed", 20},
    {"managed_concurrent", 21},
    {"stream_memory_operations_64", 22},
    {"host_native_atomics", 23},
    {"multicast", 24},
    {"event_ipc", 25},
    {"device_uuid", 26},
    {NULL, 0},
};
static const struct choice gpumem_managed_place_rows[] = {
    {"anywhere", 0},
    {"on_device", 1},
    {"on_host", 2},
    {"on_numa_node", 3},
    {NULL, 0},
};
static const struct choice gpumem_managed_method_rows[] = {
    {"allocated", 0},
    {"pool", 1},
    {NULL, 0},
};
static const struct choice gpumem_advice_rows[] = {
    {"set_read_mostly", 1},
    {"unset_read_mostly", 2},
    {"set_preferred_location", 3},
    {"unset_preferred_location", 4},
    {"set_accessed_by", 5},
    {"unset_accessed_by", 6},
    {NULL, 0},
};
static const struct choice gpumem_mapped_method_rows[] = {
    {"any", 0},
    {"coherent", 1},
    {"vulkan_import", 2},
    {"dma_buf", 3},
    {"vulkan_export", 4},
    {"descriptor", 5},
    {"host", 6},
    {NULL, 0},
};
static const struct choice gpumem_pinned_method_rows[] = {
    {"auto", 0},
    {"registered", 1},
    {"allocated", 2},
    {"pool", 3},
    {NULL, 0},
};
static const struct choice gpumem_huge_pages_rows[] = {
    {"transparent", 0},
    {"reserved", 1},
    {NULL, 0},
};
static const struct choice gpumem_pool_attribute_rows[] = {
    {"reuse_follow_event_dependencies", 1},
    {"reuse_allow_opportunistic", 2},
    {"reuse_allow_internal_dependencies", 3},
    {"release_threshold", 4},
    {"reserved_current", 5},
    {"reserved_high", 6},
    {"used_current", 7},
    {"used_high", 8},
    {NULL, 0},
};
static const struct choice gpumem_status_rows[] = {
    {"ok", 0},
    {"error_invalid_argument", 1},
    {"error_out_of_memory", 2},
    {"error_out_of_host_memory", 3},
    {"error_out_of_capacity", 4},
    {"error_busy", 5},
    {"error_not_supported", 6},
    {"error_not_permitted", 7},
    {"error_no_driver", 8},
    {"error_no_device", 9},
    {"error_driver", 10},
    {"error_device_fault", 11},
    {"error_system", 12},
    {"error_peer", 13},
    {"error_data", 14},
    {"error_cancelled", 15},
    {"error_forked", 16},
    {"error_timed_out", 17},
    {NULL, 0},
};
static const struct choice gpumem_log_level_rows[] = {
    {"default", 0},
    {"error", 1},
    {"warning", 2},
    {"info", 3},
    {"debug", 4},
    {NULL, 0},
};
static const struct choice gpumem_location_rows[] = {
    {"device", 0},
    {"host", 1},
    {"host_numa", 2},
    {"host_numa_current", 3},
    {NULL, 0},
};
static const struct choice gpumem_access_rows[] = {
    {"rw", 0},
    {"r", 1},
    {"none", 2},
    {NULL, 0},
};
static const struct choice gpumem_handle_type_rows[] = {
    {"posix_fd", 0},
    {"none", 1},
    {"fabric", 2},
    {NULL, 0},
};
static const struct choice gpumem_allocation_type_rows[] = {
    {"pinned", 0},
    {"managed", 1},
    {NULL, 0},
};
static const struct choice gpumem_granularity_kind_rows[] = {
    {"recommended", 0},
    {"minimum", 1},
    {NULL, 0},
};
static const struct choice gpumem_pool_choice_rows[] = {
    {"current", 0},
    {"default", 1},
    {"own", 2},
    {NULL, 0},
};
static const struct choice gpumem_measured_rows[] = {
    {"never", 0},
    {"here", 1},
    {"before", 2},
    {NULL, 0},
};
static const struct choice gpumem_mapping_state_rows[] = {
    {"mapped", 0},
    {"unmapped", 1},
    {NULL, 0},
};
static const struct choice gpumem_report_format_rows[] = {
    {"text", 0},
    {"json", 1},
    {NULL, 0},
};
static const struct choice gpumem_failure_answer_rows[] = {
    {"give_up", 0},
    {"retry", 1},
    {NULL, 0},
};

const struct choices core_choices[] = {
    {"gpumem_graph_memory_attribute", gpumem_graph_memory_attribute_rows},
    {"gpumem_watch_reason", gpumem_watch_reason_rows},
    {"gpumem_capability", gpumem_capability_rows},
    {"gpumem_managed_place", gpumem_managed_place_rows},
    {"gpumem_managed_method", gpumem_managed_method_rows},
    {"gpumem_advice", gpumem_advice_rows},
    {"gpumem_mapped_method", gpumem_mapped_method_rows},
    {"gpumem_pinned_method", gpumem_pinned_method_rows},
    {"gpumem_huge_pages", gpumem_huge_pages_rows},
    {"gpumem_pool_attribute", gpumem_pool_attribute_rows},
    {"gpumem_status", gpumem_status_rows},
    {"gpumem_log_level", gpumem_log_level_rows},
    {"gpumem_location", gpumem_location_rows},
    {"gpumem_access", gpumem_access_rows},
    {"gpumem_handle_type", gpumem_handle_type_rows},
    {"gpumem_allocation_type", gpumem_allocation_type_rows},
    {"gpumem_granularity_kind", gpumem_granularity_kind_rows},
    {"gpumem_pool_choice", gpumem_pool_choice_rows},
    {"gpumem_measured", gpumem_measured_rows},
    {"gpumem_mapping_state", gpumem_mapping_state_rows},
    {"gpumem_report_format", gpumem_report_format_rows},
    {"gpumem_failure_answer", gpumem_failure_answer_rows},
};

static const struct member gpumem_buffer_options_rows[] = {
    {"stream", offsetof(gpumem_buffer_options, stream), KIND_STREAM, 0},
    {"alignment", offsetof(gpumem_buffer_options, alignment), KIND_SIZE, 0},
    {"capacity", offsetof(gpumem_buffer_options, capacity), KIND_SIZE, 0},
    {NULL, 0, 0, 0},
};
/* Set by hand: viewed. */
static const struct member gpumem_buffer_attributes_rows[] = {
    {"context", offsetof(gpumem_buffer_attributes, context), KIND_POINTER, 0},
    {"location", offsetof(gpumem_buffer_attributes, location), KIND_ENUM, CHOICES_location},
    {"ordinal", offsetof(gpumem_buffer_attributes, ordinal), KIND_INT, 0},
    {"numa_node", offsetof(gpumem_buffer_attributes, numa_node), KIND_INT, 0},
    {"device_accessible", offsetof(gpumem_buffer_attributes, device_accessible), KIND_BOOL, 0},
    {"host_accessible", offsetof(gpumem_buffer_attributes, host_accessible), KIND_BOOL, 0},
    {"managed", offsetof(gpumem_buffer_attributes, managed), KIND_BOOL, 0},
    {"imported", offsetof(gpumem_buffer_attributes, imported), KIND_BOOL, 0},
    {"foreign", offsetof(gpumem_buffer_attributes, foreign), KIND_BOOL, 0},
    {"read_only", offsetof(gpumem_buffer_attributes, read_only), KIND_BOOL, 0},
    {"exportable", offsetof(gpumem_buffer_attributes, exportable), KIND_BOOL, 0},
    {"handle_type", offsetof(gpumem_buffer_attributes, handle_type), KIND_ENUM, CHOICES_handle_type},
    {NULL, 0, 0, 0},
};
static const struct member gpumem_caching_options_rows[] = {
    {"segment_bytes", offsetof(gpumem_caching_options, segment_bytes), KIND_SIZE, 0},
    {"maximum_small_bytes", offsetof(gpumem_caching_options, maximum_small_bytes), KIND_SIZE, 0},
    {"thread_bytes", offsetof(gpumem_caching_options, thread_bytes), KIND_SIZE, 0},
    {"maximum_bytes", offsetof(gpumem_caching_options, maximum_bytes), KIND_UINT64, 0},
    {"idle_bytes", offsetof(gpumem_caching_options, idle_bytes), KIND_SIZE, 0},
    {"committed_ratio", offsetof(gpumem_caching_options, committed_ratio), KIND_DOUBLE, 0},
    {"reserve_bytes", offsetof(gpumem_caching_options, reserve_bytes), KIND_UINT64, 0},
    {"never_waits", offsetof(gpumem_caching_options, never_waits), KIND_BOOL, 0},
    {NULL, 0, 0, 0},
};
static const struct member gpumem_caching_info_rows[] = {
    {"segments", offsetof(gpumem_caching_info, segments), KIND_SIZE, 0},
    {"segment_bytes", offsetof(gpumem_caching_info, segment_bytes), KIND_SIZE, 0},
    {"free_bytes", offsetof(gpumem_caching_info, free_bytes), KIND_SIZE, 0},
    {"largest_free_bytes", offsetof(gpumem_caching_info, largest_free_bytes), KIND_SIZE, 0},
    {"parcel_bytes", offsetof(gpumem_caching_info, parcel_bytes), KIND_SIZE, 0},
    {"thread_bytes", offsetof(gpumem_caching_info, thread_bytes), KIND_SIZE, 0},
    {"pending_bytes", offsetof(gpumem_caching_info, pending_bytes), KIND_SIZE, 0},
    {"threads", offsetof(gpumem_caching_info, threads), KIND_SIZE, 0},
    {"streams", offsetof(gpumem_caching_info, streams), KIND_SIZE, 0},
    {"used_bytes", offsetof(gpumem_caching_info, used_bytes), KIND_SIZE, 0},
    {"largest_movable_bytes", offsetof(gpumem_caching_info, largest_movable_bytes), KIND_SIZE, 0},
    {"pages_moved", offsetof(gpumem_caching_info, pages_moved), KIND_UINT64, 0},
    {"waits", offsetof(gpumem_caching_info, waits), KIND_UINT64, 0},
    {NULL, 0, 0, 0},
};
static const struct member gpumem_batch_report_rows[] = {
    {"copies", offsetof(gpumem_batch_report, copies), KIND_SIZE, 0},
    {"batched", offsetof(gpumem_batch_report, batched), KIND_BOOL, 0},
    {"note", offsetof(gpumem_batch_report, note), KIND_CHARS, 112},
    {NULL, 0, 0, 0},
};
static const struct member gpumem_stream_options_rows[] = {
    {"blocking", offsetof(gpumem_stream_options, blocking), KIND_BOOL, 0},
    {"priority", offsetof(gpumem_stream_options, priority), KIND_INT, 0},
    {NULL, 0, 0, 0},
};
static const struct member gpumem_event_options_rows[] = {
    {"timing", offsetof(gpumem_event_options, timing), KIND_BOOL, 0},
    {"blocking_wait", offsetof(gpumem_event_options, blocking_wait), KIND_BOOL, 0},
    {"interprocess", offsetof(gpumem_event_options, interprocess), KIND_BOOL, 0},
    {NULL, 0, 0, 0},
};
/* Set by hand: shape, strides. */
static const struct member gpumem_dlpack_options_rows[] = {
    {"offset", offsetof(gpumem_dlpack_options, offset), KIND_SIZE, 0},
    {"code", offsetof(gpumem_dlpack_options, code), KIND_INT, 0},
    {"bits", offsetof(gpumem_dlpack_options, bits), KIND_INT, 0},
    {"lanes", offsetof(gpumem_dlpack_options, lanes), KIND_INT, 0},
    {"ndim", offsetof(gpumem_dlpack_options, ndim), KIND_INT, 0},
    {"read_only", offsetof(gpumem_dlpack_options, read_only), KIND_BOOL, 0},
    {"stream", offsetof(gpumem_dlpack_options, stream), KIND_STREAM, 0},
    {NULL, 0, 0, 0},
};
/* Set by hand: deleter, user. */
static const struct member gpumem_foreign_options_rows[] = {
    {"stream", offsetof(gpumem_foreign_options, stream), KIND_STREAM, 0},
    {"stream_ordered", offsetof(gpumem_foreign_options, stream_ordered), KIND_BOOL, 0},
    {"read_only", offsetof(gpumem_foreign_options, read_only), KIND_BOOL, 0},
    {"host_only", offsetof(gpumem_foreign_options, host_only), KIND_BOOL, 0},
    {NULL, 0, 0, 0},
};
static const struct member gpumem_register_options_rows[] = {
    {"stream", offsetof(gpumem_register_options, stream), KIND_STREAM, 0},
    {"read_only", offsetof(gpumem_register_options, read_only), KIND_BOOL, 0},
    {NULL, 0, 0, 0},
};
static const struct member gpumem_layout_rows[] = {
    {"generation", offsetof(gpumem_layout, generation), KIND_UINT64, 0},
    {"base", offsetof(gpumem_layout, base), KIND_UINT64, 0},
    {"bytes", offsetof(gpumem_layout, bytes), KIND_SIZE, 0},
    {"capacity", offsetof(gpumem_layout, capacity), KIND_SIZE, 0},
    {"granularity", offsetof(gpumem_layout, granularity), KIND_SIZE, 0},
    {"offset", offsetof(gpumem_layout, offset), KIND_SIZE, 0},
    {"segment_count", offsetof(gpumem_layout, segment_count), KIND_SIZE, 0},
    {NULL, 0, 0, 0},
};
static const struct member gpumem_open_options_rows[] = {
    {"driver", offsetof(gpumem_open_options, driver), KIND_TEXT, 0},
    {NULL, 0, 0, 0},
};
static const struct member gpumem_library_info_rows[] = {
    {"driver_kind", offsetof(gpumem_library_info, driver_kind), KIND_TEXT, 0},
    {"driver_path", offsetof(gpumem_library_info, driver_path), KIND_TEXT, 0},
    {"driver_version", offsetof(gpumem_library_info, driver_version), KIND_INT, 0},
    {"softgpu", offsetof(gpumem_library_info, softgpu), KIND_BOOL, 0},
    {"device_count", offsetof(gpumem_library_info, device_count), KIND_INT, 0},
    {NULL, 0, 0, 0},
};
static const struct member gpumem_device_info_rows[] = {
    {"ordinal", offsetof(gpumem_device_info, ordinal), KIND_INT, 0},
    {"name", offsetof(gpumem_device_info, name), KIND_CHARS, 128},
    {"uuid", offsetof(gpumem_device_info, uuid), KIND_BYTES, 16},
    {"pci_bus_id", offsetof(gpumem_device_info, pci_bus_id), KIND_CHARS, 32},
    {"compute_major", offsetof(gpumem_device_info, compute_major), KIND_INT, 0},
    {"compute_minor", offsetof(gpumem_device_info, compute_minor), KIND_INT, 0},
    {"host_numa_node", offsetof(gpumem_device_info, host_numa_node), KIND_INT, 0},
    {"memory_bytes", offsetof(gpumem_device_info, memory_bytes), KIND_UINT64, 0},
    {"granularity_minimum", offsetof(gpumem_device_info, granularity_minimum), KIND_SIZE, 0},
    {"granularity_recommended", offsetof(gpumem_device_info, granularity_recommended), KIND_SIZE, 0},
    {NULL, 0, 0, 0},
};
static const struct member gpumem_vulkan_info_rows[] = {
    {"available", offsetof(gpumem_vulkan_info, available), KIND_BOOL, 0},
    {"reason", offsetof(gpumem_vulkan_info, reason), KIND_CHARS, 1024},
    {"library", offsetof(gpumem_vulkan_info, library), KIND_CHARS, 256},
    {"device_name", offsetof(gpumem_vulkan_info, device_name), KIND_CHARS, 256},
    {"memory_type", offsetof(gpumem_vulkan_info, memory_type), KIND_INT, 0},
    {"coherent", offsetof(gpumem_vulkan_info, coherent), KIND_BOOL, 0},
    {"placed", offsetof(gpumem_vulkan_info, placed), KIND_BOOL, 0},
    {"atom", offsetof(gpumem_vulkan_info, atom), KIND_SIZE, 0},
    {"heap_bytes", offsetof(gpumem_vulkan_info, heap_bytes), KIND_UINT64, 0},
    {"has_budget", offsetof(gpumem_vulkan_info, has_budget), KIND_BOOL, 0},
    {"budget_bytes", offsetof(gpumem_vulkan_info, budget_bytes), KIND_UINT64, 0},
    {"used_bytes", offsetof(gpumem_vulkan_info, used_bytes), KIND_UINT64, 0},
    {"allocation_limit", offsetof(gpumem_vulkan_info, allocation_limit), KIND_UNSIGNED, 0},
    {NULL, 0, 0, 0},
};
static const struct member gpumem_capability_report_rows[] = {
    {"supported", offsetof(gpumem_capability_report, supported), KIND_BOOL, 0},
    {"value", offsetof(gpumem_capability_report, value), KIND_INT, 0},
    {"reason", offsetof(gpumem_capability_report, reason), KIND_CHARS, 192},
    {NULL, 0, 0, 0},
};
static const struct member gpumem_managed_options_rows[] = {
    {"preferred", offsetof(gpumem_managed_options, preferred), KIND_ENUM, CHOICES_managed_place},
    {"read_mostly", offsetof(gpumem_managed_options, read_mostly), KIND_BOOL, 0},
    {"method", offsetof(gpumem_managed_options, method), KIND_ENUM, CHOICES_managed_method},
    {"pool", offsetof(gpumem_managed_options, pool), KIND_ENUM, CHOICES_pool_choice},
    {"numa_node", offsetof(gpumem_managed_options, numa_node), KIND_INT, 0},
    {NULL, 0, 0, 0},
};
static const struct member gpumem_discard_options_rows[] = {
    {"prefetch", offsetof(gpumem_discard_options, prefetch), KIND_BOOL, 0},
    {"location", offsetof(gpumem_discard_options, location), KIND_ENUM, CHOICES_location},
    {"ordinal_or_node", offsetof(gpumem_discard_options, ordinal_or_node), KIND_INT, 0},
    {NULL, 0, 0, 0},
};
static const struct member gpumem_managed_range_rows[] = {
    {"read_mostly", offsetof(gpumem_managed_range, read_mostly), KIND_BOOL, 0},
    {"has_preferred", offsetof(gpumem_managed_range, has_preferred), KIND_BOOL, 0},
    {"preferred", offsetof(gpumem_managed_range, preferred), KIND_ENUM, CHOICES_location},
    {"preferred_ordinal_or_node", offsetof(gpumem_managed_range, preferred_ordinal_or_node), KIND_INT, 0},
    {"has_prefetched", offsetof(gpumem_managed_range, has_prefetched), KIND_BOOL, 0},
    {"prefetched", offsetof(gpumem_managed_range, prefetched), KIND_ENUM, CHOICES_location},
    {"prefetched_ordinal_or_node", offsetof(gpumem_managed_range, prefetched_ordinal_or_node), KIND_INT, 0},
    {"accessed_by_host", offsetof(gpumem_managed_range, accessed_by_host), KIND_BOOL, 0},
    {"accessed_by", offsetof(gpumem_managed_range, accessed_by), KIND_UINT64, 0},
    {NULL, 0, 0, 0},
};
static const struct member gpumem_mapped_options_rows[] = {
    {"method", offsetof(gpumem_mapped_options, method), KIND_ENUM, CHOICES_mapped_method},
    {"method_strict", offsetof(gpumem_mapped_options, method_strict), KIND_BOOL, 0},
    {"require_coherent", offsetof(gpumem_mapped_options, require_coherent), KIND_BOOL, 0},
    {"force_non_coherent", offsetof(gpumem_mapped_options, force_non_coherent), KIND_BOOL, 0},
    {"capacity", offsetof(gpumem_mapped_options, capacity), KIND_SIZE, 0},
    {"maximum_chunk_bytes", offsetof(gpumem_mapped_options, maximum_chunk_bytes), KIND_SIZE, 0},
    {"cache_bytes", offsetof(gpumem_mapped_options, cache_bytes), KIND_UINT64, 0},
    {"slab_bytes", offsetof(gpumem_mapped_options, slab_bytes), KIND_SIZE, 0},
    {"maximum_bytes", offsetof(gpumem_mapped_options, maximum_bytes), KIND_UINT64, 0},
    {NULL, 0, 0, 0},
};
static const struct member gpumem_mapped_info_rows[] = {
    {"method", offsetof(gpumem_mapped_info, method), KIND_ENUM, CHOICES_mapped_method},
    {"coherent", offsetof(gpumem_mapped_info, coherent), KIND_BOOL, 0},
    {"atom", offsetof(gpumem_mapped_info, atom), KIND_SIZE, 0},
    {"budget_bytes", offsetof(gpumem_mapped_info, budget_bytes), KIND_UINT64, 0},
    {"budget_used", offsetof(gpumem_mapped_info, budget_used), KIND_UINT64, 0},
    {"refusals", offsetof(gpumem_mapped_info, refusals), KIND_CHARS, 1024},
    {"copy_measured", offsetof(gpumem_mapped_info, copy_measured), KIND_ENUM, CHOICES_measured},
    {NULL, 0, 0, 0},
};
static const struct member gpumem_mapped_calibrate_options_rows[] = {
    {"maximum_bytes", offsetof(gpumem_mapped_calibrate_options, maximum_bytes), KIND_SIZE, 0},
    {"run_nanoseconds", offsetof(gpumem_mapped_calibrate_options, run_nanoseconds), KIND_UINT64, 0},
    {"keep_nothing", offsetof(gpumem_mapped_calibrate_options, keep_nothing), KIND_BOOL, 0},
    {NULL, 0, 0, 0},
};
static const struct member gpumem_host_view_options_rows[] = {
    {"method", offsetof(gpumem_host_view_options, method), KIND_ENUM, CHOICES_mapped_method},
    {"method_strict", offsetof(gpumem_host_view_options, method_strict), KIND_BOOL, 0},
    {"require_coherent", offsetof(gpumem_host_view_options, require_coherent), KIND_BOOL, 0},
    {"force_non_coherent", offsetof(gpumem_host_view_options, force_non_coherent), KIND_BOOL, 0},
    {NULL, 0, 0, 0},
};
static const struct member gpumem_pinned_options_rows[] = {
    {"method", offsetof(gpumem_pinned_options, method), KIND_ENUM, CHOICES_pinned_method},
    {"flags", offsetof(gpumem_pinned_options, flags), KIND_UNSIGNED, 0},
    {"numa_bind", offsetof(gpumem_pinned_options, numa_bind), KIND_BOOL, 0},
    {"numa_node", offsetof(gpumem_pinned_options, numa_node), KIND_INT, 0},
    {"touch_threads", offsetof(gpumem_pinned_options, touch_threads), KIND_UNSIGNED, 0},
    {"slab_bytes", offsetof(gpumem_pinned_options, slab_bytes), KIND_SIZE, 0},
    {"maximum_bytes", offsetof(gpumem_pinned_options, maximum_bytes), KIND_UINT64, 0},
    {"keep_bytes", offsetof(gpumem_pinned_options, keep_bytes), KIND_UINT64, 0},
    {"keep_nothing", offsetof(gpumem_pinned_options, keep_nothing), KIND_BOOL, 0},
    {"ipc", offsetof(gpumem_pinned_options, ipc), KIND_BOOL, 0},
    {"pool", offsetof(gpumem_pinned_options, pool), KIND_ENUM, CHOICES_pool_choice},
    {"huge_pages", offsetof(gpumem_pinned_options, huge_pages), KIND_ENUM, CHOICES_huge_pages},
    {NULL, 0, 0, 0},
};
static const struct member gpumem_pinned_info_rows[] = {
    {"method", offsetof(gpumem_pinned_info, method), KIND_ENUM, CHOICES_pinned_method},
    {"touch_threads", offsetof(gpumem_pinned_info, touch_threads), KIND_UNSIGNED, 0},
    {"touch_measured", offsetof(gpumem_pinned_info, touch_measured), KIND_ENUM, CHOICES_measured},
    {"slabs", offsetof(gpumem_pinned_info, slabs), KIND_SIZE, 0},
    {"pinned_bytes", offsetof(gpumem_pinned_info, pinned_bytes), KIND_UINT64, 0},
    {"huge_bytes", offsetof(gpumem_pinned_info, huge_bytes), KIND_UINT64, 0},
    {"transparent_huge_pages", offsetof(gpumem_pinned_info, transparent_huge_pages), KIND_BOOL, 0},
    {"reserved_reason", offsetof(gpumem_pinned_info, reserved_reason), KIND_CHARS, 160},
    {"transparent_reason", offsetof(gpumem_pinned_info, transparent_reason), KIND_CHARS, 96},
    {NULL, 0, 0, 0},
};
static const struct member gpumem_device_pool_options_rows[] = {
    {"pool", offsetof(gpumem_device_pool_options, pool), KIND_ENUM, CHOICES_pool_choice},
    {"release_threshold", offsetof(gpumem_device_pool_options, release_threshold), KIND_UINT64, 0},
    {"maximum_bytes", offsetof(gpumem_device_pool_options, maximum_bytes), KIND_UINT64, 0},
    {"ipc", offsetof(gpumem_device_pool_options, ipc), KIND_BOOL, 0},
    {"handle_type", offsetof(gpumem_device_pool_options, handle_type), KIND_ENUM, CHOICES_handle_type},
    {NULL, 0, 0, 0},
};
static const struct member gpumem_pool_info_rows[] = {
    {"handle", offsetof(gpumem_pool_info, handle), KIND_POINTER, 0},
    {"owned", offsetof(gpumem_pool_info, owned), KIND_BOOL, 0},
    {"ipc_enabled", offsetof(gpumem_pool_info, ipc_enabled), KIND_BOOL, 0},
    {"mapped", offsetof(gpumem_pool_info, mapped), KIND_BOOL, 0},
    {"device_accessible", offsetof(gpumem_pool_info, device_accessible), KIND_BOOL, 0},
    {"host_accessible", offsetof(gpumem_pool_info, host_accessible), KIND_BOOL, 0},
    {"ordinal", offsetof(gpumem_pool_info, ordinal), KIND_INT, 0},
    {"numa_node", offsetof(gpumem_pool_info, numa_node), KIND_INT, 0},
    {"has_uuid", offsetof(gpumem_pool_info, has_uuid), KIND_BOOL, 0},
    {"uuid", offsetof(gpumem_pool_info, uuid), KIND_BYTES, 16},
    {NULL, 0, 0, 0},
};
static const struct member gpumem_pool_share_handle_rows[] = {
    {"type", offsetof(gpumem_pool_share_handle, type), KIND_ENUM, CHOICES_handle_type},
    {"descriptor", offsetof(gpumem_pool_share_handle, descriptor), KIND_INT, 0},
    {"fabric", offsetof(gpumem_pool_share_handle, fabric), KIND_BYTES, 64},
    {"location", offsetof(gpumem_pool_share_handle, location), KIND_ENUM, CHOICES_location},
    {"numa_node", offsetof(gpumem_pool_share_handle, numa_node), KIND_INT, 0},
    {"uuid", offsetof(gpumem_pool_share_handle, uuid), KIND_BYTES, 16},
    {NULL, 0, 0, 0},
};
static const struct member gpumem_pool_share_buffer_rows[] = {
    {"pool", offsetof(gpumem_pool_share_buffer, pool), KIND_BYTES, 16},
    {"bytes", offsetof(gpumem_pool_share_buffer, bytes), KIND_UINT64, 0},
    {"offset", offsetof(gpumem_pool_share_buffer, offset), KIND_UINT64, 0},
    {"data", offsetof(gpumem_pool_share_buffer, data), KIND_BYTES, 64},
    {NULL, 0, 0, 0},
};
static const struct member gpumem_resource_properties_rows[] = {
    {"kind", offsetof(gpumem_resource_properties, kind), KIND_TEXT, 0},
    {"device_accessible", offsetof(gpumem_resource_properties, device_accessible), KIND_BOOL, 0},
    {"host_accessible", offsetof(gpumem_resource_properties, host_accessible), KIND_BOOL, 0},
    {"stream_ordered", offsetof(gpumem_resource_properties, stream_ordered), KIND_BOOL, 0},
    {"can_resize", offsetof(gpumem_resource_properties, can_resize), KIND_BOOL, 0},
    {"exportable", offsetof(gpumem_resource_properties, exportable), KIND_BOOL, 0},
    {"location", offsetof(gpumem_resource_properties, location), KIND_ENUM, CHOICES_location},
    {"handle_type", offsetof(gpumem_resource_properties, handle_type), KIND_ENUM, CHOICES_handle_type},
    {"granularity", offsetof(gpumem_resource_properties, granularity), KIND_SIZE, 0},
    {"maximum_chunk_bytes", offsetof(gpumem_resource_properties, maximum_chunk_bytes), KIND_SIZE, 0},
    {"note", offsetof(gpumem_resource_properties, note), KIND_CHARS, 192},
    {NULL, 0, 0, 0},
};
static const struct member gpumem_export_info_rows[] = {
    {"bytes", offsetof(gpumem_export_info, bytes), KIND_SIZE, 0},
    {"description", offsetof(gpumem_export_info, description), KIND_BLOB, offsetof(gpumem_export_info, description_bytes)},
    {"description_bytes", offsetof(gpumem_export_info, description_bytes), KIND_SIZE, 0},
    {"descriptors", offsetof(gpumem_export_info, descriptors), KIND_INTS, offsetof(gpumem_export_info, descriptor_count)},
    {NULL, 0, 0, 0},
};
static const struct member gpumem_share_options_rows[] = {
    {"timeout_ms", offsetof(gpumem_share_options, timeout_ms), KIND_INT, 0},
    {"access", offsetof(gpumem_share_options, access), KIND_ENUM, CHOICES_access},
    {"maximum_bytes", offsetof(gpumem_share_options, maximum_bytes), KIND_SIZE, 0},
    {"capacity", offsetof(gpumem_share_options, capacity), KIND_SIZE, 0},
    {NULL, 0, 0, 0},
};
/* Set by hand: device. */
static const struct member gpumem_snapshot_options_rows[] = {
    {"without_buffers", offsetof(gpumem_snapshot_options, without_buffers), KIND_BOOL, 0},
    {"without_pieces", offsetof(gpumem_snapshot_options, without_pieces), KIND_BOOL, 0},
    {NULL, 0, 0, 0},
};
static const struct member gpumem_stats_rows[] = {
    {"reserved_bytes", offsetof(gpumem_stats, reserved_bytes), KIND_UINT64, 0},
    {"committed_bytes", offsetof(gpumem_stats, committed_bytes), KIND_UINT64, 0},
    {"committed_high", offsetof(gpumem_stats, committed_high), KIND_UINT64, 0},
    {"in_use_bytes", offsetof(gpumem_stats, in_use_bytes), KIND_UINT64, 0},
    {"in_use_high", offsetof(gpumem_stats, in_use_high), KIND_UINT64, 0},
    {"cached_bytes", offsetof(gpumem_stats, cached_bytes), KIND_UINT64, 0},
    {"pinned_bytes", offsetof(gpumem_stats, pinned_bytes), KIND_UINT64, 0},
    {"pinned_high", offsetof(gpumem_stats, pinned_high), KIND_UINT64, 0},
    {"imported_bytes", offsetof(gpumem_stats, imported_bytes), KIND_UINT64, 0},
    {"allocations", offsetof(gpumem_stats, allocations), KIND_UINT64, 0},
    {"allocations_total", offsetof(gpumem_stats, allocations_total), KIND_UINT64, 0},
    {"allocations_failed", offsetof(gpumem_stats, allocations_failed), KIND_UINT64, 0},
    {"chunks", offsetof(gpumem_stats, chunks), KIND_UINT64, 0},
    {"mappings", offsetof(gpumem_stats, mappings), KIND_UINT64, 0},
    {"deferred_frees", offsetof(gpumem_stats, deferred_frees), KIND_UINT64, 0},
    {"deferred_bytes", offsetof(gpumem_stats, deferred_bytes), KIND_UINT64, 0},
    {"exports", offsetof(gpumem_stats, exports), KIND_UINT64, 0},
    {"quarantined", offsetof(gpumem_stats, quarantined), KIND_UINT64, 0},
    {"quarantined_bytes", offsetof(gpumem_stats, quarantined_bytes), KIND_UINT64, 0},
    {NULL, 0, 0, 0},
};
static const struct member gpumem_virtual_options_rows[] = {
    {"allocation_type", offsetof(gpumem_virtual_options, allocation_type), KIND_ENUM, CHOICES_allocation_type},
    {"location", offsetof(gpumem_virtual_options, location), KIND_ENUM, CHOICES_location},
    {"numa_node", offsetof(gpumem_virtual_options, numa_node), KIND_INT, 0},
    {"handle_type", offsetof(gpumem_virtual_options, handle_type), KIND_ENUM, CHOICES_handle_type},
    {"handle_strict", offsetof(gpumem_virtual_options, handle_strict), KIND_BOOL, 0},
    {"gpu_direct_rdma", offsetof(gpumem_virtual_options, gpu_direct_rdma), KIND_BOOL, 0},
    {"compression", offsetof(gpumem_virtual_options, compression), KIND_BOOL, 0},
    {"granularity", offsetof(gpumem_virtual_options, granularity), KIND_ENUM, CHOICES_granularity_kind},
    {"address_hint", offsetof(gpumem_virtual_options, address_hint), KIND_UINT64, 0},
    {"address_alignment", offsetof(gpumem_virtual_options, address_alignment), KIND_SIZE, 0},
    {"peers", offsetof(gpumem_virtual_options, peers), KIND_INTS, offsetof(gpumem_virtual_options, peer_count)},
    {"self_access", offsetof(gpumem_virtual_options, self_access), KIND_ENUM, CHOICES_access},
    {"peer_access", offsetof(gpumem_virtual_options, peer_access), KIND_ENUM, CHOICES_access},
    {"capacity", offsetof(gpumem_virtual_options, capacity), KIND_SIZE, 0},
    {"minimum_chunk_bytes", offsetof(gpumem_virtual_options, minimum_chunk_bytes), KIND_SIZE, 0},
    {"maximum_chunk_bytes", offsetof(gpumem_virtual_options, maximum_chunk_bytes), KIND_SIZE, 0},
    {"growth_percent", offsetof(gpumem_virtual_options, growth_percent), KIND_UNSIGNED, 0},
    {"exact_growth", offsetof(gpumem_virtual_options, exact_growth), KIND_BOOL, 0},
    {"give_back_bytes", offsetof(gpumem_virtual_options, give_back_bytes), KIND_SIZE, 0},
    {"cache_bytes", offsetof(gpumem_virtual_options, cache_bytes), KIND_UINT64, 0},
    {NULL, 0, 0, 0},
};
static const struct member gpumem_reservation_options_rows[] = {
    {"alignment", offsetof(gpumem_reservation_options, alignment), KIND_SIZE, 0},
    {"address_hint", offsetof(gpumem_reservation_options, address_hint), KIND_UINT64, 0},
    {NULL, 0, 0, 0},
};
static const struct member gpumem_reservation_info_rows[] = {
    {"address", offsetof(gpumem_reservation_info, address), KIND_UINT64, 0},
    {"bytes", offsetof(gpumem_reservation_info, bytes), KIND_SIZE, 0},
    {NULL, 0, 0, 0},
};
static const struct member gpumem_physical_options_rows[] = {
    {"allocation_type", offsetof(gpumem_physical_options, allocation_type), KIND_ENUM, CHOICES_allocation_type},
    {"location", offsetof(gpumem_physical_options, location), KIND_ENUM, CHOICES_location},
    {"numa_node", offsetof(gpumem_physical_options, numa_node), KIND_INT, 0},
    {"handle_type", offsetof(gpumem_physical_options, handle_type), KIND_ENUM, CHOICES_handle_type},
    {"gpu_direct_rdma", offsetof(gpumem_physical_options, gpu_direct_rdma), KIND_BOOL, 0},
    {"compression", offsetof(gpumem_physical_options, compression), KIND_BOOL, 0},
    {NULL, 0, 0, 0},
};
static const struct member gpumem_physical_properties_rows[] = {
    {"bytes", offsetof(gpumem_physical_properties, bytes), KIND_SIZE, 0},
    {"granularity", offsetof(gpumem_physical_properties, granularity), KIND_SIZE, 0},
    {"allocation_type", offsetof(gpumem_physical_properties, allocation_type), KIND_ENUM, CHOICES_allocation_type},
    {"location", offsetof(gpumem_physical_properties, location), KIND_ENUM, CHOICES_location},
    {"ordinal", offsetof(gpumem_physical_properties, ordinal), KIND_INT, 0},
    {"numa_node", offsetof(gpumem_physical_properties, numa_node), KIND_INT, 0},
    {"exports_fd", offsetof(gpumem_physical_properties, exports_fd), KIND_BOOL, 0},
    {"exports_fabric", offsetof(gpumem_physical_properties, exports_fabric), KIND_BOOL, 0},
    {"gpu_direct_rdma", offsetof(gpumem_physical_properties, gpu_direct_rdma), KIND_BOOL, 0},
    {"compression", offsetof(gpumem_physical_properties, compression), KIND_BOOL, 0},
    {NULL, 0, 0, 0},
};
static const struct member gpumem_physical_share_handle_rows[] = {
    {"type", offsetof(gpumem_physical_share_handle, type), KIND_ENUM, CHOICES_handle_type},
    {"descriptor", offsetof(gpumem_physical_share_handle, descriptor), KIND_INT, 0},
    {"fabric", offsetof(gpumem_physical_share_handle, fabric), KIND_BYTES, 64},
    {NULL, 0, 0, 0},
};
/* Set by hand: reservation. */
static const struct member gpumem_mapping_info_rows[] = {
    {"address", offsetof(gpumem_mapping_info, address), KIND_UINT64, 0},
    {"bytes", offsetof(gpumem_mapping_info, bytes), KIND_SIZE, 0},
    {"state", offsetof(gpumem_mapping_info, state), KIND_ENUM, CHOICES_mapping_state},
    {"offset", offsetof(gpumem_mapping_info, offset), KIND_SIZE, 0},
    {NULL, 0, 0, 0},
};
/* Set by hand: fn, user. */
static const struct member gpumem_logging_options_rows[] = {
    {"level", offsetof(gpumem_logging_options, level), KIND_ENUM, CHOICES_log_level},
    {"name", offsetof(gpumem_logging_options, name), KIND_TEXT, 0},
    {NULL, 0, 0, 0},
};
/* Set by hand: write, user. */
static const struct member gpumem_trace_options_rows[] = {
    {"path", offsetof(gpumem_trace_options, path), KIND_TEXT, 0},
    {"buffer_bytes", offsetof(gpumem_trace_options, buffer_bytes), KIND_SIZE, 0},
    {NULL, 0, 0, 0},
};
static const struct member gpumem_tracking_options_rows[] = {
    {"frames", offsetof(gpumem_tracking_options, frames), KIND_UNSIGNED, 0},
    {NULL, 0, 0, 0},
};
/* Set by hand: frames. */
static const struct member gpumem_tracked_rows[] = {
    {"number", offsetof(gpumem_tracked, number), KIND_UINT64, 0},
    {"pointer", offsetof(gpumem_tracked, pointer), KIND_UINT64, 0},
    {"bytes", offsetof(gpumem_tracked, bytes), KIND_SIZE, 0},
    {"committed_bytes", offsetof(gpumem_tracked, committed_bytes), KIND_SIZE, 0},
    {"stream", offsetof(gpumem_tracked, stream), KIND_STREAM, 0},
    {"thread", offsetof(gpumem_tracked, thread), KIND_UINT64, 0},
    {"age_ns", offsetof(gpumem_tracked, age_ns), KIND_UINT64, 0},
    {"frame_count", offsetof(gpumem_tracked, frame_count), KIND_SIZE, 0},
    {NULL, 0, 0, 0},
};
static const struct member gpumem_alignment_options_rows[] = {
    {"alignment", offsetof(gpumem_alignment_options, alignment), KIND_SIZE, 0},
    {"size_multiple", offsetof(gpumem_alignment_options, size_multiple), KIND_SIZE, 0},
    {"threshold", offsetof(gpumem_alignment_options, threshold), KIND_SIZE, 0},
    {NULL, 0, 0, 0},
};
/* Set by hand: resource. */
static const struct member gpumem_allocation_failure_rows[] = {
    {"status", offsetof(gpumem_allocation_failure, status), KIND_ENUM, CHOICES_status},
    {"message", offsetof(gpumem_allocation_failure, message), KIND_TEXT, 0},
    {"bytes", offsetof(gpumem_allocation_failure, bytes), KIND_SIZE, 0},
    {"stream", offsetof(gpumem_allocation_failure, stream), KIND_STREAM, 0},
    {"attempt", offsetof(gpumem_allocation_failure, attempt), KIND_UNSIGNED, 0},
    {"attempts_left", offsetof(gpumem_allocation_failure, attempts_left), KIND_UNSIGNED, 0},
    {NULL, 0, 0, 0},
};
/* Set by hand: fn, user. */
static const struct member gpumem_failure_callback_options_rows[] = {
    {"maximum_retries", offsetof(gpumem_failure_callback_options, maximum_retries), KIND_UNSIGNED, 0},
    {NULL, 0, 0, 0},
};

const struct layout core_layouts[] = {
    {"gpumem.buffer_options", sizeof(gpumem_buffer_options), gpumem_buffer_options_rows},
    {"gpumem.buffer_attributes", sizeof(gpumem_buffer_attributes), gpumem_buffer_attributes_rows},
    {"gpumem.caching_options", sizeof(gpumem_caching_options), gpumem_caching_options_rows},
    {"gpumem.caching_info", sizeof(gpumem_caching_info), gpumem_caching_info_rows},
    {"gpumem.batch_report", sizeof(gpumem_batch_report), gpumem_batch_report_rows},
    {"gpumem.stream_options", sizeof(gpumem_stream_options), gpumem_stream_options_rows},
    {"gpumem.event_options", sizeof(gpumem_event_options), gpumem_event_options_rows},
    {"gpumem.dlpack_options", sizeof(gpumem_dlpack_options), gpumem_dlpack_options_rows},
    {"gpumem.foreign_options", sizeof(gpumem_foreign_options), gpumem_foreign_options_rows},
    {"gpumem.register_options", sizeof(gpumem_register_options), gpumem_register_options_rows},
    {"gpumem.layout", sizeof(gpumem_layout), gpumem_layout_rows},
    {"gpumem.open_options", sizeof(gpumem_open_options), gpumem_open_options_rows},
    {"gpumem.library_info", sizeof(gpumem_library_info), gpumem_library_info_rows},
    {"gpumem.device_info", sizeof(gpumem_device_info), gpumem_device_info_rows},
    {"gpumem.vulkan_info", sizeof(gpumem_vulkan_info), gpumem_vulkan_info_rows},
    {"gpumem.capability_report", sizeof(gpumem_capability_report), gpumem_capability_report_rows},
    {"gpumem.managed_options", sizeof(gpumem_managed_options), gpumem_managed_options_rows},
    {"gpumem.discard_options", sizeof(gpumem_discard_options), gpumem_discard_options_rows},
    {"gpumem.managed_range", sizeof(gpumem_managed_range), gpumem_managed_range_rows},
    {"gpumem.mapped_options", sizeof(gpumem_mapped_options), gpumem_mapped_options_rows},
    {"gpumem.mapped_info", sizeof(gpumem_mapped_info), gpumem_mapped_info_rows},
    {"gpumem.mapped_calibrate_options", sizeof(gpumem_mapped_calibrate_options), gpumem_mapped_calibrate_options_rows},
    {"gpumem.host_view_options", sizeof(gpumem_host_view_options), gpumem_host_view_options_rows},
    {"gpumem.pinned_options", sizeof(gpumem_pinned_options), gpumem_pinned_options_rows},
    {"gpumem.pinned_info", sizeof(gpumem_pinned_info), gpumem_pinned_info_rows},
    {"gpumem.device_pool_options", sizeof(gpumem_device_pool_options), gpumem_device_pool_options_rows},
    {"gpumem.pool_info", sizeof(gpumem_pool_info), gpumem_pool_info_rows},
    {"gpumem.pool_share_handle", sizeof(gpumem_pool_share_handle), gpumem_pool_share_handle_rows},
    {"gpumem.pool_share_buffer", sizeof(gpumem_pool_share_buffer), gpumem_pool_share_buffer_rows},
    {"gpumem.resource_properties", sizeof(gpumem_resource_properties), gpumem_resource_properties_rows},
    {"gpumem.export_info", sizeof(gpumem_export_info), gpumem_export_info_rows},
    {"gpumem.share_options", sizeof(gpumem_share_options), gpumem_share_options_rows},
    {"gpumem.snapshot_options", sizeof(gpumem_snapshot_options), gpumem_snapshot_options_rows},
    {"gpumem.stats", sizeof(gpumem_stats), gpumem_stats_rows},
    {"gpumem.virtual_options", sizeof(gpumem_virtual_options), gpumem_virtual_options_rows},
    {"gpumem.reservation_options", sizeof(gpumem_reservation_options), gpumem_reservation_options_rows},
    {"gpumem.reservation_info", sizeof(gpumem_reservation_info), gpumem_reservation_info_rows},
    {"gpumem.physical_options", sizeof(gpumem_physical_options), gpumem_physical_options_rows},
    {"gpumem.physical_properties", sizeof(gpumem_physical_properties), gpumem_physical_properties_rows},
    {"gpumem.physical_share_handle", sizeof(gpumem_physical_share_handle), gpumem_physical_share_handle_rows},
    {"gpumem.mapping_info", sizeof(gpumem_mapping_info), gpumem_mapping_info_rows},
    {"gpumem.logging_options", sizeof(gpumem_logging_options), gpumem_logging_options_rows},
    {"gpumem.trace_options", sizeof(gpumem_trace_options), gpumem_trace_options_rows},
    {"gpumem.tracking_options", sizeof(gpumem_tracking_options), gpumem_tracking_options_rows},
    {"gpumem.tracked", sizeof(gpumem_tracked), gpumem_tracked_rows},
    {"gpumem.alignment_options", sizeof(gpumem_alignment_options), gpumem_alignment_options_rows},
    {"gpumem.allocation_failure", sizeof(gpumem_allocation_failure), gpumem_allocation_failure_rows},
    {"gpumem.failure_callback_options", sizeof(gpumem_failure_callback_options), gpumem_failure_callback_options_rows},
};
