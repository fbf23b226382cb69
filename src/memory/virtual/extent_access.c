/* Access to the chunks of an extent, and changing it during use. */
#include "memory/core/driver_error.h"
#include "memory/core/vmm_calls.h"
#include "memory/virtual/extent.h"

#include <stdlib.h>

struct gm_access gm_extent_access(const struct gm_extent *extent, size_t index) {
    if (extent->given)
        return extent->given[index];
    return (struct gm_access){extent->access, extent->access_count};
}

static int is_same(CUmemLocation a, CUmemLocation b) {
    return a.type == b.type && a.id == b.id;
}

CUmemAccess_flags gm_access_of(struct gm_access access, CUmemLocation location) {
    for (size_t i = 0; i < access.count; i++)
        if (is_same(access.entries[i].location, location))
            return access.entries[i].flags;
    return CU_MEM_ACCESS_FLAGS_PROT_NONE;
}

gpumem_status gm_extent_part_access(struct gm_extent *extent) {
    if (extent->given)
        return GPUMEM_OK;
    struct gm_access *given = calloc(extent->room, sizeof *given);
    if (!given)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory to record who has access");
    for (size_t i = 0; i < extent->count; i++)
        given[i] = gm_extent_access(extent, i);
    extent->given = given;
    return GPUMEM_OK;
}

/* ---- Runs of chunks with the same rights ----------------------------------------------------- */

struct run {
    size_t first, next;
    CUdeviceptr address;
    size_t bytes;
    struct gm_access access;
};

/* The run that begins at `first`, whose address is known; a hole is one by itself. */
static struct run run_at(const struct gm_extent *extent, size_t first, size_t end,
                         CUdeviceptr address) {
    const struct gm_chunk *chunks = extent->chunks;
    struct run run = {.first = first,
                      .next = first + 1,
                      .address = address,
                      .bytes = chunks[first].bytes,
                      .access = gm_extent_access(extent, first)};
    while (chunks[first].handle && run.next < end && chunks[run.next].handle &&
           gm_extent_access(extent, run.next).entries == run.access.entries)
        run.bytes += chunks[run.next++].bytes;
    return run;
}

static CUdeviceptr address_of(const struct gm_extent *extent, size_t index) {
    CUdeviceptr address = extent->address;
    for (size_t i = 0; i < index; i++)
        address += extent->chunks[i].bytes;
    return address;
}

/* The part of the change that differs from `access`, or what undoes it; in the scratch space. */
static size_t news(const struct gm_access_change *change, struct gm_access access, int undo) {
    size_t count = 0;
    for (size_t i = 0; i < change->count; i++) {
        CUmemAccess_flags had = gm_access_of(access, change->entries[i].location);
        if (had == change->entries[i].flags)
            continue;
        change->scratch[count] = change->entries[i];
        if (undo)
            change->scratch[count].flags = had;
        count++;
    }
    return count;
}

int gm_extent_loses_access(const struct gm_extent *extent, size_t first, size_t count,
                           const struct gm_access_change *change) {
    for (size_t i = first; i < first + count; i++) {
        struct gm_access access = gm_extent_access(extent, i);
        for (size_t k = 0; k < change->count; k++) {
            unsigned had = (unsigned)gm_access_of(access, change->entries[k].location);
            if (had & ~(unsigned)change->entries[k].flags)
                return 1;
        }
    }
    return 0;
}

static gpumem_status set_run(struct gm_extent *extent, const struct run *run,
                             const struct gm_access_change *change, int undo) {
    size_t count = extent->chunks[run->first].handle ? news(change, run->access, undo) : 0;
    return gm_vmm_access(extent->device, run->address, run->bytes, change->scratch, count);
}

void gm_extent_undo_access(struct gm_extent *extent, size_t first, size_t count,
                           const struct gm_access_change *change) {
    struct gm_error_record saved;
    gm_error_save(&saved);
    CUdeviceptr address = address_of(extent, first);
    for (size_t i = first; i < first + count;) {
        struct run run = run_at(extent, i, first + count, address);
        gpumem_status undone = set_run(extent, &run, change, 1);
        if (undone != GPUMEM_OK) /* again: the driver reports earlier failures anywhere */
            undone = set_run(extent, &run, change, 1);
        extent->dirty |= undone != GPUMEM_OK;
        i = run.next;
        address += run.bytes;
    }
    gm_error_restore(&saved);
}

gpumem_status gm_extent_change_access(struct gm_extent *extent, size_t first, size_t count,
                                      const struct gm_access_change *change) {
    CUdeviceptr address = address_of(extent, first);
    for (size_t i = first; i < first + count;) {
        struct run run = run_at(extent, i, first + count, address);
        gpumem_status status = set_run(extent, &run, change, 0);
        if (status != GPUMEM_OK) { /* which may have taken effect */
            gm_extent_undo_access(extent, first, run.next - first, change);
            return status;
        }
        i = run.next;
        address += run.bytes;
    }
    return GPUMEM_OK;
}

gpumem_status gm_extent_mend(struct gm_extent *extent, const struct gm_access_change *all) {
    gpumem_status status = GPUMEM_OK;
    CUdeviceptr address = extent->address;
    for (size_t i = 0; i < extent->count && status == GPUMEM_OK;) {
        struct run run = run_at(extent, i, extent->count, address);
        for (size_t k = 0; k < all->count; k++) {
            all->scratch[k] = all->entries[k];
            all->scratch[k].flags = gm_access_of(run.access, all->entries[k].location);
        }
        if (extent->chunks[i].handle)
            status =
                gm_vmm_access(extent->device, run.address, run.bytes, all->scratch, all->count);
        i = run.next;
        address += run.bytes;
    }
    extent->dirty = status != GPUMEM_OK;
    return status;
}
