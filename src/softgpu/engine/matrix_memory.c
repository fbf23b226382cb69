/*
 * Matrices between memory and the registers of a warp: ldmatrix, stmatrix, wmma.load, wmma.store;
 * and movmatrix, which transposes without memory.
 */
#include "softgpu/engine/matrix.h"
#include "softgpu/engine/watching.h"

#include <string.h>

static const struct sg_instruction *instruction_of(const struct sg_warp *warp,
                                                   const struct sg_step *step) {
    return &warp->grid->code->program->instructions[step->instruction];
}

/* ---- addresses ------------------------------------------------------------------------------- */

static uint64_t address_of(const struct sg_warp *warp, const struct sg_step *step, unsigned lane) {
    uint64_t offset = (uint64_t)step->value;
    if (step->flags & SG_STEP_WIDE)
        return ((const uint64_t *)sg_place(warp, step->a))[lane] + offset;
    return (uint32_t)(((const uint32_t *)sg_place(warp, step->a))[lane] + (uint32_t)offset);
}

/* A range of bytes that all lanes share, or that each lane has. */
static unsigned char *inside(struct sg_warp *warp, const struct sg_step *step, unsigned lane,
                             unsigned char *bytes, uint64_t room, uint64_t address, uint64_t size) {
    if (size <= room && address <= room - size)
        return bytes + address;
    return sg_warp_fault(warp, step, SG_FAULT_SPACE, lane, address, size);
}

static unsigned writes(const struct sg_instruction *in) {
    bool store = in->op == SG_OP_stmatrix || in->operation == SG_DO_STORE_D;
    return store ? SG_WATCHED_WRITE : SG_WATCHED_READ;
}

/* The host bytes of an access, or NULL and a fault. */
static unsigned char *reach(struct sg_warp *warp, const struct sg_step *step, unsigned lane,
                            uint64_t address, uint64_t size) {
    static _Thread_local unsigned char nobody[16]; /* for an access that a watcher refuses */
    unsigned space = step->space;
    uint64_t window = address & ~(uint64_t)UINT32_MAX;
    if (warp->grid->code->watched && sg_watch_lane(warp, step, lane, address, (uint32_t)size,
                                                   writes(instruction_of(warp, step)), space))
        return memset(nobody, 0, sizeof nobody);
    if (address & (size - 1))
        return sg_warp_fault(warp, step, SG_FAULT_MISALIGNED, lane, address, size);
    if (space == SG_IN_GENERIC) {
        space = window == SG_SHARED_WINDOW  ? SG_IN_SHARED
                : window == SG_LOCAL_WINDOW ? SG_IN_LOCAL
                                            : SG_IN_GLOBAL;
        address = space == SG_IN_GLOBAL   ? address
                  : space == SG_IN_SHARED ? sg_shared_offset(address)
                                          : address & UINT32_MAX;
    }
    if (space == SG_IN_SHARED)
        return sg_reach_shared(warp, step, lane, address, size);
    if (space == SG_IN_LOCAL)
        return inside(warp, step, lane, warp->local + lane * warp->local_size, warp->local_size,
                      address, size);
    const struct sg_range_cache *cache = &warp->caches[step->cache];
    uint64_t offset = address - cache->low;
    if (size <= cache->length && offset <= cache->length - size)
        return (unsigned char *)(uintptr_t)(address + cache->distance);
    return sg_reach_global(warp, step, lane, address, size);
}

/* ---- 8 x 8 elements of 16 bits --------------------------------------------------------------- */

typedef uint16_t matrix8[8][8];

/* A lane has two elements, from 2 * (lane % 4), of row lane / 4, or with `across` of that
 * column. */
static uint32_t of_lane(const matrix8 all, unsigned lane, bool across) {
    unsigned line = lane / 4, at = 2 * (lane % 4);
    uint32_t low = across ? all[at][line] : all[line][at];
    uint32_t high = across ? all[at + 1][line] : all[line][at + 1];
    return low | high << 16;
}

