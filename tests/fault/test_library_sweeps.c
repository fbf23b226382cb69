/*
 * Whole or nothing: sweeps over the memory library. Whichever driver call fails, in whichever way,
 * an operation that reports an error has left everything as it was, and what could not be given
 * back is counted as quarantined.
 */
#include "library_sweeps.h"
#include "temporary.h"

ALL_TESTS(begin_sweeps, end_sweeps);

/* ---- Opening --------------------------------------------------------------------------------- */

struct opened {
    gpumem_library *library;
    gpumem_device *device;
};

static int open_all(void *user) {
    struct opened *o = user;
    *o = (struct opened){.library = NULL};
    int result = (int)gpumem_open(GPUMEM_OPEN_OPTIONS(.driver = "softgpu"), &o->library);
    return result ? result : (int)gpumem_device_open(o->library, 0, &o->device);
}

static void close_all(void *user) {
    struct opened *o = user;
    if (o->device)
        OK(gpumem_device_close(o->device));
    if (o->library)
        OK(gpumem_close(o->library));
}

/* In the wrong order, which is allowed. */
static void close_all_later(void *user) {
    struct opened *o = user;
    OK(gpumem_close_later(o->library));
    OK(gpumem_device_close_later(o->device));
}

TEST(opening_a_library_is_all_or_nothing) {
    struct opened opened = {.library = NULL};
    sweep_run(&(struct sweep){.name = "open",
                              .act = open_all,
                              .recover = close_all,
                              .undo = close_all,
                              .may_succeed = true, /* a capability that cannot be asked is a 'no' */
                              .user = &opened});
}

TEST(what_was_opened_can_be_closed_for_later) {
    struct opened opened = {.library = NULL};
    sweep_run(&(struct sweep){.name = "open, to be closed later",
                              .act = open_all,
                              .recover = close_all_later,
                              .undo = close_all_later,
                              .may_succeed = true,
                              .user = &opened});
}

static int open_and_close_device(void *user) {
    struct opened *o = user;
    int result = (int)gpumem_device_open(o->library, 0, &o->device);
    if (!result)
        OK(gpumem_device_close_later(o->device));
    return result;
}

static uint64_t lost_by(void *user) {
    const struct opened *o = user;
    gpumem_stats stats = {.size = sizeof stats};
    OK(gpumem_library_get_stats(o->library, &stats));
    return stats.quarantined;
}

TEST(a_device_that_is_closed_for_later_is_counted_if_it_stays) {
    struct opened opened = {.library = NULL};
    OK(gpumem_open(GPUMEM_OPEN_OPTIONS(.driver = "softgpu"), &opened.library));
    sweep_run(&(struct sweep){.name = "open a device and close it later",
                              .act = open_and_close_device,
                              .recover = settle,
                              .undo = settle,
                              .may_succeed = true,
                              .lost = lost_by,
                              .user = &opened});
    OK(gpumem_close(opened.library));
}

/* ---- Buffers --------------------------------------------------------------------------------- */

struct subject {
    gpumem_resource *resource;
    gpumem_buffer *buffer;
    gpumem_export *exported;
    gpumem_buffer *imported;
    const char *path;
    size_t capacity;
};

static int allocate(void *user) {
    struct subject *s = user;
    s->buffer = NULL;
    return (int)gpumem_buffer_allocate(s->resource, 5 * MIB,
                                       GPUMEM_BUFFER_OPTIONS(.capacity = s->capacity), &s->buffer);
}

static void free_buffer(void *user) {
    struct subject *s = user;
    OK(gpumem_buffer_free(s->buffer, NULL));
    settle(user);
}

static int grow(void *user) {
    struct subject *s = user;
    return (int)gpumem_buffer_grow(s->buffer, 21 * MIB, NULL);
}

static void shrink_back(void *user) {
    struct subject *s = user;
    OK(gpumem_buffer_shrink(s->buffer, 5 * MIB, NULL));
    settle(user);
}

static int allocate_and_free(void *user) {
    struct subject *s = user;
    int result = allocate(user);
    if (!result)
        (void)gpumem_buffer_free(s->buffer, NULL);
    return result;
}

static int export_it(void *user) {
    struct subject *s = user;
    s->exported = NULL;
    return (int)gpumem_export_create(s->buffer, &s->exported);
}

static void end_export(void *user) {
    struct subject *s = user;
    OK(gpumem_export_destroy(s->exported));
}

static int import_it(void *user) {
    struct subject *s = user;
    const void *description;
    size_t bytes, count = export_info(s->exported).descriptor_count;
    int descriptors[16];
    assert_true(count <= COUNT(descriptors));
    for (size_t i = 0; i < count; i++)
        OK(export_descriptor(s->exported, i, &descriptors[i]));
    OK(export_description(s->exported, &description, &bytes));
    s->imported = NULL;
    return (int)gpumem_import_create(device, description, bytes, descriptors, count, NULL,
                                     &s->imported);
}

