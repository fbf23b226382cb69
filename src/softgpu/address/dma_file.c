#include "softgpu/address/dma_file.h"

#include "base/descriptor.h"
#include "softgpu/address/epoch.h"
#include "softgpu/address/memfile.h"
#include "softgpu/core/config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct dma_file {
    struct dma_file *next;
    struct gm_kept_file file; /* an open file description that nobody else has */
    bool tells;               /* the kernel reports whether others have it */
    size_t size;
    struct sg_dma_piece *pieces;
    size_t count;
};

static struct dma_file *files;

/* ---- Which files there are ------------------------------------------------------------------ */

static void free_file(struct dma_file *file) {
    gm_kept_file_close(&file->file);
    free(file->pieces);
    free(file);
}

/* Whether only we have it open or mapped: the kernel grants a write lease only if there is a single
 * open file description, and a mapping counts as one. */
static bool is_leased(const struct dma_file *file) {
    if (fcntl(file->file.fd, F_SETLEASE, F_WRLCK) != 0)
        return false;
    (void)fcntl(file->file.fd, F_SETLEASE, F_UNLCK);
    return true;
}

/* If the kernel cannot tell, the file counts as used. */
static bool is_used(const struct dma_file *file) {
    if (!gm_kept_file_is_open(&file->file))
        return false; /* then nobody can be given the file either */
    return !file->tells || !is_leased(file);
}

/* Pages of a forgotten file remain in it and can move again. */
static void forget_unused(void) {
    struct dma_file **link = &files;
    while (*link) {
        struct dma_file *file = *link;
        if (is_used(file)) {
            link = &file->next;
        } else {
            *link = file->next;
            free_file(file);
        }
    }
}

static bool has_phys(const struct dma_file *file, const struct sg_phys *phys) {
    for (size_t i = 0; i < file->count; i++)
        if (file->pieces[i].phys == phys)
            return true;
    return false;
}

static void forget_phys(const struct sg_phys *phys) {
    struct dma_file **link = &files;
    while (*link) {
        struct dma_file *file = *link;
        if (has_phys(file, phys)) {
            *link = file->next;
            free_file(file);
        } else {
            link = &file->next;
        }
    }
}

static bool overlap(const struct sg_dma_piece *a, const struct sg_dma_piece *b) {
    return a->phys == b->phys && a->offset < b->offset + b->size && b->offset < a->offset + a->size;
}

static bool shares_pages(const struct dma_file *file, const struct sg_dma_piece *pieces,
                         size_t count) {
    for (size_t i = 0; i < file->count; i++)
        for (size_t j = 0; j < count; j++)
            if (overlap(&file->pieces[i], &pieces[j]))
                return true;
    return false;
}

/* Are the pieces the same as the file's, up to the shorter of the two? A range that was divided
 * differently when it was first exported is not recognized. */
static bool begins_alike(const struct dma_file *file, const struct sg_dma_piece *pieces,
                         size_t count) {
    size_t common = count < file->count ? count : file->count;
    for (size_t i = 0; i < common; i++) {
        const struct sg_dma_piece *a = &file->pieces[i], *b = &pieces[i];
        bool last = i + 1 == common;
        if (a->phys != b->phys || a->offset != b->offset || (!last && a->size != b->size))
            return false;
        /* The side that ends with the last common piece may have less of it. */
        if (last && a->size < b->size && file->count > common)
            return false;
        if (last && b->size < a->size && count > common)
            return false;
    }
    return true;
}

static size_t total(const struct sg_dma_piece *pieces, size_t count) {
    size_t size = 0;
    for (size_t i = 0; i < count; i++)
        size += pieces[i].size;
    return size;
}

/* The file that the range is in, or NULL in *found if there is none. False if other files have some
 * of its pages. */
static bool find_file(const struct sg_dma_piece *pieces, size_t count, struct dma_file **found) {
    *found = NULL;
    for (struct dma_file *file = files; file; file = file->next) {
        if (!shares_pages(file, pieces, count))
            continue;
        if (*found || !begins_alike(file, pieces, count)) {
            sg_log(SG_LOG_WARNING,
                   "pages of the range are in a DMA buffer that begins elsewhere and is still "
                   "open or mapped: without /dev/udmabuf a page can be in one");
            return false;
        }
        *found = file;
    }
    return true;
}

/* Another open file description of the file; -1, with errno, on failure. */
static int open_again(const struct gm_kept_file *file) {
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", file->fd);
    return gm_kept_file_is_open(file) ? gm_fd_open(path, O_RDWR, 0) : -1;
}

/* The kernel does not count the description made by memfd_create as a writer, so an opened one
 * replaces it. Without /proc the original is kept. */
static void take_counted(struct dma_file *file) {
    struct gm_kept_file counted;
    int fd = open_again(&file->file);
    if (fd < 0 || !gm_kept_file_set(fd, &counted))
        return;
    gm_kept_file_close(&file->file);
    file->file = counted;
    file->tells = is_leased(file);
}

