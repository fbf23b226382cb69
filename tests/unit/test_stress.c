/*
 * Sixteen threads that allocate, write, check, hand on and free, over the caching resource and over
 * one resource of every kind at once. Each thread has many buffers at a time; the first and last
 * bytes of each are its own from the allocation to the free, whoever frees it on whichever stream.
 *
 * GPUMEM_TEST_LONG=1 (`./dev test --long`) makes 100,000 operations a thread.
 */
#include "library_test.h"
#include "run_threads.h"

#include <pthread.h>
#include <stdatomic.h>

EACH_TEST(open_device, close_device);

#define THREADS 16
#define LIVE    24 /* buffers that one thread has at a time */
#define PLACES  64 /* where threads leave buffers for others */
#define PROBE   ((size_t)32)
#define MOST    24 /* resources */

#define LONG_OPERATIONS 100000
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define OPERATIONS 1000
#else
#define OPERATIONS 6000
#endif

/* What is written into a buffer follows from `mark`. */
struct live {
    gpumem_buffer *buffer;
    gpumem_resource *resource;
    unsigned char mark;
    int host; /* the CPU reaches it */
};

struct world {
    gpumem_resource *sources[MOST]; /* to allocate from */
    gpumem_resource *all[MOST];     /* in the order of their end */
    size_t source_count, count;
    struct live places[PLACES];
    pthread_mutex_t lock; /* places */
    unsigned operations;
    atomic_uint running, grown, shrunk, handed, viewed, trimmed;
};

struct worker {
    struct world *world;
    CUstream stream;
    uint64_t random;
    struct live live[LIVE];
    unsigned char *scratch; /* pinned, 2 * PROBE */
    uint64_t done;
    char failed[192];
};

static unsigned draw(struct worker *w, unsigned limit) {
    w->random = w->random * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(w->random >> 33) % limit;
}

/* Keeps what went wrong first, with the library's word for it. */
static int wrong(struct worker *w, const char *what, const struct live *live) {
    gpumem_resource_properties properties = {.size = sizeof properties, .kind = "nothing"};
    if (live && live->resource)
        (void)gpumem_resource_get_properties(live->resource, &properties);
    if (!w->failed[0])
        snprintf(w->failed, sizeof w->failed, "%s, %s: %.100s", what, properties.kind,
                 gpumem_last_error()->message);
    return 0;
}

