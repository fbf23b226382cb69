/* Mapped pools by UUID. The registry owns nothing: a resource leaves it when destroyed. */
#include "base/cancel.h"
#include "memory/core/driver_error.h"
#include "memory/pool/pool.h"

#include <string.h>

static int is_zero(const unsigned char uuid[16]) {
    static const unsigned char zero[16];
    return memcmp(uuid, zero, sizeof zero) == 0;
}

/* The registry's lock is held. */
static struct gm_pool *find(const gpumem_library *library, const unsigned char uuid[16]) {
    struct gm_pool *p = library->pools;
    while (p && memcmp(p->settings.uuid, uuid, sizeof p->settings.uuid) != 0)
        p = p->next;
    return p;
}

/* A pool's UUID must not change later: it takes this one, or already has it. */
static gpumem_status take_name(struct gm_pool *p, const unsigned char uuid[16]) {
    pthread_mutex_lock(&p->lock);
    struct gm_pool_settings *s = &p->settings;
    int other = s->has_uuid && memcmp(s->uuid, uuid, sizeof s->uuid) != 0;
    if (!s->has_uuid) {
        memcpy(s->uuid, uuid, sizeof s->uuid);
        s->has_uuid = 1;
    }
    pthread_mutex_unlock(&p->lock);
    GM_REQUIRE(!other, "gpumem_pool_register: the pool has another UUID (%02x%02x%02x%02x-...)",
               s->uuid[0], s->uuid[1], s->uuid[2], s->uuid[3]);
    return GPUMEM_OK;
}

gpumem_status gpumem_pool_register(gpumem_resource *resource, const unsigned char uuid[16],
                                   gpumem_resource **registered) {
    GM_UNCANCELLED;
    struct gm_pool *p;
    gpumem_status status = gm_pool_find(resource, "gpumem_pool_register", &p);
    if (status != GPUMEM_OK)
        return status;
    GM_REQUIRE(uuid && !is_zero(uuid), "gpumem_pool_register: no UUID is given");
    GM_REQUIRE(p->settings.mapped,
               "gpumem_pool_register: only pools of other processes can be registered");
    status = take_name(p, uuid);
    if (status != GPUMEM_OK)
        return status;
    gpumem_library *library = p->device->library;
    pthread_mutex_lock(&library->registry);
    struct gm_pool *first = find(library, uuid);
    if (!first) {
        p->registered = 1;
        p->next = library->pools;
        library->pools = first = p;
    }
    gpumem_resource *found = first->resource;
    pthread_mutex_unlock(&library->registry);
    if (registered)
        *registered = found;
    return GPUMEM_OK;
}

gpumem_status gpumem_pool_from_registry(gpumem_library *library, const unsigned char uuid[16],
                                        gpumem_resource **resource) {
    GM_UNCANCELLED;
    GM_CHECK(library, "gpumem_pool_from_registry");
    GM_REQUIRE(uuid && resource, "gpumem_pool_from_registry: uuid or resource is NULL");
    pthread_mutex_lock(&library->registry);
    const struct gm_pool *p = find(library, uuid);
    gpumem_resource *found = p ? p->resource : NULL;
    pthread_mutex_unlock(&library->registry);
    GM_REQUIRE(found,
               "gpumem_pool_from_registry: no pool is registered under the UUID "
               "%02x%02x%02x%02x-...",
               uuid[0], uuid[1], uuid[2], uuid[3]);
    *resource = found;
    return GPUMEM_OK;
}

void gm_pool_unregister(struct gm_pool *pool) {
    gpumem_library *library = pool->device->library;
    pthread_mutex_lock(&library->registry);
    for (struct gm_pool **at = &library->pools; pool->registered && *at; at = &(*at)->next) {
        if (*at == pool) {
            *at = pool->next;
            break;
        }
    }
    pool->registered = 0;
    pthread_mutex_unlock(&library->registry);
}
