/* gpumem run: the CUDA toolkit beside the wrapper of nvcc. */
#ifndef CLI_TOOLKIT_H
#define CLI_TOOLKIT_H

#include <limits.h>
#include <stdbool.h>

/*
 * Programs take the folder of nvcc for the toolkit's, and look for ../include and ../lib64. Makes a
 * folder below `cache` whose bin has the wrappers, and which for the rest has links to the toolkit
 * of the real nvcc: that after the wrappers on PATH, or in CUDA_HOME, CUDA_PATH or /usr/local/cuda.
 * False if there is no such nvcc, or the folder cannot be made: then `bin` means nothing.
 */
bool toolkit_link(const char *wrappers, const char *cache, char bin[PATH_MAX]);

#endif
