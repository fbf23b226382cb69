/* Whole or nothing, for rings: each driver call of each step fails. */
#include "library_sweeps.h"

ALL_TESTS(begin_sweeps, end_sweeps);

struct subject {
    gpumem_resource *resource;
    gpumem_ring *ring;
    CUstream stream;
    CUevent event;
    uint32_t *flag; /* of a gate before the stream's work, or NULL */
};

static const gpumem_ring_options plain = {
    .size = sizeof plain, .chunk_bytes = 4096, .chunk_count = 2};
static const gpumem_ring_options mirrored = {
    .size = sizeof mirrored, .chunk_bytes = 3 * MIB, .chunk_count = 2, .mirrored = 1};

static gpumem_resource *make_resource(void) {
    return NEW_MAPPED(.method = GPUMEM_MAPPED_DESCRIPTOR, .method_strict = 1,
                      .maximum_chunk_bytes = 4 * MIB);
}

/* ---- Making and ending ----------------------------------------------------------------------- */

/* Each act has a ring of its own: what a driver that refuses everything leaves mapped would be in
 * the way of the next. */
static int create(struct subject *s, const gpumem_ring_options *options) {
    gpumem_status status = gpumem_ring_create(s->resource, options, &s->ring);
    AND_THEN(status, gpumem_ring_destroy(s->ring));
    if (status == GPUMEM_OK)
        s->ring = NULL;
    return (int)status;
}

static int create_plain(void *user) {
    return create(user, &plain);
}

static int create_mirrored(void *user) {
    return create(user, &mirrored);
}

/* A ring whose end was refused is whole, and ends when the driver answers again. */
static void end_ring(void *user) {
    struct subject *s = user;
    pop_contexts(user);
    OK(gpumem_ring_destroy(s->ring));
    s->ring = NULL;
    settle(user);
}

static void sweep_ring(const char *name, int (*act)(void *), void (*undo)(void *),
                       struct subject *s) {
    SWEEP(.name = name, .act = act, .recover = undo, .undo = undo, .may_succeed = true, .user = s);
}

TEST(creating_a_ring_is_all_or_nothing) {
    struct subject s = {.resource = make_resource()};
    sweep_ring("ring", create_plain, end_ring, &s);
    sweep_ring("mirrored ring", create_mirrored, end_ring, &s);
    (void)gpumem_resource_destroy(s.resource);
}

/* ---- A chunk's way --------------------------------------------------------------------------- */

/* A consumed chunk; without a driver call. */
static gpumem_status fill(struct subject *s, gpumem_ring_chunk *chunk) {
    chunk->size = sizeof *chunk;
    gpumem_status status = gpumem_ring_acquire(s->ring, 0, -1, chunk);
    AND_THEN(status, gpumem_ring_write(s->ring, chunk->sequence, 0, "bytes", 5));
    AND_THEN(status, gpumem_ring_flush(s->ring, chunk->sequence, 0, 5));
    AND_THEN(status, gpumem_ring_commit(s->ring, chunk->sequence, 5));
    return status == GPUMEM_OK ? gpumem_ring_consume(s->ring, 0, chunk) : status;
}

/* What is refused leaves the chunk consumed: it goes back without work. */
static int release(struct subject *s, int events) {
    gpumem_ring_chunk chunk = {0};
    gpumem_ring_info info = {.size = sizeof info};
    gpumem_status status = fill(s, &chunk);
    if (status != GPUMEM_OK)
        return (int)status;
    status = events ? gpumem_ring_release(s->ring, chunk.sequence, NULL, 0, &s->event, 1)
                    : gpumem_ring_release(s->ring, chunk.sequence,
                                          (const CUstream[]){s->stream, NULL}, 2, NULL, 0);
    OK(gpumem_ring_get_info(s->ring, &info));
    assert_int_equal(info.consumed, status != GPUMEM_OK);
    if (status != GPUMEM_OK)
        OK(gpumem_ring_release(s->ring, chunk.sequence, NULL, 0, NULL, 0));
    return (int)status;
}

