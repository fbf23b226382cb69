/*
 * A random program of thousands of operations over many streams, ordered by events and by values in
 * memory, comes out as a sequential machine has it, whatever the order in which its streams are
 * served. One with a missing wait does not, under some seed, and that seed is told.
 *
 * GPUMEM_DAG_STEPS=n makes the program longer.
 */
#include "harness.h"

#define STREAMS 24
#define BUFFERS 40 /* the last HOST of them in pinned host memory */
#define HOST    8
#define BYTES   96
#define SEEDS   100
#define STEPS   3000

enum action { SET, COPY, CALL };

struct step {
    enum action action;
    unsigned stream, to, from;
    unsigned char value;
    size_t offset, size;
};

/* A host function's work: mixes one host buffer into another. */
struct mix {
    unsigned char *to;
    const unsigned char *from;
    unsigned char value;
};

struct program {
    unsigned steps;
    CUdeviceptr device;
    unsigned char *host;
    CUstream streams[STREAMS];
    CUevent *events;
    struct mix *mixes;
    uint32_t *reached;        /* pinned: by stream, the last step that is done */
    CUdeviceptr reached_at;   /* as the device sees it */
    unsigned *stream_of;      /* by step */
    unsigned writer[BUFFERS]; /* step + 1 of the last write */
    unsigned reader[BUFFERS][STREAMS];
    unsigned char model[BUFFERS][BYTES];
};

static uint64_t draw(uint64_t *state, uint64_t limit) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (*state >> 33) % limit;
}

static bool is_host(unsigned buffer) {
    return buffer >= BUFFERS - HOST;
}

static void *pinned(size_t size) {
    void *memory = MADE_CU(void *, cuMemHostAlloc, size, CU_MEMHOSTALLOC_DEVICEMAP);
    memset(memory, 0, size);
    return memory;
}

static void begin(struct program *program, unsigned steps) {
    memset(program, 0, sizeof *program);
    program->steps = steps;
    program->events = calloc(steps, sizeof *program->events);
    program->mixes = calloc(steps, sizeof *program->mixes);
    program->stream_of = calloc(steps, sizeof *program->stream_of);
    assert_true(program->events && program->mixes && program->stream_of);
    OK_CU(cu.cuMemAlloc_v2(&program->device, (BUFFERS - HOST) * BYTES));
    OK_CU(cu.cuMemsetD8_v2(program->device, 0, (BUFFERS - HOST) * BYTES));
    program->host = pinned(HOST * BYTES);
    program->reached = pinned(STREAMS * sizeof *program->reached);
    OK_CU(cu.cuMemHostGetDevicePointer_v2(&program->reached_at, program->reached, 0));
    for (unsigned i = 0; i < STREAMS; i++)
        OK_CU(cu.cuStreamCreateWithPriority(&program->streams[i], CU_STREAM_NON_BLOCKING,
                                            -(int)(i % 6)));
    for (unsigned i = 0; i < steps; i++)
        OK_CU(cu.cuEventCreate(&program->events[i], CU_EVENT_DISABLE_TIMING));
    OK_CU(cu.cuCtxSynchronize());
}

static void end(struct program *program) {
    OK_CU(cu.cuCtxSynchronize());
    for (unsigned i = 0; i < program->steps; i++)
        OK_CU(cu.cuEventDestroy_v2(program->events[i]));
    for (unsigned i = 0; i < STREAMS; i++)
        OK_CU(cu.cuStreamDestroy_v2(program->streams[i]));
    OK_CU(cu.cuMemFree_v2(program->device));
    OK_CU(cu.cuMemFreeHost(program->host));
    OK_CU(cu.cuMemFreeHost(program->reached));
    free(program->events);
    free(program->mixes);
    free(program->stream_of);
}

static struct step random_step(uint64_t *state) {
    struct step step = {.action = SET};
    uint64_t kind = draw(state, 10);
    step.action = kind < 3 ? SET : kind < 9 ? COPY : CALL;
    step.stream = (unsigned)draw(state, STREAMS);
    unsigned among = step.action == CALL ? HOST : BUFFERS, first = BUFFERS - among;
    step.to = first + (unsigned)draw(state, among);
    step.from = first + (step.to - first + 1 + (unsigned)draw(state, among - 1)) % among;
    step.value = (unsigned char)draw(state, 256);
    step.offset = draw(state, BYTES / 2);
    step.size = 1 + draw(state, BYTES - step.offset);
    return step;
}

