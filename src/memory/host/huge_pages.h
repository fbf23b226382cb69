/*
 * Huge pages for pinned memory: those that the system has reserved, and whether it uses transparent
 * ones.
 */
#ifndef GM_MEMORY_HUGE_PAGES_H
#define GM_MEMORY_HUGE_PAGES_H

#include <stddef.h>

#define GM_HUGE_PAGE ((size_t)2 << 20)

/*
 * Maps huge pages from the system's reserve, untouched: NULL, with the reason, if there are too few
 * or the size is not a multiple. Touch them with a method that does not kill
 * (GM_TOUCH_POPULATE_ONLY), because a control group may still refuse. Free with munmap.
 */
void *gm_huge_map(size_t bytes, char *reason, size_t room);

/* Whether memory gets transparent huge pages on request (MADV_HUGEPAGE); else the reason. If the
 * system does not report it, the answer is no. Reads a file. */
int gm_huge_transparent(char *reason, size_t room);

/* Only for tests: a replacement for mmap with MAP_HUGETLB (NULL with errno if there are none), and
 * the folder in which /sys is. NULL and "": the system's own. Not thread-safe. */
void gm_huge_for_tests(void *(*map)(size_t bytes), const char *root);

#endif
