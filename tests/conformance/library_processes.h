/* For tests of the memory library in several processes, each of which opens it for itself: beside
 * the harness, whose context a child of it does not have. */
#ifndef CONFORMANCE_LIBRARY_PROCESSES_H
#define CONFORMANCE_LIBRARY_PROCESSES_H

#include "harness.h"

#include <gpumem/gpumem.h>

static gpumem_library *library;
static gpumem_device *device;

#include "objects.h"

static inline void close_at_end(void *opened) {
    OK(gpumem_device_close(opened));
    OK(gpumem_close(library));
}

/* On the driver that the harness has chosen. Closed when the test ends; a child closes it. */
static inline void open_library(void) {
    OK(gpumem_open(GPUMEM_OPEN_OPTIONS(.driver = driver_info(driver).path), &library));
    OK(gpumem_device_open(library, 0, &device));
    at_end(close_at_end, device);
}

static inline void close_library(void) {
    forget(device);
    close_at_end(device);
}

/* `reason` says why not. */
static inline bool has(gpumem_capability capability, char reason[192]) {
    gpumem_capability_report report = {.size = sizeof report};
    OK(gpumem_device_get_capability(device, capability, &report));
    memcpy(reason, report.reason, sizeof report.reason);
    return report.supported;
}

#endif
