/*
 * Names of the interface before 1.0. Using one does not compile, and the compiler's message names
 * what replaced it (gcc from 12 on, clang); docs/api-1.0.md lists them all. This file goes away
 * with 1.0.
 */
#ifndef GPUMEM_REMOVED_H
#define GPUMEM_REMOVED_H

#if defined(__has_attribute)
#if __has_attribute(unavailable)
#define GPUMEM_REMOVED(name, use)      void name(void) __attribute__((unavailable(use)));
#define GPUMEM_REMOVED_TYPE(name, use) typedef int name __attribute__((unavailable(use)));
#endif
#endif
#ifndef GPUMEM_REMOVED
#define GPUMEM_REMOVED(name, use)
#define GPUMEM_REMOVED_TYPE(name, use)
#endif

#ifdef __cplusplus
extern "C" {
#endif

GPUMEM_REMOVED(gpumem_buffer_chunks, "use gpumem_buffer_get_layout: segment_count")
GPUMEM_REMOVED(gpumem_buffer_copy_sync, "use gpumem_buffer_copy and gpumem_stream_synchronize")
GPUMEM_REMOVED(gpumem_buffer_discard_and_prefetch,
               "use gpumem_buffer_discard with gpumem_discard_options.prefetch")
GPUMEM_REMOVED(gpumem_buffer_fill_sync, "use gpumem_buffer_fill and gpumem_stream_synchronize")
GPUMEM_REMOVED(gpumem_buffer_get_chunk, "use gpumem_buffer_get_layout")
GPUMEM_REMOVED(gpumem_buffer_read_sync, "use gpumem_buffer_read and gpumem_stream_synchronize")
GPUMEM_REMOVED(gpumem_buffer_viewed, "use gpumem_buffer_get_attributes: viewed")
GPUMEM_REMOVED(gpumem_buffer_write_sync, "use gpumem_buffer_write and gpumem_stream_synchronize")
GPUMEM_REMOVED(gpumem_copy,
               "use gpumem_buffer_copy; gpumem_buffer_from_pointer makes buffers of addresses")
GPUMEM_REMOVED(gpumem_copy_2d,
               "use gpumem_buffer_copy_2d; gpumem_buffer_from_pointer makes buffers of addresses")
GPUMEM_REMOVED(
    gpumem_copy_batch,
    "use gpumem_buffer_copy_batch; gpumem_buffer_from_pointer makes buffers of addresses")
GPUMEM_REMOVED(gpumem_device_count, "use gpumem_library_get_info: device_count")
GPUMEM_REMOVED(gpumem_device_query,
               "use gpumem_device_get_info, which takes the library and an ordinal")
GPUMEM_REMOVED(gpumem_device_query_vulkan, "use gpumem_device_get_vulkan_info")
GPUMEM_REMOVED(gpumem_disconnect, "use close")
GPUMEM_REMOVED(gpumem_driver_fn_find, "compare gpumem_driver_fn_info_get: symbol")
GPUMEM_REMOVED(gpumem_driver_get_kind, "use gpumem_driver_get_info: kind")
GPUMEM_REMOVED(gpumem_driver_path, "use gpumem_driver_get_info: path")
GPUMEM_REMOVED(gpumem_export_descriptor_count, "use gpumem_export_get_info")
GPUMEM_REMOVED(gpumem_export_get_description, "use gpumem_export_get_info")
GPUMEM_REMOVED(gpumem_export_get_descriptor, "use gpumem_export_get_info")
GPUMEM_REMOVED(gpumem_export_size, "use gpumem_export_get_info")
GPUMEM_REMOVED(gpumem_failure_resource_create, "use gpumem_failure_callback_resource_create")
GPUMEM_REMOVED(gpumem_fill,
               "use gpumem_buffer_fill; gpumem_buffer_from_pointer makes buffers of addresses")
GPUMEM_REMOVED(
    gpumem_fill_pattern,
    "use gpumem_buffer_fill_pattern; gpumem_buffer_from_pointer makes buffers of addresses")
GPUMEM_REMOVED(gpumem_host_view_create, "use gpumem_buffer_host_view")
GPUMEM_REMOVED(gpumem_host_view_destroy, "use gpumem_buffer_free")
GPUMEM_REMOVED(gpumem_host_view_flush, "use gpumem_mapped_flush")
GPUMEM_REMOVED(gpumem_host_view_get_info, "use gpumem_buffer_get_mapped_info")
GPUMEM_REMOVED(gpumem_host_view_invalidate, "use gpumem_mapped_invalidate")
GPUMEM_REMOVED(gpumem_host_view_pointer, "use gpumem_buffer_host_pointer")
GPUMEM_REMOVED(gpumem_host_view_read, "use gpumem_mapped_read")
GPUMEM_REMOVED(gpumem_host_view_write, "use gpumem_mapped_write")
GPUMEM_REMOVED(gpumem_library_snapshot, "use gpumem_snapshot")
GPUMEM_REMOVED(gpumem_library_snapshot_write, "use gpumem_snapshot_write")
GPUMEM_REMOVED(gpumem_limit_resource_create, "use gpumem_limiting_resource_create")
GPUMEM_REMOVED(gpumem_mapping_address, "use gpumem_mapping_get_info")
GPUMEM_REMOVED(gpumem_mapping_get_state, "use gpumem_mapping_get_info")
GPUMEM_REMOVED(gpumem_mapping_set_access, "use gpumem_reservation_set_access")
GPUMEM_REMOVED(gpumem_mapping_size, "use gpumem_mapping_get_info")
GPUMEM_REMOVED(gpumem_physical_export_fabric, "use gpumem_physical_export")
GPUMEM_REMOVED(gpumem_physical_export_fd, "use gpumem_physical_export")
GPUMEM_REMOVED(gpumem_physical_import_fabric, "use gpumem_physical_import")
GPUMEM_REMOVED(gpumem_physical_import_fd, "use gpumem_physical_import")
GPUMEM_REMOVED(gpumem_physical_size, "use gpumem_physical_get_properties: bytes")
GPUMEM_REMOVED(gpumem_pool_get_access, "use gpumem_resource_get_access")
GPUMEM_REMOVED(gpumem_pool_get_handle, "use gpumem_pool_get_info: handle")
GPUMEM_REMOVED(gpumem_pool_get_peers, "use gpumem_resource_get_access of each device")
GPUMEM_REMOVED(gpumem_pool_set_access, "use gpumem_resource_set_access")
GPUMEM_REMOVED(gpumem_pool_set_peers, "use gpumem_resource_set_access of each device")
GPUMEM_REMOVED(gpumem_pool_trim, "use gpumem_resource_trim")
GPUMEM_REMOVED(gpumem_reservation_address, "use gpumem_reservation_get_info: address")
GPUMEM_REMOVED(gpumem_reservation_size, "use gpumem_reservation_get_info: bytes")
GPUMEM_REMOVED(gpumem_resource_fail, "use gpumem_set_last_error")
GPUMEM_REMOVED(gpumem_ring_release_events, "use gpumem_ring_release")
GPUMEM_REMOVED(gpumem_status_string, "use gpumem_status_name, or gpumem_last_error")
GPUMEM_REMOVED(gpumem_version_string, "use GPUMEM_VERSION_STRING, or gpumem_version")
GPUMEM_REMOVED(gpumem_virtual_resource_set_access, "use gpumem_resource_set_access")
GPUMEM_REMOVED(gpumem_virtual_resource_set_peers, "use gpumem_resource_set_access of each device")
GPUMEM_REMOVED(gpumem_watch_end, "use gpumem_watch_destroy")
GPUMEM_REMOVED_TYPE(gpumem_host_view, "use gpumem_buffer")
GPUMEM_REMOVED_TYPE(gpumem_fabric_handle, "use gpumem_physical_share_handle")
GPUMEM_REMOVED_TYPE(gpumem_copy_item, "use gpumem_buffer_copy_item")
GPUMEM_REMOVED_TYPE(gpumem_failure, "use gpumem_allocation_failure")
GPUMEM_REMOVED_TYPE(gpumem_failure_fn, "use gpumem_failure_callback_fn")
GPUMEM_REMOVED_TYPE(gpumem_failure_options, "use gpumem_failure_callback_options")
GPUMEM_REMOVED_TYPE(gpumem_leaving, "use gpumem_watch_reason")
GPUMEM_REMOVED_TYPE(gpumem_leaving_event, "use gpumem_watch_event")
GPUMEM_REMOVED_TYPE(gpumem_leaving_fn, "use gpumem_watch_fn")

#ifdef __cplusplus
}
#endif

#endif
