/* Devices: what the profile says of them. Owned by device/; constant after cuInit. */
#ifndef SG_DEVICE_DEVICE_H
#define SG_DEVICE_DEVICE_H

#include "softgpu/core/state.h"

#define SG_ATTRIBUTE_LIMIT 256

struct sg_device {
    int ordinal;
    char name[256];
    CUuuid uuid;
    char pci[16];            /* "0000:00:06.0", made distinct per device */
    uint64_t total_memory;   /* what cuDeviceTotalMem answers */
    uint64_t limit;          /* physical bytes that may be allocated: <= total_memory */
    int attributes[SG_ATTRIBUTE_LIMIT];
    bool has_attribute[SG_ATTRIBUTE_LIMIT];
    struct sg_context *primary; /* context/; NULL until first retained */
    unsigned primary_flags;
};

/* cuInit's work for this chapter: reads the profile, builds the visible devices. */
CUresult sg_devices_init(void);
int sg_device_count(void);
/* NULL when there is no such ordinal. */
struct sg_device *sg_device(int ordinal);

#endif
