/* The limit counts what the wrapped resource handed out, which may be more than was asked for. */
#include "library_test.h"

EACH_TEST(open_device, close_device);

#define UNIT 4096

/* Hands out whole units, and says so in `bytes`. */
static gpumem_status generous_allocate(void *user, const gpumem_request *request,
                                       gpumem_allocation *allocation) {
    size_t bytes = (request->bytes + UNIT - 1) / UNIT * UNIT;
    allocation->pointer = UNIT; /* nobody touches it */
    allocation->bytes = allocation->committed_bytes = bytes;
    allocation->capacity = 16 * UNIT;
    return GPUMEM_OK;
}

static void generous_deallocate(void *user, const gpumem_allocation *allocation, CUstream stream) {
}

static gpumem_status generous_resize(void *user, gpumem_allocation *allocation, size_t bytes,
                                     CUstream stream) {
    allocation->bytes = allocation->committed_bytes = (bytes + UNIT - 1) / UNIT * UNIT;
    return GPUMEM_OK;
}

static void generous_properties(void *user, gpumem_resource_properties *properties) {
    properties->device_accessible = 1;
    properties->can_resize = 1;
}

TEST(a_limit_counts_the_bytes_the_upstream_handed_out) {
    gpumem_resource *generous;
    gpumem_buffer *one, *two, *none;
    const gpumem_resource_ops ops = {.size = sizeof ops,
                                     .kind = "generous",
                                     .allocate = generous_allocate,
                                     .deallocate = generous_deallocate,
                                     .resize = generous_resize,
                                     .properties = generous_properties};
    OK(gpumem_resource_create(device, &ops, NULL, &generous));
    gpumem_resource *limited = NEW_LIMIT(generous, 4 * UNIT);
    for (int i = 0; i < 3; i++) { /* nothing adds up */
        one = NEW_BUFFER(limited, 1);
        OK(gpumem_buffer_grow(one, UNIT + 1, NULL));
        two = NEW_BUFFER(limited, UNIT + 1);
        FAILS(OUT_OF_CAPACITY, gpumem_buffer_allocate(limited, 1, NULL, &none));
        SAYS("16384 are in use");
        OK(gpumem_buffer_shrink(two, 1, NULL));
        DESTROY(one, two);
    }
    DESTROY(limited, generous);
}
