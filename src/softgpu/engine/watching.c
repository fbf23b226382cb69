#include "softgpu/engine/watching.h"

#include "softgpu/engine/access.h"

#include <string.h>

static const struct sg_watch *watch_of(const struct sg_warp *warp) {
    return warp->grid->launch.watch;
}

static void *user_of(const struct sg_warp *warp) {
    return warp->grid->launch.watch_user;
}

static struct sg_watched_warp watched(const struct sg_warp *warp) {
    bool clustered = warp->grid->code->clustered;
    return (struct sg_watched_warp){.block = warp->block->index,
                                    .place = warp->block->place,
                                    .first = warp->number * SG_LANES,
                                    .shared = clustered ? NULL : warp->shared,
                                    .shared_bytes = clustered ? 0 : warp->shared_size,
                                    .frame = &warp->path->watched,
                                    .local_bytes = warp->local_size,
                                    .allocated = warp->grid->code->allocates ? warp->stack : NULL};
}

/* Reserved shared memory has addresses below those of the block's own, but is kept after it:
 * watchers get the offset where it is kept. */
static void move_reserved(const struct sg_grid *grid, const uint64_t *address,
                          uint64_t moved[SG_LANES]) {
    for (unsigned l = 0; l < SG_LANES; l++) {
        uint64_t low = sg_shared_address(address[l]);
        moved[l] = low < SG_SHARED_BEGIN ? grid->reserved_offset + low : address[l];
    }
}

static uint32_t tell(const struct sg_warp *warp, const struct sg_watched_access *given) {
    const struct sg_watch *watch = watch_of(warp);
    struct sg_watched_access moved = *given;
    const struct sg_watched_access *access = given;
    uint64_t address[SG_LANES];
    if (warp->grid->reserved_bytes && given->space == SG_IN_SHARED) {
        move_reserved(warp->grid, given->address, address);
        moved.address = address;
        access = &moved;
    }
    if (watch->access)
        watch->access(user_of(warp), access);
    return watch->refuses ? watch->refuses(user_of(warp), access) & access->lanes : 0;
}

/* ---- accesses of a warp ---------------------------------------------------------------------- */

/* The state space of a generic address, and the offset there. */
static unsigned resolve(unsigned space, uint64_t *address) {
    if (space == SG_IN_GENERIC)
        space = sg_generic_space(address);
    return space == SG_IN_PARAM_FRAME ? SG_IN_LOCAL : space;
}

/* The addresses of all lanes; those of lanes that do not execute are not used. */
static void addresses(const struct sg_warp *warp, const struct sg_step *step,
                      uint64_t address[SG_LANES]) {
    if (step->flags & SG_STEP_WIDE) {
        const uint64_t *a = sg_place(warp, step->a);
        for (unsigned l = 0; l < SG_LANES; l++)
            address[l] = a[l] + (uint64_t)step->value;
    } else {
        const uint32_t *a = sg_place(warp, step->a);
        for (unsigned l = 0; l < SG_LANES; l++)
            address[l] = (uint32_t)(a[l] + (uint32_t)step->value);
    }
}

/* Generic addresses may be in several spaces: one call for each. */
static uint32_t tell_generic(const struct sg_warp *warp, struct sg_watched_access *access,
                             uint64_t address[SG_LANES]) {
    unsigned char space[SG_LANES];
    uint32_t refused = 0, all = access->lanes;
    for (unsigned l = 0; l < SG_LANES; l++)
        space[l] = (unsigned char)resolve(SG_IN_GENERIC, &address[l]);
    for (uint32_t left = all; left; left &= ~access->lanes) {
        access->space = space[__builtin_ctz(left)];
        access->lanes = 0;
        for (unsigned l = 0; l < SG_LANES; l++)
            access->lanes |= (uint32_t)(space[l] == access->space) << l;
        access->lanes &= left;
        refused |= tell(warp, access);
    }
    return refused;
}

