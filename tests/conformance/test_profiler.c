/* Starting and stopping a profile is a state of the context. */
#include "harness.h"

static bool shown(void) {
    char *dump = soft->state_dump();
    bool is = strstr(dump, "profiler on") != NULL;
    soft->free_text(dump);
    return is;
}

TEST_WHERE(profiling_is_started_and_stopped_per_context, NEEDS_SOFTGPU("shows its state")) {
    assert_false(shown());
    OK_CU(cu.cuProfilerStart());
    OK_CU(cu.cuProfilerStart());
    assert_true(shown());
    CUcontext other = MADE_CU(CUcontext, cuCtxCreate_v2, 0, dev);
    assert_false(shown());
    OK_CU(cu.cuCtxDestroy_v2(other));
    assert_true(shown());
    OK_CU(cu.cuProfilerStop());
    assert_false(shown());
    OK_CU(cu.cuProfilerStop());
}

TEST(the_profiler_needs_a_context) {
}

TEST_IS(profiler_initialization_is_not_supported,
        FAILS_CU(NOT_SUPPORTED, cu.cuProfilerInitialize("config", "output", CU_OUT_CSV)));