/* Half of the waits are for an event, half for a value that the other stream writes. */
static void wait_for(struct program *program, const struct step *step, unsigned earlier) {
    unsigned before = earlier - 1;
    CUstream stream = program->streams[step->stream];
    if (!earlier || program->stream_of[before] == step->stream)
        return;
    if (before % 2)
        OK_CU(cu.cuStreamWaitEvent(stream, program->events[before], 0));
    else
        OK_CU(cu.cuStreamWaitValue32_v2(stream,
                                        program->reached_at + program->stream_of[before] * 4,
                                        before + 1, CU_STREAM_WAIT_VALUE_GEQ));
}

/* A write follows all earlier uses of its buffer, a read the last write. */
static void order(struct program *program, const struct step *step) {
    wait_for(program, step, program->writer[step->to]);
    for (unsigned s = 0; s < STREAMS; s++)
        wait_for(program, step, program->reader[step->to][s]);
    if (step->action != SET)
        wait_for(program, step, program->writer[step->from]);
}

static void CUDAAPI mix(void *data) {
    const struct mix *mix = data;
    for (unsigned i = 0; i < BYTES; i++)
        mix->to[i] = (unsigned char)(mix->to[i] * 3 + mix->from[i] + mix->value);
}

static CUdeviceptr at(const struct program *program, unsigned buffer) {
    if (is_host(buffer))
        return (CUdeviceptr)(uintptr_t)(program->host + (buffer - (BUFFERS - HOST)) * BYTES);
    return program->device + buffer * BYTES;
}

static void submit(struct program *program, const struct step *step, unsigned number) {
    CUstream stream = program->streams[step->stream];
    CUdeviceptr to = at(program, step->to) + step->offset;
    if (step->action == SET) {
        OK_CU(cu.cuMemsetD8Async(to, step->value, step->size, stream));
    } else if (step->action == COPY && is_host(step->to) && is_host(step->from)) {
        /* Through the device: a copy between host buffers would wait. */
        OK_CU(cu.cuMemsetD8Async(to, step->value, step->size, stream));
    } else if (step->action == COPY) {
        OK_CU(cu.cuMemcpyAsync(to, at(program, step->from) + step->offset, step->size, stream));
    } else {
        program->mixes[number] =
            (struct mix){(unsigned char *)(uintptr_t)at(program, step->to),
                         (const unsigned char *)(uintptr_t)at(program, step->from), step->value};
        OK_CU(cu.cuLaunchHostFunc(stream, mix, &program->mixes[number]));
    }
}

static void model(struct program *program, const struct step *step) {
    unsigned char *to = program->model[step->to] + step->offset;
    bool set =
        step->action == SET || (step->action == COPY && is_host(step->to) && is_host(step->from));
    struct mix work = {program->model[step->to], program->model[step->from], step->value};
    if (set)
        memset(to, step->value, step->size);
    else if (step->action == COPY)
        memcpy(to, program->model[step->from] + step->offset, step->size);
    else
        mix(&work);
}

/* What later steps must wait for. */
static void remember(struct program *program, const struct step *step, unsigned number) {
    CUstream stream = program->streams[step->stream];
    OK_CU(cu.cuEventRecord(program->events[number], stream));
    OK_CU(
        cu.cuStreamWriteValue32_v2(stream, program->reached_at + step->stream * 4, number + 1, 0));
    program->stream_of[number] = step->stream;
    program->writer[step->to] = number + 1;
    memset(program->reader[step->to], 0, sizeof program->reader[step->to]);
    if (step->action != SET)
        program->reader[step->from][step->stream] = number + 1;
}

/* True when the bytes are those of the sequential machine. */
static bool run(unsigned steps, uint64_t seed, bool ordered) {
    struct program *program = malloc(sizeof *program);
    unsigned char bytes[BUFFERS - HOST][BYTES];
    assert_non_null(program);
    begin(program, steps);
    uint64_t state = seed;
    for (unsigned i = 0; i < steps; i++) {
        struct step step = random_step(&state);
        if (ordered)
            order(program, &step);
        submit(program, &step, i);
        model(program, &step);
        remember(program, &step, i);
    }
    OK_CU(cu.cuCtxSynchronize());
    OK_CU(cu.cuMemcpyDtoH_v2(bytes, program->device, sizeof bytes));
    bool right = memcmp(bytes, program->model, sizeof bytes) == 0 &&
                 memcmp(program->host, program->model[BUFFERS - HOST], HOST * BYTES) == 0;
    end(program);
    free(program);
    return right;
}

