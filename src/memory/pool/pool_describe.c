/* The description of a driver's pool in a snapshot. */
#include "memory/core/describe.h"
#include "memory/pool/pool.h"

#include <stdio.h>

static void describe_uuid(const struct gm_pool *p, struct gm_json *json) {
    char text[33];
    for (unsigned i = 0; i < sizeof p->settings.uuid; i++)
        snprintf(text + 2 * i, 3, "%02x", p->settings.uuid[i]);
    gm_json_string(json, "uuid", p->settings.has_uuid ? text : NULL);
}

/* Addresses of another process's buffers; several buffers here may share each. */
static void describe_imports(const struct gm_pool *p, struct gm_json *json) {
    gm_json_open(json, "imports", '[');
    for (const struct gm_pool_import *import = p->imports; import; import = import->next) {
        gm_json_open(json, NULL, '{');
        gm_json_address(json, "address", import->base);
        gm_json_number(json, "bytes", import->bytes);
        gm_json_number(json, "buffers", import->references);
        gm_json_close(json, '}');
    }
    gm_json_close(json, ']');
}

static int is_registered(const struct gm_pool *p) {
    gpumem_library *library = p->device->library;
    pthread_mutex_lock(&library->registry);
    int registered = p->registered;
    pthread_mutex_unlock(&library->registry);
    return registered;
}

static void describe(gpumem_resource *resource, struct gm_json *json,
                     const gpumem_snapshot_options *options) {
    (void)options;
    struct gm_pool *p = resource->user;
    const struct gm_pool_settings *s = &p->settings;
    gm_json_open(json, "pool", '{');
    gm_json_address(json, "handle", (uintptr_t)s->pool);
    gm_json_bool(json, "owned", s->own);
    gm_json_bool(json, "host", s->host);
    gm_json_bool(json, "imported", s->mapped);
    gm_json_bool(json, "registered", is_registered(p));
    pthread_mutex_lock(&p->lock);
    gm_json_bool(json, "exported", p->exported);
    describe_uuid(p, json);
    if (s->mapped)
        describe_imports(p, json);
    pthread_mutex_unlock(&p->lock);
    gm_json_close(json, '}');
}

static const struct gm_describe_ops description = {.resource = describe};

void gm_pool_describe(struct gm_pool *pool) {
    gm_describe_set(pool->resource, &description);
}
