/*
 * Kernels on softgpu's engine compared with the same in C, one thread each, CPU time. Prints
 * milliseconds, the ratio, and the geometric mean of the first four ratios, for each level of
 * x86-64 that the machine has. With the best level it also measures the gain from two threads, the
 * cost of bounds checks, the cost of an empty grid, the memory of blocks that wait for each other,
 * and the same kernels in OpenCL, if a CPU device is installed. Arguments select: only levels and
 * kernels run whose names contain them.
 */
#include "softgpu/binary/read.h"
#include "softgpu/engine/inside.h"

#include "kernel_texts.h"
#include "opencl.h"

#include <malloc.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- the kernels in C ------------------------------------------------------------------------ */

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

/* Each of 2^18 threads adds up 16 numbers, the odd ones in another way. */
enum { PARTED = 1 << 18, ROUNDS = 16 };
static unsigned *numbers, *parted;

static void part(void) {
    for (unsigned i = 0; i < PARTED; i++) {
        unsigned sum = 0;
        for (unsigned k = 0; k < ROUNDS; k++) {
            unsigned one = numbers[i + k * PARTED];
            sum = one & 1 ? sum + one * 3 : sum ^ one;
        }
        parted[i] = sum;
    }
}

static const char part_text[] = KERNEL_HEAD
    ".visible .entry k(.param .u64 out, .param .u64 in, .param .u32 n) {\n"
    ".reg .pred %p<3>; .reg .b32 %r<30>; .reg .b64 %d<20>;\n"
    "ld.param.u64 %d1, [out]; ld.param.u64 %d2, [in]; ld.param.u32 %r1, [n];\n"
    "mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;\n"
    "mad.lo.s32 %r5, %r2, %r3, %r4; mov.u32 %r6, 0; mov.u32 %r7, 0;\n"
    "loop: mad.lo.s32 %r8, %r7, %r1, %r5; mul.wide.u32 %d3, %r8, 4; add.s64 %d4, %d2, %d3;\n"
    "ld.global.u32 %r9, [%d4]; and.b32 %r10, %r9, 1; setp.eq.u32 %p1, %r10, 0;\n"
    "@%p1 bra even; mad.lo.s32 %r6, %r9, 3, %r6; bra next;\n"
    "even: xor.b32 %r6, %r6, %r9;\n"
    "next: add.s32 %r7, %r7, 1; setp.lt.u32 %p2, %r7, 16; @%p2 bra loop;\n"
    "mul.wide.u32 %d5, %r5, 4; add.s64 %d6, %d1, %d5; st.global.u32 [%d6], %r6; ret; }\n";

/* The product with a register for each value, as compilers write it: 32 steps of a loop at once. */
static const char *values_text(void) {
    static char text[32768];
    size_t at = (size_t)snprintf(
        text, sizeof text,
        KERNEL_HEAD
        ".visible .entry k(.param .u64 c, .param .u64 a, .param .u64 b, .param .u32 n) {\n"
        ".reg .pred %%p; .reg .f32 %%f<200>; .reg .b32 %%r<200>; .reg .b64 %%d<300>;\n"
        "ld.param.u64 %%d1, [c]; ld.param.u64 %%d2, [a]; ld.param.u64 %%d3, [b];\n"
        "ld.param.u32 %%r1, [n]; mov.u32 %%r2, %%tid.x; mov.u32 %%r3, %%tid.y;\n"
        "mov.u32 %%r4, %%ctaid.y; shl.b32 %%r5, %%r4, 4; add.s32 %%r6, %%r5, %%r3;\n"
        "mov.u32 %%r7, %%ctaid.x; shl.b32 %%r8, %%r7, 4; add.s32 %%r9, %%r8, %%r2;\n"
        "mul.lo.s32 %%r10, %%r6, %%r1; mov.u32 %%r11, 0; mov.f32 %%f0, 0f00000000;\nloop:\n");
    for (int k = 0; k < 32; k++)
        at += (size_t)snprintf(
            text + at, sizeof text - at,
            "add.s32 %%r%d, %%r11, %d; add.s32 %%r%d, %%r10, %%r%d; mad.lo.s32 %%r%d, %%r%d, %%r1, "
            "%%r9;\nmul.wide.s32 %%d%d, %%r%d, 4; add.s64 %%d%d, %%d2, %%d%d;\n"
            "mul.wide.s32 %%d%d, %%r%d, 4; add.s64 %%d%d, %%d3, %%d%d;\n"
            "ld.global.f32 %%f%d, [%%d%d]; ld.global.f32 %%f%d, [%%d%d];\n"
            "fma.rn.f32 %%f%d, %%f%d, %%f%d, %%f%d;\n",
            20 + 3 * k, k, 21 + 3 * k, 20 + 3 * k, 22 + 3 * k, 20 + 3 * k, 10 + 4 * k, 21 + 3 * k,
            11 + 4 * k, 10 + 4 * k, 12 + 4 * k, 22 + 3 * k, 13 + 4 * k, 12 + 4 * k, 41 + 2 * k,
            11 + 4 * k, 42 + 2 * k, 13 + 4 * k, k + 1, 41 + 2 * k, 42 + 2 * k, k);
    snprintf(text + at, sizeof text - at,
             "mov.f32 %%f0, %%f32; add.s32 %%r11, %%r11, 32; setp.lt.s32 %%p, %%r11, %%r1;\n"
             "@%%p bra loop; add.s32 %%r12, %%r10, %%r9; mul.wide.s32 %%d200, %%r12, 4;\n"
             "add.s64 %%d201, %%d1, %%d200; st.global.f32 [%%d201], %%f0; ret; }\n");
    return text;
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

static double wall(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec * 1e3 + (double)at.tv_nsec * 1e-6;
}

/* CPU time of all threads. Two threads on processors of their own take half as long. */
static double all_threads(void) {
    struct timespec at;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &at);
    return (double)at.tv_sec * 1e3 + (double)at.tv_nsec * 1e-6;
}

