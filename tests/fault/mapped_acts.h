/*
 * What sweeps over mapped memory by Vulkan and by dma-bufs share: the methods, and the steps whose
 * calls are made to fail. Header only, as library_sweeps.h is.
 */
#ifndef FAULT_MAPPED_ACTS_H
#define FAULT_MAPPED_ACTS_H

#include "library_sweeps.h"
#include "vulkan_test.h"

struct subject {
    gpumem_mapped_method method;
    gpumem_resource *mapped;  /* by that method */
    gpumem_resource *virtual; /* whose buffers get views by it */
    /* What an act has made and could not end: ended when calls answer again. */
    gpumem_resource *left;
    gpumem_ring *ring;
};

static inline gpumem_mapped_options options_of(const struct subject *s) {
    return (gpumem_mapped_options){.size = sizeof(gpumem_mapped_options),
                                   .method = s->method,
                                   .method_strict = 1,
                                   .force_non_coherent = 1,
                                   .capacity =
                                       s->method == GPUMEM_MAPPED_VULKAN_EXPORT ? 0 : 16 * MIB,
                                   .maximum_chunk_bytes = 4 * MIB};
}

static inline void begin_subject(struct subject *s, gpumem_mapped_method method) {
    *s = (struct subject){.method = method};
    const gpumem_mapped_options options = options_of(s);
    OK(gpumem_mapped_resource_create(device, &options, &s->mapped));
    s->virtual = NEW_VIRTUAL(.capacity = 16 * MIB, .maximum_chunk_bytes = 4 * MIB);
}

/* Resources with memory that was lost stay. */
static inline void end_subject(struct subject *s) {
    (void)gpumem_resource_destroy(s->mapped);
    (void)gpumem_resource_destroy(s->virtual);
}

/* What an act has left, when nothing is refused any more. */
static inline void end_what_is_left(struct subject *s) {
    if (s->ring)
        OK(gpumem_ring_destroy(s->ring));
    if (s->left)
        OK(gpumem_resource_destroy(s->left));
    s->ring = NULL;
    s->left = NULL;
}

/* ---- Acts: 0, or the status that a call answered --------------------------------------------- */

static inline int create_mapped(void *user) {
    struct subject *s = user;
    const gpumem_mapped_options options = options_of(s);
    return (int)gpumem_mapped_resource_create(device, &options, &s->left);
}

/* Each act has a buffer of its own: what a driver that refuses everything leaves mapped would be in
 * the way of the next. */
static inline int with_buffer(gpumem_resource *resource, size_t bytes,
                              gpumem_status (*act)(const struct subject *, gpumem_buffer *),
                              const struct subject *s) {
    gpumem_buffer *buffer = NULL;
    gpumem_status status = gpumem_buffer_allocate(resource, bytes, NULL, &buffer);
    if (status != GPUMEM_OK)
        return (int)status;
    status = act(s, buffer);
    gpumem_status freed = gpumem_buffer_free(buffer, NULL);
    return (int)(status == GPUMEM_OK ? freed : status);
}

/* At the buffer's end, which is in its last piece. */
static inline gpumem_status write_and_read(gpumem_buffer *buffer) {
    char bytes[16] = "fifteen letters";
    size_t at = gpumem_buffer_size(buffer) - 1000;
    gpumem_status status = gpumem_mapped_write(buffer, at, bytes, sizeof bytes);
    AND_THEN(status, gpumem_mapped_publish(buffer, at + 100, bytes, sizeof bytes, at + 200, 1));
    AND_THEN(status, gpumem_mapped_flush(buffer, 0, at));
    AND_THEN(status, gpumem_mapped_read(buffer, at, bytes, sizeof bytes));
    AND_THEN(status, gpumem_mapped_invalidate(buffer, 0, at));
    if (status == GPUMEM_OK)
        assert_string_equal(bytes, "fifteen letters");
    return status;
}

/* Whole or nothing for the buffer too, whose bytes stay. */
static inline gpumem_status grow(gpumem_buffer *buffer, const volatile unsigned char *host) {
    size_t bytes = gpumem_buffer_size(buffer);
    unsigned char last = host[bytes - 1];
    gpumem_status status = gpumem_buffer_grow(buffer, 14 * MIB, NULL);
    assert_int_equal(gpumem_buffer_size(buffer), status == GPUMEM_OK ? 14 * MIB : bytes);
    assert_int_equal(host[bytes - 1], last);
    return status;
}

