/* Memory that is shared with another process and mapped for the CPU: what one stores, the other's
 * device sees, also in what has grown since. */
#include "other_process.h"
#include "vulkan_icd.h"

ALL_TESTS(open_device, close_device);

#define CHUNK    (2 * MIB)
#define CAPACITY (16 * MIB)

static unsigned char mark_of(size_t chunk, bool answer) {
    return (unsigned char)(chunk * 7 + (answer ? 100 : 3));
}

/* ---- The importer ---------------------------------------------------------------------------- */

static bool has_marks(gpumem_buffer *buffer) {
    for (size_t at = 0; at < gpumem_buffer_size(buffer) / CHUNK; at++) {
        unsigned char byte = 0;
        if (read_now(buffer, at * CHUNK, &byte, 1, NULL) != GPUMEM_OK || byte != mark_of(at, false))
            return false;
    }
    return true;
}

static bool answers(gpumem_buffer *buffer) {
    for (size_t at = 0; at < gpumem_buffer_size(buffer) / CHUNK; at++)
        if (fill_now(buffer, at * CHUNK + 1, 1, mark_of(at, true), NULL) != GPUMEM_OK)
            return false;
    return true;
}

static int other_process(int socket) {
    gpumem_buffer *buffer;
    if (open_device(NULL) != 0)
        return 1;
    if (gpumem_import_receive(device, socket, GPUMEM_SHARE_OPTIONS(.capacity = CAPACITY),
                              &buffer) != GPUMEM_OK)
        return 2;
    gpumem_buffer *view = NULL; /* whose memory it is can have one */
    if (gpumem_buffer_host_view(buffer, NULL, &view) != GPUMEM_ERROR_NOT_SUPPORTED)
        return 8;
    for (size_t chunks = 2; chunks <= 4; chunks++) {
        if (!other_hear(socket) || !has_marks(buffer))
            return 3;
        if (!answers(buffer) || !other_say(socket))
            return 4;
        if (chunks < 4 && gpumem_import_update(buffer, socket, NULL) != GPUMEM_OK)
            return 5;
        if (chunks < 4 && gpumem_buffer_size(buffer) != chunks * CHUNK)
            return 6;
    }
    return gpumem_buffer_free(buffer, NULL) == GPUMEM_OK && close_device(NULL) == 0 ? 0 : 7;
}

/* ---- The owner ------------------------------------------------------------------------------- */

struct owner {
    gpumem_buffer *buffer;
    gpumem_buffer *view; /* NULL: the resource has the mapping */
    unsigned char *host;
};

static void flush(const struct owner *o, size_t at) {
    if (o->view)
        OK(gpumem_mapped_flush(o->view, at, 1));
    else
        OK(gpumem_mapped_flush(o->buffer, at, 1));
}

static void invalidate(const struct owner *o, size_t at) {
    if (o->view)
        OK(gpumem_mapped_invalidate(o->view, at, 1));
    else
        OK(gpumem_mapped_invalidate(o->buffer, at, 1));
}

/* The other process sees what is stored, and this one what it answers. */
static void exchange(const struct owner *o, int socket) {
    size_t chunks = gpumem_buffer_size(o->buffer) / CHUNK;
    for (size_t at = 0; at < chunks; at++) {
        o->host[at * CHUNK] = mark_of(at, false);
        flush(o, at * CHUNK);
    }
    assert_true(other_say(socket));
    assert_true(other_hear(socket));
    for (size_t at = 0; at < chunks; at++) {
        invalidate(o, at * CHUNK + 1);
        assert_int_equal(o->host[at * CHUNK + 1], mark_of(at, true));
    }
}

static void share(const struct owner *o) {
    int socket;
    gpumem_export *exported = NEW_EXPORT(o->buffer);
    pid_t child = other_start("import", SOCK_STREAM, &socket);
    OK(gpumem_export_send(exported, socket, NULL));
    exchange(o, socket);
    for (size_t chunks = 2; chunks <= 3; chunks++) {
        OK(gpumem_buffer_grow(o->buffer, chunks * CHUNK, NULL));
        OK(gpumem_export_update(exported));
        OK(gpumem_export_answer(exported, socket, NULL));
        exchange(o, socket);
    }
    assert_int_equal(other_end(child, socket), 0);
    OK(gpumem_export_destroy(exported));
}

static void a_mapped_resources(gpumem_mapped_method method) {
    struct owner o = {.view = NULL};
    gpumem_resource *mapped = NEW_MAPPED(.method = method, .method_strict = 1, .capacity = CAPACITY,
                                         .maximum_chunk_bytes = CHUNK);
    o.buffer = NEW_BUFFER(mapped, CHUNK);
    o.host = gpumem_buffer_host_pointer(o.buffer);
    share(&o);
    DESTROY(o.buffer, mapped);
}

static void a_views(gpumem_mapped_method method) {
    struct owner o = {.view = NULL};
    gpumem_resource *plain = NEW_VIRTUAL(.capacity = CAPACITY, .maximum_chunk_bytes = CHUNK);
    o.buffer = NEW_BUFFER(plain, CHUNK);
    OK(gpumem_buffer_host_view(
        o.buffer, GPUMEM_HOST_VIEW_OPTIONS(.method = method, .method_strict = 1), &o.view));
    o.host = gpumem_buffer_host_pointer(o.view);
    share(&o);
    DESTROY(o.view, o.buffer, plain);
}

TEST(mapped_memory_is_shared_with_another_process_by_each_method) {
    static const gpumem_mapped_method methods[] = {GPUMEM_MAPPED_VULKAN_IMPORT,
                                                   GPUMEM_MAPPED_DMA_BUF, GPUMEM_MAPPED_DESCRIPTOR};
    for (size_t i = 0; i < COUNT(methods); i++) {
        a_mapped_resources(methods[i]);
        a_views(methods[i]);
    }
}

TEST(non_coherent_mapped_memory_is_shared_with_another_process) {
    setenv("VULKAN_ICD_COHERENT", "no", 1);
    a_mapped_resources(GPUMEM_MAPPED_VULKAN_IMPORT);
    a_views(GPUMEM_MAPPED_VULKAN_IMPORT);
}

CHILD(other) {
    return other_process(atoi(argv[2]));
}

BEFORE_TESTS {
    setenv("SOFTGPU_PROFILE", "dmabuf", 1);
    setenv("GPUMEM_VULKAN", GPUMEM_BINARY_DIR VULKAN_ICD_FILE, 1);
    setenv("VULKAN_ICD_VIOLATION", "abort", 1);
    return 0;
}
