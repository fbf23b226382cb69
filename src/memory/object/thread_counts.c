#include "memory/object/thread_counts.h"

#include "base/object.h"
#include "memory/object/buffer.h"
#include "memory/object/queued_frees.h"

#include <stdlib.h>
#include <string.h>

__thread struct gm_thread *gm_thread_own;
/* The thread has given up its state. Its later destructors do without. */
static __thread int over __attribute__((tls_model("initial-exec")));

/* Guards the lists and updates of the meters; nothing else is locked under it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct gm_thread *threads;
static struct gm_tally *tallies;
static uint64_t last_serial;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static int key_made;

/* ---- Counts that go to the meters; the lock is held ------------------------------------------ */

static void move(struct gm_meter *meter, enum gm_count count, int64_t by) {
    if (by > 0)
        gm_meter_add(meter, count, (uint64_t)by);
    else if (by < 0)
        gm_meter_subtract(meter, count, (uint64_t)-by);
}

/* The highest since the last time, on top of what others have. */
static void raise_peak(struct gm_meter *meter, enum gm_count count, int64_t by) {
    if (by > 0)
        gm_meter_raise(meter, count, (uint64_t)by);
}

static void tell(struct gm_tally *tally, struct gm_tally_cell *cell) {
    struct gm_meter *meter = tally->meter;
    uint64_t total = atomic_load_explicit(&cell->total, memory_order_acquire);
    int64_t in_use = atomic_load_explicit(&cell->in_use, memory_order_relaxed);
    int64_t committed = atomic_load_explicit(&cell->committed, memory_order_relaxed);
    int64_t alive = atomic_load_explicit(&cell->alive, memory_order_relaxed);
    /* Without an allocation since then, the peaks are still the former ones. */
    if (total != cell->told_total) {
        int64_t peak = atomic_load_explicit(&cell->in_use_peak, memory_order_relaxed);
        raise_peak(meter, GM_IN_USE, peak - cell->told_in_use);
        peak = atomic_load_explicit(&cell->committed_peak, memory_order_relaxed);
        raise_peak(meter, GM_COMMITTED, peak - cell->told_committed);
    }
    move(meter, GM_IN_USE, in_use - cell->told_in_use);
    move(meter, GM_COMMITTED, committed - cell->told_committed);
    move(meter, GM_RESERVED, committed - cell->told_committed);
    move(meter, GM_ALLOCATIONS, alive - cell->told_alive);
    gm_meter_add(meter, GM_ALLOCATIONS_TOTAL, total - cell->told_total);
    tally->alive += alive - cell->told_alive;
    cell->told_in_use = in_use;
    cell->told_committed = committed;
    cell->told_alive = alive;
    cell->told_total = total;
    atomic_fetch_add_explicit(&cell->epoch, 1, memory_order_relaxed);
}

static struct gm_tally *tally_of(uint64_t serial) {
    struct gm_tally *tally = tallies;
    while (tally && tally->serial != serial)
        tally = tally->next;
    return tally;
}

/* A place for the frees on a stream: the one that it has, or an empty one. */
static struct gm_freed *left_of(struct gm_tally *tally, CUstream stream) {
    struct gm_freed *empty = NULL;
    if (!tally->left)
        tally->left = calloc(GM_FREED_STREAMS, sizeof *tally->left);
    for (unsigned i = 0; tally->left && i < GM_FREED_STREAMS; i++) {
        struct gm_freed *left = &tally->left[i];
        int any = atomic_load_explicit(&left->held, memory_order_relaxed) != 0;
        if (any && left->stream == stream)
            return left;
        if (!any)
            empty = left;
    }
    return empty;
}

/* Anyone can mark the stream. Of very many streams, some are forgotten. */
static void keep_freed(struct gm_tally *tally, CUstream stream, uint64_t held) {
    struct gm_freed *left = held ? left_of(tally, stream) : NULL;
    if (!left)
        return;
    left->stream = stream;
    left->kind = GM_FREED_KEPT;
    atomic_fetch_add_explicit(&left->held, held, memory_order_relaxed);
}

