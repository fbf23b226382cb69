/*
 * Sweeps over pages that move in a cache over virtual memory, with a peer. Whichever call fails,
 * blocks keep their bytes and addresses, and no more is committed.
 */
#include "caching_test.h"
#include "library_sweeps.h"

static int begin(void **state) {
    setenv("SOFTGPU_DEVICES", "2", 0);
    return begin_sweeps(state);
}

ALL_TESTS(begin, end_sweeps);

#define PARTS 8

static struct subject {
    gpumem_resource *cache;
    gpumem_buffer *parts[PARTS], *large;
    CUstream stream;
    CUdeviceptr addresses[PARTS];
    int64_t told; /* bytes, by the watch of ranges */
} subject;

static gpumem_status added(void *user, const gpumem_watch_event *event) {
    ((struct subject *)user)->told += (int64_t)event->bytes;
    return GPUMEM_OK;
}

static void gone(void *user, const gpumem_watch_event *event) {
    ((struct subject *)user)->told -= (int64_t)event->bytes;
}

/* Every other part stays; what lies between has pages that can move. */
static void prepare(void *user) {
    struct subject *s = user;
    for (size_t i = 0; i < PARTS; i++) {
        s->parts[i] = allocate_on(s->cache, 4 * MIB, NULL);
        s->addresses[i] = gpumem_buffer_pointer(s->parts[i]);
        OK(gpumem_buffer_fill(s->parts[i], 0, 4 * MIB, (unsigned char)(i + 1), NULL));
    }
    for (size_t i = 0; i < PARTS; i += 2) {
        OK(gpumem_buffer_free(s->parts[i], NULL));
        s->parts[i] = NULL;
    }
    synchronize(NULL);
}

static int move(void *user) {
    struct subject *s = user;
    s->large = NULL;
    int result = (int)gpumem_buffer_allocate(s->cache, 12 * MIB,
                                             GPUMEM_BUFFER_OPTIONS(.stream = s->stream), &s->large);
    if (result == GPUMEM_OK)
        result = (int)gpumem_buffer_fill(s->large, 0, 12 * MIB, 77, s->stream);
    return result;
}

static void look_and_end(void *user) {
    struct subject *s = user;
    settle(NULL);
    assert_true(stats_of(s->cache).committed_bytes <= 34 * MIB);
    for (size_t i = 1; i < PARTS; i += 2) {
        unsigned char seen[2] = {0};
        if (!s->parts[i])
            continue; /* the sweep's first run prepares nothing */
        assert_true(gpumem_buffer_pointer(s->parts[i]) == s->addresses[i]);
        OK(gpumem_buffer_read(s->parts[i], 0, &seen[0], 1, NULL));
        OK(gpumem_buffer_read(s->parts[i], 4 * MIB - 1, &seen[1], 1, NULL));
        synchronize(NULL);
        assert_int_equal(seen[0], i + 1);
        assert_int_equal(seen[1], i + 1);
        OK(gpumem_buffer_free(s->parts[i], NULL));
        s->parts[i] = NULL;
    }
    OK(gpumem_buffer_free(s->large, NULL));
    s->large = NULL;
    settle(NULL);
}

TEST(pages_that_move_are_all_or_nothing) {
    const int peers[] = {1};
    gpumem_resource *upstream = NEW_VIRTUAL(.peers = peers, .peer_count = 1);
    subject.cache = NEW_CACHING_WITH(upstream, .committed_ratio = 1);
    subject.stream = NEW_STREAM();
    prepare(&subject);
    OK(move(&subject));
    assert_true(caching_info_of(subject.cache).pages_moved >= 4);
    look_and_end(&subject);
    gpumem_watch *watch =
        MADE(gpumem_watch *, gpumem_resource_watch_ranges, subject.cache, added, gone, &subject);
    SWEEP(.name = "move pages", .prepare = prepare, .act = move, .recover = look_and_end,
          .undo = look_and_end, .may_succeed = true, .caches_may_shrink = true, .user = &subject);
    DESTROY(subject.stream, subject.cache, upstream);
    assert_int_equal(subject.told, 0); /* whatever failed, what had come has gone */
    OK(gpumem_watch_destroy(watch));
}

static int watch_ranges(void *user) {
    gpumem_watch *watch = NULL;
    int result = (int)gpumem_resource_watch_ranges(subject.cache, added, gone, &subject, &watch);
    *(gpumem_watch **)user = watch;
    return result;
}

static void end_watch(void *user) {
    OK(gpumem_watch_destroy(*(gpumem_watch **)user));
    subject.told = 0;
    settle(NULL);
}

TEST(a_watch_of_ranges_begins_or_hears_nothing) {
    gpumem_watch *watch = NULL;
    gpumem_resource *upstream = NEW_VIRTUAL();
    subject.cache = NEW_CACHING(upstream);
    gpumem_buffer *buffer = allocate_on(subject.cache, 40 * MIB, NULL);
    sweep_act("watch ranges", watch_ranges, end_watch, &watch);
    DESTROY(buffer, subject.cache, upstream);
}

static int reserve(void *user) {
    subject.cache = NULL;
    return (int)gpumem_caching_resource_create(
        user, GPUMEM_CACHING_OPTIONS(.reserve_bytes = 8 * MIB), &subject.cache);
}

static void end_reserve(void *user) {
    OK(gpumem_resource_destroy(subject.cache));
    subject.cache = NULL;
    settle(NULL);
}

TEST(a_reserve_is_taken_whole_or_not_at_all) {
    gpumem_resource *upstream = NEW_VIRTUAL();
    sweep_act("reserve", reserve, end_reserve, upstream);
    DESTROY(upstream);
}
