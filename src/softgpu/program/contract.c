/*
 * Contraction: a product and the sum that it is in become one fma, with one rounding. PTX permits
 * it where neither has a rounding modifier, and ptxas does it; so the last bits of a kernel depend
 * on which it chooses. These rules are those of ptxas 13.0 with optimisation for sm_90, as its
 * machine code and an H200 show; without optimisation it fuses nothing.
 *
 * A product is an f32, f64, f16, bf16, f16x2 or bf16x2 mul without .sat and without a guard; a sum
 * an add or sub of the same type, and with .ftz exactly where the product has it. Between the two
 * there may be moves and neg. A constant product is no product (it is folded), nor is one by 1 or
 * -1, which is a move or a neg.
 *
 * - A product is fused only if all that reads it are sums in the same block: one that is stored,
 *   compared, multiplied, the addend of an fma, read by a sum with a rounding modifier or after a
 *   branch, or merged with other values by a guarded write, keeps its own rounding in each sum.
 *   So does one that is added to itself, or to a product of the same factors. What nothing reads
 *   does not count, and blocks of which one leads only to the other, and is alone in that, are one
 *   block.
 * - Where all these hold, each of its sums is fused, and the mul is left out.
 * - Of two products in a sum that which is read less is fused, the first of two read equally; the
 *   other one is then the addend of an fma, and its later sums are not fused. A product that is
 *   read more than once and that way loses a sum to one that is read there alone is fused nowhere.
 *
 * Sums are taken in the order of the text. ptxas does the same after it has inlined functions and
 * unrolled loops, and so sees some products that here are of another function or an earlier turn.
 */
#include "softgpu/program/build.h"
#include "softgpu/program/liveness.h"

#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX

struct product {
    uint32_t mul;      /* its instruction, as a number in the function */
    uint32_t position; /* in its run, + 1 */
    uint32_t reads, fused;
    uint32_t lost;    /* sums in which it loses to a product that only they read */
    bool kept;        /* something other than sums reads it, or it is an addend */
    uint32_t copy[2]; /* registers with factors that change too early; NONE: none */
};

struct term {
    uint32_t product; /* NONE: the operand is none */
    bool negated;
    bool changed[2]; /* the product's factor: another instruction has written its register since */
};

struct sum {
    uint32_t instruction;
    uint32_t fused; /* the number of the term; NONE: neither */
    struct term terms[2];
};

/* What a register holds now, within a run of blocks. */
struct holding {
    uint32_t product;
    uint32_t run;     /* in which this was noted; since an older one it holds nothing */
    uint32_t written; /* position of the last write in the run, + 1 */
    uint32_t reads;   /* since then */
    bool negated;
    bool merged; /* lanes have it or another value */
};

struct contraction {
    struct sg_build *b;
    struct sg_program *program;
    struct sg_program_function *function;
    struct sg_instruction *code; /* of the function */
    struct sg_liveness live;     /* once it is asked for */
    bool live_found;
    struct holding *holding; /* by register */
    uint32_t *reads;         /* by register: how many operands read it */
    uint32_t *writer;        /* by register: the one instruction that writes it, + 1; 0, NONE */
    uint32_t *entered;       /* by block: edges that lead there from what can be reached */
    uint32_t *stack;
    uint32_t *product_of; /* by instruction: which product it makes or passes on, or NONE */
    uint32_t *touched;    /* registers that have held a product in this run */
    uint32_t touched_count;
    bool *unread; /* by instruction: nothing reads its result */
    struct product *products;
    size_t product_count;
    struct sum *sums;
    size_t sum_count;
    uint32_t run, position;
    const struct sg_instruction *in; /* being looked at */
};

static bool floating(unsigned type) {
    return type == SG_TYPE_F32 || type == SG_TYPE_F64 || type == SG_TYPE_F16 ||
           type == SG_TYPE_BF16 || type == SG_TYPE_F16X2 || type == SG_TYPE_BF16X2;
}

static bool plain(const struct sg_instruction *in, uint64_t modifiers) {
    return floating(in->type) && in->rounding == SG_ROUND_NONE && !(in->modifiers & ~modifiers) &&
           !in->unsupported && in->operand_count == 3;
}

static bool may_be_product(const struct sg_instruction *in) {
    return in->op == SG_OP_mul && !in->guard && plain(in, SG_MOD(FTZ));
}

