/*
 * Makes allocations fail: malloc, calloc and realloc of the program that includes this, in one of
 * its files. Only requests of libgpumem, linked into the program, are refused. Under a sanitizer,
 * which has its own allocator, nothing can be refused.
 */
#ifndef REFUSED_HOST_MEMORY_H
#define REFUSED_HOST_MEMORY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CAN_REFUSE 0
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define CAN_REFUSE 0
#endif
#endif
#ifndef CAN_REFUSE
#define CAN_REFUSE 1
#endif

#if CAN_REFUSE

extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *old, size_t bytes);
extern char __executable_start, etext;

static atomic_int armed; /* counts down; refused at 1 */

static bool is_refused(const void *caller) {
    const char *at = caller;
    if (at < &__executable_start || at >= &etext || !atomic_load(&armed))
        return false;
    return atomic_fetch_sub(&armed, 1) == 1;
}

void *malloc(size_t bytes) {
    return is_refused(__builtin_return_address(0)) ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes) {
    return is_refused(__builtin_return_address(0)) ? NULL : __libc_calloc(count, bytes);
}

void *realloc(void *old, size_t bytes) {
    return is_refused(__builtin_return_address(0)) ? NULL : __libc_realloc(old, bytes);
}

#endif

#endif
