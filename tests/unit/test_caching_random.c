/*
 * A random program over the caching resource: threads that come and go, each with more streams than
 * a thread keeps slots for, buffers that others free, hold and use on their streams, streams that
 * end, captures that are launched again and again, trims; and caches that end while the threads
 * which used them do. A buffer is read in stream order and freed at once: whatever happens to its
 * memory too early shows in those bytes.
 *
 * GPUMEM_CACHING_SEED=n chooses the program, as far as threads let it.
 */
#include "caching_test.h"

#include <stdatomic.h>

ALL_TESTS(open_device, close_device);

#define WORKERS  4
#define STREAMS  24 /* shared; a thread keeps blocks of four at a time */
#define LIVE     24 /* buffers that one worker has at a time */
#define SLOTS    64 /* reads of one worker whose bytes have not been looked at */
#define PROBE    ((size_t)64)
#define CAPTURED 3 /* buffers of one capture */
#define EPOCHS   4
#define LIVES    3 /* threads of one worker, one after the other, in an epoch */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define STEPS 400
#else
#define STEPS 4000
#endif

/* Everybody who queues work on it holds `lock` for reading; who ends it, or captures, for writing.
 */
struct shared_stream {
    pthread_rwlock_t lock;
    CUstream stream;
    atomic_uint buffers; /* that use it */
};

struct live {
    gpumem_buffer *buffer;
    unsigned streams[2], stream_count;
    unsigned char mark;
};

struct slot {
    CUevent event;
    unsigned char wanted;
    int used;
};

struct world {
    gpumem_resource *cache;
    int host;
    struct shared_stream streams[STREAMS];
    pthread_mutex_t lock; /* places */
    struct live places[32];
};

struct worker {
    struct world *world;
    uint64_t random;
    struct live live[LIVE];
    unsigned count, next_slot;
    struct slot slots[SLOTS];
    unsigned char *seen; /* pinned, PROBE bytes a slot */
    CUdeviceptr landing; /* device memory for what the CPU wrote, PROBE bytes a slot */
    const char *failed;
    pthread_barrier_t *done;
};

static unsigned draw(struct worker *worker, unsigned limit) {
    worker->random = worker->random * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(worker->random >> 33) % limit;
}

#define MUST(call)                                                                                 \
    do {                                                                                           \
        if ((call) != 0) {                                                                         \
            if (!worker->failed)                                                                   \
                worker->failed = #call;                                                            \
            return;                                                                                \
        }                                                                                          \
    } while (0)

/* ---- Bytes ----------------------------------------------------------------------------------- */

static void look(struct worker *worker, struct slot *slot) {
    if (!slot->used)
        return;
    slot->used = 0;
    MUST(gpumem_event_synchronize(device, slot->event));
    const unsigned char *seen = worker->seen + (size_t)(slot - worker->slots) * PROBE;
    for (size_t i = 0; i < PROBE; i++)
        MUST(seen[i] != slot->wanted);
}

static struct slot *take_slot(struct worker *worker) {
    struct slot *slot = &worker->slots[worker->next_slot++ % SLOTS];
    look(worker, slot);
    return slot;
}

/* Queues a read into the slot; what the CPU wrote goes by way of device memory. */
static void queue_read(struct worker *worker, gpumem_buffer *buffer, const struct slot *slot,
                       CUstream stream) {
    size_t offset = (size_t)(slot - worker->slots) * PROBE;
    unsigned char *to = worker->seen + offset;
    CUdeviceptr landing = worker->landing + offset;
    if (!worker->world->host) {
        MUST(gpumem_buffer_read(buffer, 0, to, PROBE, stream));
        return;
    }
    MUST(gpumem_buffer_use(buffer, stream));
    MUST(cu->cuMemcpyHtoDAsync_v2(landing, gpumem_buffer_host_pointer(buffer), PROBE, stream));
    MUST(cu->cuMemcpyDtoHAsync_v2(to, landing, PROBE, stream));
}

/* Queues a read, the bytes of which are looked at much later. */
static void read_later(struct worker *worker, const struct live *live, CUstream stream) {
    struct slot *slot = take_slot(worker);
    queue_read(worker, live->buffer, slot, stream);
    MUST(gpumem_event_record(device, slot->event, stream));
    slot->wanted = live->mark;
    slot->used = 1;
}

/* ---- Steps ----------------------------------------------------------------------------------- */

