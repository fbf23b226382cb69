/*
 * Watches of a cache's ranges: told of each before it may be used and before it goes, in turn. The
 * table of what was told is a model of the cache's memory: blocks lie in it and nowhere else.
 */
#include "caching_test.h"
#include "run_threads.h"

#include <math.h>

ALL_TESTS(open_device, close_device);

#define MOST 4096

struct table {
    pthread_mutex_t lock;
    struct {
        CUdeviceptr base;
        size_t bytes;
    } ranges[MOST];
    size_t count;
    uint64_t bytes;
    unsigned added, refuse; /* `refuse`: this one is refused, counted from 1 */
    int pooled;             /* of a pool, which is_mapped does not know */
    const char *wrong;
};

static size_t find(const struct table *table, CUdeviceptr at) {
    size_t i = 0;
    while (i < table->count && at - table->ranges[i].base >= table->ranges[i].bytes)
        i++;
    return i;
}

static void check(struct table *table, int holds, const char *what) {
    if (!holds && !table->wrong)
        table->wrong = what;
}

static gpumem_status added(void *user, const gpumem_watch_event *event) {
    struct table *table = user;
    int refuses;
    pthread_mutex_lock(&table->lock);
    check(table, event->reason == GPUMEM_WATCH_ADD && !event->buffer, "what is added");
    check(table, table->pooled || is_mapped(event->base + event->bytes - 1), "no memory");
    check(table, find(table, event->base) == table->count && table->count < MOST, "added twice");
    refuses = ++table->added == table->refuse;
    if (!refuses) {
        table->ranges[table->count].base = event->base;
        table->ranges[table->count++].bytes = event->bytes;
        table->bytes += event->bytes;
    }
    pthread_mutex_unlock(&table->lock);
    return refuses ? GPUMEM_ERROR_NOT_PERMITTED : GPUMEM_OK;
}

static void gone(void *user, const gpumem_watch_event *event) {
    struct table *table = user;
    pthread_mutex_lock(&table->lock);
    size_t at = find(table, event->base);
    check(table, event->reason == GPUMEM_WATCH_FREE, "what is gone");
    check(table, table->pooled || is_mapped(event->base), "gone too late");
    check(table,
          at < table->count && table->ranges[at].base == event->base &&
              table->ranges[at].bytes == event->bytes,
          "gone, and not added as that");
    if (at < table->count) {
        table->bytes -= event->bytes;
        table->ranges[at] = table->ranges[--table->count];
    }
    pthread_mutex_unlock(&table->lock);
}

/* Every byte of a buffer. */
static void check_has(struct table *table, gpumem_buffer *buffer) {
    CUdeviceptr at = gpumem_buffer_pointer(buffer), end = at + gpumem_buffer_size(buffer);
    pthread_mutex_lock(&table->lock);
    while (at < end) {
        size_t i = find(table, at);
        if (i == table->count)
            break;
        at = table->ranges[i].base + table->ranges[i].bytes;
    }
    check(table, at >= end, "a block outside");
    pthread_mutex_unlock(&table->lock);
}

static void check_table(struct table *table, uint64_t bytes) {
    if (table->wrong)
        fail_msg("%s", table->wrong);
    assert_int_equal(table->bytes, bytes);
}

static gpumem_watch *begin_watch(gpumem_resource *cache, struct table *table) {
    return MADE(gpumem_watch *, gpumem_resource_watch_ranges, cache, added, gone, table);
}

#define NEW_TABLE                                                                                  \
    { .lock = PTHREAD_MUTEX_INITIALIZER }

/* ---- What is told ---------------------------------------------------------------------------- */

#define PARTS 16

static void fragment(gpumem_resource *cache, gpumem_buffer *parts[PARTS]) {
    for (size_t i = 0; i < PARTS; i++)
        parts[i] = allocate_on(cache, 5 * MIB, NULL);
    for (size_t i = 0; i < PARTS; i += 2) {
        OK(gpumem_buffer_free(parts[i], NULL));
        parts[i] = NULL;
    }
    synchronize(NULL);
}

