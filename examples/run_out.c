/*
 * What a program can do when memory runs out: it drops results that it can compute again, and then
 * continues with host memory. docs/running-out.md explains it.
 *
 *     GPUMEM_DRIVER=softgpu build/examples/run_out
 */
#include <gpumem/gpumem.h>
#include <stdio.h>
#include <stdlib.h>

#define MIB     ((size_t)1 << 20)
#define RESULTS 6
#define JOBS    5

static void check(gpumem_status status) {
    if (status == GPUMEM_OK)
        return;
    fprintf(stderr, "%s\n", gpumem_last_error()->message);
    exit(1);
}

/* Results that are kept as long as there is room for them, oldest first. */
struct results {
    gpumem_buffer *kept[RESULTS];
    unsigned first, dropped;
};

/* Called by the allocation that found no memory. */
static gpumem_failure_answer drop_a_result(void *user, const gpumem_allocation_failure *failure) {
    struct results *results = user;
    if (results->first == RESULTS)
        return GPUMEM_FAILURE_GIVE_UP;
    (void)failure; /* bytes, the message, how often RETRY is still obeyed */
    check(gpumem_buffer_free(results->kept[results->first++], NULL));
    results->dropped++;
    return GPUMEM_FAILURE_RETRY;
}

static void work(gpumem_resource *memory, gpumem_resource *pinned, struct results *results) {
    gpumem_buffer *jobs[JOBS];
    for (unsigned i = 0; i < JOBS; i++) {
        gpumem_resource *source;
        results->dropped = 0;
        check(gpumem_buffer_allocate(memory, 16 * MIB, NULL, &jobs[i]));
        check(gpumem_fallback_get_source(jobs[i], &source));
        printf("job %u has 16 MiB of the %s, %u results dropped\n", i + 1,
               source == pinned ? "host" : "device", results->dropped);
    }
    gpumem_buffer *huge;
    gpumem_status status = gpumem_buffer_allocate(memory, (size_t)1 << 50, NULL, &huge);
    printf("1 PiB: %s\n", gpumem_status_name(status));
    for (unsigned i = 0; i < JOBS; i++)
        check(gpumem_buffer_free(jobs[i], NULL));
}

int main(void) {
    gpumem_library *library;
    gpumem_device *device;
    gpumem_resource *pool, *limited, *patient, *pinned, *memory;
    struct results results = {.first = 0};
    check(gpumem_open(NULL, &library)); /* GPUMEM_DRIVER=softgpu where there is no GPU */
    check(gpumem_device_open(library, 0, &device));
    /* The limit simulates the end of the device's memory. */
    check(gpumem_device_pool_resource_create(device, NULL, &pool));
    check(gpumem_limiting_resource_create(pool, 64 * MIB, &limited));
    check(gpumem_failure_callback_resource_create(
        limited, GPUMEM_FAILURE_CALLBACK_OPTIONS(.fn = drop_a_result, .user = &results), &patient));
    check(gpumem_pinned_resource_create(
        device, GPUMEM_PINNED_OPTIONS(.maximum_bytes = 64 * MIB, .slab_bytes = 16 * MIB), &pinned));
    check(gpumem_fallback_resource_create(patient, pinned, &memory));

    for (unsigned i = 0; i < RESULTS; i++)
        check(gpumem_buffer_allocate(memory, 8 * MIB, NULL, &results.kept[i]));
    work(memory, pinned, &results);

    while (results.first < RESULTS)
        check(gpumem_buffer_free(results.kept[results.first++], NULL));
    check(gpumem_resource_destroy(memory));
    check(gpumem_resource_destroy(patient));
    check(gpumem_resource_destroy(limited));
    check(gpumem_resource_destroy(pinned));
    check(gpumem_resource_destroy(pool));
    check(gpumem_device_close(device));
    return gpumem_close(library) == GPUMEM_OK ? 0 : 1;
}
