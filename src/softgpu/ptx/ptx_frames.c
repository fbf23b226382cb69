/*
 * Local memory of an entry, with the frames of the functions that it calls: ptxas knows how deep
 * calls go and lays them out together, each behind all that may call it. What is called through a
 * register is not known here, and functions that call themselves have frames of another kind, for
 * which CU_LIMIT_STACK_SIZE is; so has what these call. As ptxas 13.0 sums them up.
 */
#include "softgpu/ptx/ptx.h"

static uint64_t aligned(uint64_t value, uint64_t alignment) {
    return (value + alignment - 1) / alignment * alignment;
}

/* By decreasing alignment. */
static uint64_t end_of(const uint64_t *local, uint64_t start, uint64_t *strictest) {
    for (unsigned log = 8; log-- > 0;) {
        uint64_t alignment = (uint64_t)1 << log;
        if (!local[log])
            continue;
        start = aligned(start, alignment) + local[log];
        if (alignment > *strictest)
            *strictest = alignment;
    }
    return start;
}

static void count_callers(struct sg_ptx *ptx, const size_t *visited, size_t count) {
    for (size_t i = 0; i < count; i++) {
        ptx->symbols[visited[i]].callers = 0;
        ptx->symbols[visited[i]].frame_start = 0;
    }
    for (size_t i = 0; i < count; i++) {
        const struct sg_ptx_symbol *caller = &ptx->symbols[visited[i]];
        for (size_t u = 0; u < caller->use_count; u++)
            ptx->symbols[ptx->uses[caller->first_use + u]].callers++;
    }
}

uint64_t sg_ptx_local_bytes(struct sg_ptx *ptx, const uint64_t *own, const size_t *visited,
                            size_t count, size_t *queue) {
    uint64_t most = 0, strictest = 0;
    size_t queued = 0;
    count_callers(ptx, visited, count);
    queue[queued++] = visited[0];
    while (queued) {
        size_t index = queue[--queued];
        const struct sg_ptx_symbol *one = &ptx->symbols[index];
        uint64_t end = end_of(index == visited[0] ? own : one->local, one->frame_start, &strictest);
        most = end > most ? end : most;
        for (size_t u = 0; u < one->use_count; u++) {
            struct sg_ptx_symbol *callee = &ptx->symbols[ptx->uses[one->first_use + u]];
            if (end > callee->frame_start)
                callee->frame_start = end;
            if (--callee->callers == 0 && callee->what == SG_SYMBOL_FUNCTION)
                queue[queued++] = (size_t)(callee - ptx->symbols);
        }
    }
    most = aligned(most, strictest > 8 ? strictest : 8);
    return strictest > 16 ? most + strictest - 16 : most;
}
