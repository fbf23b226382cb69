/* When the work that used free memory is done. */
#include "cache/cache.h"

#include "memory/core/stream_waits.h"

static void pass(struct gm_turns *turns) {
    turns->passed = turns->marks[0].turn;
    for (unsigned i = 1; i < turns->count; i++)
        turns->marks[i - 1] = turns->marks[i];
    turns->count--;
}

static void poll(struct gm_cache *cache, struct gm_turns *turns) {
    while (turns->count && gm_wait_passed(cache->device, &turns->marks[0].wait, 0))
        pass(turns);
}

/* The newest mark takes the place of the one before it when there are too many: it is later. */
static void add(struct gm_cache *cache, struct gm_turns *turns, const struct gm_wait *wait) {
    if (turns->count == GM_MARKS)
        gm_wait_drop(cache->device, &turns->marks[--turns->count].wait);
    turns->marks[turns->count].wait = *wait;
    turns->marks[turns->count++].turn = ++turns->now;
    turns->freed = 0;
}

static void mark(struct gm_cache *cache, struct gm_lane *lane) {
    struct gm_turns *turns = &lane->turns;
    turns->refuses = 0;
    if (turns->freed && !lane->ended && !lane->pool) {
        struct gm_wait wait = {.stream = lane->stream};
        (void)gm_wait_mark(cache->device, &wait);
        add(cache, turns, &wait);
    }
    poll(cache, turns);
}

void gm_pages_mark(struct gm_cache *cache) {
    for (struct gm_lane *lane = cache->lanes; lane; lane = lane->next)
        mark(cache, lane);
}

/* Blocks that are freed later have waited for their streams themselves. */
void gm_pages_lane_ends(struct gm_cache *cache, struct gm_lane *lane) {
    struct gm_wait wait = gm_wait_for(cache->device, lane->stream, 0);
    if (lane->stream == GPUMEM_STREAM_NONE)
        wait.state = GM_WAIT_PASSED;
    else
        gm_wait_end(cache->device, &wait);
    add(cache, &lane->turns, &wait);
}

void gm_pages_drop_marks(struct gm_cache *cache, struct gm_lane *lane) {
    while (lane->turns.count)
        gm_wait_drop(cache->device, &lane->turns.marks[--lane->turns.count].wait);
}

/* Bytes of free pages of a lane that only a wait can free. */
static size_t behind(const struct gm_lane *lane) {
    size_t bytes = 0;
    for (const struct gm_segment *segment = lane->segments; segment; segment = segment->next)
        for (const struct gm_piece *piece = segment->area.first; piece; piece = piece->after)
            bytes += piece->state == GM_PIECE_FREE ? piece->bytes : 0;
    return bytes;
}

static struct gm_lane *most_behind(const struct gm_cache *cache) {
    struct gm_lane *found = NULL;
    size_t most = 0;
    for (struct gm_lane *lane = cache->lanes; lane; lane = lane->next) {
        size_t bytes = lane->turns.count && !lane->turns.refuses ? behind(lane) : 0;
        if (bytes > most) {
            most = bytes;
            found = lane;
        }
    }
    return found;
}

/* The lane stays while it is away; its marks may be added to meanwhile, but the first is this
 * thread's. */
int gm_pages_wait(struct gm_cache *cache) {
    struct gm_lane *lane = most_behind(cache);
    if (!lane)
        return 0;
    struct gm_turns *turns = &lane->turns;
    struct gm_wait wait = turns->marks[0].wait;
    turns->marks[0].wait = (struct gm_wait){.state = GM_WAIT_CAPTURING}; /* nobody else's to ask */
    lane->away++;
    cache->away++;
    pthread_mutex_unlock(&cache->lock);
    int passed = gm_wait_passed(cache->device, &wait, 1);
    pthread_mutex_lock(&cache->lock);
    lane->away--;
    cache->away--;
    pthread_cond_broadcast(&cache->home);
    turns->marks[0].wait = wait;
    turns->refuses = !passed;
    if (passed) {
        cache->pages->waits++;
        pass(turns);
    }
    return 1;
}
