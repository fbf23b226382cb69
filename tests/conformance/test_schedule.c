/*
 * The order of streams: whatever is ordered comes out right under every schedule, and what is not
 * comes out wrong under some.
 */
#include "harness.h"

#define STREAMS 9 /* the last is the legacy stream */
#define BUFFERS 24
#define BYTES   192
#define STEPS   2000

static uint64_t draw(uint64_t *state, uint64_t limit) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (*state >> 33) % limit;
}

/* One operation of the random program: sets `to`, or copies `from` to it. */
struct step {
    unsigned stream, to, from;
    bool set;
    unsigned char value;
    size_t offset, size; /* of `to`; copies keep the offset */
};

struct program {
    CUdeviceptr memory;
    CUstream streams[STREAMS];
    CUevent events[STEPS];
    unsigned writer[BUFFERS];            /* step + 1 of the last write, 0 for none */
    unsigned reader[BUFFERS][STREAMS];   /* step + 1 of the last read in each stream */
    unsigned char model[BUFFERS][BYTES]; /* what a sequential machine has */
    unsigned step_stream[STEPS];
};

static struct program *begin(void) {
    struct program *program = calloc(1, sizeof *program);
    assert_non_null(program);
    OK_CU(cu.cuMemAlloc_v2(&program->memory, BUFFERS * BYTES));
    set_bytes(program->memory, 0, BUFFERS * BYTES);
    for (unsigned i = 0; i + 1 < STREAMS; i++)
        OK_CU(cu.cuStreamCreateWithPriority(&program->streams[i],
                                            i % 2 ? CU_STREAM_NON_BLOCKING : 0, -(int)(i % 3)));
    program->streams[STREAMS - 1] = CU_STREAM_LEGACY;
    for (unsigned i = 0; i < STEPS; i++)
        OK_CU(cu.cuEventCreate(&program->events[i], CU_EVENT_DISABLE_TIMING));
    return program;
}

static void end(struct program *program) {
    OK_CU(cu.cuCtxSynchronize());
    for (unsigned i = 0; i < STEPS; i++)
        OK_CU(cu.cuEventDestroy_v2(program->events[i]));
    for (unsigned i = 0; i + 1 < STREAMS; i++)
        OK_CU(cu.cuStreamDestroy_v2(program->streams[i]));
    OK_CU(cu.cuMemFree_v2(program->memory));
    free(program);
}

static struct step random_step(uint64_t *state) {
    struct step step;
    step.stream = (unsigned)draw(state, STREAMS);
    step.to = (unsigned)draw(state, BUFFERS);
    step.from = (step.to + 1 + (unsigned)draw(state, BUFFERS - 1)) % BUFFERS;
    step.set = draw(state, 3) == 0;
    step.value = (unsigned char)draw(state, 256);
    step.offset = draw(state, BYTES / 2);
    step.size = 1 + draw(state, BYTES - step.offset);
    return step;
}

static void wait_for(struct program *program, const struct step *step, unsigned earlier) {
    if (earlier && program->step_stream[earlier - 1] != step->stream)
        OK_CU(
            cu.cuStreamWaitEvent(program->streams[step->stream], program->events[earlier - 1], 0));
}

/* A write follows all earlier uses of its buffer, a read the last write. */
static void order(struct program *program, const struct step *step) {
    wait_for(program, step, program->writer[step->to]);
    for (unsigned s = 0; s < STREAMS; s++)
        wait_for(program, step, program->reader[step->to][s]);
    if (!step->set)
        wait_for(program, step, program->writer[step->from]);
}

static CUdeviceptr at(const struct program *program, unsigned buffer, size_t offset) {
    return program->memory + buffer * BYTES + offset;
}

static void submit(struct program *program, const struct step *step) {
    CUstream stream = program->streams[step->stream];
    CUdeviceptr to = at(program, step->to, step->offset);
    if (step->set)
        OK_CU(cu.cuMemsetD8Async(to, step->value, step->size, stream));
    else
        OK_CU(
            cu.cuMemcpyDtoDAsync_v2(to, at(program, step->from, step->offset), step->size, stream));
}

static void model(struct program *program, const struct step *step) {
    unsigned char *to = program->model[step->to] + step->offset;
    if (step->set)
        memset(to, step->value, step->size);
    else
        memcpy(to, program->model[step->from] + step->offset, step->size);
}

static void run(struct program *program, uint64_t seed, bool ordered) {
    uint64_t state = seed;
    for (unsigned i = 0; i < STEPS; i++) {
        struct step step = random_step(&state);
        if (ordered)
            order(program, &step);
        submit(program, &step);
        model(program, &step);
        OK_CU(cu.cuEventRecord(program->events[i], program->streams[step.stream]));
        program->step_stream[i] = step.stream;
        program->writer[step.to] = i + 1;
        memset(program->reader[step.to], 0, sizeof program->reader[step.to]);
        if (!step.set)
            program->reader[step.from][step.stream] = i + 1;
        if (draw(&state, 200) == 0)
            OK_CU(cu.cuStreamSynchronize(program->streams[draw(&state, STREAMS)]));
    }
    OK_CU(cu.cuCtxSynchronize());
}

