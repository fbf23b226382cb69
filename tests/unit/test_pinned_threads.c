/* Pinned memory within a maximum, by threads that need a slab at the same moment: who finds the
 * maximum taken by slabs that others are just pinning, or unpinning, waits for those. */
#include "library_test.h"
#include "memory/core/objects.h"
#include "run_threads.h"
#include "sleeping_thread.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

EACH_TEST(open_device, close_device);

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
TEST(threads_wait_for_a_slab_that_another_thread_pins) {
    struct worker workers[THREADS] = {{0}};
    memory = NEW_PINNED(.slab_bytes = 8 * MIB, .keep_nothing = 1, .maximum_bytes = 8 * MIB);
    pthread_barrier_init(&together, NULL, THREADS);
    run_threads(THREADS, work, workers, sizeof *workers);
    for (size_t i = 0; i < THREADS; i++)
        if (workers[i].worst != GPUMEM_OK)
            fail_msg("thread %zu: %s", i, workers[i].message);
    pthread_barrier_destroy(&together);
    OK(gpumem_resource_destroy(memory));
}

/* What does not fit at all is refused, however many pin meanwhile. */
TEST(an_allocation_beyond_the_maximum_is_refused) {
    gpumem_buffer *second = NULL;
    memory = NEW_PINNED(.slab_bytes = 2 * MIB, .maximum_bytes = 4 * MIB);
    gpumem_buffer *first = NEW_BUFFER(memory, 3 * MIB);
    FAILS(OUT_OF_CAPACITY, gpumem_buffer_allocate(memory, 2 * MIB, NULL, &second));
    SAYS("maximum");
    DESTROY(first, memory);
}

/* ---- While a slab is unpinned ---------------------------------------------------------------- */

/* The driver's, through which the device's calls pass meanwhile. */
static const gpumem_driver_api *driver;
static atomic_size_t pinned_now, pinned_most;
static atomic_int unpinning, may_unpin;

static CUresult counted_alloc(void **pointer, size_t bytes, unsigned flags) {
    CUresult result = driver->cuMemHostAlloc(pointer, bytes, flags);
    if (result == CUDA_SUCCESS) {
        size_t now = atomic_fetch_add(&pinned_now, bytes) + bytes;
        if (now > atomic_load(&pinned_most))
            atomic_store(&pinned_most, now);
    }
    return result;
}

/* A gate: the memory stays pinned until it opens. */
static CUresult gated_free(void *pointer) {
    atomic_store(&unpinning, 1);
    while (!atomic_load(&may_unpin))
        sched_yield();
    CUresult result = driver->cuMemFreeHost(pointer);
    if (result == CUDA_SUCCESS)
        atomic_fetch_sub(&pinned_now, 2 * MIB);
    return result;
}

struct party {
    gpumem_buffer *buffer;
    gpumem_status status;
    atomic_int thread, done;
};

static void *free_it(void *user) {
    struct party *p = user;
    p->status = gpumem_buffer_free(p->buffer, NULL);
    return NULL;
}

static void *allocate_it(void *user) {
    struct party *p = user;
    atomic_store(&p->thread, gettid());
    p->status = gpumem_buffer_allocate(memory, MIB, NULL, &p->buffer);
    atomic_store(&p->done, 1);
    return NULL;
}

/* Until it has what it wants, or sleeps and goes on sleeping. */
static void let_it_try(struct party *p) {
    for (int asleep = 0; asleep < 1000 && !atomic_load(&p->done); sched_yield()) {
        int thread = atomic_load(&p->thread);
        asleep = thread && is_asleep(thread) ? asleep + 1 : 0;
    }
}

TEST(memory_being_unpinned_counts_until_it_is_released) {
    struct party giver = {.status = 0}, taker = {.status = 0};
    pthread_t giving, taking;
    gpumem_driver_api gated = *cu;
    driver = cu;
    gated.cuMemHostAlloc = counted_alloc;
    gated.cuMemFreeHost = gated_free;
    device->cu = &gated;
    memory = NEW_PINNED(.method = GPUMEM_PINNED_ALLOCATED, .slab_bytes = 2 * MIB, .keep_nothing = 1,
                        .maximum_bytes = 2 * MIB);
    giver.buffer = NEW_BUFFER(memory, MIB);
    assert_int_equal(pthread_create(&giving, NULL, free_it, &giver), 0);
    while (!atomic_load(&unpinning))
        sched_yield();
    gpumem_stats stats = stats_of(memory);
    assert_int_equal(stats.pinned_bytes, 2 * MIB);
    assert_int_equal(pthread_create(&taking, NULL, allocate_it, &taker), 0);
    let_it_try(&taker);
    atomic_store(&may_unpin, 1);
    assert_int_equal(pthread_join(giving, NULL), 0);
    assert_int_equal(pthread_join(taking, NULL), 0);
    OK(giver.status);
    OK(taker.status); /* it waited, and then there was room */
    assert_int_equal(atomic_load(&pinned_most), 2 * MIB);
    DESTROY(taker.buffer, memory);
    assert_int_equal(atomic_load(&pinned_now), 0);
    device->cu = driver;
}
