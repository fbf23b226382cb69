/* Finds softgpu's engine. */
#ifndef GM_DRIVER_FIND_SOFTGPU_H
#define GM_DRIVER_FIND_SOFTGPU_H

#include <stddef.h>

/*
 * Writes the path of libsoftgpu.so.0 and returns whether there is one: next to the object that
 * contains this code, then in the library folders that it was linked with, then in the one for
 * which the library was configured. Thread-safe.
 */
int gm_find_softgpu(char *path, size_t size);

#endif
