/* For sweeps of the snapshot: one of everything that it tells of, held. */
#ifndef FAULT_SNAPSHOT_SUBJECT_H
#define FAULT_SNAPSHOT_SUBJECT_H

#include "json_reader.h"
#include "library_test.h"

enum { POOL, PINNED, VIRTUAL, CACHE, LIMIT, TRACKING, RESOURCES };

struct held {
    gpumem_resource *resources[RESOURCES];
    gpumem_buffer *buffers[RESOURCES], *view;
    gpumem_export *exported;
    size_t taken, wrong;
};

static inline void hold_all(struct held *held) {
    gpumem_resource **r = held->resources;
    r[POOL] = NEW_POOL();
    r[PINNED] = NEW_PINNED(.slab_bytes = 2 * MIB);
    r[VIRTUAL] =
        NEW_VIRTUAL(.cache_bytes = 16 * MIB, .maximum_chunk_bytes = 2 * MIB, .exact_growth = 1);
    r[CACHE] = NEW_CACHING(r[PINNED]);
    r[LIMIT] = NEW_LIMIT(r[POOL], MIB);
    OK(gpumem_tracking_resource_create(r[LIMIT], NULL, &r[TRACKING]));
    for (size_t i = 0; i < RESOURCES; i++)
        held->buffers[i] = NEW_BUFFER(r[i], i == VIRTUAL ? 6 * MIB : 10000);
    held->exported = NEW_EXPORT(held->buffers[VIRTUAL]);
    held->view = NEW_VIEW(held->buffers[POOL], 100, 200);
    gpumem_buffer *freed = NEW_BUFFER(r[VIRTUAL], 2 * MIB);
    OK(gpumem_buffer_free(freed, NULL));
}

static inline void let_all_go(struct held *held) {
    DESTROY(held->exported, held->view);
    DESTROY_EACH(held->buffers, RESOURCES);
    for (size_t i = RESOURCES; i-- > 0;)
        OK(gpumem_resource_destroy(held->resources[i]));
}

/* Whatever fails, what needs no driver call is told. */
static inline int is_whole(const char *text) {
    return json_is_valid(text) &&
           json_count(json_find(text, "devices.0.resources")) == RESOURCES + 1 /* view */ &&
           json_count(json_find(text, "devices.0.virtual_memory.mappings")) == 4 &&
           json_count(json_find(text, "devices.0.exports")) == 1;
}

#endif
