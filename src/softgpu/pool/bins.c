/* The index of free blocks by size. */
#include "softgpu/pool/internal.h"

/* How many blocks of one class are compared before the best of them, or a higher class, is taken:
 * long lists of equal blocks must not make an allocation slow. */
#define SEARCH_LIMIT 64

static unsigned bin_of(size_t size) {
    uint64_t units = size / SG_BLOCK_UNIT;
    if (units < 16)
        return (unsigned)units;
    unsigned log = 63 - (unsigned)__builtin_clzll(units);
    unsigned eighth = (unsigned)(units >> (log - 3)) & 7;
    return 16 + (log - 4) * 8 + eighth;
}

void sg_bins_add(struct sg_bins *bins, struct sg_block *block) {
    unsigned bin = bin_of(block->size);
    block->bin_previous = NULL;
    block->bin_next = bins->bins[bin];
    if (block->bin_next)
        block->bin_next->bin_previous = block;
    bins->bins[bin] = block;
    bins->used[bin / 64] |= UINT64_C(1) << (bin % 64);
}

void sg_bins_remove(struct sg_bins *bins, struct sg_block *block) {
    unsigned bin = bin_of(block->size);
    if (block->bin_next)
        block->bin_next->bin_previous = block->bin_previous;
    if (block->bin_previous) {
        block->bin_previous->bin_next = block->bin_next;
        return;
    }
    bins->bins[bin] = block->bin_next;
    if (!block->bin_next)
        bins->used[bin / 64] &= ~(UINT64_C(1) << (bin % 64));
}

/* The first class at or above `bin` with a block, or SG_BIN_COUNT. */
static unsigned next_used(const struct sg_bins *bins, unsigned bin) {
    for (unsigned word = bin / 64; word < SG_BIN_COUNT / 64; word++) {
        uint64_t bits = bins->used[word];
        if (word == bin / 64)
            bits &= ~UINT64_C(0) << (bin % 64);
        if (bits)
            return word * 64 + (unsigned)__builtin_ctzll(bits);
    }
    return SG_BIN_COUNT;
}

static struct sg_block *best_of(struct sg_block *block, size_t size, uint64_t most) {
    struct sg_block *best = NULL;
    for (unsigned seen = 0; block && seen < SEARCH_LIMIT; block = block->bin_next, seen++) {
        if (block->size < size || block->number > most)
            continue;
        if (block->size == size)
            return block;
        if (!best || block->size < best->size)
            best = block;
    }
    return best;
}

struct sg_block *sg_bins_find(const struct sg_bins *bins, size_t size, uint64_t most) {
    unsigned bin = next_used(bins, bin_of(size));
    while (bin < SG_BIN_COUNT) {
        struct sg_block *best = best_of(bins->bins[bin], size, most);
        if (best)
            return best;
        bin = next_used(bins, bin + 1);
    }
    return NULL;
}
