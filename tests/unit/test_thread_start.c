/* Threads of the library's own: what a program may notice of them. */
#include "base/thread.h"
#include "test.h"

#include <semaphore.h>
#include <signal.h>

struct seen {
    sigset_t blocked;
    int cancel;
    sem_t done;
};

static void *look(void *argument) {
    struct seen *seen = argument;
    pthread_sigmask(SIG_SETMASK, NULL, &seen->blocked);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &seen->cancel);
    sem_post(&seen->done);
    return seen;
}

/* sigfillset leaves out what the C library keeps for itself. */
static bool is_full(const sigset_t *set) {
    sigset_t all;
    sigfillset(&all);
    for (int number = 1; number <= SIGRTMAX; number++)
        if (number != SIGKILL && number != SIGSTOP && sigismember(&all, number) == 1 &&
            sigismember(set, number) != 1)
            return false;
    return true;
}

TEST(a_started_thread_blocks_signals_and_cancellation) {
    struct seen seen;
    pthread_t thread;
    void *result;
    sem_init(&seen.done, 0, 0);
    assert_int_equal(gm_thread_start(&thread, 0, look, &seen), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_ptr_equal(result, &seen);
    assert_true(is_full(&seen.blocked));
    assert_int_equal(seen.cancel, PTHREAD_CANCEL_DISABLE);
    sem_destroy(&seen.done);
}

TEST(a_started_thread_needs_no_join) {
    struct seen seen;
    sem_init(&seen.done, 0, 0);
    assert_int_equal(gm_thread_start(NULL, (size_t)256 << 10, look, &seen), 0);
    assert_int_equal(sem_wait(&seen.done), 0);
    assert_true(is_full(&seen.blocked));
    sem_destroy(&seen.done);
}

TEST(the_callers_signal_mask_is_unchanged) {
    struct seen seen;
    pthread_t thread;
    sigset_t one, now;
    sigemptyset(&one);
    sigaddset(&one, SIGUSR2);
    sem_init(&seen.done, 0, 0);
    assert_int_equal(pthread_sigmask(SIG_SETMASK, &one, NULL), 0);
    assert_int_equal(gm_thread_start(&thread, 0, look, &seen), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(pthread_sigmask(SIG_SETMASK, NULL, &now), 0);
    assert_int_equal(sigismember(&now, SIGUSR2), 1);
    assert_int_equal(sigismember(&now, SIGUSR1), 0);
    sem_destroy(&seen.done);
}

TEST(a_stack_that_is_too_small_is_refused) {
    struct seen seen;
    sigset_t now;
    assert_int_not_equal(gm_thread_start(NULL, 1, look, &seen), 0);
    assert_int_equal(pthread_sigmask(SIG_SETMASK, NULL, &now), 0);
    assert_int_equal(sigismember(&now, SIGUSR1), 0);
}