static bool may_be_sum(const struct sg_instruction *in) {
    return (in->op == SG_OP_add || in->op == SG_OP_sub) && plain(in, SG_MOD(FTZ) | SG_MOD(SAT));
}

static const struct sg_operand *operand(const struct contraction *c,
                                        const struct sg_instruction *in, unsigned i) {
    return &c->program->operands[in->first_operand + i];
}

/* ---- constants ------------------------------------------------------------------------------- */

static uint64_t one_of(unsigned type) {
    static const uint64_t ones[SG_TYPE_COUNT] = {
        [SG_TYPE_F32] = 0x3f800000, [SG_TYPE_F64] = UINT64_C(0x3ff0000000000000),
        [SG_TYPE_F16] = 0x3c00,     [SG_TYPE_F16X2] = 0x3c003c00,
        [SG_TYPE_BF16] = 0x3f80,    [SG_TYPE_BF16X2] = 0x3f803f80};
    return ones[type];
}

static uint64_t signs_of(unsigned type) {
    return type == SG_TYPE_F16X2 || type == SG_TYPE_BF16X2
               ? 0x80008000
               : (uint64_t)1 << (sg_type_bits(type) - 1);
}

/* The bits of a constant, or of a register that only a move of one writes. */
static bool constant(const struct contraction *c, const struct sg_operand *one, uint64_t *bits) {
    if (one->kind == SG_OPERAND_REGISTER) {
        uint32_t writer = c->writer[one->reg];
        if (writer == 0 || writer == NONE)
            return false;
        const struct sg_instruction *move = &c->code[writer - 1];
        if (move->op != SG_OP_mov || move->guard || move->operand_count != 2)
            return false;
        one = operand(c, move, 1);
    }
    unsigned width = sg_type_bits(one->type);
    *bits = (uint64_t)one->value & (width < 64 ? ((uint64_t)1 << width) - 1 : UINT64_MAX);
    return one->kind == SG_OPERAND_IMMEDIATE;
}

static bool is_one(const struct contraction *c, const struct sg_instruction *mul, unsigned i,
                   bool *negative) {
    uint64_t bits, signs = signs_of(mul->type);
    if (!constant(c, operand(c, mul, i), &bits) || (bits & ~signs) != one_of(mul->type))
        return false;
    *negative = (bits & signs) != 0;
    return !*negative || (bits & signs) == signs;
}

static bool folded(const struct contraction *c, const struct sg_instruction *mul) {
    uint64_t bits;
    bool negative;
    return is_one(c, mul, 1, &negative) || is_one(c, mul, 2, &negative) ||
           (constant(c, operand(c, mul, 1), &bits) && constant(c, operand(c, mul, 2), &bits));
}

/* ---- what registers hold --------------------------------------------------------------------- */

static struct holding *held(const struct contraction *c, uint32_t reg) {
    struct holding *one = &c->holding[reg];
    if (one->run != c->run)
        *one = (struct holding){.product = NONE, .run = c->run};
    return one;
}

static void hold(struct contraction *c, uint32_t reg, uint32_t product, bool negated) {
    struct holding *one = held(c, reg);
    *one = (struct holding){
        .product = product, .run = c->run, .written = c->position + 1, .negated = negated};
    c->touched[c->touched_count++] = reg;
}

/* Of anything but a sum. A guarded write leaves some lanes what they had. */
static void note_use(void *user, uint32_t reg, bool written) {
    struct contraction *c = user;
    struct holding *one = held(c, reg);
    one->reads += !written;
    if (!written && one->product != NONE)
        c->products[one->product].kept = true;
    if (!written)
        return;
    one->written = c->position + 1;
    one->merged = c->in->guard != 0;
    if (!c->in->guard)
        one->product = NONE;
}

