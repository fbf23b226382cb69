/* Which operation goes next: walks through dependencies, default-stream rules, chance. */
#include "softgpu/stream/schedule.h"

#include "test.h"

/* The lock is held throughout, so that no worker takes part. */
static struct sg_context context;
static bool open_gate;
static struct sg_op *ran[64];
static unsigned runs;

static bool gate(struct sg_op *op) {
    return open_gate;
}

static CUresult run(struct sg_op *op) {
    ran[runs++] = op;
    return CUDA_SUCCESS;
}

static int begin(void **state) {
    sg_lock();
    context = (struct sg_context){.refs = 1000, .alive = true};
    open_gate = false;
    runs = 0;
    sg_schedule_set(SG_SCHEDULE_LATE, 1); /* workers keep away, should one get the lock */
    return sg_streams_context_begin(&context) == CUDA_SUCCESS ? 0 : -1;
}

static int end(void **state) {
    open_gate = true;
    sg_streams_context_end(&context);
    bool clean = context.refs == 1000 && sg_working == NULL;
    sg_unlock();
    return clean ? 0 : -1;
}

EACH_TEST(begin, end);

static struct sg_stream *stream(unsigned flags, int priority) {
    struct sg_stream *stream = sg_stream_new(&context, flags, priority);
    assert_non_null(stream);
    sg_stream_list(stream);
    return stream;
}

static struct sg_op *operation(void) {
    struct sg_op *op = sg_op_new(run);
    assert_non_null(op);
    return op;
}

static struct sg_op *held(void) {
    struct sg_op *op = operation();
    op->ready = gate;
    return op;
}

static struct sg_op *submit(struct sg_stream *stream, struct sg_op *op) {
    assert_int_equal(sg_stream_submit(stream, op), CUDA_SUCCESS);
    return op;
}

static struct sg_op *after(struct sg_op *op, struct sg_stream *stream) {
    assert_true(sg_op_wait_for(op, (struct sg_token){stream, stream->submitted}));
    return op;
}

/* ---- Walks ---- */

TEST(a_walk_finds_the_operation_that_blocks_a_stream) {
    struct sg_stream *a = stream(CU_STREAM_NON_BLOCKING, 0), *b = stream(CU_STREAM_NON_BLOCKING, 0),
                     *c = stream(CU_STREAM_NON_BLOCKING, 0);
    struct sg_op *first = submit(a, operation());
    submit(b, after(operation(), a));
    submit(c, after(after(operation(), b), a));
    struct sg_walk walk;
    sg_walk_from(c, &walk);
    assert_ptr_equal(walk.start, first);
    assert_false(walk.polls);
    sg_op_execute(first);
    sg_walk_from(c, &walk);
    assert_ptr_equal(walk.start, b->head);
    assert_int_equal(runs, 1);
}

TEST(a_walk_reports_polling_operations_and_host_functions) {
    struct sg_stream *a = stream(CU_STREAM_NON_BLOCKING, 0), *b = stream(CU_STREAM_NON_BLOCKING, 0);
    submit(a, held());
    struct sg_op *host = operation();
    host->host_function = true;
    submit(b, after(operation(), a));
    struct sg_walk walk;
    sg_walk_from(b, &walk);
    assert_null(walk.start);
    assert_null(walk.host);
    assert_true(walk.polls);
    struct sg_stream *c = stream(CU_STREAM_NON_BLOCKING, 0);
    submit(c, host);
    sg_walk_from(c, &walk);
    assert_ptr_equal(walk.host, host);
    assert_null(walk.start);
}

TEST(the_stream_of_higher_priority_goes_first) {
    struct sg_stream *low = stream(CU_STREAM_NON_BLOCKING, 0),
                     *high = stream(CU_STREAM_NON_BLOCKING, -5),
                     *join = stream(CU_STREAM_NON_BLOCKING, 0);
    submit(low, operation());
    struct sg_op *wanted = submit(high, operation());
    submit(join, after(after(operation(), low), high));
    struct sg_walk walk;
    sg_walk_from(join, &walk);
    assert_ptr_equal(walk.start, wanted);
}

