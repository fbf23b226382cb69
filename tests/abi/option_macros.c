/* A user's program in the common part of C and C++20: every options macro, as an argument. What
 * arrives is looked at by functions of this file, and by the library where softgpu runs it. */
#include <gpumem/gpumem.h>
#include <stdio.h>

static int wrong;

static void expect(int good, const char *what) {
    if (!good) {
        printf("not as written: %s\n", what);
        wrong++;
    }
}

#define EXPECT(condition) expect((condition), #condition)

/* The size is the struct's, the named member as written, another one zero. */
#define SAYS(type, member, value, other, options)                                                  \
    do {                                                                                           \
        EXPECT((options)->size == sizeof(type));                                                   \
        EXPECT((options)->member == (value));                                                      \
        EXPECT(!(options)->other);                                                                 \
    } while (0)

/* Each macro, with one member named. */
static void macros_say_what_was_written(void) {
    const char *name = "softgpu";
    CUstream stream = GPUMEM_STREAM_PER_THREAD;
    SAYS(gpumem_buffer_options, stream, stream, capacity, GPUMEM_BUFFER_OPTIONS(.stream = stream));
    SAYS(gpumem_device_pool_options, maximum_bytes, 5, ipc,
         GPUMEM_DEVICE_POOL_OPTIONS(.maximum_bytes = 5));
    SAYS(gpumem_pinned_options, keep_nothing, 1, ipc, GPUMEM_PINNED_OPTIONS(.keep_nothing = 1));
    SAYS(gpumem_managed_options, read_mostly, 1, preferred,
         GPUMEM_MANAGED_OPTIONS(.read_mostly = 1));
    SAYS(gpumem_caching_options, maximum_bytes, 7, thread_bytes,
         GPUMEM_CACHING_OPTIONS(.maximum_bytes = 7));
    SAYS(gpumem_snapshot_options, without_pieces, 1, without_buffers,
         GPUMEM_SNAPSHOT_OPTIONS(.without_pieces = 1));
    SAYS(gpumem_virtual_options, capacity, 9, exact_growth, GPUMEM_VIRTUAL_OPTIONS(.capacity = 9));
    SAYS(gpumem_logging_options, name, name, user, GPUMEM_LOGGING_OPTIONS(.name = name));
    SAYS(gpumem_caching_options, thread_bytes, 7, maximum_bytes,
         GPUMEM_CACHING_OPTIONS(.thread_bytes = 7));
    SAYS(gpumem_stream_options, priority, -1, blocking, GPUMEM_STREAM_OPTIONS(.priority = -1));
    SAYS(gpumem_event_options, timing, 1, blocking_wait, GPUMEM_EVENT_OPTIONS(.timing = 1));
    SAYS(gpumem_load_options, threads, 3, progress, GPUMEM_LOAD_OPTIONS(.threads = 3));
    SAYS(gpumem_share_options, timeout_ms, 5, maximum_bytes, GPUMEM_SHARE_OPTIONS(.timeout_ms = 5));
    SAYS(gpumem_connect_options, timeout_ms, 5, backlog, GPUMEM_CONNECT_OPTIONS(.timeout_ms = 5));
    SAYS(gpumem_foreign_options, read_only, 1, deleter, GPUMEM_FOREIGN_OPTIONS(.read_only = 1));
    SAYS(gpumem_register_options, read_only, 1, stream, GPUMEM_REGISTER_OPTIONS(.read_only = 1));
    SAYS(gpumem_dlpack_options, bits, 16, shape, GPUMEM_DLPACK_OPTIONS(.bits = 16));
    SAYS(gpumem_reservation_options, alignment, 4096, address_hint,
         GPUMEM_RESERVATION_OPTIONS(.alignment = 4096));
    SAYS(gpumem_physical_options, compression, 1, numa_node,
         GPUMEM_PHYSICAL_OPTIONS(.compression = 1));
    SAYS(gpumem_trace_options, path, name, buffer_bytes, GPUMEM_TRACE_OPTIONS(.path = name));
    SAYS(gpumem_alignment_options, alignment, 512, threshold,
         GPUMEM_ALIGNMENT_OPTIONS(.alignment = 512));
    SAYS(gpumem_failure_callback_options, maximum_retries, 2, user,
         GPUMEM_FAILURE_CALLBACK_OPTIONS(.maximum_retries = 2));
    SAYS(gpumem_mapped_calibrate_options, maximum_bytes, 9, keep_nothing,
         GPUMEM_MAPPED_CALIBRATE_OPTIONS(.maximum_bytes = 9));
    SAYS(gpumem_mapped_options, capacity, 9, method_strict, GPUMEM_MAPPED_OPTIONS(.capacity = 9));
    SAYS(gpumem_mapped_options, slab_bytes, 9, maximum_bytes,
         GPUMEM_MAPPED_OPTIONS(.slab_bytes = 9));
    SAYS(gpumem_mapped_options, maximum_bytes, 9, slab_bytes,
         GPUMEM_MAPPED_OPTIONS(.maximum_bytes = 9));
    SAYS(gpumem_host_view_options, require_coherent, 1, force_non_coherent,
         GPUMEM_HOST_VIEW_OPTIONS(.require_coherent = 1));
    SAYS(gpumem_discard_options, ordinal_or_node, 1, prefetch,
         GPUMEM_DISCARD_OPTIONS(.ordinal_or_node = 1));
    SAYS(gpumem_ring_options, chunk_count, 4, mirrored, GPUMEM_RING_OPTIONS(.chunk_count = 4));
    EXPECT(GPUMEM_TRACKING_OPTIONS(.frames = 8)->frames == 8);
    EXPECT(GPUMEM_OPEN_OPTIONS(.driver = name)->driver == name);
    /* No member at all is the default. */
    EXPECT(GPUMEM_BUFFER_OPTIONS()->size == sizeof(gpumem_buffer_options));
    EXPECT(GPUMEM_BUFFER_OPTIONS()->alignment == 0);
    SAYS(gpumem_buffer_options, alignment, 64, stream,
         GPUMEM_OPTIONS(gpumem_buffer_options, .alignment = 64));
}

