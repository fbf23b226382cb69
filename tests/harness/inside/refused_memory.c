#include "refused_memory.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>

/* Each counts down; the request that makes it 0 is refused. */
static _Thread_local long of_thread, in_libraries;
static atomic_long of_threads;
static _Thread_local bool refused_here;
static atomic_bool refused;

static void begin(void) {
    refused_here = false;
    atomic_store(&refused, false);
}

void refuse_memory(long n) {
    begin();
    of_thread = n;
}

void refuse_memory_of_threads(long n) {
    begin();
    atomic_store(&of_threads, n);
}

void refuse_memory_in_libraries(long n) {
    begin();
    in_libraries = n;
}

bool memory_was_refused(void) {
    return refused_here || atomic_load(&refused);
}

bool end_refusal(void) {
    of_thread = in_libraries = 0;
    atomic_store(&of_threads, 0);
    return memory_was_refused();
}

static bool refuse(void) {
    errno = ENOMEM; /* the C library, which allocates in pthread_create, relies on it */
    refused_here = true;
    return true;
}

/* Of a request that the program's own code makes. */
static bool is_refused(void) {
    if (of_thread && --of_thread == 0)
        return refuse();
    if (atomic_load(&of_threads) > 0 && atomic_fetch_sub(&of_threads, 1) == 1) {
        atomic_store(&refused, true);
        return refuse();
    }
    return false;
}

#if CAN_REFUSE_LIBRARIES

/* The program's definitions come before the C library's, for all libraries; who calls is known by
 * where the call returns to. */
extern char __executable_start, etext;

static bool is_refused_to(const void *caller) {
    const char *at = caller;
    if (in_libraries)
        return --in_libraries == 0 && refuse();
    return at >= &__executable_start && at < &etext && is_refused();
}

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *at, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

#define SEEN    __attribute__((visibility("default")))
#define REFUSED is_refused_to(__builtin_return_address(0))

SEEN void *malloc(size_t size) {
    return REFUSED ? NULL : __libc_malloc(size);
}

SEEN void *calloc(size_t count, size_t size) {
    return REFUSED ? NULL : __libc_calloc(count, size);
}

SEEN void *realloc(void *at, size_t size) {
    return REFUSED ? NULL : __libc_realloc(at, size);
}

SEEN void *reallocarray(void *at, size_t count, size_t size) {
    size_t bytes;
    if (REFUSED || __builtin_mul_overflow(count, size, &bytes))
        return NULL;
    return __libc_realloc(at, bytes);
}

SEEN void *aligned_alloc(size_t alignment, size_t size) {
    return REFUSED ? NULL : __libc_memalign(alignment, size);
}

#else

/* By the linker's --wrap (cmake/GpumemTests.cmake). */
void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *at, size_t size);
void *__real_reallocarray(void *at, size_t count, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *at, size_t size);
void *__wrap_reallocarray(void *at, size_t count, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);

void *__wrap_malloc(size_t size) {
    return is_refused() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size) {
    return is_refused() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *at, size_t size) {
    return is_refused() ? NULL : __real_realloc(at, size);
}

void *__wrap_reallocarray(void *at, size_t count, size_t size) {
    return is_refused() ? NULL : __real_reallocarray(at, count, size);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size) {
    return is_refused() ? NULL : __real_aligned_alloc(alignment, size);
}

#endif
