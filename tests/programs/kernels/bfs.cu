// Distances in a graph, level by level: a frontier of vertices whose neighbours are claimed by
// compare and swap and put into the next one with one atomic for a warp; and components by labels
// that sink.
#include "device.cuh"

KERNEL expand(const u32 *rows, const u32 *edges, const u32 *frontier, u32 size, u32 *distances,
              u32 level, u32 *next, u32 *next_size) {
    u32 vertex = index() < size ? frontier[index()] : ~0u;
    u32 at = vertex == ~0u ? 0 : rows[vertex], end = vertex == ~0u ? 0 : rows[vertex + 1];
    while (ballot(at < end)) {
        u32 found = at < end ? edges[at++] : ~0u;
        bool own = found != ~0u && atomic_swap_if(&distances[found], ~0u, level) == ~0u;
        u32 all = ballot(own), base = 0;
        if (!all)
            continue;
        if (lane() == 0)
            base = atomic_add(next_size, (u32)__builtin_popcount(all));
        base = shuffle(base, 0);
        if (own)
            next[base + (u32)__builtin_popcount(all & ((1u << lane()) - 1))] = found;
    }
}

KERNEL sink(const u32 *rows, const u32 *edges, u32 count, u32 *labels, u32 *changed) {
    if (index() >= count)
        return;
    u32 least = ((volatile u32 *)labels)[index()];
    for (u32 i = rows[index()]; i < rows[index() + 1]; i++) {
        u32 other = ((volatile u32 *)labels)[edges[i]];
        least = other < least ? other : least;
    }
    for (u32 i = rows[index()]; i < rows[index() + 1]; i++)
        if (atomic_min(&labels[edges[i]], least) > least)
            atomic_or(changed, 1u);
    if (atomic_min(&labels[index()], least) > least)
        atomic_or(changed, 1u);
}
