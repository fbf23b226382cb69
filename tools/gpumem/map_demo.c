/* gpumem map --demo: every kind of memory, held while a snapshot is taken. */
#include "cli.h"
#include "map.h"

#include <gpumem/gpumem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KIB         ((size_t)1 << 10)
#define MIB         ((size_t)1 << 20)
#define MOST        640
#define STEPS       2400
#define COUNT(list) (sizeof(list) / sizeof(list)[0])

enum kind { POOL, CACHE, PINNED, PINNED_CACHE, VIRTUAL, MANAGED, TRACKED, KINDS };

static const char *const names[KINDS] = {"device_pool", "caching", "pinned",  "caching_pinned",
                                         "virtual",     "managed", "tracking"};

struct demo {
    gpumem_library *library;
    gpumem_device *device;
    gpumem_resource *resources[KINDS]; /* NULL: not available here */
    gpumem_buffer *buffers[MOST];
    enum kind kinds[MOST];
    gpumem_reservation *reservation;
    gpumem_physical *physical[3];
    gpumem_mapping *mappings[2];
    gpumem_export *exported;
    gpumem_buffer *view;
    uint64_t random;
    double begin;
    FILE *log;
};

static uint64_t roll(struct demo *d, uint64_t below) {
    d->random = d->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (d->random >> 33) % below;
}

static void note(struct demo *d, const char *event, enum kind kind, const gpumem_buffer *buffer) {
    fprintf(d->log, "%.0f,%s,%s,0x%llx,%zu\n", (cli_now() - d->begin) * 1e9, event, names[kind],
            (unsigned long long)gpumem_buffer_pointer(buffer), gpumem_buffer_size(buffer));
}

static gpumem_status allocate(struct demo *d, size_t slot, enum kind kind, size_t bytes) {
    if (!d->resources[kind])
        return GPUMEM_OK;
    gpumem_status status =
        gpumem_buffer_allocate(d->resources[kind], bytes, NULL, &d->buffers[slot]);
    if (status != GPUMEM_OK)
        return status;
    d->kinds[slot] = kind;
    note(d, "allocate", kind, d->buffers[slot]);
    return GPUMEM_OK;
}

static void give_back(struct demo *d, size_t slot) {
    if (!d->buffers[slot])
        return;
    note(d, "free", d->kinds[slot], d->buffers[slot]);
    (void)gpumem_buffer_free(d->buffers[slot], NULL);
    d->buffers[slot] = NULL;
}

/* ---- Allocations ----------------------------------------------------------------------------- */

/* Leaves out kinds that the platform does not have. */
static gpumem_status had(gpumem_status status, gpumem_resource **resource) {
    if (status != GPUMEM_ERROR_NOT_SUPPORTED && status != GPUMEM_ERROR_NOT_PERMITTED)
        return status;
    *resource = NULL;
    return GPUMEM_OK;
}

static gpumem_status make_resources(struct demo *d) {
    gpumem_resource **r = d->resources;
    gpumem_status status =
        had(gpumem_device_pool_resource_create(
                d->device, GPUMEM_DEVICE_POOL_OPTIONS(.pool = GPUMEM_POOL_OWN), &r[POOL]),
            &r[POOL]);
    if (status == GPUMEM_OK)
        status = had(gpumem_pinned_resource_create(
                         d->device, GPUMEM_PINNED_OPTIONS(.slab_bytes = 8 * MIB), &r[PINNED]),
                     &r[PINNED]);
    if (status == GPUMEM_OK)
        status =
            had(gpumem_virtual_resource_create(
                    d->device,
                    GPUMEM_VIRTUAL_OPTIONS(.capacity = 256 * MIB, .maximum_chunk_bytes = 16 * MIB,
                                           .cache_bytes = 64 * MIB),
                    &r[VIRTUAL]),
                &r[VIRTUAL]);
    if (status == GPUMEM_OK)
        status = had(gpumem_managed_resource_create(d->device, NULL, &r[MANAGED]), &r[MANAGED]);
    if (status == GPUMEM_OK && r[POOL])
        status = gpumem_caching_resource_create(
            r[POOL], GPUMEM_CACHING_OPTIONS(.segment_bytes = 16 * MIB), &r[CACHE]);
    if (status == GPUMEM_OK && r[PINNED])
        status = gpumem_caching_resource_create(
            r[PINNED], GPUMEM_CACHING_OPTIONS(.segment_bytes = 4 * MIB), &r[PINNED_CACHE]);
    if (status == GPUMEM_OK && r[POOL])
        status = gpumem_tracking_resource_create(r[POOL], GPUMEM_TRACKING_OPTIONS(.frames = 4),
                                                 &r[TRACKED]);
    return status;
}

