/* The fast paths: blocks that the calling thread has cached, and blocks that come back to it. The
 * thread's cache is touched between gm_thread_enter and gm_thread_leave, or with the cache's lock
 * held. */
#include "cache/cache.h"

#include "base/cancel.h"
#include "memory/core/current_context.h"
#include "memory/core/stream_waits.h"
#include "memory/object/buffer.h"

/* A thread adds its counts to the shared meter when they reach this much: high-water marks are
 * accurate to this, times the number of threads. */
#define REPORT_BYTES ((int64_t)1 << 20)
#define REPORT_CALLS 1024

/* Freed blocks that share an event: recording and querying take a microsecond on hardware. */
#define HOLD_BATCH 32

/* ---- Counting -------------------------------------------------------------------------------- */

static void count(struct gm_cache *cache, struct gm_thread_cache *thread, int64_t bytes,
                  int allocations) {
    thread->in_use += bytes;
    thread->allocations += allocations;
    thread->total += allocations > 0;
    if (thread->in_use > REPORT_BYTES || thread->in_use < -REPORT_BYTES ||
        thread->total >= REPORT_CALLS || thread->allocations < -REPORT_CALLS)
        gm_thread_report(cache, thread);
}

/* ---- Bins ------------------------------------------------------------------------------------ */

static struct gm_block *pop(struct gm_bin *bin) {
    if (!bin->head) {
        bin->head = bin->spare;
        bin->count = bin->spare_count;
        bin->spare = NULL;
        bin->spare_count = 0;
    }
    struct gm_block *block = bin->head;
    if (block) {
        bin->head = block->next;
        bin->count--;
    }
    return block;
}

/* Returns a magazine for which there is no room, as a chain, or NULL. */
static struct gm_block *push(struct gm_bin *bin, struct gm_block *block) {
    struct gm_block *surplus = NULL;
    if (bin->count >= gm_magazine_size(block->class)) {
        surplus = bin->spare;
        if (surplus)
            surplus->count = bin->spare_count;
        bin->spare = bin->head;
        bin->spare_count = bin->count;
        bin->head = NULL;
        bin->count = 0;
    }
    block->next = bin->head;
    bin->head = block;
    bin->count++;
    return surplus;
}

/* Memory that the CPU writes is ready for any stream, and in the first slot. */
static struct gm_slot *slot_to_take(struct gm_cache *cache, struct gm_thread_cache *thread,
                                    CUstream stream) {
    if (cache->host)
        return thread->slots[0].lane ? &thread->slots[0] : NULL;
    for (unsigned i = 0; i < GM_SLOTS; i++)
        if (thread->slots[i].stream == stream && thread->slots[i].lane)
            return &thread->slots[i];
    return NULL;
}

static struct gm_slot *slot_of(struct gm_thread_cache *thread, const struct gm_lane *lane) {
    for (unsigned i = 0; i < GM_SLOTS; i++)
        if (thread->slots[i].lane == lane)
            return &thread->slots[i];
    return NULL;
}

struct gm_block *gm_magazine_pop(struct gm_cache *cache, size_t bytes, CUstream stream,
                                 int counted) {
    unsigned class = gm_class_of(bytes);
    struct gm_thread_cache *thread = gm_thread_cache_of(cache);
    if (!thread)
        return NULL;
    struct gm_block *block = NULL;
    gm_thread_enter(thread);
    struct gm_slot *slot = slot_to_take(cache, thread, stream);
    if (slot)
        block = pop(&slot->bins[class]);
    if (block) {
        thread->bytes -= gm_class_bytes(class);
        if (counted)
            count(cache, thread, (int64_t)bytes, 1);
    }
    gm_thread_leave(thread);
    return block;
}

struct gm_block *gm_magazine_pop_ready(struct gm_cache *cache, unsigned class) {
    struct gm_thread_cache *thread = gm_thread_cache_known(cache);
    struct gm_block *block = NULL;
    if (!thread || !cache->host)
        return NULL;
    if (thread->slots[0].lane)
        block = pop(&thread->slots[0].bins[class]);
    if (block)
        thread->bytes -= gm_class_bytes(class);
    return block;
}

