/*
 * Whole or nothing through wrappers: whichever driver call fails below them, in whichever way, an
 * allocation or growth that is refused leaves nothing, neither with the driver nor in what the
 * wrapper knows.
 */
#include "library_sweeps.h"

#define CAPACITY (64 * MIB)

struct subject {
    gpumem_resource *resource;
    gpumem_buffer *buffer;
    unsigned asked;
};

/* ---- The wrappers ---------------------------------------------------------------------------- */

static gpumem_failure_answer once_more(void *user, const gpumem_failure *failure) {
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

typedef gpumem_status (*wrap_fn)(gpumem_resource *upstream, struct subject *subject,
                                 gpumem_resource **resource);

static gpumem_status limit(gpumem_resource *upstream, struct subject *s,
                           gpumem_resource **resource) {
    return gpumem_limit_resource_create(upstream, GIB, resource);
}

static gpumem_status logging(gpumem_resource *upstream, struct subject *s,
                             gpumem_resource **resource) {
    return gpumem_logging_resource_create(
        upstream, GPUMEM_OPTIONS(gpumem_logging_options, .level = GPUMEM_LOG_DEBUG), resource);
}

static gpumem_status trace(gpumem_resource *upstream, struct subject *s,
                           gpumem_resource **resource) {
    return gpumem_trace_resource_create(
        upstream, GPUMEM_TRACE_OPTIONS(.write = take, .user = &written), resource);
}

static gpumem_status tracking(gpumem_resource *upstream, struct subject *s,
                              gpumem_resource **resource) {
    return gpumem_tracking_resource_create(upstream, GPUMEM_TRACKING_OPTIONS(.frames = 8),
                                           resource);
}

static gpumem_status alignment(gpumem_resource *upstream, struct subject *s,
                               gpumem_resource **resource) {
    return gpumem_alignment_resource_create(
        upstream, GPUMEM_ALIGNMENT_OPTIONS(.alignment = 8 * MIB, .size_multiple = 4 * MIB),
        resource);
}

static gpumem_status failure(gpumem_resource *upstream, struct subject *s,
                             gpumem_resource **resource) {
    return gpumem_failure_resource_create(
        upstream, GPUMEM_FAILURE_OPTIONS(.fn = once_more, .user = s), resource);
}

/* ---- What is done through them --------------------------------------------------------------- */

static int allocate(void *user) {
    struct subject *s = user;
    s->buffer = NULL;
    return (int)gpumem_buffer_allocate(s->resource, 5 * MIB,
                                       GPUMEM_OPTIONS(gpumem_buffer_options, .capacity = CAPACITY),
                                       &s->buffer);
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
    gpumem_stats stats = {.size = sizeof stats};
    gpumem_resource_properties properties = {.size = sizeof properties};
    size_t known = 0;
    OK(gpumem_resource_get_stats(s->resource, &stats));
    assert_int_equal(stats.allocations, 0);
    assert_int_equal(stats.in_use_bytes, 0);
    OK(gpumem_resource_get_properties(s->resource, &properties));
    if (strcmp(properties.kind, "tracking") == 0)
        OK(gpumem_tracking_visit(s->resource, count_one, &known));
    assert_int_equal(known, 0);
}

static void sweep_growth(struct subject *s) {
    assert_int_equal(allocate(s), 0);
    OK(gpumem_buffer_fill(s->buffer, 0, 5 * MIB, 0x3c, NULL));
    synchronize(NULL);
    CUdeviceptr address = gpumem_buffer_pointer(s->buffer);
    sweep_run(&(struct sweep){.name = "grow",
                              .act = grow,
                              .recover = settle,
                              .undo = shrink_back,
                              .may_succeed = true, /* leaving the context */
                              .lost = quarantined,
                              .explain = last_message,
                              .user = s});
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
    sweep_run(&(struct sweep){.name = "free",
                              .act = allocate_and_free,
                              .recover = settle,
                              .undo = settle,
                              .may_succeed = true, /* freeing cannot fail for its caller */
                              .lost = quarantined,
                              .explain = last_message,
                              .user = s});
    check_nothing_known(s);
    sweep_growth(s);
    check_nothing_known(s);
}

static gpumem_resource *virtual_resource(void) {
    return NEW_VIRTUAL(.chunk_maximum = 4 * MIB);
}

static void sweep_wrapper(wrap_fn wrap) {
    struct subject subject = {.asked = 0};
    gpumem_resource *upstream = virtual_resource();
    OK(wrap(upstream, &subject, &subject.resource));
    sweep_all(&subject);
    if (wrap == failure)
        assert_true(subject.asked > 0); /* softgpu's faults say out of memory where they can */
    DESTROY(subject.resource, upstream);
}

TEST(allocating_through_a_limit_is_all_or_nothing) {
    sweep_wrapper(limit);
}

TEST(allocating_through_a_log_is_all_or_nothing) {
    sweep_wrapper(logging);
}

TEST(allocating_through_a_trace_is_all_or_nothing) {
    sweep_wrapper(trace);
    assert_true(written > 1000);
}

TEST(allocating_through_tracking_is_all_or_nothing) {
    sweep_wrapper(tracking);
}

TEST(allocating_through_alignment_is_all_or_nothing) {
    sweep_wrapper(alignment);
}

TEST(allocating_through_a_failure_callback_is_all_or_nothing) {
    sweep_wrapper(failure);
}

TEST(allocating_through_a_fallback_is_all_or_nothing) {
    struct subject subject = {.asked = 0};
    gpumem_resource *first = virtual_resource(), *second = virtual_resource();
    subject.resource = NEW_FALLBACK(first, second);
    sweep_all(&subject);
    DESTROY(subject.resource, second, first);
}

/* ---- Making wrappers: no driver call, so nothing but memory and files can be missing --------- */

TEST(creating_a_wrapper_makes_no_driver_call) {
    static const wrap_fn all[] = {limit, logging, trace, tracking, alignment, failure};
    struct subject subject = {.asked = 0};
    gpumem_resource *upstream = virtual_resource(), *made;
    for (size_t i = 0; i < COUNT(all); i++) {
        assert_int_equal(soft->fault_arm("*", 0, CUDA_ERROR_UNKNOWN, SOFTGPU_FAULT_BEFORE), 0);
        gpumem_status status = all[i](upstream, &subject, &made);
        assert_int_equal(soft->fault_disarm(), 0);
        OK(status);
        OK(gpumem_resource_destroy(made));
    }
    OK(gpumem_resource_destroy(upstream));
}

static int begin(void **state) {
    gpumem_set_log(NULL, NULL, GPUMEM_LOG_ERROR);
    return begin_sweeps(state);
}

ALL_TESTS(begin, end_sweeps);
