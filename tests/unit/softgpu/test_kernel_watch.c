/* Kernels that do not end: when one is named, when it is ended, and what is said of where it is. */
#include "kernel.h"
#include "temporary.h"

#include "softgpu/core/config.h"
#include "softgpu/core/state.h"
#include "softgpu/launch/kernel_watch.h"

/* Waits until *at is not 0; counts for ever. */
static const char waits[] =
    KERNEL_HEAD ".file 1 \"spin.cu\"\n.visible .entry k(.param .u64 at) {\n"
                ".reg .pred %p; .reg .b32 %r; .reg .b64 %d; ld.param.u64 %d, [at];\n"
                ".loc 1 42 5\n"
                "again: ld.volatile.global.u32 %r, [%d];\nsetp.eq.u32 %p, %r, 0;\n"
                "@%p bra again; ret; }\n";
static const char counts[] = KERNEL_HEAD ".visible .entry k(.param .u64 at) {\n.reg .b32 %r;\n"
                                         "mov.u32 %r, 0; again: add.u32 %r, %r, 1;\n"
                                         "bra again; }\n";

static struct sg_grid *grid_of(struct kernel *kernel, const char *text, const void *at) {
    struct sg_grid *grid;
    *kernel = KERNEL_WITH(text, sg_level_best(), 2, 32, at);
    kernel->launch.parameters = kernel->parameters;
    assert_int_equal(sg_grid_begin(&kernel->launch, &grid), CUDA_SUCCESS);
    return grid;
}

static const struct sg_watched_launch launch_7 = {7, 3, {2, 1, 1}, {32, 1, 1}};

/* What is logged by one look, or, from 0 on, by one that says whether something waits for it. */
static char *logged(struct sg_kernel_watch *watch, struct sg_grid *grid, struct kernel *kernel,
                    bool ends, int waits_for_it) {
    static char text[8192];
    char path[TEMPORARY_ROOM];
    int file = temporary_file(path, "log"), saved = dup(STDERR_FILENO);
    assert_true(file >= 0 && saved >= 0);
    unlink(path);
    dup2(file, STDERR_FILENO);
    bool ended = false;
    if (waits_for_it < 0)
        ended = sg_kernel_watch(watch, grid, kernel->program);
    else
        sg_kernel_awaited(watch, waits_for_it, grid, kernel->program, &launch_7);
    dup2(saved, STDERR_FILENO);
    close(saved);
    ssize_t size = pread(file, text, sizeof text - 1, 0);
    assert_true(size >= 0);
    text[size] = '\0';
    close(file);
    assert_int_equal(ended, ends);
    return text;
}

static char *looked(struct sg_kernel_watch *watch, struct sg_grid *grid, struct kernel *kernel,
                    bool ends) {
    return logged(watch, grid, kernel, ends, -1);
}

static char *awaited(struct sg_kernel_watch *watch, bool is, struct sg_grid *grid,
                     struct kernel *kernel) {
    return logged(watch, grid, kernel, false, is);
}

TEST(a_spinning_kernel_is_reported_once) {
    static uint32_t flag;
    struct kernel kernel;
    struct sg_grid *grid = grid_of(&kernel, waits, &flag);
    struct sg_kernel_watch watch = {.began = 0};
    assert_false(sg_grid_advance(grid, 100000));
    assert_string_equal(looked(&watch, grid, &kernel, false), "");
    assert_false(sg_grid_advance(grid, 100000));
    watch.progress = sg_grid_progress(grid);
    watch.moved = sg_now() - SG_KERNEL_SPIN_NS + 1000000000;
    assert_string_equal(looked(&watch, grid, &kernel, false), "");
    watch.moved = sg_now() - SG_KERNEL_SPIN_NS;
    const char *text = looked(&watch, grid, &kernel, false);
    if (!strstr(text, "kernel k has only waited for 10 s") ||
        !strstr(text, "block 0,0,0 warp 0 lanes ffffffff line ") ||
        !strstr(text, "block 1,0,0 warp 0") || !strstr(text, "(spin.cu:42): runs"))
        fail_msg("the log is: %s", text);
    assert_string_equal(looked(&watch, grid, &kernel, false), "");
    flag = 1;
    assert_true(sg_grid_advance(grid, UINT64_MAX));
    assert_null(sg_grid_fault(grid));
    sg_grid_end(grid);
    kernel_free(&kernel);
}

