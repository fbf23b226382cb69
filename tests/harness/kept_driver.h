/*
 * Keeps Mesa's Vulkan driver for the CPU in the process. A Vulkan loader unloads drivers when an
 * instance ends; AddressSanitizer then reports what its globals point to (a few hundred bytes) as a
 * leak, in a module that no longer has a name and so cannot be suppressed.
 */
#ifndef TESTS_KEPT_DRIVER_H
#define TESTS_KEPT_DRIVER_H

#include <dlfcn.h>

/* If it is not installed there is nothing to keep. */
static inline void keep_lavapipe_loaded(void) {
    (void)dlopen("libvulkan_lvp.so", RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
}

#endif