/* Which operand an instruction hands on, as it is or negated; 0: none. */
static unsigned passes_on(const struct contraction *c, const struct sg_instruction *mul,
                          bool *negates) {
    const struct sg_instruction *in = c->in;
    *negates = in->op == SG_OP_neg && in->type != SG_TYPE_BF16X2; /* that is computed: -0 - x */
    if (in->guard || in->unsupported || sg_type_bits(in->type) != sg_type_bits(mul->type) ||
        in->modifiers & ~mul->modifiers & SG_MOD(FTZ))
        return 0;
    bool moves = in->op == SG_OP_mov || (in->op == SG_OP_cvt && in->type == mul->type &&
                                         in->type2 == mul->type && !(in->modifiers & ~SG_MOD(FTZ)));
    if (in->operand_count == 2 && (moves || (*negates && in->type == mul->type)))
        return 1;
    if (!may_be_product(in) || in->type != mul->type)
        return 0;
    return is_one(c, in, 2, negates) ? 1 : is_one(c, in, 1, negates) ? 2 : 0;
}

static bool whole_register(const struct sg_operand *one) {
    return one->kind == SG_OPERAND_REGISTER && !one->part && !one->negated && !one->value;
}

static bool note_passed_on(struct contraction *c, uint32_t index) {
    const struct sg_instruction *in = c->in;
    for (unsigned i = 1; in->result && i < in->operand_count && i < 3; i++) {
        const struct sg_operand *from = operand(c, in, i), *to = operand(c, in, 0);
        if (!whole_register(from) || !whole_register(to))
            continue;
        const struct holding one = *held(c, from->reg);
        bool negates;
        if (one.product == NONE || one.merged ||
            passes_on(c, &c->code[c->products[one.product].mul], &negates) != i)
            continue;
        held(c, from->reg)->reads++;
        c->product_of[index] = one.product;
        hold(c, to->reg, one.product, one.negated != negates);
        return true;
    }
    return false;
}

/* ---- products and sums ----------------------------------------------------------------------- */

static bool note_product(struct contraction *c, uint32_t index) {
    const struct sg_operand *result = operand(c, c->in, 0);
    if (!may_be_product(c->in) || !whole_register(result) || folded(c, c->in))
        return true;
    struct product *grown = sg_image_grow(c->products, &c->product_count, sizeof *grown);
    if (!grown)
        return sg_build_no_memory(c->b);
    c->products = grown;
    uint32_t number = (uint32_t)c->product_count - 1;
    grown[number] =
        (struct product){.mul = index, .position = c->position + 1, .copy = {NONE, NONE}};
    c->product_of[index] = number;
    hold(c, result->reg, number, false);
    return true;
}

/* One that does not fit the sum is read there as by anything else. */
static void note_term(struct contraction *c, const struct sg_operand *from, struct term *to) {
    *to = (struct term){.product = NONE};
    if (from->kind != SG_OPERAND_REGISTER)
        return;
    struct holding *holding = held(c, from->reg);
    holding->reads++;
    if (holding->product == NONE)
        return;
    struct product *product = &c->products[holding->product];
    const struct sg_instruction *mul = &c->code[product->mul];
    if (holding->merged || mul->type != c->in->type ||
        (mul->modifiers ^ c->in->modifiers) & SG_MOD(FTZ)) {
        product->kept = true;
        return;
    }
    product->reads++;
    to->product = holding->product;
    to->negated = holding->negated;
    for (unsigned i = 0; i < 2; i++) {
        const struct sg_operand *factor = operand(c, mul, 1 + i);
        to->changed[i] = factor->kind == SG_OPERAND_REGISTER &&
                         held(c, factor->reg)->written > product->position;
    }
}

static bool note_sum(struct contraction *c, uint32_t index) {
    struct sum sum = {.instruction = index, .fused = NONE};
    note_term(c, operand(c, c->in, 1), &sum.terms[0]);
    note_term(c, operand(c, c->in, 2), &sum.terms[1]);
    if (operand(c, c->in, 0)->kind == SG_OPERAND_REGISTER)
        note_use(c, operand(c, c->in, 0)->reg, true);
    if (sum.terms[0].product == NONE && sum.terms[1].product == NONE)
        return true;
    struct sum *grown = sg_image_grow(c->sums, &c->sum_count, sizeof *grown);
    if (!grown)
        return sg_build_no_memory(c->b);
    c->sums = grown;
    grown[c->sum_count - 1] = sum;
    return true;
}

static bool read_here_alone(const struct contraction *c, uint32_t product) {
    return product != NONE && !c->products[product].kept && c->products[product].reads == 1;
}

static bool same(const struct sg_operand *a, const struct sg_operand *b) {
    return a->kind == b->kind && a->reg == b->reg && a->value == b->value;
}