void gm_magazine_count(struct gm_cache *cache, size_t bytes) {
    struct gm_thread_cache *thread = gm_thread_cache_of(cache);
    if (thread) {
        gm_thread_enter(thread);
        count(cache, thread, (int64_t)bytes, 1);
        gm_thread_leave(thread);
        return;
    }
    gm_meter_add(&cache->resource->meter, GM_IN_USE, bytes);
    gm_meter_add(&cache->resource->meter, GM_ALLOCATIONS, 1);
    gm_meter_add(&cache->resource->meter, GM_ALLOCATIONS_TOTAL, 1);
}

/* ---- Slots and holds of the calling thread; the cache's lock is held ------------------------- */

static struct gm_slot *open_slot(struct gm_cache *cache, struct gm_thread_cache *thread,
                                 struct gm_lane *lane) {
    struct gm_slot *slot = slot_of(thread, lane);
    if (slot)
        return slot;
    slot = slot_of(thread, NULL);
    if (cache->host)
        slot = &thread->slots[0];
    else if (!slot)
        slot = &thread->slots[thread->slot_victim++ % GM_SLOTS];
    gm_slot_flush(thread, slot);
    slot->stream = lane->stream;
    slot->lane = lane;
    return slot;
}

void gm_magazine_fill(struct gm_cache *cache, struct gm_lane *lane, struct gm_block *chain) {
    struct gm_thread_cache *thread = gm_thread_cache_known(cache);
    unsigned class = chain->class, blocks = 0;
    for (struct gm_block *block = chain; block; block = block->next)
        blocks++;
    size_t bytes = blocks * gm_class_bytes(class);
    if (!thread || lane->ended || thread->bytes + bytes > cache->thread_bytes) {
        gm_lane_give(lane, chain, blocks);
        return;
    }
    struct gm_slot *slot = open_slot(cache, thread, lane);
    struct gm_bin *bin = &slot->bins[class];
    if (bin->head) {
        gm_lane_give(lane, chain, blocks);
        return;
    }
    bin->head = chain;
    bin->count = blocks;
    thread->bytes += bytes;
}

static void retire_hold(struct gm_cache *cache, struct gm_thread_cache *thread,
                        struct gm_hold *hold, struct gm_late *late) {
    struct gm_block *filling = hold->filling, *marked = hold->marked;
    for (struct gm_block *block = filling; block; block = block->next)
        thread->bytes -= gm_class_bytes(block->class);
    for (struct gm_block *block = marked; block; block = block->next)
        thread->bytes -= gm_class_bytes(block->class);
    *hold = (struct gm_hold){0};
    if (marked)
        gm_pending_add(cache, marked);
    if (filling) {
        if (gm_late_enter(late) == GPUMEM_OK)
            gm_waits_mark(&filling->buffer);
        gm_pending_add(cache, filling);
    }
}

void gm_holds_retire(struct gm_cache *cache, struct gm_thread_cache *thread, CUstream stream) {
    for (unsigned i = 0; i < GM_SLOTS; i++)
        if (thread->holds[i].used && thread->holds[i].stream == stream)
            retire_hold(cache, thread, &thread->holds[i], NULL);
}

static struct gm_hold *find_hold(struct gm_thread_cache *thread, CUstream stream) {
    for (unsigned i = 0; i < GM_SLOTS; i++)
        if (thread->holds[i].used && thread->holds[i].stream == stream)
            return &thread->holds[i];
    return NULL;
}

static struct gm_hold *open_hold(struct gm_cache *cache, struct gm_thread_cache *thread,
                                 CUstream stream, struct gm_late *late) {
    struct gm_hold *hold = find_hold(thread, stream);
    for (unsigned i = 0; !hold && i < GM_SLOTS; i++)
        if (!thread->holds[i].used)
            hold = &thread->holds[i];
    if (!hold)
        hold = &thread->holds[thread->hold_victim++ % GM_SLOTS];
    if (hold->used && hold->stream != stream)
        retire_hold(cache, thread, hold, late);
    hold->stream = stream;
    hold->used = 1;
    return hold;
}

/* The streams have passed: the chain may be handed out again. */
static void make_ready(struct gm_cache *cache, struct gm_thread_cache *thread,
                       struct gm_block *chain) {
    struct gm_slot *slot = open_slot(cache, thread, cache->shared);
    struct gm_block *next;
    for (struct gm_block *block = chain; block; block = next) {
        next = block->next;
        struct gm_block *surplus = push(&slot->bins[block->class], block);
        if (!surplus)
            continue;
        thread->bytes -= surplus->count * gm_class_bytes(surplus->class);
        gm_lane_give(cache->shared, surplus, surplus->count);
    }
}

