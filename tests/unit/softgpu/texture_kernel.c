#include "texture_kernel.h"

#include "softgpu/binary/read.h"

static const char form[] =
    KERNEL_HEAD ".global .texref TX; .global .surfref SF;\n"
                ".visible .entry k(.param .u64 lanes, .param .u32 count) {\n"
                ".reg .b64 %%at, %%h<5>, %%q<4>; .reg .pred %%p, %%over; .reg .b16 %%s<4>;\n"
                ".reg .b32 %%n, %%i, %%r<8>, %%o<4>; .reg .f32 %%f<8>;\n"
                "ld.param.u64 %%at, [lanes]; ld.param.u32 %%n, [count]; mov.u32 %%i, %%tid.x;\n"
                "setp.ge.u32 %%over, %%i, %%n;\n@%%over bra END;\n"
                "mad.wide.u32 %%at, %%i, 64, %%at; setp.ne.u32 %%p, 0, 0;\n"
                "mov.u64 %%h1, 1; mov.u64 %%h2, 2; mov.u64 %%h3, 3; mov.u64 %%h4, 4;\n"
                "ld.global.v4.b32 {%%r0, %%r1, %%r2, %%r3}, [%%at];\n"
                "ld.global.v4.b32 {%%r4, %%r5, %%r6, %%r7}, [%%at+16];\n"
                "ld.global.v4.f32 {%%f0, %%f1, %%f2, %%f3}, [%%at];\n"
                "ld.global.v4.f32 {%%f4, %%f5, %%f6, %%f7}, [%%at+16];\n"
                "ld.global.v2.b64 {%%q0, %%q1}, [%%at];\n"
                "mov.b32 %%o0, 0; mov.b32 %%o1, 0; mov.b32 %%o2, 0; mov.b32 %%o3, 0;\n"
                "%s\n"
                "st.global.v4.b32 [%%at+32], {%%o0, %%o1, %%o2, %%o3}; selp.u32 %%n, 1, 0, %%p;\n"
                "st.global.b32 [%%at+48], %%n;\nEND: ret; }\n";

static char *text_of(const char *body) {
    size_t size = sizeof form + strlen(body);
    char *text = malloc(size);
    assert_non_null(text);
    snprintf(text, size, form, body);
    return text;
}

static const struct sg_texture *find(void *user, uint64_t handle) {
    struct texture_set *set = user;
    set->looked_up++;
    return handle >= 1 && handle <= 4 ? set->each[handle - 1] : NULL;
}

/* For views: `view` is the address of a table of pieces of 64 bytes, NULL where nothing is. */
static unsigned char *piece(const void *view, uint64_t offset, size_t size) {
    unsigned char *const *pieces = view;
    return pieces[offset / 64] ? pieces[offset / 64] + offset % 64 : NULL;
}

struct sg_grid_fault texture_run(const char *body, struct texture_set *set,
                                 struct texture_lane *lanes, size_t count) {
    struct kernel kernel;
    char *text = text_of(body);
    assert_true(count <= 1024);
    kernel_make(&kernel, text, sg_level_best());
    free(text);
    kernel_pointer(&kernel, lanes);
    kernel_number(&kernel, (uint32_t)count);
    kernel_shape(&kernel, 1, (unsigned)(count + 31) / 32 * 32);
    kernel.launch.texture = find;
    kernel.launch.piece = piece;
    kernel.launch.user = set;
    uint64_t variables[8] = {0};
    assert_true(kernel.program->variable_count <= 8);
    for (size_t i = 0; i < kernel.program->variable_count; i++)
        if (kernel.program->variables[i].place == SG_PLACE_TEXTURE)
            variables[i] = strcmp(kernel.program->variables[i].name, "TX") == 0 ? 1 : 2;
    kernel.launch.variables = variables;
    struct sg_grid_fault fault = kernel_run(&kernel, 0);
    kernel_free(&kernel);
    return fault;
}

void texture_runs(const char *body, const struct sg_texture *texture, struct texture_lane *lanes,
                  size_t count) {
    struct texture_set set = {.each = {texture, texture}};
    struct sg_grid_fault fault = texture_run(body, &set, lanes, count);
    if (fault.kind != SG_FAULT_COUNT)
        fail_msg("%s: %s, %s", body, sg_fault_name(fault.kind), fault.report);
}

struct texture_lane texture_once(const char *body, const struct sg_texture *texture,
                                 const struct texture_lane *lane) {
    struct texture_lane one = *lane;
    texture_runs(body, texture, &one, 1);
    return one;
}

void texture_refused(const char *body, const char *why) {
    static const struct sg_image_options h200 = {
        .architecture = 90, .suffix = 'a', .newest_ptx = 90, .prefer_machine = true};
    char error[600] = "", reason[256] = "", *text = text_of(body);
    struct sg_image_log log = {.error = error, .error_size = sizeof error};
    struct sg_image *image;
    struct sg_program *program;
    if (sg_image_read(text, SIZE_MAX, &h200, &log, &image) != CUDA_SUCCESS)
        fail_msg("%s\n%s", text, error);
    assert_int_equal(sg_program_make(image, "k", &log, &program), CUDA_SUCCESS);
    assert_false(sg_engine_can(program, reason, sizeof reason));
    if (!strstr(reason, why))
        fail_msg("%s: %s", body, reason);
    sg_program_free(program);
    sg_image_free(image);
    free(text);
}

struct sg_texture texture_of_floats(const float *texels, unsigned width, unsigned height,
                                    unsigned depth) {
    struct sg_texture texture = {
        .dimensions = depth    ? 3
                      : height ? 2
                               : 1,
        .form = SG_TEXEL_FLOAT,
        .channels = 1,
        .bits = 32,
        .element = 4,
        .level_count = 1,
        .address = {SG_ADDRESS_CLAMP, SG_ADDRESS_CLAMP, SG_ADDRESS_CLAMP},
        .most_level = 100,
    };
    texture.levels[0] = (struct sg_texture_level){
        .address = (uint64_t)(uintptr_t)texels,
        .pitch = width * 4,
        .layer = (uint64_t)width * (height ? height : 1) * 4,
        .width = width,
        .height = height ? height : 1,
        .depth = depth ? depth : 1,
    };
    return texture;
}