static struct shared_stream *borrow(struct worker *worker, unsigned index) {
    struct shared_stream *shared = &worker->world->streams[index];
    pthread_rwlock_rdlock(&shared->lock);
    return shared;
}

static void give_back(struct shared_stream *shared) {
    pthread_rwlock_unlock(&shared->lock);
}

static size_t some_size(struct worker *worker) {
    static const unsigned most[] = {256, 4096, 65536, 1 << 20, 3 << 20};
    return PROBE + draw(worker, most[draw(worker, 40) ? draw(worker, 3) : 3 + draw(worker, 2)]);
}

static void write_mark(struct worker *worker, const struct live *live, CUstream stream) {
    if (worker->world->host)
        memset(gpumem_buffer_host_pointer(live->buffer), live->mark, PROBE);
    else
        MUST(gpumem_buffer_fill(live->buffer, 0, PROBE, live->mark, stream));
}

static void allocate_one_on(struct worker *worker, struct live *made, CUstream stream) {
    const size_t size = some_size(worker);
    MUST(gpumem_buffer_allocate(worker->world->cache, size, GPUMEM_BUFFER_OPTIONS(.stream = stream),
                                &made->buffer));
    write_mark(worker, made, stream);
}

static void allocate_one(struct worker *worker) {
    unsigned index = draw(worker, STREAMS);
    struct live made = {.streams = {index}, .stream_count = 1};
    if (worker->count == LIVE)
        return;
    made.mark = (unsigned char)draw(worker, 256);
    struct shared_stream *shared = borrow(worker, index);
    allocate_one_on(worker, &made, shared->stream);
    atomic_fetch_add(&shared->buffers, 1);
    give_back(shared);
    if (made.buffer)
        worker->live[worker->count++] = made;
}

/* The second stream comes after the first. */
static void order(struct worker *worker, CUstream first, CUstream second) {
    CUevent event = NULL;
    MUST(gpumem_event_create(device, NULL, &event));
    MUST(gpumem_event_record(device, event, first));
    MUST(gpumem_stream_wait_event(device, second, event));
    MUST(gpumem_event_destroy(device, event));
}

static void use_elsewhere(struct worker *worker) {
    struct live *live = &worker->live[draw(worker, worker->count + 1)];
    unsigned index = draw(worker, STREAMS);
    if (live == &worker->live[worker->count] || live->stream_count > 1 || live->streams[0] == index)
        return;
    unsigned low = index < live->streams[0] ? index : live->streams[0];
    unsigned high = index < live->streams[0] ? live->streams[0] : index;
    struct shared_stream *one = borrow(worker, low), *two = borrow(worker, high);
    struct shared_stream *other = index == low ? one : two, *own = index == low ? two : one;
    order(worker, own->stream, other->stream);
    read_later(worker, live, other->stream);
    live->streams[live->stream_count++] = index;
    atomic_fetch_add(&other->buffers, 1);
    give_back(two);
    give_back(one);
}

static void leave_streams(struct worker *worker, const struct live *live) {
    for (unsigned i = 0; i < live->stream_count; i++)
        atomic_fetch_sub(&worker->world->streams[live->streams[i]].buffers, 1);
}

/* Read last on the stream of allocation, and freed before that has happened. */
static void free_this(struct worker *worker, struct live live) {
    struct shared_stream *shared = borrow(worker, live.streams[0]);
    read_later(worker, &live, shared->stream);
    int hold = draw(worker, 4) == 0, name = draw(worker, 2) == 0;
    if (hold)
        MUST(gpumem_buffer_hold(live.buffer));
    MUST(gpumem_buffer_free(live.buffer, name ? shared->stream : NULL));
    if (hold)
        MUST(gpumem_buffer_release(live.buffer));
    leave_streams(worker, &live);
    give_back(shared);
}

static void free_one(struct worker *worker) {
    if (!worker->count)
        return;
    unsigned index = draw(worker, worker->count);
    struct live live = worker->live[index];
    worker->live[index] = worker->live[--worker->count];
    free_this(worker, live);
}

/* Gives a buffer to whoever comes, and takes what another thread left there. */
static void swap_one(struct worker *worker) {
    if (!worker->count)
        return;
    struct live *live = &worker->live[draw(worker, worker->count)];
    struct live *place = &worker->world->places[draw(worker, COUNT(worker->world->places))];
    pthread_mutex_lock(&worker->world->lock);
    struct live taken = *place;
    *place = *live;
    pthread_mutex_unlock(&worker->world->lock);
    *live = taken.buffer ? taken : worker->live[--worker->count];
}

