/* All wrappers at once, by many threads: bytes are checked, growth and failures mixed in, and
 * nothing is left. */
#include "kinds.h"
#include "library_test.h"

#include <pthread.h>
#include <stdatomic.h>

EACH_TEST(open_device, close_device);

#define THREADS 8
#define ROUNDS  400

static gpumem_resource *tracked, *top;
static atomic_uint asked, failed;

static gpumem_failure_answer answer(void *user, const gpumem_allocation_failure *failure) {
    atomic_fetch_add(&asked, 1);
    return failure->attempt < 3 ? GPUMEM_FAILURE_RETRY : GPUMEM_FAILURE_GIVE_UP;
}

static int one_round(unsigned thread, unsigned round, CUstream stream) {
    static const size_t sizes[] = {1, 5000, MIB, 3 * MIB, 7 * MIB};
    size_t bytes = sizes[(thread + round) % COUNT(sizes)];
    unsigned char value = (unsigned char)(thread * 31 + round), ends[2] = {0};
    gpumem_buffer *buffer = NULL;
    gpumem_status status = gpumem_buffer_allocate(
        top, bytes, GPUMEM_BUFFER_OPTIONS(.stream = stream, .capacity = round % 3 ? 0 : 16 * MIB),
        &buffer);
    if (status == GPUMEM_ERROR_OUT_OF_CAPACITY) {
        atomic_fetch_add(&failed, 1);
        return 0;
    }
    if (status != GPUMEM_OK)
        return 1;
    if (round % 3 == 0 && gpumem_buffer_grow(buffer, bytes + MIB, stream) == GPUMEM_OK)
        bytes += MIB;
    size_t written = bytes < 64 * KIB ? bytes : 64 * KIB;
    int wrong = gpumem_buffer_size(buffer) != bytes ||
                gpumem_buffer_fill(buffer, 0, written, value, stream) != GPUMEM_OK ||
                gpumem_buffer_fill(buffer, bytes - written, written, value, stream) != GPUMEM_OK ||
                gpumem_buffer_read(buffer, 0, ends, 1, stream) != GPUMEM_OK ||
                gpumem_buffer_read(buffer, bytes - 1, ends + 1, 1, stream) != GPUMEM_OK ||
                gpumem_stream_synchronize(device, stream) != GPUMEM_OK || ends[0] != value ||
                ends[1] != value;
    return gpumem_buffer_free(buffer, stream) != GPUMEM_OK || wrong;
}

static void *churn(void *user) {
    unsigned thread = (unsigned)(uintptr_t)user, wrong = 0;
    CUstream stream = NULL;
    if (gpumem_stream_create(device, NULL, &stream) != GPUMEM_OK)
        return (void *)1;
    for (unsigned i = 0; i < ROUNDS; i++)
        wrong += (unsigned)one_round(thread, i, stream);
    if (gpumem_device_trim(device, 1) != GPUMEM_OK ||
        gpumem_stream_destroy(device, stream) != GPUMEM_OK)
        wrong++;
    return (void *)(uintptr_t)wrong;
}

static int count_one(void *user, const gpumem_tracked *tracked) {
    ++*(size_t *)user;
    return 0;
}

/* All over two, of which the first has too little for all at once. Of caching, which does not grow,
 * test_caching_threads. */
static gpumem_resource *stack[WRAPPERS + 2];
static size_t height;

static void build(void) {
    stack[0] = NEW_VIRTUAL();
    stack[1] = NEW_VIRTUAL();
    stack[2] = NEW_LIMIT(stack[0], 12 * MIB);
    stack[3] = NEW_FALLBACK(stack[2], stack[1]);
    height = 4;
    for (unsigned i = 0; i < WRAPPERS; i++)
        if (i != WRAPPER_limiting && i != WRAPPER_fallback && i != WRAPPER_caching) {
            gpumem_resource *below = stack[height - 1];
            stack[height++] = i == WRAPPER_failure_callback ? NEW_FAILURE(below, .fn = answer)
                                                            : MADE(gpumem_resource *, make_wrapper,
                                                                   (enum wrapper)i, below, NULL);
            if (i == WRAPPER_tracking)
                tracked = stack[height - 1];
        }
    top = stack[height - 1];
}

TEST(threads_share_a_stack_of_all_wrappers) {
    pthread_t threads[THREADS];
    size_t alive = 0;
    build();
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, churn, (void *)(uintptr_t)i), 0);
    for (unsigned i = 0; i < THREADS; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        assert_null(wrong);
    }
    OK(gpumem_device_trim(device, 1));
    OK(gpumem_tracking_visit(tracked, count_one, &alive));
    assert_int_equal(alive, 0);
    gpumem_stats stats = stats_of(stack[1]);
    assert_true(stats.allocations_total > 0); /* the second was needed */
    stats = device_stats();
    MEMBERS(stats, (allocations, 0), (in_use_bytes, 0), (committed_bytes, stats.cached_bytes));
    while (height)
        OK(gpumem_resource_destroy(stack[--height]));
}
