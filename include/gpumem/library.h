/*
 * The library, the driver it opened, and that driver's devices.
 *
 * Every function here is thread-safe. A forked child cannot use what its parent opened: all calls
 * on such objects return FORKED and change nothing (docs/contexts.md).
 */
#ifndef GPUMEM_LIBRARY_H
#define GPUMEM_LIBRARY_H

#include <gpumem/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gpumem_driver; /* gpumem/driver.h */

/* Options of gpumem_open. */
typedef struct gpumem_open_options {
    size_t size;
    /* "nvidia", "softgpu" or a path with a slash. NULL: the value of the environment variable
     * GPUMEM_DRIVER (ignored in set-uid programs), else libcuda.so.1 by name. */
    const char *driver;
} gpumem_open_options;
#define GPUMEM_OPEN_OPTIONS(...) GPUMEM_OPTIONS(gpumem_open_options, __VA_ARGS__)

/*
 * Opens and initialises a driver. Nothing is process-wide: several drivers may be open at once. The
 * caller closes the result. NO_DRIVER: no driver could be opened; the message says how to choose
 * softgpu, or that the program is linked with -static (gpumem_driver_open). NO_DEVICE: the driver
 * has no device. DRIVER: initialisation failed, for example after a fork. Blocks while the driver
 * is loaded (seconds the first time, on some machines). Driver: cuInit, cuDriverGetVersion.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_open(const gpumem_open_options *options,
                                                       gpumem_library **library);

/*
 * Closes the library; NULL is allowed. BUSY while a device is open: the message says which, and
 * nothing is changed. The driver's shared library stays loaded, because drivers start threads.
 */
GPUMEM_API gpumem_status gpumem_close(gpumem_library *library);

/*
 * The same as soon as no device is open, now or with the last gpumem_device_close or
 * gpumem_device_close_later that takes effect. Never BUSY, never waits; NULL is allowed. From now
 * on `library` must not be used, except by what is above it. INVALID_ARGUMENT: closed before. While
 * it runs no other call on the library may be under way.
 */
GPUMEM_API gpumem_status gpumem_close_later(gpumem_library *library);

/* What gpumem_library_get_info fills in. */
typedef struct gpumem_library_info {
    size_t size;
    const char *driver_kind; /* "nvidia" or "softgpu" */
    const char *driver_path; /* the file that was loaded */
    int driver_version;      /* API version: 1000 * major + 10 * minor */
    bool softgpu;            /* software, found by its marker symbol, whatever the file's name */
    int device_count;        /* 1 or more; their ordinals are 0 to device_count - 1 */
} gpumem_library_info;

/* Describes the opened driver. Strings live until the library is closed. Does not block; no driver
 * call. */
GPUMEM_API gpumem_status gpumem_library_get_info(gpumem_library *library,
                                                 gpumem_library_info *info);

/* The opened driver, for use with gpumem/driver.h. Borrowed: lives until the library is closed. */
GPUMEM_API const struct gpumem_driver *gpumem_library_driver(const gpumem_library *library);

/*
 * Opens a device and retains its primary context, which CUDA's runtime shares. The context of the
 * calling thread is not changed. Opening a device again gives the same object, which must be closed
 * once for each open. NO_DEVICE: no such ordinal. Blocks while the context is created (about a
 * second the first time, on hardware). Driver: cuDeviceGet, cuDevicePrimaryCtxRetain,
 * cuDeviceGetAttribute.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_device_open(gpumem_library *library, int ordinal,
                                                              gpumem_device **device);

/* The same, by the driver's 16-byte UUID of the device. */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_device_open_uuid(gpumem_library *library,
                                                                   const unsigned char uuid[16],
                                                                   gpumem_device **device);

/*
 * Closes the device; NULL is allowed. At the last close: BUSY while resources or low-level objects
 * of the device are alive (the message names them; nothing is changed); otherwise waits, by events,
 * for frees that queued work still holds back, and releases the primary context.
 */
GPUMEM_API gpumem_status gpumem_device_close(gpumem_device *device);

/*
 * The same as soon as nobody has anything of the device: now, or with the last of its resources,
 * buffers, low-level objects and deferred frees, when the call that gives it back, or a later one,
 * ends the device (gpumem_resource_close_later). Undoes one open, as close does; opening the device
 * again before it has ended is allowed. Never BUSY, never waits; NULL is allowed. INVALID_ARGUMENT:
 * closed as often as opened. While it runs no other call on the device may be under way.
 */