/* A product added to itself, or to one of the same factors where either is read there alone. */
static bool doubles(const struct contraction *c, const struct sum *sum) {
    const struct term *a = &sum->terms[0], *b = &sum->terms[1];
    if (a->product == NONE || b->product == NONE || a->product == b->product)
        return a->product == b->product;
    const struct sg_instruction *p = &c->code[c->products[a->product].mul];
    const struct sg_instruction *q = &c->code[c->products[b->product].mul];
    bool minus = c->code[sum->instruction].op == SG_OP_sub;
    if (a->changed[0] || a->changed[1] || b->changed[0] || b->changed[1] ||
        a->negated != (b->negated != minus) ||
        (!read_here_alone(c, a->product) && !read_here_alone(c, b->product)))
        return false;
    return (same(operand(c, p, 1), operand(c, q, 1)) && same(operand(c, p, 2), operand(c, q, 2))) ||
           (same(operand(c, p, 1), operand(c, q, 2)) && same(operand(c, p, 2), operand(c, q, 1)));
}

/* ---- which are fused ------------------------------------------------------------------------- */

static bool can_fuse(const struct contraction *c, const struct sum *sum, unsigned i) {
    uint32_t own = sum->terms[i].product;
    if (own == NONE || c->products[own].kept)
        return false;
    return c->products[own].lost == 0 ||
           (c->products[own].lost == 1 && read_here_alone(c, sum->terms[!i].product));
}

static void choose(struct contraction *c, struct sum *sum) {
    bool first = can_fuse(c, sum, 0), second = can_fuse(c, sum, 1);
    if (first && second) {
        second =
            c->products[sum->terms[1].product].reads < c->products[sum->terms[0].product].reads;
        first = !second;
    }
    if (!first && !second)
        return;
    sum->fused = second;
    c->products[sum->terms[second].product].fused++;
    if (sum->terms[first].product != NONE)
        c->products[sum->terms[first].product].kept = true;
}

/* Of two halves in a register ptxas does not look at later sums. */
static void count_lost(struct contraction *c, const struct sum *sum) {
    unsigned type = c->code[sum->instruction].type;
    for (unsigned i = 0; i < 2 && type != SG_TYPE_F16X2 && type != SG_TYPE_BF16X2; i++)
        if (sum->terms[i].product != NONE && read_here_alone(c, sum->terms[!i].product))
            c->products[sum->terms[i].product].lost++;
}

/* The sums from `from` on are those of one run. */
static void decide(struct contraction *c, size_t from) {
    for (size_t i = from; i < c->sum_count; i++) {
        if (!doubles(c, &c->sums[i]))
            continue;
        c->products[c->sums[i].terms[0].product].kept = true;
        c->products[c->sums[i].terms[1].product].kept = true;
    }
    for (size_t i = from; i < c->sum_count; i++)
        count_lost(c, &c->sums[i]);
    for (size_t i = from; i < c->sum_count; i++)
        choose(c, &c->sums[i]);
}

/* ---- runs of blocks -------------------------------------------------------------------------- */

static bool look_at(struct contraction *c, uint32_t index) {
    c->in = &c->code[index];
    if (c->unread[index])
        return true;
    if (may_be_sum(c->in))
        return note_sum(c, index);
    if (note_passed_on(c, index))
        return true;
    sg_instruction_registers(c->program, c->in, note_use, c);
    return note_product(c, index);
}

static const struct sg_program_block *block_at(const struct contraction *c, uint32_t block) {
    return &c->program->blocks[c->function->first_block + block];
}

/* The block that follows this one alone, and no other; NONE: there is no such block. */
static uint32_t follower(const struct contraction *c, uint32_t block) {
    const struct sg_program_block *one = block_at(c, block);
    const struct sg_instruction *last = &c->program->instructions[one->end - 1];
    if (one->successors != 1 || (last->guard && last->op != SG_OP_bra && last->op != SG_OP_brx))
        return NONE;
    uint32_t to = c->program->successors[one->first_successor] - c->function->first_block;
    return c->entered[to] == 1 ? to : NONE;
}

/* Whether a product in a register may be read after the run that ends with a block. That of a
 * register with one write has only the reads that were seen, or others; else its liveness says. */