static void to_matrix(matrix8 all, unsigned lane, bool across, uint32_t word) {
    unsigned line = lane / 4, at = 2 * (lane % 4);
    *(across ? &all[at][line] : &all[line][at]) = (uint16_t)word;
    *(across ? &all[at + 1][line] : &all[line][at + 1]) = (uint16_t)(word >> 16);
}

/* The row of a matrix whose address a lane gives: 16 bytes in shared memory. */
static unsigned char *row_of(struct sg_warp *warp, const struct sg_step *step, unsigned lane) {
    uint64_t address = address_of(warp, step, lane);
    bool generic = step->space == SG_IN_GENERIC;
    if (generic && (address & ~(uint64_t)UINT32_MAX) != SG_SHARED_WINDOW)
        return sg_warp_fault(warp, step, SG_FAULT_SPACE, lane, address, 16);
    return reach(warp, step, lane, address, 16);
}

/* list: `count` registers; lanes 0 to 7 have the addresses of the first matrix's rows, and so
 * on. */
const struct sg_step *sg_run_ldmatrix(struct sg_warp *warp, const struct sg_step *step) {
    const uint32_t *list = warp->grid->code->list + step->list;
    bool across = (instruction_of(warp, step)->modifiers & SG_MOD(TRANS)) != 0;
    matrix8 all[4] = {{{0}}};
    for (unsigned lane = 0; lane < 8u * step->count; lane++) {
        if (!(warp->mask >> lane & 1))
            continue;
        const unsigned char *row = row_of(warp, step, lane);
        if (!row)
            return NULL;
        memcpy(all[lane / 8][lane % 8], row, 16);
    }
    for (unsigned i = 0; i < step->count; i++) {
        uint32_t *d = sg_place(warp, list[i]);
        for (unsigned lane = 0; lane < SG_LANES; lane++)
            if (warp->mask >> lane & 1)
                d[lane] = of_lane((const uint16_t(*)[8])all[i], lane, across);
    }
    return step + 1;
}

const struct sg_step *sg_run_stmatrix(struct sg_warp *warp, const struct sg_step *step) {
    const uint32_t *list = warp->grid->code->list + step->list;
    bool across = (instruction_of(warp, step)->modifiers & SG_MOD(TRANS)) != 0;
    for (unsigned i = 0; i < step->count; i++) {
        const uint32_t *from = sg_place(warp, list[i]);
        matrix8 all;
        for (unsigned lane = 0; lane < SG_LANES; lane++)
            to_matrix(all, lane, across, from[lane]);
        for (unsigned lane = 8 * i; lane < 8 * i + 8; lane++) {
            if (!(warp->mask >> lane & 1))
                continue;
            unsigned char *row = row_of(warp, step, lane);
            if (!row)
                return NULL;
            memcpy(row, all[lane % 8], 16);
        }
    }
    return step + 1;
}

const struct sg_step *sg_run_movmatrix(struct sg_warp *warp, const struct sg_step *step) {
    const uint32_t *from = sg_place(warp, step->a);
    uint32_t *d = sg_place(warp, step->d);
    matrix8 all;
    for (unsigned lane = 0; lane < SG_LANES; lane++)
        to_matrix(all, lane, false, from[lane]);
    for (unsigned lane = 0; lane < SG_LANES; lane++)
        if (warp->mask >> lane & 1)
            d[lane] = of_lane((const uint16_t(*)[8])all, lane, true);
    return step + 1;
}

/* ---- wmma ------------------------------------------------------------------------------------ */

struct transfer {
    struct sg_matrix matrix;
    const uint32_t *list;
    bool columns; /* in memory the place's second index advances by the stride */
    bool store;
};

