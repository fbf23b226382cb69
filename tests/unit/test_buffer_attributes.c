/* What a buffer's memory is said to be: of every resource, of imports and of views. */
#include "library_test.h"

ALL_TESTS(open_device, close_device);

static gpumem_buffer *allocate(gpumem_resource *resource) {
    return NEW_BUFFER(resource, 2 * MIB);
}

TEST(device_memory_reports_location_and_access) {
    gpumem_resource *resource = NEW_POOL(.pool = GPUMEM_POOL_OWN);
    gpumem_buffer *buffer = allocate(resource);
    gpumem_buffer_attributes is = attributes_of(buffer);
    MEMBERS(is, (location, GPUMEM_LOCATION_DEVICE), (ordinal, 0), (numa_node, -1),
            (device_accessible, 1), (host_accessible, 0));
    assert_int_equal(is.managed | is.imported | is.foreign | is.read_only, 0);
    assert_null(is.viewed);
    MEMBERS(is, (exportable, 0), (handle_type, GPUMEM_HANDLE_NONE));
    DESTROY(buffer, resource);
}

TEST(pinned_memory_reports_location_and_access) {
    const gpumem_pinned_method methods[] = {GPUMEM_PINNED_REGISTERED, GPUMEM_PINNED_ALLOCATED,
                                            GPUMEM_PINNED_POOL};
    for (size_t i = 0; i < COUNT(methods); i++) {
        gpumem_resource *resource = NEW_PINNED(.method = methods[i]);
        gpumem_buffer *buffer = allocate(resource);
        gpumem_buffer_attributes is = attributes_of(buffer);
        MEMBERS(is, (location, GPUMEM_LOCATION_HOST), (ordinal, -1), (device_accessible, 1),
                (host_accessible, 1), (managed, 0));
        if (methods[i] != GPUMEM_PINNED_POOL)
            assert_ptr_equal(is.context, gpumem_device_context(device));
        DESTROY(buffer, resource);
    }
}

static gpumem_status malloc_it(void *user, const gpumem_request *request,
                               gpumem_allocation *allocation) {
    void *made = malloc(request->bytes);
    if (!made)
        return GPUMEM_ERROR_OUT_OF_HOST_MEMORY;
    allocation->pointer = (CUdeviceptr)(uintptr_t)made;
    allocation->host_pointer = made;
    allocation->bytes = allocation->committed_bytes = allocation->capacity = request->bytes;
    return GPUMEM_OK;
}

static void free_it(void *user, const gpumem_allocation *allocation, CUstream stream) {
    free(allocation->host_pointer);
}

static void describe_it(void *user, gpumem_resource_properties *properties) {
    properties->host_accessible = 1;
}

/* The driver has not failed: it does not know the memory. */
TEST(memory_that_the_driver_does_not_know_is_as_its_resource_says) {
    const gpumem_resource_ops ops = {.size = sizeof ops,
                                     .allocate = malloc_it,
                                     .deallocate = free_it,
                                     .properties = describe_it};
    gpumem_resource *own = MADE(gpumem_resource *, gpumem_resource_create, device, &ops, NULL);
    gpumem_resource *limit = NEW_LIMIT(own, GIB), *aligned = NEW_ALIGNMENT(own, .alignment = 512);
    gpumem_resource *const all[] = {own, limit, aligned};
    for (size_t i = 0; i < COUNT(all); i++) {
        gpumem_buffer *buffer = allocate(all[i]), *view = NEW_VIEW(buffer, MIB, 64);
        gpumem_buffer *const both[] = {buffer, view};
        for (size_t j = 0; j < COUNT(both); j++) {
            gpumem_buffer_attributes is = attributes_of(both[j]);
            assert_int_equal(is.location, GPUMEM_LOCATION_HOST);
            assert_int_equal(is.ordinal, -1);
            assert_int_equal(is.host_accessible, 1);
            assert_int_equal(is.device_accessible | is.managed | is.foreign | is.exportable, 0);
            assert_null(is.context);
        }
        DESTROY(view, buffer);
    }
    DESTROY(aligned, limit, own);
}

