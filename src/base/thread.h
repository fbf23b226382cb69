/* Threads of the library and of softgpu: all are started here. */
#ifndef GM_BASE_THREAD_H
#define GM_BASE_THREAD_H

#include <pthread.h>
#include <stddef.h>

/*
 * Starts `run(argument)` in a thread that does not disturb the program: it blocks all signals, so
 * that the program's handlers run on the program's threads, and cannot be cancelled by code that
 * learns of it in a callback. `thread` NULL: the thread is detached. A stack of 0 bytes is the
 * default size. Returns 0 or an errno.
 */
int gm_thread_start(pthread_t *thread, size_t stack, void *(*run)(void *), void *argument);

#endif
