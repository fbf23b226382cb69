/* The memory of a mirrored ring: one buffer, mapped twice in a row. */
#include "mapped/ring.h"
#include "memory/core/driver_error.h"
#include "memory/core/vmm_calls.h"
#include "memory/virtual/virtual_resource.h"

#include <stdlib.h>

/* Takes one more reference to each chunk, so that each mapping has its own to give back. */
static gpumem_status retain(struct gm_extent *extent, struct gm_chunk *chunks, size_t *count) {
    gpumem_status status = GPUMEM_OK;
    CUdeviceptr address = extent->address;
    for (size_t i = 0; i < extent->count && status == GPUMEM_OK; i++) {
        chunks[i].bytes = extent->chunks[i].bytes;
        status = gm_vmm_retain(extent->device, extent->meter, address, &chunks[i].handle);
        if (status == GPUMEM_OK)
            ++*count;
        address += chunks[i].bytes;
    }
    return status;
}

static void release(struct gm_extent *extent, const struct gm_chunk *chunks, size_t count) {
    struct gm_error_record saved;
    gm_error_save(&saved);
    while (count--)
        gm_vmm_release(extent->device, extent->meter, chunks[count].handle, chunks[count].bytes);
    gm_error_restore(&saved);
}

static gpumem_status append_again(struct gm_extent *extent) {
    size_t retained = 0, count = extent->count;
    struct gm_chunk *chunks = calloc(count, sizeof *chunks);
    if (!chunks)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory to note %zu chunks", count);
    gpumem_status status = retain(extent, chunks, &retained);
    if (status == GPUMEM_OK)
        status = gm_extent_adopt(extent, chunks, count);
    if (status != GPUMEM_OK)
        release(extent, chunks, retained);
    free(chunks);
    return status;
}

gpumem_status gm_ring_map_twice(gpumem_buffer *buffer) {
    struct gm_virtual_resource *v = gm_virtual_behind(buffer->resource);
    struct gm_range *range = buffer->allocation.cookie;
    gpumem_status status;
    pthread_mutex_lock(&buffer->lock);
    pthread_rwlock_rdlock(&v->mapped.lock);
    if (range->extent.committed == gpumem_buffer_size(buffer)) {
        atomic_store(&range->extent.shared, 1); /* its chunks are mapped twice: no reuse */
        status = append_again(&range->extent);
    } else {
        status = gm_fail(GPUMEM_ERROR_NOT_SUPPORTED,
                         "a mirrored ring has exactly its bytes, and the resource takes %zu for "
                         "%zu (minimum_chunk_bytes)",
                         range->extent.committed, gpumem_buffer_size(buffer));
    }
    pthread_rwlock_unlock(&v->mapped.lock);
    pthread_mutex_unlock(&buffer->lock);
    return status;
}
