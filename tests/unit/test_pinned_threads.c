/* Pinned memory within a maximum, by threads that need a slab at the same moment: who finds the
 * maximum taken by slabs that others are just pinning waits for those. */
#include "library_test.h"

#include <pthread.h>

#define THREADS 6
#define ROUNDS  25

static gpumem_resource *memory;
static pthread_barrier_t together;

struct worker {
    gpumem_status worst;
    char message[160];
};

static void allocate_once(struct worker *w) {
    gpumem_buffer *buffer = NULL;
    pthread_barrier_wait(&together);
    gpumem_status status = gpumem_buffer_allocate(memory, 100 * KIB, NULL, &buffer);
    if (status != GPUMEM_OK && w->worst == GPUMEM_OK) {
        w->worst = status;
        snprintf(w->message, sizeof w->message, "%.150s", gpumem_last_error()->message);
    }
    pthread_barrier_wait(&together);
    (void)gpumem_buffer_free(buffer, NULL);
    pthread_barrier_wait(&together);
}

static void *work(void *user) {
    for (int i = 0; i < ROUNDS; i++)
        allocate_once(user);
    return NULL;
}

/* Each round begins without a slab: keep_nothing gives it back with its last piece. */
static void one_slab_is_enough_for_all(void **state) {
    (void)state;
    struct worker workers[THREADS] = {{0}};
    pthread_t threads[THREADS];
    OK(gpumem_pinned_resource_create(
        device,
        GPUMEM_PINNED_OPTIONS(.slab_bytes = 8 * MIB, .keep_nothing = 1, .maximum_bytes = 8 * MIB),
        &memory));
    pthread_barrier_init(&together, NULL, THREADS);
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (size_t i = 0; i < THREADS; i++)
        if (workers[i].worst != GPUMEM_OK)
            fail_msg("thread %zu: %s", i, workers[i].message);
    pthread_barrier_destroy(&together);
    OK(gpumem_resource_destroy(memory));
}

/* What does not fit at all is refused, however many pin meanwhile. */
static void what_cannot_fit_is_refused_while_others_pin(void **state) {
    (void)state;
    gpumem_buffer *first, *second = NULL;
    OK(gpumem_pinned_resource_create(
        device, GPUMEM_PINNED_OPTIONS(.slab_bytes = 2 * MIB, .maximum_bytes = 4 * MIB), &memory));
    OK(gpumem_buffer_allocate(memory, 3 * MIB, NULL, &first));
    FAILS(OUT_OF_CAPACITY, gpumem_buffer_allocate(memory, 2 * MIB, NULL, &second));
    SAYS("maximum");
    OK(gpumem_buffer_free(first, NULL));
    OK(gpumem_resource_destroy(memory));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_slab_is_enough_for_all, open_device, close_device),
        cmocka_unit_test_setup_teardown(what_cannot_fit_is_refused_while_others_pin, open_device,
                                        close_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
