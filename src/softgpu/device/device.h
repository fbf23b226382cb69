/* Devices: what the profile says of them. Owned by device/; constant after cuInit except where
 * context/ is named. */
#ifndef SG_DEVICE_DEVICE_H
#define SG_DEVICE_DEVICE_H

#include "softgpu/core/state.h"

#define SG_DRIVER_VERSION  13000 /* what functions.def describes */
#define SG_ATTRIBUTE_LIMIT 256
/* Of API 13.3, where gpumem/cuda_api.h has 13.0: mmap takes the descriptors of
 * cuMemGetHandleForAddressRange. Only a profile that lists it has it. */
#define SG_ATTRIBUTE_DMA_BUF_MMAP_SUPPORTED 152

/* What connects two devices. */
struct sg_links {
    bool peer_access;
    int performance_rank; /* 0 is the best */
    bool native_atomics, partial_atomics, array_access;
};

/* What no image of PTX says, because a compiler would decide it, and what no attribute tells. */
struct sg_kernels {
    unsigned ptx_registers; /* a thread's */
    unsigned groups[32];    /* multiprocessors that a cluster may be spread over */
    unsigned group_count;
};

/* How a context begins. A limit that the device does not have is refused with UNSUPPORTED_LIMIT. */
struct sg_context_defaults {
    size_t limits[CU_LIMIT_MAX];
    bool has_limit[CU_LIMIT_MAX];
};

struct sg_device {
    int ordinal;
    char name[256];
    CUuuid uuid;
    char pci[16];          /* "0000:00:06.0", distinct per device */
    uint64_t total_memory; /* what cuDeviceTotalMem answers: `limit`, so that a program that takes a
                              share of the total gets it, unless control groups have less left */
    uint64_t limit;        /* physical bytes that may be allocated */
    int attributes[SG_ATTRIBUTE_LIMIT];
    bool has_attribute[SG_ATTRIBUTE_LIMIT];
    struct sg_links links[SG_MAX_DEVICES]; /* to the device of that ordinal */
    bool multicast, fabric;                /* with other devices: objects; sharing by fabric */
    bool no_uuid, no_pool_descriptors; /* the driver has none to give, whatever attributes say */
    struct sg_kernels kernels;
    struct sg_context_defaults context;

    /* context/: */
    struct sg_context *primary; /* NULL until first retained; then the same object for ever */
    unsigned primary_flags;
    unsigned first_versions, later_versions; /* live contexts of cuCtxCreate, and all others */
    CUresult fault; /* the first fault of any of its contexts: new ones answer it too */
};

/* cuInit's work for this chapter: reads the profile, builds the visible devices. SYSTEM_NOT_READY
 * when the profile cannot be read (the log says why), NO_DEVICE when none is visible. May be called
 * again after a failure. */
CUresult sg_devices_init(void);
int sg_device_count(void);
/* What cuDriverGetVersion answers: the profile's, also before cuInit. Thread-safe, without the
 * lock. */
int sg_driver_version(void);
/* How many bytes of host memory can be pinned beside the devices' own. */
uint64_t sg_devices_pinned_limit(void);
/* NULL when there is no such ordinal. */
struct sg_device *sg_device(int ordinal);
/* May work of `device` reach memory of `owner` (which may be the same)? */
bool sg_device_reaches(int device, int owner);

#endif
