/*
 * Memory allocated by graphs, through captured allocations and allocation nodes. The driver keeps
 * it per device, apart from its pools, for all graphs of the process, whoever made them.
 */
#ifndef GPUMEM_GRAPH_MEMORY_H
#define GPUMEM_GRAPH_MEMORY_H

#include <gpumem/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes; the driver's numbers (CUgraphMem_attribute). */
typedef enum gpumem_graph_memory_attribute {
    GPUMEM_GRAPH_MEMORY_USED_CURRENT = 0,     /* in use by graphs */
    GPUMEM_GRAPH_MEMORY_USED_HIGH = 1,        /* its highest value; writing 0 resets it */
    GPUMEM_GRAPH_MEMORY_RESERVED_CURRENT = 2, /* held by the driver for graphs */
    GPUMEM_GRAPH_MEMORY_RESERVED_HIGH = 3,    /* its highest value; writing 0 resets it */
} gpumem_graph_memory_attribute;

/*
 * Reads or writes an attribute. INVALID_ARGUMENT: no such attribute, a read-only one, a high-water
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
 * Gives memory that no graph uses back to the system, but not memory that running graphs use or
 * that a graph allocated and did not free. Thread-safe; may block in the driver. Driver:
 * cuDeviceGraphMemTrim.
 */
GPUMEM_API gpumem_status gpumem_graph_memory_trim(gpumem_device *device);

#ifdef __cplusplus
}
#endif

#endif
