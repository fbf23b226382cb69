/*
 * Makes allocations fail one after the other: malloc, calloc, realloc and aligned_alloc of a
 * program that is linked with --wrap for each of them (gpumem_test_refuses in
 * tests/CMakeLists.txt). Those of the thread that asked for it: what others allocate meanwhile
 * would make the count another one each time. For one file of the program.
 */
#ifndef REFUSED_ALLOCATIONS_H
#define REFUSED_ALLOCATIONS_H

#include <stdbool.h>
#include <stddef.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *at, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *at, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);

/* How many succeed before one that does not, and that one; 0: all succeed. */
static _Thread_local size_t allocations_left;
static _Thread_local bool allocation_refused;

static bool refuse_allocation(void) {
    if (!allocations_left || --allocations_left)
        return false;
    return allocation_refused = true;
}

void *__wrap_malloc(size_t size) {
    return refuse_allocation() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size) {
    return refuse_allocation() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *at, size_t size) {
    return refuse_allocation() ? NULL : __real_realloc(at, size);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size) {
    return refuse_allocation() ? NULL : __real_aligned_alloc(alignment, size);
}

#endif
