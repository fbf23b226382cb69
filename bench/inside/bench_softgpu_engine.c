/*
 * Four kernels on softgpu's engine beside the same in C, one thread each, CPU time. Prints
 * milliseconds, the ratio, and the geometric mean of the ratios for each level of the machine.
 */
#include "softgpu/binary/read.h"
#include "softgpu/engine/engine.h"

#include "kernel_texts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- the same in C --------------------------------------------------------------------------- */

enum { SAXPY = 1 << 20, EDGE = 256, MANY = 1 << 22, SUMS = 64 };
static float *x, *y, *product, sums[SUMS];
static unsigned char *bytes;
static unsigned bins[256];

static void saxpy(void) {
    for (int i = 0; i < SAXPY; i++)
        y[i] = 0.5F * x[i] + y[i];
}

static void matmul(void) {
    memset(product, 0, EDGE * EDGE * sizeof *product);
    for (int i = 0; i < EDGE; i++)
        for (int k = 0; k < EDGE; k++)
            for (int j = 0; j < EDGE; j++)
                product[i * EDGE + j] += x[i * EDGE + k] * y[k * EDGE + j];
}

static void reduce(void) {
    float part[16] = {0};
    for (int i = 0; i < MANY; i += 16)
        for (int k = 0; k < 16; k++)
            part[k] += x[i + k];
    sums[0] = 0;
    for (int k = 0; k < 16; k++)
        sums[0] += part[k];
}

static void histogram(void) {
    for (int i = 0; i < MANY; i++)
        bins[bytes[i]]++;
}

/* ---- timing ---------------------------------------------------------------------------------- */

static double now(void) {
    struct timespec at;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);
    return (double)at.tv_sec * 1e3 + (double)at.tv_nsec * 1e-6;
}

struct subject {
    const char *name, *text;
    void (*native)(void);
    unsigned grid[2], block[2];
    unsigned char parameters[64];
    size_t parameter_bytes;
};

static void argument(struct subject *subject, const void *value, size_t size) {
    memcpy(subject->parameters + subject->parameter_bytes, value, size);
    subject->parameter_bytes += size;
}

static double native_time(const struct subject *subject) {
    double best = 1e9;
    for (int i = 0; i < 9; i++) {
        double before = now();
        subject->native();
        double took = now() - before;
        best = took < best ? took : best;
    }
    return best;
}

static double engine_time(const struct subject *subject, const struct sg_code *code) {
    struct sg_grid_launch launch = {.code = code,
                                    .grid = {subject->grid[0], subject->grid[1], 1},
                                    .block = {subject->block[0], subject->block[1], 1},
                                    .parameters = subject->parameters,
                                    .parameter_bytes = subject->parameter_bytes};
    double best = 1e9;
    for (int i = 0; i < 7; i++) {
        struct sg_grid *grid;
        double before = now();
        if (sg_grid_begin(&launch, &grid) != CUDA_SUCCESS)
            exit(1);
        while (!sg_grid_advance(grid, UINT64_MAX))
            ;
        if (sg_grid_fault(grid)) {
            fprintf(stderr, "%s: %s\n", subject->name, sg_fault_name(sg_grid_fault(grid)->kind));
            exit(1);
        }
        sg_grid_end(grid);
        double took = now() - before;
        best = took < best ? took : best;
    }
    return best;
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

static void *room(size_t size) {
    void *memory = calloc(1, size);
    if (!memory)
        exit(1);
    return memory;
}

/* A kernel that does nothing: what a block costs. */
static const char empty_text[] = KERNEL_HEAD ".visible .entry k() { ret; }\n";

static void nothing(void) {
}

/* Arguments: words of which one must be in a kernel's or a level's name, for a profiler. */
static bool wanted(int argc, char **argv, const char *level, const char *kernel) {
    for (int i = 1; i < argc; i++)
        if (!strstr(level, argv[i]) && !strstr(kernel, argv[i]))
            return false;
    return true;
}

int main(int argc, char **argv) {
    x = room(MANY * sizeof *x);
    y = room(MANY * sizeof *y);
    product = room(EDGE * EDGE * sizeof *product);
    bytes = room(MANY);
    for (int i = 0; i < MANY; i++) {
        x[i] = (float)(i % 7) * 0.25F;
        bytes[i] = (unsigned char)((unsigned)i * 2654435761u >> 24);
    }
    struct subject subjects[] = {
        {"saxpy 1M", saxpy_text, saxpy, {SAXPY / 256, 1}, {256, 1}, {0}, 0},
        {"matmul 256^3", matmul_text, matmul, {16, 16}, {16, 16}, {0}, 0},
        {"reduction 4M", reduce_text, reduce, {SUMS, 1}, {256, 1}, {0}, 0},
        {"histogram 4M", histogram_text, histogram, {64, 1}, {256, 1}, {0}, 0},
        {"65536 blocks of 32", empty_text, nothing, {65536, 1}, {32, 1}, {0}, 0},
    };
    void *pointers[4][3] = {{y, x, NULL}, {product, x, y}, {sums, x, NULL}, {bins, bytes, NULL}};
    unsigned counts[] = {SAXPY, EDGE, MANY, MANY};
    float factor = 0.5F;
    for (int i = 0; i < 4; i++) {
        for (int k = 0; k < 3 && pointers[i][k]; k++)
            argument(&subjects[i], &pointers[i][k], 8);
        if (i == 0)
            argument(&subjects[i], &factor, 4);
        argument(&subjects[i], &counts[i], 4);
    }
    for (int level = 0; level < SG_LEVEL_COUNT; level++) {
        if (!sg_level_usable((enum sg_level)level))
            continue;
        double logs = 0;
        printf("%s\n", sg_level_name((enum sg_level)level));
        for (int i = 0; i < 5; i++) {
            if (!wanted(argc, argv, sg_level_name((enum sg_level)level), subjects[i].name))
                continue;
            struct sg_program *program = decoded(subjects[i].text);
            struct sg_code *code;
            if (sg_code_make(program, (enum sg_level)level, &code) != CUDA_SUCCESS)
                return 1;
            double ours = engine_time(&subjects[i], code), native = native_time(&subjects[i]);
            if (i < 4) {
                printf("  %-20s %8.3f ms, C %8.3f ms, ratio %6.1f\n", subjects[i].name, ours,
                       native, ours / native);
                logs += log(ours / native);
            } else {
                printf("  %-20s %8.3f ms, %.1f ns a block\n", subjects[i].name, ours,
                       ours * 1e6 / 65536);
            }
            sg_code_free(code);
            sg_program_free(program);
        }
        printf("  geometric mean of the four ratios: %.1f\n", exp(logs / 4));
    }
    free(x);
    free(y);
    free(product);
    free(bytes);
    return 0;
}