GPUMEM_API gpumem_status gpumem_device_close_later(gpumem_device *device);

/* What gpumem_device_get_info fills in. */
typedef struct gpumem_device_info {
    size_t size;
    int ordinal;
    char name[128];
    unsigned char uuid[16]; /* zeros where the driver has none (GPUMEM_CAPABILITY_DEVICE_UUID) */
    char pci_bus_id[32];    /* "0000:3b:00.0"; "" where the driver has none */
    int compute_major;
    int compute_minor;
    int host_numa_node;             /* nearest to the device, or -1 */
    uint64_t memory_bytes;          /* all of the device's memory */
    size_t granularity_minimum;     /* of virtual memory, bytes; 0 where there is none */
    size_t granularity_recommended; /* likewise */
} gpumem_device_info;

/* Describes a device, which need not be open: no context is created. Driver: cuDeviceGetName,
 * cuDeviceGetUuid and similar. */
GPUMEM_API gpumem_status gpumem_device_get_info(gpumem_library *library, int ordinal,
                                                gpumem_device_info *info);

/* The Vulkan driver of a device, which maps the device's memory for the CPU: CUDA has no call for
 * that. */
typedef struct gpumem_vulkan_info {
    size_t size;
    bool available;            /* there is one, with memory that the CPU can map */
    char reason[1024];         /* "" when available; else each library tried and why it failed */
    char library[256];         /* the file that was opened; "", like the rest, if none was */
    char device_name[256];     /* the device's name in Vulkan */
    int memory_type;           /* index of the Vulkan memory type used, or -1 */
    bool coherent;             /* the CPU's stores need no flush */
    bool placed;               /* memory can be mapped at a chosen address */
    size_t atom;               /* bytes; flushes cover whole atoms */
    uint64_t heap_bytes;       /* size of the heap that the type belongs to */
    bool has_budget;           /* the driver reports the next two */
    uint64_t budget_bytes;     /* of the heap, usable by this process, as Vulkan estimates */
    uint64_t used_bytes;       /* of the heap, used by this process */
    uint32_t allocation_limit; /* most Vulkan allocations and imports alive at a time */
} gpumem_vulkan_info;

/*
 * Describes the Vulkan driver of a device without opening the device (no context is created). The
 * absence of one is a result, not an error. The Vulkan library is the one named by the environment
 * variable GPUMEM_VULKAN as a path with a slash ("off": none; the variable is ignored in set-uid
 * programs), else the loader libvulkan.so.1, else NVIDIA's driver without a loader. In a container,
 * NVIDIA's driver needs the capability `graphics`. FORKED: in a forked child of a process that has
 * used Vulkan. Blocks while a Vulkan device is created, if the library has none open: 0.1 s.
 * Driver: cuDeviceGetName, cuDeviceGetUuid and similar; Vulkan: vkCreateInstance, vkCreateDevice
 * and their counterparts.
 */
GPUMEM_API gpumem_status gpumem_device_get_vulkan_info(gpumem_library *library, int ordinal,
                                                       gpumem_vulkan_info *info);

/* Free and total bytes. Takes 6 to 12 us on an H200, and sometimes far more: not for hot paths.
 * Driver: cuMemGetInfo. */
GPUMEM_API gpumem_status gpumem_device_get_memory(gpumem_device *device, uint64_t *free_bytes,
                                                  uint64_t *total_bytes);

/* Whether `device` can reach memory of the device with this ordinal. Driver:
 * cuDeviceCanAccessPeer. */
GPUMEM_API gpumem_status gpumem_device_can_access_peer(gpumem_device *device, int ordinal,
                                                       bool *can_access);

/* Plain getters; no driver call, cannot fail. The context is borrowed. */
GPUMEM_API int gpumem_device_ordinal(const gpumem_device *device);
GPUMEM_API CUdevice gpumem_device_handle(const gpumem_device *device);
GPUMEM_API CUcontext gpumem_device_context(const gpumem_device *device);
GPUMEM_API gpumem_library *gpumem_device_library(const gpumem_device *device);

