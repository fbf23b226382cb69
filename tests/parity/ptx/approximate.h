/* The functions for which PTX only bounds the error. */
#ifndef PTX_APPROXIMATE_H
#define PTX_APPROXIMATE_H

#include <gpumem/driver.h>

#define FUNCTIONS 25
#define BLOCK     (1u << 20) /* inputs in one hash */
#define THREADS   256u

enum kind { SINGLE, HALF, DOUBLE, PAIR };

struct ptx_function {
    const char *name;
    enum kind kind;
    float step; /* start of the range whose results are sampled; 0: none */
    unsigned octaves;
};

extern const struct ptx_function ptx_functions[FUNCTIONS];

/*
 * A module with kernels for blocks of THREADS threads: hash(u64 *sums, u32 first, ...), in which a
 * block hashes 2^16 inputs and adds to its sum, and give(u32 *results, u32 first, u32 stride), one
 * result for each thread.
 */
CUmodule ptx_function_module(const struct ptx_function *function);
uint64_t ptx_function_inputs(const struct ptx_function *function);

#endif