/* Queued work goes on; no buffer uses the stream. */
static void end_stream(struct worker *worker) {
    struct shared_stream *shared = &worker->world->streams[draw(worker, STREAMS)];
    pthread_rwlock_wrlock(&shared->lock);
    if (atomic_load(&shared->buffers) == 0) {
        if (draw(worker, 2))
            worker->failed = gpumem_caching_forget_stream(worker->world->cache, shared->stream)
                                 ? "forget"
                                 : worker->failed;
        if (gpumem_stream_destroy(device, shared->stream) != GPUMEM_OK ||
            gpumem_stream_create(device, NULL, &shared->stream) != GPUMEM_OK)
            worker->failed = "a stream for another";
    }
    pthread_rwlock_unlock(&shared->lock);
}

static void trim(struct worker *worker) {
    if (draw(worker, 3))
        MUST(gpumem_resource_trim(worker->world->cache, (size_t)draw(worker, 64) * MIB));
    else
        MUST(gpumem_device_trim(device, (int)draw(worker, 2)));
}

/* ---- Captures -------------------------------------------------------------------------------- */

static void capture_work(struct worker *worker, CUstream stream, struct slot **slots) {
    for (unsigned i = 0; i < CAPTURED && !worker->failed; i++) {
        struct live made = {.mark = (unsigned char)draw(worker, 256)};
        slots[i] = take_slot(worker);
        slots[i]->wanted = made.mark;
        allocate_one_on(worker, &made, stream);
        if (!made.buffer)
            return;
        queue_read(worker, made.buffer, slots[i], stream);
        MUST(gpumem_buffer_free(made.buffer, NULL));
    }
}

static void launch(struct worker *worker, CUgraphExec exec, CUstream stream, struct slot **slots) {
    for (unsigned i = 0; i < 3; i++) {
        MUST(cu->cuGraphLaunch(exec, stream));
        for (unsigned j = 0; j < CAPTURED && slots[j]; j++) {
            MUST(gpumem_event_record(device, slots[j]->event, stream));
            slots[j]->used = 1;
            look(worker, slots[j]);
        }
        /* What is allocated between the launches is other memory. */
        struct live other = {.mark = (unsigned char)draw(worker, 256)};
        allocate_one_on(worker, &other, stream);
        MUST(gpumem_buffer_free(other.buffer, NULL));
    }
}

