/*
 * Whole or nothing for virtual buffers that change while they live: cached frees, access, holes and
 * moves. Whichever driver call fails, an operation that reports an error has changed nothing.
 */
#include "library_sweeps.h"

ALL_TESTS(begin_sweeps, end_sweeps);

struct subject {
    gpumem_resource *resource;
    gpumem_buffer *buffer, *other;
    CUstream stream;
};

static struct subject make(uint64_t cache_bytes) {
    struct subject s = {.stream = NEW_STREAM()};
    s.resource =
        NEW_VIRTUAL(.maximum_chunk_bytes = 4 * MIB, .exact_growth = 1, .cache_bytes = cache_bytes);
    return s;
}

static void allocate(struct subject *s) {
    s->buffer = NEW_BUFFER_WITH(s->resource, 10 * MIB, .capacity = 16 * MIB, .stream = s->stream);
    s->other = NEW_BUFFER(s->resource, 4 * MIB);
    OK(gpumem_buffer_fill(s->buffer, 0, 10 * MIB, 0x3c, s->stream));
    synchronize(s->stream);
}

/* Nothing that happened has touched the first and the last byte. */
static void end(struct subject *s, int has_buffers) {
    if (has_buffers) {
        unsigned char bytes[2] = {0};
        OK(gpumem_buffer_read(s->buffer, 0, &bytes[0], 1, s->stream));
        OK(gpumem_buffer_read(s->buffer, 10 * MIB - 1, &bytes[1], 1, s->stream));
        synchronize(s->stream);
        assert_int_equal(bytes[0], 0x3c);
        assert_int_equal(bytes[1], 0x3c);
        DESTROY(s->buffer, s->other);
    }
    settle(s);
    DESTROY(s->resource, s->stream);
}

/* ---- Cached frees ---------------------------------------------------------------------------- */

/* Cold, then warm on the same stream while it works, then grown from a cached handle. */
static int allocate_and_free(void *user) {
    struct subject *s = user;
    gpumem_status status = GPUMEM_OK;
    for (int i = 0; i < 2 && status == GPUMEM_OK; i++) {
        gpumem_buffer *buffer = NULL;
        status = gpumem_buffer_allocate(
            s->resource, 8 * MIB, GPUMEM_BUFFER_OPTIONS(.capacity = 16 * MIB, .stream = s->stream),
            &buffer);
        if (status != GPUMEM_OK)
            break;
        status = gpumem_buffer_fill(buffer, 0, 8 * MIB, 1, s->stream);
        AND_THEN(status, gpumem_buffer_shrink(buffer, 4 * MIB, NULL));
        AND_THEN(status, gpumem_buffer_grow(buffer, 8 * MIB, NULL));
        (void)gpumem_buffer_free(buffer, NULL);
    }
    return (int)status;
}

TEST(freeing_into_the_cache_is_all_or_nothing) {
    struct subject s = make(GIB);
    sweep_act("allocate and free, cached", allocate_and_free, settle, &s);
    end(&s, 0);
}

/*
 * A device that has stopped runs nothing any more, so the memory is unmapped at once. One call that
 * says so stands for such a device: the queued fill must not find its memory gone.
 */
static void shrink_behind_work(softgpu_fault_mode mode) {
    struct subject s = make(GIB);
    allocate(&s);
    struct gate gate = gate_with_stream();
    OK(gpumem_buffer_fill(s.buffer, 0, 10 * MIB, 1, gate.stream));
    uint64_t unmaps = soft->call_count("cuMemUnmap");
    /* Its own stream is asked first, then the gate's. */
    assert_int_equal(soft->fault_arm("cuStreamQuery", 2, CUDA_ERROR_ILLEGAL_ADDRESS, mode), 0);
    OK(gpumem_buffer_shrink(s.buffer, 4 * MIB, NULL));
    assert_int_equal(soft->fault_disarm(), 1);
    assert_true(soft->call_count("cuMemUnmap") > unmaps);
    gate_drain(&gate); /* no fault of the device */
    OK(gpumem_buffer_grow(s.buffer, 10 * MIB, NULL));
    OK(gpumem_buffer_fill(s.buffer, 0, 10 * MIB, 0x3c, s.stream));
    gate_remove(&gate);
    end(&s, 1);
}

TEST(shrinking_after_a_device_fault_fails_cleanly) {
    shrink_behind_work(SOFTGPU_FAULT_BEFORE);
    shrink_behind_work(SOFTGPU_FAULT_AFTER);
}

/* ---- Access ---------------------------------------------------------------------------------- */

static int take_from_all(void *user) {
    struct subject *s = user;
    return (int)gpumem_resource_set_access(s->resource, 0, GPUMEM_ACCESS_READ);
}

static void give_to_all(void *user) {
    struct subject *s = user;
    OK(gpumem_resource_set_access(s->resource, 0, GPUMEM_ACCESS_READ_WRITE));
    settle(user);
}