/* The executing lanes that store the values of the lane before to the same address. */
static uint32_t repeats(const struct sg_warp *warp, const struct sg_step *store, uint32_t size,
                        const uint64_t *address) {
    uint32_t same = 0;
    for (unsigned l = 1; l < SG_LANES; l++)
        same |= (uint32_t)(address[l] == address[l - 1]) << l;
    same &= warp->mask & warp->mask << 1;
    if (!same || !store->count)
        return 0;
    uint32_t bytes = size / store->count < 2 ? 2 : size / store->count; /* of a register */
    if (bytes > 8)
        return 0;
    const uint32_t *list = warp->grid->code->list + store->list;
    for (unsigned i = 0; same && i < store->count; i++) {
        const unsigned char *values = sg_place(warp, list[i]);
        for (uint32_t left = same; left; left &= left - 1) {
            unsigned l = (unsigned)__builtin_ctz(left);
            const unsigned char *value = values + (size_t)l * bytes;
            if (memcmp(value, value - bytes, bytes) != 0)
                same &= ~(UINT32_C(1) << l);
        }
    }
    return same;
}

const struct sg_step *sg_run_probe(struct sg_warp *warp, const struct sg_step *step) {
    warp->probed = warp->mask;
    if (!watch_of(warp) || !warp->mask)
        return step + 1;
    uint64_t address[SG_LANES], windows = 0;
    addresses(warp, step, address);
    struct sg_watched_warp who = watched(warp);
    struct sg_watched_access access = {.warp = &who,
                                       .instruction = step->instruction,
                                       .lanes = warp->mask,
                                       .address = address,
                                       .size = step->count,
                                       .kind = step->choice,
                                       .order = step->second,
                                       .scope = step->rounding,
                                       .space = step->space};
    if (step->choice == SG_WATCHED_WRITE && !(step->second & SG_WATCHED_STRONG))
        access.repeats = repeats(warp, step + 1, step->count, address);
    if (step->space == SG_IN_GENERIC) {
        access.space = SG_IN_GLOBAL;
        for (unsigned l = 0; l < SG_LANES; l++)
            windows |= address[l] >= SG_SHARED_WINDOW;
    } else if (step->space == SG_IN_PARAM_FRAME) {
        access.space = SG_IN_LOCAL;
    }
    uint32_t refused = windows ? tell_generic(warp, &access, address) : tell(warp, &access);
    warp->mask &= ~refused;
    return warp->mask ? step + 1 : step + 2;
}

const struct sg_step *sg_run_probed(struct sg_warp *warp, const struct sg_step *step) {
    warp->mask = warp->probed;
    return step + 1;
}

/* Offsets of the lanes that execute; zeros of the others. */
static void offsets(const struct sg_warp *warp, const uint32_t *where, uint64_t address[SG_LANES]) {
    memset(address, 0, SG_LANES * sizeof *address);
    for (uint32_t left = warp->mask; left; left &= left - 1) {
        unsigned l = (unsigned)__builtin_ctz(left);
        address[l] = sg_where_address(warp, where, l);
        if (where[1] >> 8 == SG_IN_GENERIC)
            address[l] -= SG_SHARED_WINDOW + SG_SHARED_BEGIN;
    }
}

/* Programs arrive at mbarriers of other blocks of their cluster without naming a scope. */
static unsigned char mbarrier_scope(const struct sg_instruction *in) {
    return in->scope == SG_SCOPE_CTA ? SG_WATCHED_CTA : SG_WATCHED_CLUSTER;
}

void sg_watch_shared(struct sg_warp *warp, const struct sg_step *step, const uint32_t *where,
                     unsigned kind, unsigned order) {
    if (!watch_of(warp))
        return;
    uint64_t address[SG_LANES];
    offsets(warp, where, address);
    const struct sg_instruction *in = &warp->grid->code->program->instructions[step->instruction];
    struct sg_watched_warp who = watched(warp);
    (void)tell(warp, &(struct sg_watched_access){.warp = &who,
                                                 .instruction = step->instruction,
                                                 .lanes = warp->mask,
                                                 .address = address,
                                                 .size = 8,
                                                 .kind = (unsigned char)kind,
                                                 .space = SG_IN_SHARED,
                                                 .order = (unsigned char)order,
                                                 .scope = mbarrier_scope(in)});
}

/* ---- of one lane ----------------------------------------------------------------------------- */