static struct transfer transfer_of(const struct sg_warp *warp, const struct sg_step *step) {
    const struct sg_instruction *in = instruction_of(warp, step);
    struct transfer all = {.list = warp->grid->code->list + step->list};
    bool b = in->operation == SG_DO_LOAD_B;
    unsigned which = in->operation == SG_DO_LOAD_A ? SG_MATRIX_A : b ? SG_MATRIX_B : SG_MATRIX_C;
    sg_matrix_of(in, which, &all.matrix);
    all.columns = ((in->modifiers & SG_MOD(A_COLUMN)) != 0) != b;
    all.store = in->operation == SG_DO_STORE_D;
    return all;
}

/* The element's index from the start of the matrix. */
static uint64_t index_of(const struct transfer *all, struct sg_matrix_place place,
                         uint64_t stride) {
    return all->columns ? place.at * stride + place.line : place.line * stride + place.at;
}

static bool copy(struct sg_warp *warp, const struct sg_step *step, const struct transfer *all,
                 unsigned lane, uint64_t address, unsigned char *bytes, uint64_t size) {
    unsigned char *host = reach(warp, step, lane, address, size);
    if (!host)
        return false;
    if (all->store)
        memcpy(host, bytes, size);
    else
        memcpy(bytes, host, size);
    return true;
}

/* One register: in one access if its elements are adjacent in memory, which those smaller than a
 * byte always are. */
static bool one_register(struct sg_warp *warp, const struct sg_step *step,
                         const struct transfer *all, unsigned lane, unsigned reg,
                         unsigned char *bytes) {
    const struct sg_matrix *matrix = &all->matrix;
    uint64_t base = address_of(warp, step, lane);
    uint64_t stride = step->b == SG_NOWHERE ? (all->columns ? matrix->lines : matrix->length)
                                            : ((const uint32_t *)sg_place(warp, step->b))[lane];
    uint64_t first = index_of(all, sg_matrix_at(matrix, lane, reg, 0), stride);
    uint64_t size = matrix->wide ? 8 : 4;
    if (matrix->each == 1 || index_of(all, sg_matrix_at(matrix, lane, reg, 1), stride) == first + 1)
        return copy(warp, step, all, lane, base + first * matrix->bits / 8, bytes, size);
    size = matrix->bits / 8u;
    for (unsigned i = 0; i < matrix->each; i++) {
        uint64_t index = index_of(all, sg_matrix_at(matrix, lane, reg, i), stride);
        if (!copy(warp, step, all, lane, base + index * size, bytes + i * size, size))
            return false;
    }
    return true;
}

static const struct sg_step *transfer(struct sg_warp *warp, const struct sg_step *step) {
    struct transfer all = transfer_of(warp, step);
    /* The registers may also hold the address: nothing is written before everything is read. */
    unsigned char bytes[8][SG_LANES][8] = {{{0}}};
    size_t size = all.matrix.wide ? 8 : 4;
    for (uint32_t left = warp->mask; left; left &= left - 1) {
        unsigned lane = (unsigned)__builtin_ctz(left);
        for (unsigned reg = 0; reg < all.matrix.registers; reg++) {
            unsigned char *from = (unsigned char *)sg_place(warp, all.list[reg]) + lane * size;
            if (all.store)
                memcpy(bytes[reg][lane], from, size);
            if (!one_register(warp, step, &all, lane, reg, bytes[reg][lane]))
                return NULL;
        }
    }
    for (unsigned reg = 0; reg < all.matrix.registers && !all.store; reg++) {
        unsigned char *to = sg_place(warp, all.list[reg]);
        for (unsigned lane = 0; lane < SG_LANES; lane++)
            if (warp->mask >> lane & 1)
                memcpy(to + lane * size, bytes[reg][lane], size);
    }
    return step + 1;
}

const struct sg_step *sg_run_wmma_load(struct sg_warp *warp, const struct sg_step *step) {
    return transfer(warp, step);
}

const struct sg_step *sg_run_wmma_store(struct sg_warp *warp, const struct sg_step *step) {
    return transfer(warp, step);
}
