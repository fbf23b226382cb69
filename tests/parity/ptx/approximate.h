/* The functions that PTX defines within bounds only. */
#ifndef PTX_APPROXIMATE_H
#define PTX_APPROXIMATE_H

#include <gpumem/driver.h>

#define FUNCTIONS 25
#define BLOCK     (1u << 20) /* so many inputs are one hash */
#define THREADS   256u

enum kind { SINGLE, HALF, DOUBLE, PAIR };

struct ptx_function {
    const char *name;
    enum kind kind;
    float step; /* the range whose results are sampled begins here; 0: none */
    unsigned octaves;
};

extern const struct ptx_function ptx_functions[FUNCTIONS];

/*
 * Kernels of blocks of THREADS: hash(u64 *sums, u32 first): a block takes 2^16 inputs and adds to
 * its sum; give(u32 *results, u32 first, u32 stride): a result for each thread.
 */
CUmodule ptx_function_module(const struct ptx_function *function);
uint64_t ptx_function_inputs(const struct ptx_function *function);

#endif
