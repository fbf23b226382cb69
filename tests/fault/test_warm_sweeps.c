/*
 * Sweeps over resources whose caches are warm and stay so: whichever driver call fails, what is
 * kept may have become less, and nothing else has changed: no buffer, no count, no byte in use.
 */
#include "library_sweeps.h"

#include <math.h>

ALL_TESTS(begin_sweeps, end_sweeps);

struct subject {
    gpumem_resource *resource;
    gpumem_buffer *kept, *buffer;
    CUstream stream, other;
    gpumem_stats before; /* of the device, with caches warm */
    size_t bytes;
};

static gpumem_stats now(void) {
    return device_stats();
}

/* Queued work is done, and no context current; caches stay. */
static void calm(void) {
    CUcontext context;
    pop_contexts(NULL);
    cu->cuCtxPushCurrent_v2(gpumem_device_context(device));
    cu->cuCtxSynchronize();
    cu->cuCtxPopCurrent_v2(&context);
}

static int allocate(void *user) {
    struct subject *s = user;
    s->before = now();
    s->buffer = NULL;
    return (int)gpumem_buffer_allocate(s->resource, s->bytes,
                                       GPUMEM_BUFFER_OPTIONS(.stream = s->stream), &s->buffer);
}

/* An allocation that failed has changed no count but that of failures. */
static void check_counts(void *user) {
    struct subject *s = user;
    gpumem_stats after = now();
    calm();
    assert_null(s->buffer);
    MEMBERS(after, (allocations, s->before.allocations), (in_use_bytes, s->before.in_use_bytes),
            (allocations_total, s->before.allocations_total));
    if (after.cached_bytes > s->before.cached_bytes)
        fail_msg("%lu bytes are kept, where it was %lu", (unsigned long)after.cached_bytes,
                 (unsigned long)s->before.cached_bytes);
    assert_true(after.committed_bytes <= s->before.committed_bytes + after.quarantined_bytes);
    assert_int_equal(after.deferred_frees, 0);
}

/* And nothing of it is kept: the next finds halves only. */
static void free_it(void *user) {
    struct subject *s = user;
    OK(gpumem_buffer_free(s->buffer, s->stream));
    settle(user);
}

/* What a fault has emptied is filled again before the next: with halves, so that some of an
 * allocation may be at hand and some is not. */
static void warm(void *user) {
    struct subject *s = user;
    gpumem_buffer *halves[2];
    for (size_t i = 0; i < COUNT(halves); i++)
        halves[i] = NEW_BUFFER_WITH(s->resource, s->bytes / 2, .stream = s->stream);
    for (size_t i = 0; i < COUNT(halves); i++)
        OK(gpumem_buffer_free(halves[i], s->stream));
    calm();
    assert_true(now().cached_bytes >= s->bytes / 2);
}

static void sweep_warm(const char *name, gpumem_resource *resource, size_t bytes) {
    struct subject s = {.resource = resource, .bytes = bytes};
    s.stream = NEW_STREAM();
    s.other = NEW_STREAM();
    s.kept = NEW_BUFFER(resource, bytes);
    OK(fill_now(s.kept, 0, bytes, 0x5d, s.other));
    sweep_run(&(struct sweep){.name = name,
                              .prepare = warm,
                              .act = allocate,
                              .recover = check_counts,
                              .undo = free_it,
                              .may_succeed = true, /* leaving the context */
                              .lost = quarantined,
                              .caches_may_shrink = true,
                              .explain = last_message,
                              .user = &s});
    unsigned char last = 0;
    OK(read_now(s.kept, bytes - 1, &last, 1, s.other));
    assert_int_equal(last, 0x5d);
    OK(gpumem_buffer_free(s.kept, NULL));
    settle(NULL);
    DESTROY(resource, s.stream, s.other);
}

TEST(failures_beside_cached_virtual_memory_change_nothing_in_use) {
    gpumem_resource *resource =
        NEW_VIRTUAL(.maximum_chunk_bytes = 2 * MIB, .cache_bytes = 64 * MIB);
    sweep_warm("allocate beside a warm cache of ranges", resource, 4 * MIB);
}

/* ---- Buffers that change --------------------------------------------------------------------- */

static int grow(void *user) {
    struct subject *s = user;
    s->before = now();
    return (int)gpumem_buffer_grow(s->kept, s->bytes + 4 * MIB, NULL);
}

static void shrink_back(void *user) {
    struct subject *s = user;
    OK(gpumem_buffer_shrink(s->kept, s->bytes, NULL));
    settle(user);
}

static int recommit(void *user) {
    struct subject *s = user;
    s->before = now();
    return (int)gpumem_buffer_recommit(s->kept, 0, s->bytes);
}

static void decommit_again(void *user) {
    struct subject *s = user;
    settle(user);
    OK(gpumem_buffer_decommit(s->kept, 0, s->bytes, NULL, NULL));
    settle(user);
}

/* One handle is at hand, of two or more that are needed. */
static void keep_one_handle(void *user) {
    struct subject *s = user;
    gpumem_buffer *one = NEW_BUFFER_WITH(s->resource, 4 * MIB, .stream = s->stream);
    OK(gpumem_buffer_shrink(one, 2 * MIB, NULL));
    OK(gpumem_buffer_free(one, s->stream));
    calm();
    assert_true(now().cached_bytes >= 4 * MIB);
}

static void sweep_change(const char *name, int (*act)(void *), void (*undo)(void *),
                         struct subject *s) {
    sweep_run(&(struct sweep){.name = name,
                              .prepare = keep_one_handle,
                              .act = act,
                              .recover = check_counts,
                              .undo = undo,
                              .may_succeed = true, /* leaving the context */
                              .lost = quarantined,
                              .caches_may_shrink = true,
                              .explain = last_message,
                              .user = s});
    settle(NULL);
}

TEST(failed_changes_beside_a_warm_cache_change_nothing_in_use) {
    struct subject s = {.bytes = 4 * MIB};
    s.stream = NEW_STREAM();
    s.resource =
        NEW_VIRTUAL(.maximum_chunk_bytes = 2 * MIB, .exact_growth = 1, .cache_bytes = 64 * MIB);
    s.kept = NEW_BUFFER_WITH(s.resource, s.bytes, .capacity = 16 * MIB);
    sweep_change("grow beside a warm cache", grow, shrink_back, &s);
    decommit_again(&s);
    sweep_change("recommit beside a warm cache", recommit, decommit_again, &s);
    OK(gpumem_buffer_free(s.kept, NULL));
    settle(NULL);
    DESTROY(s.resource, s.stream);
}

TEST(failures_beside_cached_pinned_slabs_change_nothing_in_use) {
    gpumem_resource *resource = NEW_PINNED(.slab_bytes = 2 * MIB);
    sweep_warm("allocate beside warm slabs", resource, MIB + 4096);
}

TEST(failures_beside_cached_segments_change_nothing_in_use) {
    gpumem_resource *memory = NEW_VIRTUAL();
    /* All segments stay: giving idle ones back first leaves an event for later use, which is more
     * than there was. */
    gpumem_resource *cache = NEW_CACHING_WITH(memory, .segment_bytes = 2 * MIB,
                                              .idle_bytes = SIZE_MAX, .committed_ratio = INFINITY);
    sweep_warm("allocate beside warm segments", cache, 3 * MIB);
    OK(gpumem_resource_destroy(memory));
}