static int release_behind_streams(void *user) {
    return release(user, 0);
}

static int release_behind_events(void *user) {
    return release(user, 1);
}

static CUdeviceptr make_gate(struct subject *s) {
    CUcontext before;
    cu->cuCtxPushCurrent_v2(gpumem_device_context(device));
    void *flag = MADE_CU(void *, cuMemHostAlloc, 4096, CU_MEMHOSTALLOC_DEVICEMAP);
    CUdeviceptr address = MADE_CU(CUdeviceptr, cuMemHostGetDevicePointer_v2, flag, 0);
    cu->cuCtxPopCurrent_v2(&before);
    s->flag = flag;
    return address;
}

/* Its calls may be those that fail. */
static int close_gate_of(const struct subject *s, CUdeviceptr address) {
    CUcontext before;
    __atomic_store_n(s->flag, 0, __ATOMIC_SEQ_CST);
    CUresult result = cu->cuCtxPushCurrent_v2(gpumem_device_context(device));
    if (result != CUDA_SUCCESS)
        return (int)result;
    result = cu->cuStreamWaitValue32_v2(s->stream, address, 1, CU_STREAM_WAIT_VALUE_EQ);
    CUresult popped = cu->cuCtxPopCurrent_v2(&before);
    if (result != CUDA_SUCCESS || popped != CUDA_SUCCESS)
        return (int)(result != CUDA_SUCCESS ? result : popped);
    return (int)gpumem_event_record(device, s->event, s->stream);
}

static void free_gate(struct subject *s) {
    CUcontext before;
    cu->cuCtxPushCurrent_v2(gpumem_device_context(device));
    cu->cuMemFreeHost(s->flag);
    cu->cuCtxPopCurrent_v2(&before);
}

/* A ring for each act: the ways below end with its room asked for, and with its end. */
static int with_ring(struct subject *s, int (*act)(void *)) {
    gpumem_status status = gpumem_ring_create(s->resource, &plain, &s->ring);
    if (status != GPUMEM_OK)
        return (int)status;
    status = (gpumem_status)act(s);
    AND_THEN(status, (gpumem_status)act(s));
    __atomic_store_n(s->flag, 1, __ATOMIC_SEQ_CST);
    gpumem_ring_chunk chunk = {.size = sizeof chunk};
    if (status == GPUMEM_OK)
        status = gpumem_ring_acquire(s->ring, 0, 10000, &chunk); /* the driver is asked */
    AND_THEN(status, gpumem_ring_abandon(s->ring, chunk.sequence));
    gpumem_status closed = gpumem_ring_close(s->ring);
    OK(closed);
    return (int)status;
}

static CUdeviceptr gate_address;

static int streams_way(void *user) {
    int status = close_gate_of(user, gate_address);
    return status ? status : with_ring(user, release_behind_streams);
}

static int events_way(void *user) {
    int status = close_gate_of(user, gate_address);
    return status ? status : with_ring(user, release_behind_events);
}

static void end_of_way(void *user) {
    __atomic_store_n(((struct subject *)user)->flag, 1, __ATOMIC_SEQ_CST);
    end_ring(user);
}

TEST(releasing_a_chunk_behind_streams_or_events_is_all_or_nothing) {
    struct subject s = {.resource = make_resource()};
    s.stream = NEW_STREAM();
    s.event = NEW_EVENT();
    gate_address = make_gate(&s);
    sweep_ring("release behind streams", streams_way, end_of_way, &s);
    sweep_ring("release behind events", events_way, end_of_way, &s);
    free_gate(&s);
    (void)gpumem_stream_destroy(device, s.stream);
    (void)gpumem_event_destroy(device, s.event);
    (void)gpumem_resource_destroy(s.resource);
}
