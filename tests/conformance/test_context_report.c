/* Devices and contexts in softgpu's state dump and leak report. */
#include "harness.h"

static bool dump_has(const char *text) {
    char *dump = soft->state_dump();
    assert_non_null(dump);
    bool has = strstr(dump, text) != NULL;
    soft->free_text(dump);
    return has;
}

static unsigned leaked(const char *text) {
    char *report = soft->leak_report();
    assert_non_null(report);
    unsigned count = 0;
    for (const char *at = report; (at = strstr(at, text)); at++)
        count++;
    soft->free_text(report);
    return count;
}

TEST_WHERE(the_state_dump_lists_devices_and_contexts, NEEDS_SOFTGPU("its state dump")) {
    assert_true(dump_has("device 0 "));
    assert_true(dump_has("context 1 device 0 primary uses 1"));
    assert_false(dump_has("created"));
    CUcontext other = MADE_CU(CUcontext, cuCtxCreate_v2, CU_CTX_SCHED_YIELD, dev);
    assert_true(dump_has("context 2 device 0 created uses 1 flags 0x2"));
    OK_CU(cu.cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 8192));
    assert_true(dump_has("context 2 limit 0 8192"));
    OK_CU(cu.cuCtxDestroy_v2(other));
    assert_false(dump_has("created"));
}

/* Two equal states give equal text, whatever was made and ended between them. */
TEST_WHERE(the_state_dump_forgets_destroyed_contexts, NEEDS_SOFTGPU("its state dump")) {
    char *before = soft->state_dump();
    for (int i = 0; i < 3; i++) {
        CUcontext other = MADE_CU(CUcontext, cuCtxCreate_v2, 0, dev);
        OK_CU(cu.cuCtxDestroy_v2(other));
    }
    char *after = soft->state_dump();
    assert_string_equal(before, after);
    soft->free_text(before);
    soft->free_text(after);
}

TEST_WHERE(the_leak_report_names_live_contexts, NEEDS_SOFTGPU("its leak report")) {
    assert_int_equal(leaked("created on device"), 0);
    CUcontext other = MADE_CU(CUcontext, cuCtxCreate_v2, 0, dev);
    assert_int_equal(leaked("created on device 0, not destroyed"), 1);
    OK_CU(cu.cuCtxDestroy_v2(other));
    assert_int_equal(leaked("created on device"), 0);
    /* The harness retains it; what is in it may leak, it itself is its device's. */
    assert_int_equal(leaked("primary"), 0);
}
