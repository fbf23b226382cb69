/* Memory that is given back in the middle of a virtual buffer, and put there again. */
#include "library_test.h"

#include <gpumem/share.h>
#include <gpumem/virtual.h>

EACH_TEST(open_device, close_device);

/* In chunks of 4 MiB. */
static gpumem_resource *make_chunked(void) {
    return NEW_VIRTUAL(.maximum_chunk_bytes = 4 * MIB, .exact_growth = 1);
}

static gpumem_buffer *allocate(gpumem_resource *resource, size_t bytes, size_t capacity) {
    return NEW_BUFFER_WITH(resource, bytes, .capacity = capacity);
}

static void end(gpumem_buffer *buffer, gpumem_resource *resource) {
    DESTROY(buffer, resource);
    gpumem_stats stats = device_stats();
    assert_int_equal(stats.committed_bytes + stats.reserved_bytes + stats.chunks + stats.mappings +
                         stats.quarantined,
                     0);
}

static unsigned char byte_at(gpumem_buffer *buffer, size_t offset) {
    unsigned char byte = 0;
    OK(gpumem_buffer_read(buffer, offset, &byte, 1, NULL));
    synchronize(NULL);
    return byte;
}

static uint64_t used(void) {
    uint64_t bytes, limit;
    assert_int_equal(soft->memory_info(0, &bytes, &limit), 0);
    return bytes;
}

TEST(whole_chunks_are_decommitted_and_recommitted) {
    gpumem_resource *resource = make_chunked();
    gpumem_buffer *buffer = allocate(resource, 15 * MIB, 32 * MIB);
    CUdeviceptr address = gpumem_buffer_pointer(buffer);
    OK(gpumem_buffer_fill(buffer, 0, 15 * MIB, 0x11, NULL));
    uint64_t before = used();
    size_t released = 99;
    OK(gpumem_buffer_decommit(buffer, 1 * MIB, 9 * MIB, NULL, &released)); /* one lies inside */
    assert_int_equal(released, 4 * MIB);
    assert_int_equal(before - used(), 4 * MIB);
    OK(gpumem_buffer_decommit(buffer, 1 * MIB, 9 * MIB, NULL, &released)); /* and is gone */
    assert_int_equal(released, 0);
    OK(gpumem_buffer_decommit(buffer, 9 * MIB, 3 * MIB, NULL, &released)); /* none inside */
    assert_int_equal(released, 0);
    OK(gpumem_buffer_decommit(buffer, 12 * MIB, 3 * MIB, NULL, &released)); /* to the size */
    assert_int_equal(released, 4 * MIB);
    assert_int_equal(gpumem_buffer_committed(buffer), 8 * MIB);
    assert_int_equal(gpumem_buffer_size(buffer), 15 * MIB);
    MEMBERS(device_stats(), (committed_bytes, 8 * MIB), (chunks, 2));
    assert_int_equal(byte_at(buffer, 4 * MIB - 1), 0x11);
    assert_int_equal(byte_at(buffer, 8 * MIB), 0x11);
    OK(gpumem_buffer_recommit(buffer, 6 * MIB, 1)); /* any byte brings its chunk */
    OK(gpumem_buffer_recommit(buffer, 6 * MIB, 1));
    assert_int_equal(gpumem_buffer_committed(buffer), 12 * MIB);
    OK(gpumem_buffer_fill(buffer, 4 * MIB, 4 * MIB, 0x22, NULL));
    assert_int_equal(byte_at(buffer, 8 * MIB - 1), 0x22);
    OK(gpumem_buffer_recommit(buffer, 0, 15 * MIB));
    assert_int_equal(gpumem_buffer_committed(buffer), 16 * MIB);
    assert_int_equal(used(), before);
    assert_true(gpumem_buffer_pointer(buffer) == address);
    end(buffer, resource);
}

TEST(using_or_exporting_a_hole_is_refused) {
    gpumem_resource *resource = make_chunked();
    gpumem_buffer *buffer = allocate(resource, 16 * MIB, 0);
    gpumem_export *exported;
    size_t released = MADE(size_t, gpumem_buffer_decommit, buffer, 4 * MIB, 4 * MIB, NULL);
    FAILS(INVALID_ARGUMENT, gpumem_buffer_fill(buffer, 3 * MIB, 2 * MIB, 1, NULL));
    SAYS("decommitted");
    FAILS_SAYING(INVALID_ARGUMENT, "recommit", gpumem_export_create(buffer, &exported));
    OK(gpumem_buffer_fill(buffer, 0, 4 * MIB, 1, NULL));
    OK(gpumem_buffer_recommit(buffer, 4 * MIB, 4 * MIB));
    exported = NEW_EXPORT(buffer);
    FAILS(BUSY, gpumem_buffer_decommit(buffer, 4 * MIB, 4 * MIB, NULL, &released));
    OK(gpumem_export_destroy(exported));
    released = 99;
    OK(gpumem_buffer_decommit(buffer, 4 * MIB, 4 * MIB, NULL, &released));
    assert_int_equal(released, 0); /* an importer may have it still */
    end(buffer, resource);
}

