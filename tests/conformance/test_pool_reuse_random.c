/*
 * A random program over streams, events and the blocks of one pool, with one stream or another held
 * all the time: whatever block an allocation gets, nobody else's work is seen in it.
 *
 * GPUMEM_REUSE_STEPS=n makes the programs longer.
 */
#include "pools.h"

#define STREAMS 6
#define BLOCKS  40 /* live at once, at most */
#define SEEDS   25
#define STEPS   400
#define PROBE   16 /* bytes read from each end of a block */

struct live {
    CUdeviceptr at;
    size_t size;
    unsigned stream; /* whose work on it is in order */
    unsigned char mark;
};

struct program {
    uint64_t state; /* of the generator */
    CUmemoryPool pool;
    CUstream streams[STREAMS];
    CUevent event;
    struct live live[BLOCKS];
    unsigned count;
    unsigned char *seen, *wanted; /* PROBE bytes for each read; the first is pinned */
    unsigned reads, room;
    struct gate gate;
    bool held;
};

static uint64_t draw(struct program *program, uint64_t limit) {
    program->state = program->state * 6364136223846793005u + 1442695040888963407u;
    return (program->state >> 33) % limit;
}

static void begin(struct program *program, uint64_t seed, unsigned steps) {
    *program = (struct program){.state = seed, .room = 2 * steps};
    program->pool = pool_make(CU_MEM_LOCATION_TYPE_DEVICE, CU_MEM_HANDLE_TYPE_NONE, 0);
    for (unsigned i = 0; i < STREAMS; i++)
        OK_CU(cu.cuStreamCreate(&program->streams[i],
                                i < 2 ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING));
    OK_CU(cu.cuEventCreate(&program->event, CU_EVENT_DISABLE_TIMING));
    OK_CU(cu.cuMemHostAlloc((void **)&program->seen, (size_t)program->room * PROBE, 0));
    program->wanted = malloc((size_t)program->room * PROBE);
    assert_non_null(program->wanted);
    gate_make(&program->gate);
}

/* ---- Steps ----------------------------------------------------------------------------------- */

static void allocate(struct program *program) {
    static const size_t sizes[] = {512, 700, 4096, 5000, 65536, 300000};
    if (program->count == BLOCKS)
        return;
    struct live *live = &program->live[program->count++];
    live->size = sizes[draw(program, COUNT(sizes))];
    live->stream = (unsigned)draw(program, STREAMS);
    live->mark = (unsigned char)draw(program, 256);
    live->at = pool_take(program->pool, live->size, program->streams[live->stream]);
    OK_CU(cu.cuMemsetD8Async(live->at, live->mark, live->size, program->streams[live->stream]));
}

static void read_at(struct program *program, const struct live *live, size_t offset) {
    size_t slot = (size_t)program->reads++ * PROBE;
    memset(&program->wanted[slot], live->mark, PROBE);
    OK_CU(cu.cuMemcpyDtoHAsync_v2(&program->seen[slot], live->at + offset, PROBE,
                                  program->streams[live->stream]));
}

static void read_block(struct program *program, const struct live *live) {
    read_at(program, live, 0);
    read_at(program, live, live->size - PROBE);
}

/* What comes in stream `to` comes after what stream `from` holds. */
static void order(struct program *program, unsigned from, unsigned to) {
    OK_CU(cu.cuEventRecord(program->event, program->streams[from]));
    OK_CU(cu.cuStreamWaitEvent(program->streams[to], program->event, 0));
}

static void move_on(struct program *program, struct live *live) {
    unsigned to = (unsigned)draw(program, STREAMS);
    order(program, live->stream, to);
    live->stream = to;
}

/* The last thing done with it is a read, which a block handed on too early would spoil. */
static void free_block(struct program *program, struct live *live) {
    read_block(program, live);
    OK_CU(cu.cuMemFreeAsync(live->at, program->streams[live->stream]));
    *live = program->live[--program->count];
}

static void hold_or_release(struct program *program) {
    if (program->held)
        gate_release(&program->gate);
    else
        gate_hold(&program->gate, program->streams[draw(program, STREAMS)]);
    program->held = !program->held;
    /* The gate is for one at a time: what waits for it must have seen it open. */
    if (!program->held)
        OK_CU(cu.cuCtxSynchronize());
}

static void step(struct program *program) {
    struct live *live = program->count ? &program->live[draw(program, program->count)] : NULL;
    switch (draw(program, 8)) {
    case 0:
    case 1:
    case 2:
        allocate(program);
        break;
    case 3:
    case 4:
        if (live)
            free_block(program, live);
        break;
    case 5:
        if (live)
            move_on(program, live);
        break;
    case 6:
        order(program, (unsigned)draw(program, STREAMS), (unsigned)draw(program, STREAMS));
        break;
    default:
        if (draw(program, 6) == 0)
            hold_or_release(program);
    }
}

static void end(struct program *program) {
    while (program->count)
        free_block(program, &program->live[0]);
    gate_release(&program->gate);
    OK_CU(cu.cuCtxSynchronize());
    size_t bytes = (size_t)program->reads * PROBE;
    assert_true(program->reads <= program->room);
    assert_true(bytes > 0);
    assert_memory_equal(program->seen, program->wanted, bytes);
    pool_end(program->pool);
    for (unsigned i = 0; i < STREAMS; i++)
        OK_CU(cu.cuStreamDestroy_v2(program->streams[i]));
    OK_CU(cu.cuEventDestroy_v2(program->event));
    OK_CU(cu.cuMemFreeHost(program->seen));
    free(program->wanted);
    gate_free(&program->gate);
}

TEST(no_stream_writes_to_a_block_of_another) {
    const char *longer = getenv("GPUMEM_REUSE_STEPS");
    unsigned steps = longer ? (unsigned)strtoul(longer, NULL, 10) : STEPS;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct program program;
        begin(&program, seed, steps);
        for (unsigned i = 0; i < steps; i++)
            step(&program);
        end(&program);
    }
}