static void *help(void *argument) {
    struct sg_grid *grid = argument;
    while (!sg_grid_advance(grid, UINT64_MAX))
        ;
    return NULL;
}

static void run_grid(const struct subject *subject, const struct sg_code *code, unsigned threads) {
    struct sg_grid_launch launch = {.code = code,
                                    .grid = {subject->grid[0], subject->grid[1], 1},
                                    .block = {subject->block[0], subject->block[1], 1},
                                    .parameters = subject->parameters,
                                    .parameter_bytes = subject->parameter_bytes,
                                    .workers = threads};
    struct sg_grid *grid;
    pthread_t other;
    if (sg_grid_begin(&launch, &grid) != CUDA_SUCCESS)
        exit(1);
    if (threads > 1 && pthread_create(&other, NULL, help, grid) != 0)
        exit(1);
    help(grid);
    if (threads > 1)
        pthread_join(other, NULL);
    if (sg_grid_fault(grid)) {
        fprintf(stderr, "%s: %s\n", subject->name, sg_fault_name(sg_grid_fault(grid)->kind));
        exit(1);
    }
    sg_grid_end(grid);
}

static double best_time(const struct subject *subject, const struct sg_code *code, unsigned threads,
                        double (*clock)(void)) {
    double best = 1e9;
    for (int i = 0; i < 7; i++) {
        double before = clock();
        run_grid(subject, code, threads);
        double took = clock() - before;
        best = took < best ? took : best;
    }
    return best;
}

