/* The table as softgpu has it, and the names of results. */
#include "softgpu/core/results.h"
#include "softgpu/core/rows.h"
#include "softgpu/entry/entry.h"

#include "test.h"

TEST(every_function_is_found_by_its_symbol) {
    for (unsigned i = 0; i < GPUMEM_FN_COUNT; i++)
        assert_int_equal(sg_row_find(sg_rows[i].symbol), i);
    assert_int_equal(sg_row_find("cuNoSuchFunction"), GPUMEM_FN_COUNT);
    assert_int_equal(sg_row_find(""), GPUMEM_FN_COUNT);
}

/* cuGetProcAddress reads on from the first row of a name. */
TEST(versions_of_a_function_are_adjacent_rows) {
    for (unsigned i = 0; i < GPUMEM_FN_COUNT; i++) {
        unsigned first = sg_name_find(sg_rows[i].name);
        assert_true(first <= i);
        for (unsigned j = first; j <= i; j++)
            assert_string_equal(sg_rows[j].name, sg_rows[i].name);
    }
}

TEST(no_function_has_the_same_version_twice) {
    for (unsigned i = 1; i < GPUMEM_FN_COUNT; i++)
        for (unsigned j = i; j-- > 0 && strcmp(sg_rows[i].name, sg_rows[j].name) == 0;)
            if (sg_rows[i].version == sg_rows[j].version && sg_rows[i].kind == sg_rows[j].kind)
                fail_msg("%s and %s", sg_rows[i].symbol, sg_rows[j].symbol);
}

TEST(a_per_thread_twin_is_implemented_with_its_plain_function) {
    unsigned twins = 0;
    for (unsigned i = 0; i < GPUMEM_FN_COUNT; i++) {
        const struct sg_row *row = &sg_rows[i];
        if (row->kind == GPUMEM_FN_PLAIN)
            continue;
        char plain[128] = "";
        memcpy(plain, row->symbol, strlen(row->symbol) - 5);
        gpumem_driver_fn fn = sg_row_find(plain);
        assert_int_not_equal(fn, GPUMEM_FN_COUNT);
        assert_int_equal(sg_implemented((gpumem_driver_fn)i), sg_implemented(fn));
        assert_ptr_not_equal(sg_exported((gpumem_driver_fn)i), sg_exported(fn));
        twins++;
    }
    assert_true(twins > 90);
    assert_true(sg_implemented(GPUMEM_FN_cuInit));
    assert_false(sg_implemented(GPUMEM_FN_cuGLGetDevices));
}

TEST(results_have_names_and_texts) {
    CUresult value;
    assert_string_equal(sg_result_name(CUDA_ERROR_NOT_READY), "CUDA_ERROR_NOT_READY");
    assert_string_equal(sg_result_string(CUDA_ERROR_NOT_READY), "device not ready");
    assert_null(sg_result_name((CUresult)98765));
    assert_true(sg_result_parse("CUDA_ERROR_NOT_READY", &value) && value == CUDA_ERROR_NOT_READY);
    assert_true(sg_result_parse("NOT_READY", &value) && value == CUDA_ERROR_NOT_READY);
    assert_true(sg_result_parse("SUCCESS", &value) && value == CUDA_SUCCESS);
    assert_true(sg_result_parse("CUDA_SUCCESS", &value) && value == CUDA_SUCCESS);
    assert_false(sg_result_parse("", &value));
    assert_false(sg_result_parse("READY", &value));
}
