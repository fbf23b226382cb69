/*
 * The cost of the race checker: kernels with it compared with the same without, one thread each,
 * CPU time. Prints milliseconds, the ratio, and the largest ratio. Arguments select: only kernels
 * run whose names contain them.
 */
#include "softgpu/binary/read.h"
#include "softgpu/check/race.h"
#include "softgpu/engine/engine.h"

#include "kernel_texts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SAXPY = 1 << 20, EDGE = 256, MANY = 1 << 22, SUMS = 64, SCATTERED = 1 << 20 };

/* Each thread reads and writes words that are far apart. */
static const char scattered_text[] = KERNEL_HEAD
    ".visible .entry k(.param .u64 to, .param .u64 from, .param .u64 places, .param .u32 n) {\n"
    ".reg .pred %p; .reg .b32 %r<12>; .reg .b64 %rd<12>;\n"
    "ld.param.u64 %rd1, [to]; ld.param.u64 %rd2, [from]; ld.param.u64 %rd3, [places];\n"
    "ld.param.u32 %r2, [n]; mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ntid.x;\n"
    "mov.u32 %r5, %tid.x; mad.lo.s32 %r1, %r3, %r4, %r5;\n"
    "setp.ge.s32 %p, %r1, %r2; @%p bra done;\n"
    "mul.wide.s32 %rd4, %r1, 4; add.s64 %rd5, %rd3, %rd4; ld.global.u32 %r6, [%rd5];\n"
    "mul.wide.u32 %rd6, %r6, 4; add.s64 %rd7, %rd2, %rd6; ld.global.u32 %r7, [%rd7];\n"
    "add.s64 %rd8, %rd1, %rd6; st.global.u32 [%rd8], %r7;\n"
    "done: ret; }\n";

/* Atomic operations on words that are far apart. */
static const char atomics_text[] =
    KERNEL_HEAD ".visible .entry k(.param .u64 to, .param .u64 places, .param .u32 n) {\n"
                ".reg .pred %p; .reg .b32 %r<12>; .reg .b64 %rd<12>;\n"
                "ld.param.u64 %rd1, [to]; ld.param.u64 %rd3, [places];\n"
                "ld.param.u32 %r2, [n]; mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ntid.x;\n"
                "mov.u32 %r5, %tid.x; mad.lo.s32 %r1, %r3, %r4, %r5;\n"
                "setp.ge.s32 %p, %r1, %r2; @%p bra done;\n"
                "mul.wide.s32 %rd4, %r1, 4; add.s64 %rd5, %rd3, %rd4; ld.global.u32 %r6, [%rd5];\n"
                "mul.wide.u32 %rd6, %r6, 4; add.s64 %rd8, %rd1, %rd6;\n"
                "red.global.add.u32 [%rd8], 1;\n"
                "done: ret; }\n";

/* Each thread reads its own word and its neighbours. */
static const char stencil_text[] = KERNEL_HEAD
    ".visible .entry k(.param .u64 to, .param .u64 from, .param .u32 n) {\n"
    ".reg .pred %p; .reg .f32 %f<8>; .reg .b32 %r<12>; .reg .b64 %rd<12>;\n"
    "ld.param.u64 %rd1, [to]; ld.param.u64 %rd2, [from];\n"
    "ld.param.u32 %r2, [n]; mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ntid.x;\n"
    "mov.u32 %r5, %tid.x; mad.lo.s32 %r1, %r3, %r4, %r5;\n"
    "setp.ge.s32 %p, %r1, %r2; @%p bra done;\n"
    "mul.wide.s32 %rd4, %r1, 4; add.s64 %rd5, %rd2, %rd4; add.s64 %rd6, %rd1, %rd4;\n"
    "ld.global.f32 %f1, [%rd5]; ld.global.f32 %f2, [%rd5+4]; ld.global.f32 %f3, [%rd5+8];\n"
    "add.f32 %f1, %f1, %f2; add.f32 %f1, %f1, %f3; st.global.f32 [%rd6], %f1;\n"
    "done: ret; }\n";

static double now(void) {
    struct timespec at;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);
    return (double)at.tv_sec * 1e3 + (double)at.tv_nsec * 1e-6;
}

struct subject {
    const char *name, *text;
    unsigned grid[2], block[2];
    unsigned char parameters[64];
    size_t parameter_bytes;
};

static void argument(struct subject *subject, const void *value, size_t size) {
    memcpy(subject->parameters + subject->parameter_bytes, value, size);
    subject->parameter_bytes += size;
}

static struct sg_program *decoded(const char *text) {
    static const struct sg_image_options h200 = {
        .architecture = 90, .suffix = 'a', .newest_ptx = 90, .prefer_machine = true};
    char error[600] = "";
    struct sg_image_log log = {.error = error, .error_size = sizeof error};
    struct sg_image *image;
    struct sg_program *program;
    if (sg_image_read(text, SIZE_MAX, &h200, &log, &image) != CUDA_SUCCESS ||
        sg_program_make(image, "k", &log, &program) != CUDA_SUCCESS) {
        fprintf(stderr, "%s\n", error);
        exit(1);
    }
    sg_image_free(image);
    return program;
}

static unsigned long long races;

static void found(void *user, const struct sg_race_found *race) {
    (void)user;
    (void)race;
    races++;
}

