/* Names and texts of errors, and the calls that answer before cuInit. */
#include "harness.h"

TEST(error_names_are_the_enumerators) {
    const char *name = GOT_CU(const char *, cuGetErrorName, CUDA_SUCCESS);
    assert_string_equal(name, "CUDA_SUCCESS");
    OK_CU(cu.cuGetErrorName(CUDA_ERROR_OUT_OF_MEMORY, &name));
    assert_string_equal(name, "CUDA_ERROR_OUT_OF_MEMORY");
    OK_CU(cu.cuGetErrorName(CUDA_ERROR_UNKNOWN, &name));
    assert_string_equal(name, "CUDA_ERROR_UNKNOWN");
}

TEST(error_texts_describe_the_error) {
    const char *text = GOT_CU(const char *, cuGetErrorString, CUDA_ERROR_OUT_OF_MEMORY);
    assert_string_equal(text, "out of memory");
    OK_CU(cu.cuGetErrorString(CUDA_SUCCESS, &text));
    assert_string_equal(text, "no error");
}

TEST(unknown_error_values_are_refused) {
    const char *name = "untouched";
    FAILS_CU(INVALID_VALUE, cu.cuGetErrorName((CUresult)12345, &name));
    assert_null(name);
    name = "untouched";
    FAILS_CU(INVALID_VALUE, cu.cuGetErrorString((CUresult)-1, &name));
    assert_null(name);
}

TEST_WHERE(a_null_output_is_refused, NEEDS_SOFTGPU("NVIDIA's driver crashes")) {
    FAILS_CU(INVALID_VALUE, cu.cuGetErrorName(CUDA_SUCCESS, NULL));
    FAILS_CU(INVALID_VALUE, cu.cuGetErrorString(CUDA_SUCCESS, NULL));
}
