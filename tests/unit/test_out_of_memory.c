/* When memory runs out: a question to the program, and a second resource. */
#include "library_test.h"

#define SMALL (64 * MIB) /* the limit of what stands for device memory */

static gpumem_resource *pool, *limited;

static int setup(void **state) {
    if (open_device(state) != 0)
        return -1;
    pool = NEW_VIRTUAL();
    limited = NEW_LIMIT(pool, SMALL);
    return 0;
}

AFTER(close_device) {
    DESTROY(limited, pool);
}

EACH_TEST(setup, after);

/* ---- Asking ---------------------------------------------------------------------------------- */

/* What the program answers: frees its buffers one by one, then says what `last` says. */
struct answers {
    gpumem_buffer *spare[4];
    unsigned asked, spares;
    gpumem_failure_answer last;
    gpumem_allocation_failure failure;
    char message[256];
    gpumem_resource *recurse;
    CUstream free_on;
};

static gpumem_failure_answer answer(void *user, const gpumem_allocation_failure *failure) {
    struct answers *a = user;
    a->asked++;
    a->failure = *failure;
    snprintf(a->message, sizeof a->message, "%s", failure->message);
    if (a->recurse) {
        gpumem_buffer *none;
        if (gpumem_buffer_allocate(a->recurse, 2 * SMALL, NULL, &none) == GPUMEM_OK)
            return GPUMEM_FAILURE_GIVE_UP;
    }
    if (!a->spares)
        return a->last;
    (void)gpumem_buffer_free(a->spare[--a->spares], a->free_on);
    return GPUMEM_FAILURE_RETRY;
}

static gpumem_resource *asking(struct answers *answers, unsigned retries) {
    return NEW_FAILURE(limited, .fn = answer, .user = answers, .maximum_retries = retries);
}

TEST(memory_freed_by_the_failure_callback_is_used) {
    struct answers a = {.spares = 3};
    gpumem_resource *resource = asking(&a, 0);
    for (int i = 0; i < 3; i++)
        a.spare[i] = NEW_BUFFER(resource, 20 * MIB);
    gpumem_buffer *buffer = NEW_BUFFER(resource, 40 * MIB);
    assert_int_equal(a.asked, 2);
    MEMBERS(a.failure, (attempt, 2), (attempts_left, 7), (bytes, 40 * MIB));
    FAILS(OUT_OF_CAPACITY, a.failure.status);
    assert_ptr_equal(a.failure.resource, resource);
    assert_non_null(strstr(a.message, "exceed the limit"));
    DESTROY(buffer, a.spare[0], resource);
}

/* The answer frees what queued work still uses: the second try waits for it. */
TEST(a_retry_waits_for_frees_deferred_by_the_callback) {
    struct answers a = {.spares = 1};
    gpumem_resource *resource = asking(&a, 0);
    a.spare[0] = NEW_BUFFER(resource, 60 * MIB);
    a.free_on = NEW_STREAM();
    OK(gpumem_buffer_fill(a.spare[0], 0, 60 * MIB, 0x11, a.free_on));
    gpumem_buffer *buffer = NEW_BUFFER(resource, 60 * MIB);
    assert_int_equal(a.asked, 1);
    DESTROY(buffer, resource, a.free_on);
}

TEST(a_callback_that_gives_up_leaves_the_error) {
    struct answers a = {.last = GPUMEM_FAILURE_GIVE_UP};
    gpumem_resource *resource = asking(&a, 0);
    gpumem_buffer *none = NULL;
    char *before = soft->state_dump();
    FAILS(OUT_OF_CAPACITY, gpumem_buffer_allocate(resource, 2 * SMALL, NULL, &none));
    SAYS("exceed the limit");
    assert_int_equal(a.asked, 1);
    assert_null(none);
    SAME_STATE(before);
    OK(gpumem_resource_destroy(resource));
}

TEST(retries_end_if_the_callback_frees_nothing) {
    struct answers a = {.last = GPUMEM_FAILURE_RETRY};
    gpumem_resource *resource = asking(&a, 5);
    gpumem_buffer *none;
    FAILS(OUT_OF_CAPACITY, gpumem_buffer_allocate(resource, 2 * SMALL, NULL, &none));
    assert_int_equal(a.asked, 5);
    assert_int_equal(a.failure.attempts_left, 1);
    a.recurse = resource; /* what fails in an answer asks nobody */
    FAILS(OUT_OF_CAPACITY, gpumem_buffer_allocate(resource, 2 * SMALL, NULL, &none));
    assert_int_equal(a.asked, 10);
    OK(gpumem_resource_destroy(resource));
}

