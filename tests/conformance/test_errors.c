/* Names and texts of errors, and the calls that answer before cuInit. */
#include "harness.h"

#include <string.h>

static void names_are_the_enumerators(void **state) {
    (void)state;
    const char *name = NULL;
    OK(cu.cuGetErrorName(CUDA_SUCCESS, &name));
    assert_string_equal(name, "CUDA_SUCCESS");
    OK(cu.cuGetErrorName(CUDA_ERROR_OUT_OF_MEMORY, &name));
    assert_string_equal(name, "CUDA_ERROR_OUT_OF_MEMORY");
    OK(cu.cuGetErrorName(CUDA_ERROR_UNKNOWN, &name));
    assert_string_equal(name, "CUDA_ERROR_UNKNOWN");
}

static void texts_are_not_the_names(void **state) {
    (void)state;
    const char *text = NULL;
    OK(cu.cuGetErrorString(CUDA_ERROR_OUT_OF_MEMORY, &text));
    assert_string_equal(text, "out of memory");
    OK(cu.cuGetErrorString(CUDA_SUCCESS, &text));
    assert_string_equal(text, "no error");
}

static void unknown_values_are_refused(void **state) {
    (void)state;
    const char *name = "untouched";
    FAILS(CUDA_ERROR_INVALID_VALUE, cu.cuGetErrorName((CUresult)12345, &name));
    assert_null(name);
    name = "untouched";
    FAILS(CUDA_ERROR_INVALID_VALUE, cu.cuGetErrorString((CUresult)-1, &name));
    assert_null(name);
}

static void a_null_output_is_refused(void **state) {
    (void)state;
    NEEDS_SOFTGPU("NVIDIA's driver crashes");
    FAILS(CUDA_ERROR_INVALID_VALUE, cu.cuGetErrorName(CUDA_SUCCESS, NULL));
    FAILS(CUDA_ERROR_INVALID_VALUE, cu.cuGetErrorString(CUDA_SUCCESS, NULL));
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        TEST(names_are_the_enumerators),
        TEST(texts_are_not_the_names),
        TEST(unknown_values_are_refused),
        TEST(a_null_output_is_refused),
    };
    return conformance(argc, argv, tests, COUNT(tests), NULL, 0);
}