static double engine_time(const struct subject *subject, const struct sg_code *code) {
    return best_time(subject, code, 1, now);
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

/* A kernel that does nothing: the cost of a block. */
static const char empty_text[] = KERNEL_HEAD ".visible .entry k() { ret; }\n";

static void nothing(void) {
}

/* ---- the best level -------------------------------------------------------------------------- */

static struct sg_code *compiled(const struct sg_program *program, enum sg_level level) {
    struct sg_code *code;
    if (sg_code_make(program, level, 0, &code) != CUDA_SUCCESS)
        exit(1);
    return code;
}

static void two_threads(const struct subject *subjects) {
    double logs = 0;
    puts("two threads: wall time, and half of their CPU time, which other load disturbs less");
    for (int i = 0; i < 4; i++) {
        struct sg_program *program = decoded(subjects[i].text);
        struct sg_code *code = compiled(program, sg_level_best());
        double one = best_time(&subjects[i], code, 1, wall);
        double two = best_time(&subjects[i], code, 2, wall);
        double cpu = best_time(&subjects[i], code, 1, all_threads);
        double half = best_time(&subjects[i], code, 2, all_threads) / 2;
        printf("  %-20s %8.3f ms, two %8.3f ms, %.2f times as fast; by CPU time %.2f\n",
               subjects[i].name, one, two, one / two, cpu / half);
        logs += log(cpu / half);
        sg_code_free(code);
        sg_program_free(program);
    }
    printf("  geometric mean by CPU time: %.2f\n", exp(logs / 4));
}

#ifdef BENCH_UNCHECKED
/* Loads and stores for x86-64-v3, compiled once more without bounds checks. */
sg_theme sg_theme_memory_unchecked, sg_theme_memory_v3;

static void uncheck(struct sg_code *code) {
    for (uint32_t i = 0; i < code->step_count; i++) {
        struct sg_step *step = &code->steps[i];
        struct sg_form checked = {0}, unchecked = {0};
        const struct sg_instruction *in = &code->program->instructions[step->instruction];
        if (!sg_theme_memory_v3(in, &checked) || step->run != checked.run ||
            !sg_theme_memory_unchecked(in, &unchecked))
            continue;
        step->run = step->gang = unchecked.run;
    }
}

static void bounds(const struct subject *subjects) {
    double logs = 0;
    if (!sg_level_usable(SG_LEVEL_V3))
        return;
    puts("bounds checked and not, x86-64-v3");
    for (int i = 0; i < 4; i++) {
        struct sg_program *program = decoded(subjects[i].text);
        struct sg_code *code = compiled(program, SG_LEVEL_V3);
        double with = engine_time(&subjects[i], code);
        uncheck(code);
        double without = engine_time(&subjects[i], code);
        printf("  %-20s %8.3f ms, without %8.3f ms, ratio %.2f\n", subjects[i].name, with, without,
               with / without);
        logs += log(with / without);
        sg_code_free(code);
        sg_program_free(program);
    }
    printf("  geometric mean: %.2f\n", exp(logs / 4));
}
#endif

static void empty_grid(void) {
    enum { TIMES = 10000 };
    struct sg_program *program = decoded(empty_text);
    struct sg_code *code = compiled(program, sg_level_best());
    struct subject subject = {.name = "empty", .grid = {1, 1}, .block = {32, 1}};
    double best = 1e9;
    for (int i = 0; i < 7; i++) {
        double before = now();
        for (int k = 0; k < TIMES; k++)
            run_grid(&subject, code, 1);
        double took = (now() - before) * 1e6 / (double)TIMES;
        best = took < best ? took : best;
    }
    printf("an empty grid, begun, run and ended: %.0f ns\n", best);
    sg_code_free(code);
    sg_program_free(program);
}

/* Blocks that wait for more blocks than fit in the resident window, so that all of them are
 * begun. */
static const char waiting_text[] = KERNEL_HEAD
    ".visible .entry k(.param .u64 at) {\n.reg .pred %p; .reg .b32 %r<60>; .reg .b64 %d<20>;\n"
    "ld.param.u64 %d1, [at];\nmore: ld.volatile.global.u32 %r1, [%d1];\n"
    "setp.eq.u32 %p, %r1, 0; @%p bra more; ret; }\n";

static size_t allocated(void) {
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

static void most_memory(void) {
    struct sg_program *program = decoded(waiting_text);
    struct sg_code *code = compiled(program, sg_level_best());
    static unsigned flag;
    void *pointer = &flag;
    struct sg_grid_launch launch = {.code = code,
                                    .grid = {1u << 20, 1, 1},
                                    .block = {1024, 1, 1},
                                    .parameters = (unsigned char *)&pointer,
                                    .parameter_bytes = 8};
    struct sg_grid *grid;
    size_t before = allocated();
    if (sg_grid_begin(&launch, &grid) != CUDA_SUCCESS)
        exit(1);
    uint64_t known = 0, begun;
    do {
        known = atomic_load(&grid->begun);
        for (int i = 0; i < 200; i++)
            sg_grid_advance(grid, 100000);
        begun = atomic_load(&grid->begun);
    } while (begun != known);
    printf("blocks of 1024 threads that wait: %llu under way, %.1f MiB\n",
           (unsigned long long)begun, (double)(allocated() - before) / (1 << 20));
    sg_grid_end(grid);
    sg_code_free(code);
    sg_program_free(program);
}

/* Compared with another way to run kernels on a CPU: CPU time, one thread each. */
static void beside_opencl(const struct subject *subjects) {
    char why[200];
    if (!opencl_open(why, sizeof why)) {
        printf("beside OpenCL: not measured, %s\n", why);
        return;
    }
    static const int edge = EDGE, saxpy_count = SAXPY, many = MANY;
    static const float half = 0.5F;
    const struct opencl_kernel kernels[] = {
        {"saxpy", {SAXPY, 1}, {256, 1}, {y, x}, {MANY * 4, MANY * 4}, {&half, &saxpy_count}},
        {"matmul",
         {EDGE, EDGE},
         {16, 16},
         {product, x, y},
         {EDGE * EDGE * 4, MANY * 4, MANY * 4},
         {&edge}},
        {"reduce", {SUMS * 256, 1}, {256, 1}, {sums, x}, {sizeof sums, MANY * 4}, {&many}},
        {"histogram", {64 * 256, 1}, {256, 1}, {bins, bytes}, {sizeof bins, MANY}, {&many}}};
    printf("beside OpenCL, %s\n", opencl_name());
    for (int i = 0; i < 4; i++) {
        struct sg_program *program = decoded(subjects[i].text);
        struct sg_code *code = compiled(program, sg_level_best());
        double ours = engine_time(&subjects[i], code), theirs = opencl_time(&kernels[i]);
        printf("  %-20s %8.3f ms, OpenCL %8.3f ms, ratio %.2f\n", subjects[i].name, ours, theirs,
               ours / theirs);
        sg_code_free(code);
        sg_program_free(program);
    }
}

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
    numbers = room(MANY * sizeof *numbers);
    parted = room(PARTED * sizeof *parted);
    for (int i = 0; i < MANY; i++) {
        numbers[i] = (unsigned)i * 2654435761u >> 7;
        x[i] = (float)(i % 7) * 0.25F;
        bytes[i] = (unsigned char)((unsigned)i * 2654435761u >> 24);
    }
    struct subject subjects[] = {
        {"saxpy 1M", saxpy_text, saxpy, {SAXPY / 256, 1}, {256, 1}, {0}, 0},
        {"matmul 256^3", matmul_text, matmul, {16, 16}, {16, 16}, {0}, 0},
        {"reduction 4M", reduce_text, reduce, {SUMS, 1}, {256, 1}, {0}, 0},
        {"histogram 4M", histogram_text, histogram, {64, 1}, {256, 1}, {0}, 0},
        {"matmul, many values", values_text(), matmul, {16, 16}, {16, 16}, {0}, 0},
        {"branches that part", part_text, part, {PARTED / 256, 1}, {256, 1}, {0}, 0},
        {"65536 blocks of 32", empty_text, nothing, {65536, 1}, {32, 1}, {0}, 0},
    };
    void *pointers[6][3] = {{y, x, NULL},        {product, x, y}, {sums, x, NULL},
                            {bins, bytes, NULL}, {product, x, y}, {parted, numbers, NULL}};
    unsigned counts[] = {SAXPY, EDGE, MANY, MANY, EDGE, PARTED};
    float factor = 0.5F;
    for (int i = 0; i < 6; i++) {
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
        for (int i = 0; i < 7; i++) {
            if (!wanted(argc, argv, sg_level_name((enum sg_level)level), subjects[i].name))
                continue;
            struct sg_program *program = decoded(subjects[i].text);
            struct sg_code *code;
            if (sg_code_make(program, (enum sg_level)level, 0, &code) != CUDA_SUCCESS)
                return 1;
            double ours = engine_time(&subjects[i], code), native = native_time(&subjects[i]);
            if (i < 6) {
                printf("  %-20s %8.3f ms, C %8.3f ms, ratio %6.1f\n", subjects[i].name, ours,
                       native, ours / native);
                logs += i < 4 ? log(ours / native) : 0;
            } else {
                printf("  %-20s %8.3f ms, %.1f ns a block\n", subjects[i].name, ours,
                       ours * 1e6 / 65536);
            }
            sg_code_free(code);
            sg_program_free(program);
        }
        printf("  geometric mean of the four ratios: %.1f\n", exp(logs / 4));
    }
    if (argc < 2) {
        two_threads(subjects);
#ifdef BENCH_UNCHECKED
        bounds(subjects);
#endif
        empty_grid();
        most_memory();
        beside_opencl(subjects);
    }
    free(x);
    free(y);
    free(product);
    free(bytes);
    free(numbers);
    free(parted);
    return 0;
}
