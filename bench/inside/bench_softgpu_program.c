/*
 * The time from a kernel's PTX to a program that can run, and what a function's first launch takes
 * with all that is made for it, beside a later launch. The kernels are generated here, with the mix
 * of instructions that compilers produce.
 */
#include "softgpu/binary/read.h"
#include "softgpu/engine/engine.h"
#include "table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS 31

/* Eight instructions, as in an unrolled loop. */
static size_t piece(char *to, size_t room, int number) {
    return (size_t)snprintf(
        to, room,
        "mul.wide.s32 %%rd%d, %%r1, 4;\nadd.s64 %%rd%d, %%rd1, %%rd%d;\n"
        "ld.global.f32 %%f%d, [%%rd%d+%d];\nfma.rn.f32 %%f%d, %%f%d, 0f3F000000, %%f1;\n"
        "setp.lt.f32 %%p1, %%f%d, 0f00000000;\n@%%p1 bra L%d;\n"
        "st.global.f32 [%%rd%d], %%f%d;\nL%d:\nadd.s32 %%r1, %%r1, 1;\n",
        2 * number + 2, 2 * number + 3, 2 * number + 2, 2 * number, 2 * number + 3, 4 * number,
        2 * number + 1, 2 * number, 2 * number + 1, number, 2 * number + 3, 2 * number + 1, number);
}

/* `kernels` entries of about `lines` lines each; the caller frees it. */
static char *text_of(int kernels, int lines) {
    size_t room = 1000 + (size_t)kernels * (500 + (size_t)lines * 60), at = 0;
    char *text = malloc(room);
    if (!text)
        bench_fail("no memory");
    at += (size_t)snprintf(text, room, ".version 8.0\n.target sm_90\n.address_size 64\n");
    for (int k = 0; k < kernels; k++) {
        at += (size_t)snprintf(text + at, room - at,
                               ".visible .entry k%d(.param .u64 p)\n{\n.reg .b32 %%r<4>;\n"
                               ".reg .b64 %%rd<400>;\n.reg .f32 %%f<400>;\n.reg .pred %%p<4>;\n"
                               "ld.param.u64 %%rd1, [p];\nmov.u32 %%r1, %%tid.x;\n",
                               k);
        for (int i = 0; i * 10 < lines; i++)
            at += piece(text + at, room - at, i);
        at += (size_t)snprintf(text + at, room - at, "ret;\n}\n");
    }
    return text;
}

static struct sg_image *read_text(const char *text) {
    static const struct sg_image_options options = {.architecture = 90, .newest_ptx = 90};
    char error[300] = "";
    struct sg_image_log log = {.error = error, .error_size = sizeof error};
    struct sg_image *image = NULL;
    if (sg_image_read(text, SIZE_MAX, &options, &log, &image) != CUDA_SUCCESS)
        bench_fail("the text is not taken: %s", error);
    return image;
}

static double reading(const char *text) {
    double seconds[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        double before = bench_now();
        sg_image_free(read_text(text));
        seconds[i] = bench_now() - before;
    }
    return bench_median(seconds, ROUNDS);
}

static double decoding(const char *text) {
    struct sg_image *image = read_text(text);
    struct sg_image_log log = {0};
    double seconds[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        struct sg_program *program = NULL;
        double before = bench_now();
        CUresult result = sg_program_make(image, "k0", &log, &program);
        seconds[i] = bench_now() - before;
        if (result != CUDA_SUCCESS || program->unsupported)
            bench_fail("the kernel is not decoded");
        sg_program_free(program);
    }
    sg_image_free(image);
    return bench_median(seconds, ROUNDS);
}

static void run(const struct sg_code *code) {
    static float memory[1 << 16];
    void *pointer = memory;
    const struct sg_grid_launch launch = {.code = code,
                                          .grid = {1, 1, 1},
                                          .block = {32, 1, 1},
                                          .parameters = (const unsigned char *)&pointer,
                                          .parameter_bytes = sizeof pointer};
    struct sg_grid *grid;
    if (sg_grid_begin(&launch, &grid) != CUDA_SUCCESS)
        bench_fail("the grid does not begin");
    while (!sg_grid_advance(grid, UINT64_MAX))
        ;
    if (sg_grid_fault(grid))
        bench_fail("the kernel fails: %s", sg_fault_name(sg_grid_fault(grid)->kind));
    sg_grid_end(grid);
}

/* A block of one warp: the first launch decodes and compiles the kernel. */
static void launching(const char *what, const char *text) {
    struct sg_image *image = read_text(text);
    struct sg_image_log log = {0};
    double first[ROUNDS], later[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        struct sg_program *program = NULL;
        struct sg_code *code = NULL;
        double before = bench_now();
        if (sg_program_make(image, "k0", &log, &program) != CUDA_SUCCESS ||
            sg_code_make(program, sg_level_best(), 0, &code) != CUDA_SUCCESS)
            bench_fail("the kernel cannot run");
        run(code);
        double between = bench_now();
        run(code);
        later[i] = bench_now() - between;
        first[i] = between - before;
        sg_code_free(code);
        sg_program_free(program);
    }
    sg_image_free(image);
    bench_row(what, bench_median(first, ROUNDS) * 1e6, bench_median(later, ROUNDS) * 1e6, "us");
}

int main(void) {
    static const struct {
        int kernels, lines;
    } sizes[] = {{1, 40}, {1, 300}, {1, 1500}, {100, 300}};
    bench_header("a kernel decoded", "the whole text read");
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        char what[80], *text = text_of(sizes[i].kernels, sizes[i].lines);
        snprintf(what, sizeof what, "%d lines, of a text of %d kernels", sizes[i].lines,
                 sizes[i].kernels);
        bench_row(what, decoding(text) * 1e6, reading(text) * 1e6, "us");
        free(text);
    }
    bench_header("a kernel's first launch", "a later one");
    for (size_t i = 0; i < 3; i++) {
        char what[80], *text = text_of(1, sizes[i].lines);
        snprintf(what, sizeof what, "%d lines, one warp", sizes[i].lines);
        launching(what, text);
        free(text);
    }
    return 0;
}