/* One run; `race`: with the checker, as the next operation of one stream. */
static double run(const struct subject *subject, const struct sg_code *code, struct sg_race *race) {
    static uint64_t number;
    struct sg_grid_launch launch = {.code = code,
                                    .grid = {subject->grid[0], subject->grid[1], 1},
                                    .block = {subject->block[0], subject->block[1], 1},
                                    .parameters = subject->parameters,
                                    .parameter_bytes = subject->parameter_bytes,
                                    .workers = 1};
    struct sg_race_shape shape = {
        {launch.grid[0], launch.grid[1], 1}, {launch.block[0], launch.block[1], 1}, {0}};
    const struct sg_race_operation operation = {.stream = 1, .number = ++number, .name = "k"};
    double before = now();
    struct sg_race_grid *checked = race ? sg_race_begin(race, &operation, &shape) : NULL;
    launch.watch = race ? &sg_race_watch : NULL;
    launch.watch_user = checked;
    struct sg_grid *grid;
    if (sg_grid_begin(&launch, &grid) != CUDA_SUCCESS)
        exit(1);
    while (!sg_grid_advance(grid, UINT64_MAX))
        ;
    if (sg_grid_fault(grid)) {
        fprintf(stderr, "%s: %s\n", subject->name, sg_fault_name(sg_grid_fault(grid)->kind));
        exit(1);
    }
    sg_grid_end(grid);
    sg_race_end(checked);
    return now() - before;
}

static double best_time(const struct subject *subject, const struct sg_program *program,
                        bool check) {
    const struct sg_race_options options = {.found = found};
    struct sg_race *race = check ? sg_race_new(&options) : NULL;
    struct sg_code *code;
    double best = 1e9;
    if ((check && !race) || sg_code_make(program, sg_level_best(), check, &code) != CUDA_SUCCESS)
        exit(1);
    for (int i = 0; i < 7; i++) {
        double took = run(subject, code, race);
        best = took < best ? took : best;
    }
    sg_code_free(code);
    sg_race_free(race);
    return best;
}

static void *room(size_t size) {
    void *memory = aligned_alloc(4096, size);
    if (!memory)
        exit(1);
    memset(memory, 0, size);
    return memory;
}

static bool wanted(int argc, char **argv, const char *name) {
    for (int i = 1; i < argc; i++)
        if (!strstr(name, argv[i]))
            return false;
    return true;
}

/* Every place once, each far from the previous one. */
static void fill_places(unsigned *places) {
    for (unsigned i = 0; i < SCATTERED; i++)
        places[i] = (i * 524287u + 12345u) % SCATTERED;
}

int main(int argc, char **argv) {
    float *x = room(MANY * sizeof *x), *y = room(MANY * sizeof *y);
    float *product = room(EDGE * EDGE * sizeof *product), *sums = room(SUMS * sizeof *sums);
    unsigned *places = room(SCATTERED * sizeof *places), *bins = room(256 * sizeof *bins);
    unsigned char *bytes = room(MANY);
    for (int i = 0; i < MANY; i++)
        bytes[i] = (unsigned char)((unsigned)i * 2654435761u >> 24);
    fill_places(places);
    struct subject subjects[] = {
        {"saxpy 1M", saxpy_text, {SAXPY / 256, 1}, {256, 1}, {0}, 0},
        {"matmul 256^3", matmul_text, {16, 16}, {16, 16}, {0}, 0},
        {"reduction 4M", reduce_text, {SUMS, 1}, {256, 1}, {0}, 0},
        {"histogram 4M", histogram_text, {64, 1}, {256, 1}, {0}, 0},
        {"stencil 1M", stencil_text, {SAXPY / 256, 1}, {256, 1}, {0}, 0},
        {"scattered 1M", scattered_text, {SCATTERED / 256, 1}, {256, 1}, {0}, 0},
        {"scattered atomics 1M", atomics_text, {SCATTERED / 256, 1}, {256, 1}, {0}, 0},
    };
    enum { COUNT = sizeof subjects / sizeof *subjects };
    void *pointers[COUNT][3] = {{y, x},       {product, x, y}, {sums, x},  {bins, bytes},
                                {y, x, NULL}, {y, x, places},  {y, places}};
    const unsigned counts[COUNT] = {SAXPY, EDGE, MANY, MANY, SAXPY, SCATTERED, SCATTERED};
    float factor = 0.5F;
    double most = 0;
    for (int i = 0; i < COUNT; i++) {
        for (int k = 0; k < 3 && pointers[i][k]; k++)
            argument(&subjects[i], &pointers[i][k], 8);
        if (i == 0)
            argument(&subjects[i], &factor, 4);
        argument(&subjects[i], &counts[i], 4);
        if (!wanted(argc, argv, subjects[i].name))
            continue;
        struct sg_program *program = decoded(subjects[i].text);
        double off = best_time(&subjects[i], program, false);
        double on = best_time(&subjects[i], program, true);
        printf("%-22s %8.3f ms, with the race checker %8.3f ms, ratio %5.2f\n", subjects[i].name,
               off, on, on / off);
        most = on / off > most ? on / off : most;
        sg_program_free(program);
    }
    printf("the greatest ratio: %.2f; races found: %llu\n", most, races);
    free(x);
    free(y);
    free(product);
    free(sums);
    free(places);
    free(bins);
    free(bytes);
    return 0;
}
