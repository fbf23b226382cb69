/* The machine's NUMA nodes, as far as options name them. */
#ifndef GM_MEMORY_NUMA_H
#define GM_MEMORY_NUMA_H

#include "base/error.h"

#include <stddef.h>

/* More than any machine has; what the system calls of gm_slab take. */
#define GM_NUMA_MOST_NODES 1024

/* INVALID_ARGUMENT when there is no such node, or when it has no memory; `what` begins the message.
 * A system that does not tell its nodes (no /sys) is believed to have it. Reads a file. */
gpumem_status gm_numa_check(int node, const char *what);

/* The node with memory, where there is only one; -1 where there are more, or the system does not
 * say. Reads a file. */
int gm_numa_only(void);

/* Bytes of the node that are free or hold pages of files that can be dropped; SIZE_MAX where the
 * system does not say. Reads a file. */
size_t gm_numa_free(int node);

/* The node of the CPU that the calling thread runs on; 0 where the system does not say. It may be
 * another at once, unless the thread is bound. */
int gm_numa_current(void);

#endif