static struct dma_file *new_file(void) {
    struct dma_file *file = calloc(1, sizeof *file);
    if (!file)
        return NULL;
    if (!sg_memfile_new("softgpu dma buffer", 0, &file->file)) {
        free(file);
        return NULL;
    }
    /* Nobody who has it must be able to truncate the file under us. */
    if (fcntl(file->file.fd, F_ADD_SEALS, F_SEAL_SHRINK) != 0) {
        free_file(file);
        return NULL;
    }
    take_counted(file);
    file->next = files;
    files = file;
    return file;
}

/* ---- Moving pages ---------------------------------------------------------------------------- */

static bool write_all(int fd, const unsigned char *bytes, size_t size, uint64_t at) {
    while (size > 0) {
        ssize_t written = pwrite(fd, bytes, size, (off_t)at);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return false;
        bytes += written;
        at += (uint64_t)written;
        size -= (size_t)written;
    }
    return true;
}

/* The next bytes of [*from, end) that were ever written, both being offsets in the memory:
 * unwritten bytes take no memory and read as zeros in a new file too. False when there are no more.
 * For memory that has moved before, the file is not known, so all of it counts as written. */
static bool next_data(const struct sg_phys *phys, size_t *from, size_t end, size_t *stop) {
    *stop = end;
    if (phys->moved)
        return *from < end;
    uint64_t base = phys->file_offset;
    off_t data = lseek(phys->file.fd, (off_t)(base + *from), SEEK_DATA);
    if (data < 0 && errno == ENXIO)
        return false;
    if (data < 0)
        return *from < end;
    if ((uint64_t)data >= base + end)
        return false;
    off_t hole = lseek(phys->file.fd, data, SEEK_HOLE);
    *from = (size_t)((uint64_t)data - base);
    if (hole > data && (uint64_t)hole < base + end)
        *stop = (size_t)((uint64_t)hole - base);
    return true;
}

static bool copy_piece(const struct sg_dma_piece *piece, int fd, uint64_t at) {
    size_t from = piece->offset, end = piece->offset + piece->size, stop;
    while (from < end && next_data(piece->phys, &from, end, &stop)) {
        if (!write_all(fd, piece->phys->host + from, stop - from, at + (from - piece->offset)))
            return false;
        from = stop;
    }
    return true;
}

/* Replaces the view's bytes by the file's. mremap checks that it can succeed before it removes the
 * old mapping, so a failure changes nothing. */
static bool show(const struct gm_kept_file *file, uint64_t at, unsigned char *view, size_t size) {
    void *made =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file->fd, (off_t)at);
    if (made == MAP_FAILED)
        return false;
    if (mremap(made, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, view) != MAP_FAILED)
        return true;
    munmap(made, size);
    return false;
}

/* Best effort: what remains is given back when the memory is freed. */
static void empty(const struct sg_dma_piece *piece) {
    const int mode = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
    const struct sg_phys *phys = piece->phys;
    if (gm_kept_file_is_open(&phys->file))
        (void)fallocate(phys->file.fd, mode, (off_t)(phys->file_offset + piece->offset),
                        (off_t)piece->size);
}

static bool move_piece(struct dma_file *file, const struct sg_dma_piece *piece, uint64_t at) {
    struct sg_phys *phys = piece->phys;
    if (!gm_kept_file_is_open(&phys->file) || !copy_piece(piece, file->file.fd, at) ||
        !show(&file->file, at, phys->host + piece->offset, piece->size))
        return false;
    phys->moved = phys->pages_held = true;
    empty(piece);
    return true;
}

/* Moves the part of the pieces that the file does not have yet, to its end. */
static bool move_rest(struct dma_file *file, const struct sg_dma_piece *pieces, size_t count) {
    uint64_t at = 0;
    for (size_t i = 0; i < count; i++) {
        struct sg_dma_piece rest = pieces[i];
        uint64_t end = at + rest.size, from = at > file->size ? at : file->size;
        if (end > from) {
            rest.offset += (size_t)(from - at);
            rest.size = (size_t)(end - from);
            if (!move_piece(file, &rest, from))
                return false;
        }
        at = end;
    }
    return true;
}

/* Makes the file hold all of the pieces. If that fails midway, pages that have moved remain where
 * they are, with their bytes, but the file does not count them as its own: they can move again. */
static bool extend(struct dma_file *file, const struct sg_dma_piece *pieces, size_t count) {
    struct sg_dma_piece *all = malloc(count * sizeof *all);
    size_t size = total(pieces, count);
    if (!all || !sg_memfile_grow(&file->file, size) || !move_rest(file, pieces, count)) {
        sg_log(SG_LOG_ERROR, "making a DMA buffer of %zu bytes: %s", size, strerror(errno));
        free(all);
        return false;
    }
    memcpy(all, pieces, count * sizeof *all);
    free(file->pieces);
    file->pieces = all;
    file->count = count;
    file->size = size;
    return true;
}

