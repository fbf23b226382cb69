/* The C functions that Python calls by table, made by tools/api/python_tables.py (./dev api). */
/* clang-format off */
#include "tables.h"

#include <gpumem/gpumem.h>

static gpumem_status call_buffer_use(union value *v) {
    return gpumem_buffer_use(v[0].pointer, v[1].pointer);
}
static const struct parameter row_buffer_use[] = {{"buffer", KIND_BUFFER, 0}, {"stream", KIND_STREAM, 0}, {NULL, 0, 0}};
static gpumem_status call_buffer_order(union value *v) {
    return gpumem_buffer_order(v[0].pointer, v[1].pointer);
}
static const struct parameter row_buffer_order[] = {{"buffer", KIND_BUFFER, 0}, {"stream", KIND_STREAM, 0}, {NULL, 0, 0}};
static gpumem_status call_buffer_grow(union value *v) {
    return gpumem_buffer_grow(v[0].pointer, (size_t)v[1].size, v[2].pointer);
}
static const struct parameter row_buffer_grow[] = {{"buffer", KIND_BUFFER, 0}, {"bytes", KIND_SIZE, 0}, {"stream", KIND_STREAM, 0}, {NULL, 0, 0}};
static gpumem_status call_buffer_shrink(union value *v) {
    return gpumem_buffer_shrink(v[0].pointer, (size_t)v[1].size, v[2].pointer);
}
static const struct parameter row_buffer_shrink[] = {{"buffer", KIND_BUFFER, 0}, {"bytes", KIND_SIZE, 0}, {"stream", KIND_STREAM, 0}, {NULL, 0, 0}};
static gpumem_status call_buffer_move_to_capacity(union value *v) {
    return gpumem_buffer_move_to_capacity(v[0].pointer, (size_t)v[1].size, v[2].pointer, &v[3].wide);
}
static const struct parameter row_buffer_move_to_capacity[] = {{"buffer", KIND_BUFFER, 0}, {"capacity", KIND_SIZE, 0}, {"stream", KIND_STREAM, 0}, {"address", KIND_OUT_UINT64, 0}, {NULL, 0, 0}};
static gpumem_status call_buffer_set_access(union value *v) {
    return gpumem_buffer_set_access(v[0].pointer, (size_t)v[1].size, (size_t)v[2].size, (int)v[3].number, (gpumem_access)v[4].number, v[5].pointer);
}
static const struct parameter row_buffer_set_access[] = {{"buffer", KIND_BUFFER, 0}, {"offset", KIND_SIZE, 0}, {"bytes", KIND_SIZE, 0}, {"ordinal", KIND_INT, 0}, {"access", KIND_ENUM, CHOICES_access}, {"stream", KIND_STREAM, 0}, {NULL, 0, 0}};
static gpumem_status call_buffer_get_access(union value *v) {
    return gpumem_buffer_get_access(v[0].pointer, (size_t)v[1].size, (int)v[2].number, (gpumem_access *)&v[3].number);
}
static const struct parameter row_buffer_get_access[] = {{"buffer", KIND_BUFFER, 0}, {"offset", KIND_SIZE, 0}, {"ordinal", KIND_INT, 0}, {"access", KIND_OUT_ENUM, CHOICES_access}, {NULL, 0, 0}};
static gpumem_status call_buffer_decommit(union value *v) {
    return gpumem_buffer_decommit(v[0].pointer, (size_t)v[1].size, (size_t)v[2].size, v[3].pointer, &v[4].size);
}
static const struct parameter row_buffer_decommit[] = {{"buffer", KIND_BUFFER, 0}, {"offset", KIND_SIZE, 0}, {"bytes", KIND_SIZE, 0}, {"stream", KIND_STREAM, 0}, {"released", KIND_OUT_SIZE, 0}, {NULL, 0, 0}};
static gpumem_status call_buffer_recommit(union value *v) {
    return gpumem_buffer_recommit(v[0].pointer, (size_t)v[1].size, (size_t)v[2].size);
}
static const struct parameter row_buffer_recommit[] = {{"buffer", KIND_BUFFER, 0}, {"offset", KIND_SIZE, 0}, {"bytes", KIND_SIZE, 0}, {NULL, 0, 0}};
static gpumem_status call_buffer_mark_shared(union value *v) {
    return gpumem_buffer_mark_shared(v[0].pointer);
}
static const struct parameter row_buffer_mark_shared[] = {{"buffer", KIND_BUFFER, 0}, {NULL, 0, 0}};
static gpumem_status call_buffer_get_attributes(union value *v) {
    return gpumem_buffer_get_attributes(v[0].pointer, v[1].pointer);
}
static const struct parameter row_buffer_get_attributes[] = {{"buffer", KIND_BUFFER, 0}, {"attributes", KIND_OUT_STRUCT, LAYOUT_buffer_attributes}, {NULL, 0, 0}};
static gpumem_status call_caching_resource_create(union value *v) {
    return gpumem_caching_resource_create(v[0].pointer, v[1].pointer, (gpumem_resource **)&v[2].pointer);
}
static const struct parameter row_caching_resource_create[] = {{"upstream", KIND_RESOURCE, 0}, {"options", KIND_STRUCT, LAYOUT_caching_options}, {"resource", KIND_NEW_RESOURCE, 0}, {NULL, 0, 0}};
static gpumem_status call_caching_get_info(union value *v) {
    return gpumem_caching_get_info(v[0].pointer, v[1].pointer);
}
static const struct parameter row_caching_get_info[] = {{"resource", KIND_RESOURCE, 0}, {"info", KIND_OUT_STRUCT, LAYOUT_caching_info}, {NULL, 0, 0}};
static gpumem_status call_caching_forget_stream(union value *v) {
    return gpumem_caching_forget_stream(v[0].pointer, v[1].pointer);
}
static const struct parameter row_caching_forget_stream[] = {{"resource", KIND_RESOURCE, 0}, {"stream", KIND_STREAM, 0}, {NULL, 0, 0}};
static gpumem_status call_capture_pool_create(union value *v) {
    return gpumem_capture_pool_create(v[0].pointer, (gpumem_capture_pool **)&v[1].pointer);
}
static const struct parameter row_capture_pool_create[] = {{"resource", KIND_RESOURCE, 0}, {"pool", KIND_NEW_OBJECT, OBJECT_capture_pool}, {NULL, 0, 0}};
static gpumem_status call_capture_pool_begin(union value *v) {
    return gpumem_capture_pool_begin(v[0].pointer, v[1].pointer);
}
static const struct parameter row_capture_pool_begin[] = {{"pool", KIND_OBJECT, OBJECT_capture_pool}, {"stream", KIND_STREAM, 0}, {NULL, 0, 0}};
static gpumem_status call_capture_pool_end(union value *v) {
    return gpumem_capture_pool_end(v[0].pointer, v[1].pointer);
}
static const struct parameter row_capture_pool_end[] = {{"pool", KIND_OBJECT, OBJECT_capture_pool}, {"stream", KIND_STREAM, 0}, {NULL, 0, 0}};
static gpumem_status call_buffer_write(union value *v) {
    return gpumem_buffer_write(v[0].pointer, (size_t)v[1].size, v[2].pointer, v[2].count, v[3].pointer);
}
static const struct parameter row_buffer_write[] = {{"buffer", KIND_BUFFER, 0}, {"offset", KIND_SIZE, 0}, {"host", KIND_READ, 0}, {"stream", KIND_STREAM, 0}, {NULL, 0, 0}};
static gpumem_status call_buffer_read(union value *v) {
    return gpumem_buffer_read(v[0].pointer, (size_t)v[1].size, v[2].pointer, v[2].count, v[3].pointer);
}
static const struct parameter row_buffer_read[] = {{"buffer", KIND_BUFFER, 0}, {"offset", KIND_SIZE, 0}, {"host", KIND_WRITE, 0}, {"stream", KIND_STREAM, 0}, {NULL, 0, 0}};
static gpumem_status call_buffer_copy(union value *v) {
    return gpumem_buffer_copy(v[0].pointer, (size_t)v[1].size, v[2].pointer, (size_t)v[3].size, (size_t)v[4].size, v[5].pointer);
}
static const struct parameter row_buffer_copy[] = {{"to", KIND_BUFFER, 0}, {"to_offset", KIND_SIZE, 0}, {"from", KIND_BUFFER, 0}, {"from_offset", KIND_SIZE, 0}, {"bytes", KIND_SIZE, 0}, {"stream", KIND_STREAM, 0}, {NULL, 0, 0}};
static gpumem_status call_buffer_fill(union value *v) {
    return gpumem_buffer_fill(v[0].pointer, (size_t)v[1].size, (size_t)v[2].size, (unsigned char)v[3].number, v[4].pointer);
}
static const struct parameter row_buffer_fill[] = {{"buffer", KIND_BUFFER, 0}, {"offset", KIND_SIZE, 0}, {"bytes", KIND_SIZE, 0}, {"value", KIND_BYTE, 0}, {"stream", KIND_STREAM, 0}, {NULL, 0, 0}};
static gpumem_status call_buffer_fill_pattern(union value *v) {
    return gpumem_buffer_fill_pattern(v[0].pointer, (size_t)v[1].size, (size_t)v[2].size, v[3].pointer, v[3].count, v[4].pointer);
}
static const struct parameter row_buffer_fill_pattern[] = {{"buffer", KIND_BUFFER, 0}, {"offset", KIND_SIZE, 0}, {"bytes", KIND_SIZE, 0}, {"pattern", KIND_READ, 0}, {"stream", KIND_STREAM, 0}, {NULL, 0, 0}};
static gpumem_status call_stream_synchronize(union value *v) {
    return gpumem_stream_synchronize(v[0].pointer, v[1].pointer);
}
static const struct parameter row_stream_synchronize[] = {{"device", KIND_OBJECT, OBJECT_device}, {"stream", KIND_STREAM, 0}, {NULL, 0, 0}};
static gpumem_status call_stream_query(union value *v) {
    return gpumem_stream_query(v[0].pointer, v[1].pointer, &v[2].flag);
}
static const struct parameter row_stream_query[] = {{"device", KIND_OBJECT, OBJECT_device}, {"stream", KIND_STREAM, 0}, {"done", KIND_OUT_BOOL, 0}, {NULL, 0, 0}};
static gpumem_status call_stream_wait_event(union value *v) {
    return gpumem_stream_wait_event(v[0].pointer, v[1].pointer, v[2].pointer);
}
static const struct parameter row_stream_wait_event[] = {{"device", KIND_OBJECT, OBJECT_device}, {"stream", KIND_STREAM, 0}, {"event", KIND_EVENT, 0}, {NULL, 0, 0}};
static gpumem_status call_event_record(union value *v) {
    return gpumem_event_record(v[0].pointer, v[1].pointer, v[2].pointer);
}
static const struct parameter row_event_record[] = {{"device", KIND_OBJECT, OBJECT_device}, {"event", KIND_EVENT, 0}, {"stream", KIND_STREAM, 0}, {NULL, 0, 0}};
static gpumem_status call_event_query(union value *v) {
    return gpumem_event_query(v[0].pointer, v[1].pointer, &v[2].flag);
}
static const struct parameter row_event_query[] = {{"device", KIND_OBJECT, OBJECT_device}, {"event", KIND_EVENT, 0}, {"done", KIND_OUT_BOOL, 0}, {NULL, 0, 0}};
static gpumem_status call_event_synchronize(union value *v) {
    return gpumem_event_synchronize(v[0].pointer, v[1].pointer);
}
static const struct parameter row_event_synchronize[] = {{"device", KIND_OBJECT, OBJECT_device}, {"event", KIND_EVENT, 0}, {NULL, 0, 0}};
static gpumem_status call_event_elapsed(union value *v) {
    return gpumem_event_elapsed(v[0].pointer, v[1].pointer, v[2].pointer, &v[3].single);
}
static const struct parameter row_event_elapsed[] = {{"device", KIND_OBJECT, OBJECT_device}, {"start", KIND_EVENT, 0}, {"end", KIND_EVENT, 0}, {"milliseconds", KIND_OUT_FLOAT, 0}, {NULL, 0, 0}};
static gpumem_status call_buffer_from_pointer(union value *v) {
    return gpumem_buffer_from_pointer(v[0].pointer, (CUdeviceptr)v[1].wide, (size_t)v[2].size, v[3].pointer, (gpumem_buffer **)&v[4].pointer);
}
static const struct parameter row_buffer_from_pointer[] = {{"device", KIND_OBJECT, OBJECT_device}, {"pointer", KIND_UINT64, 0}, {"bytes", KIND_SIZE, 0}, {"options", KIND_STRUCT, LAYOUT_foreign_options}, {"buffer", KIND_NEW_BUFFER, 0}, {NULL, 0, 0}};
static gpumem_status call_buffer_register(union value *v) {
    return gpumem_buffer_register(v[0].pointer, v[1].pointer, v[1].count, v[2].pointer, (gpumem_buffer **)&v[3].pointer);
}
static const struct parameter row_buffer_register[] = {{"device", KIND_OBJECT, OBJECT_device}, {"address", KIND_WRITE, 0}, {"options", KIND_STRUCT, LAYOUT_register_options}, {"buffer", KIND_NEW_BUFFER, 0}, {NULL, 0, 0}};
static gpumem_status call_graph_memory_get_attribute(union value *v) {
    return gpumem_graph_memory_get_attribute(v[0].pointer, (gpumem_graph_memory_attribute)v[1].number, &v[2].word);
}
static const struct parameter row_graph_memory_get_attribute[] = {{"device", KIND_OBJECT, OBJECT_device}, {"attribute", KIND_ENUM, CHOICES_graph_memory_attribute}, {"value", KIND_OUT_UINT64, 0}, {NULL, 0, 0}};
static gpumem_status call_graph_memory_set_attribute(union value *v) {
    return gpumem_graph_memory_set_attribute(v[0].pointer, (gpumem_graph_memory_attribute)v[1].number, (uint64_t)v[2].wide);
}
static const struct parameter row_graph_memory_set_attribute[] = {{"device", KIND_OBJECT, OBJECT_device}, {"attribute", KIND_ENUM, CHOICES_graph_memory_attribute}, {"value", KIND_UINT64, 0}, {NULL, 0, 0}};
static gpumem_status call_graph_memory_trim(union value *v) {
    return gpumem_graph_memory_trim(v[0].pointer);
}
static const struct parameter row_graph_memory_trim[] = {{"device", KIND_OBJECT, OBJECT_device}, {NULL, 0, 0}};
static gpumem_status call_open(union value *v) {
    return gpumem_open(v[0].pointer, (gpumem_library **)&v[1].pointer);
}
static const struct parameter row_open[] = {{"options", KIND_STRUCT, LAYOUT_open_options}, {"library", KIND_NEW_OBJECT, OBJECT_library}, {NULL, 0, 0}};
static gpumem_status call_library_get_info(union value *v) {
    return gpumem_library_get_info(v[0].pointer, v[1].pointer);
}
static const struct parameter row_library_get_info[] = {{"library", KIND_OBJECT, OBJECT_library}, {"info", KIND_OUT_STRUCT, LAYOUT_library_info}, {NULL, 0, 0}};
static gpumem_status call_device_open(union value *v) {
    return gpumem_device_open(v[0].pointer, (int)v[1].number, (gpumem_device **)&v[2].pointer);
}
static const struct parameter row_device_open[] = {{"library", KIND_OBJECT, OBJECT_library}, {"ordinal", KIND_INT, 0}, {"device", KIND_NEW_OBJECT, OBJECT_device}, {NULL, 0, 0}};
static gpumem_status call_device_open_uuid(union value *v) {
    return gpumem_device_open_uuid(v[0].pointer, v[1].pointer, (gpumem_device **)&v[2].pointer);
}
static const struct parameter row_device_open_uuid[] = {{"library", KIND_OBJECT, OBJECT_library}, {"uuid", KIND_UUID, 16}, {"device", KIND_NEW_OBJECT, OBJECT_device}, {NULL, 0, 0}};
static gpumem_status call_device_get_info(union value *v) {
    return gpumem_device_get_info(v[0].pointer, (int)v[1].number, v[2].pointer);
}
static const struct parameter row_device_get_info[] = {{"library", KIND_OBJECT, OBJECT_library}, {"ordinal", KIND_INT, 0}, {"info", KIND_OUT_STRUCT, LAYOUT_device_info}, {NULL, 0, 0}};
static gpumem_status call_device_get_vulkan_info(union value *v) {
    return gpumem_device_get_vulkan_info(v[0].pointer, (int)v[1].number, v[2].pointer);
}
static const struct parameter row_device_get_vulkan_info[] = {{"library", KIND_OBJECT, OBJECT_library}, {"ordinal", KIND_INT, 0}, {"info", KIND_OUT_STRUCT, LAYOUT_vulkan_info}, {NULL, 0, 0}};
static gpumem_status call_device_get_memory(union value *v) {
    return gpumem_device_get_memory(v[0].pointer, &v[1].word, &v[2].word);
}
static const struct parameter row_device_get_memory[] = {{"device", KIND_OBJECT, OBJECT_device}, {"free_bytes", KIND_OUT_UINT64, 0}, {"total_bytes", KIND_OUT_UINT64, 0}, {NULL, 0, 0}};
static gpumem_status call_device_can_access_peer(union value *v) {
    return gpumem_device_can_access_peer(v[0].pointer, (int)v[1].number, &v[2].flag);
}
static const struct parameter row_device_can_access_peer[] = {{"device", KIND_OBJECT, OBJECT_device}, {"ordinal", KIND_INT, 0}, {"can_access", KIND_OUT_BOOL, 0}, {NULL, 0, 0}};
static gpumem_status call_device_trim(union value *v) {
    return gpumem_device_trim(v[0].pointer, (bool)v[1].flag);
}
static const struct parameter row_device_trim[] = {{"device", KIND_OBJECT, OBJECT_device}, {"wait", KIND_BOOL, 0}, {NULL, 0, 0}};
static gpumem_status call_device_get_capability(union value *v) {
    return gpumem_device_get_capability(v[0].pointer, (gpumem_capability)v[1].number, v[2].pointer);
}
static const struct parameter row_device_get_capability[] = {{"device", KIND_OBJECT, OBJECT_device}, {"capability", KIND_ENUM, CHOICES_capability}, {"report", KIND_OUT_STRUCT, LAYOUT_capability_report}, {NULL, 0, 0}};
static gpumem_status call_managed_resource_create(union value *v) {
    return gpumem_managed_resource_create(v[0].pointer, v[1].pointer, (gpumem_resource **)&v[2].pointer);
}
static const struct parameter row_managed_resource_create[] = {{"device", KIND_OBJECT, OBJECT_device}, {"options", KIND_STRUCT, LAYOUT_managed_options}, {"resource", KIND_NEW_RESOURCE, 0}, {NULL, 0, 0}};
static gpumem_status call_buffer_advise(union value *v) {
    return gpumem_buffer_advise(v[0].pointer, (size_t)v[1].size, (size_t)v[2].size, (gpumem_advice)v[3].number, (gpumem_location)v[4].number, (int)v[5].number);
}
static const struct parameter row_buffer_advise[] = {{"buffer", KIND_BUFFER, 0}, {"offset", KIND_SIZE, 0}, {"bytes", KIND_SIZE, 0}, {"advice", KIND_ENUM, CHOICES_advice}, {"location", KIND_ENUM, CHOICES_location}, {"ordinal_or_node", KIND_INT, 0}, {NULL, 0, 0}};
static gpumem_status call_buffer_prefetch(union value *v) {
    return gpumem_buffer_prefetch(v[0].pointer, (size_t)v[1].size, (size_t)v[2].size, (gpumem_location)v[3].number, (int)v[4].number, v[5].pointer);
}
static const struct parameter row_buffer_prefetch[] = {{"buffer", KIND_BUFFER, 0}, {"offset", KIND_SIZE, 0}, {"bytes", KIND_SIZE, 0}, {"location", KIND_ENUM, CHOICES_location}, {"ordinal_or_node", KIND_INT, 0}, {"stream", KIND_STREAM, 0}, {NULL, 0, 0}};
static gpumem_status call_buffer_discard(union value *v) {
    return gpumem_buffer_discard(v[0].pointer, (size_t)v[1].size, (size_t)v[2].size, v[3].pointer, v[4].pointer);
}
static const struct parameter row_buffer_discard[] = {{"buffer", KIND_BUFFER, 0}, {"offset", KIND_SIZE, 0}, {"bytes", KIND_SIZE, 0}, {"options", KIND_STRUCT, LAYOUT_discard_options}, {"stream", KIND_STREAM, 0}, {NULL, 0, 0}};
static gpumem_status call_buffer_get_managed_range(union value *v) {
    return gpumem_buffer_get_managed_range(v[0].pointer, (size_t)v[1].size, (size_t)v[2].size, v[3].pointer);
}
static const struct parameter row_buffer_get_managed_range[] = {{"buffer", KIND_BUFFER, 0}, {"offset", KIND_SIZE, 0}, {"bytes", KIND_SIZE, 0}, {"range", KIND_OUT_STRUCT, LAYOUT_managed_range}, {NULL, 0, 0}};
static gpumem_status call_mapped_resource_create(union value *v) {
    return gpumem_mapped_resource_create(v[0].pointer, v[1].pointer, (gpumem_resource **)&v[2].pointer);
}
static const struct parameter row_mapped_resource_create[] = {{"device", KIND_OBJECT, OBJECT_device}, {"options", KIND_STRUCT, LAYOUT_mapped_options}, {"resource", KIND_NEW_RESOURCE, 0}, {NULL, 0, 0}};
static gpumem_status call_mapped_get_info(union value *v) {
    return gpumem_mapped_get_info(v[0].pointer, v[1].pointer);
}
static const struct parameter row_mapped_get_info[] = {{"resource", KIND_RESOURCE, 0}, {"info", KIND_OUT_STRUCT, LAYOUT_mapped_info}, {NULL, 0, 0}};
static gpumem_status call_mapped_write(union value *v) {
    return gpumem_mapped_write(v[0].pointer, (size_t)v[1].size, v[2].pointer, v[2].count);
}
static const struct parameter row_mapped_write[] = {{"buffer", KIND_BUFFER, 0}, {"offset", KIND_SIZE, 0}, {"data", KIND_READ, 0}, {NULL, 0, 0}};
static gpumem_status call_mapped_read(union value *v) {
    return gpumem_mapped_read(v[0].pointer, (size_t)v[1].size, v[2].pointer, v[2].count);
}
static const struct parameter row_mapped_read[] = {{"buffer", KIND_BUFFER, 0}, {"offset", KIND_SIZE, 0}, {"data", KIND_WRITE, 0}, {NULL, 0, 0}};
static gpumem_status call_mapped_flush(union value *v) {
    return gpumem_mapped_flush(v[0].pointer, (size_t)v[1].size, (size_t)v[2].size);
}
static const struct parameter row_mapped_flush[] = {{"buffer", KIND_BUFFER, 0}, {"offset", KIND_SIZE, 0}, {"bytes", KIND_SIZE, 0}, {NULL, 0, 0}};
static gpumem_status call_mapped_invalidate(union value *v) {
    return gpumem_mapped_invalidate(v[0].pointer, (size_t)v[1].size, (size_t)v[2].size);
}
static const struct parameter row_mapped_invalidate[] = {{"buffer", KIND_BUFFER, 0}, {"offset", KIND_SIZE, 0}, {"bytes", KIND_SIZE, 0}, {NULL, 0, 0}};
static gpumem_status call_mapped_publish(union value *v) {
    return gpumem_mapped_publish(v[0].pointer, (size_t)v[1].size, v[2].pointer, v[2].count, (size_t)v[3].size, (uint32_t)v[4].number);
}
static const struct parameter row_mapped_publish[] = {{"buffer", KIND_BUFFER, 0}, {"offset", KIND_SIZE, 0}, {"data", KIND_READ, 0}, {"flag_offset", KIND_SIZE, 0}, {"value", KIND_UNSIGNED, 0}, {NULL, 0, 0}};
static gpumem_status call_mapped_calibrate(union value *v) {
    return gpumem_mapped_calibrate(v[0].pointer, v[1].pointer);
}
static const struct parameter row_mapped_calibrate[] = {{"resource", KIND_RESOURCE, 0}, {"options", KIND_STRUCT, LAYOUT_mapped_calibrate_options}, {NULL, 0, 0}};
static gpumem_status call_buffer_host_view(union value *v) {
    return gpumem_buffer_host_view(v[0].pointer, v[1].pointer, (gpumem_buffer **)&v[2].pointer);
}
static const struct parameter row_buffer_host_view[] = {{"buffer", KIND_BUFFER, 0}, {"options", KIND_STRUCT, LAYOUT_host_view_options}, {"view", KIND_NEW_BUFFER, 0}, {NULL, 0, 0}};
static gpumem_status call_buffer_get_mapped_info(union value *v) {
    return gpumem_buffer_get_mapped_info(v[0].pointer, v[1].pointer);
}
static const struct parameter row_buffer_get_mapped_info[] = {{"buffer", KIND_BUFFER, 0}, {"info", KIND_OUT_STRUCT, LAYOUT_mapped_info}, {NULL, 0, 0}};
static gpumem_status call_pinned_resource_create(union value *v) {
    return gpumem_pinned_resource_create(v[0].pointer, v[1].pointer, (gpumem_resource **)&v[2].pointer);
}
static const struct parameter row_pinned_resource_create[] = {{"device", KIND_OBJECT, OBJECT_device}, {"options", KIND_STRUCT, LAYOUT_pinned_options}, {"resource", KIND_NEW_RESOURCE, 0}, {NULL, 0, 0}};
static gpumem_status call_pinned_warm_up(union value *v) {
    return gpumem_pinned_warm_up(v[0].pointer, (size_t)v[1].size);
}
static const struct parameter row_pinned_warm_up[] = {{"resource", KIND_RESOURCE, 0}, {"bytes", KIND_SIZE, 0}, {NULL, 0, 0}};
static gpumem_status call_pinned_get_info(union value *v) {
    return gpumem_pinned_get_info(v[0].pointer, v[1].pointer);
}
static const struct parameter row_pinned_get_info[] = {{"resource", KIND_RESOURCE, 0}, {"info", KIND_OUT_STRUCT, LAYOUT_pinned_info}, {NULL, 0, 0}};
static gpumem_status call_device_pool_resource_create(union value *v) {
    return gpumem_device_pool_resource_create(v[0].pointer, v[1].pointer, (gpumem_resource **)&v[2].pointer);
}
static const struct parameter row_device_pool_resource_create[] = {{"device", KIND_OBJECT, OBJECT_device}, {"options", KIND_STRUCT, LAYOUT_device_pool_options}, {"resource", KIND_NEW_RESOURCE, 0}, {NULL, 0, 0}};
static gpumem_status call_pool_get_info(union value *v) {
    return gpumem_pool_get_info(v[0].pointer, v[1].pointer);
}
static const struct parameter row_pool_get_info[] = {{"resource", KIND_RESOURCE, 0}, {"info", KIND_OUT_STRUCT, LAYOUT_pool_info}, {NULL, 0, 0}};
static gpumem_status call_pool_get_attribute(union value *v) {
    return gpumem_pool_get_attribute(v[0].pointer, (gpumem_pool_attribute)v[1].number, &v[2].word);
}
static const struct parameter row_pool_get_attribute[] = {{"resource", KIND_RESOURCE, 0}, {"attribute", KIND_ENUM, CHOICES_pool_attribute}, {"value", KIND_OUT_UINT64, 0}, {NULL, 0, 0}};
static gpumem_status call_pool_set_attribute(union value *v) {
    return gpumem_pool_set_attribute(v[0].pointer, (gpumem_pool_attribute)v[1].number, (uint64_t)v[2].wide);
}
static const struct parameter row_pool_set_attribute[] = {{"resource", KIND_RESOURCE, 0}, {"attribute", KIND_ENUM, CHOICES_pool_attribute}, {"value", KIND_UINT64, 0}, {NULL, 0, 0}};
static gpumem_status call_pool_send(union value *v) {
    return gpumem_pool_send(v[0].pointer, (int)v[1].number, v[2].pointer);
}
static const struct parameter row_pool_send[] = {{"resource", KIND_RESOURCE, 0}, {"socket", KIND_INT, 0}, {"options", KIND_STRUCT, LAYOUT_share_options}, {NULL, 0, 0}};
static gpumem_status call_pool_receive(union value *v) {
    return gpumem_pool_receive(v[0].pointer, (int)v[1].number, v[2].pointer, (gpumem_resource **)&v[3].pointer);
}
static const struct parameter row_pool_receive[] = {{"device", KIND_OBJECT, OBJECT_device}, {"socket", KIND_INT, 0}, {"options", KIND_STRUCT, LAYOUT_share_options}, {"resource", KIND_NEW_RESOURCE, 0}, {NULL, 0, 0}};
static gpumem_status call_pool_get_share_handle(union value *v) {
    return gpumem_pool_get_share_handle(v[0].pointer, v[1].pointer);
}
static const struct parameter row_pool_get_share_handle[] = {{"resource", KIND_RESOURCE, 0}, {"handle", KIND_OUT_STRUCT, LAYOUT_pool_share_handle}, {NULL, 0, 0}};
static gpumem_status call_pool_from_share_handle(union value *v) {
    return gpumem_pool_from_share_handle(v[0].pointer, v[1].pointer, (gpumem_resource **)&v[2].pointer);
}
static const struct parameter row_pool_from_share_handle[] = {{"device", KIND_OBJECT, OBJECT_device}, {"handle", KIND_STRUCT, LAYOUT_pool_share_handle}, {"resource", KIND_NEW_RESOURCE, 0}, {NULL, 0, 0}};
static gpumem_status call_pool_export_buffer(union value *v) {
    return gpumem_pool_export_buffer(v[0].pointer, v[1].pointer);
}
static const struct parameter row_pool_export_buffer[] = {{"buffer", KIND_BUFFER, 0}, {"shared", KIND_OUT_STRUCT, LAYOUT_pool_share_buffer}, {NULL, 0, 0}};
static gpumem_status call_pool_import_buffer(union value *v) {
    return gpumem_pool_import_buffer(v[0].pointer, v[1].pointer, (gpumem_buffer **)&v[2].pointer);
}
static const struct parameter row_pool_import_buffer[] = {{"resource", KIND_RESOURCE, 0}, {"shared", KIND_STRUCT, LAYOUT_pool_share_buffer}, {"buffer", KIND_NEW_BUFFER, 0}, {NULL, 0, 0}};
static gpumem_status call_resource_get_properties(union value *v) {
    return gpumem_resource_get_properties(v[0].pointer, v[1].pointer);
}
static const struct parameter row_resource_get_properties[] = {{"resource", KIND_RESOURCE, 0}, {"properties", KIND_OUT_STRUCT, LAYOUT_resource_properties}, {NULL, 0, 0}};
static gpumem_status call_resource_trim(union value *v) {
    return gpumem_resource_trim(v[0].pointer, (size_t)v[1].size);
}
static const struct parameter row_resource_trim[] = {{"resource", KIND_RESOURCE, 0}, {"keep_bytes", KIND_SIZE, 0}, {NULL, 0, 0}};
static gpumem_status call_resource_set_access(union value *v) {
    return gpumem_resource_set_access(v[0].pointer, (int)v[1].number, (gpumem_access)v[2].number);
}
static const struct parameter row_resource_set_access[] = {{"resource", KIND_RESOURCE, 0}, {"ordinal", KIND_INT, 0}, {"access", KIND_ENUM, CHOICES_access}, {NULL, 0, 0}};
static gpumem_status call_resource_get_access(union value *v) {
    return gpumem_resource_get_access(v[0].pointer, (int)v[1].number, (gpumem_access *)&v[2].number);
}
static const struct parameter row_resource_get_access[] = {{"resource", KIND_RESOURCE, 0}, {"ordinal", KIND_INT, 0}, {"access", KIND_OUT_ENUM, CHOICES_access}, {NULL, 0, 0}};
static gpumem_status call_export_create(union value *v) {
    return gpumem_export_create(v[0].pointer, (gpumem_export **)&v[1].pointer);
}
static const struct parameter row_export_create[] = {{"buffer", KIND_BUFFER, 0}, {"exported", KIND_NEW_OBJECT, OBJECT_export}, {NULL, 0, 0}};
static gpumem_status call_export_create_event(union value *v) {
    return gpumem_export_create_event(v[0].pointer, v[1].pointer, (gpumem_export **)&v[2].pointer);
}
static const struct parameter row_export_create_event[] = {{"device", KIND_OBJECT, OBJECT_device}, {"event", KIND_EVENT, 0}, {"exported", KIND_NEW_OBJECT, OBJECT_export}, {NULL, 0, 0}};
static gpumem_status call_export_update(union value *v) {
    return gpumem_export_update(v[0].pointer);
}
static const struct parameter row_export_update[] = {{"exported", KIND_OBJECT, OBJECT_export}, {NULL, 0, 0}};
static gpumem_status call_export_detach(union value *v) {
    return gpumem_export_detach(v[0].pointer);
}
static const struct parameter row_export_detach[] = {{"exported", KIND_OBJECT, OBJECT_export}, {NULL, 0, 0}};
static gpumem_status call_export_get_info(union value *v) {
    return gpumem_export_get_info(v[0].pointer, v[1].pointer);
}
static const struct parameter row_export_get_info[] = {{"exported", KIND_OBJECT, OBJECT_export}, {"info", KIND_OUT_STRUCT, LAYOUT_export_info}, {NULL, 0, 0}};
static gpumem_status call_export_send(union value *v) {
    return gpumem_export_send(v[0].pointer, (int)v[1].number, v[2].pointer);
}
static const struct parameter row_export_send[] = {{"exported", KIND_OBJECT, OBJECT_export}, {"socket", KIND_INT, 0}, {"options", KIND_STRUCT, LAYOUT_share_options}, {NULL, 0, 0}};
static gpumem_status call_export_answer(union value *v) {
    return gpumem_export_answer(v[0].pointer, (int)v[1].number, v[2].pointer);
}
static const struct parameter row_export_answer[] = {{"exported", KIND_OBJECT, OBJECT_export}, {"socket", KIND_INT, 0}, {"options", KIND_STRUCT, LAYOUT_share_options}, {NULL, 0, 0}};
static gpumem_status call_import_receive(union value *v) {
    return gpumem_import_receive(v[0].pointer, (int)v[1].number, v[2].pointer, (gpumem_buffer **)&v[3].pointer);
}
static const struct parameter row_import_receive[] = {{"device", KIND_OBJECT, OBJECT_device}, {"socket", KIND_INT, 0}, {"options", KIND_STRUCT, LAYOUT_share_options}, {"buffer", KIND_NEW_BUFFER, 0}, {NULL, 0, 0}};
static gpumem_status call_import_create(union value *v) {
    return gpumem_import_create(v[0].pointer, v[1].pointer, v[1].count, v[2].pointer, v[2].count, v[3].pointer, (gpumem_buffer **)&v[4].pointer);
}
static const struct parameter row_import_create[] = {{"device", KIND_OBJECT, OBJECT_device}, {"description", KIND_READ, 0}, {"descriptors", KIND_INTS, 0}, {"options", KIND_STRUCT, LAYOUT_share_options}, {"buffer", KIND_NEW_BUFFER, 0}, {NULL, 0, 0}};
static gpumem_status call_import_update(union value *v) {
    return gpumem_import_update(v[0].pointer, (int)v[1].number, v[2].pointer);
}
static const struct parameter row_import_update[] = {{"buffer", KIND_BUFFER, 0}, {"socket", KIND_INT, 0}, {"options", KIND_STRUCT, LAYOUT_share_options}, {NULL, 0, 0}};
static gpumem_status call_import_extend(union value *v) {
    return gpumem_import_extend(v[0].pointer, v[1].pointer, v[1].count, v[2].pointer, v[2].count, v[3].pointer);
}
static const struct parameter row_import_extend[] = {{"buffer", KIND_BUFFER, 0}, {"description", KIND_READ, 0}, {"descriptors", KIND_INTS, 0}, {"options", KIND_STRUCT, LAYOUT_share_options}, {NULL, 0, 0}};
static gpumem_status call_import_receive_event(union value *v) {
    return gpumem_import_receive_event(v[0].pointer, (int)v[1].number, v[2].pointer, (CUevent *)&v[3].pointer);
}
static const struct parameter row_import_receive_event[] = {{"device", KIND_OBJECT, OBJECT_device}, {"socket", KIND_INT, 0}, {"options", KIND_STRUCT, LAYOUT_share_options}, {"event", KIND_OUT_POINTER, 0}, {NULL, 0, 0}};
static gpumem_status call_import_create_event(union value *v) {
    return gpumem_import_create_event(v[0].pointer, v[1].pointer, v[1].count, (CUevent *)&v[2].pointer);
}
static const struct parameter row_import_create_event[] = {{"device", KIND_OBJECT, OBJECT_device}, {"description", KIND_READ, 0}, {"event", KIND_OUT_POINTER, 0}, {NULL, 0, 0}};
static gpumem_status call_snapshot(union value *v) {
    return gpumem_snapshot(v[0].pointer, v[1].pointer, (char **)&v[2].pointer);
}
static const struct parameter row_snapshot[] = {{"library", KIND_OBJECT, OBJECT_library}, {"options", KIND_STRUCT, LAYOUT_snapshot_options}, {"text", KIND_OUT_TEXT, 0}, {NULL, 0, 0}};
static gpumem_status call_resource_get_stats(union value *v) {
    return gpumem_resource_get_stats(v[0].pointer, v[1].pointer);
}
static const struct parameter row_resource_get_stats[] = {{"resource", KIND_RESOURCE, 0}, {"stats", KIND_OUT_STRUCT, LAYOUT_stats}, {NULL, 0, 0}};
static gpumem_status call_device_get_stats(union value *v) {
    return gpumem_device_get_stats(v[0].pointer, v[1].pointer);
}
static const struct parameter row_device_get_stats[] = {{"device", KIND_OBJECT, OBJECT_device}, {"stats", KIND_OUT_STRUCT, LAYOUT_stats}, {NULL, 0, 0}};
static gpumem_status call_library_get_stats(union value *v) {
    return gpumem_library_get_stats(v[0].pointer, v[1].pointer);
}
static const struct parameter row_library_get_stats[] = {{"library", KIND_OBJECT, OBJECT_library}, {"stats", KIND_OUT_STRUCT, LAYOUT_stats}, {NULL, 0, 0}};
static gpumem_status call_buffer_view(union value *v) {
    return gpumem_buffer_view(v[0].pointer, (size_t)v[1].size, (size_t)v[2].size, (gpumem_buffer **)&v[3].pointer);
}
static const struct parameter row_buffer_view[] = {{"buffer", KIND_BUFFER, 0}, {"offset", KIND_SIZE, 0}, {"bytes", KIND_SIZE, 0}, {"view", KIND_NEW_BUFFER, 0}, {NULL, 0, 0}};
static gpumem_status call_virtual_resource_create(union value *v) {
    return gpumem_virtual_resource_create(v[0].pointer, v[1].pointer, (gpumem_resource **)&v[2].pointer);
}
static const struct parameter row_virtual_resource_create[] = {{"device", KIND_OBJECT, OBJECT_device}, {"options", KIND_STRUCT, LAYOUT_virtual_options}, {"resource", KIND_NEW_RESOURCE, 0}, {NULL, 0, 0}};
static gpumem_status call_reservation_create(union value *v) {
    return gpumem_reservation_create(v[0].pointer, (size_t)v[1].size, v[2].pointer, (gpumem_reservation **)&v[3].pointer);
}
static const struct parameter row_reservation_create[] = {{"device", KIND_OBJECT, OBJECT_device}, {"bytes", KIND_SIZE, 0}, {"options", KIND_STRUCT, LAYOUT_reservation_options}, {"reservation", KIND_NEW_OBJECT, OBJECT_reservation}, {NULL, 0, 0}};
static gpumem_status call_reservation_get_info(union value *v) {
    return gpumem_reservation_get_info(v[0].pointer, v[1].pointer);
}
static const struct parameter row_reservation_get_info[] = {{"reservation", KIND_OBJECT, OBJECT_reservation}, {"info", KIND_OUT_STRUCT, LAYOUT_reservation_info}, {NULL, 0, 0}};
static gpumem_status call_physical_granularity(union value *v) {
    return gpumem_physical_granularity(v[0].pointer, v[1].pointer, (gpumem_granularity_kind)v[2].number, &v[3].size);
}
static const struct parameter row_physical_granularity[] = {{"device", KIND_OBJECT, OBJECT_device}, {"options", KIND_STRUCT, LAYOUT_physical_options}, {"kind", KIND_ENUM, CHOICES_granularity_kind}, {"bytes", KIND_OUT_SIZE, 0}, {NULL, 0, 0}};
static gpumem_status call_physical_create(union value *v) {
    return gpumem_physical_create(v[0].pointer, (size_t)v[1].size, v[2].pointer, (gpumem_physical **)&v[3].pointer);
}
static const struct parameter row_physical_create[] = {{"device", KIND_OBJECT, OBJECT_device}, {"bytes", KIND_SIZE, 0}, {"options", KIND_STRUCT, LAYOUT_physical_options}, {"physical", KIND_NEW_OBJECT, OBJECT_physical}, {NULL, 0, 0}};
static gpumem_status call_physical_get_properties(union value *v) {
    return gpumem_physical_get_properties(v[0].pointer, v[1].pointer);
}
static const struct parameter row_physical_get_properties[] = {{"physical", KIND_OBJECT, OBJECT_physical}, {"properties", KIND_OUT_STRUCT, LAYOUT_physical_properties}, {NULL, 0, 0}};
static gpumem_status call_physical_from_address(union value *v) {
    return gpumem_physical_from_address(v[0].pointer, (CUdeviceptr)v[1].wide, (size_t)v[2].size, (gpumem_physical **)&v[3].pointer);
}
static const struct parameter row_physical_from_address[] = {{"device", KIND_OBJECT, OBJECT_device}, {"address", KIND_UINT64, 0}, {"bytes", KIND_SIZE, 0}, {"physical", KIND_NEW_OBJECT, OBJECT_physical}, {NULL, 0, 0}};
static gpumem_status call_physical_export(union value *v) {
    return gpumem_physical_export(v[0].pointer, v[1].pointer);
}
static const struct parameter row_physical_export[] = {{"physical", KIND_OBJECT, OBJECT_physical}, {"handle", KIND_OUT_STRUCT, LAYOUT_physical_share_handle}, {NULL, 0, 0}};
static gpumem_status call_physical_import(union value *v) {
    return gpumem_physical_import(v[0].pointer, v[1].pointer, (size_t)v[2].size, (gpumem_physical **)&v[3].pointer);
}
static const struct parameter row_physical_import[] = {{"device", KIND_OBJECT, OBJECT_device}, {"handle", KIND_STRUCT, LAYOUT_physical_share_handle}, {"bytes", KIND_SIZE, 0}, {"physical", KIND_NEW_OBJECT, OBJECT_physical}, {NULL, 0, 0}};
static gpumem_status call_mapping_create(union value *v) {
    return gpumem_mapping_create(v[0].pointer, (size_t)v[1].size, v[2].pointer, (gpumem_mapping **)&v[3].pointer);
}
static const struct parameter row_mapping_create[] = {{"reservation", KIND_OBJECT, OBJECT_reservation}, {"offset", KIND_SIZE, 0}, {"physical", KIND_OBJECT, OBJECT_physical}, {"mapping", KIND_NEW_OBJECT, OBJECT_mapping}, {NULL, 0, 0}};
static gpumem_status call_mapping_get_info(union value *v) {
    return gpumem_mapping_get_info(v[0].pointer, v[1].pointer);
}
static const struct parameter row_mapping_get_info[] = {{"mapping", KIND_OBJECT, OBJECT_mapping}, {"info", KIND_OUT_STRUCT, LAYOUT_mapping_info}, {NULL, 0, 0}};
static gpumem_status call_mapping_get_access(union value *v) {
    return gpumem_mapping_get_access(v[0].pointer, (int)v[1].number, (gpumem_access *)&v[2].number);
}
static const struct parameter row_mapping_get_access[] = {{"mapping", KIND_OBJECT, OBJECT_mapping}, {"ordinal", KIND_INT, 0}, {"access", KIND_OUT_ENUM, CHOICES_access}, {NULL, 0, 0}};
static gpumem_status call_reservation_unmap(union value *v) {
    return gpumem_reservation_unmap(v[0].pointer, (size_t)v[1].size, (size_t)v[2].size);
}
static const struct parameter row_reservation_unmap[] = {{"reservation", KIND_OBJECT, OBJECT_reservation}, {"offset", KIND_SIZE, 0}, {"bytes", KIND_SIZE, 0}, {NULL, 0, 0}};
static gpumem_status call_reservation_set_access(union value *v) {
    return gpumem_reservation_set_access(v[0].pointer, (size_t)v[1].size, (size_t)v[2].size, (int)v[3].number, (gpumem_access)v[4].number);
}
static const struct parameter row_reservation_set_access[] = {{"reservation", KIND_OBJECT, OBJECT_reservation}, {"offset", KIND_SIZE, 0}, {"bytes", KIND_SIZE, 0}, {"ordinal", KIND_INT, 0}, {"access", KIND_ENUM, CHOICES_access}, {NULL, 0, 0}};
static gpumem_status call_limiting_resource_create(union value *v) {
    return gpumem_limiting_resource_create(v[0].pointer, (uint64_t)v[1].wide, (gpumem_resource **)&v[2].pointer);
}
static const struct parameter row_limiting_resource_create[] = {{"upstream", KIND_RESOURCE, 0}, {"maximum_bytes", KIND_UINT64, 0}, {"resource", KIND_NEW_RESOURCE, 0}, {NULL, 0, 0}};
static gpumem_status call_logging_resource_create(union value *v) {
    return gpumem_logging_resource_create(v[0].pointer, v[1].pointer, (gpumem_resource **)&v[2].pointer);
}
static const struct parameter row_logging_resource_create[] = {{"upstream", KIND_RESOURCE, 0}, {"options", KIND_STRUCT, LAYOUT_logging_options}, {"resource", KIND_NEW_RESOURCE, 0}, {NULL, 0, 0}};
static gpumem_status call_trace_note(union value *v) {
    return gpumem_trace_note(v[0].pointer, v[1].pointer);
}
static const struct parameter row_trace_note[] = {{"resource", KIND_RESOURCE, 0}, {"text", KIND_TEXT, 0}, {NULL, 0, 0}};
static gpumem_status call_trace_flush(union value *v) {
    return gpumem_trace_flush(v[0].pointer);
}
static const struct parameter row_trace_flush[] = {{"resource", KIND_RESOURCE, 0}, {NULL, 0, 0}};
static gpumem_status call_tracking_resource_create(union value *v) {
    return gpumem_tracking_resource_create(v[0].pointer, v[1].pointer, (gpumem_resource **)&v[2].pointer);
}
static const struct parameter row_tracking_resource_create[] = {{"upstream", KIND_RESOURCE, 0}, {"options", KIND_STRUCT, LAYOUT_tracking_options}, {"resource", KIND_NEW_RESOURCE, 0}, {NULL, 0, 0}};
static gpumem_status call_alignment_resource_create(union value *v) {
    return gpumem_alignment_resource_create(v[0].pointer, v[1].pointer, (gpumem_resource **)&v[2].pointer);
}
static const struct parameter row_alignment_resource_create[] = {{"upstream", KIND_RESOURCE, 0}, {"options", KIND_STRUCT, LAYOUT_alignment_options}, {"resource", KIND_NEW_RESOURCE, 0}, {NULL, 0, 0}};
static gpumem_status call_fallback_resource_create(union value *v) {
    return gpumem_fallback_resource_create(v[0].pointer, v[1].pointer, (gpumem_resource **)&v[2].pointer);
}
static const struct parameter row_fallback_resource_create[] = {{"first", KIND_RESOURCE, 0}, {"second", KIND_RESOURCE, 0}, {"resource", KIND_NEW_RESOURCE, 0}, {NULL, 0, 0}};

