/* --check memory, outside of kernels: leaks, unused memory, refused calls. */
#ifndef SG_CHECK_MEMORY_HOST_H
#define SG_CHECK_MEMORY_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void sg_memory_host_start(void);
void sg_memory_host_finish(void);
/* A line about the memory that was freed at an address. With the lock. */
void sg_freed_text(uint64_t address, char *text, size_t size);
/* The same for memory that was freed shortly before the address; false: there is none. */
bool sg_freed_behind_text(uint64_t address, char *text, size_t size);

#endif
