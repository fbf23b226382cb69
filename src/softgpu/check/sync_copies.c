/*
 * Asynchronous copies before a wait for them: the bytes that they write must not be accessed, and
 * those that they read must not be overwritten. The wait is one for their group by the thread that
 * issued them, or a successful test, by any thread, of the mbarrier that counts them.
 */
#include "softgpu/check/sync_inside.h"

#include "base/growing_array.h"

#include <stdlib.h>
#include <string.h>

#define RANK_SHIFT 24 /* of a block, in addresses of shared memory */

static const struct sg_instruction *at(const struct sg_sync *sync, uint32_t instruction) {
    return &sync->options.program->instructions[instruction];
}

static void report(const struct sg_sync *sync, const struct sg_sync_block *block,
                   enum sg_sync_kind kind, const struct sg_watched_access *access, unsigned lane,
                   const struct sg_sync_copy *copy) {
    struct sg_sync_found found =
        sg_sync_finding(block, kind, access->instruction, access->warp->first + lane);
    found.has_address = true;
    found.global = access->space == SG_IN_GLOBAL;
    found.write = access->kind != SG_WATCHED_READ;
    found.address = access->address[lane];
    found.size = access->size;
    if (copy) {
        found.has_other = true;
        found.other_instruction = copy->instruction;
        found.other_thread = copy->thread % sync->options.threads;
        memcpy(found.other_place, copy->place, sizeof found.other_place);
    }
    sg_sync_report(sync, &found);
}

/* ---- words of shared memory ------------------------------------------------------------------ */

static struct sg_sync_words *words_of(struct sg_sync_cluster *cluster, uint64_t address) {
    uint64_t rank = address >> RANK_SHIFT;
    return rank < SG_SYNC_RANKS ? &cluster->words[rank] : NULL;
}

static uint64_t word_of(uint64_t address) {
    return (address & ((UINT64_C(1) << RANK_SHIFT) - 1)) / 4;
}

/* Marks a copy's words, all of them or none: without memory it is not checked. */
static void mark(struct sg_sync_cluster *cluster, uint64_t address, uint32_t size, uint32_t mark) {
    struct sg_sync_words *words = words_of(cluster, address);
    uint64_t first = word_of(address), end = word_of(address) + (size + 3) / 4;
    if (!words || end > UINT64_C(1) << (RANK_SHIFT - 2))
        return;
    if (end > words->count) {
        uint32_t *more = realloc(words->copy, end * sizeof *more);
        if (!more)
            return;
        memset(more + words->count, 0, (end - words->count) * sizeof *more);
        words->copy = more;
        words->count = end;
    }
    for (uint64_t w = first; w < end; w++)
        words->copy[w] = mark;
}

static void unmark(struct sg_sync_cluster *cluster, uint64_t address, uint32_t size,
                   uint32_t mark) {
    struct sg_sync_words *words = words_of(cluster, address);
    uint64_t end = word_of(address) + (size + 3) / 4;
    for (uint64_t w = word_of(address); words && w < end && w < words->count; w++)
        if (words->copy[w] == mark)
            words->copy[w] = 0;
}

/* The copy that has a word of these; *reads: as its source. NULL: none has. */
static const struct sg_sync_copy *copy_at(struct sg_sync_cluster *cluster, uint64_t address,
                                          uint64_t size, bool *reads) {
    const struct sg_sync_words *words = words_of(cluster, address);
    uint64_t end = word_of(address + size + 3);
    for (uint64_t w = word_of(address); words && w < end && w < words->count; w++)
        if (words->copy[w]) {
            *reads = (words->copy[w] & SG_SYNC_READS) != 0;
            return &cluster->copies[(words->copy[w] & ~SG_SYNC_READS) - 1];
        }
    return NULL;
}

static const struct sg_sync_copy *global_copy_at(const struct sg_sync_cluster *cluster,
                                                 uint64_t address, uint64_t size) {
    for (size_t i = 0; i < cluster->copy_count && cluster->open_global; i++) {
        const struct sg_sync_copy *copy = &cluster->copies[i];
        if (copy->open && copy->to_global && copy->to < address + size &&
            address < copy->to + copy->size)
            return copy;
    }
    return NULL;
}

/* ---- copies ---------------------------------------------------------------------------------- */

static void release_source(struct sg_sync_cluster *cluster, struct sg_sync_copy *copy) {
    uint32_t number = (uint32_t)(copy - cluster->copies) + 1;
    if (copy->reads_shared)
        unmark(cluster, copy->from, copy->size, number | SG_SYNC_READS);
    copy->reads_shared = false;
}

