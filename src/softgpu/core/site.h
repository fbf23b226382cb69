/*
 * Where an object was created: the driver function, the calls that led to it, and the pytest test
 * that was running. Recorded only with SOFTGPU_LEAKS; otherwise every site is 0 and costs one load.
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

/* With the lock. "cuMemAlloc_v2 from prog+0x1234 < prog+0x1150, in tests/test_a.py::test_b (call)";
 * the offsets can be passed to addr2line. "" for 0. */
void sg_site_text(uint32_t site, char *text, size_t size);

/* The file that the code at this address is of, a library or the program; false: none. Needs no
 * lock, and no recording. */
bool sg_site_file(const void *code, char *file, size_t size);

#endif