TEST(a_failing_growth_calls_the_callback) {
    struct answers a = {.spares = 1};
    gpumem_resource *resource = asking(&a, 0);
    a.spare[0] = NEW_BUFFER(resource, 50 * MIB);
    gpumem_buffer *buffer = NEW_BUFFER_WITH(resource, 4 * MIB, .capacity = GIB);
    OK(gpumem_buffer_grow(buffer, 32 * MIB, NULL));
    assert_int_equal(a.asked, 1);
    assert_int_equal(a.failure.bytes, 28 * MIB);
    FAILS(OUT_OF_CAPACITY, gpumem_buffer_grow(buffer, 100 * MIB, NULL));
    assert_int_equal(a.asked, 2);
    assert_int_equal(gpumem_buffer_size(buffer), 32 * MIB);
    OK(gpumem_buffer_shrink(buffer, MIB, NULL));
    DESTROY(buffer, resource);
}

TEST(other_failures_do_not_call_the_callback) {
    struct answers a = {.last = GPUMEM_FAILURE_RETRY};
    gpumem_resource *resource = asking(&a, 0), *none;
    gpumem_buffer *buffer;
    assert_int_equal(
        soft->fault_arm("cuMemAddressReserve", 0, CUDA_ERROR_INVALID_VALUE, SOFTGPU_FAULT_BEFORE),
        0);
    assert_int_not_equal(gpumem_buffer_allocate(resource, MIB, NULL, &buffer), GPUMEM_OK);
    assert_int_equal(soft->fault_disarm(), 1);
    assert_int_equal(a.asked, 0);
    FAILS(INVALID_ARGUMENT, gpumem_failure_callback_resource_create(limited, NULL, &none));
    OK(gpumem_resource_destroy(resource));
}

/* ---- Falling back ---------------------------------------------------------------------------- */

static void check_bytes(gpumem_buffer *buffer, unsigned char value) {
    size_t size = gpumem_buffer_size(buffer);
    unsigned char *host = malloc(size);
    assert_non_null(host);
    OK(gpumem_buffer_fill(buffer, 0, size, value, NULL));
    OK(gpumem_buffer_read(buffer, 0, host, size, NULL));
    synchronize(NULL);
    for (size_t i = 0; i < size; i++)
        if (host[i] != value)
            fail_msg("byte %zu is %d", i, host[i]);
    free(host);
}

TEST(a_fallback_allocates_what_the_first_resource_cannot) {
    gpumem_resource *pinned = NEW_PINNED();
    gpumem_resource *both = NEW_FALLBACK(limited, pinned);
    gpumem_resource_properties p = properties_of(both);
    MEMBERS(p, (host_accessible, 0), (exportable, 1));
    gpumem_buffer *first = NEW_BUFFER(both, 60 * MIB), *second = NEW_BUFFER(both, 8 * MIB);
    gpumem_resource *source = MADE(gpumem_resource *, gpumem_fallback_get_source, first);
    assert_ptr_equal(source, limited);
    OK(gpumem_fallback_get_source(second, &source));
    assert_ptr_equal(source, pinned);
    assert_null(gpumem_buffer_host_pointer(first));
    assert_non_null(gpumem_buffer_host_pointer(second));
    check_bytes(first, 0x5a);
    check_bytes(second, 0xa5);
    gpumem_stats now = device_stats(); /* once, where the memory is */
    MEMBERS(now, (in_use_bytes, 68 * MIB), (allocations, 2));
    gpumem_export *exported = NEW_EXPORT(first);
    OK(gpumem_export_destroy(exported));
    FAILS(NOT_SUPPORTED, gpumem_export_create(second, &exported));
    FAILS_SAYING(BUSY, "wrapped by 1 other", gpumem_resource_destroy(pinned));
    DESTROY(first, second);
    assert_int_equal(device_stats().allocations, 0);
    OK(gpumem_resource_trim(both, 0));
    assert_int_equal(device_stats().pinned_bytes, 0);
    FAILS(BUSY, gpumem_resource_destroy(pinned));
    DESTROY(both, pinned);
}

