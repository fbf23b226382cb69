#include "kernel.h"

#include "softgpu/binary/read.h"

static const struct sg_image_options h200 = {
    .architecture = 90, .suffix = 'a', .newest_ptx = SG_PTX_NEWEST, .prefer_machine = true};

void kernel_read(struct kernel *kernel, const char *text) {
    char error[600] = "";
    struct sg_image_log log = {.error = error, .error_size = sizeof error};
    memset(kernel, 0, sizeof *kernel);
    char *copy = strdup(text);
    if (sg_image_read(copy, SIZE_MAX, &h200, &log, &kernel->image) != CUDA_SUCCESS)
        fail_msg("%s\n%s", text, error);
    free(copy);
    if (sg_program_make(kernel->image, "k", &log, &kernel->program) != CUDA_SUCCESS)
        fail_msg("%s\n%s", text, error);
}

void kernel_make(struct kernel *kernel, const char *text, enum sg_level level) {
    char why[200] = "";
    kernel_read(kernel, text);
    if (!sg_engine_can(kernel->program, why, sizeof why))
        fail_msg("%s\n%s", text, why);
    assert_int_equal(sg_code_make(kernel->program, level, 0, &kernel->code), CUDA_SUCCESS);
    kernel->launch.code = kernel->code;
    kernel_shape(kernel, 1, 32);
}

void kernel_watched(struct kernel *kernel, enum sg_level level, const struct sg_watch *watch,
                    void *user) {
    sg_code_free(kernel->code);
    assert_int_equal(sg_code_make(kernel->program, level, SG_CODE_WATCHED, &kernel->code),
                     CUDA_SUCCESS);
    kernel->launch.code = kernel->code;
    kernel->launch.watch = watch;
    kernel->launch.watch_user = user;
}

void kernel_free(struct kernel *kernel) {
    sg_code_free(kernel->code);
    sg_program_free(kernel->program);
    sg_image_free(kernel->image);
    memset(kernel, 0, sizeof *kernel);
}

void kernel_argument(struct kernel *kernel, const void *value, size_t size) {
    size_t at = (kernel->launch.parameter_bytes + size - 1) / size * size;
    assert_true(at + size <= sizeof kernel->parameters);
    memcpy(kernel->parameters + at, value, size);
    kernel->launch.parameter_bytes = at + size;
}

void kernel_pointer(struct kernel *kernel, const void *pointer) {
    uint64_t address = (uint64_t)(uintptr_t)pointer;
    kernel_argument(kernel, &address, sizeof address);
}

void kernel_number(struct kernel *kernel, uint32_t number) {
    kernel_argument(kernel, &number, sizeof number);
}

void kernel_shape(struct kernel *kernel, unsigned blocks, unsigned threads) {
    for (int i = 0; i < 3; i++)
        kernel->launch.grid[i] = kernel->launch.block[i] = 1;
    kernel->launch.grid[0] = blocks;
    kernel->launch.block[0] = threads;
}

struct kernel kernel_with(const char *text, enum sg_level level, unsigned blocks, unsigned threads,
                          const void *const *pointers, size_t count) {
    struct kernel kernel;
    kernel_make(&kernel, text, level);
    for (size_t i = 0; i < count; i++)
        kernel_pointer(&kernel, pointers[i]);
    kernel_shape(&kernel, blocks, threads);
    return kernel;
}

struct sg_grid_fault kernel_run(struct kernel *kernel, uint64_t budget) {
    struct sg_grid *grid;
    kernel->launch.parameters = kernel->parameters;
    assert_int_equal(sg_grid_begin(&kernel->launch, &grid), CUDA_SUCCESS);
    while (!sg_grid_advance(grid, budget ? budget : UINT64_MAX))
        ;
    struct sg_grid_fault fault = {.kind = SG_FAULT_COUNT};
    if (sg_grid_fault(grid))
        fault = *sg_grid_fault(grid);
    sg_grid_end(grid);
    return fault;
}

void kernel_succeeds(struct kernel *kernel) {
    struct sg_grid_fault fault = kernel_run(kernel, 0);
    if (fault.kind != SG_FAULT_COUNT)
        fail_msg("%s at line %u, address %llx, thread %u\n%s", sg_fault_name(fault.kind),
                 fault.line, (unsigned long long)fault.address, fault.thread[0], fault.report);
}

static char *rows_text(const char *body) {
    static const char form[] =
        ".version 9.0\n.target sm_90\n.address_size 64\n"
        ".visible .entry k(.param .u64 rows, .param .u32 count) {\n"
        ".reg .b64 %%a, %%b, %%c, %%d, %%at; .reg .pred %%p, %%q, %%r, %%over;\n"
        ".reg .b32 %%x, %%y, %%z, %%w, %%n, %%i; .reg .b16 %%s, %%t, %%u, %%v;\n"
        "ld.param.u64 %%at, [rows]; ld.param.u32 %%n, [count];\n"
        "mov.u32 %%i, %%tid.x; setp.ge.u32 %%over, %%i, %%n;\n@%%over bra end;\n"
        "mad.wide.u32 %%at, %%i, 32, %%at; mov.u64 %%d, 0;\n"
        "ld.global.v2.b64 {%%a, %%b}, [%%at]; ld.global.b64 %%c, [%%at+16];\n"
        "cvt.u32.u64 %%x, %%a; cvt.u32.u64 %%y, %%b; cvt.u32.u64 %%z, %%c;\n"
        "cvt.u16.u64 %%s, %%a; cvt.u16.u64 %%t, %%b; cvt.u16.u64 %%u, %%c;\n"
        "mov.b32 %%w, 0; mov.b16 %%v, 0;\n"
        "%s\n st.global.b64 [%%at+24], %%d;\nend: ret; }\n";
    size_t size = sizeof form + strlen(body);
    char *text = malloc(size);
    assert_non_null(text);
    snprintf(text, size, form, body);
    return text;
}

void rows_hold(const char *body, const struct row *rows, size_t count) {
    char *text = rows_text(body);
    FOR_EACH_LEVEL(level) {
        struct kernel kernel;
        struct row *work = malloc(count * sizeof *work);
        assert_non_null(work);
        memcpy(work, rows, count * sizeof *work);
        for (size_t i = 0; i < count; i++)
            work[i].d = ~rows[i].d;
        kernel_make(&kernel, text, (enum sg_level)level);
        kernel_pointer(&kernel, work);
        kernel_number(&kernel, (uint32_t)count);
        kernel_shape(&kernel, 1, ((unsigned)count + 31) / 32 * 32);
        kernel_succeeds(&kernel);
        for (size_t i = 0; i < count; i++)
            if (work[i].d != rows[i].d)
                fail_msg("%s, row %zu (%llx, %llx, %llx) on %s: %llx instead of %llx", body, i,
                         (unsigned long long)rows[i].a, (unsigned long long)rows[i].b,
                         (unsigned long long)rows[i].c, sg_level_name((enum sg_level)level),
                         (unsigned long long)work[i].d, (unsigned long long)rows[i].d);
        free(work);
        kernel_free(&kernel);
    }
    free(text);
}