static unsigned steps_wanted(unsigned usual) {
    const char *wanted = getenv("GPUMEM_DAG_STEPS");
    return wanted ? (unsigned)strtoul(wanted, NULL, 10) : usual;
}

static void choose(softgpu_schedule schedule, uint64_t seed) {
    if (soft)
        soft->schedule_set(schedule, seed);
}

/* ---- Tests ---- */

TEST_IS(a_long_program_is_correct_under_the_default_schedule,
        assert_true(run(steps_wanted(STEPS), 1, true)));

TEST_WHERE(a_long_program_is_correct_under_the_late_schedule, NEEDS_SOFTGPU("chooses a schedule")) {
    choose(SOFTGPU_SCHEDULE_LATE, 0);
    bool right = run(steps_wanted(STEPS), 1, true);
    choose(SOFTGPU_SCHEDULE_EAGER, 0);
    assert_true(right);
}

TEST_WHERE(a_long_program_is_correct_under_each_seed, NEEDS_SOFTGPU("chooses a schedule")) {
    uint64_t wrong = 0;
    for (uint64_t seed = 1; seed <= SEEDS && !wrong; seed++) {
        choose(SOFTGPU_SCHEDULE_RANDOM, seed);
        wrong = run(steps_wanted(STEPS), seed, true) ? 0 : seed;
    }
    choose(SOFTGPU_SCHEDULE_EAGER, 0);
    if (wrong)
        fail_msg("SOFTGPU_SCHEDULE=random SOFTGPU_SEED=%llu: wrong bytes",
                 (unsigned long long)wrong);
}

/* One producer, one consumer, and no wait between them. */
static bool handed_over(bool wait) {
    unsigned char out = 0;
    CUstream producer = MADE_CU(CUstream, cuStreamCreate, CU_STREAM_NON_BLOCKING);
    CUstream consumer = MADE_CU(CUstream, cuStreamCreate, CU_STREAM_NON_BLOCKING);
    CUevent event = MADE_CU(CUevent, cuEventCreate, CU_EVENT_DISABLE_TIMING);
    CUdeviceptr from = MADE_CU(CUdeviceptr, cuMemAlloc_v2, 4096);
    CUdeviceptr to = MADE_CU(CUdeviceptr, cuMemAlloc_v2, 4096);
    set_bytes(from, 0, 4096);
    OK_CU(cu.cuMemsetD8Async(from, 1, 4096, producer));
    OK_CU(cu.cuEventRecord(event, producer));
    if (wait)
        OK_CU(cu.cuStreamWaitEvent(consumer, event, 0));
    OK_CU(cu.cuMemcpyDtoDAsync_v2(to, from, 4096, consumer));
    OK_CU(cu.cuCtxSynchronize());
    OK_CU(cu.cuMemcpyDtoH_v2(&out, to, 1));
    DESTROY_CU(from, to, event, producer);
    OK_CU(cu.cuStreamDestroy_v2(consumer));
    return out == 1;
}

TEST_WHERE(a_missing_wait_is_exposed_by_some_seed, NEEDS_SOFTGPU("chooses a schedule")) {
    uint64_t shows = 0;
    bool with_wait = true;
    for (uint64_t seed = 1; seed <= SEEDS && !shows; seed++) {
        choose(SOFTGPU_SCHEDULE_RANDOM, seed);
        with_wait = with_wait && handed_over(true);
        choose(SOFTGPU_SCHEDULE_RANDOM, seed);
        shows = handed_over(false) ? 0 : seed;
    }
    choose(SOFTGPU_SCHEDULE_EAGER, 0);
    assert_true(with_wait);
    assert_true(shows > 0);
    print_message("the missing wait shows with SOFTGPU_SCHEDULE=random SOFTGPU_SEED=%llu\n",
                  (unsigned long long)shows);
}

TEST_WHERE(missing_waits_of_a_long_program_are_exposed, NEEDS_SOFTGPU("chooses a schedule")) {
    uint64_t shows = 0;
    for (uint64_t seed = 1; seed <= SEEDS && !shows; seed++) {
        choose(SOFTGPU_SCHEDULE_RANDOM, seed);
        shows = run(400, 1, false) ? 0 : seed;
    }
    choose(SOFTGPU_SCHEDULE_EAGER, 0);
    assert_true(shows > 0);
    print_message("missing waits show with SOFTGPU_SCHEDULE=random SOFTGPU_SEED=%llu\n",
                  (unsigned long long)shows);
}