static bool read_later(struct contraction *c, uint32_t block, uint32_t reg, bool *later) {
    const struct holding *one = held(c, reg);
    *later = one->product != NONE && !c->products[one->product].kept;
    if (!*later || (c->writer[reg] != NONE && c->reads[reg] == one->reads)) {
        *later = false;
        return true;
    }
    if (!c->live_found && !sg_liveness_find(c->program, c->function, &c->live))
        return sg_build_no_memory(c->b);
    c->live_found = true;
    *later = sg_live_out(&c->live, c->function->first_block + block, reg);
    return true;
}

static bool look_through(struct contraction *c, uint32_t block) {
    size_t first_sum = c->sum_count;
    uint32_t last = block;
    c->run++;
    c->position = c->touched_count = 0;
    for (uint32_t at = block; at != NONE; at = follower(c, at)) {
        const struct sg_program_block *one = block_at(c, at);
        for (uint32_t i = one->first; i < one->end; i++, c->position++)
            if (!look_at(c, i - c->function->first_instruction))
                return false;
        last = at;
    }
    for (uint32_t i = 0; i < c->touched_count; i++) {
        bool later;
        if (!read_later(c, last, c->touched[i], &later))
            return false;
        if (later)
            c->products[held(c, c->touched[i])->product].kept = true;
    }
    decide(c, first_sum);
    return true;
}

/* Counts the edges into blocks that can be reached; the function's begin counts as one. */
static void count_entries(struct contraction *c) {
    uint32_t depth = 0;
    c->entered[0] = 1;
    c->stack[depth++] = 0;
    while (depth) {
        const struct sg_program_block *one = block_at(c, c->stack[--depth]);
        for (uint32_t i = 0; i < one->successors; i++) {
            uint32_t to =
                c->program->successors[one->first_successor + i] - c->function->first_block;
            if (c->entered[to]++ == 0)
                c->stack[depth++] = to;
        }
    }
}

/* A block that follows another is looked at with that one. */
static bool look_through_all(struct contraction *c) {
    count_entries(c);
    for (uint32_t i = 0; i < c->function->blocks; i++)
        c->stack[i] = false;
    for (uint32_t i = 0; i < c->function->blocks; i++) {
        uint32_t to = c->entered[i] ? follower(c, i) : NONE;
        if (to != NONE)
            c->stack[to] = true;
    }
    for (uint32_t i = 0; i < c->function->blocks; i++)
        if (c->entered[i] && !c->stack[i] && !look_through(c, i))
            return false;
    return true;
}

/* ---- what is read at all --------------------------------------------------------------------- */

static void count_use(void *user, uint32_t reg, bool written) {
    struct contraction *c = user;
    if (!written)
        c->reads[reg]++;
    else
        c->writer[reg] = c->writer[reg] ? NONE : (uint32_t)(c->in - c->code) + 1;
}

static void take_back(void *user, uint32_t reg, bool written) {
    struct contraction *c = user;
    if (!written)
        c->reads[reg]--;
}

static bool only_computes(const struct sg_instruction *in) {
    return in->result && (in->op == SG_OP_mov || in->op == SG_OP_selp ||
                          (floating(in->type) &&
                           (in->op == SG_OP_add || in->op == SG_OP_sub || in->op == SG_OP_mul ||
                            in->op == SG_OP_fma || in->op == SG_OP_neg || in->op == SG_OP_abs)));
}

static void find_unread(struct contraction *c) {
    const struct sg_program_function *function = c->function;
    for (uint32_t i = 0; i < function->instructions; i++) {
        c->in = &c->code[i];
        sg_instruction_registers(c->program, c->in, count_use, c);
    }
    for (uint32_t i = 0; i < function->results; i++) {
        const struct sg_program_parameter *one =
            &c->program->parameters[function->first_result + i];
        for (uint32_t k = 0; one->reg != SG_NO_REGISTER && k < one->count; k++)
            c->reads[one->reg + k]++;
    }
    for (uint32_t i = function->instructions; i-- > 0;) {
        c->in = &c->code[i];
        if (!only_computes(c->in) || !whole_register(operand(c, c->in, 0)) ||
            c->reads[operand(c, c->in, 0)->reg])
            continue;
        c->unread[i] = true;
        sg_instruction_registers(c->program, c->in, take_back, c);
    }
}

