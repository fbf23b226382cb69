/* Runs of bits in words of 64. */
#ifndef SG_CHECK_BITS_H
#define SG_CHECK_BITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool sg_bit(const uint64_t *bits, size_t at) {
    return bits[at / 64] >> at % 64 & 1;
}

/* A mask of the bits of a word from `at`, at most `left` of them; *count: how many. */
static inline uint64_t sg_bits_mask(size_t at, size_t left, size_t *count) {
    size_t room = 64 - at % 64;
    *count = left < room ? left : room;
    return (*count == 64 ? UINT64_MAX : (UINT64_C(1) << *count) - 1) << at % 64;
}

static inline void sg_bits_set(uint64_t *bits, size_t at, size_t size, bool value) {
    for (size_t count; size > 0; at += count, size -= count) {
        uint64_t mask = sg_bits_mask(at, size, &count);
        if (value)
            bits[at / 64] |= mask;
        else
            bits[at / 64] &= ~mask;
    }
}

/* The number of bits from `at` before the first of the given value; `size` if there is none. */
static inline size_t sg_bits_first(const uint64_t *bits, size_t at, size_t size, bool value) {
    size_t start = at, count;
    for (size_t left = size; left > 0; at += count, left -= count) {
        uint64_t mask = sg_bits_mask(at, left, &count);
        uint64_t found = (value ? bits[at / 64] : ~bits[at / 64]) & mask;
        if (found)
            return at / 64 * 64 + (size_t)__builtin_ctzll(found) - start;
    }
    return size;
}

#endif
