/*
 * An extent: a reservation with chunks mapped from its start, all of whose changes are all or
 * nothing. The memory of virtual buffers and imports.
 */
#ifndef GM_MEMORY_EXTENT_H
#define GM_MEMORY_EXTENT_H

#include "memory/core/objects.h"

struct gm_range_cache;

struct gm_mirror;

/* The functions of a second mapping of an extent's memory, called with the lock of the extent's
 * owner held. */
struct gm_mirror_ops {
    /* Maps a chunk that the extent has at `offset`; on failure nothing is mapped. */
    gpumem_status (*attach)(struct gm_mirror *mirror, size_t offset, const struct gm_chunk *chunk);
    /* Unmaps what was attached there. The chunk's handle may be gone already. Cannot fail. */
    void (*detach)(struct gm_mirror *mirror, size_t offset, size_t bytes);
};

/* The memory of an extent mapped in another place too, for example for the CPU; follows its
 * changes. */
struct gm_mirror {
    const struct gm_mirror_ops *ops;
    struct gm_mirror *next;
};

/* Access rights; borrowed, and never changed. */
struct gm_access {
    const CUmemAccessDesc *entries;
    size_t count;
};

/* Rights to set for some locations, whatever the others have. `scratch` has as many members.
 */
struct gm_access_change {
    const CUmemAccessDesc *entries;
    size_t count;
    CUmemAccessDesc *scratch;
};

struct gm_extent {
    gpumem_device *device;
    struct gm_meter *meter;
    const CUmemAccessDesc *access; /* borrowed: given to every new chunk */
    size_t access_count;
    struct gm_access *given; /* the rights of each chunk; NULL: all have `access` */
    CUdeviceptr address;
    size_t capacity;
    size_t committed;    /* bytes from the start to the last chunk's end */
    atomic_size_t holes; /* bytes of those without memory */
    struct gm_chunk *chunks;
    size_t count, room;
    struct gm_range_cache *cache; /* of the chunks that it allocates and frees; or NULL */
    atomic_int shared;            /* others may map its chunks: these are never cached */
    int dirty;                    /* a change of access could not be undone: gm_extent_mend */
    int borrowed;                 /* has only the mappings: another extent has the chunks */
    struct gm_mirror *mirrors;    /* borrowed; with them the extent cannot be moved */
};

/* Before anything else, of a zeroed extent: whose it is, and who may do what there, borrowed.
 * Access can be said later, while the extent is empty. */
void gm_extent_prepare(struct gm_extent *extent, gpumem_device *device, struct gm_meter *meter);
void gm_extent_give(struct gm_extent *extent, const CUmemAccessDesc *access, size_t count);

/* Reserves; what was prepared is in place. */
gpumem_status gm_extent_init(struct gm_extent *extent, size_t capacity, size_t alignment,
                             CUdeviceptr hint);

/* Allocates new memory in chunks of `sizes[i]` bytes each, and maps it after the rest. */
gpumem_status gm_extent_append(struct gm_extent *extent, const CUmemAllocationProp *prop,
                               const size_t *sizes, size_t count);

/* The same with existing handles. The extent owns them, on success only. */
gpumem_status gm_extent_adopt(struct gm_extent *extent, const struct gm_chunk *chunks,
                              size_t count);

/* Maps the chunks of another extent from the start of this one, which is empty: they then have two
 * addresses, with the rights `given`. */
gpumem_status gm_extent_double(struct gm_extent *extent, const struct gm_extent *other);

/* Unmaps and gives back the last `count` chunks. */
gpumem_status gm_extent_drop(struct gm_extent *extent, size_t count);

/*
 * Turns these chunks into holes, all or none, except that chunks which the driver refuses to map
 * again remain holes too. The memory goes back to the driver; *released is how many bytes it took.
 */
gpumem_status gm_extent_punch(struct gm_extent *extent, size_t first, size_t count,
                              size_t *released);

/* Puts new memory into the holes among these chunks, all or none. */
gpumem_status gm_extent_fill(struct gm_extent *extent, const CUmemAllocationProp *prop,
                             size_t first, size_t count);

/* Whether none of the bytes is in a hole. From any thread, while others change the extent. */
int gm_extent_is_whole(const struct gm_extent *extent, size_t offset, size_t bytes);

/*
 * Held while the list of any extent's chunks changes, which is for a few instructions: who reads it
 * without the buffer's lock, as a view of a buffer does that grows in another thread, holds it as
 * well. No other lock is taken, and the driver is not called, under it.
 */
void gm_extent_lock_lists(void);
void gm_extent_unlock_lists(void);

/* The chunk's rights. */
struct gm_access gm_extent_access(const struct gm_extent *extent, size_t index);
CUmemAccess_flags gm_access_of(struct gm_access access, CUmemLocation location);

/* Creates `given`; from then on chunks can differ. */
gpumem_status gm_extent_part_access(struct gm_extent *extent);

/* Whether the change takes a right away from one of these chunks. */
int gm_extent_loses_access(const struct gm_extent *extent, size_t first, size_t count,
                           const struct gm_access_change *change);

/*
 * Makes the change in the driver for these chunks without recording it: the caller records it when
 * everything is done, or undoes it. On failure the chunks have their former rights; if the driver
 * refuses that too, the extent is dirty.
 */
gpumem_status gm_extent_change_access(struct gm_extent *extent, size_t first, size_t count,
                                      const struct gm_access_change *change);
void gm_extent_undo_access(struct gm_extent *extent, size_t first, size_t count,
                           const struct gm_access_change *change);

/* Sets the recorded rights, for each location of `all`, as they should have been restored. */
gpumem_status gm_extent_mend(struct gm_extent *extent, const struct gm_access_change *all);

/* Attaches all present and future chunks to the mirror, or none. */
gpumem_status gm_extent_add_mirror(struct gm_extent *extent, struct gm_mirror *mirror);
/* Detaches them. */
void gm_extent_remove_mirror(struct gm_extent *extent, struct gm_mirror *mirror);

/* One chunk, for all mirrors: with the extent's own functions only. */
gpumem_status gm_mirrors_attach(struct gm_extent *extent, size_t offset,
                                const struct gm_chunk *chunk);
void gm_mirrors_detach(struct gm_extent *extent, size_t offset, const struct gm_chunk *chunk);

/* Gives back everything; cannot fail. Mirrors are detached and left to their makers. */
void gm_extent_destroy(struct gm_extent *extent);

#endif
