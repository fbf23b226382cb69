/*
 * Who made an object: the driver function and the calls that led to it, and the test of pytest that
 * ran. Kept with SOFTGPU_LEAKS only; else every site is 0 and costs one load.
 */
#ifndef SG_CORE_SITE_H
#define SG_CORE_SITE_H

#include <stddef.h>
#include <stdint.h>

/* From now on. Without the lock: the first look at a stack may load a library. */
void sg_sites_begin(void);

/* With the lock. The site of the driver call that this thread is in; 0 when none is kept. */
uint32_t sg_site_here(void);

/* With the lock. "cuMemAlloc_v2 from prog+0x1234 < prog+0x1150, in tests/test_a.py::test_b (call)";
 * the offsets are what addr2line takes. "" for 0. */
void sg_site_text(uint32_t site, char *text, size_t size);

#endif
