/*
 * Mesa's Vulkan driver on the CPU, kept in the process. A Vulkan loader unloads drivers when an
 * instance ends; what the globals of this one point to (a few hundred bytes) is then a leak to
 * AddressSanitizer, in a module that has no name any more and so cannot be suppressed.
 */
#ifndef TESTS_KEPT_DRIVER_H
#define TESTS_KEPT_DRIVER_H

#include <dlfcn.h>

/* Where it is not installed there is nothing to keep. */
static inline void keep_lavapipe_loaded(void) {
    (void)dlopen("libvulkan_lvp.so", RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
}

#endif