/* Counts of a cell for a resource that has been destroyed are dropped. */
static void leave(struct gm_tally_cell *cell) {
    struct gm_tally *tally = cell->serial ? tally_of(cell->serial) : NULL;
    if (tally)
        tell(tally, cell);
    for (unsigned i = 0; tally && i < GM_FREED_STREAMS; i++)
        if (cell->freed[i].kind == GM_FREED_KEPT)
            keep_freed(tally, cell->freed[i].stream,
                       atomic_load_explicit(&cell->freed[i].held, memory_order_relaxed));
    *cell = (struct gm_tally_cell){0};
}

int64_t gm_tally_tell(struct gm_tally *tally) {
    if (!tally->serial)
        return 0;
    pthread_mutex_lock(&lock);
    for (struct gm_thread *thread = threads; thread; thread = thread->next) {
        struct gm_tally_cell *cell = &thread->cells[tally->serial % GM_TALLY_CELLS];
        if (cell->serial == tally->serial)
            tell(tally, cell);
    }
    int64_t alive = tally->alive;
    pthread_mutex_unlock(&lock);
    return alive;
}

void gm_tally_begin(struct gm_tally *tally, struct gm_meter *meter) {
    pthread_mutex_lock(&lock);
    *tally = (struct gm_tally){.serial = ++last_serial, .meter = meter, .next = tallies};
    tallies = tally;
    pthread_mutex_unlock(&lock);
}

void gm_tally_end(struct gm_tally *tally) {
    if (!tally->serial)
        return;
    pthread_mutex_lock(&lock);
    for (struct gm_tally **at = &tallies; *at; at = &(*at)->next) {
        if (*at == tally) {
            *at = tally->next;
            break;
        }
    }
    pthread_mutex_unlock(&lock);
    free(tally->left);
    tally->left = NULL;
}

/* ---- Frees by stream ------------------------------------------------------------------------- */

static uint64_t take_held(struct gm_freed *freed) {
    return atomic_exchange_explicit(&freed->held, 0, memory_order_relaxed);
}

static uint64_t held_by(const struct gm_freed *freed) {
    return atomic_load_explicit(&freed->held, memory_order_relaxed);
}

/* The place of the stream; else one that counts nothing; else one that must be given up. */
static struct gm_freed *place_for(struct gm_tally_cell *cell, CUstream stream) {
    struct gm_freed *usual = gm_freed_of(cell, stream);
    if (usual->kind && usual->stream == stream)
        return usual;
    for (unsigned i = 0; i < GM_FREED_STREAMS && usual->kind && held_by(usual); i++)
        if (!cell->freed[i].kind || !held_by(&cell->freed[i]))
            usual = &cell->freed[i];
    return usual;
}

struct gm_freed *gm_tally_count_stream(struct gm_tally_cell *cell, CUstream stream,
                                       enum gm_freed_kind kind, unsigned ended,
                                       struct gm_freed *before) {
    *before = (struct gm_freed){0};
    pthread_mutex_lock(&lock);
    struct gm_freed *place = place_for(cell, stream);
    if (place->kind && place->stream != stream) {
        uint64_t held = take_held(place);
        if (place->kind != GM_FREED_UNKNOWN)
            *before = (struct gm_freed){.stream = place->stream, .held = held};
    }
    place->stream = stream;
    place->kind = kind;
    place->ended = ended;
    pthread_mutex_unlock(&lock);
    return place;
}

/* 1 if there was anything. */
static int take_one(struct gm_freed *freed, int own, struct gm_freed_what what,
                    struct gm_freed *taken) {
    int may = freed->kind == GM_FREED_KEPT ? own || what.all || !freed->stream
                                           : freed->kind == GM_FREED_OWN && own;
    if (!may || (what.one && freed->stream != what.stream))
        return 0;
    *taken = (struct gm_freed){.stream = freed->stream, .held = take_held(freed)};
    return held_by(taken) != 0;
}

