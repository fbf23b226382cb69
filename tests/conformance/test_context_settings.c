/* Limits and preferences: each context has its own, and gives them back. */
#include "harness.h"

static size_t limit(CUlimit which) {
    size_t value = 12345;
    OK_CU(cu.cuCtxGetLimit(&value, which));
    return value;
}

TEST(limits_belong_to_the_context) {
    size_t before = limit(CU_LIMIT_MALLOC_HEAP_SIZE);
    new_context(dev);
    assert_int_equal(limit(CU_LIMIT_MALLOC_HEAP_SIZE), before);
    OK_CU(cu.cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 2 * before));
    assert_true(limit(CU_LIMIT_MALLOC_HEAP_SIZE) >= 2 * before);
    OK_CU(cu.cuCtxPushCurrent_v2(ctx));
    assert_int_equal(limit(CU_LIMIT_MALLOC_HEAP_SIZE), before);
    OK_CU(cu.cuCtxPopCurrent_v2(NULL));
}

TEST(the_stack_size_can_be_raised) {
    new_context(dev);
    size_t before = limit(CU_LIMIT_STACK_SIZE);
    assert_true(before > 0);
    OK_CU(cu.cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 4 * before));
    assert_int_equal(limit(CU_LIMIT_STACK_SIZE), 4 * before);
}

TEST(invalid_limits_are_refused) {
    size_t value = 77;
    assert_int_not_equal(cu.cuCtxGetLimit(&value, (CUlimit)1000), CUDA_SUCCESS);
    assert_int_not_equal(cu.cuCtxSetLimit((CUlimit)1000, 1), CUDA_SUCCESS);
    assert_int_equal(value, 77);
}

TEST(cache_preferences_are_kept) {
    CUfunc_cache cache = CU_FUNC_CACHE_PREFER_EQUAL;
    CUsharedconfig shared = (CUsharedconfig)77;
    CUcontext other = MADE_CU(CUcontext, cuCtxCreate_v2, 0, dev);
    OK_CU(cu.cuCtxGetCacheConfig(&cache));
    assert_int_equal(cache, CU_FUNC_CACHE_PREFER_NONE);
    OK_CU(cu.cuCtxSetCacheConfig(CU_FUNC_CACHE_PREFER_L1));
    OK_CU(cu.cuCtxGetCacheConfig(&cache));
    assert_int_equal(cache, CU_FUNC_CACHE_PREFER_L1);
    OK_CU(cu.cuCtxGetSharedMemConfig(&shared));
    assert_in_range(shared, CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE,
                    CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE);
    OK_CU(cu.cuCtxSetSharedMemConfig(CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE));
    OK_CU(cu.cuCtxDestroy_v2(other));
    FAILS_CU(INVALID_VALUE, cu.cuCtxSetCacheConfig((CUfunc_cache)77));
}

/* The range is that of real devices: 0 is the least, numbers below it come first. */
TEST(the_stream_priority_range_is_reported) {
    int least = 77, greatest = 77, again = 77;
    OK_CU(cu.cuCtxGetStreamPriorityRange(&least, &greatest));
    assert_int_equal(least, 0);
    assert_true(greatest < least);
    OK_CU(cu.cuCtxGetStreamPriorityRange(NULL, &again));
    assert_int_equal(again, greatest);
    OK_CU(cu.cuCtxGetStreamPriorityRange(&again, NULL));
    assert_int_equal(again, least);
}