static int check(gpumem_status status) {
    if (status != GPUMEM_OK)
        printf("%s: %s\n", gpumem_status_name(status), gpumem_last_error()->message);
    return status == GPUMEM_OK;
}

/* Several in one expression, and one whose members come from arguments. */
static void library_obeys(size_t capacity) {
    gpumem_library *library;
    gpumem_device *device;
    gpumem_resource *memory;
    gpumem_buffer *buffer;
    if (!check(gpumem_open(GPUMEM_OPEN_OPTIONS(.driver = "softgpu"), &library)) ||
        !check(gpumem_device_open(library, 0, &device)) ||
        !check(gpumem_virtual_resource_create(
            device, GPUMEM_VIRTUAL_OPTIONS(.growth_percent = 10, .exact_growth = 1), &memory)) ||
        !check(gpumem_buffer_allocate(memory, 1, GPUMEM_BUFFER_OPTIONS(.capacity = capacity),
                                      &buffer))) {
        wrong++;
        return;
    }
    EXPECT(gpumem_buffer_capacity(buffer) >= capacity);
    EXPECT(check(gpumem_buffer_grow(buffer, capacity, GPUMEM_STREAM_LEGACY)));
    EXPECT(gpumem_buffer_size(buffer) == capacity);
    EXPECT(check(gpumem_buffer_free(buffer, GPUMEM_STREAM_LEGACY)));
    EXPECT(check(gpumem_resource_destroy(memory)));
    EXPECT(check(gpumem_device_close(device)));
    EXPECT(check(gpumem_close(library)));
}

int main(void) {
    macros_say_what_was_written();
    library_obeys((size_t)64 << 20);
    return wrong != 0;
}
