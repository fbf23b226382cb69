/* Measures the fastest way to copy mapped memory, on memory of the resource itself. */
#include "base/cancel.h"
#include "base/options.h"
#include "mapped/engine.h"
#include "memory/core/driver_error.h"

#include <stdlib.h>
#include <string.h>

#define LEAST_BYTES     ((size_t)8)
#define DEFAULT_BYTES   ((size_t)64 << 20)
#define RUN_NANOSECONDS 1000000u
#define LINE            ((size_t)64)
/* 8 B to 64 MiB in powers of two, and one more; a plan of this many fits in the text that is kept.
 */
#define MOST_SIZES GM_COPY_CLASS_LIMIT
#define LAST_ODD   2048 /* below it, how a size splits into accesses matters as much as the size */

struct subject {
    struct gm_engine *engine;
    size_t bytes;
    uint64_t run_nanoseconds;
    gpumem_buffer *mapped;
    gpumem_resource *pinning;
    gpumem_buffer *pinned;
    void *pageable;
    gpumem_status status; /* of the driver's copy that failed */
};

/* ---- What is measured ------------------------------------------------------------------------ */

static gpumem_status make_host_memory(gpumem_device *device, struct subject *subject) {
    size_t room = (subject->bytes + LINE - 1) / LINE * LINE;
    const gpumem_pinned_options options = {
        .size = sizeof options, .method = GPUMEM_PINNED_ALLOCATED, .keep_nothing = 1};
    subject->pageable = aligned_alloc(LINE, room);
    if (!subject->pageable)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory to copy %zu bytes from",
                       subject->bytes);
    memset(subject->pageable, 0x5a, room); /* untouched memory would be one page of zeros */
    gpumem_status status = gpumem_pinned_resource_create(device, &options, &subject->pinning);
    if (status == GPUMEM_OK)
        status = gpumem_buffer_allocate(subject->pinning, subject->bytes,
                                        GPUMEM_BUFFER_OPTIONS(.stream = GPUMEM_STREAM_NONE),
                                        &subject->pinned);
    if (status == GPUMEM_OK)
        memset(gpumem_buffer_host_pointer(subject->pinned), 0x5a, subject->bytes);
    return status;
}

/* Frees do not fail; of the other errors the first is returned. */
static gpumem_status end(struct subject *subject, gpumem_status status) {
    struct gm_error_record saved;
    gm_error_save(&saved);
    free(subject->pageable);
    (void)gpumem_buffer_free(subject->pinned, GPUMEM_STREAM_NONE);
    (void)gpumem_buffer_free(subject->mapped, GPUMEM_STREAM_NONE);
    gpumem_status ended = subject->pinning ? gpumem_resource_destroy(subject->pinning) : GPUMEM_OK;
    if (status == GPUMEM_OK)
        return ended;
    gm_error_restore(&saved);
    return status;
}

/* ---- Measuring ------------------------------------------------------------------------------- */

static bool by_driver(struct subject *subject, unsigned direction, void *host, size_t bytes) {
    gpumem_status status;
    if (gm_engine_by_driver(subject->engine, direction, host,
                            gpumem_buffer_pointer(subject->mapped), bytes,
                            &status) == GM_ENGINE_DONE)
        return true;
    subject->status = status;
    return false;
}

static bool store_by_driver(void *user, void *host, size_t bytes) {
    return by_driver(user, GM_COPY_STORE, host, bytes);
}

static bool load_by_driver(void *user, void *host, size_t bytes) {
    return by_driver(user, GM_COPY_LOAD, host, bytes);
}

/* Powers of two, small ones also less a byte, and the largest. A size that is not a power of two
 * takes one more access for each bit: over the bus, 63 bytes are read three times as fast by
 * memcpy, whose accesses overlap, and 64 by one wide load. */
static unsigned sizes_up_to(size_t largest, size_t sizes[MOST_SIZES]) {
    unsigned count = 0;
    for (size_t bytes = LEAST_BYTES; bytes < largest && count < MOST_SIZES - 2; bytes *= 2) {
        if (bytes > 16 && bytes <= LAST_ODD)
            sizes[count++] = bytes - 1;
        sizes[count++] = bytes;
    }
    sizes[count++] = largest;
    return count;
}

static gpumem_status measure(struct subject *subject, struct gm_copy_plan *plan) {
    size_t sizes[MOST_SIZES];
    unsigned count = sizes_up_to(subject->bytes, sizes);
    const struct gm_copy_subject measured = {
        .mapped = gpumem_buffer_host_pointer(subject->mapped),
        .pageable = subject->pageable,
        .pinned = gpumem_buffer_host_pointer(subject->pinned),
        .size = subject->bytes,
        .driver_store = store_by_driver,
        .driver_load = load_by_driver,
        .user = subject,
        .nanoseconds = subject->run_nanoseconds,
    };
    switch (gm_copy_calibrate(&measured, sizes, count, plan, NULL)) {
    case GM_COPY_MEASURED:
        return GPUMEM_OK;
    case GM_COPY_DRIVER_FAILED:
        return subject->status;
    case GM_COPY_BAD_SIZES:
        break;
    }
    return gm_fail(GPUMEM_ERROR_INVALID_ARGUMENT, "gpumem_mapped_calibrate: bad sizes");
}

static gpumem_status calibrate(gpumem_resource *resource,
                               const gpumem_mapped_calibrate_options *o) {
    struct gm_copy_plan plan;
    struct subject subject = {
        .engine = resource->engine,
        .bytes = o->maximum_bytes ? o->maximum_bytes : DEFAULT_BYTES,
        .run_nanoseconds = o->run_nanoseconds ? o->run_nanoseconds : RUN_NANOSECONDS,
    };
    gpumem_status status = gpumem_buffer_allocate(
        resource, subject.bytes, GPUMEM_BUFFER_OPTIONS(.stream = GPUMEM_STREAM_NONE),
        &subject.mapped);
    if (status == GPUMEM_OK)
        status = make_host_memory(resource->device, &subject);
    if (status == GPUMEM_OK)
        status = measure(&subject, &plan);
    bool measured = status == GPUMEM_OK;
    status = end(&subject, status);
    /* The result is valid even if freeing something failed. */
    if (measured) {
        gpumem_status taken = gm_plans_take(subject.engine->plans, &plan, GPUMEM_MEASURED_HERE);
        if (status == GPUMEM_OK)
            status = taken;
        if (taken == GPUMEM_OK && !o->keep_nothing)
            gm_plans_keep(subject.engine->plans, &plan);
    }
    return status;
}

gpumem_status gpumem_mapped_calibrate(gpumem_resource *resource,
                                      const gpumem_mapped_calibrate_options *given) {
    GM_UNCANCELLED;
    static const char call[] = "gpumem_mapped_calibrate";
    gpumem_mapped_calibrate_options options;
    GM_CHECK(resource, call);
    gpumem_status status = GM_OPTIONS_READ(gpumem_mapped_calibrate_options, given, &options);
    if (status != GPUMEM_OK)
        return status;
    if (!resource->engine)
        return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED,
                       "%s: this is a %s resource; only device memory that the CPU has mapped is "
                       "copied by a plan",
                       call, resource->kind);
    GM_REQUIRE(!options.maximum_bytes || options.maximum_bytes >= LEAST_BYTES,
               "%s: maximum_bytes is %zu; at least %zu are copied", call, options.maximum_bytes,
               LEAST_BYTES);
    return calibrate(resource, &options);
}
