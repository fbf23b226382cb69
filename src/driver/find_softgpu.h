/* Where softgpu's engine lies. */
#ifndef GM_DRIVER_FIND_SOFTGPU_H
#define GM_DRIVER_FIND_SOFTGPU_H

#include <stddef.h>

/*
 * Writes the path of libsoftgpu.so.0, and answers whether there is one: beside the object that
 * holds this code, then in the library folders that it was linked with, then in the one that the
 * library was configured for. Thread-safe.
 */
int gm_find_softgpu(char *path, size_t size);

#endif