/* Sizes as in real programs: most are small, some are not. */
static size_t some_bytes(struct demo *d, enum kind kind) {
    size_t step = (size_t)roll(d, 100);
    if (kind == PINNED)
        return 16 * KIB + 4 * KIB * step;
    if (kind == POOL)
        return 256 * KIB + 8 * KIB * step;
    if (step < 80)
        return 256 * (1 + (size_t)roll(d, 64));
    return step < 96 ? 64 * KIB * (1 + (size_t)roll(d, 12)) : MIB + 128 * KIB * (size_t)roll(d, 12);
}

/* Allocations and frees that leave holes; in the second half more is freed than allocated. */
static gpumem_status churn(struct demo *d, size_t begin, size_t end) {
    static const enum kind kinds[] = {CACHE,  CACHE,        CACHE,        CACHE,
                                      PINNED, PINNED_CACHE, PINNED_CACHE, POOL};
    const size_t first = 12; /* earlier ones are long-lived */
    for (size_t step = begin; step < end; step++) {
        size_t room = step < STEPS / 2 ? (MOST - first) * (step + 50) / STEPS : (MOST - first) / 3;
        size_t slot = first + (size_t)roll(d, step < STEPS / 2 ? room : MOST - first);
        give_back(d, slot);
        if (step >= STEPS / 2 && slot >= first + room)
            continue;
        enum kind kind = kinds[roll(d, COUNT(kinds))];
        gpumem_status status = allocate(d, slot, kind, some_bytes(d, kind));
        if (status != GPUMEM_OK)
            return status;
    }
    return GPUMEM_OK;
}

static gpumem_status resize(struct demo *d, size_t slot, size_t bytes) {
    if (!d->buffers[slot])
        return GPUMEM_OK;
    gpumem_status status = bytes > gpumem_buffer_size(d->buffers[slot])
                               ? gpumem_buffer_grow(d->buffers[slot], bytes, NULL)
                               : gpumem_buffer_shrink(d->buffers[slot], bytes, NULL);
    if (status == GPUMEM_OK)
        note(d, "resize", VIRTUAL, d->buffers[slot]);
    return status;
}

static gpumem_status make_long_lived(struct demo *d) {
    gpumem_status status = allocate(d, 0, VIRTUAL, 20 * MIB);
    if (status == GPUMEM_OK)
        status = allocate(d, 1, VIRTUAL, 6 * MIB + 700 * KIB);
    if (status == GPUMEM_OK)
        status = allocate(d, 2, MANAGED, 12 * MIB);
    if (status == GPUMEM_OK)
        status = allocate(d, 3, POOL, 24 * MIB);
    for (size_t i = 4; i < 8 && status == GPUMEM_OK; i++)
        status = allocate(d, i, TRACKED, i * MIB);
    for (size_t i = 8; i < 10 && status == GPUMEM_OK; i++)
        status = allocate(d, i, VIRTUAL, (i - 4) * 2 * MIB);
    return status;
}

static gpumem_status grow_and_share(struct demo *d) {
    gpumem_status status = resize(d, 0, 72 * MIB);
    if (status == GPUMEM_OK)
        status = resize(d, 0, 57 * MIB);
    if (status == GPUMEM_OK && d->buffers[1])
        status = gpumem_export_create(d->buffers[1], &d->exported);
    return status == GPUMEM_ERROR_NOT_SUPPORTED ? GPUMEM_OK : status;
}

/* Puts buffers into states other than whole and live. */
static gpumem_status take_apart(struct demo *d) {
    gpumem_status status = GPUMEM_OK;
    if (d->buffers[0])
        status = gpumem_buffer_decommit(d->buffers[0], 16 * MIB, 24 * MIB, NULL, NULL);
    if (status == GPUMEM_OK && d->buffers[3])
        status = gpumem_buffer_view(d->buffers[3], 4 * MIB, 8 * MIB, &d->view);
    give_back(d, 8); /* the resource keeps the range mapped */
    return status;
}

