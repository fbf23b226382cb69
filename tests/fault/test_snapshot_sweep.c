/* A snapshot under a driver that fails: it is told, without what the driver does not tell, and
 * changes nothing. */
#include "snapshot_subject.h"
#include "sweep.h"

EACH_TEST(open_device, close_device);

static int add_bytes(void *user, const char *text, size_t bytes) {
    *(size_t *)user += bytes;
    return 0;
}

static int act(void *user) {
    struct held *held = user;
    char *text = NULL, *of_all = NULL;
    size_t written[2] = {0};
    held->taken++;
    if (snapshot_of(device, &text) != GPUMEM_OK || !is_whole(text) ||
        gpumem_snapshot(library, NULL, &of_all) != GPUMEM_OK || !is_whole(of_all) ||
        gpumem_snapshot_write(library, GPUMEM_SNAPSHOT_OPTIONS(.device = device), add_bytes,
                              &written[0]) != GPUMEM_OK ||
        gpumem_snapshot_write(library, NULL, add_bytes, &written[1]) != GPUMEM_OK || !written[0] ||
        !written[1])
        held->wrong++;
    free(text);
    free(of_all);
    return 0;
}

/* A refused cuCtxPopCurrent leaves the library's context current. */
static void pop_contexts(void *user) {
    CUcontext context = NULL;
    while (cu->cuCtxGetCurrent(&context) == CUDA_SUCCESS && context)
        cu->cuCtxPopCurrent_v2(&context);
}

TEST(a_snapshot_reports_a_failing_driver) {
    struct held held = {0};
    hold_all(&held);
    /* Of what a snapshot does without: test_snapshot_host_memory. */
    struct sweep sweep = {.name = "snapshot",
                          .act = act,
                          .undo = pop_contexts,
                          .may_succeed = true,
                          .needs_host_memory = true,
                          .user = &held};
    sweep_with(soft);
    sweep_run(&sweep);
    assert_true(held.taken > 10);
    assert_int_equal(held.wrong, 0);
    let_all_go(&held);
}
