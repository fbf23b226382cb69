/* gpumem run: what makes clients' compilers give PTX, and keeps their caches apart. */
#ifndef CLI_CLIENTS_H
#define CLI_CLIENTS_H

/*
 * Sets the environment of a program that is going to be started. `softgpu` is the folder of
 * softgpu's libcuda.so.1; the auditor and the wrappers are in "clients" beside it. Without them (a
 * part of an installation) nothing is set, and a line says so. Returns CLI_OK, or reports and
 * returns another status.
 */
int clients_prepare(const char *softgpu);
/* Says in one line if the command is one into which the dynamic linker loads nothing. */
void clients_warn(const char *command);

#endif
