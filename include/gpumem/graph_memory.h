/*
 * Memory that graphs allocate: of allocations that were captured, and of allocation nodes. The
 * driver keeps it for each device, apart from its pools, and for all graphs of the process, whoever
 * made them.
 */
#ifndef GPUMEM_GRAPH_MEMORY_H
#define GPUMEM_GRAPH_MEMORY_H

#include <gpumem/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes; the driver's numbers (CUgraphMem_attribute). */
typedef enum gpumem_graph_memory_attribute {
    GPUMEM_GRAPH_MEMORY_USED_CURRENT = 0,     /* that graphs use now */
    GPUMEM_GRAPH_MEMORY_USED_HIGH = 1,        /* their highest number; writing 0 starts it anew */
    GPUMEM_GRAPH_MEMORY_RESERVED_CURRENT = 2, /* that the driver holds for graphs */
    GPUMEM_GRAPH_MEMORY_RESERVED_HIGH = 3,    /* their highest number; writing 0 starts it anew */
} gpumem_graph_memory_attribute;

/*
 * Reads or writes one. INVALID_ARGUMENT: no such attribute, one that is only read, a high-water
 * mark set to anything but 0. NOT_SUPPORTED: a driver without graph memory (before 11.4).
 * Thread-safe; does not block. Driver: cuDeviceGetGraphMemAttribute, cuDeviceSetGraphMemAttribute.
 */
GPUMEM_API gpumem_status gpumem_graph_memory_get_attribute(gpumem_device *device,
                                                           gpumem_graph_memory_attribute attribute,
                                                           uint64_t *value);
GPUMEM_API gpumem_status gpumem_graph_memory_set_attribute(gpumem_device *device,
                                                           gpumem_graph_memory_attribute attribute,
                                                           uint64_t value);

/*
 * Gives what no graph uses back to the system; what running graphs use, and what was allocated by a
 * graph and is not freed, stays. Thread-safe; may block in the driver. Driver:
 * cuDeviceGraphMemTrim.
 */
GPUMEM_API gpumem_status gpumem_graph_memory_trim(gpumem_device *device);

#ifdef __cplusplus
}
#endif

#endif
