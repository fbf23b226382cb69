/* Programs of PTX texts, without code. */
#ifndef TESTS_UNIT_SOFTGPU_PROGRAM_TEXT_H
#define TESTS_UNIT_SOFTGPU_PROGRAM_TEXT_H

#include "softgpu/binary/read.h"
#include "softgpu/program/program.h"

#include "test.h"

/* The kernel "k" of a text, all of whose instructions are decoded. */
static inline struct sg_program *program_of(const char *text) {
    static const struct sg_image_options options = {
        .architecture = 90, .suffix = 'a', .newest_ptx = SG_PTX_NEWEST, .relocatable = true};
    char error[600] = "";
    struct sg_image_log log = {.error = error, .error_size = sizeof error};
    struct sg_image *image = NULL;
    struct sg_program *program = NULL;
    if (sg_image_read(text, SIZE_MAX, &options, &log, &image) != CUDA_SUCCESS ||
        sg_program_make(image, "k", &log, &program) != CUDA_SUCCESS)
        fail_msg("%s\n%s", text, error);
    sg_image_free(image);
    if (program->unsupported)
        fail_msg("%s\n%s", text, program->unsupported);
    return program;
}

#endif
