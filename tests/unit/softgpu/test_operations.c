/* Operations and tokens: what they hold, when they complete, how often they finish. */
#include "softgpu/stream/schedule.h"

#include "test.h"

/* The lock is held throughout, so that no worker takes part. */
static struct sg_context context;
static bool open_gate;
static unsigned finished;

static bool gate(struct sg_op *op) {
    return open_gate;
}

static void count_finish(struct sg_op *op) {
    finished++;
}

static int begin(void **state) {
    sg_lock();
    context = (struct sg_context){.refs = 1000, .alive = true};
    open_gate = false;
    finished = 0;
    sg_schedule_set(SG_SCHEDULE_EAGER, 1);
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

static struct sg_stream *stream_with(unsigned flags, int priority) {
    struct sg_stream *stream = sg_stream_new(&context, flags, priority);
    assert_non_null(stream);
    sg_stream_list(stream);
    return stream;
}

static struct sg_stream *stream(void) {
    return stream_with(CU_STREAM_NON_BLOCKING, 0);
}

static struct sg_op *held(void) {
    struct sg_op *op = sg_op_new(NULL);
    assert_non_null(op);
    op->ready = gate;
    op->finish = count_finish;
    return op;
}

static struct sg_op *marker(void) {
    struct sg_op *op = sg_op_new(NULL);
    assert_non_null(op);
    op->finish = count_finish;
    return op;
}

static void submit(struct sg_stream *stream, struct sg_op *op) {
    assert_int_equal(sg_stream_submit(stream, op), CUDA_SUCCESS);
}

/* ---- Tokens ---- */

TEST(an_idle_stream_has_no_token) {
    struct sg_token token = sg_stream_token(stream());
    assert_null(token.stream);
    assert_true(sg_token_complete(token));
}

TEST(a_token_completes_with_its_operation) {
    struct sg_stream *s = stream();
    submit(s, held());
    struct sg_token token = sg_stream_token(s);
    submit(s, held());
    assert_ptr_equal(token.stream, s);
    assert_false(sg_token_complete(token));
    open_gate = true;
    sg_stream_settle(s);
    assert_true(sg_token_complete(token));
    assert_int_equal(finished, 2);
    sg_token_release(&token);
    assert_null(token.stream);
}

TEST(an_operation_holds_references_to_the_streams_it_waits_for) {
    enum { MANY = 40 };
    struct sg_stream *streams[MANY];
    struct sg_op *op = marker();
    unsigned before[MANY];
    for (unsigned i = 0; i < MANY; i++) {
        streams[i] = stream();
        submit(streams[i], held());
        before[i] = streams[i]->refs;
        struct sg_token token = sg_stream_token(streams[i]);
        assert_true(sg_op_wait_for(op, token));
        sg_token_release(&token);
        assert_int_equal(streams[i]->refs, before[i] + 1);
    }
    assert_int_equal(op->wait_count, MANY);
    sg_op_free(op);
    for (unsigned i = 0; i < MANY; i++)
        assert_int_equal(streams[i]->refs, before[i]);
}

TEST(a_completed_token_adds_no_wait) {
    struct sg_stream *s = stream();
    open_gate = true;
    submit(s, held());
    struct sg_op *op = marker();
    assert_true(sg_op_wait_for(op, (struct sg_token){s, s->submitted}));
    assert_int_equal(op->wait_count, 0);
    sg_op_free(op);
    assert_int_equal(finished, 1);
}

/* ---- Completion ---- */

TEST(a_marker_in_an_idle_stream_completes_at_once) {
    struct sg_stream *s = stream();
    submit(s, marker());
    assert_int_equal(finished, 1);
    assert_int_equal(s->completed, 1);
    assert_null(s->head);
    assert_null(sg_working);
}

TEST(a_marker_waits_for_its_token) {
    struct sg_stream *first = stream(), *second = stream();
    submit(first, held());
    struct sg_op *op = marker();
    assert_true(sg_op_wait_for(op, (struct sg_token){first, 1}));
    submit(second, op);
    sg_stream_settle(second);
    assert_int_equal(finished, 0);
    open_gate = true;
    sg_stream_settle(second);
    assert_int_equal(finished, 2);
    assert_int_equal(second->completed, 1);
}

static CUresult must_not_run(struct sg_op *op) {
    fail_msg("an operation ran in a poisoned context");
    return CUDA_SUCCESS;
}

TEST(operations_of_a_poisoned_context_finish_without_running) {
    struct sg_stream *s = stream();
    submit(s, held());
    struct sg_op *op = sg_op_new(must_not_run);
    assert_non_null(op);
    op->finish = count_finish;
    submit(s, op);
    context.sticky = CUDA_ERROR_ILLEGAL_ADDRESS;
    struct sg_token token = sg_stream_token(s);
    assert_int_equal(sg_token_wait(token), CUDA_ERROR_ILLEGAL_ADDRESS);
    sg_token_release(&token);
    assert_int_equal(finished, 2);
    assert_null(s->head);
}

TEST(a_destroyed_stream_lives_until_its_work_is_done) {
    struct sg_stream *s = stream();
    submit(s, held());
    sg_stream_destroy(s);
    assert_ptr_equal(context.streams, s);
    open_gate = true;
    sg_stream_settle(s);
    assert_null(context.streams);
    assert_int_equal(finished, 1);
}