/* ---- rewriting ------------------------------------------------------------------------------- */

static bool left_out(const struct contraction *c, uint32_t product) {
    const struct product *one = &c->products[product];
    return one->fused && one->fused == one->reads && !one->kept;
}

/* A constant takes the sign itself. */
static uint64_t negate(struct sg_operand *one, unsigned type, uint64_t modifier) {
    if (one->kind != SG_OPERAND_IMMEDIATE)
        return modifier;
    one->value ^= (int64_t)signs_of(type);
    return 0;
}

/* A factor as it was at the mul. That which the mul itself writes is as it was if that is left
 * out. */
static bool factor_of(struct contraction *c, const struct sum *sum, unsigned i,
                      struct sg_operand *factor) {
    const struct term *term = &sum->terms[sum->fused];
    struct product *product = &c->products[term->product];
    const struct sg_instruction *mul = &c->code[product->mul];
    *factor = *operand(c, mul, 1 + i);
    bool itself = factor->kind == SG_OPERAND_REGISTER && factor->reg == operand(c, mul, 0)->reg;
    if (!term->changed[i] && !(itself && !left_out(c, term->product)))
        return true;
    unsigned type = c->program->registers[c->function->first_register + factor->reg].type;
    if (product->copy[i] == NONE && !sg_build_new_register(c->b, type, &product->copy[i]))
        return false;
    factor->reg = product->copy[i];
    return true;
}

static bool fuse(struct contraction *c, const struct sum *sum) {
    struct sg_instruction *add = &c->code[sum->instruction];
    struct sg_operand made[4] = {*operand(c, add, 0)};
    unsigned fused = sum->fused;
    made[3] = *operand(c, add, 1 + !fused);
    if (!factor_of(c, sum, 0, &made[1]) || !factor_of(c, sum, 1, &made[2]))
        return false;
    bool minus = add->op == SG_OP_sub;
    uint64_t signs = 0;
    if (sum->terms[fused].negated != (minus && fused == 1))
        signs |= negate(made[2].kind == SG_OPERAND_IMMEDIATE ? &made[2] : &made[1], add->type,
                        SG_MOD(MINUS_PRODUCT));
    if (minus && fused == 0)
        signs |= negate(&made[3], add->type, SG_MOD(MINUS_ADDEND));
    add->op = SG_OP_fma;
    add->rounding = SG_ROUND_RN;
    add->modifiers |= signs;
    add->operand_count = 4;
    return sg_build_add_operands(c->b, made, 4, &add->first_operand);
}

/* Copies of factors come before the mul. */
static bool put_copies(struct contraction *c, const struct sg_instruction *mul,
                       const struct product *product, struct sg_instruction *to, uint32_t *count) {
    static const unsigned char types[] = {
        [16] = SG_TYPE_B16, [32] = SG_TYPE_B32, [64] = SG_TYPE_B64};
    for (unsigned i = 0; i < 2; i++) {
        if (product->copy[i] == NONE)
            continue;
        struct sg_operand from = *operand(c, mul, 1 + i), made[2];
        struct sg_instruction move = {.op = SG_OP_mov,
                                      .type = types[sg_type_bits(mul->type)],
                                      .vector = 1,
                                      .operand_count = 2,
                                      .result = true,
                                      .line = mul->line,
                                      .location = mul->location,
                                      .block = mul->block};
        from.type = move.type;
        made[0] = made[1] = from;
        made[0].reg = product->copy[i];
        if (!sg_build_add_operands(c->b, made, 2, &move.first_operand))
            return false;
        to[(*count)++] = move;
    }
    return true;
}

/* Jumps lead to where their instructions are now, or to what follows. */
static void redirect(struct contraction *c, const uint32_t *now) {
    struct sg_program *program = c->program;
    const uint32_t first = c->function->first_instruction;
    for (uint32_t i = 0; i < c->function->blocks; i++) {
        struct sg_program_block *block = &program->blocks[c->function->first_block + i];
        block->first = first + now[block->first - first];
        block->end = first + now[block->end - first];
    }
    for (uint32_t i = 0; i < c->function->instructions; i++) {
        const struct sg_instruction *in = &program->instructions[first + i];
        for (unsigned k = 0; k < in->operand_count; k++) {
            struct sg_operand *one = &program->operands[in->first_operand + k];
            if (one->kind == SG_OPERAND_LABEL)
                one->first = first + now[one->first - first];
        }
    }
    for (size_t i = c->b->first_target; i < program->target_count; i++) {
        const struct sg_program_targets *list = &program->targets[i];
        for (uint32_t k = list->first; k < list->first + list->count && !list->calls; k++)
            if (program->target_list[k] != UINT32_MAX)
                program->target_list[k] = first + now[program->target_list[k] - first];
    }
}