static void end_import(void *user) {
    struct subject *s = user;
    OK(gpumem_buffer_free(s->imported, NULL));
    settle(user);
}

static int load(void *user) {
    struct subject *s = user;
    s->buffer = NULL;
    return (int)gpumem_load_file(s->resource, s->path,
                                 GPUMEM_LOAD_OPTIONS(.chunk_bytes = 256 * KIB, .threads = 2),
                                 &s->buffer, NULL);
}

/* ---- The sweeps ------------------------------------------------------------------------------ */

static gpumem_resource *virtual_resource(void) {
    return NEW_VIRTUAL(.maximum_chunk_bytes = 4 * MIB);
}

static gpumem_resource *pinned_resource(void) {
    return NEW_PINNED(.keep_nothing = 1, .slab_bytes = 2 * MIB);
}

static gpumem_resource *managed_resource(void) {
    return NEW_MANAGED(.preferred = GPUMEM_MANAGED_ON_DEVICE, .read_mostly = 1);
}

static void allocating(const char *name, gpumem_resource *resource, size_t capacity) {
    struct subject subject = {.resource = resource, .capacity = capacity};
    sweep_act(name, allocate, free_buffer, &subject);
    OK(gpumem_resource_destroy(resource));
}

static void freeing(const char *name, gpumem_resource *resource, size_t capacity) {
    struct subject subject = {.resource = resource, .capacity = capacity};
    sweep_act(name, allocate_and_free, settle, &subject);
    OK(gpumem_resource_destroy(resource));
}

TEST_IS(allocating_virtual_memory_is_all_or_nothing,
        allocating("allocate virtual", virtual_resource(), 64 * MIB));
TEST_IS(allocating_from_a_pool_is_all_or_nothing,
        allocating("allocate from a pool", new_own_pool(), 0));
TEST_IS(allocating_pinned_memory_is_all_or_nothing,
        allocating("allocate pinned", pinned_resource(), 0));
TEST_IS(allocating_managed_memory_is_all_or_nothing,
        allocating("allocate managed", managed_resource(), 0));
TEST_IS(freeing_managed_memory_is_all_or_nothing, freeing("free managed", managed_resource(), 0));
TEST_IS(freeing_virtual_memory_is_all_or_nothing,
        freeing("free virtual", virtual_resource(), 64 * MIB));
TEST_IS(freeing_into_a_pool_is_all_or_nothing, freeing("free to a pool", new_own_pool(), 0));
TEST_IS(freeing_pinned_memory_is_all_or_nothing, freeing("free pinned", pinned_resource(), 0));

TEST(growing_a_buffer_is_all_or_nothing) {
    struct subject subject = {.resource = virtual_resource(), .capacity = 64 * MIB};
    assert_int_equal(allocate(&subject), 0);
    OK(gpumem_buffer_fill(subject.buffer, 0, 5 * MIB, 0x3c, NULL));
    synchronize(NULL);
    CUdeviceptr address = gpumem_buffer_pointer(subject.buffer);
    sweep_act("grow", grow, shrink_back, &subject);
    /* Nothing that happened has moved or touched it. */
    unsigned char last = 0;
    assert_int_equal(gpumem_buffer_pointer(subject.buffer), address);
    assert_int_equal(gpumem_buffer_size(subject.buffer), 5 * MIB);
    OK(gpumem_buffer_read(subject.buffer, 5 * MIB - 1, &last, 1, NULL));
    synchronize(NULL);
    assert_int_equal(last, 0x3c);
    free_buffer(&subject);
    OK(gpumem_resource_destroy(subject.resource));
}

TEST(exporting_and_importing_are_all_or_nothing) {
    struct subject subject = {.resource = virtual_resource(), .capacity = 64 * MIB};
    assert_int_equal(allocate(&subject), 0);
    sweep_run(
        &(struct sweep){.name = "export", .act = export_it, .undo = end_export, .user = &subject});
    assert_int_equal(export_it(&subject), 0);
    sweep_act("import", import_it, end_import, &subject);
    end_export(&subject);
    free_buffer(&subject);
    OK(gpumem_resource_destroy(subject.resource));
}

TEST(loading_a_file_is_all_or_nothing) {
    char path[TEMPORARY_ROOM];
    static unsigned char block[64 * KIB];
    int fd = temporary_file(path, "gpumem-sweep");
    assert_true(fd >= 0);
    for (int i = 0; i < 24; i++)
        assert_int_equal(write(fd, block, sizeof block), sizeof block);
    close(fd);
    struct subject subject = {.resource = virtual_resource(), .path = path};
    sweep_act("load", load, free_buffer, &subject);
    unlink(path);
    OK(gpumem_resource_destroy(subject.resource));
}
