/* Additional mappings of an extent's memory, which follow its changes. */
#include "memory/core/driver_error.h"
#include "memory/virtual/extent.h"

gpumem_status gm_mirrors_attach(struct gm_extent *extent, size_t offset,
                                const struct gm_chunk *chunk) {
    gpumem_status status = GPUMEM_OK;
    struct gm_mirror *mirror = extent->mirrors;
    for (; mirror && chunk->handle; mirror = mirror->next) {
        status = mirror->ops->attach(mirror, offset, chunk);
        if (status != GPUMEM_OK)
            break;
    }
    if (status == GPUMEM_OK)
        return GPUMEM_OK;
    struct gm_error_record saved;
    gm_error_save(&saved);
    for (struct gm_mirror *done = extent->mirrors; done != mirror; done = done->next)
        done->ops->detach(done, offset, chunk->bytes);
    gm_error_restore(&saved);
    return status;
}

void gm_mirrors_detach(struct gm_extent *extent, size_t offset, const struct gm_chunk *chunk) {
    for (struct gm_mirror *mirror = extent->mirrors; mirror; mirror = mirror->next)
        if (chunk->handle)
            mirror->ops->detach(mirror, offset, chunk->bytes);
}

/* The first `count` chunks. */
static void detach_all(struct gm_extent *extent, struct gm_mirror *mirror, size_t count) {
    size_t offset = 0;
    for (size_t i = 0; i < count; i++) {
        if (extent->chunks[i].handle)
            mirror->ops->detach(mirror, offset, extent->chunks[i].bytes);
        offset += extent->chunks[i].bytes;
    }
}

gpumem_status gm_extent_add_mirror(struct gm_extent *extent, struct gm_mirror *mirror) {
    gpumem_status status = GPUMEM_OK;
    size_t offset = 0, done = 0;
    for (; done < extent->count; done++) {
        if (extent->chunks[done].handle)
            status = mirror->ops->attach(mirror, offset, &extent->chunks[done]);
        if (status != GPUMEM_OK)
            break;
        offset += extent->chunks[done].bytes;
    }
    if (status != GPUMEM_OK) {
        struct gm_error_record saved;
        gm_error_save(&saved);
        detach_all(extent, mirror, done);
        gm_error_restore(&saved);
        return status;
    }
    mirror->next = extent->mirrors;
    extent->mirrors = mirror;
    return GPUMEM_OK;
}

void gm_extent_remove_mirror(struct gm_extent *extent, struct gm_mirror *mirror) {
    for (struct gm_mirror **at = &extent->mirrors; *at; at = &(*at)->next) {
        if (*at != mirror)
            continue;
        *at = mirror->next;
        break;
    }
    detach_all(extent, mirror, extent->count);
}
