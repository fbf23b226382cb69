/* Memory objects: a file in memory, and a mapping of it. */
#ifndef TESTS_VULKAN_ICD_MEMORY_H
#define TESTS_VULKAN_ICD_MEMORY_H

#include "icd.h"

#include <stdatomic.h>

struct memory {
    struct memory *next; /* of those alive: under the lock */
    struct device *device;
    int file;
    uint64_t size;
    bool imported, visible, coherent;
    atomic_int users; /* in calls that Vulkan wants for one thread alone */

    unsigned char *map; /* NULL: not mapped */
    bool placed;
    /* Of non-coherent memory: the file's bytes, which the device sees, and what the CPU's copy was
     * when both were last the same. */
    unsigned char *device_bytes, *known;
};

/* The memory of a handle that is alive, or NULL with a violation noted. */
struct memory *memory_of(const char *function, VkDeviceMemory handle);

/* Around calls that two threads must not make at once for one object. */
void memory_enter(const char *function, struct memory *memory);
void memory_leave(struct memory *memory);

/* The end of a mapping, if there is one. */
void memory_unmap(struct memory *memory, bool reserve);

#endif