static gpumem_status map_by_hand(struct demo *d) {
    if (!d->resources[VIRTUAL])
        return GPUMEM_OK;
    gpumem_status status = gpumem_reservation_create(d->device, 64 * MIB, NULL, &d->reservation);
    for (size_t i = 0; i < COUNT(d->physical) && status == GPUMEM_OK; i++)
        status = gpumem_physical_create(d->device, (2 + 2 * i) * MIB, NULL, &d->physical[i]);
    for (size_t i = 0; i < COUNT(d->mappings) && status == GPUMEM_OK; i++)
        status = gpumem_mapping_create(d->reservation, (4 + 10 * i) * MIB, d->physical[i],
                                       &d->mappings[i]);
    return status;
}

static gpumem_status fill(struct demo *d, struct cli_text *snapshot) {
    gpumem_status status = make_resources(d);
    if (status == GPUMEM_OK)
        status = make_long_lived(d);
    if (status == GPUMEM_OK)
        status = churn(d, 0, STEPS / 3);
    if (status == GPUMEM_OK)
        status = resize(d, 0, 44 * MIB);
    if (status == GPUMEM_OK)
        status = churn(d, STEPS / 3, STEPS * 2 / 3);
    if (status == GPUMEM_OK)
        status = grow_and_share(d);
    if (status == GPUMEM_OK)
        status = churn(d, STEPS * 2 / 3, STEPS);
    if (status == GPUMEM_OK)
        status = take_apart(d);
    if (status == GPUMEM_OK)
        status = map_by_hand(d);
    if (status == GPUMEM_OK)
        status = gpumem_snapshot(gpumem_device_library(d->device), NULL, &snapshot->text);
    if (status == GPUMEM_OK)
        snapshot->size = strlen(snapshot->text);
    return status;
}

static void empty(struct demo *d) {
    (void)gpumem_export_destroy(d->exported);
    (void)gpumem_buffer_free(d->view, NULL);
    for (size_t i = 0; i < MOST; i++)
        (void)gpumem_buffer_free(d->buffers[i], NULL);
    for (size_t i = 0; i < COUNT(d->mappings); i++)
        (void)gpumem_mapping_destroy(d->mappings[i]);
    for (size_t i = 0; i < COUNT(d->physical); i++)
        (void)gpumem_physical_destroy(d->physical[i]);
    (void)gpumem_reservation_destroy(d->reservation);
    (void)gpumem_resource_destroy(d->resources[CACHE]); /* before their upstream */
    (void)gpumem_resource_destroy(d->resources[PINNED_CACHE]);
    (void)gpumem_resource_destroy(d->resources[TRACKED]);
    d->resources[CACHE] = d->resources[PINNED_CACHE] = d->resources[TRACKED] = NULL;
    for (size_t i = 0; i < KINDS; i++)
        (void)gpumem_resource_destroy(d->resources[i]);
}

static int run(struct demo *d, const char *driver, int device, struct cli_text *snapshot) {
    gpumem_status status = gpumem_open(GPUMEM_OPEN_OPTIONS(.driver = driver), &d->library);
    if (status == GPUMEM_OK)
        status = gpumem_device_open(d->library, device < 0 ? 0 : device, &d->device);
    if (status == GPUMEM_OK)
        status = fill(d, snapshot);
    int result = status == GPUMEM_OK ? CLI_OK : cli_fail(status);
    if (d->device) {
        empty(d);
        status = gpumem_device_close(d->device);
        if (result == CLI_OK && status != GPUMEM_OK)
            result = cli_fail(status);
    }
    (void)gpumem_close(d->library);
    return result;
}

int map_demo(const char *driver, int device, struct cli_text *snapshot, struct cli_text *history) {
    struct demo demo = {.random = 2, .begin = cli_now()};
    demo.log = open_memstream(&history->text, &history->size);
    if (!demo.log)
        return cli_error(CLI_NO_MEMORY, "map: no memory for the log");
    fputs("time_ns,event,resource,address,bytes\n", demo.log);
    int status = run(&demo, driver, device, snapshot);
    if (fclose(demo.log) != 0 && status == CLI_OK)
        status = cli_error(CLI_NO_MEMORY, "map: no memory for the log");
    return status;
}
