/* Devices, as the profile describes them. Owned by device/; constant after cuInit except where
 * context/ is named. */
#ifndef SG_DEVICE_DEVICE_H
#define SG_DEVICE_DEVICE_H

#include "softgpu/core/state.h"

#define SG_ATTRIBUTE_LIMIT 256
/* From API 13.3 (gpumem/cuda_api.h has 13.0): mmap accepts the descriptors of
 * cuMemGetHandleForAddressRange. Present only if the profile lists it. */
#define SG_ATTRIBUTE_DMA_BUF_MMAP_SUPPORTED 152

/* What connects two devices. */
struct sg_links {
    bool peer_access;
    int performance_rank; /* 0 is the best */
    bool native_atomics, partial_atomics, array_access;
};

/* What no PTX image says, because a compiler would decide it, and no attribute reports. */
struct sg_kernels {
    unsigned ptx_registers; /* per thread */
    unsigned groups[32];    /* multiprocessors that a cluster may span */
    unsigned group_count;
};

/* Initial values of a context. A limit that the device lacks is refused with UNSUPPORTED_LIMIT. */
struct sg_context_defaults {
    size_t limits[CU_LIMIT_MAX];
    bool has_limit[CU_LIMIT_MAX];
};

struct sg_device {
    int ordinal;
    char name[256];
    CUuuid uuid;
    char pci[16];          /* "0000:00:06.0", distinct per device */
    uint64_t total_memory; /* what cuDeviceTotalMem returns: `limit`, so that a program that takes a
                              share of the total gets it, unless control groups have less left */
    uint64_t limit;        /* physical bytes that may be allocated */
    int attributes[SG_ATTRIBUTE_LIMIT];
    bool has_attribute[SG_ATTRIBUTE_LIMIT];
    struct sg_links links[SG_MAX_DEVICES]; /* to the device of that ordinal */
    bool multicast, fabric;                /* multicast objects with others; sharing by fabric */
    bool no_uuid, no_pool_descriptors;     /* the driver provides none, whatever attributes say */
    struct sg_kernels kernels;
    struct sg_context_defaults context;

    /* context/: */
    struct sg_context *primary; /* NULL until first retained; then always the same object */
    unsigned primary_flags;
    unsigned first_versions, later_versions; /* live contexts of cuCtxCreate, and all others */
    CUresult fault; /* the first fault of any of its contexts: new ones return it too */
};

/* cuInit's work for this chapter: reads the profile and creates the visible devices.
 * SYSTEM_NOT_READY if the profile cannot be read (the log says why), NO_DEVICE if none is visible.
 * May be called again after a failure. */
CUresult sg_devices_init(void);
int sg_device_count(void);
/* What cuDriverGetVersion returns: the profile's version, even before cuInit. Thread-safe, without
 * the lock. */
int sg_driver_version(void);
/* How many bytes of host memory can be pinned in addition to the devices' memory. */
uint64_t sg_devices_pinned_limit(void);
/* NULL when there is no such ordinal. */
struct sg_device *sg_device(int ordinal);
/* May work of `device` reach memory of `owner` (which may be the same)? */
bool sg_device_reaches(int device, int owner);

#endif
