/* What the sweeps over the caching resource do: of driver calls, and of host memory. */
#ifndef FAULT_CACHING_ACTS_H
#define FAULT_CACHING_ACTS_H

#include "caching_test.h"
#include "library_sweeps.h"

struct subject {
    gpumem_resource *upstream, *cache, *made;
    gpumem_buffer *buffer;
    gpumem_capture_pool *pool;
    CUstream stream, other;
    size_t bytes;
    int begun;
};

/* Memory is made as often as calls are made to fail: little of it. */
#define SMALL_SEGMENTS GPUMEM_OPTIONS(gpumem_caching_options, .segment_bytes = 2 * MIB)

static inline gpumem_resource *make_small_cache(gpumem_resource *upstream) {
    gpumem_resource *cache;
    OK(gpumem_caching_resource_create(upstream, SMALL_SEGMENTS, &cache));
    return cache;
}

/* ---- What is done ---------------------------------------------------------------------------- */

static inline int allocate_it(void *user) {
    struct subject *s = user;
    s->buffer = NULL;
    return (int)gpumem_buffer_allocate(s->cache, s->bytes,
                                       GPUMEM_BUFFER_OPTIONS(.stream = s->stream), &s->buffer);
}

static inline void free_it(void *user) {
    struct subject *s = user;
    OK(gpumem_buffer_free(s->buffer, NULL));
    settle(user);
}

static inline int free_after_another_stream(void *user) {
    struct subject *s = user;
    int result = allocate_it(user);
    if (result)
        return result;
    /* So little that it is done at once, unless work is to wait. */
    result = (int)gpumem_buffer_fill(s->buffer, 0, 4 * KIB, 1, s->other);
    OK(gpumem_buffer_free(s->buffer, NULL));
    return result;
}

static inline int trim_it(void *user) {
    struct subject *s = user;
    int result = free_after_another_stream(user);
    return result ? result : (int)gpumem_resource_trim(s->cache, 0);
}

static inline int forget_it(void *user) {
    struct subject *s = user;
    int result = allocate_it(user);
    if (result)
        return result;
    OK(gpumem_buffer_free(s->buffer, NULL));
    return (int)gpumem_caching_forget_stream(s->cache, s->stream);
}

/* In a thread of its own, which ends with the memory in its cache. */
static inline void *allocate_and_end(void *user) {
    struct subject *s = user;
    if (allocate_it(user) == 0)
        OK(gpumem_buffer_free(s->buffer, NULL));
    return NULL;
}

static inline int end_thread(void *user) {
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, allocate_and_end, user), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    return 0;
}

static inline int capture_it(void *user) {
    struct subject *s = user;
    s->pool = NULL;
    s->begun = 0;
    int result = (int)gpumem_capture_pool_create(s->cache, &s->pool);
    if (!result)
        result = (int)gpumem_capture_pool_begin(s->pool, s->stream);
    if (result)
        return result;
    s->begun = 1;
    result = free_after_another_stream(user);
    OK(gpumem_capture_pool_end(s->pool, s->stream));
    s->begun = 0;
    if (!result)
        result = (int)gpumem_capture_pool_destroy(s->pool, s->stream);
    if (!result)
        s->pool = NULL;
    return result;
}

static inline void end_capture(void *user) {
    struct subject *s = user;
    if (s->pool && s->begun)
        OK(gpumem_capture_pool_end(s->pool, s->stream));
    OK(gpumem_capture_pool_destroy(s->pool, GPUMEM_STREAM_NONE));
    s->pool = NULL;
    settle(user);
}

static inline int make_and_end(void *user) {
    struct subject *s = user;
    gpumem_resource *before = s->cache;
    int result = (int)gpumem_caching_resource_create(s->upstream, SMALL_SEGMENTS, &s->made);
    if (result)
        return result;
    s->cache = s->made;
    result = free_after_another_stream(user);
    s->cache = before;
    int ended = (int)gpumem_resource_destroy(s->made);
    if (!ended)
        s->made = NULL;
    return result ? result : ended;
}

/* What an act could not end is ended in a second try. */
static inline void recover_it(void *user) {
    struct subject *s = user;
    end_capture(user);
    OK(gpumem_resource_destroy(s->made));
    s->made = NULL;
    settle(user);
}

/* Queued work waits until something waits for it, so that frees find streams busy. */
static inline int open_late_device(void **state) {
    setenv("SOFTGPU_SCHEDULE", "late", 1);
    return begin_sweeps(state);
}

#endif
