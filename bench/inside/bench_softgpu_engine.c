/*
 * Four kernels on softgpu's engine beside the same in C, one thread each, CPU time. Prints
 * milliseconds, the ratio, and the geometric mean of the ratios for each level of the machine.
 */
#include "softgpu/binary/read.h"
#include "softgpu/engine/engine.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define HEAD ".version 8.0\n.target sm_90\n.address_size 64\n"

static const char saxpy_text[] =
    HEAD ".visible .entry k(.param .u64 y, .param .u64 x, .param .f32 a, .param .u32 n) {\n"
         ".reg .pred %p; .reg .f32 %f<5>; .reg .b32 %r<6>; .reg .b64 %rd<8>;\n"
         "ld.param.u64 %rd1, [y]; ld.param.u64 %rd2, [x]; ld.param.f32 %f1, [a];\n"
         "ld.param.u32 %r2, [n]; mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ntid.x;\n"
         "mov.u32 %r5, %tid.x; mad.lo.s32 %r1, %r3, %r4, %r5;\n"
         "setp.ge.s32 %p, %r1, %r2; @%p bra done;\n"
         "cvta.to.global.u64 %rd3, %rd2; mul.wide.s32 %rd4, %r1, 4; add.s64 %rd5, %rd3, %rd4;\n"
         "cvta.to.global.u64 %rd6, %rd1; add.s64 %rd7, %rd6, %rd4;\n"
         "ld.global.f32 %f2, [%rd5]; ld.global.f32 %f3, [%rd7];\n"
         "fma.rn.f32 %f4, %f2, %f1, %f3; st.global.f32 [%rd7], %f4;\n"
         "done: ret; }\n";

#define STEP(k, a, b)                                                                              \
    "ld.shared.f32 %f1, [%r11+" a "]; ld.shared.f32 %f2, [%r12+" b "];\n"                          \
    "fma.rn.f32 %f3, %f1, %f2, %f3;\n"
static const char matmul_text[] = HEAD
    ".visible .entry k(.param .u64 c, .param .u64 a, .param .u64 b, .param .u32 n) {\n"
    ".reg .pred %p; .reg .f32 %f<6>; .reg .b32 %r<24>; .reg .b64 %rd<12>;\n"
    ".shared .align 4 .b8 as[1024]; .shared .align 4 .b8 bs[1024];\n"
    "ld.param.u64 %rd1, [c]; ld.param.u64 %rd2, [a]; ld.param.u64 %rd3, [b];\n"
    "ld.param.u32 %r1, [n]; mov.u32 %r2, %tid.x; mov.u32 %r3, %tid.y;\n"
    "mov.u32 %r4, %ctaid.y; shl.b32 %r4, %r4, 4; add.s32 %r4, %r4, %r3;\n"
    "mov.u32 %r5, %ctaid.x; shl.b32 %r5, %r5, 4; add.s32 %r5, %r5, %r2;\n"
    "mov.u32 %r6, as; mov.u32 %r7, bs; shl.b32 %r8, %r3, 6; add.s32 %r11, %r6, %r8;\n"
    "shl.b32 %r9, %r2, 2; add.s32 %r12, %r7, %r9; add.s32 %r13, %r11, %r9;\n"
    "add.s32 %r14, %r12, %r8; mov.f32 %f3, 0f00000000; mov.u32 %r10, 0;\n"
    "loop: mad.lo.s32 %r15, %r4, %r1, %r10; add.s32 %r15, %r15, %r2;\n"
    "mul.wide.s32 %rd4, %r15, 4; add.s64 %rd4, %rd2, %rd4; ld.global.f32 %f4, [%rd4];\n"
    "st.shared.f32 [%r13], %f4; add.s32 %r16, %r10, %r3;\n"
    "mad.lo.s32 %r16, %r16, %r1, %r5; mul.wide.s32 %rd5, %r16, 4;\n"
    "add.s64 %rd5, %rd3, %rd5; ld.global.f32 %f5, [%rd5]; st.shared.f32 [%r14], %f5;\n"
    "bar.sync 0;\n" STEP(0, "0", "0") STEP(1, "4", "64") STEP(2, "8", "128") STEP(3, "12", "192")
        STEP(4, "16", "256") STEP(5, "20", "320") STEP(6, "24", "384") STEP(7, "28", "448")
            STEP(8, "32", "512") STEP(9, "36", "576") STEP(10, "40", "640") STEP(11, "44", "704")
                STEP(12, "48", "768") STEP(13, "52", "832") STEP(14, "56", "896")
                    STEP(15, "60", "960") "bar.sync 0; add.s32 %r10, %r10, 16; setp.lt.s32 %p, "
                                          "%r10, %r1; @%p bra loop;\n"
                                          "mad.lo.s32 %r17, %r4, %r1, %r5; mul.wide.s32 %rd6, "
                                          "%r17, 4; add.s64 %rd6, %rd1, %rd6;\n"
                                          "st.global.f32 [%rd6], %f3; ret; }\n";

