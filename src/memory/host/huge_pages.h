/*
 * Huge pages for pinned memory: those that the system has set aside, and whether it makes some by
 * itself.
 */
#ifndef GM_MEMORY_HUGE_PAGES_H
#define GM_MEMORY_HUGE_PAGES_H

#include <stddef.h>

#define GM_HUGE_PAGE ((size_t)2 << 20)

/*
 * Addresses for whole huge pages out of the system's reserve, untouched: NULL with the reason when
 * there are too few, or the size is none of theirs. Touch it by a way that does not kill
 * (GM_TOUCH_POPULATE_ONLY): a control group may still refuse. Given back with munmap.
 */
void *gm_huge_map(size_t bytes, char *reason, size_t room);

/* Whether memory that asks for it (MADV_HUGEPAGE) gets transparent ones; else the reason. A system
 * that does not say is taken for one that does not give them. Reads a file. */
int gm_huge_transparent(char *reason, size_t room);

/* For tests alone: what stands for mmap with MAP_HUGETLB (NULL with errno when there are none), and
 * the folder that /sys is looked for in. NULL and "": the system's own. Not thread-safe. */
void gm_huge_for_tests(void *(*map)(size_t bytes), const char *root);

#endif
