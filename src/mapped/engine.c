/* Chooses how a copy is made. */
#include "mapped/engine.h"

#include "mapped/host_view.h"
#include "mapped/incoherent.h"
#include "mapped/mapper.h"
#include "memory/object/buffer.h"

#include <string.h>

struct gm_engine *gm_engine_of(gpumem_buffer *buffer) {
    struct gm_mapper *mapper = gm_host_view_mapper(buffer);
    if (mapper)
        return &mapper->engine;
    gpumem_buffer *root = buffer->root ? buffer->root : buffer;
    if (root->resource->engine)
        return root->resource->engine;
    const gpumem_buffer *inner = gm_buffer_innermost(root); /* for wrappers made by the user */
    return inner ? inner->resource->engine : NULL;
}

gpumem_status gm_engine_flush(const void *begin, size_t bytes) {
    gm_mapped_fence();
    return gm_incoherent_flush(begin, bytes);
}

static bool is_cut_over(const struct gm_copy_cutover *cutover, size_t bytes) {
    return bytes >= cutover->pinned || bytes >= cutover->pageable;
}

static const struct gm_copy_plan *plan_of(const struct gm_engine *engine) {
    return &gm_plan_now(engine->plans)->plan;
}

void gm_engine_store(struct gm_engine *engine, unsigned char *to, const void *from, size_t bytes) {
    if (engine)
        gm_copy_store(gm_plan_class(gm_plan_now(engine->plans), bytes)->store, to, from, bytes);
    else
        memcpy(to, from, bytes);
}

bool gm_engine_write_at_once(struct gm_engine *engine, unsigned char *to, const void *from,
                             size_t bytes) {
    if (!engine || !gm_incoherent_none())
        return false;
    const struct gm_kept_plan *kept = gm_plan_now(engine->plans);
    if (engine->coherent && is_cut_over(&kept->plan.store, bytes))
        return false;
    gm_copy_store(gm_plan_class(kept, bytes)->store, to, from, bytes);
    gm_mapped_fence();
    return true;
}

/* Memory that needs flushes is written by the CPU alone. Its caches may hold lines that the
 * driver's copy writes in part; nothing would keep those from being written back over it later. */
gpumem_status gm_engine_write(struct gm_engine *engine, struct gm_place to, const void *from,
                              size_t bytes) {
    if (engine && engine->coherent && is_cut_over(&plan_of(engine)->store, bytes)) {
        gpumem_status status;
        switch (gm_engine_cut_over(engine, GM_COPY_STORE, (void *)(uintptr_t)from, to.device, bytes,
                                   &status)) {
        case GM_ENGINE_DONE:
            return GPUMEM_OK;
        case GM_ENGINE_FAILED:
            return status;
        case GM_ENGINE_NOT_DONE:
            break;
        }
    }
    gm_engine_store(engine, to.host, from, bytes);
    return gm_engine_flush(to.host, bytes);
}

static void load(struct gm_engine *engine, void *to, const unsigned char *from, size_t bytes) {
    if (!engine) {
        memcpy(to, from, bytes);
        return;
    }
    gm_copy_fence_load();
    gm_copy_load(gm_plan_class(gm_plan_now(engine->plans), bytes)->load, to, from, bytes);
}

gpumem_status gm_engine_read(struct gm_engine *engine, void *to, struct gm_place from,
                             size_t bytes) {
    gpumem_status status;
    if (engine && is_cut_over(&plan_of(engine)->load, bytes)) {
        /* The copy must include what this thread stored before. */
        status = gm_engine_flush(from.host, bytes);
        if (status != GPUMEM_OK)
            return status;
        switch (gm_engine_cut_over(engine, GM_COPY_LOAD, to, from.device, bytes, &status)) {
        case GM_ENGINE_DONE:
            return GPUMEM_OK;
        case GM_ENGINE_FAILED:
            return status;
        case GM_ENGINE_NOT_DONE:
            break;
        }
    }
    status = gm_incoherent_invalidate(from.host, bytes);
    if (status == GPUMEM_OK)
        load(engine, to, from.host, bytes);
    return status;
}