bool sg_watch_lane(struct sg_warp *warp, const struct sg_step *step, unsigned lane,
                   uint64_t address, uint32_t size, unsigned kind, unsigned space) {
    if (!watch_of(warp))
        return false;
    uint64_t addresses[SG_LANES] = {0};
    space = resolve(space, &address);
    addresses[lane] = address;
    struct sg_watched_warp who = watched(warp);
    return tell(warp, &(struct sg_watched_access){.warp = &who,
                                                  .instruction = step->instruction,
                                                  .lanes = UINT32_C(1) << lane,
                                                  .address = addresses,
                                                  .size = size,
                                                  .kind = (unsigned char)kind,
                                                  .space = (unsigned char)space}) != 0;
}

static unsigned kind_of(const struct sg_warp *warp, const struct sg_step *step) {
    unsigned op = warp->grid->code->program->instructions[step->instruction].op;
    return op == SG_OP_sust    ? SG_WATCHED_WRITE
           : op == SG_OP_sured ? SG_WATCHED_ATOMIC
                               : SG_WATCHED_READ;
}

bool sg_watch_texel(struct sg_warp *warp, const struct sg_step *step, unsigned lane,
                    uint64_t address, uint32_t size, bool array) {
    if (!watch_of(warp))
        return false;
    uint64_t addresses[SG_LANES] = {0};
    addresses[lane] = address;
    struct sg_watched_warp who = watched(warp);
    return tell(warp, &(struct sg_watched_access){.warp = &who,
                                                  .instruction = step->instruction,
                                                  .lanes = UINT32_C(1) << lane,
                                                  .address = addresses,
                                                  .size = size,
                                                  .kind = (unsigned char)kind_of(warp, step),
                                                  .space = SG_IN_NONE,
                                                  .array = array}) != 0;
}

/* ---- copies ---------------------------------------------------------------------------------- */

/* Fills in the thread that issued the copy, and returns its lane. */
static unsigned issuer(struct sg_warp *warp, const struct sg_pending *what, unsigned place[3],
                       struct sg_watched_warp *who) {
    unsigned thread;
    const struct sg_pending *before = warp->doing;
    warp->doing = what;
    sg_pending_thread(warp, &thread, place);
    warp->doing = before;
    const unsigned *grid = warp->grid->launch.grid;
    *who = (struct sg_watched_warp){
        .block = place[0] + (uint64_t)grid[0] * (place[1] + (uint64_t)grid[1] * place[2]),
        .place = place,
        .first = thread / SG_LANES * SG_LANES};
    return thread % SG_LANES;
}

static bool tell_copy(struct sg_warp *warp, const struct sg_pending *what, uint64_t address,
                      uint32_t size, unsigned kind, bool global) {
    unsigned place[3];
    uint64_t addresses[SG_LANES] = {0};
    struct sg_watched_warp who;
    if (size == 0)
        return false;
    unsigned lane = issuer(warp, what, place, &who);
    addresses[lane] = address;
    unsigned order = SG_WATCHED_ASYNC;
    if (kind == SG_WATCHED_ATOMIC)
        order |= SG_WATCHED_STRONG;
    if (what->kind == SG_PENDING_ARRIVE)
        order |= SG_WATCHED_RELEASE;
    return tell(warp, &(struct sg_watched_access){.warp = &who,
                                                  .instruction = what->step->instruction,
                                                  .lanes = UINT32_C(1) << lane,
                                                  .address = addresses,
                                                  .size = size,
                                                  .kind = (unsigned char)kind,
                                                  .space = global ? SG_IN_GLOBAL : SG_IN_SHARED,
                                                  .order = (unsigned char)order,
                                                  .scope = what->kind == SG_PENDING_ARRIVE
                                                               ? SG_WATCHED_CTA
                                                               : SG_WATCHED_GPU}) != 0;
}

/* The mbarrier counts the bytes: threads that wait for it come after the copy. */
static void tell_delivery(struct sg_warp *warp, const struct sg_pending *what) {
    const struct sg_watch *watch = watch_of(warp);
    unsigned place[3];
    uint64_t addresses[SG_LANES] = {0};
    struct sg_watched_warp who;
    if (!watch->delivers)
        return;
    unsigned lane = issuer(warp, what, place, &who);
    addresses[lane] = what->mbarrier;
    watch->delivers(user_of(warp),
                    &(struct sg_watched_access){.warp = &who,
                                                .instruction = what->step->instruction,
                                                .lanes = UINT32_C(1) << lane,
                                                .address = addresses,
                                                .size = 8,
                                                .kind = SG_WATCHED_ATOMIC,
                                                .space = SG_IN_SHARED,
                                                .order = SG_WATCHED_ASYNC | SG_WATCHED_STRONG |
                                                         SG_WATCHED_RELEASE,
                                                .scope = SG_WATCHED_CLUSTER});
}