static int take_of(struct gm_freed *list, int own, struct gm_freed_what what,
                   struct gm_freed *taken) {
    for (unsigned i = 0; list && i < GM_FREED_STREAMS; i++)
        if (take_one(&list[i], own, what, taken))
            return 1;
    return 0;
}

int gm_tally_take_freed(struct gm_tally *tally, struct gm_freed_what what, struct gm_freed *taken) {
    pthread_mutex_lock(&lock);
    int any = take_of(tally->left, 0, what, taken);
    for (struct gm_thread *thread = threads; thread && !any; thread = thread->next) {
        struct gm_tally_cell *cell = &thread->cells[tally->serial % GM_TALLY_CELLS];
        if (cell->serial == tally->serial)
            any = take_of(cell->freed, thread == gm_thread_own, what, taken);
    }
    pthread_mutex_unlock(&lock);
    return any;
}

void gm_tally_put_freed(struct gm_tally *tally, CUstream stream, uint64_t held) {
    pthread_mutex_lock(&lock);
    keep_freed(tally, stream, held);
    pthread_mutex_unlock(&lock);
}

/* ---- Threads --------------------------------------------------------------------------------- */

static void free_spare(gpumem_buffer *buffer) {
    gm_buffer_clear(buffer);
    free(buffer);
}

static void thread_ends(void *unused) {
    (void)unused;
    struct gm_thread *own = gm_thread_own;
    over = 1;
    gm_thread_own = NULL;
    if (!own)
        return;
    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < GM_TALLY_CELLS; i++)
        leave(&own->cells[i]);
    for (struct gm_thread **at = &threads; *at; at = &(*at)->next) {
        if (*at == own) {
            *at = own->next;
            break;
        }
    }
    pthread_mutex_unlock(&lock);
    for (unsigned i = 0; i < own->count; i++) /* the oldest first */
        gm_buffer_discard(own->spares[(own->first + i) % GM_SPARES]);
    free(own);
}

/* Another thread, which no longer exists, may have held the lock. The parent's resources have their
 * own serials, and are unknown here. */
static void in_child(void) {
    pthread_mutex_init(&lock, NULL);
    tallies = NULL;
    threads = gm_thread_own;
    if (threads)
        threads->next = NULL;
}

static void install(void) {
    key_made = pthread_key_create(&key, thread_ends) == 0;
    pthread_atfork(NULL, NULL, in_child);
}

static struct gm_thread *make(void) {
    pthread_once(&once, install);
    if (over || !key_made)
        return NULL;
    size_t bytes = (sizeof(struct gm_thread) + 63) / 64 * 64; /* no line is shared with others */
    struct gm_thread *made = aligned_alloc(64, bytes);
    if (!made)
        return NULL;
    memset(made, 0, bytes);
    made->self = gm_wait_for(NULL, NULL, 0);
    if (pthread_setspecific(key, made) != 0) {
        free(made);
        return NULL;
    }
    pthread_mutex_lock(&lock);
    made->next = threads;
    threads = made;
    pthread_mutex_unlock(&lock);
    gm_thread_own = made;
    return made;
}

struct gm_tally_cell *gm_tally_find(struct gm_tally *tally) {
    struct gm_thread *own = gm_thread_own ? gm_thread_own : make();
    if (!own)
        return NULL;
    struct gm_tally_cell *cell = &own->cells[tally->serial % GM_TALLY_CELLS];
    pthread_mutex_lock(&lock);
    leave(cell);
    cell->serial = tally->serial;
    pthread_mutex_unlock(&lock);
    return cell;
}

/* ---- The thread's own side ------------------------------------------------------------------- */

static void put(_Atomic int64_t *value, int64_t now) {
    atomic_store_explicit(value, now, memory_order_relaxed);
}

