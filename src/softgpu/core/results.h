/* CUresult values by name. */
#ifndef SG_CORE_RESULTS_H
#define SG_CORE_RESULTS_H

#include <gpumem/cuda_api.h>
#include <stdbool.h>

/* "CUDA_ERROR_OUT_OF_MEMORY" and "out of memory"; NULL for other values. */
const char *sg_result_name(CUresult result);
const char *sg_result_string(CUresult result);
/* The value of a name, with or without "CUDA_ERROR_". False, with *result unchanged, if unknown. */
bool sg_result_parse(const char *name, CUresult *result);

#endif
