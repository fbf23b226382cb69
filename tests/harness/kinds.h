/* The kinds of resources of kinds.def as numbers, names and a function. Header only. */
#ifndef TESTS_KINDS_H
#define TESTS_KINDS_H

#include "sizes.h"

#include <gpumem/gpumem.h>

enum wrapper {
#define WRAPPER(name, ...) WRAPPER_##name,
#include "kinds.def"
    WRAPPERS
};

static const char *const wrapper_names[] = {
#define WRAPPER(name, ...) #name,
#include "kinds.def"
};

static inline void kinds_log_nothing(void *user, gpumem_log_level level, const char *text) {
}

static inline int kinds_write_nowhere(void *user, const char *text, size_t bytes) {
    return text[bytes - 1] == '\n' ? 0 : 1;
}

static unsigned kinds_asked; /* how often kinds_give_up was */

static inline gpumem_failure_answer kinds_give_up(void *user,
                                                  const gpumem_allocation_failure *failure) {
    __atomic_fetch_add(&kinds_asked, 1, __ATOMIC_RELAXED);
    return GPUMEM_FAILURE_GIVE_UP;
}

/* `spare` is where a fallback goes when `upstream` has no more. */
static inline gpumem_status make_wrapper(enum wrapper which, gpumem_resource *upstream,
                                         gpumem_resource *spare, gpumem_resource **made) {
    switch (which) {
#define WRAPPER(name, ...)                                                                         \
    case WRAPPER_##name:                                                                           \
        return gpumem_##name##_resource_create(upstream, __VA_ARGS__, made);
#include "kinds.def"
    default:
        return GPUMEM_ERROR_INVALID_ARGUMENT;
    }
}

#endif
