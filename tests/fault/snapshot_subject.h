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
    gpumem_buffer *freed;
    OK(gpumem_device_pool_resource_create(device, NULL, &r[POOL]));
    OK(gpumem_pinned_resource_create(device, GPUMEM_PINNED_OPTIONS(.slab_bytes = 2 * MIB),
                                     &r[PINNED]));
    OK(gpumem_virtual_resource_create(device,
                                      GPUMEM_VIRTUAL_OPTIONS(.cache_bytes = 16 * MIB,
                                                             .chunk_maximum = 2 * MIB,
                                                             .exact_growth = 1),
                                      &r[VIRTUAL]));
    OK(gpumem_caching_resource_create(r[PINNED], NULL, &r[CACHE]));
    OK(gpumem_limit_resource_create(r[POOL], MIB, &r[LIMIT]));
    OK(gpumem_tracking_resource_create(r[LIMIT], NULL, &r[TRACKING]));
    for (size_t i = 0; i < RESOURCES; i++)
        OK(gpumem_buffer_allocate(r[i], i == VIRTUAL ? 6 * MIB : 10000, NULL, &held->buffers[i]));
    OK(gpumem_export_create(held->buffers[VIRTUAL], &held->exported));
    OK(gpumem_buffer_view(held->buffers[POOL], 100, 200, &held->view));
    OK(gpumem_buffer_allocate(r[VIRTUAL], 2 * MIB, NULL, &freed));
    OK(gpumem_buffer_free(freed, NULL));
}

static inline void let_all_go(struct held *held) {
    OK(gpumem_export_destroy(held->exported));
    OK(gpumem_buffer_free(held->view, NULL));
    for (size_t i = 0; i < RESOURCES; i++)
        OK(gpumem_buffer_free(held->buffers[i], NULL));
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