TEST(changing_access_to_all_buffers_is_all_or_nothing) {
    struct subject s = make(0);
    allocate(&s);
    sweep_act("access of all buffers", take_from_all, give_to_all, &s);
    end(&s, 1);
}

static int take_a_part(void *user) {
    struct subject *s = user;
    return (int)gpumem_buffer_set_access(s->buffer, 4 * MIB, 6 * MIB, 0, GPUMEM_ACCESS_READ,
                                         s->stream);
}

static void give_the_part(void *user) {
    struct subject *s = user;
    OK(gpumem_buffer_set_access(s->buffer, 4 * MIB, 6 * MIB, 0, GPUMEM_ACCESS_READ_WRITE, NULL));
    settle(user);
}

TEST(changing_access_to_part_of_a_buffer_is_all_or_nothing) {
    struct subject s = make(0);
    allocate(&s);
    sweep_act("access of a part", take_a_part, give_the_part, &s);
    end(&s, 1);
}

/* ---- Holes ----------------------------------------------------------------------------------- */

static int decommit(void *user) {
    struct subject *s = user;
    return (int)gpumem_buffer_decommit(s->buffer, 4 * MIB, 4 * MIB, s->stream, NULL);
}

static void recommit_again(void *user) {
    struct subject *s = user;
    OK(gpumem_buffer_recommit(s->buffer, 4 * MIB, 4 * MIB));
    settle(user);
}

TEST(decommitting_a_range_is_all_or_nothing) {
    struct subject s = make(0);
    allocate(&s);
    sweep_act("decommit", decommit, recommit_again, &s);
    end(&s, 1);
}

static int recommit(void *user) {
    struct subject *s = user;
    return (int)gpumem_buffer_recommit(s->other, 0, 4 * MIB);
}

static void decommit_again(void *user) {
    struct subject *s = user;
    OK(gpumem_buffer_decommit(s->other, 0, 4 * MIB, NULL, NULL));
    settle(user);
}

TEST(recommitting_a_range_is_all_or_nothing) {
    struct subject s = make(0);
    allocate(&s);
    OK(gpumem_buffer_grow(s.buffer, 16 * MIB, NULL));
    decommit_again(&s);
    sweep_act("recommit", recommit, decommit_again, &s);
    end(&s, 1);
}

/* ---- Moving ---------------------------------------------------------------------------------- */

static int move(void *user) {
    struct subject *s = user;
    CUdeviceptr address;
    return (int)gpumem_buffer_move_to_capacity(s->buffer, 64 * MIB, s->stream, &address);
}

static void move_back(void *user) {
    struct subject *s = user;
    CUdeviceptr address;
    OK(gpumem_buffer_move_to_capacity(s->buffer, 16 * MIB, NULL, &address));
    settle(user);
}

TEST(moving_a_buffer_is_all_or_nothing) {
    struct subject s = make(0);
    allocate(&s);
    sweep_act("move", move, move_back, &s);
    end(&s, 1);
}

/* ---- Through a wrapper with a buffer of its own inside --------------------------------------- */

TEST(changing_a_wrapped_buffer_is_all_or_nothing) {
    struct subject s = make(0);
    gpumem_resource *memory = s.resource;
    s.resource = NEW_ALIGNMENT(memory, .alignment = 4096);
    allocate(&s);
    sweep_act("wrapped access of a part", take_a_part, give_the_part, &s);
    sweep_act("wrapped decommit", decommit, recommit_again, &s);
    OK(gpumem_buffer_decommit(s.other, 0, 4 * MIB, NULL, NULL));
    sweep_act("wrapped recommit", recommit, decommit_again, &s);
    sweep_act("wrapped move", move, move_back, &s);
    end(&s, 1);
    OK(gpumem_resource_destroy(memory));
}

/* ---- Sharing --------------------------------------------------------------------------------- */

/* The second buffer gets the memory of the first, which its stream still fills. */
static int share_reused(void *user) {
    struct subject *s = user;
    const gpumem_buffer_options *options = GPUMEM_BUFFER_OPTIONS(.stream = s->stream);
    gpumem_access access;
    TRY(gpumem_buffer_allocate(s->resource, 8 * MIB, options, &s->buffer));
    gpumem_status status = gpumem_buffer_fill(s->buffer, 0, 8 * MIB, 1, s->stream);
    (void)gpumem_buffer_free(s->buffer, NULL);
    AND_THEN(status, gpumem_buffer_allocate(s->resource, 8 * MIB, options, &s->buffer));
    if (status != GPUMEM_OK)
        return (int)status;
    status = gpumem_buffer_mark_shared(s->buffer);
    AND_THEN(status, gpumem_buffer_get_access(s->buffer, 0, 0, &access));
    (void)gpumem_buffer_free(s->buffer, NULL);
    return (int)status;
}

TEST(sharing_memory_that_is_reused_is_all_or_nothing) {
    struct subject s = make(GIB);
    sweep_act("share reused memory", share_reused, settle, &s);
    end(&s, 0);
}
