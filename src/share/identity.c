#include "share/identity.h"

#include "base/error.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static gpumem_status read_file(struct gm_file *file, int fd, uint64_t bytes) {
    struct stat about;
    if (fstat(fd, &about) != 0)
        return gm_fail_system(GPUMEM_ERROR_DATA, errno, "fstat", "descriptor %d is none", fd);
    *file = (struct gm_file){about.st_mode & S_IFMT, about.st_dev, about.st_ino, bytes};
    if (file->type != S_IFCHR && file->type != S_IFREG && file->type != 0)
        return gm_fail(GPUMEM_ERROR_DATA, "descriptor %d is no memory: file type 0%o", fd,
                       (unsigned)file->type);
    return GPUMEM_OK;
}

gpumem_status gm_identity_init(struct gm_identity *identity, const struct gm_description_head *head,
                               const unsigned char *chunks, const int *fds, gpumem_access access,
                               const struct gm_peer *peer) {
    *identity = (struct gm_identity){
        .layout = head->layout,
        .bytes = head->bytes,
        .committed = head->committed,
        .access = access,
        .count = head->chunk_count,
        .files = calloc(head->chunk_count, sizeof *identity->files),
    };
    if (!identity->files)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory for %u handles",
                       head->chunk_count);
    if (peer)
        identity->peer = *peer;
    memcpy(identity->buffer, head->buffer, sizeof identity->buffer);
    for (size_t i = 0; i < identity->count; i++) {
        gpumem_status status =
            read_file(&identity->files[i], fds[i], gm_description_chunk(chunks, i));
        if (status != GPUMEM_OK) {
            gm_identity_destroy(identity);
            return status;
        }
    }
    return GPUMEM_OK;
}

void gm_identity_destroy(struct gm_identity *identity) {
    free(identity->files);
    identity->files = NULL;
}

/* Devices of one number may still be two memories. */
static int may_be_equal(const struct gm_file *a, const struct gm_file *b) {
    return a->type == b->type && a->bytes == b->bytes && a->device == b->device &&
           a->inode == b->inode;
}

int gm_identity_equal(const struct gm_identity *a, const struct gm_identity *b) {
    if (!gm_peer_equal(&a->peer, &b->peer) || memcmp(a->buffer, b->buffer, sizeof a->buffer) != 0 ||
        a->layout != b->layout || a->bytes != b->bytes || a->committed != b->committed ||
        a->access != b->access || a->count != b->count)
        return 0;
    for (size_t i = 0; i < a->count; i++)
        if (!may_be_equal(&a->files[i], &b->files[i]))
            return 0;
    return 1;
}
