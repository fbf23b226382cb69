/*
 * What tests of sharing share: another process, and a resource whose memory comes in chunks of 2
 * MiB and grows by no more than is asked for. Header only, as other_process.h is.
 */
#ifndef UNIT_SHARE_TEST_H
#define UNIT_SHARE_TEST_H

#include "other_process.h"

static gpumem_resource *resource;

static inline int setup(void **state) {
    if (open_device(state) != 0)
        return -1;
    return gpumem_virtual_resource_create(
               device, GPUMEM_VIRTUAL_OPTIONS(.maximum_chunk_bytes = 2 * MIB, .exact_growth = 1),
               &resource) == GPUMEM_OK
               ? 0
               : -1;
}

static inline int teardown(void **state) {
    if (gpumem_resource_destroy(resource) != GPUMEM_OK) {
        print_error("%s\n", gpumem_last_error()->message);
        return -1;
    }
    return close_device(state);
}

#endif
