/* Vectors of registers, registers of 128 bits, and the atomic operations on them. */
#include "softgpu/engine/code.h"
#include "softgpu/engine/quad.h"
#include "softgpu/engine/watch.h"

#define MOST 8

static bool move(struct sg_maker *maker, unsigned width, uint32_t to, uint32_t from) {
    static const unsigned char types[] = {
        [SG_W_16] = SG_TYPE_B16, [SG_W_32] = SG_TYPE_B32, [SG_W_64] = SG_TYPE_B64};
    struct sg_instruction in = {.op = SG_OP_mov, .type = types[width]};
    struct sg_form form;
    if (to == SG_NOWHERE)
        return true;
    if (!sg_maker_find(maker, &in, &form))
        return sg_maker_refuse(maker, "not among the instructions that run");
    struct sg_step *step = sg_maker_form(maker, &form);
    step->d = to;
    step->a = from;
    return true;
}

/* The elements of a vector operand, or the operand itself. */
static const struct sg_operand *elements(const struct sg_maker *maker, unsigned index,
                                         uint32_t *count) {
    const struct sg_operand *operand = sg_maker_operand(maker, index);
    *count = operand->kind == SG_OPERAND_VECTOR ? operand->count : 1;
    return operand->kind == SG_OPERAND_VECTOR ? &maker->program->operands[operand->first] : operand;
}

/* ---- mov.v2, mov.v4 -------------------------------------------------------------------------- */

/* All elements are read before any is written: mov {a, b}, {b, a} exchanges them. */
static bool move_vector(struct sg_maker *maker) {
    uint32_t count, sources, from[MOST], to[MOST];
    const struct sg_operand *results = elements(maker, 0, &count);
    const struct sg_operand *values = elements(maker, 1, &sources);
    unsigned width = sg_width_of_type(maker->in->type);
    bool special = values->kind == SG_OPERAND_SPECIAL;
    if (count > MOST || (!special && sources != count) || width < SG_W_16)
        return sg_maker_refuse(maker, "a vector of registers of these widths");
    for (uint32_t i = 0; i < count; i++) {
        struct sg_operand value = special ? *values : values[i];
        uint32_t place;
        if (special) /* .w reads as 0 */
            value.part = (unsigned char)(i + 1);
        if (!sg_maker_source(maker, &value, width, false, &place))
            return false;
        from[i] = sg_maker_temporary(maker, width);
        if (!move(maker, width, from[i], place))
            return false;
    }
    for (uint32_t i = 0; i < count; i++)
        if (!sg_maker_result(maker, &results[i], width, false, &to[i]) ||
            !move(maker, width, to[i], from[i]))
            return false;
    sg_maker_flush(maker);
    return true;
}

/* ---- 128 bits -------------------------------------------------------------------------------- */

/* The places of both halves; nowhere for _. */
static bool halves(struct sg_maker *maker, const struct sg_operand *operand, uint32_t *places) {
    places[0] = places[1] = SG_NOWHERE;
    if (operand->kind == SG_OPERAND_NONE)
        return true;
    if (operand->kind != SG_OPERAND_REGISTER || operand->part != SG_PART_NONE)
        return sg_maker_refuse(maker, "128 bits of a kind that does not run");
    uint32_t number = maker->function->first_register + operand->reg;
    if (sg_type_bits(maker->program->registers[number].type) != 128)
        return sg_maker_refuse(maker, "a register of other than 128 bits");
    places[0] = maker->code->register_place[number];
    places[1] = places[0] + sg_width_bytes(SG_W_64);
    return true;
}

/* mov.b128 q, {a, b} and {a, b}, q, with two or four registers. */
static bool pack_quad(struct sg_maker *maker, bool into) {
    uint32_t count, places[4], whole[2];
    const struct sg_operand *each = elements(maker, into ? 1 : 0, &count);
    unsigned width = count == 2 ? SG_W_64 : SG_W_32;
    if (count != 2 && count != 4)
        return sg_maker_refuse(maker, "a vector of registers of these widths");
    for (uint32_t i = 0; i < count; i++)
        if (into ? !sg_maker_source(maker, &each[i], width, false, &places[i])
                 : !sg_maker_result(maker, &each[i], width, false, &places[i]))
            return false;
    if (!halves(maker, sg_maker_operand(maker, into ? 0 : 1), whole))
        return false;
    for (uint32_t i = 0; i < 2; i++) {
        if (count == 2) {
            if (!move(maker, SG_W_64, into ? whole[i] : places[i], into ? places[i] : whole[i]))
                return false;
            continue;
        }
        uint32_t list = sg_maker_list(maker, places + 2 * i, 2);
        struct sg_step *step = sg_maker_step(maker, into ? sg_run_pack : sg_run_unpack);
        step->d = into ? whole[i] : SG_NOWHERE;
        step->a = into ? 0 : whole[i];
        step->list = list;
        step->count = 2;
        step->choice = SG_W_32;
        step->second = SG_W_64;
        step->value = 32;
    }
    sg_maker_flush(maker);
    return true;
}

static bool move_quad(struct sg_maker *maker) {
    uint32_t to[2], from[2];
    if (sg_maker_operand(maker, 1)->kind == SG_OPERAND_VECTOR)
        return pack_quad(maker, true);
    if (sg_maker_operand(maker, 0)->kind == SG_OPERAND_VECTOR)
        return pack_quad(maker, false);
    return halves(maker, sg_maker_operand(maker, 0), to) &&
           halves(maker, sg_maker_operand(maker, 1), from) &&
           move(maker, SG_W_64, to[0], from[0]) && move(maker, SG_W_64, to[1], from[1]);
}