TEST(a_buffer_of_a_fallback_grows_in_its_own_resource) {
    gpumem_buffer *none;
    gpumem_resource *pinned = NEW_PINNED();
    gpumem_resource *both = NEW_FALLBACK(limited, pinned);
    gpumem_buffer *first = NEW_BUFFER_WITH(both, 4 * MIB, .capacity = GIB);
    OK(gpumem_buffer_grow(first, 60 * MIB, NULL));
    assert_int_equal(gpumem_buffer_size(first), 60 * MIB);
    FAILS(OUT_OF_CAPACITY, gpumem_buffer_grow(first, 70 * MIB, NULL));
    assert_int_equal(gpumem_buffer_size(first), 60 * MIB);
    /* What is to grow does not come from where it could not. */
    FAILS_SAYING(
        OUT_OF_CAPACITY, "cannot grow",
        gpumem_buffer_allocate(both, 8 * MIB, GPUMEM_BUFFER_OPTIONS(.capacity = GIB), &none));
    gpumem_buffer *second = NEW_BUFFER(both, 8 * MIB);
    FAILS(OUT_OF_CAPACITY, gpumem_buffer_grow(second, 10 * MIB, NULL));
    assert_int_equal(gpumem_buffer_size(second), 8 * MIB);
    OK(gpumem_buffer_free(second, NULL));
    OK(gpumem_buffer_shrink(first, MIB, NULL));
    assert_int_equal(device_stats().in_use_bytes, MIB);
    DESTROY(first, both, pinned);
}

TEST(an_error_of_a_fallback_names_both_reasons) {
    gpumem_buffer *none;
    gpumem_resource *narrow = NEW_LIMIT(pool, MIB);
    gpumem_resource *both = NEW_FALLBACK(limited, narrow);
    char *before = soft->state_dump();
    FAILS(OUT_OF_CAPACITY, gpumem_buffer_allocate(both, 2 * SMALL, NULL, &none));
    SAYS("limit of 67108864");
    SAYS("limit of 1048576");
    SAME_STATE(before);
    DESTROY(both, narrow);
    FAILS(INVALID_ARGUMENT, gpumem_fallback_resource_create(pool, pool, &both));
    gpumem_buffer *buffer = NEW_BUFFER(pool, MIB);
    FAILS(INVALID_ARGUMENT, gpumem_fallback_get_source(buffer, &both));
    OK(gpumem_buffer_free(buffer, NULL));
}

/* One is stream-ordered and the other is not: neither's memory is taken under queued work. */
TEST(frees_through_a_fallback_wait_for_streams) {
    gpumem_resource *ordered = NEW_POOL();
    gpumem_resource *both = NEW_FALLBACK(limited, ordered);
    struct gate gate = gate_with_stream();
    gpumem_buffer_options options = {.size = sizeof options, .stream = gate.stream};
    gpumem_buffer *first = MADE(gpumem_buffer *, gpumem_buffer_allocate, both, 60 * MIB, &options);
    gpumem_buffer *second = MADE(gpumem_buffer *, gpumem_buffer_allocate, both, 8 * MIB, &options);
    OK(gpumem_buffer_free(first, gate.stream));
    OK(gpumem_buffer_free(second, gate.stream));
    assert_int_equal(device_stats().deferred_frees, 2); /* the second by the driver */
    OK(gpumem_device_trim(device, 0));
    assert_int_equal(device_stats().deferred_frees, 2);
    gate_drain(&gate);
    OK(gpumem_device_trim(device, 1));
    assert_int_equal(device_stats().deferred_frees, 0);
    DESTROY(both, ordered, &gate);
}

/* A part of a chunk is committed memory too: what a buffer has is what the other resource took. */
TEST(a_buffer_of_a_fallback_counts_what_its_source_committed) {
    gpumem_resource *pinned, *both;
    pinned = NEW_PINNED();
    OK(gpumem_fallback_resource_create(limited, pinned, &both));
    gpumem_buffer *first = NEW_BUFFER(both, 60 * MIB - 1), *second = NEW_BUFFER(both, 8 * MIB - 1);
    assert_int_equal(gpumem_buffer_size(first), 60 * MIB - 1);
    assert_int_equal(gpumem_buffer_committed(first), 60 * MIB);
    assert_true(gpumem_buffer_committed(second) >= 8 * MIB - 1);
    DESTROY(first, second, both, pinned);
}
