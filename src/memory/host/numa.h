/* The machine's NUMA nodes, as named by options. */
#ifndef GM_MEMORY_NUMA_H
#define GM_MEMORY_NUMA_H

#include "base/error.h"

#include <stddef.h>

/* More than any machine has; the limit of gm_slab's system calls. */
#define GM_NUMA_MOST_NODES 1024

/* INVALID_ARGUMENT if there is no such node, or it has no memory; `what` begins the message. If the
 * system does not list its nodes (no /sys), the node is assumed to exist. Reads a file. */
gpumem_status gm_numa_check(int node, const char *what);

/* The only node with memory; -1 if there are several or it is unknown. Reads a file. */
int gm_numa_only(void);

/* Bytes of the node that are free or hold pages of files that can be dropped; SIZE_MAX if unknown.
 * Reads a file. */
size_t gm_numa_free(int node);

/* The node of the CPU that the calling thread runs on; 0 if unknown. It may change at any time,
 * unless the thread is bound. */
int gm_numa_current(void);

#endif