static int settle_hold(struct gm_cache *cache, struct gm_thread_cache *thread, struct gm_hold *hold,
                       struct gm_late *late) {
    int came = 0;
    if ((!hold->marked && !hold->filling) || gm_late_enter(late) != GPUMEM_OK)
        return 0;
    struct gm_block *marked = hold->marked;
    if (marked && gm_waits_passed(&marked->buffer, 0)) {
        hold->marked = NULL;
        make_ready(cache, thread, marked);
        came = 1;
    }
    if (hold->marked)
        return came;
    struct gm_block *filling = hold->filling;
    hold->filling = NULL;
    hold->count = 0;
    if (filling && gm_waits_mark(&filling->buffer)) {
        make_ready(cache, thread, filling);
        came = 1;
    } else {
        hold->marked = filling;
    }
    return came;
}

int gm_holds_settle(struct gm_cache *cache, struct gm_late *late) {
    struct gm_thread_cache *thread = gm_thread_cache_known(cache);
    int came = 0;
    for (unsigned i = 0; thread && i < GM_SLOTS; i++)
        if (thread->holds[i].used)
            came |= settle_hold(cache, thread, &thread->holds[i], late);
    return came;
}

/* ---- Coming back ----------------------------------------------------------------------------- */

/* A block used by no stream but its lane's. Returns 0 if the thread has no place for it. */
static int keep(struct gm_cache *cache, struct gm_thread_cache *thread, struct gm_block *block,
                struct gm_block **surplus, int *due) {
    struct gm_hold *hold = NULL;
    if (cache->host && block->buffer.wait_count) {
        hold = find_hold(thread, block->buffer.waits[0].stream);
        if (!hold || block->buffer.waits[0].stream == GPUMEM_STREAM_PER_THREAD)
            return 0;
        block->next = hold->filling;
        hold->filling = block;
        *due = ++hold->count % HOLD_BATCH == 0;
    } else {
        struct gm_slot *slot = slot_of(thread, block->segment->lane);
        if (!slot || (!cache->host && block->buffer.waits[0].stream != slot->stream))
            return 0;
        *surplus = push(&slot->bins[block->class], block);
    }
    thread->bytes += gm_class_bytes(block->class);
    if (*surplus)
        thread->bytes -= (*surplus)->count * gm_class_bytes((*surplus)->class);
    *due |= thread->bytes > cache->thread_bytes;
    return 1;
}

/* Gives the thread a place for blocks like this one. Returns 0 if that is impossible. */
static int open_place(struct gm_cache *cache, struct gm_thread_cache *thread,
                      const struct gm_block *block, struct gm_late *late) {
    struct gm_lane *lane = block->segment->lane;
    /* While its stream is captured, memory from outside the capture is not reused. */
    if (lane->ended || lane->pool || gm_capture_lane(cache, lane->stream))
        return 0;
    if (block->buffer.wait_count && block->buffer.waits[0].stream == GPUMEM_STREAM_PER_THREAD)
        return 0; /* a different stream in each thread */
    if (cache->host && block->buffer.wait_count)
        open_hold(cache, thread, block->buffer.waits[0].stream, late);
    else
        open_slot(cache, thread, lane);
    return 1;
}

/* The lane's own order needs no mark, except in a pool, which other captures use later. Returns
 * whether all streams have passed. */
static int mark_all(struct gm_cache *cache, const struct gm_lane *lane, gpumem_buffer *buffer,
                    struct gm_late *late) {
    int ordered = !cache->host && !lane->ended && !lane->pool, all = 1;
    for (size_t i = 0; i < buffer->wait_count; i++) {
        struct gm_wait *wait = &buffer->waits[i];
        if (ordered && wait->stream == lane->stream)
            wait->state = GM_WAIT_PASSED;
        else
            all &= gm_late_enter(late) == GPUMEM_OK && gm_wait_mark(cache->device, wait);
    }
    return all;
}

/* Freed in the order of the lane's stream, within its capture. */
static int is_in_capture(const struct gm_lane *lane, const gpumem_buffer *buffer) {
    const struct gm_wait *wait = &buffer->waits[0];
    return lane->begun && buffer->wait_count == 1 && wait->stream == lane->stream &&
           wait->state == GM_WAIT_CAPTURING;
}