#define STEP(call, live)                                                                           \
    do {                                                                                           \
        if ((call) != GPUMEM_OK)                                                                   \
            return wrong(w, #call, live);                                                          \
    } while (0)

/* ---- Bytes ----------------------------------------------------------------------------------- */

static size_t probe_of(const struct live *live) {
    size_t size = gpumem_buffer_size(live->buffer);
    return size < PROBE ? size : PROBE;
}

static int write_mark(struct worker *w, const struct live *live) {
    size_t probe = probe_of(live), last = gpumem_buffer_size(live->buffer) - probe;
    STEP(gpumem_buffer_fill(live->buffer, 0, probe, live->mark, w->stream), live);
    STEP(gpumem_buffer_fill(live->buffer, last, probe, live->mark, w->stream), live);
    return 1;
}

static int is_marked(struct worker *w, const struct live *live, const unsigned char *bytes,
                     size_t count, const char *where) {
    for (size_t i = 0; i < count; i++)
        if (bytes[i] != live->mark) {
            char what[80];
            snprintf(what, sizeof what, "%s byte %zu of %zu is %02x, not %02x", where, i,
                     gpumem_buffer_size(live->buffer), bytes[i], live->mark);
            return wrong(w, what, live);
        }
    return 1;
}

/* What the device has written the CPU reads itself where it can. */
static int check_mark(struct worker *w, const struct live *live) {
    size_t probe = probe_of(live), last = gpumem_buffer_size(live->buffer) - probe;
    const unsigned char *first = w->scratch, *end = w->scratch + PROBE;
    if (live->host && draw(w, 2)) {
        first = gpumem_buffer_host_pointer(live->buffer);
        end = first + last;
    } else {
        STEP(gpumem_buffer_read(live->buffer, 0, w->scratch, probe, w->stream), live);
        STEP(gpumem_buffer_read(live->buffer, last, w->scratch + PROBE, probe, w->stream), live);
    }
    STEP(gpumem_stream_synchronize(device, w->stream), live);
    return is_marked(w, live, first, probe, "first") && is_marked(w, live, end, probe, "last");
}

/* ---- Operations ------------------------------------------------------------------------------ */

static size_t some_size(struct worker *w) {
    static const unsigned most[] = {64, 256, 4096, 65536, 400000, 3000000};
    return 1 + draw(w, most[draw(w, COUNT(most))]);
}

static gpumem_status allocate_from(struct live *live, size_t bytes, size_t capacity,
                                   CUstream stream) {
    return gpumem_buffer_allocate(live->resource, bytes,
                                  GPUMEM_BUFFER_OPTIONS(.stream = stream, .capacity = capacity),
                                  &live->buffer);
}

static int allocate(struct worker *w, struct live *live) {
    gpumem_resource_properties is = {.size = sizeof is};
    live->resource = w->world->sources[draw(w, (unsigned)w->world->source_count)];
    STEP(gpumem_resource_get_properties(live->resource, &is), live);
    size_t bytes = some_size(w), capacity = is.can_resize && draw(w, 2) ? bytes + 4 * MIB : 0;
    gpumem_status status = allocate_from(live, bytes, capacity, w->stream);
    /* A limit with a second resource: what is to grow does not come from the second. */
    if (status == GPUMEM_ERROR_OUT_OF_CAPACITY && capacity)
        status = allocate_from(live, bytes, 0, w->stream);
    STEP(status, live);
    live->mark = (unsigned char)draw(w, 256);
    live->host = is.host_accessible;
    return write_mark(w, live);
}

/* Half of the frees come from the thread that was handed the buffer, on a stream of its own. */
static int free_it(struct worker *w, struct live *live) {
    if (!check_mark(w, live))
        return 0;
    CUstream last = draw(w, 4) ? w->stream : NULL;
    STEP(gpumem_buffer_free(live->buffer, last), live);
    live->buffer = NULL;
    return 1;
}

/* Its bytes must be there for streams of others. */
static int hand_on(struct worker *w, struct live *live) {
    STEP(gpumem_stream_synchronize(device, w->stream), live);
    struct live *place = &w->world->places[draw(w, PLACES)], kept = *live;
    pthread_mutex_lock(&w->world->lock);
    *live = *place;
    *place = kept;
    pthread_mutex_unlock(&w->world->lock);
    atomic_fetch_add(&w->world->handed, 1);
    return 1;
}

/* The view outlives its buffer's free. */
static int look_through_a_view(struct worker *w, struct live *live) {
    gpumem_buffer *view;
    size_t probe = probe_of(live);
    STEP(gpumem_buffer_view(live->buffer, 0, probe, &view), live);
    STEP(gpumem_buffer_free(live->buffer, NULL), live);
    live->buffer = NULL;
    STEP(read_now(view, 0, w->scratch, probe, w->stream), live);
    for (size_t i = 0; i < probe; i++)
        if (w->scratch[i] != live->mark)
            return wrong(w, "a view of other bytes", live);
    STEP(gpumem_buffer_free(view, draw(w, 2) ? w->stream : NULL), live);
    atomic_fetch_add(&w->world->viewed, 1);
    return 1;
}

/* Up into the capacity, or down to a half: the first bytes stay. */
static int resize(struct worker *w, struct live *live) {
    size_t size = gpumem_buffer_size(live->buffer), capacity;
    capacity = gpumem_buffer_capacity(live->buffer);
    if (!check_mark(w, live))
        return 0;
    if (capacity > size && draw(w, 2)) {
        size_t bytes = size + 1 + draw(w, (unsigned)(capacity - size));
        gpumem_status status = gpumem_buffer_grow(live->buffer, bytes, w->stream);
        /* Where a limit lies below, it may be reached: nothing has changed then. */
        if (status == GPUMEM_ERROR_OUT_OF_CAPACITY && gpumem_buffer_size(live->buffer) == size)
            return check_mark(w, live);
        STEP(status, live);
        atomic_fetch_add(&w->world->grown, 1);
    } else if (capacity > size && size > 2 * PROBE) {
        STEP(gpumem_buffer_shrink(live->buffer, size / 2, w->stream), live);
        atomic_fetch_add(&w->world->shrunk, 1);
    }
    size_t probe = probe_of(live) < size ? probe_of(live) : size;
    STEP(read_now(live->buffer, 0, w->scratch, probe, w->stream), live);
    return is_marked(w, live, w->scratch, probe, "resized: first") && write_mark(w, live);
}

static int trim(struct worker *w) {
    gpumem_stats stats = {.size = sizeof stats};
    gpumem_resource *one = w->world->all[draw(w, (unsigned)w->world->count)];
    STEP(draw(w, 4) ? gpumem_resource_trim(one, draw(w, 2) ? 0 : MIB)
                    : gpumem_device_trim(device, 0),
         NULL);
    STEP(gpumem_resource_get_stats(one, &stats), NULL);
    atomic_fetch_add(&w->world->trimmed, 1);
    return 1;
}

static int operate(struct worker *w) {
    struct live *live = &w->live[draw(w, LIVE)];
    unsigned what = draw(w, 100);
    if (what == 0)
        return trim(w);
    if (!live->buffer)
        return allocate(w, live);
    if (what < 12)
        return hand_on(w, live);
    if (what < 16)
        return look_through_a_view(w, live);
    if (what < 28)
        return resize(w, live);
    if (what < 40)
        return check_mark(w, live);
    return free_it(w, live);
}

static void *work(void *user) {
    struct worker *w = user;
    while (w->done < w->world->operations && operate(w))
        w->done++;
    for (size_t i = 0; i < LIVE && !w->failed[0]; i++)
        if (w->live[i].buffer)
            (void)free_it(w, &w->live[i]);
    atomic_fetch_sub(&w->world->running, 1);
    return NULL;
}

/* ---- The runs -------------------------------------------------------------------------------- */

static void *pin(size_t bytes) {
    use_context();
    void *pinned = MADE_CU(void *, cuMemHostAlloc, bytes, 0);
    leave_context();
    return pinned;
}

static void unpin(void *pinned) {
    use_context();
    OK_CU(cu->cuMemFreeHost(pinned));
    leave_context();
}

static void check_nothing_left(struct world *world) {
    gpumem_stats stats;
    for (size_t i = 0; i < PLACES; i++)
        OK(gpumem_buffer_free(world->places[i].buffer, NULL));
    OK(gpumem_device_trim(device, 1));
    for (size_t i = 0; i < world->count; i++) {
        stats = (gpumem_stats){.size = sizeof stats};
        OK(gpumem_resource_get_stats(world->all[i], &stats));
        MEMBERS(stats, (in_use_bytes, 0), (deferred_frees, 0), (quarantined, 0));
    }
    stats = device_stats();
    MEMBERS(stats, (allocations, 0), (in_use_bytes, 0), (committed_bytes, stats.cached_bytes));
}

/* Resources are destroyed in their order in `world`. */
static void run(struct world *world) {
    static struct worker workers[THREADS];
    uint64_t operations = 0;
    const char *is_long = getenv("GPUMEM_TEST_LONG");
    world->operations = is_long && strcmp(is_long, "1") == 0 ? LONG_OPERATIONS : OPERATIONS;
    pthread_mutex_init(&world->lock, NULL);
    memset(workers, 0, sizeof workers);
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i].world = world;
        workers[i].random = i * 7919 + 1;
        workers[i].scratch = pin(2 * PROBE);
        workers[i].stream = NEW_STREAM();
    }
    atomic_store(&world->running, THREADS);
    run_threads(THREADS, work, workers, sizeof *workers);
    for (unsigned i = 0; i < THREADS; i++) {
        if (workers[i].failed[0])
            fail_msg("thread %u, operation %lu: %s", i, (unsigned long)workers[i].done,
                     workers[i].failed);
        operations += workers[i].done;
    }
    assert_int_equal(operations, (uint64_t)THREADS * world->operations);
    check_nothing_left(world);
    for (size_t i = 0; i < world->count; i++)
        OK(gpumem_resource_destroy(world->all[i]));
    for (unsigned i = 0; i < THREADS; i++) {
        OK(gpumem_stream_destroy(device, workers[i].stream));
        unpin(workers[i].scratch);
    }
    pthread_mutex_destroy(&world->lock);
    print_message("%lu operations of %d threads: %u buffers handed on, %u views, %u growths, %u "
                  "shrinks, %u trims\n",
                  (unsigned long)operations, THREADS, world->handed, world->viewed, world->grown,
                  world->shrunk, world->trimmed);
}

