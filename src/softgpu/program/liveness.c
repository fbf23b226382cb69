#include "softgpu/program/liveness.h"

#include <stdlib.h>

/* Above this many words for a kind of sets, all is taken to be live: that is never wrong. */
#define MOST_WORDS ((size_t)4 << 20)

struct finding {
    const struct sg_program *program;
    const struct sg_program_function *function;
    struct sg_liveness *live;
    uint32_t *written; /* by register: the block that wrote it last, + 1 */
    uint64_t *kills;   /* by block: those that it writes before it reads them */
    uint32_t block;
    bool guarded;
};

static bool returns(const struct sg_program *program, const struct sg_program_block *block) {
    return program->instructions[block->end - 1].op == SG_OP_ret;
}

/* ---- registers that are live across blocks --------------------------------------------------- */

static void crosses(struct finding *f, uint32_t reg) {
    if (f->live->bit_of[reg])
        return;
    f->live->registers[f->live->count++] = reg;
    f->live->bit_of[reg] = f->live->count;
}

static void look_across(void *user, uint32_t reg, bool written) {
    struct finding *f = user;
    if (!written && f->written[reg] != f->block + 1)
        crosses(f, reg);
    else if (written && !f->guarded)
        f->written[reg] = f->block + 1;
}

typedef void for_result(struct finding *f, uint32_t reg);
static void each_result(struct finding *f, for_result *tell) {
    for (uint32_t i = 0; i < f->function->results; i++) {
        const struct sg_program_parameter *one =
            &f->program->parameters[f->function->first_result + i];
        for (uint32_t k = 0; one->reg != SG_NO_REGISTER && k < one->count; k++)
            tell(f, one->reg + k);
    }
}

static void walk(struct finding *f, uint32_t block, sg_register_use *use) {
    const struct sg_program_block *one = &f->program->blocks[block];
    f->block = block;
    for (uint32_t i = one->first; i < one->end; i++) {
        const struct sg_instruction *in = &f->program->instructions[i];
        f->guarded = in->guard != 0;
        sg_instruction_registers(f->program, in, use, f);
    }
}

/* ---- sets ------------------------------------------------------------------------------------ */

static uint64_t *set_of(const struct sg_liveness *live, uint64_t *sets, uint32_t block) {
    return sets + (block - live->first_block) * live->words;
}

static bool has(const uint64_t *set, uint32_t bit) {
    return set[bit / 64] >> bit % 64 & 1;
}

static void add(uint64_t *set, uint32_t bit) {
    set[bit / 64] |= (uint64_t)1 << bit % 64;
}

static void gather(void *user, uint32_t reg, bool written) {
    struct finding *f = user;
    uint32_t bit = f->live->bit_of[reg];
    if (!bit--)
        return;
    uint64_t *kills = set_of(f->live, f->kills, f->block);
    if (written)
        add(set_of(f->live, f->live->writes, f->block), bit);
    if (written && !f->guarded && !has(set_of(f->live, f->live->in, f->block), bit))
        add(kills, bit);
    else if (!written && !has(kills, bit))
        add(set_of(f->live, f->live->in, f->block), bit);
}

static void leaves_with(struct finding *f, uint32_t reg) {
    add(set_of(f->live, f->live->out, f->block), f->live->bit_of[reg] - 1);
}

/* Adds what is live at the end of a block, and what of that is at its beginning. */
static bool update(struct finding *f, uint32_t block) {
    const struct sg_liveness *live = f->live;
    const struct sg_program_block *one = &f->program->blocks[block];
    uint64_t *in = set_of(live, live->in, block), *out = set_of(live, live->out, block);
    const uint64_t *kills = set_of(live, f->kills, block);
    bool changed = false;
    for (uint32_t i = 0; i < one->successors; i++) {
        const uint64_t *next =
            set_of(live, live->in, f->program->successors[one->first_successor + i]);
        for (size_t w = 0; w < live->words; w++)
            out[w] |= next[w];
    }
    for (size_t w = 0; w < live->words; w++) {
        uint64_t more = out[w] & ~kills[w] & ~in[w];
        in[w] |= more;
        changed |= more != 0;
    }
    return changed;
}

static void flow(struct finding *f) {
    uint32_t first = f->live->first_block, end = first + f->live->blocks;
    for (uint32_t b = first; b < end; b++) {
        walk(f, b, gather);
        if (returns(f->program, &f->program->blocks[b]))
            each_result(f, leaves_with);
    }
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t b = end; b-- > first;)
            changed |= update(f, b);
    }
}

static bool find(struct finding *f) {
    struct sg_liveness *live = f->live;
    for (uint32_t b = 0; b < live->blocks; b++)
        walk(f, live->first_block + b, look_across);
    each_result(f, crosses);
    live->words = (live->count + 63) / 64;
    size_t all = live->words * live->blocks;
    if (!all || all > MOST_WORDS)
        return true;
    live->in = calloc(3 * all, sizeof *live->in);
    f->kills = calloc(all, sizeof *f->kills);
    if (!live->in || !f->kills)
        return false;
    live->out = live->in + all;
    live->writes = live->out + all;
    flow(f);
    return true;
}

/* ---- the whole ------------------------------------------------------------------------------- */

bool sg_liveness_find(const struct sg_program *program, const struct sg_program_function *function,
                      struct sg_liveness *live) {
    *live = (struct sg_liveness){.first_block = function->first_block, .blocks = function->blocks};
    struct finding f = {.program = program, .function = function, .live = live};
    live->bit_of = calloc(function->registers + (size_t)1, sizeof *live->bit_of);
    live->registers = calloc(function->registers + (size_t)1, sizeof *live->registers);
    f.written = calloc(function->registers + (size_t)1, sizeof *f.written);
    bool good = live->bit_of && live->registers && f.written && find(&f);
    free(f.written);
    free(f.kills);
    if (!good)
        sg_liveness_free(live);
    return good;
}

void sg_liveness_free(struct sg_liveness *live) {
    free(live->bit_of);
    free(live->registers);
    free(live->in);
    *live = (struct sg_liveness){0};
}

static bool is_live(const struct sg_liveness *live, uint64_t *sets, uint32_t block, uint32_t reg) {
    uint32_t bit = live->bit_of[reg];
    return bit && (!sets || has(set_of(live, sets, block), bit - 1));
}

bool sg_live_in(const struct sg_liveness *live, uint32_t block, uint32_t reg) {
    return is_live(live, live->in, block, reg);
}

bool sg_live_out(const struct sg_liveness *live, uint32_t block, uint32_t reg) {
    return is_live(live, live->out, block, reg);
}

bool sg_live_written(const struct sg_liveness *live, uint32_t block, uint32_t reg) {
    return is_live(live, live->writes, block, reg);
}
