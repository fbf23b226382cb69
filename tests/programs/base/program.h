/*
 * What the programs with kernels share. Each is one file that launches kernels over the driver API,
 * compares the results with the host's, and prints what it found: the same text on every driver and
 * device. Its kernels are kernels/NAME.cu; make.sh compiles them to the PTX that the program
 * contains.
 *
 *     PROGRAM("saxpy") {
 *         float *x = host_new(n * sizeof *x), *got = host_new(n * sizeof *got);
 *         CUdeviceptr p = device_copy(x, n * sizeof *x);
 *         LAUNCH("twice", SHAPE(n / 256, 256), &p, &n);
 *         device_read(got, p, n * sizeof *got);
 *         expect_equal("doubled", got, want, n * sizeof *got);
 *     }
 *
 * GPUMEM_DRIVER chooses the driver; without it hardware's is used, or else softgpu.
 * GPUMEM_TEST_LONG=1 makes the work larger.
 *
 * Exit status: 0 for success, 1 for a difference or an error of the driver, 77 if this driver or
 * device cannot run the program; the last line says why.
 *
 * Nothing here is thread-safe: a program has one thread.
 */
#ifndef PROGRAMS_PROGRAM_H
#define PROGRAMS_PROGRAM_H

#include <gpumem/driver.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* The text of kernels/`name`.ptx, which the assembler reads. Once in a program, at file scope. */
#define PROGRAM_KERNELS(name)                                                                      \
    __asm__(".section .rodata.program_kernels,\"a\"\n"                                             \
            ".globl program_kernels\n"                                                             \
            "program_kernels:\n"                                                                   \
            ".incbin \"" PROGRAM_FOLDER "/" name ".ptx\"\n"                                        \
            ".byte 0\n"                                                                            \
            ".previous\n")
extern const char program_kernels[];

/* The program: its kernels and the body of its main, with the kernels loaded. */
#define PROGRAM(name)                                                                              \
    PROGRAM_KERNELS(name);                                                                         \
    static void program(void);                                                                     \
    int main(void) {                                                                               \
        program_begin(name);                                                                       \
        program();                                                                                 \
        return program_end();                                                                      \
    }                                                                                              \
    static void program(void)

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

extern gpumem_driver_api cu; /* the functions to call */
extern CUdevice program_device;
extern CUcontext program_context;
extern CUmodule program_module;

/* Opens the driver, makes the primary context of device 0 current, and loads the kernels. */
void program_begin(const char *name);
/* The same without loading the kernels, for programs that load them in their own way. */
void program_begin_empty(const char *name);
/* Frees everything and prints the last line. Returns main's status. */
int program_end(void);
/* Ends the process with status 77. */
_Noreturn void program_cannot_run(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* 1, or `more` with GPUMEM_TEST_LONG=1. */
unsigned program_scale(unsigned more);

/* ---- The driver ------------------------------------------------------------------------------ */

/* Unless the call succeeds, prints its result and ends the program. */
#define OK(call) program_result((call), #call, __FILE__, __LINE__)
void program_result(CUresult got, const char *call, const char *file, int line);

struct shape {
    unsigned blocks, threads, blocks_y, threads_y, blocks_z, threads_z; /* 0 means 1 */
    unsigned shared; /* bytes of dynamic shared memory */
    CUstream stream;
};
/* SHAPE(2, 32, .shared = 4096) */
#define SHAPE(x, ...) ((struct shape){.blocks = x, .threads = __VA_ARGS__})
/* Launches a kernel of the module; its arguments are pointers to the parameters' values. */
#define LAUNCH(name, shape, ...)                                                                   \
    program_launch(program_kernel(name), (shape), (void *[]){__VA_ARGS__})
void program_launch(CUfunction function, struct shape shape, void **params);
/* The same with one attribute. */
#define LAUNCH_WITH(attribute, name, shape, ...)                                                   \
    program_launch_with(attribute, program_kernel(name), (shape), (void *[]){__VA_ARGS__})
void program_launch_with(CUlaunchAttribute attribute, CUfunction function, struct shape shape,
                         void **params);
CUfunction program_kernel(const char *name);

/* Device memory, freed at the end: zeros, or a copy of the host's bytes. */
CUdeviceptr device_new(size_t bytes);
CUdeviceptr device_copy(const void *from, size_t bytes);
/* Waits for all earlier work. */
void device_read(void *to, CUdeviceptr from, size_t bytes);
void device_write(CUdeviceptr to, const void *from, size_t bytes);
int device_attribute(CUdevice_attribute attribute);

/* ---- The host -------------------------------------------------------------------------------- */

/* Zeros, freed at the end. */
void *host_new(size_t bytes);
/* The same sequence in each run and on each machine. */
uint32_t random_bits(void);
/* From 0 to just below 1, in steps of 2^-24. */
float random_float(void);

/* Prints the line. If `good` is false, it says so and the program fails. */
void expect(bool good, const char *format, ...) __attribute__((format(printf, 2, 3)));
void expect_equal(const char *what, const void *got, const void *want, size_t bytes);
/* Each |got - want| is at most bound * max(1, |want|). */
void expect_near(const char *what, const float *got, const double *want, size_t count,
                 double bound);
void expect_near_double(const char *what, const double *got, const double *want, size_t count,
                        double bound);
/* Prints a checksum of the exact bits. */
void checksum(const char *what, const void *bytes, size_t size);

#endif
