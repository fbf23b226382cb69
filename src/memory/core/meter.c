#include "memory/core/meter.h"

/* Can be temporarily negative: threads report late, and one may free and report what another has
 * allocated but not yet reported. */
static int is_negative(uint64_t value) {
    return value > INT64_MAX;
}

static void raise_high(_Atomic uint64_t *high, uint64_t value) {
    uint64_t seen = atomic_load_explicit(high, memory_order_relaxed);
    while (!is_negative(value) && value > seen &&
           !atomic_compare_exchange_weak_explicit(high, &seen, value, memory_order_relaxed,
                                                  memory_order_relaxed)) {
    }
}

static int is_of_buffers(enum gm_count count) {
    return count == GM_IN_USE || count == GM_ALLOCATIONS || count == GM_ALLOCATIONS_TOTAL ||
           count == GM_ALLOCATIONS_FAILED;
}

static struct gm_meter *next_of(const struct gm_meter *meter, enum gm_count count) {
    return meter->pieces && is_of_buffers(count) ? meter->users : meter->parent;
}

void gm_meter_add(struct gm_meter *meter, enum gm_count count, uint64_t value) {
    for (; meter; meter = next_of(meter, count)) {
        uint64_t before =
            atomic_fetch_add_explicit(&meter->now[count], value, memory_order_relaxed);
        raise_high(&meter->high[count], before + value);
    }
}

void gm_meter_raise(struct gm_meter *meter, enum gm_count count, uint64_t by) {
    for (; meter; meter = next_of(meter, count))
        raise_high(&meter->high[count],
                   atomic_load_explicit(&meter->now[count], memory_order_relaxed) + by);
}

static uint64_t high(const struct gm_meter *meter, enum gm_count count) {
    return atomic_load_explicit(&meter->high[count], memory_order_relaxed);
}

void gm_meter_keep_high(struct gm_meter *meter, enum gm_count count, uint64_t *value) {
    raise_high(&meter->high[count], *value);
    *value = high(meter, count);
}

void gm_meter_subtract(struct gm_meter *meter, enum gm_count count, uint64_t value) {
    for (; meter; meter = next_of(meter, count))
        atomic_fetch_sub_explicit(&meter->now[count], value, memory_order_relaxed);
}

void gm_meter_hand_out_pieces(struct gm_meter *meter, struct gm_meter *outermost) {
    struct gm_meter *last = meter;
    while (last->parent && last->parent != outermost)
        last = last->parent;
    meter->users = last->parent;
    meter->pieces = 1;
}

static void count_one(struct gm_meter *meter, enum gm_count count, uint64_t value, int sign) {
    uint64_t by = sign > 0 ? value : 0 - value;
    uint64_t before = atomic_fetch_add_explicit(&meter->now[count], by, memory_order_relaxed);
    raise_high(&meter->high[count], before + by);
}

void gm_meter_count_whole(struct gm_meter *meter, uint64_t bytes, int sign) {
    struct gm_meter *at = meter->pieces ? meter->parent : NULL;
    for (; at && at != meter->users; at = next_of(at, GM_IN_USE)) {
        count_one(at, GM_IN_USE, bytes, sign);
        count_one(at, GM_ALLOCATIONS, 1, sign);
        if (sign > 0)
            count_one(at, GM_ALLOCATIONS_TOTAL, 1, sign);
    }
}

void gm_meter_gave_back(struct gm_meter *meter, uint64_t bytes) {
    for (; meter; meter = meter->parent)
        atomic_fetch_add_explicit(&meter->given_back, bytes, memory_order_relaxed);
}

void gm_meter_quarantine(struct gm_meter *meter, uint64_t bytes) {
    gm_meter_add(meter, GM_QUARANTINED, 1);
    gm_meter_add(meter, GM_QUARANTINED_BYTES, bytes);
}

void gm_meter_quarantine_memory(struct gm_meter *meter, uint64_t bytes) {
    gm_meter_quarantine(meter, bytes);
    gm_meter_add(meter, GM_COMMITTED, bytes);
}

static uint64_t now(const struct gm_meter *meter, enum gm_count count) {
    uint64_t value = atomic_load_explicit(&meter->now[count], memory_order_relaxed);
    return is_negative(value) ? 0 : value;
}

void gm_meter_read(const struct gm_meter *meter, gpumem_stats *stats) {
    *stats = (gpumem_stats){
        .size = sizeof *stats,
        .reserved_bytes = now(meter, GM_RESERVED),
        .committed_bytes = now(meter, GM_COMMITTED),
        .committed_high = high(meter, GM_COMMITTED),
        .in_use_bytes = now(meter, GM_IN_USE),
        .in_use_high = high(meter, GM_IN_USE),
        .cached_bytes = now(meter, GM_CACHED),
        .pinned_bytes = now(meter, GM_PINNED),
        .pinned_high = high(meter, GM_PINNED),
        .imported_bytes = now(meter, GM_IMPORTED),
        .allocations = now(meter, GM_ALLOCATIONS),
        .allocations_total = now(meter, GM_ALLOCATIONS_TOTAL),
        .allocations_failed = now(meter, GM_ALLOCATIONS_FAILED),
        .chunks = now(meter, GM_CHUNKS),
        .mappings = now(meter, GM_MAPPINGS),
        .deferred_frees = now(meter, GM_DEFERRED),
        .deferred_bytes = now(meter, GM_DEFERRED_BYTES),
        .exports = now(meter, GM_EXPORTS),
        .quarantined = now(meter, GM_QUARANTINED),
        .quarantined_bytes = now(meter, GM_QUARANTINED_BYTES),
    };
}
