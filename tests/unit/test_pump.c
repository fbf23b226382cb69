/* The pump's threads: each chunk once, the first error, cancelling, and too few threads. */
#include "library_test.h"
#include "load/pump.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>

/* ---- A pthread_create that can refuse -------------------------------------------------------- */

static int threads_left = -1; /* before it refuses; negative: it never does */

typedef int (*create_fn)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

/* Instead of libc's, for the library's objects that are linked into this program. */
int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                   void *argument) {
    static create_fn real;
    if (!real) {
        void *symbol = dlsym(RTLD_NEXT, "pthread_create");
        memcpy(&real, &symbol, sizeof real);
    }
    if (threads_left == 0)
        return EAGAIN;
    if (threads_left > 0)
        threads_left--;
    return real(thread, attributes, run, argument);
}

/* ---- A pump in plain memory ------------------------------------------------------------------ */

#define CHUNKS 100

struct work {
    atomic_uint seen[CHUNKS + 1];
    atomic_uint calls;
    uint64_t total;
    size_t chunk;
    uint64_t fail_at; /* index; CHUNKS: none */
    int progress_result;
    unsigned progress_calls;
    uint64_t last_done;
    atomic_bool takes_signals;
};

static gpumem_status step(void *user, struct gm_pump_slot *slot, uint64_t index, uint64_t offset,
                          size_t bytes) {
    struct work *work = user;
    sigset_t blocked;
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    if (!sigismember(&blocked, SIGINT) || !sigismember(&blocked, SIGALRM))
        work->takes_signals = true;
    assert_true(index < CHUNKS && offset == index * work->chunk);
    assert_true(bytes == (index == CHUNKS - 1 ? work->total - offset : work->chunk));
    memset(slot->memory, (int)index, bytes); /* two readers on one slot: a race for TSan to see */
    work->seen[index]++;
    work->calls++;
    if (index == work->fail_at)
        return gm_fail(GPUMEM_ERROR_DATA, "chunk %d is bad", (int)index);
    return GPUMEM_OK;
}

static int progress(void *user, const gpumem_load_progress *p) {
    struct work *work = user;
    work->progress_calls++;
    work->last_done = p->bytes_done;
    assert_true(p->bytes_total == work->total && p->seconds >= 0);
    return work->progress_result;
}

static gpumem_status run(struct work *work, unsigned threads, unsigned *ran) {
    struct gm_pump pump = {.step = step, .user = work};
    work->chunk = 64 * KIB;
    work->total = (uint64_t)work->chunk * (CHUNKS - 1) + 5;
    OK(gm_pump_configure(&pump,
                         GPUMEM_LOAD_OPTIONS(.chunk_bytes = 64 * KIB, .threads = threads,
                                             .progress = progress, .user = work),
                         work->total, 0));
    OK(gm_pump_prepare(&pump));
    gpumem_status status = gm_pump_run(&pump);
    *ran = pump.threads;
    gm_pump_finish(&pump);
    return status;
}

static void check_each_once(const struct work *work) {
    for (int i = 0; i < CHUNKS; i++)
        assert_int_equal(work->seen[i], 1);
    assert_true(work->last_done == work->total);
}

TEST(each_chunk_is_processed_once) {
    for (unsigned threads = 1; threads <= GM_PUMP_MAX_THREADS; threads += 5) {
        struct work work = {.fail_at = CHUNKS};
        unsigned ran = 0;
        OK(run(&work, threads, &ran));
        assert_int_equal(ran, threads);
        check_each_once(&work);
        assert_true(work.progress_calls >= 1);
        assert_false(work.takes_signals);
    }
}

TEST(the_first_error_stops_all) {
    struct work work = {.fail_at = 7};
    unsigned ran = 0;
    FAILS(DATA, run(&work, 4, &ran));
    SAYS("chunk 7 is bad");
    assert_int_equal(work.seen[7], 1);
}

TEST(a_cancelled_pump_returns_an_error) {
    struct work work = {.fail_at = CHUNKS, .progress_result = 1};
    unsigned ran = 0;
    FAILS(CANCELLED, run(&work, 2, &ran));
    SAYS("stopped after");
}

TEST(a_pump_works_with_fewer_threads_than_requested) {
    for (int left = 1; left <= 3; left++) {
        struct work work = {.fail_at = CHUNKS};
        unsigned ran = 0;
        threads_left = left;
        gpumem_status status = run(&work, 8, &ran);
        threads_left = -1;
        OK(status);
        assert_int_equal(ran, left);
        check_each_once(&work);
    }
}

TEST(a_pump_without_any_thread_fails) {
    struct work work = {.fail_at = CHUNKS};
    unsigned ran = 77;
    threads_left = 0;
    gpumem_status status = run(&work, 8, &ran);
    threads_left = -1;
    FAILS(SYSTEM, status);
    assert_int_equal(gpumem_last_error()->system_code, EAGAIN);
    SAYS("cannot start a reader");
    assert_int_equal(work.calls, 0);
    assert_int_equal(ran, 0);
}

TEST(the_callers_signal_mask_is_unchanged) {
    sigset_t before, after;
    struct work work = {.fail_at = CHUNKS};
    unsigned ran;
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    OK(run(&work, 2, &ran));
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    for (int s = 1; s < SIGRTMIN; s++)
        assert_int_equal(sigismember(&before, s), sigismember(&after, s));
}
