/* For tests of the memory library in several processes, each of which opens it for itself: beside
 * the harness, whose context a child of it does not have. */
#ifndef CONFORMANCE_LIBRARY_PROCESSES_H
#define CONFORMANCE_LIBRARY_PROCESSES_H

#include "harness.h"

#include <gpumem/gpumem.h>

static gpumem_library *library;
static gpumem_device *device;

static inline void check_status(gpumem_status got, gpumem_status wanted, const char *call,
                                const char *file, int line) {
    if (got == wanted)
        return;
    print_error("%s\n  answered %s, wanted %s: %s\n", call, gpumem_status_name(got),
                gpumem_status_name(wanted), gpumem_last_error()->message);
    _fail(file, line);
}
#define WORKS(call)           check_status((call), GPUMEM_OK, #call, __FILE__, __LINE__)
#define REFUSES(status, call) check_status((call), GPUMEM_ERROR_##status, #call, __FILE__, __LINE__)

static inline void close_at_end(void *opened) {
    WORKS(gpumem_device_close(opened));
    WORKS(gpumem_close(library));
}

/* On the driver that the harness has chosen. Closed when the test ends; a child closes it. */
static inline void open_library(void) {
    WORKS(gpumem_open(GPUMEM_OPEN_OPTIONS(.driver = gpumem_driver_path(driver)), &library));
    WORKS(gpumem_device_open(library, 0, &device));
    at_end(close_at_end, device);
}

static inline void close_library(void) {
    forget(device);
    close_at_end(device);
}

/* `reason` says why not. */
static inline bool has(gpumem_capability capability, char reason[192]) {
    gpumem_capability_report report = {.size = sizeof report};
    WORKS(gpumem_device_get_capability(device, capability, &report));
    memcpy(reason, report.reason, sizeof report.reason);
    return report.supported;
}

#endif