static inline gpumem_status use(const struct subject *s, gpumem_buffer *buffer) {
    gpumem_status status = write_and_read(buffer);
    if (status != GPUMEM_OK || s->method == GPUMEM_MAPPED_VULKAN_EXPORT)
        return status;
    status = grow(buffer, gpumem_buffer_host_pointer(buffer));
    AND_THEN(status, write_and_read(buffer));
    AND_THEN(status, gpumem_buffer_shrink(buffer, 2 * MIB, NULL));
    return status == GPUMEM_OK ? write_and_read(buffer) : status;
}

static inline int use_mapped(void *user) {
    const struct subject *s = user;
    return with_buffer(s->mapped, 2 * MIB, use, s);
}

static inline gpumem_status punch(const struct subject *s, gpumem_buffer *buffer) {
    gpumem_status status = gpumem_buffer_decommit(buffer, 4 * MIB, 8 * MIB, NULL, NULL);
    AND_THEN(status, gpumem_buffer_recommit(buffer, 4 * MIB, 8 * MIB));
    return status == GPUMEM_OK ? write_and_read(buffer) : status;
}

static inline int punch_mapped(void *user) {
    const struct subject *s = user;
    return with_buffer(s->mapped, 16 * MIB, punch, s);
}

static inline gpumem_status view_and_grow(const struct subject *s, gpumem_buffer *buffer) {
    gpumem_buffer *view = NULL;
    gpumem_status status = gpumem_buffer_host_view(
        buffer,
        GPUMEM_HOST_VIEW_OPTIONS(.method = s->method, .method_strict = 1, .force_non_coherent = 1),
        &view);
    if (status != GPUMEM_OK)
        return status;
    memset(gpumem_buffer_host_pointer(view), 1, 6 * MIB);
    status = gpumem_mapped_flush(view, MIB, 4 * MIB);
    AND_THEN(status, grow(buffer, gpumem_buffer_host_pointer(view)));
    AND_THEN(status, gpumem_mapped_invalidate(view, MIB, 12 * MIB));
    gpumem_status ended = gpumem_buffer_free(view, NULL);
    return status == GPUMEM_OK ? ended : status;
}

static inline int view_virtual(void *user) {
    const struct subject *s = user;
    return with_buffer(s->virtual, 6 * MIB, view_and_grow, s);
}

static inline int with_ring(struct subject *s, const gpumem_ring_options *options) {
    gpumem_ring_chunk chunk = {.size = sizeof chunk};
    gpumem_status status = gpumem_ring_create(s->mapped, options, &s->ring);
    if (status != GPUMEM_OK)
        return (int)status;
    status = gpumem_ring_acquire(s->ring, 0, 0, &chunk);
    if (status == GPUMEM_OK) {
        status = gpumem_ring_write(s->ring, chunk.sequence, 0, "bytes", 5);
        AND_THEN(status, gpumem_ring_flush(s->ring, chunk.sequence, 0, 5));
        gpumem_status ended = gpumem_ring_abandon(s->ring, chunk.sequence);
        status = status == GPUMEM_OK ? ended : status;
    }
    gpumem_status ended = gpumem_ring_destroy(s->ring);
    if (ended == GPUMEM_OK)
        s->ring = NULL;
    return (int)(status == GPUMEM_OK ? ended : status);
}

static inline int make_ring(void *user) {
    return with_ring(user, GPUMEM_RING_OPTIONS(.chunk_bytes = 4096, .chunk_count = 2));
}

static inline int make_mirrored_ring(void *user) {
    return with_ring(user,
                     GPUMEM_RING_OPTIONS(.chunk_bytes = 3 * MIB, .chunk_count = 2, .mirrored = 1));
}

/* ---- All of them ----------------------------------------------------------------------------- */

struct mapped_act {
    const char *name;
    int (*act)(void *user);
    bool grows; /* not for memory that Vulkan allocates */
};

static const struct mapped_act mapped_acts[] = {
    {"create", create_mapped, false}, {"allocate, use, free", use_mapped, false},
    {"holes", punch_mapped, true},    {"view", view_virtual, true},
    {"ring", make_ring, false},       {"mirrored ring", make_mirrored_ring, true},
};

static inline bool has_act(gpumem_mapped_method method, const struct mapped_act *act) {
    return method != GPUMEM_MAPPED_VULKAN_EXPORT || !act->grows;
}

#endif