static void run_watched(gpumem_resource *cache, int moves, int pooled) {
    struct table early = NEW_TABLE, late = NEW_TABLE;
    early.pooled = late.pooled = pooled;
    gpumem_buffer *parts[PARTS];
    gpumem_watch *watches[2] = {begin_watch(cache, &early)};
    fragment(cache, parts);
    watches[1] = begin_watch(cache, &late); /* hears of all that there is */
    check_table(&late, stats_of(cache).committed_bytes);
    gpumem_buffer *more[] = {allocate_on(cache, 36 * MIB, NULL), allocate_on(cache, 4 * KIB, NULL)};
    assert_int_equal(caching_info_of(cache).pages_moved > 0, moves);
    for (size_t i = 0; i < COUNT(more); i++)
        check_has(&late, more[i]);
    for (size_t i = 1; i < PARTS; i += 2)
        check_has(&late, parts[i]);
    check_table(&late, stats_of(cache).committed_bytes);
    check_table(&early, stats_of(cache).committed_bytes);
    DESTROY_EACH(parts, PARTS);
    DESTROY(more[0], more[1]);
    OK(gpumem_resource_trim(cache, 0));
    check_table(&early, 0);
    OK(gpumem_watch_destroy(watches[0]));
    more[0] = allocate_on(cache, MIB, NULL);
    check_table(&early, 0); /* no longer called */
    check_table(&late, stats_of(cache).committed_bytes);
    DESTROY(more[0], cache);
    check_table(&late, 0);
    OK(gpumem_watch_destroy(watches[1])); /* also after the resource */
}

TEST(ranges_are_told_in_turn_whether_memory_moves_or_stays) {
    gpumem_resource *upstream = NEW_VIRTUAL(), *pool = new_own_pool();
    run_watched(NEW_CACHING(upstream), 1, 0);
    run_watched(NEW_CACHING_WITH(upstream, .committed_ratio = INFINITY), 0, 0);
    run_watched(NEW_CACHING(pool), 0, 1);
    DESTROY(pool, upstream);
}

/* ---- What is refused ------------------------------------------------------------------------- */

/* The second watch refuses; what the first had agreed to is told to it as gone. */
static void run_refused(gpumem_resource *cache, unsigned refuse, int pooled) {
    struct table agrees = NEW_TABLE, refuses = NEW_TABLE;
    agrees.pooled = refuses.pooled = pooled;
    gpumem_watch *watches[] = {begin_watch(cache, &agrees), begin_watch(cache, &refuses)};
    gpumem_buffer *parts[PARTS], *none = NULL;
    fragment(cache, parts);
    refuses.refuse = refuses.added + refuse;
    uint64_t before = stats_of(cache).committed_bytes;
    FAILS_SAYING(NOT_PERMITTED, "refused", gpumem_buffer_allocate(cache, 36 * MIB, NULL, &none));
    assert_null(none);
    assert_true(stats_of(cache).committed_bytes <= before);
    assert_int_equal(agrees.bytes, refuses.bytes);
    for (size_t i = 1; i < PARTS; i += 2)
        check_has(&refuses, parts[i]);
    DESTROY(allocate_on(cache, 36 * MIB, NULL)); /* with what became loose */
    check_table(&refuses, stats_of(cache).committed_bytes);
    check_table(&agrees, stats_of(cache).committed_bytes);
    DESTROY_EACH(parts, PARTS);
    DESTROY(cache);
    check_table(&refuses, 0);
    for (size_t i = 0; i < COUNT(watches); i++)
        OK(gpumem_watch_destroy(watches[i]));
}

TEST(a_refused_range_makes_the_allocation_fail_whole) {
    gpumem_resource *upstream = NEW_VIRTUAL(), *pool = new_own_pool();
    for (unsigned refuse = 1; refuse <= 3; refuse++)
        run_refused(NEW_CACHING(upstream), refuse, 0);
    run_refused(NEW_CACHING(pool), 1, 1);
    DESTROY(pool, upstream);
}

TEST(a_watch_that_refuses_what_there_is_does_not_begin) {
    gpumem_resource *upstream = NEW_VIRTUAL(), *cache = NEW_CACHING(upstream);
    struct table table = NEW_TABLE;
    gpumem_watch *none = NULL;
    gpumem_buffer *buffer = allocate_on(cache, 64 * MIB, NULL);
    table.refuse = 2;
    FAILS_SAYING(NOT_PERMITTED, "refused",
                 gpumem_resource_watch_ranges(cache, added, gone, &table, &none));
    check_table(&table, 0);
    DESTROY(buffer, allocate_on(cache, 128 * MIB, NULL));
    assert_int_equal(table.added, 2);
    FAILS_SAYING(NOT_SUPPORTED, "virtual",
                 gpumem_resource_watch_ranges(upstream, added, gone, &table, &none));
    DESTROY(cache, upstream);
}

static gpumem_resource *inner;

static void begin_inside(void *user, const gpumem_watch_event *event) {
    FAILS_SAYING(INVALID_ARGUMENT, "in a function of a watch",
                 gpumem_resource_watch_ranges(inner, added, begin_inside, user, user));
}

TEST(no_watch_of_ranges_begins_in_a_function_of_a_watch) {
    gpumem_resource *upstream = NEW_VIRTUAL();
    gpumem_watch *watch, *none = NULL;
    inner = NEW_CACHING(upstream);
    OK(gpumem_resource_watch(inner, begin_inside, &none, &watch));
    DESTROY(allocate_on(inner, 4 * MIB, NULL), inner);
    OK(gpumem_watch_destroy(watch));
    assert_null(none);
    DESTROY(upstream);
}

