/*
 * The order in which blocks begin: PTX leaves it open, so a random schedule permutes it. Programs
 * rely on hardware's ascending order nevertheless, when a block waits for the one in front of it
 * and not all fit at once. So as many blocks as can be resident are permuted, then the next as
 * many: the first unfinished one is resident then, or there is room for it.
 */
#include "softgpu/engine/async.h"

static uint64_t mixed(uint64_t z) {
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* A permutation of the numbers below `count`, without memory: one of the numbers below the next
 * power of two, again and again until the result is one of them. */
static uint64_t permuted(uint64_t x, uint64_t count, uint64_t key) {
    enum { ROUNDS = 4 };
    if (count < 2)
        return x;
    unsigned bits = 64 - (unsigned)__builtin_clzll(count - 1);
    uint64_t mask = UINT64_MAX >> (64 - bits);
    do
        for (unsigned r = 0; r < ROUNDS; r++) {
            uint64_t k = mixed(key + r * UINT64_C(0x9e3779b97f4a7c15));
            x = (x * (k | 1) + (k >> 32)) & mask;
            x ^= x >> (bits + 1) / 2;
        }
    while (x >= count);
    return x;
}

uint64_t sg_block_order(const struct sg_grid *grid, uint64_t order) {
    if (grid->launch.schedule != SG_GRID_RANDOM)
        return order;
    uint64_t size = grid->cluster_size, count = grid->blocks / size, number = order / size;
    uint64_t fit = grid->launch.cooperative ? count : grid->resident_most / size;
    uint64_t first = fit ? number / fit * fit : number, left = count - first;
    uint64_t key = mixed(grid->launch.seed * UINT64_C(0x9e3779b97f4a7c15) + first);
    return (first + permuted(number - first, left < fit ? left : fit, key)) * size + order % size;
}