TEST(managed_memory_reports_access_by_host_and_device) {
    gpumem_resource *resource = NEW_MANAGED();
    gpumem_buffer *buffer = allocate(resource);
    gpumem_buffer_attributes is = attributes_of(buffer);
    MEMBERS(is, (managed, 1), (host_accessible, 1), (device_accessible, 1),
            (location, GPUMEM_LOCATION_DEVICE));
    DESTROY(buffer, resource);
}

TEST(virtual_memory_reports_its_location) {
    const gpumem_location places[] = {GPUMEM_LOCATION_DEVICE, GPUMEM_LOCATION_HOST_NUMA};
    for (size_t i = 0; i < COUNT(places); i++) {
        gpumem_resource *resource =
            NEW_VIRTUAL(.location = places[i], .handle_type = GPUMEM_HANDLE_POSIX_FD);
        gpumem_buffer *buffer = allocate(resource);
        gpumem_buffer_attributes is = attributes_of(buffer);
        MEMBERS(is, (location, places[i]), (ordinal, i == 0 ? 0 : -1), (numa_node, i == 0 ? -1 : 0),
                (host_accessible, i == 1), (exportable, 1), (handle_type, GPUMEM_HANDLE_POSIX_FD));
        assert_null(is.context);
        gpumem_buffer *view = NEW_VIEW(buffer, 4096, 4096);
        is = attributes_of(view);
        assert_ptr_equal(is.viewed, buffer);
        assert_int_equal(is.exportable, 0); /* the whole can be */
        assert_int_equal(is.location, places[i]);
        DESTROY(view, buffer, resource);
    }
}

static gpumem_buffer *import(gpumem_buffer *buffer, gpumem_access access) {
    const void *description;
    size_t bytes;
    gpumem_export *exported = NEW_EXPORT(buffer);
    OK(export_description(exported, &description, &bytes));
    int fd = MADE(int, export_descriptor, exported, 0);
    gpumem_buffer *imported = MADE(gpumem_buffer *, gpumem_import_create, device, description,
                                   bytes, &fd, 1, GPUMEM_SHARE_OPTIONS(.access = access));
    OK(gpumem_export_destroy(exported));
    return imported;
}

TEST(imported_memory_reports_its_location) {
    const gpumem_location places[] = {GPUMEM_LOCATION_DEVICE, GPUMEM_LOCATION_HOST_NUMA};
    for (size_t i = 0; i < COUNT(places); i++) {
        gpumem_resource *resource =
            NEW_VIRTUAL(.location = places[i], .handle_type = GPUMEM_HANDLE_POSIX_FD);
        gpumem_buffer *buffer = allocate(resource);
        gpumem_buffer *imported = import(buffer, GPUMEM_ACCESS_READ_WRITE);
        gpumem_buffer_attributes is = attributes_of(imported);
        MEMBERS(is, (imported, 1), (foreign, 0), (exportable, 0), (location, places[i]),
                (host_accessible, i == 1), (ordinal, i == 0 ? 0 : -1));
        DESTROY(imported, buffer, resource);
    }
}

TEST(an_attributes_struct_of_wrong_size_is_refused) {
    gpumem_resource *resource = NEW_VIRTUAL();
    gpumem_buffer *buffer = allocate(resource);
    gpumem_buffer_attributes is = {.size = 8};
    FAILS(INVALID_ARGUMENT, gpumem_buffer_get_attributes(buffer, &is));
    FAILS(INVALID_ARGUMENT, gpumem_buffer_get_attributes(buffer, NULL));
    FAILS(INVALID_ARGUMENT, gpumem_buffer_get_attributes(NULL, &is));
    DESTROY(buffer, resource);
}
