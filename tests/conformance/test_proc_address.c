/* cuGetProcAddress: one name, several ABIs, two kinds of default stream. */
#include "harness.h"

#define LEGACY     CU_GET_PROC_ADDRESS_LEGACY_STREAM
#define PER_THREAD CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM

static void *ask(const char *name, int version, cuuint64_t flags) {
    void *function = NULL;
    CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    OK_CU(cu.cuGetProcAddress_v2(name, &function, version, flags, &status));
    assert_int_equal(status, CU_GET_PROC_ADDRESS_SUCCESS);
    assert_non_null(function);
    return function;
}

static void *exported(const char *symbol) {
    return gpumem_driver_symbol(driver, symbol);
}

TEST(the_newest_abi_of_the_requested_version_is_found) {
    NEEDS_SOFTGPU("compares with exported symbols");
    assert_ptr_equal(ask("cuMemAlloc", 2000, 0), exported("cuMemAlloc"));
    assert_ptr_equal(ask("cuMemAlloc", 3010, 0), exported("cuMemAlloc"));
    assert_ptr_equal(ask("cuMemAlloc", 3020, 0), exported("cuMemAlloc_v2"));
    assert_ptr_equal(ask("cuMemAlloc", 13000, 0), exported("cuMemAlloc_v2"));
    assert_ptr_equal(ask("cuCtxCreate", 11040, 0), exported("cuCtxCreate_v3"));
    assert_ptr_equal(ask("cuCtxCreate", 12050, 0), exported("cuCtxCreate_v4"));
    assert_ptr_equal(ask("cuGetProcAddress", 12000, 0), exported("cuGetProcAddress_v2"));
    assert_ptr_equal(ask("cuGetProcAddress", 11030, 0), exported("cuGetProcAddress"));
}

TEST(a_flag_selects_the_kind_of_default_stream) {
    NEEDS_SOFTGPU("compares with exported symbols");
    assert_ptr_equal(ask("cuMemcpyHtoD", 7000, LEGACY), exported("cuMemcpyHtoD_v2"));
    assert_ptr_equal(ask("cuMemcpyHtoD", 7000, PER_THREAD), exported("cuMemcpyHtoD_v2_ptds"));
    assert_ptr_equal(ask("cuMemcpyHtoDAsync", 7000, PER_THREAD),
                     exported("cuMemcpyHtoDAsync_v2_ptsz"));
    assert_ptr_equal(ask("cuMemcpyHtoD", 7000, LEGACY | PER_THREAD),
                     exported("cuMemcpyHtoD_v2_ptds"));
    /* Without a twin the function itself is right for both. */
    assert_ptr_equal(ask("cuMemAlloc", 7000, PER_THREAD), exported("cuMemAlloc_v2"));
}

TEST(a_per_thread_variant_needs_its_own_version) {
    void *function = &function;
    CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
    OK_CU(cu.cuGetProcAddress_v2("cuMemcpyHtoD", &function, 6000, PER_THREAD, &status));
    assert_null(function);
    assert_int_equal(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
}

TEST(a_function_that_is_found_can_be_called) {
    CUresult(CUDAAPI * get_version)(int *);
    void *function = ask("cuDriverGetVersion", 12000, 0);
    memcpy(&get_version, &function, sizeof function);
    int version = 0, same = 0;
    OK_CU(get_version(&version));
    OK_CU(cu.cuDriverGetVersion(&same));
    assert_int_equal(version, same);
}

TEST_WHERE(every_function_is_found_at_its_version, NEEDS_SOFTGPU("a driver may lack some")) {
    int version = 0;
    OK_CU(cu.cuDriverGetVersion(&version));
    for (unsigned i = 0; i < GPUMEM_FN_COUNT; i++) {
        const gpumem_driver_fn_info *row = gpumem_driver_fn_info_get((gpumem_driver_fn)i);
        cuuint64_t flags = row->kind == GPUMEM_FN_PLAIN ? LEGACY : PER_THREAD;
        if (i == GPUMEM_FN_cuEventCreateFromEGLSync)
            continue; /* NVIDIA's driver does not have it either */
        if (row->version > version)
            continue; /* not an argument of this driver's */
        void *found = ask(row->name, row->version, flags);
        if (found != exported(row->symbol))
            fail_msg("%s at %d is not %s", row->name, row->version, row->symbol);
    }
}

TEST(an_unknown_name_returns_a_null_pointer) {
    void *function = &function;
    CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
    OK_CU(cu.cuGetProcAddress_v2("cuNoSuchFunction", &function, 12000, 0, &status));
    assert_null(function);
    assert_int_equal(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    function = &function;
    OK_CU(cu.cuGetProcAddress_v2("", &function, 12000, 0, &status));
    assert_null(function);
}

TEST(an_insufficient_version_is_reported) {
    void *function = &function;
    CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
    OK_CU(cu.cuGetProcAddress_v2("cuMemCreate", &function, 9000, 0, &status));
    assert_null(function);
    assert_int_equal(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
}

TEST(invalid_arguments_are_refused) {
    void *const untouched = &state;
    void *function = untouched;
    FAILS_CU(INVALID_VALUE, cu.cuGetProcAddress_v2("cuInit", &function, 12000, 4, NULL));
    FAILS_CU(INVALID_VALUE, cu.cuGetProcAddress_v2("cuInit", &function, 99990, 0, NULL));
    if (soft) { /* NVIDIA's driver crashes */
        FAILS_CU(INVALID_VALUE, cu.cuGetProcAddress_v2("cuInit", NULL, 12000, 0, NULL));
        FAILS_CU(INVALID_VALUE, cu.cuGetProcAddress_v2(NULL, &function, 12000, 0, NULL));
    }
    assert_ptr_equal(function, untouched);
}

TEST(the_first_abi_fails_for_unknown_names) {
    void *function = NULL;
    OK_CU(cu.cuGetProcAddress("cuDriverGetVersion", &function, 11030, 0));
    assert_non_null(function);
    function = &function;
    FAILS_CU(NOT_FOUND, cu.cuGetProcAddress("cuNoSuchFunction", &function, 11030, 0));
    assert_ptr_equal(function, &function);
}
