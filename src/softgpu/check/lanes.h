/* The span of the lanes of an access: most accesses are runs, for which one look is enough. */
#ifndef SG_CHECK_LANES_H
#define SG_CHECK_LANES_H

#include "softgpu/engine/watch.h"

#include <stdbool.h>

struct sg_lanes_span {
    uint64_t low, end; /* from the lowest byte to after the highest */
    bool run;          /* contiguous lanes: every byte of the span is accessed */
};

static inline struct sg_lanes_span sg_lanes_span(const struct sg_watched_access *access) {
    const uint64_t *address = access->address;
    uint32_t lanes = access->lanes;
    if (lanes == UINT32_MAX) { /* without a branch in the loop */
        uint64_t low = address[0], high = address[0], apart = 0;
        for (unsigned l = 1; l < 32; l++) {
            low = address[l] < low ? address[l] : low;
            high = address[l] > high ? address[l] : high;
            apart |= (address[l] - address[l - 1]) ^ access->size;
        }
        return (struct sg_lanes_span){low, high + access->size, apart == 0};
    }
    struct sg_lanes_span span = {.low = UINT64_MAX, .run = true};
    uint64_t next = 0;
    for (uint32_t left = lanes; left; left &= left - 1) {
        uint64_t at = address[__builtin_ctz(left)];
        span.run = span.run && (left == lanes || at == next);
        next = at + access->size;
        span.low = at < span.low ? at : span.low;
        span.end = next > span.end ? next : span.end;
    }
    return span;
}

#endif