bool sg_watch_copy(struct sg_warp *warp, const struct sg_pending *what) {
    if (!watch_of(warp))
        return false;
    if (what->kind == SG_PENDING_ARRIVE)
        return tell_copy(warp, what, what->mbarrier, 8, SG_WATCHED_ATOMIC, false);
    bool refused = false;
    if (!what->from_value)
        refused =
            tell_copy(warp, what, what->from, what->bytes, SG_WATCHED_READ, what->from_global);
    unsigned kind = what->operation == SG_DO_NONE ? SG_WATCHED_WRITE : SG_WATCHED_ATOMIC;
    refused = tell_copy(warp, what, what->to, what->size, kind, what->to_global) || refused;
    if (what->tells)
        tell_delivery(warp, what);
    return refused;
}

void sg_watch_issues(struct sg_warp *warp, const struct sg_step *step, const uint32_t *where) {
    const struct sg_watch *watch = watch_of(warp);
    uint64_t address[SG_LANES];
    if (!watch || !watch->issues)
        return;
    offsets(warp, where, address);
    struct sg_watched_warp who = watched(warp);
    watch->issues(user_of(warp), &(struct sg_watched_access){.warp = &who,
                                                             .instruction = step->instruction,
                                                             .lanes = warp->mask,
                                                             .address = address,
                                                             .size = step->count,
                                                             .kind = SG_WATCHED_WRITE,
                                                             .space = SG_IN_SHARED,
                                                             .order = SG_WATCHED_ASYNC});
}

void sg_watch_issues_bulk(struct sg_warp *warp, const struct sg_pending *what, unsigned lane) {
    const struct sg_watch *watch = watch_of(warp);
    if (!watch || !watch->issues_bulk)
        return;
    struct sg_watched_warp who = watched(warp);
    struct sg_watched_copy copy = {.warp = &who,
                                   .instruction = what->step->instruction,
                                   .size = what->size,
                                   .lane = lane,
                                   .to_global = what->to_global,
                                   .from_global = what->from_global,
                                   .from_value = what->from_value,
                                   .tells = what->tells,
                                   .reduces = what->operation != SG_DO_NONE,
                                   .to = what->to,
                                   .from = what->from,
                                   .mbarrier = what->mbarrier};
    if (what->tells)
        copy.parity = sg_mbarrier_parity(warp, what->mbarrier);
    watch->issues_bulk(user_of(warp), &copy);
}

/* ---- phases of mbarriers --------------------------------------------------------------------- */

void sg_watch_hands_over(struct sg_warp *warp, const struct sg_step *step, const uint32_t *where) {
    const struct sg_watch *watch = watch_of(warp);
    uint64_t address[SG_LANES];
    if (!watch || !watch->hands_over)
        return;
    offsets(warp, where, address);
    struct sg_watched_warp who = watched(warp);
    struct sg_watched_phase phase = {
        .warp = &who, .instruction = step->instruction, .lanes = warp->mask, .address = address};
    for (uint32_t left = warp->mask; left; left &= left - 1) {
        unsigned l = (unsigned)__builtin_ctz(left);
        phase.parity |= (uint32_t)sg_mbarrier_parity(warp, address[l]) << l;
    }
    watch->hands_over(user_of(warp), &phase);
}

void sg_watch_looks(struct sg_warp *warp, const struct sg_step *step, const uint32_t *where,
                    uint32_t parity, uint32_t over) {
    const struct sg_watch *watch = watch_of(warp);
    const struct sg_instruction *in = &warp->grid->code->program->instructions[step->instruction];
    uint64_t address[SG_LANES];
    if (!watch || !watch->looks)
        return;
    offsets(warp, where, address);
    bool relaxed = in->semantics == SG_SEMANTICS_RELAXED;
    struct sg_watched_warp who = watched(warp);
    watch->looks(user_of(warp),
                 &(struct sg_watched_phase){
                     .warp = &who,
                     .instruction = step->instruction,
                     .lanes = warp->mask,
                     .over = over,
                     .parity = parity,
                     .address = address,
                     .by_state = !step->second,
                     .order = relaxed ? SG_WATCHED_STRONG : SG_WATCHED_STRONG | SG_WATCHED_ACQUIRE,
                     .scope = mbarrier_scope(in)});
}

