/* What driver a test has loaded. */
#ifndef TESTS_DRIVER_INFO_H
#define TESTS_DRIVER_INFO_H

#include <gpumem/driver.h>

static inline gpumem_driver_info driver_info(const gpumem_driver *of) {
    gpumem_driver_info info = {.size = sizeof info};
    (void)gpumem_driver_get_info(of, &info); /* cannot fail with this size */
    return info;
}

#endif
