#include "memory/core/siblings.h"

/* One lock for the list and what it says of each device; nothing else is locked under it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t left = PTHREAD_COND_INITIALIZER;
static gpumem_device *devices;
static uint64_t last_number;

void gm_siblings_join(gpumem_device *device) {
    pthread_mutex_lock(&lock);
    device->sibling = devices;
    device->sibling_number = ++last_number;
    devices = device;
    pthread_mutex_unlock(&lock);
}

void gm_siblings_leave(gpumem_device *device) {
    pthread_mutex_lock(&lock);
    for (gpumem_device **at = &devices; *at; at = &(*at)->sibling) {
        if (*at == device) {
            *at = device->sibling;
            break;
        }
    }
    while (device->sibling_visitors)
        pthread_cond_wait(&left, &lock);
    pthread_mutex_unlock(&lock);
}

/* Of the same driver, identified by a function that every driver has, and with the same primary
 * context. Entries that a forked child inherited from its parent do not count. */
static int is_sibling(const gpumem_device *device, const gpumem_device *other) {
    return other != device && other->generation == device->generation &&
           other->cu->cuInit == device->cu->cuInit && other->handle == device->handle &&
           other->context == device->context;
}

/* The next one in order of their numbers, kept from leaving: a pointer to the next would not
 * outlast the visit. */
static gpumem_device *keep_next(const gpumem_device *device, uint64_t below) {
    gpumem_device *found = NULL;
    pthread_mutex_lock(&lock);
    for (gpumem_device *d = devices; d; d = d->sibling)
        if (is_sibling(device, d) && d->sibling_number < below &&
            (!found || d->sibling_number > found->sibling_number))
            found = d;
    if (found)
        found->sibling_visitors++;
    pthread_mutex_unlock(&lock);
    return found;
}

static void let_go(gpumem_device *device) {
    pthread_mutex_lock(&lock);
    if (--device->sibling_visitors == 0)
        pthread_cond_broadcast(&left);
    pthread_mutex_unlock(&lock);
}

void gm_siblings_visit(gpumem_device *device, void (*visit)(gpumem_device *, void *), void *data) {
    uint64_t below = UINT64_MAX;
    gpumem_device *other;
    while ((other = keep_next(device, below))) {
        below = other->sibling_number;
        visit(other, data);
        let_go(other);
    }
}
