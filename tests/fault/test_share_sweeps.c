/*
 * Whole or nothing where memory and events are shared: whichever driver call fails, an export, an
 * import and their growth leave all as it was.
 */
#include "library_sweeps.h"
#include "other_process.h"

ALL_TESTS(begin_sweeps, end_sweeps);

#define CHUNK (2 * MIB)

struct subject {
    gpumem_resource *resource;
    gpumem_buffer *buffer, *imported;
    gpumem_export *exported;
    CUevent event;
    size_t capacity;
    unsigned char description[256];
    size_t description_bytes;
};

static int export_it(void *user) {
    struct subject *s = user;
    s->exported = NULL;
    return (int)gpumem_export_create(s->buffer, &s->exported);
}

static void end_export(void *user) {
    struct subject *s = user;
    OK(gpumem_export_destroy(s->exported));
    settle(user);
}

static gpumem_status import(struct subject *s, size_t first, const gpumem_export *from) {
    const void *description;
    size_t bytes, count = export_info(from).descriptor_count;
    int descriptors[16];
    assert_true(count <= COUNT(descriptors));
    for (size_t i = first; i < count; i++)
        OK(export_descriptor(from, i, &descriptors[i - first]));
    OK(export_description(from, &description, &bytes));
    if (first)
        return gpumem_import_extend(s->imported, description, bytes, descriptors, count - first,
                                    NULL);
    s->imported = NULL;
    return gpumem_import_create(device, description, bytes, descriptors, count,
                                GPUMEM_SHARE_OPTIONS(.capacity = s->capacity), &s->imported);
}

static int import_it(void *user) {
    struct subject *s = user;
    return (int)import(s, 0, s->exported);
}

static void end_import(void *user) {
    struct subject *s = user;
    OK(gpumem_buffer_free(s->imported, NULL));
    settle(user);
}

static void sweep_import(const char *name, struct subject *subject) {
    sweep_act(name, import_it, end_import, subject);
}

static gpumem_resource *virtual_resource(void) {
    return NEW_VIRTUAL(.maximum_chunk_bytes = CHUNK, .exact_growth = 1);
}

/* ---- Growth ---------------------------------------------------------------------------------- */

static int update_export(void *user) {
    struct subject *s = user;
    return (int)gpumem_export_update(s->exported);
}

/* The next one begins with an export of what was there before. Handles that are taken again come in
 * the opposite order: twice, and all are where they were. */
static void forget_growth(void *user) {
    struct subject *s = user;
    OK(gpumem_export_destroy(s->exported));
    OK(gpumem_buffer_shrink(s->buffer, CHUNK, NULL));
    OK(gpumem_buffer_grow(s->buffer, 4 * CHUNK, NULL));
    OK(gpumem_buffer_shrink(s->buffer, CHUNK, NULL));
    assert_int_equal(export_it(s), 0);
    OK(gpumem_buffer_grow(s->buffer, 4 * CHUNK, NULL));
}

TEST(updating_a_grown_export_is_all_or_nothing) {
    struct subject s = {.resource = virtual_resource()};
    s.buffer = NEW_BUFFER_WITH(s.resource, CHUNK, .capacity = 64 * MIB);
    assert_int_equal(export_it(&s), 0);
    OK(gpumem_buffer_grow(s.buffer, 4 * CHUNK, NULL));
    forget_growth(&s); /* with the events that a shrink keeps */
    sweep_run(&(struct sweep){.name = "update an export",
                              .act = update_export,
                              .undo = forget_growth,
                              .explain = last_message,
                              .user = &s});
    assert_int_equal(export_info(s.exported).bytes, CHUNK);
    DESTROY(s.exported, s.buffer, s.resource);
}

struct growing {
    struct subject s;
    gpumem_export *before;
};

/* What cannot be extended is as it was, and is given back by its owner. */
static int import_and_extend(void *user) {
    struct growing *g = user;
    struct subject *s = &g->s;
    int result = (int)import(s, 0, g->before);
    if (result)
        return result;
    CUdeviceptr address = gpumem_buffer_pointer(s->imported);
    result = (int)import(s, 1, s->exported);
    assert_int_equal(gpumem_buffer_pointer(s->imported), address);
    assert_int_equal(gpumem_buffer_size(s->imported), result ? CHUNK : 4 * CHUNK);
    assert_int_equal(gpumem_buffer_committed(s->imported), result ? CHUNK : 4 * CHUNK);
    assert_int_equal(chunks_of(s->imported), result ? 1 : 4);
    if (result)
        OK(gpumem_buffer_free(s->imported, NULL));
    return result;
}