static void at_address(struct sg_maker *maker, struct sg_step *step,
                       const struct sg_maker_address *address) {
    step->a = address->base;
    step->value = address->offset;
    step->space = address->space;
    step->flags |= address->wide ? SG_STEP_WIDE : 0;
    step->cache = maker->code->caches++;
}

/* A weak access is two adjacent words; no other thread may see a torn one of any other access. */
static bool access_quad(struct sg_maker *maker) {
    const struct sg_instruction *in = maker->in;
    bool load = in->op != SG_OP_st;
    bool strong = (in->modifiers & (SG_MOD(VOLATILE) | SG_MOD(MMIO))) ||
                  (in->semantics != SG_SEMANTICS_NONE && in->semantics != SG_SEMANTICS_WEAK);
    struct sg_instruction words = *in;
    struct sg_maker_address address;
    struct sg_form form;
    uint32_t places[2];
    words.type = SG_TYPE_B64;
    if (!sg_maker_find(maker, &words, &form) ||
        !halves(maker, sg_maker_operand(maker, load ? 0 : 1), places) ||
        !sg_maker_address(maker, sg_maker_operand(maker, load ? 1 : 0), maker->in->space, &address))
        return sg_maker_refuse(maker, "128 bits of a kind that does not run");
    if (places[0] == SG_NOWHERE)
        return sg_maker_refuse(maker, "128 bits that no register takes");
    sg_run *atomic = load ? sg_run_quad_load : sg_run_quad_store;
    uint32_t list = sg_maker_list(maker, places, 2);
    struct sg_step *step = strong ? sg_maker_step(maker, atomic) : sg_maker_form(maker, &form);
    at_address(maker, step, &address);
    step->list = list;
    step->count = 2;
    step->d = load ? places[0] : SG_NOWHERE;
    step->b = load ? 0 : places[0];
    sg_maker_watch_access(maker, load ? SG_WATCHED_READ : SG_WATCHED_WRITE, 16);
    return true;
}

static bool atomic_quad(struct sg_maker *maker) {
    const struct sg_instruction *in = maker->in;
    struct sg_maker_address address;
    uint32_t places[6] = {0};
    if ((in->operation != SG_DO_CAS && in->operation != SG_DO_EXCH) || in->op != SG_OP_atom)
        return sg_maker_refuse(maker, "an operation that there is not for 128 bits");
    if (!halves(maker, sg_maker_operand(maker, 0), places) ||
        !sg_maker_address(maker, sg_maker_operand(maker, 1), maker->in->space, &address) ||
        !halves(maker, sg_maker_operand(maker, 2), places + 2) ||
        (in->operation == SG_DO_CAS && !halves(maker, sg_maker_operand(maker, 3), places + 4)))
        return false;
    uint32_t list = sg_maker_list(maker, places, 6);
    struct sg_step *step = sg_maker_step(maker, sg_run_quad_atomic);
    at_address(maker, step, &address);
    step->list = list;
    step->choice = (unsigned char)in->operation;
    sg_maker_watch_access(maker, SG_WATCHED_ATOMIC, 16);
    return true;
}

/* ---- atomic vectors -------------------------------------------------------------------------- */

static bool atomic_vector(struct sg_maker *maker) {
    const struct sg_instruction *in = maker->in;
    bool result = in->op == SG_OP_atom;
    struct sg_maker_address address;
    struct sg_form form;
    uint32_t places[2 * MOST], count = 0, sources;
    const struct sg_operand *values = elements(maker, result + 1u, &sources);
    if (!sg_maker_find(maker, in, &form) || sources > MOST)
        return sg_maker_refuse(maker, "an operation that there is not for vectors");
    const struct sg_operand *results = elements(maker, 0, &count);
    for (uint32_t i = 0; i < sources; i++) {
        places[i] = SG_NOWHERE;
        if ((result && !sg_maker_result(maker, &results[i], form.dest, false, &places[i])) ||
            !sg_maker_source(maker, &values[i], form.source[1], false, &places[sources + i]))
            return false;
    }
    if (!sg_maker_address(maker, sg_maker_operand(maker, result), maker->in->space, &address))
        return false;
    uint32_t list = sg_maker_list(maker, places, 2 * sources);
    struct sg_step *step = sg_maker_form(maker, &form);
    at_address(maker, step, &address);
    step->list = list;
    step->count = (uint16_t)sources;
    step->choice = form.choice;
    step->second = form.second;
    step->type = form.type;
    sg_maker_watch_access(maker, SG_WATCHED_ATOMIC, (uint64_t)sources * sg_type_bits(in->type) / 8);
    sg_maker_flush(maker);
    return true;
}

bool sg_maker_vector(struct sg_maker *maker, bool *ok) {
    const struct sg_instruction *in = maker->in;
    bool quad = in->type == SG_TYPE_B128;
    switch (in->op) {
    case SG_OP_mov:
        if (!quad && in->vector < 2)
            return false;
        *ok = quad ? move_quad(maker) : move_vector(maker);
        return true;
    case SG_OP_ld:
    case SG_OP_ldu:
    case SG_OP_st:
        if (!quad)
            return false;
        *ok = access_quad(maker);
        return true;
    case SG_OP_atom:
    case SG_OP_red:
        if (!quad && in->vector < 2)
            return false;
        *ok = quad ? atomic_quad(maker) : atomic_vector(maker);
        return true;
    default:
        return false;
    }
}
