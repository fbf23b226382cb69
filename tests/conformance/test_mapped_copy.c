/*
 * Copies of mapped memory on any driver, by each method that the machine has, before and after they
 * are calibrated: right at any offset, size and alignment, from pinned and pageable memory; held by
 * no stream, and harmless to captures.
 */
#include "kept_driver.h"
#include "library.h"

#define ROOM (8 * MIB)
#define EDGE ((size_t)64) /* host addresses of every alignment */

static const gpumem_mapped_method methods[] = {
    GPUMEM_MAPPED_COHERENT,      GPUMEM_MAPPED_VULKAN_IMPORT, GPUMEM_MAPPED_DMA_BUF,
    GPUMEM_MAPPED_VULKAN_EXPORT, GPUMEM_MAPPED_DESCRIPTOR,    GPUMEM_MAPPED_HOST};

static unsigned char *model, *pageable, *pinned, *seen;
static gpumem_resource *pinning;
static gpumem_buffer *pinned_buffer;
static uint64_t seed = 88172645463325252u;

static size_t drawn(size_t below) {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (size_t)(seed >> 11) % below;
}

static void begin(void) {
    open_library();
    model = new_bytes(ROOM);
    seen = new_bytes(ROOM);
    pageable = new_bytes(ROOM + EDGE);
    pinning = NEW_PINNED(.method = GPUMEM_PINNED_ALLOCATED);
    pinned_buffer = NEW_BUFFER(pinning, ROOM + EDGE);
    pinned = gpumem_buffer_host_pointer(pinned_buffer);
}

static void end(void) {
    DESTROY(pinned_buffer, pinning);
}

/* NULL, and why, where the machine has no such method. */
static gpumem_resource *make(gpumem_mapped_method method) {
    gpumem_resource *resource = NULL;
    gpumem_status status = gpumem_mapped_resource_create(
        device, GPUMEM_MAPPED_OPTIONS(.method = method, .method_strict = method != 0), &resource);
    if (status != GPUMEM_OK && status != GPUMEM_ERROR_NOT_SUPPORTED)
        fail_msg("answered %s: %s", gpumem_status_name(status), gpumem_last_error()->message);
    return resource;
}

/* ---- Bytes ----------------------------------------------------------------------------------- */

static void one_copy(gpumem_buffer *buffer, size_t order) {
    size_t bytes = drawn(((size_t)1 << order) + 1), offset = drawn(ROOM - bytes + 1);
    unsigned char *host = (drawn(2) ? pinned : pageable) + drawn(EDGE);
    if (drawn(2)) {
        unsigned char first = (unsigned char)drawn(256);
        for (size_t i = 0; i < bytes; i++)
            host[i] = (unsigned char)(first + i * 7 + i / 4099);
        OK(gpumem_mapped_write(buffer, offset, host, bytes));
        memcpy(model + offset, host, bytes);
        memset(host, 0xee, bytes); /* the caller's again */
    } else {
        memset(host, 0xee, bytes);
        OK(gpumem_mapped_read(buffer, offset, host, bytes));
        if (memcmp(host, model + offset, bytes) != 0)
            fail_msg("%zu bytes at %zu were read wrongly", bytes, offset);
    }
}

static void copies(gpumem_buffer *buffer) {
    memset(model, 0, ROOM);
    OK(fill_now(buffer, 0, ROOM, 0, NULL));
    for (size_t order = 0; order <= 23; order++)
        for (int i = 0; i < 20; i++)
            one_copy(buffer, order);
    OK(read_now(buffer, 0, seen, ROOM, NULL));
    assert_int_equal(memcmp(seen, model, ROOM), 0);
}

static gpumem_measured source_of(gpumem_resource *resource) {
    gpumem_mapped_info info = {.size = sizeof info};
    OK(gpumem_mapped_get_info(resource, &info));
    return info.copy_measured;
}

