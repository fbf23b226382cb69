/* SOFTGPU_FAULT: function:n:error:mode. */
#include "softgpu/entry/fault.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
/* cmocka wants the three above before it. */
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

/* What the n-th counted call of `fn` becomes: -1 when it goes on untouched. */
static int outcome(gpumem_driver_fn fn, bool *after) {
    struct sg_call call = {.fn = fn};
    CUresult result = CUDA_ERROR_UNKNOWN;
    bool go_on = sg_fault_enter(&call, true, &result);
    *after = call.fault_after;
    if (go_on)
        return call.fault_after ? (int)call.fault : -1;
    return (int)result;
}

static void every_mode_is_understood(void **state) {
    (void)state;
    bool after;
    assert_true(sg_fault_parse("cuMemAlloc_v2:2:CUDA_ERROR_OUT_OF_MEMORY:before"));
    assert_int_equal(outcome(GPUMEM_FN_cuMemAlloc_v2, &after), -1);
    assert_int_equal(outcome(GPUMEM_FN_cuMemFree_v2, &after), -1);
    assert_int_equal(outcome(GPUMEM_FN_cuMemAlloc_v2, &after), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(outcome(GPUMEM_FN_cuMemAlloc_v2, &after), -1);
    assert_int_equal(sg_fault_disarm(), 1);

    assert_true(sg_fault_parse("*:1:ILLEGAL_ADDRESS:after"));
    assert_int_equal(outcome(GPUMEM_FN_cuInit, &after), CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_true(after);
    assert_int_equal(sg_fault_disarm(), 1);

    assert_true(sg_fault_parse("cuInit:1:NO_DEVICE:from"));
    assert_int_equal(outcome(GPUMEM_FN_cuInit, &after), CUDA_ERROR_NO_DEVICE);
    assert_int_equal(outcome(GPUMEM_FN_cuMemFree_v2, &after), CUDA_ERROR_NO_DEVICE);
    assert_int_equal(sg_fault_disarm(), 2);

    assert_true(sg_fault_parse("cuInit:*:SUCCESS:skip"));
    assert_int_equal(outcome(GPUMEM_FN_cuInit, &after), CUDA_SUCCESS);
    assert_int_equal(outcome(GPUMEM_FN_cuInit, &after), CUDA_SUCCESS);
    assert_int_equal(sg_fault_disarm(), 2);
}

static void anything_else_is_refused(void **state) {
    (void)state;
    static const char *const bad[] = {
        "",
        "cuInit",
        "cuInit:1:UNKNOWN",
        "cuInit:1:UNKNOWN:before:more",
        "cuInit:0:UNKNOWN:before",
        "cuInit:-1:UNKNOWN:before",
        "cuInit:1x:UNKNOWN:before",
        "cuInit:1:NO_SUCH_ERROR:before",
        "cuInit:1:UNKNOWN:later",
        "cuNoSuchFunction:1:UNKNOWN:before",
        ":1:UNKNOWN:before",
        ":::",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (sg_fault_parse(bad[i]))
            fail_msg("'%s' was armed", bad[i]);
    char *longer = malloc(5000);
    assert_non_null(longer);
    memset(longer, 'x', 4999);
    longer[4999] = '\0';
    assert_false(sg_fault_parse(longer));
    free(longer);
    assert_int_equal(sg_fault_disarm(), 0);
}

static void quiet(void) {
    setenv("SOFTGPU_LOG", "off", 1);
}

int main(void) {
    quiet(); /* the refusals would each be explained */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_mode_is_understood),
        cmocka_unit_test(anything_else_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