#define DOWN(d)                                                                                    \
    "mov.b32 %r10, %f1; shfl.sync.down.b32 %r11|%q, %r10, " d ", 31, -1;\n"                        \
    "mov.b32 %f2, %r11; add.f32 %f1, %f1, %f2;\n"
static const char reduce_text[] = HEAD
    ".visible .entry k(.param .u64 out, .param .u64 in, .param .u32 n) {\n"
    ".reg .pred %p, %q; .reg .f32 %f<6>; .reg .b32 %r<24>; .reg .b64 %rd<12>;\n"
    ".shared .align 4 .b8 part[128];\n"
    "ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [in]; ld.param.u32 %r1, [n];\n"
    "mov.u32 %r2, %tid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %ctaid.x;\n"
    "mad.lo.s32 %r5, %r4, %r3, %r2; mov.u32 %r6, %nctaid.x; mul.lo.s32 %r6, %r6, %r3;\n"
    "mov.f32 %f1, 0f00000000; setp.ge.s32 %p, %r5, %r1; @%p bra summed;\n"
    "loop: mul.wide.s32 %rd3, %r5, 4; add.s64 %rd3, %rd2, %rd3; ld.global.f32 %f2, [%rd3];\n"
    "add.f32 %f1, %f1, %f2; add.s32 %r5, %r5, %r6; setp.lt.s32 %p, %r5, %r1;\n"
    "@%p bra loop;\n"
    "summed: " DOWN("16") DOWN("8") DOWN("4") DOWN("2")
        DOWN("1") "and.b32 %r7, %r2, 31; shr.u32 %r8, %r2, 5; mov.u32 %r9, part;\n"
                  "setp.ne.s32 %p, %r7, 0; @%p bra told; shl.b32 %r12, %r8, 2; add.s32 %r12, %r9, "
                  "%r12;\n"
                  "st.shared.f32 [%r12], %f1;\n"
                  "told: bar.sync 0; setp.ne.s32 %p, %r8, 0; @%p bra done; shr.u32 %r13, %r3, 5;\n"
                  "mov.f32 %f1, 0f00000000; setp.ge.u32 %p, %r7, %r13; @%p bra none;\n"
                  "shl.b32 %r12, %r7, 2; add.s32 %r12, %r9, %r12; ld.shared.f32 %f1, [%r12];\n"
                  "none: " DOWN("16") DOWN("8") DOWN("4") DOWN("2")
                      DOWN("1") "setp.ne.s32 %p, %r7, 0; @%p bra done; mul.wide.u32 %rd4, %r4, 4;\n"
                                "add.s64 %rd4, %rd1, %rd4; st.global.f32 [%rd4], %f1;\n"
                                "done: ret; }\n";

static const char histogram_text[] =
    HEAD ".visible .entry k(.param .u64 bins, .param .u64 in, .param .u32 n) {\n"
         ".reg .pred %p; .reg .b16 %rs<2>; .reg .b32 %r<24>; .reg .b64 %rd<12>;\n"
         ".shared .align 4 .b8 h[1024];\n"
         "ld.param.u64 %rd1, [bins]; ld.param.u64 %rd2, [in]; ld.param.u32 %r1, [n];\n"
         "mov.u32 %r2, %tid.x; shl.b32 %r3, %r2, 2; mov.u32 %r4, h; add.s32 %r5, %r4, %r3;\n"
         "mov.u32 %r6, 0; st.shared.u32 [%r5], %r6; bar.sync 0;\n"
         "mov.u32 %r7, %ntid.x; mov.u32 %r8, %ctaid.x; mad.lo.s32 %r9, %r8, %r7, %r2;\n"
         "mov.u32 %r10, %nctaid.x; mul.lo.s32 %r10, %r10, %r7;\n"
         "setp.ge.s32 %p, %r9, %r1; @%p bra counted;\n"
         "loop: cvt.s64.s32 %rd3, %r9; add.s64 %rd3, %rd2, %rd3; ld.global.u8 %r11, [%rd3];\n"
         "shl.b32 %r11, %r11, 2; add.s32 %r11, %r4, %r11; atom.shared.add.u32 %r12, [%r11], 1;\n"
         "add.s32 %r9, %r9, %r10; setp.lt.s32 %p, %r9, %r1; @%p bra loop;\n"
         "counted: bar.sync 0; ld.shared.u32 %r13, [%r5]; setp.eq.s32 %p, %r13, 0;\n"
         "@%p bra done; mul.wide.u32 %rd4, %r2, 4; add.s64 %rd4, %rd1, %rd4;\n"
         "atom.global.add.u32 %r14, [%rd4], %r13;\n"
         "done: ret; }\n";

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

/* What one kernel costs that does nothing. */
static const char empty_text[] = HEAD ".visible .entry k() { ret; }\n";

static void nothing(void) {
}

int main(void) {
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