TEST(a_kernel_that_an_end_waits_for_is_named_once) {
    struct kernel kernel;
    struct sg_grid *grid = grid_of(&kernel, counts, NULL);
    struct sg_kernel_watch watch = {.began = 0};
    assert_false(sg_grid_advance(grid, 100000));
    assert_string_equal(awaited(&watch, false, grid, &kernel), "");
    assert_string_equal(awaited(&watch, true, grid, &kernel), "");
    watch.awaited -= SG_KERNEL_SPIN_NS;
    assert_string_equal(awaited(&watch, false, grid, &kernel), ""); /* it gave up waiting */
    assert_string_equal(awaited(&watch, true, grid, &kernel), "");
    watch.awaited -= SG_KERNEL_SPIN_NS;
    const char *text = awaited(&watch, true, grid, &kernel);
    if (!strstr(text,
                "has waited for 10 s for kernel k, launch 7 of this process, in stream 3, ") ||
        !strstr(text, "2 x 1 x 1 blocks of 32 x 1 x 1 threads") ||
        !strstr(text, "block 0,0,0 warp 0 lanes ffffffff line "))
        fail_msg("the log is: %s", text);
    assert_string_equal(awaited(&watch, true, grid, &kernel), "");
    sg_grid_end(grid);
    kernel_free(&kernel);
}

TEST(a_progressing_kernel_is_not_reported) {
    struct kernel kernel;
    struct sg_grid *grid = grid_of(&kernel, counts, NULL);
    struct sg_kernel_watch watch = {.began = 1, .moved = 1};
    assert_false(sg_grid_advance(grid, 100000));
    assert_string_equal(looked(&watch, grid, &kernel, false), "");
    assert_true(watch.moved > 1);
    sg_grid_end(grid);
    kernel_free(&kernel);
}

TEST(giving_up_a_grid_faults_and_names_its_places) {
    struct kernel kernel;
    struct sg_grid *grid = grid_of(&kernel, counts, NULL);
    assert_false(sg_grid_advance(grid, 100000));
    sg_grid_give_up(grid);
    const struct sg_grid_fault *fault = sg_grid_fault(grid);
    assert_non_null(fault);
    assert_int_equal(fault->kind, SG_FAULT_TIME);
    assert_true(fault->block[0] < 2); /* they take turns */
    assert_non_null(strstr(fault->report, "block 0,0,0 warp 0 lanes ffffffff line "));
    assert_true(sg_grid_advance(grid, 100000));
    sg_grid_end(grid);
    /* Before anything has begun, there is no place to name. */
    assert_int_equal(sg_grid_begin(&kernel.launch, &grid), CUDA_SUCCESS);
    sg_grid_give_up(grid);
    assert_non_null(sg_grid_fault(grid));
    assert_string_equal(sg_grid_fault(grid)->report, "");
    sg_grid_end(grid);
    kernel_free(&kernel);
}

/* More groups than there is room: whole lines, and how many are left out. */
TEST(a_truncated_list_of_places_ends_at_a_line) {
    char text[200];
    struct kernel kernel;
    struct sg_grid *grid = grid_of(&kernel, counts, NULL);
    sg_grid_end(grid);
    kernel_shape(&kernel, 1, 1024);
    assert_int_equal(sg_grid_begin(&kernel.launch, &grid), CUDA_SUCCESS);
    assert_false(sg_grid_advance(grid, 100000));
    sg_grid_places(grid, text, sizeof text);
    unsigned lines = 0;
    for (const char *at = text; (at = strchr(at, '\n')) != NULL; at++)
        lines++;
    char last[40];
    snprintf(last, sizeof last, "\nand %u more\n", 32 - (lines - 1));
    assert_non_null(strstr(text, last));
    assert_true(lines > 2);
    sg_grid_end(grid);
    kernel_free(&kernel);
}
