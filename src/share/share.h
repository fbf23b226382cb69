/* Between the files of this folder. */
#ifndef GM_SHARE_SHARE_H
#define GM_SHARE_SHARE_H

#include "base/kept_file.h"
#include "memory/objects.h"
#include "share/identity.h"

#define GM_SHARE_TIMEOUT_MS 30000

struct gpumem_export {
    unsigned generation;
    gpumem_buffer *buffer; /* held */
    gpumem_buffer *inner;  /* the one that has the memory, held as well; mostly the same */
    int *fds;
    struct gm_kept_file *files; /* what the descriptors were, count of them */
    size_t count;
    size_t bytes;
    void *description;
    size_t description_bytes;
    gpumem_export *next, **link; /* in the device's list, under its lock; link: NULL if in none */
};

/* SYSTEM with EBADF when a descriptor of the export is not the export's any more. */
gpumem_status gm_export_check_open(const gpumem_export *exported);

/* What names the device for other processes: its UUID, or where there is none its place on the bus.
 */
gpumem_status gm_device_uuid(const gpumem_device *device, unsigned char uuid[16]);

/* Options with their defaults filled in. */
gpumem_status gm_share_options(const gpumem_device *device, const gpumem_share_options *given,
                               gpumem_share_options *options);

/* NO_DEVICE if the description is of another device's memory. */
gpumem_status gm_import_check_device(const gpumem_device *device,
                                     const struct gm_description_head *head);

/* A checked description and its descriptors become a buffer: over a mapping that is there already,
 * when `peer` sent the same before. NULL: nobody knows who sent it, and it is mapped anew. */
gpumem_status gm_import_map(gpumem_device *device, const struct gm_description_head *head,
                            const unsigned char *chunks, const int *fds, gpumem_access access,
                            const struct gm_peer *peer, gpumem_buffer **buffer);

#endif
