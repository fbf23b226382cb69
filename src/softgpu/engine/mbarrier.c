/*
 * mbarriers: 64 bits of shared memory that count arrivals and bytes of a phase. PTX leaves their
 * layout to the implementation; here they are the phase's parity, expected arrivals, pending
 * arrivals, pending bytes, and two bits that mark an mbarrier. Undefined behaviour (no mbarrier at
 * the address, more arrivals than are pending) is a fault.
 */
#include "softgpu/engine/watching.h"

#include <string.h>

#define MOST     ((1 << 20) - 1) /* arrivals and bytes that PTX allows */
#define IS_ONE   UINT64_C(2)
#define TX_SHIFT 2
#define TX_ZERO  (1 << 20)

struct mbarrier {
    unsigned parity;
    uint32_t expected, pending;
    int64_t bytes;
};

static uint64_t packed(const struct mbarrier *b) {
    return (uint64_t)b->parity << 63 | (uint64_t)b->expected << 43 | (uint64_t)b->pending << 23 |
           (uint64_t)(b->bytes + TX_ZERO) << TX_SHIFT | IS_ONE;
}

static struct mbarrier unpacked(uint64_t word) {
    return (struct mbarrier){.parity = (unsigned)(word >> 63),
                             .expected = (uint32_t)(word >> 43) & MOST,
                             .pending = (uint32_t)(word >> 23) & MOST,
                             .bytes = (int64_t)(word >> TX_SHIFT & (2 * TX_ZERO - 1)) - TX_ZERO};
}

static bool misused(struct sg_warp *warp, const struct sg_step *step, unsigned lane,
                    uint64_t address, const char *why) {
    sg_fault_note(warp, step, SG_FAULT_MBARRIER, lane, address, 8, why);
    return false;
}

/* The barrier at an address, or NULL and a fault. */
static unsigned char *find(struct sg_warp *warp, const struct sg_step *step, unsigned lane,
                           uint64_t address, struct mbarrier *barrier) {
    uint64_t word;
    unsigned char *at = sg_reach_shared(warp, step, lane, address, sizeof word);
    if (!at)
        return NULL;
    memcpy(&word, at, sizeof word);
    if ((word & 3) != IS_ONE) {
        misused(warp, step, lane, address,
                "  no mbarrier is there: not initialized, invalidated or overwritten\n");
        return NULL;
    }
    *barrier = unpacked(word);
    return at;
}

static void put(unsigned char *at, const struct mbarrier *barrier) {
    uint64_t word = packed(barrier);
    memcpy(at, &word, sizeof word);
}

/* All have arrived and all bytes are there: the next phase. */
static void settle(struct sg_warp *warp, uint64_t address, struct mbarrier *barrier) {
    if (barrier->pending || barrier->bytes)
        return;
    barrier->parity ^= 1;
    barrier->pending = barrier->expected;
    if (warp->grid->code->watched)
        sg_watch_turns(warp, address);
}

static const char too_many_bytes[] = "  more bytes are awaited than it counts, 1048575\n";

bool sg_mbarrier_arrive(struct sg_warp *warp, const struct sg_step *step, unsigned lane,
                        uint64_t address, uint32_t count, bool drop, uint32_t expected,
                        uint64_t *token) {
    struct mbarrier b;
    unsigned char *at = find(warp, step, lane, address, &b);
    if (!at)
        return false;
    if (token)
        *token = packed(&b);
    b.bytes += expected;
    if (count == 0)
        return misused(warp, step, lane, address, "  an arrival that counts 0\n");
    if (count > b.pending || (drop && count > b.expected))
        return misused(warp, step, lane, address, "  more arrivals than its phase still awaits\n");
    if (b.bytes > MOST)
        return misused(warp, step, lane, address, too_many_bytes);
    b.expected -= drop ? count : 0;
    b.pending -= count;
    settle(warp, address, &b);
    put(at, &b);
    return true;
}