static gpumem_resource *pinned(gpumem_pinned_method method) {
    return NEW_PINNED(.method = method, .slab_bytes = method == GPUMEM_PINNED_POOL ? 0 : 8 * MIB);
}

static gpumem_resource *virtual_memory(gpumem_location location, uint64_t cache_bytes) {
    return NEW_VIRTUAL(.location = location, .maximum_chunk_bytes = 4 * MIB,
                       .cache_bytes = cache_bytes);
}

/* Threads that keep little overflow and come back all the time. */
static gpumem_resource *cache_over(gpumem_resource *upstream) {
    return NEW_CACHING_WITH(upstream, .thread_bytes = MIB);
}

TEST(a_cache_keeps_every_byte_under_random_use) {
    gpumem_resource *upstream[] = {new_own_pool(), pinned(GPUMEM_PINNED_REGISTERED)};
    for (size_t i = 0; i < COUNT(upstream); i++) {
        struct world world = {.sources = {cache_over(upstream[i])}, .source_count = 1};
        world.all[world.count++] = world.sources[0];
        world.all[world.count++] = upstream[i];
        run(&world);
    }
}

static int ignore(void *user, const char *text, size_t bytes) {
    return text[bytes - 1] == '\n' ? 0 : 1;
}

static gpumem_failure_answer give_up(void *user, const gpumem_allocation_failure *failure) {
    return GPUMEM_FAILURE_GIVE_UP;
}