/* Each launch of the graph uses the memory of captured work again: only later work of the same
 * capture and stream may reuse it. Memory that the CPU writes must not be reused at all: the CPU
 * writes once, before all launches.
 */
static int must_rest(const struct gm_cache *cache, const struct gm_lane *lane,
                     const gpumem_buffer *buffer) {
    if (!lane->pool || cache->host)
        return lane->pool != NULL;
    for (size_t i = 0; i < buffer->wait_count; i++)
        if (buffer->waits[i].state == GM_WAIT_CAPTURING)
            return !is_in_capture(lane, buffer);
    return 0;
}

/* Other streams than the lane's must pass before the memory goes back to the lane. */
static void give_after_waits(struct gm_cache *cache, struct gm_block *block, struct gm_late *late) {
    struct gm_lane *lane = block->segment->lane;
    gpumem_buffer *buffer = &block->buffer;
    block->next = NULL;
    int all = mark_all(cache, lane, buffer, late);
    if (must_rest(cache, lane, buffer)) {
        block->next = lane->held;
        lane->held = block;
    } else if (all || is_in_capture(lane, buffer)) {
        gm_block_end(cache, block);
    } else {
        gm_pending_add(cache, block);
    }
}

/* Handles a full magazine or a full thread. The cache's lock is held. */
static void relieve(struct gm_cache *cache, struct gm_thread_cache *thread,
                    struct gm_block *surplus, int due, struct gm_late *late) {
    if (surplus)
        gm_lane_give(surplus->segment->lane, surplus, surplus->count);
    if (due && thread->bytes > cache->thread_bytes)
        gm_thread_flush(cache, thread, late);
    else if (due)
        gm_holds_settle(cache, late);
}

static void relieve_soon(struct gm_cache *cache, struct gm_thread_cache *thread,
                         struct gm_block *surplus, int due) {
    GM_UNCANCELLED;
    struct gm_late late = {.device = cache->device};
    pthread_mutex_lock(&cache->lock);
    relieve(cache, thread, surplus, due, &late);
    pthread_mutex_unlock(&cache->lock);
    gm_late_leave(&late);
}

static void push_slowly(struct gm_cache *cache, struct gm_thread_cache *thread,
                        struct gm_block *block) {
    GM_UNCANCELLED;
    struct gm_block *surplus = NULL;
    int kept = 0, due = 0;
    struct gm_late late = {.device = cache->device};
    pthread_mutex_lock(&cache->lock);
    if (thread && block->class < GM_CLASS_COUNT && block->buffer.wait_count <= 1 &&
        open_place(cache, thread, block, &late))
        kept = keep(cache, thread, block, &surplus, &due);
    if (kept)
        relieve(cache, thread, surplus, due, &late);
    else
        give_after_waits(cache, block, &late);
    pthread_mutex_unlock(&cache->lock);
    gm_late_leave(&late);
}

/* `counted`: the allocation was, by gm_magazine_pop or gm_magazine_count. */
static inline void come_back(struct gm_cache *cache, struct gm_block *block, int counted) {
    struct gm_thread_cache *thread = gm_thread_cache_of(cache);
    struct gm_block *surplus = NULL;
    int kept = 0, due = 0;
    int64_t bytes = (int64_t)block->buffer.allocation.bytes;
    if (thread) {
        gm_thread_enter(thread);
        if (block->class < GM_CLASS_COUNT && block->buffer.wait_count <= 1)
            kept = keep(cache, thread, block, &surplus, &due);
        if (counted)
            count(cache, thread, -bytes, -1);
        gm_thread_leave(thread);
    } else if (counted) {
        gm_meter_subtract(&cache->resource->meter, GM_IN_USE, (uint64_t)bytes);
        gm_meter_subtract(&cache->resource->meter, GM_ALLOCATIONS, 1);
    }
    if (__builtin_expect(!kept, 0))
        push_slowly(cache, thread, block);
    else if (__builtin_expect(surplus || due, 0))
        relieve_soon(cache, thread, surplus, due);
}

void gm_magazine_push(struct gm_cache *cache, struct gm_block *block) {
    come_back(cache, block, 1);
}

void gm_magazine_return(struct gm_cache *cache, struct gm_block *block) {
    come_back(cache, block, 0);
}
