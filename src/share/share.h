/* Shared by the files of this folder. */
#ifndef GM_SHARE_SHARE_H
#define GM_SHARE_SHARE_H

#include "base/kept_file.h"
#include "memory/core/objects.h"
#include "share/identity.h"
#include "share/kinds.h"

#include <pthread.h>

#define GM_SHARE_TIMEOUT_MS 30000

struct gpumem_export {
    unsigned generation;
    gpumem_device *device;
    gpumem_buffer *buffer; /* held until it is detached; NULL: an event */
    gpumem_buffer *inner;  /* the one that has the memory, also held; mostly the same */
    int grows;             /* memory that is mapped in chunks: growth can be added later */
    pthread_mutex_t lock;  /* the rest */
    int detached;
    unsigned sending; /* threads whose descriptors must stay open */
    int *fds;
    struct gm_kept_file *files; /* the identities of the descriptors, count of them */
    size_t count, room;
    size_t bytes;
    void *description;
    size_t description_bytes;
    gpumem_export *next, **link; /* in the device's list, under its lock; link: NULL if in none */
};

/* What is sent over a socket: copies, except for the descriptors, which stay open until it is
 * done. */
struct gm_outgoing {
    void *description;
    size_t description_bytes;
    int *fds;
    size_t count;
};

/* With the descriptors from `first` on; unless that is 0 the description is one of growth. SYSTEM
 * with EBADF: a descriptor is no longer the export's. INVALID_ARGUMENT: detached. */
gpumem_status gm_export_take(gpumem_export *exported, size_t first, struct gm_outgoing *out);
void gm_export_put(gpumem_export *exported, struct gm_outgoing *out);

/* The name of the device for other processes: its UUID, or else its PCI address.
 */
gpumem_status gm_device_uuid(const gpumem_device *device, unsigned char uuid[16]);

/* Options with their defaults filled in. */
gpumem_status gm_share_options(const gpumem_device *device, const gpumem_share_options *given,
                               gpumem_share_options *options);

/* NO_DEVICE if that is not the device's UUID. */
gpumem_status gm_share_check_device(const gpumem_device *device, const unsigned char uuid[16]);

/* Parameters of an import besides its description and descriptors. */
struct gm_import_terms {
    gpumem_access access;
    size_t capacity;            /* address space for growth; 0: none */
    const struct gm_peer *peer; /* the sender; NULL: unknown */
    struct gm_connection connection;
};

/* Makes a buffer of a checked description and its descriptors: over an existing mapping if the peer
 * has sent the same before and it need not grow; else over a new one. */
gpumem_status gm_import_map(gpumem_device *device, const struct gm_description_head *head,
                            const unsigned char *chunks, const int *fds,
                            const struct gm_import_terms *terms, gpumem_buffer **buffer);

#endif