static void fetch(const struct program *program, unsigned char *bytes) {
    OK_CU(cu.cuMemcpyDtoH_v2(bytes, program->memory, BUFFERS * BYTES));
}

static bool as_modelled(const struct program *program) {
    unsigned char bytes[BUFFERS * BYTES];
    fetch(program, bytes);
    return memcmp(bytes, program->model, sizeof bytes) == 0;
}

static void choose(softgpu_schedule schedule, uint64_t seed) {
    if (soft)
        soft->schedule_set(schedule, seed);
}

/* ---- Tests ---- */

TEST(ordered_work_is_correct_under_the_default_schedule) {
    for (uint64_t seed = 1; seed <= 4; seed++) {
        struct program *program = begin();
        run(program, seed, true);
        assert_true(as_modelled(program));
        end(program);
    }
}

TEST_WHERE(ordered_work_is_correct_under_the_late_schedule, NEEDS_SOFTGPU("chooses a schedule")) {
    choose(SOFTGPU_SCHEDULE_LATE, 0);
    ordered_work_is_correct_under_the_default_schedule(state);
    choose(SOFTGPU_SCHEDULE_EAGER, 0);
}

TEST_WHERE(ordered_work_is_correct_under_random_schedules, NEEDS_SOFTGPU("chooses a schedule")) {
    for (uint64_t seed = 10; seed < 18; seed++) {
        choose(SOFTGPU_SCHEDULE_RANDOM, seed);
        struct program *program = begin();
        run(program, seed / 2, true);
        assert_true(as_modelled(program));
        end(program);
    }
    choose(SOFTGPU_SCHEDULE_EAGER, 0);
}

TEST_WHERE(missing_waits_are_exposed_by_some_seed, NEEDS_SOFTGPU("chooses a schedule")) {
    unsigned wrong = 0;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        choose(SOFTGPU_SCHEDULE_RANDOM, seed);
        struct program *program = begin();
        run(program, 1, false);
        wrong += !as_modelled(program);
        end(program);
    }
    choose(SOFTGPU_SCHEDULE_EAGER, 0);
    assert_true(wrong > 0);
}

/* The smallest such program: a copy that does not wait for the set of its source. */
static unsigned char copy_after_set(bool wait) {
    unsigned char out = 0;
    CUstream setting = new_stream(), copying = new_stream();
    CUevent event = new_event();
    CUdeviceptr from = new_memory(4096), to = new_memory(4096);
    set_bytes(from, 0, 4096);
    OK_CU(cu.cuMemsetD8Async(from, 1, 4096, setting));
    OK_CU(cu.cuEventRecord(event, setting));
    if (wait)
        OK_CU(cu.cuStreamWaitEvent(copying, event, 0));
    OK_CU(cu.cuMemcpyDtoDAsync_v2(to, from, 4096, copying));
    OK_CU(cu.cuMemcpyDtoHAsync_v2(&out, to, 1, copying));
    OK_CU(cu.cuStreamSynchronize(copying));
    OK_CU(cu.cuCtxSynchronize());
    return out;
}

TEST_WHERE(a_missing_wait_is_exposed_by_the_late_schedule, NEEDS_SOFTGPU("chooses a schedule")) {
    choose(SOFTGPU_SCHEDULE_LATE, 0);
    assert_int_equal(copy_after_set(true), 1);
    /* A machine that stalls for milliseconds may run the set after all. */
    unsigned wrong = 0;
    for (unsigned i = 0; i < 20 && !wrong; i++)
        wrong += copy_after_set(false) == 0;
    choose(SOFTGPU_SCHEDULE_EAGER, 0);
    assert_int_equal(wrong, 1);
}

/* Polling is no waiting, so that the late schedule has to give in some time. */
TEST_WHERE(polling_makes_progress_under_the_late_schedule, NEEDS_SOFTGPU("chooses a schedule")) {
    choose(SOFTGPU_SCHEDULE_LATE, 0);
    CUstream stream = new_stream();
    CUdeviceptr bytes = new_memory(64);
    OK_CU(cu.cuMemsetD8Async(bytes, 3, 64, stream));
    FAILS_CU(NOT_READY, cu.cuStreamQuery(stream));
    while (cu.cuStreamQuery(stream) == CUDA_ERROR_NOT_READY)
        ;
    choose(SOFTGPU_SCHEDULE_EAGER, 0);
    assert_int_equal(byte_at(bytes), 3);
}

/* The disorder of an unordered program is that of the seed. A stalled machine may disturb it, so
 * that it is tried more than once; by chance it would not agree once. */
TEST_WHERE(a_seed_reproduces_its_order, NEEDS_SOFTGPU("chooses a schedule")) {
    unsigned char bytes[2][BUFFERS * BYTES];
    bool same = false;
    for (unsigned tries = 0; tries < 10 && !same; tries++) {
        for (unsigned i = 0; i < 2; i++) {
            choose(SOFTGPU_SCHEDULE_RANDOM, 77);
            struct program *program = begin();
            run(program, 5, false);
            fetch(program, bytes[i]);
            end(program);
        }
        same = memcmp(bytes[0], bytes[1], sizeof bytes[0]) == 0;
    }
    choose(SOFTGPU_SCHEDULE_EAGER, 0);
    assert_true(same);
}