static void drop_empty(struct dma_file *file) {
    if (file->size > 0)
        return;
    files = file->next; /* it was made last */
    free_file(file);
}

/* ---- Export ---------------------------------------------------------------------------------- */

static CUresult give(const struct gm_kept_file *file, int *fd) {
    int made = open_again(file);
    if (made < 0)
        made = gm_kept_file_duplicate(file);
    if (made < 0) {
        sg_log(SG_LOG_ERROR, "making a descriptor of a DMA buffer: %s", strerror(errno));
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *fd = made;
    return CUDA_SUCCESS;
}

/* All of the memory in a file of its own. */
static bool is_own_file(const struct sg_dma_piece *pieces, size_t count) {
    const struct sg_phys *phys = pieces->phys;
    return count == 1 && phys->kind == SG_PHYS_FD && !phys->moved && pieces->offset == 0 &&
           pieces->size == phys->size;
}

/* Nobody else has a file with the pages. */
static bool is_apart(const struct sg_phys *phys) {
    return phys->kind == SG_PHYS_ARENA
               ? !phys->named
               : phys->kind == SG_PHYS_FD && !phys->given && !phys->imported;
}

static bool can_move(const struct sg_dma_piece *pieces, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (is_apart(pieces[i].phys))
            continue;
        sg_log(SG_LOG_WARNING,
               "the range has memory that other processes may have mapped: without /dev/udmabuf "
               "an exported handle is a DMA buffer only by itself, as a whole");
        return false;
    }
    return true;
}

/* Moving would pull the bytes from under running operations, so there must be none. All of them end
 * by themselves: an operation that waits is not running. */
static void wait_until_nothing_runs(void) {
    for (uint64_t mark = sg_epoch_mark(); !sg_epoch_passed(mark); mark = sg_epoch_mark())
        sg_epoch_wait(mark);
}

static CUresult move(const struct sg_dma_piece *pieces, size_t count, int *fd) {
    struct dma_file *file;
    if (!find_file(pieces, count, &file))
        return CUDA_ERROR_NOT_SUPPORTED;
    if (!file)
        file = new_file();
    if (!file)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = CUDA_SUCCESS;
    if (total(pieces, count) > file->size && !extend(file, pieces, count))
        result = CUDA_ERROR_OUT_OF_MEMORY;
    if (result == CUDA_SUCCESS)
        result = give(&file->file, fd);
    if (result == CUDA_SUCCESS && !is_used(file))
        file->tells = false; /* it is used now: the kernel counts differently than assumed */
    drop_empty(file);
    return result;
}

CUresult sg_dma_file_export(const struct sg_dma_piece *pieces, size_t count,
                            bool (*still)(void *user), void *user, int *fd) {
    if (is_own_file(pieces, count)) {
        CUresult given = give(&pieces->phys->file, fd);
        pieces->phys->given |= given == CUDA_SUCCESS;
        return given;
    }
    if (!can_move(pieces, count))
        return CUDA_ERROR_NOT_SUPPORTED;
    wait_until_nothing_runs();
    if (!still(user))
        return CUDA_ERROR_INVALID_VALUE;
    forget_unused();
    return move(pieces, count, fd);
}

bool sg_dma_file_end(struct sg_phys *phys) {
    forget_phys(phys);
    return sg_memfile_map_at(&phys->file, phys->file_offset, phys->host, phys->size,
                             PROT_READ | PROT_WRITE);
}

void sg_dma_file_forget(const struct sg_phys *phys) {
    forget_phys(phys);
}

static bool is_in_use(const struct sg_phys *phys) {
    forget_unused();
    for (const struct dma_file *file = files; file; file = file->next)
        if (has_phys(file, phys))
            return true;
    return false;
}

CUresult sg_dma_file_return(struct sg_phys *phys) {
    CUresult result = CUDA_SUCCESS;
    sg_phys_ref(phys); /* the lock is released */
    wait_until_nothing_runs();
    if (is_in_use(phys)) {
        sg_log(SG_LOG_WARNING,
               "the memory is in a DMA buffer of more or less than itself that is still open or "
               "mapped: without /dev/udmabuf it can be exported when that is closed");
        result = CUDA_ERROR_NOT_SUPPORTED;
    } else if (phys->moved && (!gm_kept_file_is_open(&phys->file) ||
                               !write_all(phys->file.fd, phys->host, phys->size, 0) ||
                               !show(&phys->file, 0, phys->host, phys->size))) {
        sg_log(SG_LOG_ERROR, "moving memory back from a DMA buffer: %s", strerror(errno));
        result = CUDA_ERROR_OUT_OF_MEMORY;
    } else {
        phys->moved = false;
    }
    sg_phys_unref(phys);
    return result;
}