static void release(struct sg_sync_cluster *cluster, struct sg_sync_copy *copy) {
    uint32_t number = (uint32_t)(copy - cluster->copies) + 1;
    uint32_t *link = &cluster->first[copy->thread];
    release_source(cluster, copy);
    if (!copy->to_global)
        unmark(cluster, copy->to, copy->size, number);
    cluster->open_global -= copy->to_global;
    cluster->open--;
    while (*link != number)
        link = &cluster->copies[*link - 1].next;
    *link = copy->next;
    *copy = (struct sg_sync_copy){.next = cluster->spare};
    cluster->spare = number;
}

static bool has_room(const struct sg_sync *sync, struct sg_sync_cluster *cluster) {
    size_t threads = (size_t)sync->cluster_size * sync->options.threads;
    if (!cluster->first)
        cluster->first = calloc(threads, sizeof *cluster->first);
    if (!cluster->commits)
        cluster->commits = calloc(2 * threads, sizeof *cluster->commits);
    return cluster->first && cluster->commits &&
           (cluster->spare ||
            GM_RESERVE(cluster->copies, cluster->copy_room, cluster->copy_count + 1));
}

/* Without memory it is not checked. */
static void add(const struct sg_sync *sync, struct sg_sync_block *block, unsigned thread,
                const struct sg_sync_copy *new) {
    struct sg_sync_cluster *cluster = block->cluster;
    if (!has_room(sync, cluster))
        return;
    uint32_t number = cluster->spare ? cluster->spare : (uint32_t)++cluster->copy_count;
    struct sg_sync_copy *copy = &cluster->copies[number - 1];
    if (number == cluster->spare)
        cluster->spare = copy->next;
    *copy = *new;
    copy->open = true;
    copy->thread = sg_sync_thread(sync, block, thread);
    memcpy(copy->place, block->place, sizeof copy->place);
    copy->next = cluster->first[copy->thread];
    cluster->first[copy->thread] = number;
    cluster->open++;
    cluster->open_global += copy->to_global;
    if (copy->reads_shared)
        mark(cluster, copy->from, copy->size, number | SG_SYNC_READS);
    if (!copy->to_global)
        mark(cluster, copy->to, copy->size, number);
}

void sg_sync_copies_free(struct sg_sync_cluster *cluster) {
    for (unsigned r = 0; r < SG_SYNC_RANKS; r++)
        free(cluster->words[r].copy);
    free(cluster->copies);
    free(cluster->commits);
    free(cluster->first);
}

/* ---- accesses -------------------------------------------------------------------------------- */

static void look_at_shared(const struct sg_sync *sync, const struct sg_sync_block *block,
                           const struct sg_watched_access *access, unsigned lane) {
    struct sg_sync_cluster *cluster = block->cluster;
    uint64_t address = access->address[lane];
    bool writes = access->kind != SG_WATCHED_READ, reads = false;
    const struct sg_sync_copy *copy =
        cluster->open ? copy_at(cluster, address, access->size, &reads) : NULL;
    if (copy && !reads)
        report(sync, block, SG_SYNC_NOT_WAITED, access, lane, copy);
    else if (copy && writes)
        report(sync, block, SG_SYNC_SOURCE, access, lane, copy);
    if (writes && sg_sync_is_mbarrier(cluster, address, access->size))
        report(sync, block, SG_SYNC_OVERWRITTEN, access, lane, NULL);
}

static void look_at_global(const struct sg_sync *sync, const struct sg_sync_block *block,
                           const struct sg_watched_access *access, unsigned lane) {
    const struct sg_sync_copy *copy =
        global_copy_at(block->cluster, access->address[lane], access->size);
    if (copy)
        report(sync, block, SG_SYNC_NOT_WAITED, access, lane, copy);
}

void sg_sync_access(void *user, const struct sg_watched_access *access) {
    struct sg_sync *sync = user;
    bool shared = access->space == SG_IN_SHARED;
    /* At the copy's own moment: what it accesses was looked at when it was issued. */
    if ((!shared && access->space != SG_IN_GLOBAL) || access->order & SG_WATCHED_ASYNC)
        return;
    struct sg_sync_block *block = sg_sync_block_of(sync, access->warp->block);
    if (!block)
        return;
    const struct sg_sync_cluster *cluster = block->cluster;
    bool mbarrier = at(sync, access->instruction)->op == SG_OP_mbarrier;
    bool something = shared ? cluster->open || cluster->mbarrier_count : cluster->open_global != 0;
    memcpy(block->place, access->warp->place, sizeof block->place);
    for (uint32_t left = mbarrier || something ? access->lanes : 0; left; left &= left - 1) {
        unsigned l = (unsigned)__builtin_ctz(left);
        if (mbarrier)
            sg_sync_use_mbarrier(sync, block, access, l);
        else if (shared)
            look_at_shared(sync, block, access, l);
        else
            look_at_global(sync, block, access, l);
    }
}

/* ---- issues ---------------------------------------------------------------------------------- */

