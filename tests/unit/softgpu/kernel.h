/* Runs kernels of PTX text on the engine itself, over host memory. */
#ifndef TESTS_UNIT_SOFTGPU_KERNEL_H
#define TESTS_UNIT_SOFTGPU_KERNEL_H

#include "softgpu/engine/engine.h"
#include "softgpu/image/image.h"

#include "test.h"

#define KERNEL_HEAD ".version 8.1\n.target sm_90\n.address_size 64\n"

struct kernel {
    struct sg_image *image;
    struct sg_program *program;
    struct sg_code *code;
    struct sg_grid_launch launch;
    unsigned char parameters[256];
};

/* The program of the kernel "k", without code: for what cannot run. */
void kernel_read(struct kernel *kernel, const char *text);
/* The kernel "k" of a text with its head; it fails the test where the text is not taken or cannot
 * run. */
void kernel_make(struct kernel *kernel, const char *text, enum sg_level level);
/* Its code is made anew, for a watcher. */
void kernel_watched(struct kernel *kernel, enum sg_level level, const struct sg_watch *watch,
                    void *user);
void kernel_free(struct kernel *kernel);
/* A parameter of 8, 4, … bytes at the next multiple of its size. */
void kernel_argument(struct kernel *kernel, const void *value, size_t size);
void kernel_pointer(struct kernel *kernel, const void *pointer);
void kernel_number(struct kernel *kernel, uint32_t number);
void kernel_shape(struct kernel *kernel, unsigned blocks, unsigned threads);
/* Made with pointers alone, and its shape: KERNEL_WITH(text, level, blocks, threads, out) */
#define KERNEL_WITH(text, level, blocks, threads, ...)                                             \
    kernel_with(text, level, blocks, threads, (const void *[]){__VA_ARGS__},                       \
                sizeof((const void *[]){__VA_ARGS__}) / sizeof(void *))
struct kernel kernel_with(const char *text, enum sg_level level, unsigned blocks, unsigned threads,
                          const void *const *pointers, size_t count);
/* Runs it to its end, in slices of `budget` instructions (0: one), and copies a fault out; its kind
 * is SG_FAULT_COUNT where there is none. */
struct sg_grid_fault kernel_run(struct kernel *kernel, uint64_t budget);
/* Runs it and fails the test on a fault. */
void kernel_succeeds(struct kernel *kernel);
/* Made so, run so, and freed. */
#define KERNEL_SUCCEEDS(...)                                                                       \
    do {                                                                                           \
        struct kernel made_ = KERNEL_WITH(__VA_ARGS__);                                            \
        kernel_succeeds(&made_);                                                                   \
        kernel_free(&made_);                                                                       \
    } while (0)

#define FOR_EACH_LEVEL(level)                                                                      \
    for (int level = 0; level < SG_LEVEL_COUNT; level++)                                           \
        if (sg_level_usable((enum sg_level)level))

/*
 * One block of threads computes `body` from the parameters %a, %b, %c (u64 each, of each thread)
 * into %d (b64): its words are compared with what the caller expects, on every level. The text may
 * declare more registers.
 */
struct row {
    uint64_t a, b, c, d;
};
void rows_hold(const char *body, const struct row *rows, size_t count);
#define ROWS_HOLD(body, rows) rows_hold(body, rows, sizeof(rows) / sizeof((rows)[0]))
/* HOLDS(body, {a, b, c, d}, ...) */
#define HOLDS(body, ...)                                                                           \
    rows_hold(body, (const struct row[]){__VA_ARGS__},                                             \
              sizeof((const struct row[]){__VA_ARGS__}) / sizeof(struct row))

#endif