const struct cold core_calls[] = {
    {"buffer_use", call_buffer_use, row_buffer_use},
    {"buffer_order", call_buffer_order, row_buffer_order},
    {"buffer_grow", call_buffer_grow, row_buffer_grow},
    {"buffer_shrink", call_buffer_shrink, row_buffer_shrink},
    {"buffer_move_to_capacity", call_buffer_move_to_capacity, row_buffer_move_to_capacity},
    {"buffer_set_access", call_buffer_set_access, row_buffer_set_access},
    {"buffer_get_access", call_buffer_get_access, row_buffer_get_access},
    {"buffer_decommit", call_buffer_decommit, row_buffer_decommit},
    {"buffer_recommit", call_buffer_recommit, row_buffer_recommit},
    {"buffer_mark_shared", call_buffer_mark_shared, row_buffer_mark_shared},
    {"buffer_get_attributes", call_buffer_get_attributes, row_buffer_get_attributes},
    {"caching_resource_create", call_caching_resource_create, row_caching_resource_create},
    {"caching_get_info", call_caching_get_info, row_caching_get_info},
    {"caching_forget_stream", call_caching_forget_stream, row_caching_forget_stream},
    {"capture_pool_create", call_capture_pool_create, row_capture_pool_create},
    {"capture_pool_begin", call_capture_pool_begin, row_capture_pool_begin},
    {"capture_pool_end", call_capture_pool_end, row_capture_pool_end},
    {"buffer_write", call_buffer_write, row_buffer_write},
    {"buffer_read", call_buffer_read, row_buffer_read},
    {"buffer_copy", call_buffer_copy, row_buffer_copy},
    {"buffer_fill", call_buffer_fill, row_buffer_fill},
    {"buffer_fill_pattern", call_buffer_fill_pattern, row_buffer_fill_pattern},
    {"stream_synchronize", call_stream_synchronize, row_stream_synchronize},
    {"stream_query", call_stream_query, row_stream_query},
    {"stream_wait_event", call_stream_wait_event, row_stream_wait_event},
    {"event_record", call_event_record, row_event_record},
    {"event_query", call_event_query, row_event_query},
    {"event_synchronize", call_event_synchronize, row_event_synchronize},
    {"event_elapsed", call_event_elapsed, row_event_elapsed},
    {"buffer_from_pointer", call_buffer_from_pointer, row_buffer_from_pointer},
    {"buffer_register", call_buffer_register, row_buffer_register},
    {"graph_memory_get_attribute", call_graph_memory_get_attribute, row_graph_memory_get_attribute},
    {"graph_memory_set_attribute", call_graph_memory_set_attribute, row_graph_memory_set_attribute},
    {"graph_memory_trim", call_graph_memory_trim, row_graph_memory_trim},
    {"open", call_open, row_open},
    {"library_get_info", call_library_get_info, row_library_get_info},
    {"device_open", call_device_open, row_device_open},
    {"device_open_uuid", call_device_open_uuid, row_device_open_uuid},
    {"device_get_info", call_device_get_info, row_device_get_info},
    {"device_get_vulkan_info", call_device_get_vulkan_info, row_device_get_vulkan_info},
    {"device_get_memory", call_device_get_memory, row_device_get_memory},
    {"device_can_access_peer", call_device_can_access_peer, row_device_can_access_peer},
    {"device_trim", call_device_trim, row_device_trim},
    {"device_get_capability", call_device_get_capability, row_device_get_capability},
    {"managed_resource_create", call_managed_resource_create, row_managed_resource_create},
    {"buffer_advise", call_buffer_advise, row_buffer_advise},
    {"buffer_prefetch", call_buffer_prefetch, row_buffer_prefetch},
    {"buffer_discard", call_buffer_discard, row_buffer_discard},
    {"buffer_get_managed_range", call_buffer_get_managed_range, row_buffer_get_managed_range},
    {"mapped_resource_create", call_mapped_resource_create, row_mapped_resource_create},
    {"mapped_get_info", call_mapped_get_info, row_mapped_get_info},
    {"mapped_write", call_mapped_write, row_mapped_write},
    {"mapped_read", call_mapped_read, row_mapped_read},
    {"mapped_flush", call_mapped_flush, row_mapped_flush},
    {"mapped_invalidate", call_mapped_invalidate, row_mapped_invalidate},
    {"mapped_publish", call_mapped_publish, row_mapped_publish},
    {"mapped_calibrate", call_mapped_calibrate, row_mapped_calibrate},
    {"buffer_host_view", call_buffer_host_view, row_buffer_host_view},
    {"buffer_get_mapped_info", call_buffer_get_mapped_info, row_buffer_get_mapped_info},
    {"pinned_resource_create", call_pinned_resource_create, row_pinned_resource_create},
    {"pinned_warm_up", call_pinned_warm_up, row_pinned_warm_up},
    {"pinned_get_info", call_pinned_get_info, row_pinned_get_info},
    {"device_pool_resource_create", call_device_pool_resource_create, row_device_pool_resource_create},
    {"pool_get_info", call_pool_get_info, row_pool_get_info},
    {"pool_get_attribute", call_pool_get_attribute, row_pool_get_attribute},
    {"pool_set_attribute", call_pool_set_attribute, row_pool_set_attribute},
    {"pool_send", call_pool_send, row_pool_send},
    {"pool_receive", call_pool_receive, row_pool_receive},
    {"pool_get_share_handle", call_pool_get_share_handle, row_pool_get_share_handle},
    {"pool_from_share_handle", call_pool_from_share_handle, row_pool_from_share_handle},
    {"pool_export_buffer", call_pool_export_buffer, row_pool_export_buffer},
    {"pool_import_buffer", call_pool_import_buffer, row_pool_import_buffer},
    {"resource_get_properties", call_resource_get_properties, row_resource_get_properties},
    {"resource_trim", call_resource_trim, row_resource_trim},
    {"resource_set_access", call_resource_set_access, row_resource_set_access},
    {"resource_get_access", call_resource_get_access, row_resource_get_access},
    {"export_create", call_export_create, row_export_create},
    {"export_create_event", call_export_create_event, row_export_create_event},
    {"export_update", call_export_update, row_export_update},
    {"export_detach", call_export_detach, row_export_detach},
    {"export_get_info", call_export_get_info, row_export_get_info},
    {"export_send", call_export_send, row_export_send},
    {"export_answer", call_export_answer, row_export_answer},
    {"import_receive", call_import_receive, row_import_receive},
    {"import_create", call_import_create, row_import_create},
    {"import_update", call_import_update, row_import_update},
    {"import_extend", call_import_extend, row_import_extend},
    {"import_receive_event", call_import_receive_event, row_import_receive_event},
    {"import_create_event", call_import_create_event, row_import_create_event},
    {"snapshot", call_snapshot, row_snapshot},
    {"resource_get_stats", call_resource_get_stats, row_resource_get_stats},
    {"device_get_stats", call_device_get_stats, row_device_get_stats},
    {"library_get_stats", call_library_get_stats, row_library_get_stats},
    {"buffer_view", call_buffer_view, row_buffer_view},
    {"virtual_resource_create", call_virtual_resource_create, row_virtual_resource_create},
    {"reservation_create", call_reservation_create, row_reservation_create},
    {"reservation_get_info", call_reservation_get_info, row_reservation_get_info},
    {"physical_granularity", call_physical_granularity, row_physical_granularity},
    {"physical_create", call_physical_create, row_physical_create},
    {"physical_get_properties", call_physical_get_properties, row_physical_get_properties},
    {"physical_from_address", call_physical_from_address, row_physical_from_address},
    {"physical_export", call_physical_export, row_physical_export},
    {"physical_import", call_physical_import, row_physical_import},
    {"mapping_create", call_mapping_create, row_mapping_create},
    {"mapping_get_info", call_mapping_get_info, row_mapping_get_info},
    {"mapping_get_access", call_mapping_get_access, row_mapping_get_access},
    {"reservation_unmap", call_reservation_unmap, row_reservation_unmap},
    {"reservation_set_access", call_reservation_set_access, row_reservation_set_access},
    {"limiting_resource_create", call_limiting_resource_create, row_limiting_resource_create},
    {"logging_resource_create", call_logging_resource_create, row_logging_resource_create},
    {"trace_note", call_trace_note, row_trace_note},
    {"trace_flush", call_trace_flush, row_trace_flush},
    {"tracking_resource_create", call_tracking_resource_create, row_tracking_resource_create},
    {"alignment_resource_create", call_alignment_resource_create, row_alignment_resource_create},
    {"fallback_resource_create", call_fallback_resource_create, row_fallback_resource_create},
    {NULL, NULL, NULL},
};
