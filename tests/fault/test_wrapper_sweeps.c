/*
 * Whole or nothing through wrappers: whichever driver call fails below them, in whichever way, an
 * allocation or growth that is refused leaves nothing, neither with the driver nor in what the
 * wrapper knows.
 */
#include "kinds.h"
#include "library_sweeps.h"

#define CAPACITY (64 * MIB)

struct subject {
    gpumem_resource *resource;
    gpumem_buffer *buffer;
    unsigned asked;
};

/* ---- The wrappers ---------------------------------------------------------------------------- */

static gpumem_failure_answer once_more(void *user, const gpumem_allocation_failure *failure) {
    struct subject *s = user;
    s->asked++;
    return failure->attempt < 2 ? GPUMEM_FAILURE_RETRY : GPUMEM_FAILURE_GIVE_UP;
}

static int take(void *user, const char *text, size_t bytes) {
    size_t *written = user;
    *written += bytes;
    return text[bytes - 1] == '\n' ? 0 : 1;
}

static size_t written;

/* Those of kinds.def, but for options that act on what is swept. */
static gpumem_status wrap(enum wrapper which, struct subject *s, gpumem_resource *upstream,
                          gpumem_resource *spare) {
    if (which == WRAPPER_logging)
        return gpumem_logging_resource_create(
            upstream, GPUMEM_LOGGING_OPTIONS(.level = GPUMEM_LOG_DEBUG), &s->resource);
    if (which == WRAPPER_trace)
        return gpumem_trace_resource_create(
            upstream, GPUMEM_TRACE_OPTIONS(.write = take, .user = &written), &s->resource);
    if (which == WRAPPER_alignment)
        return gpumem_alignment_resource_create(
            upstream, GPUMEM_ALIGNMENT_OPTIONS(.alignment = 8 * MIB, .size_multiple = 4 * MIB),
            &s->resource);
    if (which == WRAPPER_failure_callback)
        return gpumem_failure_callback_resource_create(
            upstream, GPUMEM_FAILURE_CALLBACK_OPTIONS(.fn = once_more, .user = s), &s->resource);
    return make_wrapper(which, upstream, spare, &s->resource);
}

/* ---- What is done through them --------------------------------------------------------------- */

static int allocate(void *user) {
    struct subject *s = user;
    s->buffer = NULL;
    return (int)gpumem_buffer_allocate(s->resource, 5 * MIB,
                                       GPUMEM_BUFFER_OPTIONS(.capacity = CAPACITY), &s->buffer);
}

static void free_buffer(void *user) {
    struct subject *s = user;
    OK(gpumem_buffer_free(s->buffer, NULL));
    settle(user);
}

static int allocate_and_free(void *user) {
    struct subject *s = user;
    int result = allocate(user);
    if (!result)
        (void)gpumem_buffer_free(s->buffer, NULL);
    return result;
}

static int grow(void *user) {
    struct subject *s = user;
    return (int)gpumem_buffer_grow(s->buffer, 21 * MIB, NULL);
}

static void shrink_back(void *user) {
    struct subject *s = user;
    OK(gpumem_buffer_shrink(s->buffer, 5 * MIB, NULL));
    settle(user);
}

static int count_one(void *user, const gpumem_tracked *tracked) {
    ++*(size_t *)user;
    return 0;
}

/* The wrapper's own counters, and what tracking knows. */
static void check_nothing_known(const struct subject *s) {
    size_t known = 0;
    gpumem_stats stats = stats_of(s->resource);
    MEMBERS(stats, (allocations, 0), (in_use_bytes, 0));
    gpumem_resource_properties properties = properties_of(s->resource);
    if (strcmp(properties.kind, "tracking") == 0)
        OK(gpumem_tracking_visit(s->resource, count_one, &known));
    assert_int_equal(known, 0);
}

static void sweep_growth(struct subject *s) {
    assert_int_equal(allocate(s), 0);
    OK(gpumem_buffer_fill(s->buffer, 0, 5 * MIB, 0x3c, NULL));
    synchronize(NULL);
    CUdeviceptr address = gpumem_buffer_pointer(s->buffer);
    sweep_act("grow", grow, shrink_back, s);
    unsigned char ends[2] = {0};
    assert_int_equal(gpumem_buffer_pointer(s->buffer), address);
    assert_int_equal(gpumem_buffer_size(s->buffer), 5 * MIB);
    OK(gpumem_buffer_read(s->buffer, 0, ends, 1, NULL));
    OK(gpumem_buffer_read(s->buffer, 5 * MIB - 1, ends + 1, 1, NULL));
    synchronize(NULL);
    assert_int_equal(ends[0], 0x3c);
    assert_int_equal(ends[1], 0x3c);
    free_buffer(s);
}

static void sweep_all(struct subject *s) {
    sweep_run(&(struct sweep){.name = "allocate",
                              .act = allocate,
                              .recover = settle,
                              .undo = free_buffer,
                              .may_succeed = true, /* another try or resource; leaving a context */
                              .lost = quarantined,
                              .explain = last_message,
                              .user = s});
    check_nothing_known(s);
    sweep_act("free", allocate_and_free, settle, s);
    check_nothing_known(s);
    sweep_growth(s);
    check_nothing_known(s);
}

static gpumem_resource *virtual_resource(void) {
    return NEW_VIRTUAL(.maximum_chunk_bytes = 4 * MIB);
}

static void sweep_wrapper(enum wrapper which) {
    struct subject subject = {.asked = 0};
    gpumem_resource *upstream = virtual_resource(), *spare = virtual_resource();
    OK(wrap(which, &subject, upstream, spare));
    sweep_all(&subject);
    if (which == WRAPPER_failure_callback)
        assert_true(subject.asked > 0); /* softgpu's faults say out of memory where they can */
    DESTROY(subject.resource, spare, upstream);
    if (which == WRAPPER_trace)
        assert_true(written > 1000);
}

/* allocating_through_limit_is_all_or_nothing and so on; a cache has sweeps of its own, in
 * test_caching_sweeps_device.c and beside it. */
#define CACHE(name, ...)
#define WRAPPER(name, ...)                                                                         \
    TEST(allocating_through_##name##_is_all_or_nothing) {                                          \
        sweep_wrapper(WRAPPER_##name);                                                             \
    }
#include "kinds.def"

static int begin(void **state) {
    gpumem_set_log(NULL, NULL, GPUMEM_LOG_ERROR);
    return begin_sweeps(state);
}

ALL_TESTS(begin, end_sweeps);
