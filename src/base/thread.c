#include "base/thread.h"

#include "base/cancel.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>

struct start {
    void *(*run)(void *);
    void *argument;
};

static void *begin(void *argument) {
    struct start start = *(struct start *)argument;
    free(argument);
    (void)gm_cancel_disable();
    return start.run(start.argument);
}

static int set_attributes(pthread_attr_t *attributes, const pthread_t *thread, size_t stack) {
    int error = 0;
    if (!thread)
        error = pthread_attr_setdetachstate(attributes, PTHREAD_CREATE_DETACHED);
    if (!error && stack)
        error = pthread_attr_setstacksize(attributes, stack);
    return error;
}

/* A thread inherits the signal mask of its creator. */
static int create(pthread_t *thread, const pthread_attr_t *attributes, struct start *start) {
    sigset_t all, before;
    sigfillset(&all);
    int error = pthread_sigmask(SIG_SETMASK, &all, &before);
    if (error)
        return error;
    error = pthread_create(thread, attributes, begin, start);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

int gm_thread_start(pthread_t *thread, size_t stack, void *(*run)(void *), void *argument) {
    pthread_attr_t attributes;
    pthread_t unused;
    struct start *start = malloc(sizeof *start);
    if (!start)
        return ENOMEM;
    *start = (struct start){run, argument};
    int error = pthread_attr_init(&attributes);
    if (!error) {
        error = set_attributes(&attributes, thread, stack);
        if (!error)
            error = create(thread ? thread : &unused, &attributes, start);
        pthread_attr_destroy(&attributes);
    }
    if (error)
        free(start);
    return error;
}
