/*
 * Memory whose CPU mapping needs flushes, found by address: whichever resource has cut a buffer out
 * of it. There is none on most machines, and then nothing is looked up.
 */
#ifndef GM_MAPPED_INCOHERENT_H
#define GM_MAPPED_INCOHERENT_H

#include <gpumem/status.h>
#include <stddef.h>

struct gm_incoherent {
    const unsigned char *base;
    size_t bytes;
    size_t atom; /* what both below are widened to */
    gpumem_status (*flush)(void *user, size_t offset, size_t bytes);
    gpumem_status (*invalidate)(void *user, size_t offset, size_t bytes);
    void *user;
    struct gm_incoherent *next;
};

/* The entry is the caller's, and stays as it is until it is removed. */
void gm_incoherent_add(struct gm_incoherent *entry);
/* Waits for calls that use it. */
void gm_incoherent_remove(struct gm_incoherent *entry);

/* Of bytes that the CPU reaches; OK where nothing is needed. Thread-safe. */
gpumem_status gm_incoherent_flush(const void *begin, size_t bytes);
gpumem_status gm_incoherent_invalidate(const void *begin, size_t bytes);

/* What flushes of memory at this address are widened to; 1 where none are needed. Thread-safe. */
size_t gm_incoherent_atom(const void *address);

#endif