void sg_watch_turns(struct sg_warp *warp, uint64_t address) {
    const struct sg_watch *watch = watch_of(warp);
    if (watch && watch->turns)
        watch->turns(user_of(warp), warp->block->index, address);
}

void sg_watch_depends(struct sg_warp *warp, uint32_t lanes) {
    const struct sg_watch *watch = watch_of(warp);
    if (!watch || !watch->depends)
        return;
    struct sg_watched_warp who = watched(warp);
    watch->depends(user_of(warp), &who, lanes);
}

/* ---- waiting --------------------------------------------------------------------------------- */

void sg_watch_fence(struct sg_warp *warp, const struct sg_step *step, unsigned order,
                    unsigned scope) {
    const struct sg_watch *watch = watch_of(warp);
    if (!watch || !watch->fence)
        return;
    struct sg_watched_warp who = watched(warp);
    watch->fence(user_of(warp), &who, step->instruction, warp->mask, (unsigned char)order,
                 (unsigned char)scope);
}

const struct sg_step *sg_run_watched_fence(struct sg_warp *warp, const struct sg_step *step) {
    sg_watch_fence(warp, step, step->choice, step->rounding);
    return step + 1;
}

void sg_watch_arrives(struct sg_warp *warp, const struct sg_step *step, uint32_t lanes,
                      unsigned number, bool waits) {
    const struct sg_watch *watch = watch_of(warp);
    if (!watch || !watch->arrives || !lanes)
        return;
    struct sg_watched_warp who = watched(warp);
    watch->arrives(user_of(warp), &who, step->instruction, lanes, number, waits);
}

void sg_watch_beyond(struct sg_warp *warp, const struct sg_step *step, uint32_t lanes,
                     uint32_t number) {
    const struct sg_watch *watch = watch_of(warp);
    struct sg_watched_warp who = watched(warp);
    if (watch && watch->beyond)
        watch->beyond(user_of(warp), &who, step->instruction, lanes, number);
}

void sg_watch_completes(const struct sg_block *block, unsigned number) {
    const struct sg_warp *warp = &block->warps[0];
    const struct sg_watch *watch = watch_of(warp);
    if (watch && watch->completes)
        watch->completes(user_of(warp), block->index, number);
}

void sg_watch_meet(struct sg_warp *warp, const struct sg_step *step, uint32_t lanes) {
    const struct sg_watch *watch = watch_of(warp);
    if (!watch || !watch->meet)
        return;
    struct sg_watched_warp who = watched(warp);
    watch->meet(user_of(warp), &who, step->instruction, lanes);
}

void sg_watch_gathers(struct sg_warp *warp, const struct sg_step *step, uint32_t lanes,
                      const uint32_t *members) {
    const struct sg_watch *watch = watch_of(warp);
    if (!watch || !watch->gathers || !lanes)
        return;
    struct sg_watched_warp who = watched(warp);
    watch->gathers(user_of(warp), &who, step->instruction, lanes, members);
}

void sg_watch_enters(struct sg_warp *warp, uint32_t lanes) {
    const struct sg_watch *watch = watch_of(warp);
    if (!watch || !watch->enters)
        return;
    struct sg_watched_warp who = watched(warp);
    watch->enters(user_of(warp), &who, lanes);
}

void sg_watch_exits(struct sg_warp *warp, uint32_t lanes) {
    const struct sg_watch *watch = watch_of(warp);
    if (!watch || !watch->exits)
        return;
    struct sg_watched_warp who = watched(warp);
    watch->exits(user_of(warp), &who, lanes);
}

void sg_watch_begins(const struct sg_block *block) {
    const struct sg_warp *warp = &block->warps[0];
    const struct sg_watch *watch = watch_of(warp);
    if (watch && watch->block_begins)
        watch->block_begins(user_of(warp), block->index, sg_shared_room(warp->grid));
}

void sg_watch_ends(const struct sg_block *block) {
    const struct sg_warp *warp = &block->warps[0];
    const struct sg_watch *watch = watch_of(warp);
    if (watch && watch->block_ends)
        watch->block_ends(user_of(warp), block->index);
}
