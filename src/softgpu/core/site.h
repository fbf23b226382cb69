/*
 * Where an object was created: the driver function, the calls that led to it, and what the thread
 * was doing (its label, or else the test that pytest names). The calls are recorded only with
 * SOFTGPU_LEAKS, and without it and a label every site is 0 and costs two loads.
 */
#ifndef SG_CORE_SITE_H
#define SG_CORE_SITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Starts recording. Without the lock: the first stack walk may load a library. */
void sg_sites_begin(void);

/* With the lock. The site of the driver call that this thread is in; 0 if none is recorded. */
uint32_t sg_site_here(void);

/* An object's, recorded when it is made. */
struct sg_origin {
    uint64_t number; /* larger than that of whatever was made before it */
    uint32_t site;
};

/* With the lock: of an object that this thread makes now, and the number of the last one. */
struct sg_origin sg_origin_here(void);
uint64_t sg_origin_last(void);

/* What this thread does from now on: one line, its unprintable bytes shown as \x1b; NULL or "" for
 * nothing. Longer than sg_thread()->label holds, it is cut. */
void sg_label_set(const char *text);

/* With the lock. "cudaMalloc (cuMemAlloc_v2) from prog+0x1234 < prog+0x1150, in
 * tests/test_a.py::test_b (call)"; without a runtime the driver's function alone. Offsets can be
 * passed to addr2line. "" for 0. */
void sg_site_text(uint32_t site, char *text, size_t size);

/* The file that the code at this address is of, a library or the program; false: none. Needs no
 * lock, and no recording. */
bool sg_site_file(const void *code, char *file, size_t size);

/* The mapped part of a file of the process that the code at this address is in; 0 and 0: none. */
void sg_site_range(const void *code, uintptr_t *start, uintptr_t *end);

#endif
