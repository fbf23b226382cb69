/* SOFTGPU_FAULT: function:n:error:mode. */
#include "softgpu/entry/fault.h"

#include "test.h"

static char why[512];

static bool takes(const char *text) {
    return sg_fault_parse(text, why, sizeof why);
}

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

TEST(every_fault_mode_is_understood) {
    bool after;
    assert_true(takes("cuMemAlloc_v2:2:CUDA_ERROR_OUT_OF_MEMORY:before"));
    assert_int_equal(outcome(GPUMEM_FN_cuMemAlloc_v2, &after), -1);
    assert_int_equal(outcome(GPUMEM_FN_cuMemFree_v2, &after), -1);
    assert_int_equal(outcome(GPUMEM_FN_cuMemAlloc_v2, &after), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(outcome(GPUMEM_FN_cuMemAlloc_v2, &after), -1);
    assert_int_equal(sg_fault_disarm(), 1);

    assert_true(takes("*:1:ILLEGAL_ADDRESS:after"));
    assert_int_equal(outcome(GPUMEM_FN_cuInit, &after), CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_true(after);
    assert_int_equal(sg_fault_disarm(), 1);

    assert_true(takes("cuInit:1:NO_DEVICE:from"));
    assert_int_equal(outcome(GPUMEM_FN_cuInit, &after), CUDA_ERROR_NO_DEVICE);
    assert_int_equal(outcome(GPUMEM_FN_cuMemFree_v2, &after), CUDA_ERROR_NO_DEVICE);
    assert_int_equal(sg_fault_disarm(), 2);

    assert_true(takes("cuInit:*:SUCCESS:skip"));
    assert_int_equal(outcome(GPUMEM_FN_cuInit, &after), CUDA_SUCCESS);
    assert_int_equal(outcome(GPUMEM_FN_cuInit, &after), CUDA_SUCCESS);
    assert_int_equal(sg_fault_disarm(), 2);
}

/* cuda.h makes cuMemAlloc cuMemAlloc_v2 when a program is compiled: its source shows the name. */
TEST(a_plain_name_arms_all_versions_of_the_function) {
    bool after;
    assert_true(takes("cuMemcpyHtoD:*:UNKNOWN:before"));
    assert_int_equal(outcome(GPUMEM_FN_cuMemcpyHtoD, &after), CUDA_ERROR_UNKNOWN);
    assert_int_equal(outcome(GPUMEM_FN_cuMemcpyHtoD_v2, &after), CUDA_ERROR_UNKNOWN);
    assert_int_equal(outcome(GPUMEM_FN_cuMemcpyHtoD_v2_ptds, &after), CUDA_ERROR_UNKNOWN);
    assert_int_equal(outcome(GPUMEM_FN_cuMemcpyHtoDAsync_v2, &after), -1);
    assert_int_equal(sg_fault_disarm(), 3);

    assert_true(takes("=cuMemcpyHtoD:*:UNKNOWN:before"));
    assert_int_equal(outcome(GPUMEM_FN_cuMemcpyHtoD_v2, &after), -1);
    assert_int_equal(outcome(GPUMEM_FN_cuMemcpyHtoD, &after), CUDA_ERROR_UNKNOWN);

    assert_true(takes("cuMemcpyHtoD_v2:*:UNKNOWN:before"));
    assert_int_equal(outcome(GPUMEM_FN_cuMemcpyHtoD, &after), -1);
    assert_int_equal(outcome(GPUMEM_FN_cuMemcpyHtoD_v2_ptds, &after), -1);
    assert_int_equal(outcome(GPUMEM_FN_cuMemcpyHtoD_v2, &after), CUDA_ERROR_UNKNOWN);
    assert_int_equal(sg_fault_disarm(), 1);
}

TEST(a_fault_that_was_never_reached_is_reported) {
    bool after;
    assert_true(takes("cuMemAlloc:2:UNKNOWN:before"));
    assert_int_equal(outcome(GPUMEM_FN_cuMemAlloc_v2, &after), -1);
    assert_true(sg_fault_missed(why, sizeof why));
    assert_non_null(strstr(why, "was called 1 time"));
    assert_int_equal(outcome(GPUMEM_FN_cuMemAlloc_v2, &after), CUDA_ERROR_UNKNOWN);
    assert_false(sg_fault_missed(why, sizeof why));
    assert_true(sg_fault_arm("cuMemAlloc_v2", 1, CUDA_ERROR_UNKNOWN, SOFTGPU_FAULT_BEFORE));
    assert_false(sg_fault_missed(why, sizeof why)); /* whoever arms by a call can ask */
    assert_int_equal(sg_fault_disarm(), 0);
    assert_false(sg_fault_missed(why, sizeof why));
}

TEST(malformed_faults_are_refused) {
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
        "=cuNoSuchFunction:1:UNKNOWN:before",
        "=*:1:UNKNOWN:before",
        "=:1:UNKNOWN:before",
        "cuMemAllo:1:UNKNOWN:before",
        ":1:UNKNOWN:before",
        ":::",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (takes(bad[i]) || !strstr(why, "it takes FUNCTION:N:ERROR:MODE"))
            fail_msg("'%s' was armed, or not explained: %s", bad[i], why);
    char *longer = malloc(5000);
    assert_non_null(longer);
    memset(longer, 'x', 4999);
    longer[4999] = '\0';
    assert_false(takes(longer));
    free(longer);
    assert_int_equal(sg_fault_disarm(), 0);
}
