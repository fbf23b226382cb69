/* Whole or nothing, for memory that the CPU has mapped too: each driver call of each step fails. */
#include "library_sweeps.h"

ALL_TESTS(begin_sweeps, end_sweeps);

struct subject {
    gpumem_resource *resource;
};

static const gpumem_mapped_options options = {.size = sizeof options,
                                              .method = GPUMEM_MAPPED_DESCRIPTOR,
                                              .method_strict = 1,
                                              .capacity = 16 * MIB,
                                              .maximum_chunk_bytes = 4 * MIB};

/* ---- Resources ------------------------------------------------------------------------------- */

static int create(void *user) {
    return (int)gpumem_mapped_resource_create(device, &options,
                                              &((struct subject *)user)->resource);
}

static void destroy(void *user) {
    OK(gpumem_resource_destroy(((struct subject *)user)->resource));
    settle(user);
}

TEST(creating_a_mapped_resource_is_all_or_nothing) {
    struct subject s = {0};
    sweep_act("mapped resource", create, destroy, &s);
}

/* ---- Buffers --------------------------------------------------------------------------------- */

/* Each act has a buffer of its own: what a driver that refuses everything leaves mapped would be in
 * the way of the next. */
static int with_buffer(gpumem_resource *resource, size_t bytes,
                       gpumem_status (*act)(gpumem_buffer *buffer)) {
    gpumem_buffer *buffer = NULL;
    gpumem_status status = gpumem_buffer_allocate(resource, bytes, NULL, &buffer);
    if (status != GPUMEM_OK)
        return (int)status;
    status = act(buffer);
    gpumem_status freed = gpumem_buffer_free(buffer, NULL);
    return (int)(status == GPUMEM_OK ? freed : status);
}

static gpumem_status grow(gpumem_buffer *buffer) {
    return gpumem_buffer_grow(buffer, 14 * MIB, NULL);
}

/* Without a call of the driver, so with nothing to fail. */
static gpumem_status write_and_read(gpumem_buffer *buffer) {
    char bytes[16] = "fifteen letters";
    gpumem_mapped_info info = {.size = sizeof info};
    gpumem_status status = gpumem_mapped_write(buffer, 100, bytes, sizeof bytes);
    AND_THEN(status, gpumem_mapped_publish(buffer, 200, bytes, sizeof bytes, 400, 1));
    AND_THEN(status, gpumem_mapped_flush(buffer, 0, 1000));
    AND_THEN(status, gpumem_mapped_invalidate(buffer, 0, 1000));
    AND_THEN(status, gpumem_mapped_read(buffer, 100, bytes, sizeof bytes));
    assert_string_equal(bytes, "fifteen letters");
    gpumem_store_bytes(gpumem_buffer_host_pointer(buffer), bytes, sizeof bytes);
    AND_THEN(status, gpumem_mapped_get_info(gpumem_buffer_resource(buffer), &info));
    assert_string_equal(gpumem_mapped_method_name(info.method), "descriptor");
    return status;
}

static gpumem_status grow_and_shrink(gpumem_buffer *buffer) {
    OK(write_and_read(buffer));
    gpumem_status status = grow(buffer);
    return status == GPUMEM_OK ? gpumem_buffer_shrink(buffer, 2 * MIB, NULL) : status;
}

static gpumem_status punch_and_fill(gpumem_buffer *buffer) {
    gpumem_status status = gpumem_buffer_decommit(buffer, 4 * MIB, 8 * MIB, NULL, NULL);
    return status == GPUMEM_OK ? gpumem_buffer_recommit(buffer, 4 * MIB, 8 * MIB) : status;
}

static int mapped_growth(void *user) {
    return with_buffer(((struct subject *)user)->resource, 2 * MIB, grow_and_shrink);
}

static int mapped_holes(void *user) {
    return with_buffer(((struct subject *)user)->resource, 16 * MIB, punch_and_fill);
}

TEST(changing_a_mapped_buffer_is_all_or_nothing) {
    struct subject s = {0};
    OK(gpumem_mapped_resource_create(device, &options, &s.resource));
    sweep_act("mapped allocate, grow, shrink and free", mapped_growth, NULL, &s);
    sweep_act("mapped decommit and recommit", mapped_holes, NULL, &s);
    (void)gpumem_resource_destroy(s.resource);
}

/* ---- Views ----------------------------------------------------------------------------------- */

static gpumem_status view_and_grow(gpumem_buffer *buffer) {
    gpumem_buffer *view = NULL;
    gpumem_status status = gpumem_buffer_host_view(buffer, NULL, &view);
    if (status != GPUMEM_OK)
        return status;
    gpumem_mapped_info info = {.size = sizeof info};
    *(unsigned char *)gpumem_buffer_host_pointer(view) = 1;
    OK(gpumem_buffer_get_mapped_info(view, &info));
    OK(gpumem_mapped_flush(view, 0, 1));
    OK(gpumem_mapped_invalidate(view, 0, 1));
    status = grow(buffer);
    gpumem_status ended = gpumem_buffer_free(view, NULL);
    return status == GPUMEM_OK ? ended : status;
}

static int viewed_growth(void *user) {
    return with_buffer(((struct subject *)user)->resource, 6 * MIB, view_and_grow);
}

/* Growth that a view cannot follow fails whole. */
TEST(growing_a_viewed_buffer_is_all_or_nothing) {
    struct subject s = {0};
    s.resource = NEW_VIRTUAL(.capacity = 16 * MIB, .maximum_chunk_bytes = 4 * MIB);
    sweep_act("a view that follows growth", viewed_growth, NULL, &s);
    (void)gpumem_resource_destroy(s.resource);
}

static int query_vulkan(void *user) {
    gpumem_vulkan_info info = {.size = sizeof info};
    gpumem_status status = gpumem_device_get_vulkan_info(library, 0, &info);
    return status == GPUMEM_ERROR_NOT_SUPPORTED ? GPUMEM_OK : (int)status;
}

TEST_IS(a_failed_query_of_vulkan_leaks_nothing,
        sweep_act("a device's Vulkan driver", query_vulkan, NULL, NULL));

BEFORE_TESTS {
    setenv("GPUMEM_VULKAN", "off", 1); /* what is swept is the CUDA driver */
    return 0;
}
