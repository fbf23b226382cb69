/* For tests of the memory library on any driver: it is opened beside the harness's driver. */
#ifndef CONFORMANCE_LIBRARY_H
#define CONFORMANCE_LIBRARY_H

#include "harness.h"

#include <gpumem/gpumem.h>

static gpumem_library *library;
static gpumem_device *device;

#include "objects.h"

static inline void close_at_end(void *opened) {
    OK(gpumem_device_close(opened));
    OK(gpumem_close(library));
}

/* The harness's driver, so that both see the same contexts. Closed when the test ends. */
static inline void open_library(void) {
    OK(gpumem_open(GPUMEM_OPTIONS(gpumem_open_options, .driver = soft ? "softgpu" : NULL),
                   &library));
    OK(gpumem_device_open(library, 0, &device));
    at_end(close_at_end, device);
    assert_ptr_equal(gpumem_device_context(device), ctx);
}

/* Before that. */
static inline void close_library(void) {
    forget(device);
    close_at_end(device);
}

static inline gpumem_stats device_stats(void) {
    gpumem_stats stats = {.size = sizeof stats};
    OK(gpumem_device_get_stats(device, &stats));
    return stats;
}

#endif
