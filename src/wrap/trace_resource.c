/* A wrapper that records what passes through it, for replay. */
#include "base/cancel.h"
#include "base/options.h"
#include "memory/core/driver_error.h"
#include "memory/object/resource.h"
#include "wrap/ledger.h"
#include "wrap/trace_csv.h"
#include "wrap/wrapper.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct trace_resource {
    struct gm_wrapper wrapper;
    struct gm_trace_file file;
    struct gm_ledger ledger;
    _Atomic uint64_t buffers;
};

/* The number of an allocation in the log. */
struct identity {
    struct gm_ledger_entry entry;
    uint64_t number;
};

static gpumem_status fail(struct trace_resource *t, struct gm_trace_line *line,
                          gpumem_status status) {
    line->status = status;
    line->note = gpumem_last_error()->message;
    gm_trace_add(&t->file, line);
    return status;
}

static gpumem_status allocate(void *user, const gpumem_request *request,
                              gpumem_allocation *allocation) {
    struct trace_resource *t = user;
    gpumem_resource *up = t->wrapper.upstream;
    struct gm_trace_line line = {.event = "allocate",
                                 .thread = gm_thread_id(),
                                 .bytes = request->bytes,
                                 .alignment = request->alignment,
                                 .capacity = request->capacity,
                                 .stream = request->stream};
    struct identity *made = malloc(sizeof *made);
    if (!made)
        return fail(t, &line, gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory for a trace"));
    uint64_t begin = gm_now_ns();
    gpumem_status status = up->ops.allocate(up->user, request, allocation);
    line.took_ns = gm_now_ns() - begin;
    if (status != GPUMEM_OK) {
        free(made);
        return fail(t, &line, status);
    }
    made->entry.pointer = line.pointer = allocation->pointer;
    made->number = line.buffer = atomic_fetch_add(&t->buffers, 1) + 1;
    line.committed = allocation->committed_bytes;
    gm_ledger_add(&t->ledger, &made->entry);
    gm_trace_add(&t->file, &line);
    return GPUMEM_OK;
}

/* Recorded first: once the memory is back, another thread may get it and record that. */
static void deallocate(void *user, const gpumem_allocation *allocation, CUstream stream) {
    struct trace_resource *t = user;
    gpumem_resource *up = t->wrapper.upstream;
    struct identity *known =
        (struct identity *)(void *)gm_ledger_remove(&t->ledger, allocation->pointer);
    gm_trace_add(&t->file, &(struct gm_trace_line){.event = "free",
                                                   .thread = gm_thread_id(),
                                                   .buffer = known ? known->number : 0,
                                                   .bytes = allocation->bytes,
                                                   .stream = stream,
                                                   .pointer = allocation->pointer});
    free(known);
    up->ops.deallocate(up->user, allocation, stream);
}

static gpumem_status resize(void *user, gpumem_allocation *allocation, size_t bytes,
                            CUstream stream) {
    struct trace_resource *t = user;
    gpumem_resource *up = t->wrapper.upstream;
    const struct identity *known =
        (const struct identity *)(const void *)gm_ledger_find(&t->ledger, allocation->pointer);
    uint64_t begin = gm_now_ns();
    gpumem_status status = up->ops.resize(up->user, allocation, bytes, stream);
    struct gm_trace_line line = {.event = "resize",
                                 .thread = gm_thread_id(),
                                 .buffer = known ? known->number : 0,
                                 .bytes = bytes,
                                 .capacity = allocation->capacity,
                                 .stream = stream,
                                 .pointer = allocation->pointer,
                                 .committed = allocation->committed_bytes,
                                 .took_ns = gm_now_ns() - begin};
    if (status != GPUMEM_OK)
        return fail(t, &line, status);
    gm_trace_add(&t->file, &line);
    return GPUMEM_OK;
}

/* Recorded as a resize to the same size. */
static void moved(void *user, CUdeviceptr from, const gpumem_allocation *allocation) {
    struct trace_resource *t = user;
    const struct identity *known = (const struct identity *)(const void *)gm_ledger_move(
        &t->ledger, from, allocation->pointer);
    gm_trace_add(&t->file, &(struct gm_trace_line){.event = "resize",
                                                   .thread = gm_thread_id(),
                                                   .buffer = known ? known->number : 0,
                                                   .bytes = allocation->bytes,
                                                   .capacity = allocation->capacity,
                                                   .pointer = allocation->pointer,
                                                   .committed = allocation->committed_bytes});
}

static void destroy(void *user) {
    struct trace_resource *t = user;
    gm_trace_close(&t->file);
    gm_ledger_destroy(&t->ledger);
    free(t);
}

static struct trace_resource *trace_of(gpumem_resource *resource) {
    return resource->ops.allocate == allocate ? resource->user : NULL;
}

gpumem_status gpumem_trace_note(gpumem_resource *resource, const char *text) {
    GM_UNCANCELLED;
    GM_CHECK(resource, "gpumem_trace_note");
    struct trace_resource *t = trace_of(resource);
    GM_REQUIRE(t, "gpumem_trace_note: a %s resource does not trace", resource->kind);
    GM_REQUIRE(text, "gpumem_trace_note: text is NULL");
    gm_trace_add(&t->file,
                 &(struct gm_trace_line){.event = "note", .thread = gm_thread_id(), .note = text});
    return GPUMEM_OK;
}

gpumem_status gpumem_trace_flush(gpumem_resource *resource) {
    GM_UNCANCELLED;
    GM_CHECK(resource, "gpumem_trace_flush");
    struct trace_resource *t = trace_of(resource);
    GM_REQUIRE(t, "gpumem_trace_flush: a %s resource does not trace", resource->kind);
    int error = gm_trace_write(&t->file);
    if (!error)
        return GPUMEM_OK;
    pthread_mutex_lock(&t->file.lock);
    unsigned long long missing = t->file.missing;
    pthread_mutex_unlock(&t->file.lock);
    return gm_fail_system(GPUMEM_ERROR_SYSTEM, error, "write",
                          "the trace has ended, %llu lines are missing", missing);
}

static void describe(gpumem_resource *resource, struct gm_json *json,
                     const gpumem_snapshot_options *options) {
    (void)options;
    struct trace_resource *t = resource->user;
    pthread_mutex_lock(&t->file.lock);
    uint64_t lines = t->file.sequence, missing = t->file.missing;
    pthread_mutex_unlock(&t->file.lock);
    gm_json_open(json, "trace", '{');
    gm_json_number(json, "lines", lines);
    gm_json_number(json, "missing", missing);
    gm_json_close(json, '}');
}

static const struct gm_describe_ops description = {.resource = describe};

static void begin_note(const gpumem_resource *upstream, char *text, size_t room) {
    char when[32] = "";
    struct tm utc;
    time_t now = time(NULL);
    if (gmtime_r(&now, &utc))
        (void)strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &utc);
    snprintf(text, room, "%s resource of device %d, begun %s", upstream->kind,
             upstream->device->ordinal, when);
}

