/*
 * The caches of threads: found by a thread-local slot, flushed when the thread or the cache ends,
 * whichever is first.
 */
#include "cache/cache.h"

#include "base/error.h"
#include "base/fork.h"
#include "memory/core/current_context.h"
#include "memory/core/stream_waits.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

__thread struct gm_thread_cache *gm_thread_direct[GM_DIRECT];
static __thread struct gm_thread_cache *all __attribute__((tls_model("initial-exec")));
/* The thread has given up its caches. Its other destructors allocate and free without them, because
 * a cache made now would never be given up. */
static __thread int over __attribute__((tls_model("initial-exec")));

int gm_thread_asymmetric;

/* Held when a thread or a cache ends: shared state is freed by whichever ends last. */
static pthread_mutex_t ending = PTHREAD_MUTEX_INITIALIZER;
static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int key_made;

/* ---- Stopping -------------------------------------------------------------------------------- */

/* ThreadSanitizer does not know the kernel's barrier. */
#if defined(__SANITIZE_THREAD__)
#define CAN_BE_ASYMMETRIC 0
#else
#define CAN_BE_ASYMMETRIC 1
#endif

static int membarrier(int command) {
    return (int)syscall(SYS_membarrier, command, 0, 0);
}

/* If the kernel or a container refuses it, both sides use a fence. */
static void choose_barrier(void) {
    gm_thread_asymmetric =
        CAN_BE_ASYMMETRIC && membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
}

/* The kernel may be out of memory for it at the moment. */
static void barrier(void) {
    if (gm_thread_asymmetric)
        while (membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0 && errno == ENOMEM)
            sched_yield();
}

static void wait_for_fast_path(struct gm_thread_cache *thread) {
    for (int i = 0; atomic_load(&thread->busy); i++)
        if (i >= 64)
            sched_yield(); /* it may have lost the processor */
}

void gm_thread_stop(struct gm_thread_cache *thread) {
    atomic_store(&thread->stopped, 1);
    barrier();
    wait_for_fast_path(thread);
}

void gm_thread_resume(struct gm_thread_cache *thread) {
    atomic_store_explicit(&thread->stopped, 0, memory_order_release);
}

void gm_threads_stop(struct gm_cache *cache) {
    struct gm_thread_cache *thread;
    for (thread = cache->threads; thread; thread = thread->next_of_cache)
        atomic_store(&thread->stopped, 1);
    barrier();
    for (thread = cache->threads; thread; thread = thread->next_of_cache)
        wait_for_fast_path(thread);
}

void gm_threads_resume(struct gm_cache *cache) {
    for (struct gm_thread_cache *thread = cache->threads; thread; thread = thread->next_of_cache)
        gm_thread_resume(thread);
}

void gm_thread_wait(struct gm_thread_cache *thread) {
    /* The stopping thread holds the lock until it lets this one resume. */
    struct gm_cache *cache = thread->cache;
    pthread_mutex_lock(&cache->lock);
    pthread_mutex_unlock(&cache->lock);
}

void gm_thread_report(struct gm_cache *cache, struct gm_thread_cache *thread) {
    struct gm_meter *meter = &cache->resource->meter;
    if (thread->in_use >= 0)
        gm_meter_add(meter, GM_IN_USE, (uint64_t)thread->in_use);
    else
        gm_meter_subtract(meter, GM_IN_USE, (uint64_t)-thread->in_use);
    if (thread->allocations >= 0)
        gm_meter_add(meter, GM_ALLOCATIONS, (uint64_t)thread->allocations);
    else
        gm_meter_subtract(meter, GM_ALLOCATIONS, (uint64_t)-thread->allocations);
    gm_meter_add(meter, GM_ALLOCATIONS_TOTAL, thread->total);
    thread->in_use = thread->allocations = 0;
    thread->total = 0;
}

/* ---- Flushing -------------------------------------------------------------------------------- */

void gm_slot_flush(struct gm_thread_cache *thread, struct gm_slot *slot) {
    for (unsigned class = 0; slot->lane && class < GM_CLASS_COUNT; class ++) {
        struct gm_bin *bin = &slot->bins[class];
        thread->bytes -= gm_class_bytes(class) * ((size_t)bin->count + bin->spare_count);
        if (bin->head)
            gm_lane_give(slot->lane, bin->head, bin->count);
        if (bin->spare)
            gm_lane_give(slot->lane, bin->spare, bin->spare_count);
        *bin = (struct gm_bin){0};
    }
    slot->lane = NULL;
}

/* Takes everything from the thread, which is stopped; adds batches that must be marked to the
 * list. */
static void strip(struct gm_cache *cache, struct gm_thread_cache *thread, struct gm_block **list) {
    for (unsigned i = 0; i < GM_SLOTS; i++)
        gm_slot_flush(thread, &thread->slots[i]);
    for (unsigned i = 0; i < GM_SLOTS; i++) {
        struct gm_hold *hold = &thread->holds[i];
        if (hold->marked)
            gm_pending_add(cache, hold->marked);
        if (hold->filling) {
            hold->filling->next_parcel = *list;
            *list = hold->filling;
        }
        *hold = (struct gm_hold){0};
    }
    thread->bytes = 0;
    gm_thread_report(cache, thread);
}

