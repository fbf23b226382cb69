#include "memory/roll.h"

#include "memory/objects.h"

/* Threads are spread over the rolls in the order in which they first allocate. */
static unsigned roll_of_thread(void) {
    static atomic_uint threads;
    static _Thread_local unsigned mine; /* one more than the roll; 0: not chosen yet */
    if (!mine)
        mine = atomic_fetch_add_explicit(&threads, 1, memory_order_relaxed) % GM_ROLLS + 1;
    return mine - 1;
}

void gm_rolls_init(struct gm_roll *rolls) {
    for (unsigned i = 0; i < GM_ROLLS; i++)
        pthread_mutex_init(&rolls[i].lock, NULL);
}

void gm_rolls_destroy(struct gm_roll *rolls) {
    for (unsigned i = 0; i < GM_ROLLS; i++)
        pthread_mutex_destroy(&rolls[i].lock);
}

void gm_roll_add(gpumem_buffer *buffer, CUstream stream) {
    struct gm_roll_entry *entry = &buffer->listed;
    entry->roll = roll_of_thread();
    entry->stream = stream;
    struct gm_roll *roll = &buffer->resource->rolls[entry->roll];
    pthread_mutex_lock(&roll->lock);
    entry->next = roll->first;
    entry->link = &roll->first;
    if (roll->first)
        roll->first->listed.link = &entry->next;
    roll->first = buffer;
    pthread_mutex_unlock(&roll->lock);
}

void gm_roll_remove(gpumem_buffer *buffer) {
    struct gm_roll_entry *entry = &buffer->listed;
    if (!entry->link)
        return;
    pthread_mutex_t *lock = &buffer->resource->rolls[entry->roll].lock;
    pthread_mutex_lock(lock);
    *entry->link = entry->next;
    if (entry->next)
        entry->next->listed.link = entry->link;
    entry->link = NULL;
    pthread_mutex_unlock(lock);
}

void gm_roll_lock(gpumem_buffer *buffer) {
    pthread_mutex_lock(&buffer->resource->rolls[buffer->listed.roll].lock);
}

void gm_roll_unlock(gpumem_buffer *buffer) {
    pthread_mutex_unlock(&buffer->resource->rolls[buffer->listed.roll].lock);
}

void gm_rolls_visit(gpumem_resource *resource, void (*visit)(gpumem_buffer *, void *), void *data) {
    for (unsigned i = 0; i < GM_ROLLS; i++)
        pthread_mutex_lock(&resource->rolls[i].lock);
    for (unsigned i = 0; i < GM_ROLLS; i++)
        for (gpumem_buffer *b = resource->rolls[i].first; b; b = b->listed.next)
            visit(b, data);
    for (unsigned i = GM_ROLLS; i-- > 0;)
        pthread_mutex_unlock(&resource->rolls[i].lock);
}