bool sg_mbarrier_bytes(struct sg_warp *warp, const struct sg_step *step, unsigned lane,
                       uint64_t address, int64_t bytes) {
    struct mbarrier b;
    unsigned char *at = find(warp, step, lane, address, &b);
    if (!at)
        return false;
    b.bytes += bytes;
    if (b.bytes > MOST || b.bytes < -MOST)
        return misused(warp, step, lane, address, too_many_bytes);
    if (bytes <= 0)
        settle(warp, address, &b);
    put(at, &b);
    return true;
}

bool sg_mbarrier_more(struct sg_warp *warp, const struct sg_step *step, unsigned lane,
                      uint64_t address) {
    struct mbarrier b;
    unsigned char *at = find(warp, step, lane, address, &b);
    if (!at)
        return false;
    if (b.pending == MOST)
        return misused(warp, step, lane, address,
                       "  more arrivals are awaited than it counts, 1048575\n");
    b.pending++;
    put(at, &b);
    return true;
}

unsigned sg_mbarrier_parity(struct sg_warp *warp, uint64_t address) {
    struct sg_cluster_run *cluster = warp->block->cluster;
    uint64_t rank = address >> SG_RANK_SHIFT, offset = SG_RANK_OFFSET(address), word;
    if (rank >= cluster->size || !cluster->blocks[rank] ||
        offset + sizeof word > sg_shared_room(warp->grid))
        return 0;
    memcpy(&word, cluster->blocks[rank]->shared + offset, sizeof word);
    return unpacked(word).parity;
}

/* ---- steps ----------------------------------------------------------------------------------- */

static uint32_t word_of(const struct sg_warp *warp, uint32_t place, unsigned lane,
                        uint32_t otherwise) {
    return place == SG_NOWHERE ? otherwise : ((const uint32_t *)sg_place(warp, place))[lane];
}

static bool begin(struct sg_warp *warp, const struct sg_step *step, unsigned lane,
                  uint64_t address) {
    uint32_t count = word_of(warp, step->b, lane, 1);
    unsigned char *at = sg_reach_shared(warp, step, lane, address, 8);
    if (!at)
        return false;
    if (count == 0 || count > MOST)
        return misused(warp, step, lane, address, "  a count that is not from 1 to 1048575\n");
    put(at, &(struct mbarrier){.expected = count, .pending = count});
    return true;
}

static bool end(struct sg_warp *warp, const struct sg_step *step, unsigned lane, uint64_t address) {
    struct mbarrier b;
    unsigned char *at = find(warp, step, lane, address, &b);
    if (at)
        memset(at, 0, sizeof(uint64_t));
    return at != NULL;
}

static bool change(struct sg_warp *warp, const struct sg_step *step, unsigned lane,
                   uint64_t address) {
    uint32_t number = word_of(warp, step->b, lane, 1);
    uint64_t token = 0;
    bool bytes = false, drop = false, good;
    switch (step->choice) {
    case SG_DO_INIT:
        return begin(warp, step, lane, address);
    case SG_DO_INVAL:
        return end(warp, step, lane, address);
    case SG_DO_EXPECT_TX:
        return sg_mbarrier_bytes(warp, step, lane, address, number);
    case SG_DO_COMPLETE_TX:
        return sg_mbarrier_bytes(warp, step, lane, address, -(int64_t)number);
    case SG_DO_ARRIVE_DROP_EXPECT_TX:
    case SG_DO_ARRIVE_EXPECT_TX:
        bytes = true;
        drop = step->choice == SG_DO_ARRIVE_DROP_EXPECT_TX;
        break;
    default:
        drop = step->choice == SG_DO_ARRIVE_DROP;
        break;
    }
    good = sg_mbarrier_arrive(warp, step, lane, address, bytes ? 1 : number, drop,
                              bytes ? number : 0, &token);
    if (step->d != SG_NOWHERE)
        ((uint64_t *)sg_place(warp, step->d))[lane] = token;
    return good;
}

