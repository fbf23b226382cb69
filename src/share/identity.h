/* Tells two imports of the same memory from imports that merely claim to be. */
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
 * The identity of a checked description and its descriptors. DATA if a descriptor cannot be memory
 * (drivers export devices (NVIDIA), regular files (softgpu's memory files) or anonymous inodes
 * (type 0)), or if two are the same regular file, and so the same memory twice. Without a peer
 * (NULL) it equals no other.
 */
gpumem_status gm_identity_init(struct gm_identity *identity, const struct gm_description_head *head,
                               const unsigned char *chunks, const int *fds, gpumem_access access,
                               const struct gm_peer *peer);
void gm_identity_destroy(struct gm_identity *identity);

/* Adds the new chunks of a checked description: `chunks` and `fds` are those from identity->count
 * on. Same errors; nothing is added then. */
gpumem_status gm_identity_extend(struct gm_identity *identity,
                                 const struct gm_description_head *head,
                                 const unsigned char *chunks, const int *fds);
/* Removes the last ones again. */
void gm_identity_cut(struct gm_identity *identity, size_t count);

/*
 * Whether both are the same export of the same process. Names and sizes are only the exporter's
 * claims, so the process is compared first. Regular files are compared too: those of live imports
 * exist, so an inode identifies one memory. NVIDIA's descriptors are all of one device.
 */
int gm_identity_equal(const struct gm_identity *a, const struct gm_identity *b);

#endif