/* Leaves out each mul all of whose sums are fused, and what passes it on, and puts the copies in
 * place. */
static bool rebuild(struct contraction *c) {
    struct sg_program *program = c->program;
    struct sg_program_function *function = c->function;
    uint32_t count = function->instructions, made = 0;
    size_t room = count + 2 * c->product_count;
    struct sg_instruction *all = malloc(room * sizeof *all);
    uint32_t *now = malloc((count + (size_t)1) * sizeof *now);
    bool good = all && now;
    for (uint32_t i = 0; good && i < count; i++) {
        uint32_t product = c->product_of[i];
        now[i] = made;
        if (product != NONE && c->products[product].mul == i)
            good = put_copies(c, &c->code[i], &c->products[product], all, &made);
        if (product == NONE || !left_out(c, product))
            all[made++] = c->code[i];
    }
    struct sg_instruction *grown =
        good ? realloc(program->instructions,
                       (function->first_instruction + room + 1) * sizeof *grown)
             : NULL;
    if (grown) {
        now[count] = made;
        program->instructions = grown;
        memcpy(grown + function->first_instruction, all, made * sizeof *grown);
        function->instructions = made;
        program->instruction_count = function->first_instruction + made;
        redirect(c, now);
    }
    free(all);
    free(now);
    return grown || sg_build_no_memory(c->b);
}

static bool rewrite(struct contraction *c) {
    bool any = false;
    for (size_t i = 0; i < c->sum_count; i++) {
        if (c->sums[i].fused == NONE)
            continue;
        any = true;
        if (!fuse(c, &c->sums[i]))
            return false;
    }
    return !any || rebuild(c);
}

/* ---- the whole ------------------------------------------------------------------------------- */

/* Most functions are from compilers that contract by themselves, and have nothing to look at. */
static bool worth_it(const struct sg_instruction *code, uint32_t count) {
    bool product = false, sum = false;
    for (uint32_t i = 0; i < count && !(product && sum); i++) {
        product = product || may_be_product(&code[i]);
        sum = sum || may_be_sum(&code[i]);
    }
    return product && sum;
}

static bool contract(struct contraction *c) {
    uint32_t count = c->function->instructions;
    size_t registers = c->function->registers + (size_t)1, blocks = c->function->blocks;
    for (uint32_t i = 0; i < count; i++)
        c->product_of[i] = NONE;
    c->writer = c->reads + registers;
    c->stack = c->entered + blocks;
    c->touched = c->product_of + count;
    find_unread(c);
    return look_through_all(c) && rewrite(c);
}

bool sg_build_contract(struct sg_build *b) {
    struct sg_program *program = b->program;
    struct sg_program_function *function = &program->functions[b->function];
    struct sg_instruction *code = &program->instructions[function->first_instruction];
    uint32_t count = function->instructions;
    struct contraction c = {.b = b, .program = program, .function = function, .code = code};
    if (b->image->unoptimized || b->parts[b->part].image->unoptimized || !worth_it(code, count))
        return true;
    c.holding = calloc(function->registers + (size_t)1, sizeof *c.holding);
    c.reads = calloc(2 * (function->registers + (size_t)1), sizeof *c.reads);
    c.entered = calloc(2 * (size_t)function->blocks, sizeof *c.entered);
    c.product_of = malloc(2 * (size_t)count * sizeof *c.product_of);
    c.unread = calloc(count, sizeof *c.unread);
    bool room = c.holding && c.reads && c.entered && c.product_of && c.unread;
    bool good = room ? contract(&c) : sg_build_no_memory(b);
    if (c.live_found)
        sg_liveness_free(&c.live);
    free(c.holding);
    free(c.reads);
    free(c.entered);
    free(c.product_of);
    free(c.unread);
    free(c.products);
    free(c.sums);
    return good;
}
