/* What tells two imports of the same memory from imports that only say so. */
#ifndef GM_SHARE_IDENTITY_H
#define GM_SHARE_IDENTITY_H

#include "share/description.h"
#include "share/peer.h"

#include <sys/types.h>

/* A descriptor's file. */
struct gm_file {
    mode_t type;
    dev_t device;
    ino_t inode;
    uint64_t bytes; /* of the chunk */
};

struct gm_identity {
    struct gm_peer peer;
    unsigned char buffer[16];
    uint64_t layout, bytes, committed;
    gpumem_access access;
    size_t count;
    struct gm_file *files; /* of each chunk */
};

/*
 * Of a checked description and the descriptors that came with it. DATA when one of those cannot be
 * memory: drivers export devices (NVIDIA), regular files (softgpu's memory files) or anonymous
 * inodes (type 0); or when two of them are one regular file, and so one memory twice. Without a
 * peer (NULL) it equals nothing.
 */
gpumem_status gm_identity_init(struct gm_identity *identity, const struct gm_description_head *head,
                               const unsigned char *chunks, const int *fds, gpumem_access access,
                               const struct gm_peer *peer);
void gm_identity_destroy(struct gm_identity *identity);

/* Adds the chunks of a checked description that were added to the memory: `chunks` and `fds` are of
 * those from identity->count on. The same errors; then nothing is added. */
gpumem_status gm_identity_extend(struct gm_identity *identity,
                                 const struct gm_description_head *head,
                                 const unsigned char *chunks, const int *fds);
/* Takes away the last ones again. */
void gm_identity_cut(struct gm_identity *identity, size_t count);

/*
 * Whether both are one export of one process. Names and sizes are the exporter's word, and so this
 * asks first that it be one and the same process. Regular files are also compared: those of live
 * imports exist, so that an inode means one memory. NVIDIA's descriptors are all of one device.
 */
int gm_identity_equal(const struct gm_identity *a, const struct gm_identity *b);

#endif