/* What a new copy will write. Reductions may meet. */
static void look_at_target(const struct sg_sync *sync, const struct sg_sync_block *block,
                           const struct sg_watched_access *copy, unsigned lane, bool reduces) {
    bool reads = false;
    const struct sg_sync_copy *other =
        copy_at(block->cluster, copy->address[lane], copy->size, &reads);
    if (other && reads)
        report(sync, block, SG_SYNC_SOURCE, copy, lane, other);
    else if (other && !(reduces && other->reduces))
        report(sync, block, SG_SYNC_TWO_COPIES, copy, lane, other);
    if (sg_sync_is_mbarrier(block->cluster, copy->address[lane], copy->size))
        report(sync, block, SG_SYNC_OVERWRITTEN, copy, lane, NULL);
}

void sg_sync_issues(void *user, const struct sg_watched_access *copy) {
    struct sg_sync *sync = user;
    struct sg_sync_block *block = sg_sync_block_of(sync, copy->warp->block);
    if (!block)
        return;
    memcpy(block->place, copy->warp->place, sizeof block->place);
    for (uint32_t left = copy->lanes; left; left &= left - 1) {
        unsigned l = (unsigned)__builtin_ctz(left);
        look_at_target(sync, block, copy, l, false);
        add(sync, block, copy->warp->first + l,
            &(struct sg_sync_copy){
                .to = copy->address[l], .size = copy->size, .instruction = copy->instruction});
    }
}

/* What a copy in bulk will read. */
static void look_at_source(const struct sg_sync *sync, const struct sg_sync_block *block,
                           const struct sg_watched_access *source, unsigned lane) {
    bool reads = false;
    const struct sg_sync_copy *other =
        source->space == SG_IN_GLOBAL
            ? global_copy_at(block->cluster, source->address[lane], source->size)
            : copy_at(block->cluster, source->address[lane], source->size, &reads);
    if (other && !reads)
        report(sync, block, SG_SYNC_NOT_WAITED, source, lane, other);
}

void sg_sync_issues_bulk(void *user, const struct sg_watched_copy *copy) {
    struct sg_sync *sync = user;
    struct sg_sync_block *block = sg_sync_block_of(sync, copy->warp->block);
    uint64_t address[32] = {0};
    if (!block || copy->size == 0)
        return;
    struct sg_watched_access access = {.warp = copy->warp,
                                       .instruction = copy->instruction,
                                       .lanes = UINT32_C(1) << copy->lane,
                                       .address = address,
                                       .size = copy->size,
                                       .space = copy->from_global ? SG_IN_GLOBAL : SG_IN_SHARED,
                                       .order = SG_WATCHED_ASYNC};
    memcpy(block->place, copy->warp->place, sizeof block->place);
    address[copy->lane] = copy->from;
    if (!copy->from_value)
        look_at_source(sync, block, &access, copy->lane);
    address[copy->lane] = copy->to;
    access.kind = SG_WATCHED_WRITE;
    access.space = copy->to_global ? SG_IN_GLOBAL : SG_IN_SHARED;
    if (!copy->to_global)
        look_at_target(sync, block, &access, copy->lane, copy->reduces);
    add(sync, block, copy->warp->first + copy->lane,
        &(struct sg_sync_copy){.to = copy->to,
                               .from = copy->from,
                               .mbarrier = copy->mbarrier,
                               .size = copy->size,
                               .instruction = copy->instruction,
                               .bulk = true,
                               .reduces = copy->reduces,
                               .told = copy->tells,
                               .to_global = copy->to_global,
                               .reads_shared = !copy->from_global && !copy->from_value,
                               .parity = (unsigned char)copy->parity});
}

/* ---- waits ----------------------------------------------------------------------------------- */

/* Calls for each copy of a thread; they may release it. */
typedef void visit(struct sg_sync_cluster *cluster, struct sg_sync_copy *copy, const void *of);

static void each(struct sg_sync_cluster *cluster, uint32_t thread, visit *visit, const void *of) {
    for (uint32_t number = cluster->first ? cluster->first[thread] : 0, next; number;
         number = next) {
        struct sg_sync_copy *copy = &cluster->copies[number - 1];
        next = copy->next;
        visit(cluster, copy, of);
    }
}

struct wait {
    bool bulk, all, only_sources;
    uint32_t group; /* up to this one, or the group that a commit makes */
};

static void commit(struct sg_sync_cluster *cluster, struct sg_sync_copy *copy, const void *of) {
    const struct wait *what = of;
    (void)cluster;
    if (copy->bulk == what->bulk && !copy->group && !(copy->bulk && copy->told))
        copy->group = what->group;
}

static void cover(struct sg_sync_cluster *cluster, struct sg_sync_copy *copy, const void *of) {
    const struct wait *wait = of;
    bool covered = copy->bulk == wait->bulk && !(copy->bulk && copy->told) &&
                   (wait->all || (copy->group && copy->group <= wait->group));
    if (covered && wait->only_sources)
        release_source(cluster, copy);
    else if (covered)
        release(cluster, copy);
}

