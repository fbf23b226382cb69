/* Instructions that become several steps: set, lop3 with a predicate, cache policies. */
#include "softgpu/engine/code.h"

/* ---- set ------------------------------------------------------------------------------------- */

/* "True" in a type: 1.0 or all bits set, in each of two halves. */
static uint64_t truth(unsigned type) {
    switch (type) {
    case SG_TYPE_F32:
        return 0x3f800000;
    case SG_TYPE_F16:
    case SG_TYPE_F16X2:
        return 0x3c00;
    case SG_TYPE_BF16:
    case SG_TYPE_BF16X2:
        return 0x3f80;
    default:
        return UINT64_MAX;
    }
}

/* d = p ? yes : 0 */
static bool choose(struct sg_maker *maker, unsigned width, uint32_t d, uint32_t p, uint64_t yes) {
    struct sg_instruction in = {.op = SG_OP_selp,
                                .type = width == SG_W_16 ? SG_TYPE_B16 : SG_TYPE_B32};
    struct sg_form form;
    if (!sg_maker_find(maker, &in, &form))
        return sg_maker_refuse(maker, "not among the instructions that run");
    uint32_t a = sg_maker_constant(maker, width, yes), b = sg_maker_constant(maker, width, 0);
    struct sg_step *step = sg_maker_form(maker, &form);
    step->d = d;
    step->a = a;
    step->b = b;
    step->c = p;
    return true;
}

/* Both halves of d, from two predicates. */
static bool choose_both(struct sg_maker *maker, uint32_t d, uint32_t p, uint32_t q, uint64_t yes) {
    uint32_t halves[2] = {sg_maker_temporary(maker, SG_W_16), sg_maker_temporary(maker, SG_W_16)};
    if (!choose(maker, SG_W_16, halves[0], p, yes) || !choose(maker, SG_W_16, halves[1], q, yes))
        return false;
    uint32_t list = sg_maker_list(maker, halves, 2);
    struct sg_step *step = sg_maker_step(maker, sg_run_pack);
    step->d = d;
    step->list = list;
    step->count = 2;
    step->choice = SG_W_16;
    step->second = SG_W_32;
    step->value = 16;
    return true;
}

static bool set(struct sg_maker *maker) {
    struct sg_instruction compare = *maker->in;
    unsigned type = maker->in->type, width = sg_width_of_type(type);
    bool two = maker->in->type2 == SG_TYPE_F16X2 || maker->in->type2 == SG_TYPE_BF16X2;
    struct sg_form form;
    uint32_t places[3] = {0}, d;
    compare.op = SG_OP_setp;
    compare.type = maker->in->type2;
    if ((width != SG_W_16 && width != SG_W_32) || (two && width != SG_W_32) ||
        !sg_maker_find(maker, &compare, &form))
        return sg_maker_refuse(maker, "a comparison of these types");
    for (unsigned i = 0; i < 3 && form.source[i]; i++)
        if (!sg_maker_source(maker, sg_maker_operand(maker, i + 1), form.source[i], false,
                             &places[i]))
            return false;
    if (!sg_maker_result(maker, sg_maker_operand(maker, 0), width, false, &d))
        return false;
    uint32_t p = sg_maker_temporary(maker, SG_W_PRED), q = SG_NOWHERE;
    if (two)
        q = sg_maker_temporary(maker, SG_W_PRED);
    struct sg_step *step = sg_maker_form(maker, &form);
    step->a = places[0];
    step->b = places[1];
    step->c = places[2];
    step->d = p;
    step->e = q;
    step->choice = form.choice;
    step->second = form.second;
    step->type = form.type;
    step->flags = form.flags;
    if (two ? !choose_both(maker, d, p, q, truth(type)) : !choose(maker, width, d, p, truth(type)))
        return false;
    sg_maker_flush(maker);
    return true;
}

/* ---- lop3 ------------------------------------------------------------------------------------ */

/* lop3.and.b32 d|p, a, b, c, table, q: p = (d != 0) and q. */
static bool lop3_predicate(struct sg_maker *maker) {
    const struct sg_operand *result = sg_maker_operand(maker, 0);
    const struct sg_operand *pair = &maker->program->operands[result->first];
    struct sg_instruction logic = *maker->in;
    struct sg_instruction compare = {.op = SG_OP_setp,
                                     .type = SG_TYPE_U32,
                                     .compare = SG_COMPARE_NE,
                                     .boolean = maker->in->boolean};
    struct sg_form first, second;
    uint32_t places[4], p, q, d = SG_NOWHERE;
    logic.boolean = SG_BOOLEAN_NONE;
    if (result->kind != SG_OPERAND_PAIR || !sg_maker_find(maker, &logic, &first) ||
        !sg_maker_find(maker, &compare, &second))
        return sg_maker_refuse(maker, "without the predicate that it is combined with");
    for (unsigned i = 0; i < 4; i++)
        if (!sg_maker_source(maker, sg_maker_operand(maker, i + 1), SG_W_32, false, &places[i]))
            return false;
    if (!sg_maker_source(maker, sg_maker_operand(maker, 5), SG_W_PRED, false, &q) ||
        !sg_maker_result(maker, &pair[0], SG_W_32, false, &d) ||
        !sg_maker_result(maker, &pair[1], SG_W_PRED, false, &p))
        return false;
    if (d == SG_NOWHERE)
        d = sg_maker_temporary(maker, SG_W_32);
    struct sg_step *step = sg_maker_form(maker, &first);
    step->d = d;
    step->a = places[0];
    step->b = places[1];
    step->c = places[2];
    step->e = places[3];
    step->choice = first.choice;
    uint32_t zero = sg_maker_constant(maker, SG_W_32, 0);
    step = sg_maker_form(maker, &second);
    step->d = p;
    step->e = SG_NOWHERE;
    step->a = d;
    step->b = zero;
    step->c = q;
    step->choice = second.choice;
    sg_maker_flush(maker);
    return true;
}

/* ---- createpolicy ---------------------------------------------------------------------------- */

/*
 * A policy is opaque: only instructions with .L2::cache_hint read it, and here it changes nothing.
 * So each is 0, except that .cvt passes its operand on.
 */
static bool policy(struct sg_maker *maker) {
    struct sg_instruction in = {.op = SG_OP_mov, .type = SG_TYPE_B64};
    struct sg_form form;
    uint32_t d, a = 0;
    bool given = maker->in->operation == SG_DO_CVT;
    if (!sg_maker_find(maker, &in, &form) ||
        (given && !sg_maker_source(maker, sg_maker_operand(maker, 1), SG_W_64, false, &a)) ||
        !sg_maker_result(maker, sg_maker_operand(maker, 0), SG_W_64, false, &d))
        return sg_maker_refuse(maker, "a policy in a register of another kind");
    if (!given)
        a = sg_maker_constant(maker, SG_W_64, 0);
    struct sg_step *step = sg_maker_form(maker, &form);
    step->d = d;
    step->a = a;
    sg_maker_flush(maker);
    return true;
}

bool sg_maker_compound(struct sg_maker *maker, bool *ok) {
    switch (maker->in->op) {
    case SG_OP_set:
        *ok = set(maker);
        return true;
    case SG_OP_createpolicy:
        *ok = policy(maker);
        return true;
    case SG_OP_lop3:
        if (maker->in->boolean == SG_BOOLEAN_NONE)
            return false;
        *ok = lop3_predicate(maker);
        return true;
    default:
        return false;
    }
}
