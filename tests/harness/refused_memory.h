/*
 * Refuses host memory: malloc, calloc, realloc, reallocarray and aligned_alloc answer NULL, once.
 * For programs that have the library or softgpu in them (tests/unit, tests/fault); what a program
 * opens, or links as a shared library, is not refused anything unless a function says so.
 */
#ifndef TESTS_REFUSED_MEMORY_H
#define TESTS_REFUSED_MEMORY_H

#include <stdbool.h>

/* A sanitizer has an allocator of its own, which only the program's own requests can be kept
 * from. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CAN_REFUSE_LIBRARIES 0
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define CAN_REFUSE_LIBRARIES 0
#endif
#endif
#ifndef CAN_REFUSE_LIBRARIES
#define CAN_REFUSE_LIBRARIES 1
#endif

/* The n-th request from now on, of this thread; 0: none. What others allocate meanwhile would make
 * the count another one each time. */
void refuse_memory(long n);
/* The same, of all threads together. */
void refuse_memory_of_threads(long n);
/* Of this thread, in whatever library: needs CAN_REFUSE_LIBRARIES. */
void refuse_memory_in_libraries(long n);

/* Whether one has been refused since the last of the functions above. */
bool memory_was_refused(void);
/* Refuses nothing any more; whether one was refused. */
bool end_refusal(void);

#endif
