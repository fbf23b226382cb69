/* Every form of asynchronous copies, mbarriers, clusters and fences is among those that run. */
#include "kernel.h"

static const char *const forms[] = {
/* clang-format off */
#define FORM(text) text,
#include "async_forms.def"
    /* clang-format on */
};

static const char before[] =
    ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k() {\n"
    ".reg .pred %p<4>; .reg .b16 %rs<4>; .reg .b32 %r<8>; .reg .b64 %rd<6>; .reg .f32 %f<8>;\n"
    ".reg .f64 %fd<4>; .shared .align 16 .b8 cell[64];\n";

TEST(every_async_instruction_form_compiles) {
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        char text[1024];
        struct kernel kernel;
        snprintf(text, sizeof text, "%s%s\nret; }\n", before, forms[i]);
        kernel_make(&kernel, text, SG_LEVEL_GENERIC);
        kernel_free(&kernel);
    }
}

/* It is of a later device: refused by its name. */
TEST(a_bulk_copy_with_a_byte_mask_is_refused) {
    char text[1024], why[200] = "";
    struct kernel kernel;
    snprintf(text, sizeof text, "%s%s\nret; }\n", before,
             "cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%rd1], [%r1], %r2, %rs1;");
    kernel_read(&kernel, text);
    assert_false(sg_engine_can(kernel.program, why, sizeof why));
    assert_non_null(strstr(why, "mask"));
    kernel_free(&kernel);
}
