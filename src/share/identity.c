#include "share/identity.h"

#include "base/error.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static gpumem_status read_file(struct gm_file *file, int fd, uint64_t bytes) {
    struct stat about;
    if (fstat(fd, &about) != 0)
        return gm_fail_system(GPUMEM_ERROR_DATA, errno, "fstat", "descriptor %d does not exist",
                              fd);
    *file = (struct gm_file){about.st_mode & S_IFMT, about.st_dev, about.st_ino, bytes};
    if (file->type != S_IFCHR && file->type != S_IFREG && file->type != 0)
        return gm_fail(GPUMEM_ERROR_DATA, "descriptor %d is not memory: file type 0%o", fd,
                       (unsigned)file->type);
    return GPUMEM_OK;
}

static int compare_files(const void *a, const void *b) {
    const struct gm_file *x = a, *y = b;
    if (x->type != y->type)
        return x->type < y->type ? -1 : 1;
    if (x->device != y->device)
        return x->device < y->device ? -1 : 1;
    return x->inode < y->inode ? -1 : x->inode > y->inode;
}

/* A buffer with the same memory in two places is one that nobody exported. For devices and
 * anonymous inodes two memories cannot be told from one. */
static gpumem_status check_distinct(const struct gm_file *files, size_t count) {
    struct gm_file *sorted = malloc(count * sizeof *sorted);
    if (!sorted)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory for %zu handles", count);
    memcpy(sorted, files, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, compare_files);
    size_t i = 1;
    while (i < count && (sorted[i].type != S_IFREG || compare_files(&sorted[i - 1], &sorted[i])))
        i++;
    free(sorted);
    return i < count
               ? gm_fail(GPUMEM_ERROR_DATA, "two of the %zu handles are the same memory", count)
               : GPUMEM_OK;
}

/* Adds the files of the chunks from identity->count on, after the present ones. */
static gpumem_status read_files(struct gm_identity *identity, struct gm_file *files, size_t count,
                                const unsigned char *chunks, const int *fds) {
    for (size_t i = identity->count; i < count; i++) {
        size_t at = i - identity->count;
        gpumem_status status = read_file(&files[i], fds[at], gm_description_chunk(chunks, at));
        if (status != GPUMEM_OK)
            return status;
    }
    return check_distinct(files, count);
}

gpumem_status gm_identity_extend(struct gm_identity *identity,
                                 const struct gm_description_head *head,
                                 const unsigned char *chunks, const int *fds) {
    size_t count = head->chunk_count;
    struct gm_file *files = malloc(count * sizeof *files);
    if (!files)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory for %zu handles", count);
    if (identity->count)
        memcpy(files, identity->files, identity->count * sizeof *files);
    gpumem_status status = read_files(identity, files, count, chunks, fds);
    if (status != GPUMEM_OK) {
        free(files);
        return status;
    }
    free(identity->files);
    identity->files = files;
    identity->count = count;
    return GPUMEM_OK;
}

void gm_identity_cut(struct gm_identity *identity, size_t count) {
    identity->count = count;
}

gpumem_status gm_identity_init(struct gm_identity *identity, const struct gm_description_head *head,
                               const unsigned char *chunks, const int *fds, gpumem_access access,
                               const struct gm_peer *peer) {
    *identity = (struct gm_identity){
        .layout = head->layout,
        .bytes = head->bytes,
        .committed = head->committed,
        .access = access,
    };
    if (peer)
        identity->peer = *peer;
    memcpy(identity->buffer, head->buffer, sizeof identity->buffer);
    return gm_identity_extend(identity, head, chunks, fds);
}

void gm_identity_destroy(struct gm_identity *identity) {
    free(identity->files);
    identity->files = NULL;
}

/* Devices of the same number may still be two memories. */
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