static const struct gm_wrapper_ops own = {
    .kind = "trace",
    .allocate = allocate,
    .deallocate = deallocate,
    .resize = resize,
    .moved = moved,
    .destroy = destroy,
    .transparent = 1,
    .describe = &description,
};

static gpumem_status make(gpumem_resource *upstream, const gpumem_trace_options *options,
                          gpumem_resource **resource) {
    struct trace_resource *t = calloc(1, sizeof *t);
    if (!t || gm_ledger_init(&t->ledger) != 0) {
        free(t);
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory for a resource");
    }
    char text[160];
    begin_note(upstream, text, sizeof text);
    gpumem_status status = gm_trace_open(&t->file, options, text);
    if (status != GPUMEM_OK) {
        gm_ledger_destroy(&t->ledger);
        free(t);
        return status;
    }
    return gm_wrapper_make(&t->wrapper, upstream, &own, resource);
}

gpumem_status gpumem_trace_resource_create(gpumem_resource *upstream,
                                           const gpumem_trace_options *given,
                                           gpumem_resource **resource) {
    GM_UNCANCELLED;
    gpumem_trace_options options;
    GM_CHECK(upstream, "gpumem_trace_resource_create");
    GM_REQUIRE(resource, "gpumem_trace_resource_create: resource is NULL");
    gpumem_status status = GM_OPTIONS_READ(gpumem_trace_options, given, &options);
    if (status != GPUMEM_OK)
        return status;
    GM_REQUIRE(!options.path != !options.write,
               "gpumem_trace_resource_create: give either a path or a write function");
    return make(upstream, &options, resource);
}
