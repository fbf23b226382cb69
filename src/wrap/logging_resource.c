/* A wrapper that writes a line for each allocation, resize and free. */
#include "base/cancel.h"
#include "base/log.h"
#include "base/options.h"
#include "memory/core/driver_error.h"
#include "memory/object/resource.h"
#include "wrap/wrapper.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

struct logging_resource {
    struct gm_wrapper wrapper;
    gpumem_log_fn fn;
    void *user;
    gpumem_log_level level;
    char name[48];
};

static void line(const struct logging_resource *l, const char *format, ...) GM_PRINTF(2, 3);
static void line(const struct logging_resource *l, const char *format, ...) {
    char text[768];
    int used = snprintf(text, sizeof text, "%s: ", l->name);
    va_list args;
    va_start(args, format);
    vsnprintf(text + used, sizeof text - (size_t)used, format, args);
    va_end(args);
    if (l->fn)
        l->fn(l->user, l->level, text);
    else
        gm_log(l->level, "%s", text);
}

static gpumem_status allocate(void *user, const gpumem_request *request,
                              gpumem_allocation *allocation) {
    struct logging_resource *l = user;
    gpumem_resource *up = l->wrapper.upstream;
    gpumem_status status = up->ops.allocate(up->user, request, allocation);
    if (status == GPUMEM_OK)
        line(l, "allocate %zu at 0x%llx, capacity %zu, stream %p", allocation->bytes,
             allocation->pointer, allocation->capacity, (void *)request->stream);
    else
        line(l, "allocate %zu failed: %s", request->bytes, gpumem_last_error()->message);
    return status;
}

static void deallocate(void *user, const gpumem_allocation *allocation, CUstream stream) {
    struct logging_resource *l = user;
    line(l, "free %zu at 0x%llx, stream %p", allocation->bytes, allocation->pointer,
         (void *)stream);
    l->wrapper.upstream->ops.deallocate(l->wrapper.upstream->user, allocation, stream);
}

static gpumem_status resize(void *user, gpumem_allocation *allocation, size_t bytes,
                            CUstream stream) {
    struct logging_resource *l = user;
    gpumem_resource *up = l->wrapper.upstream;
    size_t before = allocation->bytes;
    gpumem_status status = up->ops.resize(up->user, allocation, bytes, stream);
    if (status == GPUMEM_OK)
        line(l, "resize %zu to %zu at 0x%llx", before, bytes, allocation->pointer);
    else
        line(l, "resize %zu to %zu failed: %s", before, bytes, gpumem_last_error()->message);
    return status;
}

static const struct gm_wrapper_ops own = {
    .kind = "logging",
    .allocate = allocate,
    .deallocate = deallocate,
    .resize = resize,
    .destroy = free,
    .transparent = 1,
};

gpumem_status gpumem_logging_resource_create(gpumem_resource *upstream,
                                             const gpumem_logging_options *given,
                                             gpumem_resource **resource) {
    GM_UNCANCELLED;
    gpumem_logging_options options;
    GM_CHECK(upstream, "gpumem_logging_resource_create");
    GM_REQUIRE(resource, "gpumem_logging_resource_create: resource is NULL");
    gpumem_status status = GM_OPTIONS_READ(gpumem_logging_options, given, &options);
    if (status != GPUMEM_OK)
        return status;
    GM_REQUIRE((unsigned)options.level <= GPUMEM_LOG_DEBUG,
               "gpumem_logging_resource_create: unknown level %d", (int)options.level);
    struct logging_resource *l = calloc(1, sizeof *l);
    if (!l)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory for a resource");
    l->fn = options.fn;
    l->user = options.user;
    l->level = options.level == GPUMEM_LOG_DEFAULT ? GPUMEM_LOG_INFO : options.level;
    snprintf(l->name, sizeof l->name, "%s", options.name ? options.name : upstream->kind);
    return gm_wrapper_make(&l->wrapper, upstream, &own, resource);
}