/* To allocate from, and to end before what is added later. */
static gpumem_resource *add(struct world *world, gpumem_resource *resource) {
    world->sources[world->source_count++] = resource;
    return world->all[world->count++] = resource;
}

/* Each wrapper over something else; the limit is reached, and pinned memory takes over. */
static void add_wrappers(struct world *world, gpumem_resource *pool, gpumem_resource *slabs,
                         gpumem_resource *cached, gpumem_resource *plain) {
    gpumem_resource *made = NEW_TRACE(pool, .write = ignore);
    add(world, made);
    made = NEW_TRACKING(cached, .frames = 4);
    add(world, made);
    made = NEW_ALIGNMENT(plain, .alignment = 4096);
    add(world, made);
    made = NEW_FAILURE(slabs, .fn = give_up);
    add(world, made);
    gpumem_resource *little = NEW_LIMIT(plain, 32 * MIB);
    made = NEW_FALLBACK(little, slabs);
    add(world, made);
    world->all[world->count++] = little; /* alone it would be full */
}

TEST(mixed_resources_keep_every_byte_under_random_use) {
    struct world world = {.count = 0};
    gpumem_resource *pool = new_own_pool(), *slabs = pinned(GPUMEM_PINNED_REGISTERED);
    gpumem_resource *cached = virtual_memory(GPUMEM_LOCATION_DEVICE, 256 * MIB);
    gpumem_resource *plain = virtual_memory(GPUMEM_LOCATION_DEVICE, 0);
    gpumem_resource *managed = NEW_MANAGED();
    add_wrappers(&world, pool, slabs, cached, plain);
    add(&world, cache_over(cached));
    add(&world, cache_over(slabs));
    add(&world, pool);
    add(&world, slabs);
    add(&world, cached);
    add(&world, plain);
    add(&world, managed);
    add(&world, pinned(GPUMEM_PINNED_ALLOCATED));
    add(&world, pinned(GPUMEM_PINNED_POOL));
    add(&world, virtual_memory(GPUMEM_LOCATION_HOST_NUMA, 64 * MIB));
    run(&world);
}