/*
 * Gives back what can be given back now: deferred frees whose streams have passed, and cached
 * memory that is not in use. With `wait` it also waits, by events, for the frees that are
 * still held back, those that a pool's driver has taken included (gpumem/stats.h says which are
 * known). Allocation does this by itself when memory runs out.
 */
GPUMEM_API gpumem_status gpumem_device_trim(gpumem_device *device, bool wait);

/* ---- What the platform can do, and why not --------------------------------------------------- */

/* Values are fixed once released; new ones are added before the count. */
typedef enum gpumem_capability {
    GPUMEM_CAPABILITY_UNIFIED_ADDRESSING = 0,
    GPUMEM_CAPABILITY_VIRTUAL_MEMORY = 1,
    GPUMEM_CAPABILITY_HANDLE_POSIX_FD = 2,
    GPUMEM_CAPABILITY_HANDLE_FABRIC = 3,
    GPUMEM_CAPABILITY_GPU_DIRECT_RDMA = 4,
    GPUMEM_CAPABILITY_GPU_DIRECT_RDMA_VIRTUAL = 5, /* with virtual memory */
    GPUMEM_CAPABILITY_DMA_BUF = 6,
    GPUMEM_CAPABILITY_COMPRESSION = 7,
    GPUMEM_CAPABILITY_DEVICE_POOL = 8,
    GPUMEM_CAPABILITY_DEVICE_POOL_POSIX_FD = 9,
    GPUMEM_CAPABILITY_HOST_POOL = 10,
    GPUMEM_CAPABILITY_HOST_POOL_POSIX_FD = 11,
    GPUMEM_CAPABILITY_HOST_NUMA_POOL = 12,
    GPUMEM_CAPABILITY_HOST_NUMA_POOL_POSIX_FD = 13,
    GPUMEM_CAPABILITY_HOST_VIRTUAL_MEMORY = 14,
    GPUMEM_CAPABILITY_HOST_NUMA_VIRTUAL_MEMORY = 15,
    GPUMEM_CAPABILITY_HOST_REGISTER = 16,
    GPUMEM_CAPABILITY_HOST_REGISTER_READ_ONLY = 17,
    GPUMEM_CAPABILITY_HOST_REGISTERED_SAME_POINTER = 18,
    GPUMEM_CAPABILITY_PAGEABLE_ACCESS = 19, /* the device can access memory that is not pinned */
    GPUMEM_CAPABILITY_MANAGED = 20,
    GPUMEM_CAPABILITY_MANAGED_CONCURRENT = 21,
    GPUMEM_CAPABILITY_STREAM_MEMORY_OPERATIONS_64 = 22,
    GPUMEM_CAPABILITY_HOST_NATIVE_ATOMICS = 23,
    GPUMEM_CAPABILITY_MULTICAST = 24,
    GPUMEM_CAPABILITY_EVENT_IPC = 25, /* gpumem_export_create_event */
    /* The device has a UUID. Without one, gpumem_device_open_uuid does not find it,
     * gpumem_device_info.uuid is zero, and sharing identifies the device by its PCI address, which
     * all instances of one GPU have in common. */
    GPUMEM_CAPABILITY_DEVICE_UUID = 26,
    GPUMEM_CAPABILITY_COUNT
} gpumem_capability;

/* "virtual_memory" and so on; "" for unknown values. */
GPUMEM_API const char *gpumem_capability_name(gpumem_capability capability);

/* What gpumem_device_get_capability fills in. */
typedef struct gpumem_capability_report {
    size_t size;
    bool supported;
    int value;        /* of the device attribute it is read from, or -1 if there is none */
    char reason[192]; /* "" when supported; else the attribute that is 0, the missing driver
                         function, or the probe that was refused and its error */
} gpumem_capability_report;

/*
 * Reports one capability. Some are probed rather than queried, because attributes promise what the
 * machine then refuses (fabric handles without IMEX, host pools with file descriptors). A probe
 * takes up to some milliseconds at the first call, is remembered, and cleans up after itself. "Not
 * supported" is a result, not an error. Driver: cuDeviceGetAttribute; for probes cuMemCreate,
 * cuMemPoolCreate and their counterparts.
 */
GPUMEM_API gpumem_status gpumem_device_get_capability(gpumem_device *device,
                                                      gpumem_capability capability,
                                                      gpumem_capability_report *report);

#ifdef __cplusplus
}
#endif

#endif
