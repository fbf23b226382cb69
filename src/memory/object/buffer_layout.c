/* The layout of a buffer's memory. */
#include <gpumem/layout.h>

#include "base/cancel.h"
#include "base/options.h"
#include "memory/core/driver_error.h"
#include "memory/object/buffer.h"
#include "memory/object/watch.h"

/* Unique in the process, so that no two layouts are confused. */
static _Atomic uint64_t last_generation;

static uint64_t generation_of(gpumem_buffer *buffer) {
    pthread_mutex_lock(&buffer->lock);
    if (!buffer->layout_generation || buffer->queried_layout != buffer->layout) {
        buffer->layout_generation = atomic_fetch_add(&last_generation, 1) + 1;
        buffer->queried_layout = buffer->layout;
    }
    uint64_t generation = buffer->layout_generation;
    pthread_mutex_unlock(&buffer->lock);
    return generation;
}

static void fill(gpumem_buffer *buffer, gpumem_layout *layout) {
    layout->generation = generation_of(buffer);
    layout->base = buffer->allocation.pointer;
    layout->granularity = gm_buffer_granularity(buffer);
    layout->bytes = buffer->allocation.committed_bytes;
    layout->capacity = buffer->allocation.capacity;
    layout->segment_count = 1;
    if (buffer->resource->chunks)
        return;
    /* Bytes from rounding or alignment need not be accessible at the address. */
    size_t unit = layout->granularity;
    layout->bytes = (buffer->allocation.bytes + unit - 1) / unit * unit;
    if (layout->capacity < layout->bytes)
        layout->capacity = layout->bytes;
}

static void fill_segments(const gpumem_buffer *buffer, gpumem_layout *layout,
                          gpumem_segment *segments, size_t room) {
    const struct gm_chunk *chunks;
    gm_chunks_fn fn = buffer->resource->chunks;
    if (!fn) {
        if (room)
            segments[0] = (gpumem_segment){.bytes = layout->bytes};
        return;
    }
    size_t offset = 0;
    layout->segment_count = fn(&buffer->allocation, &chunks);
    for (size_t i = 0; i < layout->segment_count && i < room; i++) {
        segments[i] = (gpumem_segment){
            .offset = offset, .bytes = chunks[i].bytes, .handle = chunks[i].handle};
        offset += chunks[i].bytes;
    }
}

gpumem_status gpumem_buffer_get_layout(gpumem_buffer *buffer, gpumem_layout *layout,
                                       gpumem_segment *segments, size_t room) {
    GM_UNCANCELLED;
    GM_CHECK(buffer, "gpumem_buffer_get_layout");
    GM_REQUIRE(segments || !room, "gpumem_buffer_get_layout: segments is NULL, and room %zu", room);
    gpumem_buffer *root = buffer->root ? buffer->root : buffer;
    gpumem_buffer *inner = gm_buffer_innermost(root);
    if (!inner)
        inner = root; /* a user's wrapper that names no buffer */
    gpumem_layout filled = {.size = sizeof filled};
    fill(inner, &filled);
    /* Checks the size before anything is written. */
    gpumem_status status = GM_RESULT_WRITE(gpumem_layout, layout, &filled);
    if (status != GPUMEM_OK)
        return status;
    fill_segments(inner, &filled, segments, room);
    filled.offset = (size_t)(buffer->allocation.pointer - inner->allocation.pointer);
    return GM_RESULT_WRITE(gpumem_layout, layout, &filled);
}
