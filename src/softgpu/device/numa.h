/* Locations for which managed memory can be advised or prefetched. */
#ifndef SG_DEVICE_NUMA_H
#define SG_DEVICE_NUMA_H

#include "softgpu/core/state.h"

/* A node of the machine; 0 exists even on a kernel without NUMA. */
bool sg_numa_node_exists(int node);

/* Converts what the first versions of the functions take: an ordinal or CU_DEVICE_CPU. Otherwise
 * INVALID_DEVICE. */
CUresult sg_location_of_device(CUdevice device, CUmemLocation *location);
/* Whether the type exists at all: checked before anything else. */
bool sg_location_type_known(const CUmemLocation *location);
/* INVALID_DEVICE, or INVALID_VALUE for a node that does not exist or another type. The id of HOST
 * and HOST_NUMA_CURRENT is ignored. */
CUresult sg_location_check(const CUmemLocation *location);

/* "device 0", "host", "node 0"; "" for none. */
const char *sg_location_text(const CUmemLocation *location, char text[32]);

#endif
