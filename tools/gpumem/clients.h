/* gpumem run: makes clients' compilers produce PTX, and keeps their caches apart. */
#ifndef CLI_CLIENTS_H
#define CLI_CLIENTS_H

#include <stdbool.h>

/*
 * Sets the environment of a program that is about to be started. `softgpu` is the folder of
 * softgpu's libcuda.so.1; the auditor and the wrappers are in "clients" beside it. If they are
 * missing from the installation, nothing is set and a line says so. With `runtime` our libcudart,
 * in "runtime" beside it, is loaded in the place of NVIDIA's. Returns CLI_OK, or another status
 * after reporting why.
 */
int clients_prepare(const char *softgpu, bool runtime);
/* Prints a line if the dynamic linker will not load the auditor into the command. */
void clients_warn(const char *command);

#endif
