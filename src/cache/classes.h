/*
 * Size classes of small blocks: multiples of 256 bytes up to 1 KiB, then four to a doubling, so
 * that rounding wastes less than a fifth. Every class is a multiple of the unit of spans.
 */
#ifndef GM_CACHE_CLASSES_H
#define GM_CACHE_CLASSES_H

#include <stddef.h>

#define GM_CLASS_UNIT  ((size_t)256)
#define GM_CLASS_COUNT 44u
#define GM_CLASS_MOST  ((size_t)1 << 20)

/* The class of the smallest blocks that hold `bytes`, which is 1 to GM_CLASS_MOST. */
static inline unsigned gm_class_of(size_t bytes) {
    size_t last = (bytes - 1) / GM_CLASS_UNIT; /* units, less one */
    if (last < 4)
        return (unsigned)last;
    unsigned power = 63u - (unsigned)__builtin_clzll((unsigned long long)last);
    unsigned quarter = (unsigned)(last >> (power - 2)) & 3u;
    return 4u * (power - 1) + quarter;
}

static inline size_t gm_class_bytes(unsigned class) {
    if (class < 4)
        return (class + 1) * GM_CLASS_UNIT;
    unsigned power = class / 4 + 1, quarter = class % 4;
    return (((size_t)1 << power) + ((size_t)(quarter + 1) << (power - 2))) * GM_CLASS_UNIT;
}

#endif
