#include "mapped/incoherent.h"

#include <pthread.h>
#include <stdatomic.h>

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static struct gm_incoherent *entries;
static atomic_size_t count;

void gm_incoherent_add(struct gm_incoherent *entry) {
    pthread_rwlock_wrlock(&lock);
    entry->next = entries;
    entries = entry;
    atomic_fetch_add(&count, 1);
    pthread_rwlock_unlock(&lock);
}

void gm_incoherent_remove(struct gm_incoherent *entry) {
    pthread_rwlock_wrlock(&lock);
    for (struct gm_incoherent **at = &entries; *at; at = &(*at)->next) {
        if (*at == entry) {
            *at = entry->next;
            atomic_fetch_sub(&count, 1);
            break;
        }
    }
    pthread_rwlock_unlock(&lock);
}

/* The lock must be held. Allocations do not span entries, so the entry with the first byte has all
 * of them. */
static const struct gm_incoherent *find(const unsigned char *address) {
    for (const struct gm_incoherent *entry = entries; entry; entry = entry->next)
        if (address >= entry->base && address < entry->base + entry->bytes)
            return entry;
    return NULL;
}

static gpumem_status act(const unsigned char *begin, size_t bytes, int invalidates) {
    gpumem_status status = GPUMEM_OK;
    if (gm_incoherent_none())
        return status;
    pthread_rwlock_rdlock(&lock);
    const struct gm_incoherent *entry = find(begin);
    if (entry)
        status = (invalidates ? entry->invalidate
                              : entry->flush)(entry->user, (size_t)(begin - entry->base), bytes);
    pthread_rwlock_unlock(&lock);
    return status;
}

bool gm_incoherent_none(void) {
    return atomic_load_explicit(&count, memory_order_acquire) == 0;
}

gpumem_status gm_incoherent_flush(const void *begin, size_t bytes) {
    return act(begin, bytes, 0);
}

gpumem_status gm_incoherent_invalidate(const void *begin, size_t bytes) {
    return act(begin, bytes, 1);
}

size_t gm_incoherent_atom(const void *address) {
    if (gm_incoherent_none())
        return 1;
    pthread_rwlock_rdlock(&lock);
    const struct gm_incoherent *entry = find(address);
    size_t atom = entry ? entry->atom : 1;
    pthread_rwlock_unlock(&lock);
    return atom;
}