/* ---- Threads --------------------------------------------------------------------------------- */

#define THREADS 16
#define LIVE    8

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define STEPS 30
#else
#define STEPS 120
#endif

struct worker {
    gpumem_resource *cache;
    struct table *table;
    CUstream stream;
    uint64_t random;
    struct {
        gpumem_buffer *buffer;
        unsigned char mark;
    } live[LIVE];
    const char *failed;
};

static size_t draw(struct worker *worker, size_t limit) {
    worker->random = worker->random * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(worker->random >> 33) % limit;
}

#define MUST(call)                                                                                 \
    do {                                                                                           \
        if ((call) != 0 && !worker->failed)                                                        \
            worker->failed = #call;                                                                \
    } while (0)

static void take(struct worker *worker, size_t i) {
    static const size_t most[] = {4 * KIB, 64 * KIB, MIB, 3 * MIB, 9 * MIB, 40 * MIB};
    size_t bytes = 1 + draw(worker, most[draw(worker, draw(worker, 8) ? 5 : 6)]);
    worker->live[i].mark = (unsigned char)(1 + draw(worker, 255));
    MUST(gpumem_buffer_allocate(worker->cache, bytes,
                                GPUMEM_BUFFER_OPTIONS(.stream = worker->stream),
                                &worker->live[i].buffer));
    if (worker->failed)
        return;
    check_has(worker->table, worker->live[i].buffer);
    MUST(
        gpumem_buffer_fill(worker->live[i].buffer, 0, bytes, worker->live[i].mark, worker->stream));
}

/* Every byte is what it was, wherever pages went meanwhile. */
static void look_and_free(struct worker *worker, size_t i) {
    gpumem_buffer *buffer = worker->live[i].buffer;
    size_t bytes = gpumem_buffer_size(buffer);
    unsigned char *seen = malloc(bytes);
    check_has(worker->table, buffer);
    MUST(gpumem_buffer_read(buffer, 0, seen, bytes, worker->stream));
    MUST(gpumem_stream_synchronize(device, worker->stream));
    MUST(seen[0] != worker->live[i].mark);
    MUST(memcmp(seen, seen + 1, bytes - 1));
    free(seen);
    MUST(gpumem_buffer_free(buffer, NULL));
    worker->live[i].buffer = NULL;
}

static void *work(void *data) {
    struct worker *worker = data;
    use_context();
    for (unsigned step = 0; step < STEPS && !worker->failed; step++) {
        size_t i = draw(worker, LIVE);
        if (worker->live[i].buffer)
            look_and_free(worker, i);
        else
            take(worker, i);
        if (draw(worker, 60) == 0)
            MUST(gpumem_resource_trim(worker->cache, draw(worker, 64) * MIB));
        if (draw(worker, 60) == 0) { /* another hears of all that there is just now */
            struct table own = NEW_TABLE;
            gpumem_watch *watch = NULL;
            MUST(gpumem_resource_watch_ranges(worker->cache, added, gone, &own, &watch));
            MUST(gpumem_watch_destroy(watch));
            MUST(own.wrong != NULL);
        }
    }
    for (size_t i = 0; i < LIVE && !worker->failed; i++)
        if (worker->live[i].buffer)
            look_and_free(worker, i);
    leave_context();
    return NULL;
}

static void run_model(gpumem_resource *cache) {
    struct table table = NEW_TABLE;
    struct worker workers[THREADS] = {{0}};
    gpumem_watch *watch = begin_watch(cache, &table);
    for (size_t i = 0; i < THREADS; i++)
        workers[i] = (struct worker){
            .cache = cache, .table = &table, .stream = NEW_STREAM(), .random = 7 * i + 1};
    run_threads(THREADS, work, workers, sizeof *workers);
    for (size_t i = 0; i < THREADS; i++) {
        if (workers[i].failed)
            fail_msg("thread %zu: %s (%s)", i, workers[i].failed, gpumem_last_error()->message);
        DESTROY(workers[i].stream);
    }
    OK(gpumem_resource_trim(cache, 0));
    check_table(&table, stats_of(cache).committed_bytes);
    DESTROY(cache);
    check_table(&table, 0);
    OK(gpumem_watch_destroy(watch));
}

TEST(bytes_stay_while_threads_allocate_and_pages_move) {
    gpumem_resource *upstream = NEW_VIRTUAL();
    run_model(NEW_CACHING_WITH(upstream, .committed_ratio = 1));
    run_model(NEW_CACHING_WITH(upstream, .committed_ratio = INFINITY));
    DESTROY(upstream);
}
