/* Names of the public enumerations. */
#include <gpumem/gpumem.h>

#define NAME_OF(table, value)                                                                      \
    ((unsigned)(value) < sizeof(table) / sizeof(table)[0] && (table)[value] ? (table)[value] : "")

const char *gpumem_location_name(gpumem_location location) {
    static const char *const names[] = {
        [GPUMEM_LOCATION_DEVICE] = "device",
        [GPUMEM_LOCATION_HOST] = "host",
        [GPUMEM_LOCATION_HOST_NUMA] = "host_numa",
        [GPUMEM_LOCATION_HOST_NUMA_CURRENT] = "host_numa_current",
    };
    return NAME_OF(names, location);
}

const char *gpumem_access_name(gpumem_access access) {
    static const char *const names[] = {
        [GPUMEM_ACCESS_READ_WRITE] = "read_write",
        [GPUMEM_ACCESS_READ] = "read",
        [GPUMEM_ACCESS_NONE] = "none",
    };
    return NAME_OF(names, access);
}

const char *gpumem_handle_type_name(gpumem_handle_type type) {
    static const char *const names[] = {
        [GPUMEM_HANDLE_POSIX_FD] = "posix_fd",
        [GPUMEM_HANDLE_NONE] = "none",
        [GPUMEM_HANDLE_FABRIC] = "fabric",
    };
    return NAME_OF(names, type);
}