void sg_sync_fence(void *user, const struct sg_watched_warp *warp, uint32_t instruction,
                   uint32_t lanes, unsigned char order, unsigned char scope) {
    struct sg_sync *sync = user;
    struct sg_sync_block *block = sg_sync_block_of(sync, warp->block);
    const struct sg_instruction *in = at(sync, instruction);
    (void)scope;
    if (order != SG_WATCHED_ASYNC || !block || !block->cluster->commits)
        return;
    struct sg_sync_cluster *cluster = block->cluster;
    bool commits = in->operation == SG_DO_COMMIT_GROUP || in->operation == SG_DO_BULK_COMMIT_GROUP;
    struct wait what = {.bulk = in->operation == SG_DO_BULK_COMMIT_GROUP ||
                                in->operation == SG_DO_BULK_WAIT_GROUP,
                        .all = in->operation == SG_DO_WAIT_ALL,
                        .only_sources = (in->modifiers & SG_MOD(READ)) != 0};
    int64_t may_be_open =
        commits || what.all ? 0 : sync->options.program->operands[in->first_operand].value;
    uint32_t threads = sync->cluster_size * sync->options.threads;
    for (uint32_t left = lanes; left; left &= left - 1) {
        uint32_t thread = sg_sync_thread(sync, block, warp->first + (unsigned)__builtin_ctz(left));
        uint32_t *count = &cluster->commits[thread + (what.bulk ? threads : 0)];
        *count += commits;
        what.group = *count > may_be_open ? *count - (uint32_t)may_be_open : 0;
        each(cluster, thread, commits ? commit : cover, &what);
    }
}

/* ---- mbarriers that count copies ------------------------------------------------------------- */

struct teller {
    uint64_t mbarrier;
    unsigned parity;
};

/* Counted by two mbarriers, either would do: it is not looked at any more. */
static void hand_over(struct sg_sync_cluster *cluster, struct sg_sync_copy *copy, const void *of) {
    const struct teller *to = of;
    if (copy->bulk)
        return;
    if (copy->told && (copy->mbarrier != to->mbarrier || copy->parity != to->parity)) {
        release(cluster, copy);
        return;
    }
    copy->told = true;
    copy->mbarrier = to->mbarrier;
    copy->parity = (unsigned char)to->parity;
}

void sg_sync_hands_over(void *user, const struct sg_watched_phase *phase) {
    const struct sg_sync *sync = user;
    struct sg_sync_block *block = sg_sync_block_of(user, phase->warp->block);
    for (uint32_t left = block ? phase->lanes : 0; left; left &= left - 1) {
        unsigned l = (unsigned)__builtin_ctz(left);
        const struct teller to = {phase->address[l], phase->parity >> l & 1};
        each(block->cluster, sg_sync_thread(sync, block, phase->warp->first + l), hand_over, &to);
    }
}

void sg_sync_copies_told(struct sg_sync_cluster *cluster, uint64_t mbarrier, unsigned parity) {
    for (size_t i = 0; i < cluster->copy_count && cluster->open; i++) {
        struct sg_sync_copy *copy = &cluster->copies[i];
        if (copy->open && copy->told && copy->mbarrier == mbarrier && copy->parity == parity)
            release(cluster, copy);
    }
}

/* ---- blocks that end ------------------------------------------------------------------------- */

static void say_left(const struct sg_sync *sync, const struct sg_sync_copy *copy,
                     uint64_t address) {
    struct sg_sync_found found = {.kind = copy->bulk ? SG_SYNC_LEFT : SG_SYNC_UNUSED,
                                  .instruction = copy->instruction,
                                  .thread = copy->thread % sync->options.threads,
                                  .has_address = true,
                                  .write = address == copy->to,
                                  .address = address,
                                  .size = copy->size};
    memcpy(found.place, copy->place, sizeof found.place);
    sg_sync_report(sync, &found);
}

void sg_sync_copies_left(const struct sg_sync *sync, struct sg_sync_block *block) {
    struct sg_sync_cluster *cluster = block->cluster;
    for (size_t i = 0; i < cluster->copy_count && cluster->open; i++) {
        struct sg_sync_copy *copy = &cluster->copies[i];
        if (!copy->open)
            continue;
        bool into = !copy->to_global && copy->to >> RANK_SHIFT == block->rank;
        bool reads = copy->reads_shared && copy->from >> RANK_SHIFT == block->rank;
        bool done = copy->to_global && !copy->reads_shared &&
                    copy->thread / sync->options.threads == block->rank;
        if (into || reads)
            say_left(sync, copy, into ? copy->to : copy->from);
        if (into || reads || done)
            release(cluster, copy);
    }
}