/* Short, and for this process alone. Of HOST there is nothing to measure. */
static void calibrate(gpumem_resource *resource, gpumem_mapped_method method) {
    gpumem_status status = gpumem_mapped_calibrate(
        resource, GPUMEM_MAPPED_CALIBRATE_OPTIONS(.maximum_bytes = 4 * MIB,
                                                  .run_nanoseconds = 50000, .keep_nothing = 1));
    if (method == GPUMEM_MAPPED_HOST) {
        assert_int_equal(status, GPUMEM_ERROR_NOT_SUPPORTED);
        return;
    }
    OK(status);
    assert_int_equal(source_of(resource), GPUMEM_MEASURED_HERE);
}

TEST(copies_are_correct_before_and_after_calibration) {
    begin();
    for (size_t i = 0; i < COUNT(methods); i++) {
        gpumem_resource *resource = make(methods[i]);
        if (!resource)
            continue;
        print_message("# %s\n", gpumem_mapped_method_name(methods[i]));
        gpumem_buffer *buffer = NEW_BUFFER(resource, ROOM);
        copies(buffer);
        calibrate(resource, methods[i]);
        copies(buffer);
        DESTROY(buffer, resource);
        assert_int_equal(device_stats().quarantined, 0);
    }
    end();
}

/* ---- Nothing else ---------------------------------------------------------------------------- */

/* Large ones, which the driver copies where the memory is the device's. */
static void there_and_back(gpumem_buffer *buffer, unsigned char *host, unsigned char value) {
    memset(host, value, ROOM);
    OK(gpumem_mapped_write(buffer, 0, host, ROOM));
    memset(host, 0, ROOM);
    OK(gpumem_mapped_read(buffer, 0, host, ROOM));
    for (size_t i = 0; i < ROOM; i += 1021)
        assert_int_equal(host[i], value);
}

/* cuMemcpyHtoD would wait for the stream, which is a blocking one. */
TEST(a_blocked_stream_does_not_block_copies) {
    begin();
    gpumem_resource *resource = make(GPUMEM_MAPPED_ANY);
    assert_non_null(resource);
    gpumem_buffer *buffer = NEW_BUFFER(resource, ROOM);
    CUstream stream = new_blocking_stream();
    struct gate gate = hold(stream);
    there_and_back(buffer, pinned, 3);
    there_and_back(buffer, pageable, 4);
    gate_drain(&gate, stream);
    DESTROY(buffer, resource);
    end();
}

TEST(copies_do_not_invalidate_captures) {
    begin();
    gpumem_resource *resource = make(GPUMEM_MAPPED_ANY);
    assert_non_null(resource);
    gpumem_buffer *buffer = NEW_BUFFER(resource, ROOM);
    CUstream stream = new_blocking_stream();
    OK_CU(cu.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    there_and_back(buffer, pinned, 5);
    there_and_back(buffer, pageable, 6);
    CUgraph graph = GOT_CU(CUgraph, cuStreamEndCapture, stream);
    OK_CU(cu.cuGraphDestroy(graph));
    DESTROY(buffer, resource);
    end();
}

/* ---- Views ----------------------------------------------------------------------------------- */

TEST(copies_of_a_host_view_are_correct) {
    gpumem_buffer *view = NULL;
    begin();
    gpumem_resource *memory = NEW_VIRTUAL();
    gpumem_buffer *buffer = NEW_BUFFER(memory, ROOM);
    gpumem_status status = gpumem_buffer_host_view(buffer, NULL, &view);
    if (status == GPUMEM_OK) {
        for (size_t bytes = 1; bytes <= ROOM; bytes = bytes * 2 + 1) {
            size_t offset = drawn(ROOM - bytes + 1);
            memset(pageable, (int)bytes, bytes);
            OK(gpumem_mapped_write(view, offset, pageable, bytes));
            OK(gpumem_mapped_read(view, offset, pinned, bytes));
            assert_int_equal(memcmp(pinned, pageable, bytes), 0);
            OK(read_now(buffer, offset, seen, bytes, NULL));
            assert_int_equal(memcmp(seen, pageable, bytes), 0);
        }
        OK(gpumem_buffer_free(view, NULL));
    }
    DESTROY(buffer, memory);
    end();
    if (status != GPUMEM_OK)
        SKIP("no view: %s", gpumem_last_error()->message);
}

BEFORE_TESTS_DO(keep_lavapipe_loaded());