static int64_t get(const _Atomic int64_t *value) {
    return atomic_load_explicit(value, memory_order_relaxed);
}

/* The meters were updated: peaks are counted from here. */
static void begin_epoch(struct gm_tally_cell *cell, unsigned epoch) {
    cell->seen = epoch;
    cell->base = get(&cell->committed);
    put(&cell->in_use_peak, get(&cell->in_use));
    put(&cell->committed_peak, cell->base);
}

static void tell_own(struct gm_tally *tally, struct gm_tally_cell *cell) {
    pthread_mutex_lock(&lock);
    tell(tally, cell);
    pthread_mutex_unlock(&lock);
}

void gm_tally_count(struct gm_tally *tally, struct gm_tally_cell *cell,
                    const gpumem_allocation *allocation, int alive) {
    unsigned epoch = atomic_load_explicit(&cell->epoch, memory_order_relaxed);
    if (epoch != cell->seen)
        begin_epoch(cell, epoch);
    int64_t in_use = get(&cell->in_use) + alive * (int64_t)allocation->bytes;
    int64_t committed = get(&cell->committed) + alive * (int64_t)allocation->committed_bytes;
    put(&cell->in_use, in_use);
    put(&cell->committed, committed);
    put(&cell->alive, get(&cell->alive) + alive);
    if (alive > 0) {
        if (in_use > get(&cell->in_use_peak))
            put(&cell->in_use_peak, in_use);
        if (committed > get(&cell->committed_peak))
            put(&cell->committed_peak, committed);
        uint64_t total = atomic_load_explicit(&cell->total, memory_order_relaxed) + 1;
        atomic_store_explicit(&cell->total, total, memory_order_release);
    }
    if (committed - cell->base > GM_TALLY_QUANTUM || cell->base - committed > GM_TALLY_QUANTUM)
        tell_own(tally, cell);
}

/* In halves, which compilers clear by a few stores each. */
static inline void clear(void *object, size_t bytes) {
    memset(object, 0, bytes / 2);
    memset((unsigned char *)object + bytes / 2, 0, bytes - bytes / 2);
}

/* All but the lock, which is kept, and the names of streams after the first, which are not read.
 */
static inline void renew(gpumem_buffer *spare, gpumem_resource *resource, CUstream stream,
                         const struct gm_thread *own) {
    const size_t behind = offsetof(gpumem_buffer, lock) + sizeof spare->lock;
    clear(spare, offsetof(gpumem_buffer, inline_waits));
    clear((unsigned char *)spare + behind, sizeof *spare - behind);
    spare->generation = resource->generation;
    spare->resource = resource;
    spare->allocation.size = sizeof spare->allocation;
    atomic_store_explicit(&spare->references, 1, memory_order_relaxed);
    spare->waits = spare->inline_waits;
    spare->wait_room = GM_INLINE_STREAMS;
    spare->wait_count = 1;
    struct gm_wait *home = spare->inline_waits;
    home->stream = stream;
    home->id = 0;
    home->namer = own->self.namer;
    home->task = own->self.task;
    home->state = GM_WAIT_NAMED;
    home->event = NULL;
}

gpumem_buffer *gm_spare_take(gpumem_resource *resource, CUstream stream) {
    struct gm_thread *own = gm_thread_own;
    if (own->count <= GM_SPARES_RESTING)
        return NULL;
    gpumem_buffer *spare = own->spares[own->first % GM_SPARES];
    own->first++;
    own->count--;
    renew(spare, resource, stream, own);
    return spare;
}

void gm_spare_give(gpumem_buffer *buffer) {
    struct gm_thread *own = gm_thread_own;
    buffer->generation = GM_DESTROYED;
    if (own->count == GM_SPARES) {
        free_spare(own->spares[own->first % GM_SPARES]);
        own->first++;
        own->count--;
    }
    own->spares[(own->first + own->count) % GM_SPARES] = buffer;
    own->count++;
}