TEST(waiting_runs_only_the_operations_waited_for) {
    struct sg_stream *a = stream(CU_STREAM_NON_BLOCKING, 0), *b = stream(CU_STREAM_NON_BLOCKING, 0);
    submit(a, operation());
    struct sg_op *mine = submit(b, operation());
    struct sg_token token = sg_stream_token(b);
    assert_int_equal(sg_token_wait(token), CUDA_SUCCESS);
    sg_token_release(&token);
    assert_int_equal(runs, 1);
    assert_ptr_equal(ran[0], mine);
    assert_int_equal(a->completed, 0);
}

/* ---- Default streams ---- */

TEST(the_legacy_stream_waits_once_for_each_blocking_one) {
    struct sg_stream *a = stream(0, 0), *b = stream(0, 0);
    submit(a, held());
    submit(b, held());
    submit(stream(CU_STREAM_NON_BLOCKING, 0), held());
    struct sg_op *first = submit(context.legacy, operation());
    struct sg_op *second = submit(context.legacy, operation());
    assert_int_equal(first->wait_count, 2);
    assert_int_equal(second->wait_count, 0); /* the first one did */
    submit(a, held());
    struct sg_op *third = submit(context.legacy, operation());
    assert_int_equal(third->wait_count, 1);
}

TEST(blocking_streams_wait_once_for_the_legacy_one) {
    struct sg_stream *a = stream(0, 0), *apart = stream(CU_STREAM_NON_BLOCKING, 0);
    submit(context.legacy, held());
    struct sg_op *first = submit(a, operation());
    struct sg_op *second = submit(a, operation());
    struct sg_op *other = submit(apart, operation());
    assert_int_equal(first->wait_count, 1);
    assert_int_equal(second->wait_count, 0);
    assert_int_equal(other->wait_count, 0);
}

TEST(busy_blocking_streams_are_counted) {
    struct sg_stream *a = stream(0, 0);
    submit(a, held());
    submit(a, held());
    assert_int_equal(context.legacy->busy_blocking, 1);
    assert_false(sg_stream_idle(context.legacy));
    open_gate = true;
    sg_op_execute(a->head);
    sg_op_execute(a->head);
    assert_int_equal(context.legacy->busy_blocking, 0);
    assert_true(sg_stream_idle(context.legacy));
}

/* ---- Chance ---- */

TEST(the_same_seed_draws_the_same_numbers) {
    uint64_t first[32];
    unsigned seen = 0, differ = 0;
    sg_schedule_set(SG_SCHEDULE_RANDOM, 42);
    for (unsigned i = 0; i < 32; i++) {
        first[i] = sg_schedule_draw(8);
        assert_true(first[i] < 8);
        seen |= 1u << first[i];
    }
    sg_schedule_set(SG_SCHEDULE_RANDOM, 42);
    for (unsigned i = 0; i < 32; i++)
        assert_int_equal(sg_schedule_draw(8), first[i]);
    sg_schedule_set(SG_SCHEDULE_RANDOM, 43);
    for (unsigned i = 0; i < 32; i++)
        differ += sg_schedule_draw(8) != first[i];
    assert_true(differ > 0);
    assert_true((seen & (seen - 1)) != 0);
}

TEST(a_random_schedule_takes_operations_of_every_stream) {
    struct sg_stream *streams[4];
    unsigned seen = 0;
    for (unsigned i = 0; i < 4; i++) {
        streams[i] = stream(CU_STREAM_NON_BLOCKING, 0);
        submit(streams[i], operation());
    }
    sg_schedule_set(SG_SCHEDULE_RANDOM, 7);
    for (unsigned tries = 0; tries < 200; tries++) {
        const struct sg_op *op = sg_schedule_any();
        for (unsigned i = 0; i < 4; i++)
            if (op == streams[i]->head)
                seen |= 1u << i;
    }
    assert_int_equal(seen, 15);
    sg_schedule_set(SG_SCHEDULE_LATE, 1);
}