TEST(buffers_with_holes_grow_and_shrink) {
    gpumem_resource *resource = make_chunked();
    gpumem_buffer *buffer = allocate(resource, 16 * MIB, 64 * MIB);
    OK(gpumem_buffer_decommit(buffer, 4 * MIB, 4 * MIB, NULL, NULL));
    OK(gpumem_buffer_decommit(buffer, 12 * MIB, 4 * MIB, NULL, NULL));
    OK(gpumem_buffer_grow(buffer, 24 * MIB, NULL));
    assert_int_equal(gpumem_buffer_committed(buffer), 16 * MIB);
    OK(gpumem_buffer_shrink(buffer, 10 * MIB, NULL));
    assert_int_equal(gpumem_buffer_committed(buffer), 8 * MIB);
    OK(gpumem_buffer_shrink(buffer, 4 * MIB, NULL));
    assert_int_equal(gpumem_buffer_committed(buffer), 4 * MIB);
    OK(gpumem_buffer_grow(buffer, 8 * MIB, NULL));
    OK(gpumem_buffer_fill(buffer, 0, 8 * MIB, 1, NULL));
    end(buffer, resource);
}

TEST(recommitting_restores_access_rights) {
    gpumem_resource *resource = make_chunked();
    gpumem_buffer *buffer = allocate(resource, 12 * MIB, 0);
    unsigned long long flags = 0;
    const CUmemLocation location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0};
    OK(gpumem_buffer_set_access(buffer, 4 * MIB, 4 * MIB, 0, GPUMEM_ACCESS_READ, NULL));
    OK(gpumem_buffer_decommit(buffer, 0, 12 * MIB, NULL, NULL));
    assert_int_equal(gpumem_buffer_committed(buffer), 0);
    OK(gpumem_buffer_recommit(buffer, 0, 8 * MIB));
    CUdeviceptr address = gpumem_buffer_pointer(buffer);
    OK_CU(cu->cuMemGetAccess(&flags, &location, address + 4 * MIB));
    assert_int_equal(flags, CU_MEM_ACCESS_FLAGS_PROT_READ);
    /* A hole takes part in changes, and has the rights when it is filled. */
    OK(gpumem_resource_set_access(resource, 0, GPUMEM_ACCESS_READ));
    OK(gpumem_buffer_recommit(buffer, 8 * MIB, 1));
    OK_CU(cu->cuMemGetAccess(&flags, &location, address + 8 * MIB));
    assert_int_equal(flags, CU_MEM_ACCESS_FLAGS_PROT_READ);
    end(buffer, resource);
}

TEST(decommitting_waits_for_the_buffers_streams) {
    gpumem_resource *resource = make_chunked();
    gpumem_buffer *buffer = allocate(resource, 8 * MIB, 0);
    CUstream stream = NEW_STREAM();
    for (int i = 0; i < 8; i++)
        OK(gpumem_buffer_fill(buffer, 0, 8 * MIB, 1, stream));
    OK(gpumem_buffer_decommit(buffer, 0, 8 * MIB, stream, NULL)); /* no fault */
    use_context();
    OK_CU(cu->cuStreamQuery(stream));
    leave_context();
    OK(gpumem_buffer_hold(buffer));
    OK(gpumem_buffer_recommit(buffer, 0, 8 * MIB)); /* takes nothing from anybody */
    FAILS_SAYING(BUSY, "hold", gpumem_buffer_decommit(buffer, 0, 4 * MIB, NULL, NULL));
    OK(gpumem_buffer_release(buffer));
    end(buffer, resource);
    OK(gpumem_stream_destroy(device, stream));
}

TEST(a_buffer_with_a_hole_is_not_cached) {
    gpumem_resource *resource = NEW_VIRTUAL(.maximum_chunk_bytes = 4 * MIB, .cache_bytes = GIB);
    gpumem_buffer *buffer = allocate(resource, 8 * MIB, 0);
    OK(gpumem_buffer_decommit(buffer, 0, 4 * MIB, NULL, NULL));
    OK(gpumem_buffer_free(buffer, NULL));
    assert_int_equal(device_stats().committed_bytes, 0);
    buffer = allocate(resource, 8 * MIB, 0);
    OK(gpumem_buffer_fill(buffer, 0, 8 * MIB, 1, NULL));
    end(buffer, resource);
}

TEST(impossible_ranges_are_refused) {
    gpumem_resource *resource = make_chunked();
    gpumem_buffer *buffer = allocate(resource, 8 * MIB, 0);
    FAILS(INVALID_ARGUMENT, gpumem_buffer_decommit(buffer, 0, 0, NULL, NULL));
    FAILS(INVALID_ARGUMENT, gpumem_buffer_decommit(buffer, 8 * MIB, 1, NULL, NULL));
    FAILS(INVALID_ARGUMENT, gpumem_buffer_decommit(buffer, 1, SIZE_MAX, NULL, NULL));
    FAILS(INVALID_ARGUMENT, gpumem_buffer_recommit(buffer, 0, 9 * MIB));
    end(buffer, resource);
    gpumem_resource *pool = NEW_POOL();
    buffer = allocate(pool, 1024, 0);
    FAILS(NOT_SUPPORTED, gpumem_buffer_decommit(buffer, 0, 1024, NULL, NULL));
    FAILS(NOT_SUPPORTED, gpumem_buffer_recommit(buffer, 0, 1024));
    DESTROY(buffer, pool);
}
