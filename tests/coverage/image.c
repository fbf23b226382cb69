/* Linked into each image of a build with counters. An image has its own, and tells
 * tests/coverage/exit.c how they are written, where that is loaded. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

void __gcov_dump(void);

__attribute__((constructor)) static void tell(void) {
    void *found = dlsym(RTLD_DEFAULT, "coverage_image_loaded");
    if (found != NULL) {
        void (*loaded)(void (*write)(void));
        *(void **)&loaded = found;
        loaded(__gcov_dump);
    }
}