static void tell(struct sg_warp *warp, const struct sg_step *step, const uint32_t *where) {
    const struct sg_instruction *in = &warp->grid->code->program->instructions[step->instruction];
    bool plain = step->choice == SG_DO_INIT || step->choice == SG_DO_INVAL;
    bool relaxed = in->semantics == SG_SEMANTICS_RELAXED || step->choice == SG_DO_EXPECT_TX ||
                   step->choice == SG_DO_COMPLETE_TX;
    /* What a wait acquires is told when it is known whether the phase is over: sg_watch_looks. */
    bool waits = step->choice == SG_DO_TEST_WAIT || step->choice == SG_DO_TRY_WAIT;
    unsigned order = relaxed || waits ? 0 : SG_WATCHED_RELEASE;
    sg_watch_shared(warp, step, where,
                    plain   ? SG_WATCHED_WRITE
                    : waits ? SG_WATCHED_READ
                            : SG_WATCHED_ATOMIC,
                    plain ? 0 : order | SG_WATCHED_STRONG);
}

/* list: the address; b: a count, or nowhere for 1; d: the state, or nowhere; choice: the operation.
 * Lane by lane, in ascending order. */
const struct sg_step *sg_run_mbarrier(struct sg_warp *warp, const struct sg_step *step) {
    const uint32_t *where = warp->grid->code->list + step->list;
    if (warp->grid->code->watched)
        tell(warp, step, where);
    for (uint32_t left = warp->mask; left; left &= left - 1) {
        unsigned l = (unsigned)__builtin_ctz(left);
        uint64_t address;
        if (!sg_where_shared(warp, step, where, l, 8, &address) || !change(warp, step, l, address))
            return NULL;
    }
    return step + 1;
}

/* Whether the lane's phase is complete; late copies may complete now. */
static bool look(struct sg_warp *warp, const struct sg_step *step, unsigned lane, uint64_t address,
                 unsigned parity, bool *over) {
    struct mbarrier b;
    for (int i = 0; i < 2; i++) {
        if (!find(warp, step, lane, address, &b))
            return false;
        *over = b.parity != parity;
        if (*over || warp->grid->launch.schedule == SG_GRID_EAGER)
            return true;
        if (i == 0 && !sg_pending_poll(warp, address, b.pending))
            return false;
    }
    return true;
}

/* list: the address; b: a parity (`second`) or a state; d: a predicate; choice: test or try. */
const struct sg_step *sg_run_mbarrier_wait(struct sg_warp *warp, const struct sg_step *step) {
    const uint32_t *where = warp->grid->code->list + step->list;
    const void *b = sg_place(warp, step->b);
    uint32_t result = 0, asked = 0;
    if (warp->grid->code->watched)
        tell(warp, step, where);
    for (uint32_t left = warp->mask; left; left &= left - 1) {
        unsigned l = (unsigned)__builtin_ctz(left);
        unsigned parity = step->second ? ((const uint32_t *)b)[l] & 1
                                       : (unsigned)(((const uint64_t *)b)[l] >> 63);
        uint64_t address;
        bool over;
        if (!sg_where_shared(warp, step, where, l, 8, &address) ||
            !look(warp, step, l, address, parity, &over))
            return NULL;
        result |= (uint32_t)over << l;
        asked |= (uint32_t)parity << l;
    }
    if (warp->grid->code->watched)
        sg_watch_looks(warp, step, where, asked, result);
    sg_predicate_set(warp, step->d, result);
    if (warp->mask & ~result) {
        warp->polls = true;
        if (step->choice == SG_DO_TRY_WAIT) /* the warp yields at the next basic block */
            warp->left = 0;
    }
    return step + 1;
}

/* a: a state; d: the pending arrivals before the arrival that returned the state */
const struct sg_step *sg_run_mbarrier_count(struct sg_warp *warp, const struct sg_step *step) {
    const uint64_t *a = sg_place(warp, step->a);
    uint32_t *d = sg_place(warp, step->d);
    for (unsigned l = 0; l < SG_LANES; l++)
        d[l] = warp->mask >> l & 1 ? unpacked(a[l]).pending : d[l];
    return step + 1;
}
