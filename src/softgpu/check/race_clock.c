#include "softgpu/check/race_clock.h"

#include <stdlib.h>

struct node {
    uint32_t references;
    uint32_t step;     /* in the sequence */
    uint64_t sequence; /* 0: in none */
    sg_clock child[SG_CLOCK_WIDTH];
};

static bool is_node(sg_clock clock) {
    return clock && !(clock & 1);
}

static struct node *node_of(sg_clock clock) {
    return (struct node *)clock; /* NOLINT(performance-no-int-to-ptr): the tag is in its low bit */
}

static sg_clock moment_clock(uint32_t moment) {
    return moment ? (sg_clock)moment << 1 | 1 : 0;
}

static uint32_t moment_of(sg_clock clock) {
    return (uint32_t)(clock >> 1);
}

unsigned sg_clock_levels(uint64_t blocks) {
    unsigned levels = SG_CLOCK_BLOCK;
    while (blocks > 1) {
        blocks = (blocks + SG_CLOCK_WIDTH - 1) / SG_CLOCK_WIDTH;
        levels++;
    }
    return levels;
}

sg_clock sg_clock_keep(sg_clock clock) {
    if (is_node(clock))
        node_of(clock)->references++;
    return clock;
}

/* Recursion is as deep as the tree, which has at most nine levels. */
void sg_clock_drop(sg_clock clock) { /* NOLINT(misc-no-recursion) */
    if (!is_node(clock) || --node_of(clock)->references > 0)
        return;
    for (unsigned i = 0; i < SG_CLOCK_WIDTH; i++)
        sg_clock_drop(node_of(clock)->child[i]);
    free(node_of(clock));
}

/* A node that owns its children; or their common moment, or one of the given clocks if that is
 * equal. */
static sg_clock make(sg_clock child[SG_CLOCK_WIDTH], sg_clock a, sg_clock b, bool *failed) {
    bool as_a = is_node(a), as_b = is_node(b), even = !is_node(child[0]);
    for (unsigned i = 0; i < SG_CLOCK_WIDTH; i++) {
        as_a = as_a && child[i] == node_of(a)->child[i];
        as_b = as_b && child[i] == node_of(b)->child[i];
        even = even && child[i] == child[0];
    }
    struct node *node = as_a || as_b || even ? NULL : malloc(sizeof *node);
    if (node) {
        node->references = 1;
        node->sequence = 0;
        for (unsigned i = 0; i < SG_CLOCK_WIDTH; i++)
            node->child[i] = child[i];
        return (sg_clock)node;
    }
    sg_clock same = even ? child[0] : as_a ? sg_clock_keep(a) : as_b ? sg_clock_keep(b) : 0;
    *failed = *failed || !(even || as_a || as_b);
    for (unsigned i = 0; i < SG_CLOCK_WIDTH; i++)
        sg_clock_drop(child[i]);
    return same;
}

static sg_clock child_of(sg_clock clock, unsigned index) {
    return is_node(clock) ? node_of(clock)->child[index] : clock;
}

void sg_clock_mark(sg_clock clock, uint64_t sequence, uint32_t step) {
    if (!is_node(clock) || node_of(clock)->sequence)
        return;
    node_of(clock)->sequence = sequence;
    node_of(clock)->step = step;
}

static bool are_in_sequence(sg_clock a, sg_clock b) {
    return is_node(a) && is_node(b) && node_of(a)->sequence &&
           node_of(a)->sequence == node_of(b)->sequence;
}

sg_clock sg_clock_join(sg_clock a, sg_clock b, bool *failed) { /* NOLINT(misc-no-recursion) */
    if (a == b || !b)
        return sg_clock_keep(a);
    if (!a)
        return sg_clock_keep(b);
    if (!is_node(a) && !is_node(b))
        return a > b ? a : b;
    if (are_in_sequence(a, b))
        return sg_clock_keep(node_of(a)->step > node_of(b)->step ? a : b);
    sg_clock child[SG_CLOCK_WIDTH];
    for (unsigned i = 0; i < SG_CLOCK_WIDTH; i++)
        child[i] = sg_clock_join(child_of(a, i), child_of(b, i), failed);
    return make(child, a, b, failed);
}

void sg_clock_add(sg_clock *clock, sg_clock other, bool *failed) {
    if (!other || *clock == other)
        return;
    sg_clock joined = sg_clock_join(*clock, other, failed);
    sg_clock_drop(*clock);
    *clock = joined;
}

static sg_clock raised(sg_clock clock, unsigned levels,
                       uint64_t key, /* NOLINT(misc-no-recursion) */
                       unsigned level, sg_clock moment, bool *failed) {
    if (levels == level)
        return sg_clock_join(clock, moment, failed);
    if (!is_node(clock) && clock >= moment)
        return clock;
    unsigned at = (unsigned)(key >> 5 * (levels - 1)) & (SG_CLOCK_WIDTH - 1);
    sg_clock child[SG_CLOCK_WIDTH];
    for (unsigned i = 0; i < SG_CLOCK_WIDTH; i++)
        child[i] = i == at ? raised(child_of(clock, i), levels - 1, key, level, moment, failed)
                           : sg_clock_keep(child_of(clock, i));
    return make(child, clock, 0, failed);
}

void sg_clock_raise(sg_clock *clock, unsigned levels, uint64_t key, unsigned level, uint32_t moment,
                    bool *failed) {
    sg_clock result = raised(*clock, levels, key, level, moment_clock(moment), failed);
    sg_clock_drop(*clock);
    *clock = result;
}

uint32_t sg_clock_of(sg_clock clock, unsigned levels, uint64_t key) {
    while (is_node(clock)) {
        levels--;
        clock = node_of(clock)->child[key >> 5 * levels & (SG_CLOCK_WIDTH - 1)];
    }
    return moment_of(clock);
}
