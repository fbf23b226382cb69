#include "softgpu/core/runtime_calls.h"

#include "softgpu/core/site.h"

#include <pthread.h>
#include <stdatomic.h>

/* libcudart.so.12 and .13, and one more of each. */
enum { MOST = 4 };
static struct attached {
    const softgpu_runtime *runtime;
    uintptr_t start, end; /* of its code */
} attached[MOST];
static atomic_uint count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

unsigned sg_runtime_watched;

void sg_runtime_watch(unsigned bit, bool on) {
    if (on)
        __atomic_fetch_or(&sg_runtime_watched, bit, __ATOMIC_RELAXED);
    else
        __atomic_fetch_and(&sg_runtime_watched, ~bit, __ATOMIC_RELAXED);
}

bool sg_runtime_add(const softgpu_runtime *runtime) {
    struct attached one = {.runtime = runtime};
    sg_site_range((const void *)(uintptr_t)runtime->call, &one.start, &one.end);
    pthread_mutex_lock(&lock);
    unsigned place = atomic_load(&count);
    bool room = place < MOST;
    if (room) {
        attached[place] = one;
        atomic_store_explicit(&count, place + 1, memory_order_release);
    }
    pthread_mutex_unlock(&lock);
    return room;
}

const char *sg_runtime_call(void) {
    const char *call = NULL;
    unsigned all = atomic_load_explicit(&count, memory_order_acquire);
    for (unsigned i = 0; i < all && !call; i++)
        call = attached[i].runtime->call();
    return call;
}

bool sg_runtime_has_code(const void *address) {
    unsigned all = atomic_load_explicit(&count, memory_order_acquire);
    for (unsigned i = 0; i < all; i++)
        if ((uintptr_t)address - attached[i].start < attached[i].end - attached[i].start)
            return true;
    return false;
}
