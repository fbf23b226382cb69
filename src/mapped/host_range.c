#include "mapped/host_range.h"

#include "base/growing_array.h"
#include "memory/core/driver_error.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Chunks lie at multiples of this on the device; the same alignment for the CPU allows huge pages,
 * and satisfies Vulkan. */
#define PLACE_ALIGNMENT ((size_t)2 << 20)

/* ---- Addresses ------------------------------------------------------------------------------- */

static gpumem_status reserve(size_t capacity, unsigned char **base) {
    size_t all = capacity + PLACE_ALIGNMENT;
    if (all < capacity)
        return gm_fail(GPUMEM_ERROR_OUT_OF_CAPACITY, "no address space has %zu bytes", capacity);
    unsigned char *found =
        mmap(NULL, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (found == MAP_FAILED)
        return gm_fail_system(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, errno, "mmap",
                              "no %zu bytes of host addresses", capacity);
    size_t before = (size_t)(-(uintptr_t)found % PLACE_ALIGNMENT);
    if (before)
        munmap(found, before);
    munmap(found + before + capacity, PLACE_ALIGNMENT - before);
    *base = found + before;
    return GPUMEM_OK;
}

/* ---- Pieces ---------------------------------------------------------------------------------- */

static struct gm_host_range *range_of(struct gm_mirror *mirror) {
    return (struct gm_host_range *)mirror;
}

static gpumem_status make_room(struct gm_host_range *range) {
    size_t wanted = range->count + 1;
    if (wanted <= range->room)
        return GPUMEM_OK;
    pthread_rwlock_wrlock(&range->lock);
    bool reserved = GM_RESERVE(range->pieces, range->room, wanted);
    pthread_rwlock_unlock(&range->lock);
    if (!reserved)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory to note %zu mappings", wanted);
    return GPUMEM_OK;
}

/* The first piece at or after `place`. */
static size_t find(const struct gm_host_range *range, const unsigned char *place) {
    size_t low = 0, high = range->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (range->pieces[middle].place < place)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static gpumem_status attach(struct gm_mirror *mirror, size_t offset, const struct gm_chunk *chunk) {
    struct gm_host_range *range = range_of(mirror);
    struct gm_piece piece = {.handle = chunk->handle,
                             .address = range->extent->address + offset,
                             .place = range->base + offset,
                             .bytes = chunk->bytes};
    gpumem_status status = make_room(range);
    if (status == GPUMEM_OK)
        status = range->mapper->ops->map(range->mapper, &piece);
    if (status != GPUMEM_OK)
        return status;
    pthread_rwlock_wrlock(&range->lock);
    size_t at = find(range, piece.place);
    memmove(range->pieces + at + 1, range->pieces + at,
            (range->count - at) * sizeof *range->pieces);
    range->pieces[at] = piece;
    range->count++;
    pthread_rwlock_unlock(&range->lock);
    return GPUMEM_OK;
}

static void detach(struct gm_mirror *mirror, size_t offset, size_t bytes) {
    struct gm_host_range *range = range_of(mirror);
    (void)bytes;
    pthread_rwlock_wrlock(&range->lock);
    size_t at = find(range, range->base + offset);
    struct gm_piece piece = range->pieces[at];
    range->count--;
    memmove(range->pieces + at, range->pieces + at + 1,
            (range->count - at) * sizeof *range->pieces);
    pthread_rwlock_unlock(&range->lock);
    struct gm_error_record saved;
    gm_error_save(&saved);
    if (!range->mapper->ops->unmap(range->mapper, &piece)) {
        range->stuck = true;
        gm_meter_quarantine(range->extent->meter, 0);
    }
    gm_error_restore(&saved);
}

/* ---- Coherence ------------------------------------------------------------------------------- */

typedef gpumem_status (*piece_op)(const struct gm_piece *piece, size_t offset, size_t bytes);

static gpumem_status for_pieces(struct gm_host_range *range, size_t offset, size_t bytes,
                                piece_op op) {
    gpumem_status status = GPUMEM_OK;
    const unsigned char *begin = range->base + offset, *end = begin + bytes;
    pthread_rwlock_rdlock(&range->lock);
    for (size_t i = 0; i < range->count && status == GPUMEM_OK; i++) {
        const struct gm_piece *piece = &range->pieces[i];
        const unsigned char *from = begin > piece->place ? begin : piece->place;
        const unsigned char *to =
            end < piece->place + piece->bytes ? end : piece->place + piece->bytes;
        if (from < to)
            status = op(piece, (size_t)(from - piece->place), (size_t)(to - from));
    }
    pthread_rwlock_unlock(&range->lock);
    return status;
}

static gpumem_status flush_range(void *user, size_t offset, size_t bytes) {
    struct gm_host_range *range = user;
    if (!range->mapper->ops->flush)
        return GPUMEM_OK;
    return for_pieces(range, offset, bytes, range->mapper->ops->flush);
}

static gpumem_status invalidate_range(void *user, size_t offset, size_t bytes) {
    struct gm_host_range *range = user;
    if (!range->mapper->ops->invalidate)
        return GPUMEM_OK;
    return for_pieces(range, offset, bytes, range->mapper->ops->invalidate);
}

/* ---- The range ------------------------------------------------------------------------------- */

gpumem_status gm_host_range_make(struct gm_mapper *mapper, const struct gm_extent *extent,
                                 struct gm_host_range **made) {
    static const struct gm_mirror_ops ops = {attach, detach};
    struct gm_host_range *range = calloc(1, sizeof *range);
    if (!range)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory for a host mapping");
    gpumem_status status = reserve(extent->capacity, &range->base);
    if (status != GPUMEM_OK) {
        free(range);
        return status;
    }
    range->mirror.ops = &ops;
    range->mapper = mapper;
    range->extent = extent;
    range->capacity = extent->capacity;
    pthread_rwlock_init(&range->lock, NULL);
    if (!mapper->coherent) {
        range->incoherent = (struct gm_incoherent){.base = range->base,
                                                   .bytes = range->capacity,
                                                   .atom = mapper->atom,
                                                   .flush = flush_range,
                                                   .invalidate = invalidate_range,
                                                   .user = range};
        gm_incoherent_add(&range->incoherent);
    }
    *made = range;
    return GPUMEM_OK;
}

void gm_host_range_free(struct gm_host_range *range) {
    if (range->incoherent.bytes)
        gm_incoherent_remove(&range->incoherent);
    if (!range->stuck) /* else the addresses would be reused while Vulkan has them */
        munmap(range->base, range->capacity);
    pthread_rwlock_destroy(&range->lock);
    free(range->pieces);
    free(range);
}