static void mark_all(struct gm_cache *cache, struct gm_block *list, struct gm_late *late) {
    struct gm_block *next;
    int can_mark = list && gm_late_enter(late) == GPUMEM_OK;
    for (struct gm_block *batch = list; batch; batch = next) {
        next = batch->next_parcel;
        if (can_mark)
            gm_waits_mark(&batch->buffer);
        gm_pending_add(cache, batch);
    }
}

void gm_thread_flush(struct gm_cache *cache, struct gm_thread_cache *thread, struct gm_late *late) {
    struct gm_block *list = NULL;
    gm_thread_stop(thread);
    strip(cache, thread, &list);
    gm_thread_resume(thread);
    mark_all(cache, list, late);
}

void gm_threads_flush(struct gm_cache *cache) {
    struct gm_block *list = NULL;
    gm_threads_stop(cache);
    for (struct gm_thread_cache *thread = cache->threads; thread; thread = thread->next_of_cache)
        strip(cache, thread, &list);
    gm_threads_resume(cache);
    mark_all(cache, list, NULL);
}

/* ---- The end of a thread --------------------------------------------------------------------- */

static void unlink_thread(struct gm_cache *cache, struct gm_thread_cache *thread) {
    struct gm_thread_cache **at = &cache->threads;
    while (*at != thread)
        at = &(*at)->next_of_cache;
    *at = thread->next_of_cache;
}

/* The driver is called only if something must be marked: its per-thread state may be gone. */
static void leave(struct gm_thread_cache *thread) {
    struct gm_cache *cache = thread->cache;
    if (!cache)
        return; /* it ended before */
    struct gm_late late = {.device = cache->device};
    pthread_mutex_lock(&cache->lock);
    gm_thread_flush(cache, thread, &late);
    unlink_thread(cache, thread);
    pthread_mutex_unlock(&cache->lock);
    gm_late_leave(&late);
}

static void thread_ends(void *unused) {
    (void)unused;
    struct gm_error_record saved;
    gm_error_save(&saved);
    pthread_mutex_lock(&ending);
    struct gm_thread_cache *thread = all, *next;
    all = NULL;
    over = 1;
    for (; thread; thread = next) {
        next = thread->next_of_thread;
        gm_thread_direct[thread->serial % GM_DIRECT] = NULL;
        /* State inherited from the parent of a fork may be locked for ever. */
        if (thread->generation != gm_fork_generation())
            continue;
        leave(thread);
        free(thread);
    }
    pthread_mutex_unlock(&ending);
    gm_error_restore(&saved);
}

/* After a fork no other thread exists that could hold the lock. */
static void in_child(void) {
    pthread_mutex_init(&ending, NULL);
    choose_barrier();
}

static void install(void) {
    choose_barrier();
    key_made = pthread_key_create(&key, thread_ends) == 0;
    pthread_atfork(NULL, NULL, in_child);
}

/* ---- The end of a cache ---------------------------------------------------------------------- */

void gm_threads_end(struct gm_cache *cache) {
    pthread_mutex_lock(&ending);
    pthread_mutex_lock(&cache->lock);
    gm_threads_flush(cache);
    while (cache->threads) {
        struct gm_thread_cache *thread = cache->threads;
        cache->threads = thread->next_of_cache;
        thread->cache = NULL; /* its thread frees it */
    }
    pthread_mutex_unlock(&cache->lock);
    pthread_mutex_unlock(&ending);
}

/* ---- Finding --------------------------------------------------------------------------------- */

/* Frees the thread's parts of destroyed caches, so that they do not accumulate in long-lived
 * threads. */
static void drop_ended(void) {
    pthread_mutex_lock(&ending);
    for (struct gm_thread_cache **at = &all; *at;) {
        struct gm_thread_cache *thread = *at;
        if (thread->cache) {
            at = &thread->next_of_thread;
            continue;
        }
        *at = thread->next_of_thread;
        if (gm_thread_direct[thread->serial % GM_DIRECT] == thread)
            gm_thread_direct[thread->serial % GM_DIRECT] = NULL;
        free(thread);
    }
    pthread_mutex_unlock(&ending);
}

static struct gm_thread_cache *make(struct gm_cache *cache) {
    pthread_once(&once, install);
    if (over || !key_made || pthread_setspecific(key, gm_thread_direct) != 0)
        return NULL;
    drop_ended();
    struct gm_thread_cache *made = calloc(1, sizeof *made);
    if (!made)
        return NULL;
    made->generation = cache->resource->generation;
    made->serial = cache->serial;
    made->cache = cache;
    made->next_of_thread = all;
    all = made;
    pthread_mutex_lock(&cache->lock);
    made->next_of_cache = cache->threads;
    cache->threads = made;
    pthread_mutex_unlock(&cache->lock);
    return made;
}

struct gm_thread_cache *gm_thread_cache_known(const struct gm_cache *cache) {
    struct gm_thread_cache *thread = all;
    while (thread && thread->serial != cache->serial)
        thread = thread->next_of_thread;
    return thread;
}

struct gm_thread_cache *gm_thread_cache_find(struct gm_cache *cache) {
    struct gm_thread_cache *thread = gm_thread_cache_known(cache);
    if (!thread)
        thread = make(cache);
    if (thread)
        gm_thread_direct[cache->serial % GM_DIRECT] = thread;
    return thread;
}