TEST(updating_a_grown_import_is_all_or_nothing) {
    struct growing g = {.s = {.resource = virtual_resource(), .capacity = 64 * MIB}};
    struct subject *s = &g.s;
    s->buffer = NEW_BUFFER_WITH(s->resource, CHUNK, .capacity = 64 * MIB);
    g.before = NEW_EXPORT(s->buffer);
    OK(gpumem_buffer_grow(s->buffer, 4 * CHUNK, NULL));
    OK(fill_now(s->buffer, 0, 4 * CHUNK, 0x4b, NULL));
    s->exported = NEW_EXPORT(s->buffer);
    sweep_act("import and extend", import_and_extend, end_import, &g);
    assert_int_equal(import_and_extend(&g), 0);
    assert_int_equal(byte_of(s->imported, 4 * CHUNK - 1), 0x4b);
    DESTROY(s->imported, s->exported, g.before, s->buffer, s->resource);
}

TEST(importing_with_a_capacity_is_all_or_nothing) {
    struct subject s = {.resource = virtual_resource(), .capacity = 64 * MIB};
    s.buffer = NEW_BUFFER(s.resource, 3 * CHUNK);
    assert_int_equal(export_it(&s), 0);
    sweep_import("import with a capacity", &s);
    end_export(&s);
    DESTROY(s.buffer, s.resource);
}

/* ---- Pools ----------------------------------------------------------------------------------- */

static gpumem_resource *pool_of(int host) {
    return host ? NEW_PINNED(.method = GPUMEM_PINNED_POOL, .ipc = 1) : NEW_POOL(.ipc = 1);
}

static void share_pool(int host) {
    struct subject s = {.resource = pool_of(host)};
    s.buffer = NEW_BUFFER(s.resource, 5 * MIB);
    synchronize(NULL);
    assert_int_equal(export_it(&s), 0); /* the pool's descriptor is kept from here on */
    end_export(&s);
    sweep_act(host ? "export host pool memory" : "export pool memory", export_it, end_export, &s);
    assert_int_equal(export_it(&s), 0);
    sweep_import(host ? "import host pool memory" : "import pool memory", &s);
    end_export(&s);
    DESTROY(s.buffer, s.resource);
}

TEST_IS(sharing_device_pool_memory_is_all_or_nothing, share_pool(0));
TEST_IS(sharing_host_pool_memory_is_all_or_nothing, share_pool(1));

/* ---- Events ---------------------------------------------------------------------------------- */

static int make_event(void *user) {
    struct subject *s = user;
    return (int)gpumem_event_create(device, GPUMEM_EVENT_OPTIONS(.interprocess = 1), &s->event);
}

static void end_event(void *user) {
    struct subject *s = user;
    OK(gpumem_event_destroy(device, s->event));
    settle(user);
}

static int export_event(void *user) {
    struct subject *s = user;
    return (int)gpumem_export_create_event(device, s->event, &s->exported);
}

static int import_event(void *user) {
    struct subject *s = user;
    return (int)gpumem_import_create_event(device, s->description, s->description_bytes, &s->event);
}

static void sweep_event(const char *name, struct subject *s, int (*act)(void *),
                        void (*undo)(void *)) {
    sweep_act(name, act, undo, s);
}

TEST(sharing_an_event_is_all_or_nothing) {
    struct subject s = {.event = NULL};
    sweep_event("make an interprocess event", &s, make_event, end_event);
    assert_int_equal(make_event(&s), 0);
    sweep_event("export an event", &s, export_event, end_export);
    end_event(&s);
    /* Only another process's can be opened. */
    int socket;
    pid_t child = other_start("event", SOCK_SEQPACKET, &socket);
    ssize_t bytes = recv(socket, s.description, sizeof s.description, 0);
    assert_true(bytes > 0);
    s.description_bytes = (size_t)bytes;
    sweep_event("import an event", &s, import_event, end_event);
    shutdown(socket, SHUT_WR);
    assert_int_equal(other_end(child, socket), 0);
}

static int other_process(int socket) {
    CUevent event;
    gpumem_export *exported;
    const void *description;
    size_t bytes;
    if (open_device(NULL) != 0 ||
        gpumem_event_create(device, GPUMEM_EVENT_OPTIONS(.interprocess = 1), &event) != GPUMEM_OK ||
        gpumem_export_create_event(device, event, &exported) != GPUMEM_OK ||
        export_description(exported, &description, &bytes) != GPUMEM_OK ||
        send(socket, description, bytes, MSG_NOSIGNAL) != (ssize_t)bytes)
        return 1;
    int heard = other_hear(socket); /* until the parent is done: 0 */
    DESTROY(exported, event);
    return heard || close_device(NULL) != 0;
}

CHILD(other) {
    return other_process(atoi(argv[2]));
}
