/*
 * Of a fatbin that has text and machine code, hardware runs the machine code and softgpu the text;
 * of machine code alone softgpu says in one line what to do about it.
 */
#include "images.h"
#include "kernel_module.h"

/* The kernel "small" of an image: *p = 42 + n. */
static CUresult small(const void *image, int n, int *got) {
    CUmodule module = new_module(image);
    CUfunction function = function_of(module, "small");
    CUdeviceptr p = new_memory(sizeof *got);
    OK_CU(cu.cuMemcpyHtoD_v2(p, got, sizeof *got));
    void *params[] = {&p, &n};
    CUresult result = kernel_launch(function, 1, 1, params);
    OK_CU(cu.cuMemcpyDtoH_v2(got, p, sizeof *got));
    return result;
}

static void begin(void) {
    if (device_attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) != 9)
        SKIP("the images are for compute capability 9.0");
}

TEST_WHERE(the_ptx_of_a_fatbin_runs, NEEDS_KERNELS()) {
    begin();
    const unsigned char *images[] = {image_small_fatbin, image_plain_fatbin, image_ptx_fatbin};
    for (int i = 0; i < (int)COUNT(images); i++) {
        int got = 0;
        OK_CU(small(images[i], i, &got));
        assert_int_equal(got, 42 + i);
    }
}

TEST_WHERE(machine_code_alone_runs_or_is_refused_with_advice, NEEDS_KERNELS()) {
    begin();
    int got = 7;
    if (!soft) {
        OK_CU(small(image_small_cubin, 1, &got));
        assert_int_equal(got, 43);
        return;
    }
    int error = dup(STDERR_FILENO), file = output_begin(STDERR_FILENO);
    CUresult result = small(image_small_cubin, 1, &got);
    char *said = output_so_far(file);
    assert_true(dup2(error, STDERR_FILENO) >= 0);
    close(error);
    close(file);
    FAILS_CU(NOT_SUPPORTED, result);
    assert_int_equal(got, 7);
    char *end = strchr(said, '\n');
    assert_non_null(end);
    assert_true(end[1] == '\0'); /* one line */
    assert_non_null(
        strstr(said, "kernel small was not launched: its image holds machine code without PTX"));
    assert_non_null(strstr(said, "-gencode arch=compute_90,code=compute_90"));
    assert_non_null(strstr(said, "an architecture compute_90 or nvrtcGetPTX"));
    free(said);
}
