/*
 * Copies of mapped memory by the driver: each of its calls fails. A copy that cannot begin is made
 * by the CPU; one that does not end is an error. Either way nothing is left.
 */
#include "library_sweeps.h"
#include "mapped/engine.h"

#define BYTES ((size_t)100000)

static gpumem_resource *mapped, *plain;
static unsigned char bytes[BYTES], back[BYTES];

static const gpumem_mapped_options options = {
    .size = sizeof options, .method = GPUMEM_MAPPED_DESCRIPTOR, .method_strict = 1};

static void always_by_the_driver(struct gm_plans *plans) {
    struct gm_copy_plan plan = gm_copy_plan_default();
    plan.store = plan.load = (struct gm_copy_cutover){.pinned = 1, .pageable = 50000};
    OK(gm_plans_take(plans, &plan, GPUMEM_MEASURED_HERE));
}

/* Between the cut-overs the driver is asked what the memory is, above both it copies. */
static gpumem_status there_and_back(gpumem_buffer *buffer, gpumem_buffer *view, size_t size) {
    memset(back, 0, size);
    gpumem_status status = view ? gpumem_mapped_write(view, 3, bytes, size)
                                : gpumem_mapped_write(buffer, 3, bytes, size);
    AND_THEN(status, view ? gpumem_mapped_read(view, 3, back, size)
                          : gpumem_mapped_read(buffer, 3, back, size));
    if (status == GPUMEM_OK)
        assert_memory_equal(back, bytes, size);
    return status;
}

static int copies(void *user) {
    gpumem_buffer *buffer = NULL;
    gpumem_status status = gpumem_buffer_allocate(mapped, 2 * BYTES, NULL, &buffer);
    AND_THEN(status, there_and_back(buffer, NULL, 10000));
    AND_THEN(status, there_and_back(buffer, NULL, BYTES));
    gpumem_status freed = gpumem_buffer_free(buffer, NULL);
    return (int)(status == GPUMEM_OK ? freed : status);
}

/* The resource keeps the stream of its copies, until its end. */
static void end_streams(void *user) {
    gm_engine_close(mapped->engine);
    settle(user);
}

static void sweep_copies(const char *name, int (*act)(void *)) {
    SWEEP(.name = name, .act = act, .recover = end_streams, .undo = end_streams,
          .may_succeed = true);
}

TEST(mapped_writes_and_reads_are_all_or_nothing) {
    always_by_the_driver(mapped->engine->plans);
    sweep_copies("mapped write and read by the driver", copies);
}

/* One call refused at a time, on streams that are there: never an error, and the bytes are right.
 */
TEST(a_copy_survives_one_refused_driver_call) {
    static const char *const calls[] = {
        "cuCtxGetCurrent",     "cuCtxPushCurrent_v2",  "cuThreadExchangeStreamCaptureMode",
        "cuStreamCreate",      "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2",
        "cuStreamSynchronize", "cuPointerGetAttribute"};
    static const softgpu_fault_mode modes[] = {SOFTGPU_FAULT_BEFORE, SOFTGPU_FAULT_AFTER};
    gpumem_buffer *buffer = NEW_BUFFER(mapped, 2 * BYTES);
    for (size_t i = 0; i < BYTES; i++)
        bytes[i] = (unsigned char)(i * 5 + i / 251);
    for (size_t i = 0; i < COUNT(calls); i++)
        for (size_t m = 0; m < COUNT(modes); m++) {
            gm_engine_close(mapped->engine); /* its streams, so that one is made */
            always_by_the_driver(mapped->engine->plans);
            assert_int_equal(soft->fault_arm(calls[i], 1, CUDA_ERROR_OUT_OF_MEMORY, modes[m]), 0);
            OK(there_and_back(buffer, NULL, 10000));
            OK(there_and_back(buffer, NULL, BYTES));
            assert_true(soft->fault_disarm() > 0);
            pop_contexts(NULL);
        }
    OK(gpumem_buffer_free(buffer, NULL));
}

/* The end of a copy that the driver does not tell is the error; the caller's memory may be in use.
 */
TEST(a_copy_that_cannot_be_waited_for_is_an_error) {
    gpumem_buffer *buffer = NEW_BUFFER(mapped, 2 * BYTES);
    always_by_the_driver(mapped->engine->plans);
    assert_int_equal(
        soft->fault_arm("cuStreamSynchronize", 0, CUDA_ERROR_UNKNOWN, SOFTGPU_FAULT_BEFORE), 0);
    FAILS(DRIVER, gpumem_mapped_write(buffer, 0, bytes, BYTES));
    SAYS("may be under way");
    FAILS(DRIVER, gpumem_mapped_read(buffer, 0, bytes, BYTES));
    soft->fault_disarm();
    OK(gpumem_mapped_write(buffer, 0, bytes, BYTES));
    OK(gpumem_buffer_free(buffer, NULL));
}

static gpumem_status view_and_copy(gpumem_buffer *buffer) {
    gpumem_buffer *view = NULL;
    gpumem_status status = gpumem_buffer_host_view(buffer, NULL, &view);
    if (status != GPUMEM_OK)
        return status;
    status = there_and_back(NULL, view, BYTES);
    gpumem_status ended = gpumem_buffer_free(view, NULL);
    return status == GPUMEM_OK ? ended : status;
}

static int viewed(void *user) {
    gpumem_buffer *buffer = NULL;
    gpumem_status status = gpumem_buffer_allocate(plain, 2 * BYTES, NULL, &buffer);
    if (status != GPUMEM_OK)
        return (int)status;
    status = view_and_copy(buffer);
    gpumem_status freed = gpumem_buffer_free(buffer, NULL);
    return (int)(status == GPUMEM_OK ? freed : status);
}

TEST(mapped_view_copies_are_all_or_nothing) {
    always_by_the_driver(mapped->engine->plans);
    sweep_copies("a view's write and read by the driver", viewed);
}

/* How many copies are measured depends on the time they take, but for the shortest times. */
static int calibrate(void *user) {
    gpumem_mapped_calibrate_options o = {
        .size = sizeof o, .maximum_bytes = 8, .run_nanoseconds = 1, .keep_nothing = 1};
    const struct gm_kept_plan *before = gm_plan_now(mapped->engine->plans);
    gpumem_status status = gpumem_mapped_calibrate(mapped, &o);
    assert_true(status != GPUMEM_OK || gm_plan_now(mapped->engine->plans) != before);
    return (int)status;
}

TEST_IS(mapped_calibration_is_all_or_nothing, sweep_copies("mapped calibrate", calibrate));

static int begin(void **state) {
    setenv("GPUMEM_VULKAN", "off", 1);
    gm_plans_for_tests();
    if (begin_sweeps(state) != 0)
        return -1;
    OK(gpumem_mapped_resource_create(device, &options, &mapped));
    plain = NEW_VIRTUAL();
    return 0;
}

ALL_TESTS(begin, end_sweeps);
