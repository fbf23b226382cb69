/*
 * Memory whose CPU mapping needs flushes, looked up by address, whichever resource the buffer was
 * cut out by. Most machines have none, and then nothing is looked up.
 */
#ifndef GM_MAPPED_INCOHERENT_H
#define GM_MAPPED_INCOHERENT_H

#include <gpumem/status.h>
#include <stdbool.h>
#include <stddef.h>

struct gm_incoherent {
    const unsigned char *base;
    size_t bytes;
    size_t atom; /* what flush and invalidate are widened to */
    gpumem_status (*flush)(void *user, size_t offset, size_t bytes);
    gpumem_status (*invalidate)(void *user, size_t offset, size_t bytes);
    void *user;
    struct gm_incoherent *next;
};

/* The entry belongs to the caller, and must not change until it is removed. */
void gm_incoherent_add(struct gm_incoherent *entry);
/* Waits for calls that use the entry. */
void gm_incoherent_remove(struct gm_incoherent *entry);

/* For bytes that the CPU can access; OK where nothing is needed. Thread-safe. */
gpumem_status gm_incoherent_flush(const void *begin, size_t bytes);
gpumem_status gm_incoherent_invalidate(const void *begin, size_t bytes);

/* No memory of this process needs flushes. Thread-safe. */
bool gm_incoherent_none(void);

/* What flushes of memory at this address are widened to; 1 if none are needed. Thread-safe. */
size_t gm_incoherent_atom(const void *address);

#endif
