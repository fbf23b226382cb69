/* Between the files of this folder. */
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
    gpumem_buffer *inner;  /* the one that has the memory, held as well; mostly the same */
    int grows;             /* memory that is mapped in chunks: later growth can be taken in */
    pthread_mutex_t lock;  /* the rest */
    int detached;
    unsigned sending; /* threads whose descriptors must stay open */
    int *fds;
    struct gm_kept_file *files; /* what the descriptors were, count of them */
    size_t count, room;
    size_t bytes;
    void *description;
    size_t description_bytes;
    gpumem_export *next, **link; /* in the device's list, under its lock; link: NULL if in none */
};

/* What goes over a socket: copies, but for the descriptors, which stay open until it is done. */
struct gm_outgoing {
    void *description;
    size_t description_bytes;
    int *fds;
    size_t count;
};

/* Of the descriptors from `first` on; the description is of growth unless that is 0. SYSTEM with
 * EBADF when one is not the export's any more, INVALID_ARGUMENT when it was detached. */
gpumem_status gm_export_take(gpumem_export *exported, size_t first, struct gm_outgoing *out);
void gm_export_put(gpumem_export *exported, struct gm_outgoing *out);

/* What names the device for other processes: its UUID, or where there is none its place on the bus.
 */
gpumem_status gm_device_uuid(const gpumem_device *device, unsigned char uuid[16]);

/* Options with their defaults filled in. */
gpumem_status gm_share_options(const gpumem_device *device, const gpumem_share_options *given,
                               gpumem_share_options *options);

/* NO_DEVICE if that is not the device's UUID. */
gpumem_status gm_share_check_device(const gpumem_device *device, const unsigned char uuid[16]);

/* What an import comes with besides its description and descriptors. */
struct gm_import_terms {
    gpumem_access access;
    size_t capacity;            /* address space for growth; 0: none */
    const struct gm_peer *peer; /* who sent it; NULL: nobody knows */
    struct gm_connection connection;
};

/* A checked description and its descriptors become a buffer: over a mapping that is there already,
 * when the peer sent the same before and it is not to grow; else it is mapped anew. */
gpumem_status gm_import_map(gpumem_device *device, const struct gm_description_head *head,
                            const unsigned char *chunks, const int *fds,
                            const struct gm_import_terms *terms, gpumem_buffer **buffer);

#endif
