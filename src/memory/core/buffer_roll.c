#include "memory/core/buffer_roll.h"

#include "memory/core/objects.h"

#include <sched.h>

/* Threads are spread over the rolls in the order in which they first allocate. */
static unsigned roll_of_thread(void) {
    static atomic_uint threads;
    static _Thread_local unsigned mine; /* one more than the roll; 0: not chosen yet */
    if (!mine)
        mine = atomic_fetch_add_explicit(&threads, 1, memory_order_relaxed) % GM_ROLLS + 1;
    return mine - 1;
}

#define SPINS 100

static inline void lock(struct gm_roll *roll) {
    for (unsigned i = 1; atomic_exchange_explicit(&roll->locked, 1, memory_order_acquire); i++)
        if (i % SPINS == 0)
            sched_yield();
}

static inline void unlock(struct gm_roll *roll) {
    atomic_store_explicit(&roll->locked, 0, memory_order_release);
}

void gm_roll_add(gpumem_buffer *buffer, CUstream stream) {
    struct gm_roll_entry *entry = &buffer->listed;
    entry->roll = roll_of_thread();
    entry->on = 1;
    entry->stream = stream;
    struct gm_roll *roll = &buffer->resource->rolls[entry->roll];
    lock(roll);
    entry->next = roll->first;
    entry->link = &roll->first;
    if (roll->first)
        roll->first->listed.link = &entry->next;
    roll->first = buffer;
    unlock(roll);
}

void gm_roll_remove(gpumem_buffer *buffer) {
    struct gm_roll_entry *entry = &buffer->listed;
    if (!entry->on)
        return;
    entry->on = 0;
    struct gm_roll *roll = &buffer->resource->rolls[entry->roll];
    lock(roll);
    *entry->link = entry->next;
    if (entry->next)
        entry->next->listed.link = entry->link;
    entry->link = NULL;
    unlock(roll);
}

void gm_roll_lock(gpumem_buffer *buffer) {
    lock(&buffer->resource->rolls[buffer->listed.roll]);
}

void gm_roll_unlock(gpumem_buffer *buffer) {
    unlock(&buffer->resource->rolls[buffer->listed.roll]);
}

void gm_rolls_visit(gpumem_resource *resource, void (*visit)(gpumem_buffer *, void *), void *data) {
    for (unsigned i = 0; i < GM_ROLLS; i++)
        lock(&resource->rolls[i]);
    for (unsigned i = 0; i < GM_ROLLS; i++)
        for (gpumem_buffer *b = resource->rolls[i].first; b; b = b->listed.next)
            visit(b, data);
    for (unsigned i = GM_ROLLS; i-- > 0;)
        unlock(&resource->rolls[i]);
}