static void capture_on(struct worker *worker, gpumem_capture_pool *pool, CUstream stream) {
    CUgraph graph = NULL;
    CUgraphExec exec = NULL;
    struct slot *slots[CAPTURED] = {NULL};
    MUST(gpumem_capture_pool_begin(pool, stream));
    MUST(cu->cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    capture_work(worker, stream, slots);
    MUST(cu->cuStreamEndCapture(stream, &graph));
    MUST(gpumem_capture_pool_end(pool, stream));
    MUST(cu->cuGraphInstantiateWithFlags(&exec, graph, 0));
    if (worker->failed)
        return;
    launch(worker, exec, stream, slots);
    MUST(cu->cuGraphExecDestroy(exec));
    MUST(cu->cuGraphDestroy(graph));
    MUST(gpumem_capture_pool_destroy(pool, draw(worker, 2) ? stream : GPUMEM_STREAM_NONE));
}

/* On a stream of the worker's own: what another thread frees may name any of the shared ones, and a
 * capture must not begin on a stream meanwhile (docs/contexts.md). */
static void capture(struct worker *worker) {
    gpumem_capture_pool *pool = NULL;
    CUstream stream = NULL;
    MUST(gpumem_stream_create(device, NULL, &stream));
    MUST(gpumem_capture_pool_create(worker->world->cache, &pool));
    capture_on(worker, pool, stream);
    MUST(gpumem_stream_destroy(device, stream));
}

/* ---- Workers --------------------------------------------------------------------------------- */

static void step(struct worker *worker) {
    unsigned what = draw(worker, 100);
    if (what < 40)
        allocate_one(worker);
    else if (what < 70)
        free_one(worker);
    else if (what < 82)
        swap_one(worker);
    else if (what < 92)
        use_elsewhere(worker);
    else if (what < 96)
        end_stream(worker);
    else if (what < 98)
        trim(worker);
    else
        capture(worker);
}

/* A thread's life; the last one says that it is done, and ends while the cache does. */
static void *live(void *data) {
    struct worker *worker = data;
    use_context();
    for (unsigned i = 0; i < STEPS && !worker->failed; i++)
        step(worker);
    while (worker->done && worker->count)
        free_one(worker);
    for (unsigned i = 0; worker->done && i < SLOTS; i++)
        look(worker, &worker->slots[i]);
    leave_context();
    if (worker->done)
        pthread_barrier_wait(worker->done);
    return NULL;
}

static void begin_worker(struct worker *worker, struct world *world, uint64_t seed) {
    *worker = (struct worker){.world = world, .random = seed};
    void *seen = MADE_CU(void *, cuMemHostAlloc, SLOTS *PROBE, 0);
    worker->seen = seen;
    OK_CU(cu->cuMemAlloc_v2(&worker->landing, SLOTS * PROBE));
    for (unsigned i = 0; i < SLOTS; i++)
        worker->slots[i].event = NEW_EVENT();
}

static void end_worker(struct worker *worker) {
    if (worker->failed)
        fail_msg("%s (%s)", worker->failed, gpumem_last_error()->message);
    for (unsigned i = 0; i < SLOTS; i++)
        OK(gpumem_event_destroy(device, worker->slots[i].event));
    OK_CU(cu->cuMemFree_v2(worker->landing));
    OK_CU(cu->cuMemFreeHost(worker->seen));
}

static void run_lives(struct worker *workers, pthread_t *threads) {
    pthread_barrier_t done;
    pthread_barrier_init(&done, NULL, WORKERS + 1);
    for (int round = 0; round < LIVES; round++) {
        for (int i = 0; i < WORKERS; i++) {
            workers[i].done = round == LIVES - 1 ? &done : NULL;
            assert_int_equal(pthread_create(&threads[i], NULL, live, &workers[i]), 0);
        }
        for (int i = 0; round < LIVES - 1 && i < WORKERS; i++)
            assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    pthread_barrier_wait(&done);
    for (int i = 0; i < WORKERS; i++)
        workers[i].done = NULL;
}

/* The cache ends while the threads end that used it. */
static void run_epoch(struct world *world, gpumem_resource *upstream, uint64_t seed) {
    struct worker workers[WORKERS];
    pthread_t threads[WORKERS];
    world->cache = NEW_CACHING_WITH(upstream, .thread_bytes = MIB, .committed_ratio = 1);
    for (unsigned i = 0; i < WORKERS; i++)
        begin_worker(&workers[i], world, seed * WORKERS + i);
    run_lives(workers, threads);
    for (unsigned i = 0; i < WORKERS; i++)
        if (workers[i].failed)
            fail_msg("worker %u: %s", i, workers[i].failed);
    for (size_t i = 0; i < COUNT(world->places); i++) {
        OK(gpumem_buffer_free(world->places[i].buffer, NULL));
        world->places[i] = (struct live){0};
    }
    OK(gpumem_resource_destroy(world->cache));
    for (unsigned i = 0; i < WORKERS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (unsigned i = 0; i < WORKERS; i++)
        end_worker(&workers[i]);
    for (unsigned i = 0; i < STREAMS; i++)
        atomic_store(&world->streams[i].buffers, 0);
}

static uint64_t seed_of_today(void) {
    const char *given = getenv("GPUMEM_CACHING_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 10) : 20260917;
    print_message("GPUMEM_CACHING_SEED=%llu\n", (unsigned long long)seed);
    return seed;
}

static void run(gpumem_resource *upstream, int host) {
    struct world world = {.host = host};
    pthread_mutex_init(&world.lock, NULL);
    use_context();
    for (unsigned i = 0; i < STREAMS; i++) {
        pthread_rwlock_init(&world.streams[i].lock, NULL);
        world.streams[i].stream = NEW_STREAM();
    }
    uint64_t seed = seed_of_today();
    for (uint64_t epoch = 0; epoch < EPOCHS; epoch++)
        run_epoch(&world, upstream, seed + epoch);
    for (unsigned i = 0; i < STREAMS; i++) {
        OK(gpumem_stream_destroy(device, world.streams[i].stream));
        pthread_rwlock_destroy(&world.streams[i].lock);
    }
    leave_context();
    pthread_mutex_destroy(&world.lock);
    OK(gpumem_resource_destroy(upstream));
}

TEST_IS(random_use_of_device_memory_keeps_every_byte, run(new_own_pool(), 0));
TEST_IS(random_use_of_memory_that_moves_keeps_every_byte, run(NEW_VIRTUAL(), 0));
TEST_IS(random_use_of_pinned_memory_keeps_every_byte, run(NEW_PINNED(), 1));
