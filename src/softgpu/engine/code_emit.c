/* Instructions that compute and move: from a theme's form to steps. */
#include "softgpu/engine/code.h"
#include "softgpu/engine/matrix.h"
#include "softgpu/engine/watch.h"

#include <stdio.h>

bool sg_maker_find(const struct sg_maker *maker, const struct sg_instruction *in,
                   struct sg_form *form) {
    for (sg_theme *const *theme = maker->lanes->themes; *theme; theme++) {
        *form = (struct sg_form){0};
        if ((*theme)(in, form))
            return true;
    }
    return false;
}

static bool is_signed(unsigned type) {
    return type >= SG_TYPE_S8 && type <= SG_TYPE_S64;
}

static bool is_memory(unsigned op) {
    return op == SG_OP_ld || op == SG_OP_ldu || op == SG_OP_st || op == SG_OP_atom ||
           op == SG_OP_red;
}

static uint16_t order_flags(const struct sg_instruction *in) {
    bool strong = (in->modifiers & (SG_MOD(VOLATILE) | SG_MOD(MMIO))) ||
                  (in->semantics != SG_SEMANTICS_NONE && in->semantics != SG_SEMANTICS_WEAK);
    return (uint16_t)((strong ? SG_STEP_STRONG : 0) |
                      (in->semantics == SG_SEMANTICS_ACQUIRE ? SG_STEP_ACQUIRE : 0) |
                      (in->semantics == SG_SEMANTICS_RELEASE ? SG_STEP_RELEASE : 0));
}

/* Places of an operand's elements: results of a load, sources of a store. */
static bool elements(struct sg_maker *maker, const struct sg_operand *operand, unsigned width,
                     bool load, uint32_t *places, uint32_t *count) {
    const struct sg_operand *each = operand;
    *count = 1;
    if (operand->kind == SG_OPERAND_VECTOR) {
        each = &maker->program->operands[operand->first];
        *count = operand->count;
    }
    if (*count > 8)
        return sg_maker_refuse(maker, "a vector of more than eight elements");
    for (uint32_t i = 0; i < *count; i++) {
        bool sign = is_signed(maker->in->type);
        if (load ? !sg_maker_result(maker, &each[i], width, sign, &places[i])
                 : !sg_maker_source(maker, &each[i], width, sign, &places[i]))
            return false;
    }
    return true;
}

/* The entry's parameters at known offsets do not change while a grid runs: they are constants. */
static bool parameter_offset(const struct sg_maker *maker, uint32_t count, int64_t *offset) {
    const struct sg_operand *from = sg_maker_operand(maker, 1);
    unsigned bytes = sg_type_bits(maker->in->type) / 8;
    if (maker->in->space != SG_IN_PARAM || from->kind != SG_OPERAND_ADDRESS ||
        from->reg != SG_NO_REGISTER || bytes < 2)
        return false;
    *offset = from->value;
    if (from->first != SG_NO_VARIABLE)
        *offset += (int64_t)maker->program->variables[from->first].offset;
    return *offset >= 0 && *offset % (bytes * count) == 0;
}

bool sg_maker_parameter_of(struct sg_maker *maker, unsigned width, uint32_t *place) {
    int64_t offset;
    if (!parameter_offset(maker, 1, &offset))
        return false;
    *place = sg_maker_parameter(maker, width, offset);
    return true;
}

static bool parameter(struct sg_maker *maker, const struct sg_form *form, const uint32_t *places,
                      uint32_t count) {
    unsigned bytes = sg_type_bits(maker->in->type) / 8;
    static const unsigned char types[] = {[2] = SG_TYPE_B16, [4] = SG_TYPE_B32, [8] = SG_TYPE_B64};
    int64_t offset;
    if (!parameter_offset(maker, count, &offset))
        return false;
    struct sg_instruction mov = {.op = SG_OP_mov, .type = types[bytes]};
    struct sg_form move;
    if (!sg_maker_find(maker, &mov, &move))
        return false;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t a = sg_maker_parameter(maker, form->dest, offset + (int64_t)(i * bytes));
        struct sg_step *step = sg_maker_form(maker, &move);
        step->a = a;
        step->d = places[i];
    }
    sg_maker_flush(maker);
    return true;
}

static bool load_or_store(struct sg_maker *maker, const struct sg_form *form) {
    const struct sg_instruction *in = maker->in;
    bool load = form->dest != SG_W_NONE;
    uint32_t places[8] = {0}, count;
    struct sg_maker_address address;
    if (!elements(maker, sg_maker_operand(maker, load ? 0 : 1), load ? form->dest : form->source[1],
                  load, places, &count))
        return false;
    if (load && parameter(maker, form, places, count))
        return true;
    if (!sg_maker_address(maker, sg_maker_operand(maker, load ? 1 : 0), maker->in->space, &address))
        return false;
    uint32_t list = sg_maker_list(maker, places, count);
    struct sg_step *step = sg_maker_form(maker, form);
    step->a = address.base;
    step->value = address.offset;
    step->space = address.space;
    step->flags = (uint16_t)((address.wide ? SG_STEP_WIDE : 0) | order_flags(in));
    step->list = list;
    step->count = (uint16_t)count;
    step->d = load ? places[0] : SG_NOWHERE;
    step->b = load ? 0 : places[0];
    step->cache = maker->code->caches++;
    sg_maker_watch_access(maker, load ? SG_WATCHED_READ : SG_WATCHED_WRITE,
                          (uint64_t)count * sg_type_bits(in->type) / 8);
    sg_maker_flush(maker);
    return true;
}

static bool atomic(struct sg_maker *maker, const struct sg_form *form) {
    bool result = form->dest != SG_W_NONE;
    uint32_t d = SG_NOWHERE, b = 0, c = 0;
    struct sg_maker_address address;
    unsigned at = result;
    if ((result && !sg_maker_result(maker, sg_maker_operand(maker, 0), form->dest, false, &d)) ||
        !sg_maker_address(maker, sg_maker_operand(maker, at), maker->in->space, &address) ||
        !sg_maker_source(maker, sg_maker_operand(maker, at + 1), form->source[1], false, &b) ||
        (form->source[2] &&
         !sg_maker_source(maker, sg_maker_operand(maker, at + 2), form->source[2], false, &c)))
        return false;
    struct sg_step *step = sg_maker_form(maker, form);
    step->a = address.base;
    step->value = address.offset;
    step->space = address.space;
    step->flags = address.wide ? SG_STEP_WIDE : 0;
    step->b = b;
    step->c = c;
    step->d = d;
    step->choice = form->choice;
    step->type = form->type;
    step->cache = maker->code->caches++;
    sg_maker_watch_access(maker, SG_WATCHED_ATOMIC, sg_type_bits(maker->in->type) / 8);
    sg_maker_flush(maker);
    return true;
}

static bool plain(struct sg_maker *maker, const struct sg_form *form) {
    const struct sg_instruction *in = maker->in;
    const struct sg_operand *result = sg_maker_operand(maker, 0);
    uint32_t d, e = SG_NOWHERE, places[4] = {0};
    bool sign = is_signed(in->type);
    if (result->kind == SG_OPERAND_PAIR) {
        const struct sg_operand *pair = &maker->program->operands[result->first];
        if (in->op != SG_OP_setp)
            return sg_maker_refuse(maker, "two results");
        if (!sg_maker_result(maker, &pair[0], form->dest, sign, &d) ||
            !sg_maker_result(maker, &pair[1], form->dest, sign, &e))
            return false;
    } else if (!sg_maker_result(maker, result, form->dest, sign, &d)) {
        return false;
    }
    for (unsigned i = 0; i < 4 && form->source[i]; i++) {
        if (i + 1 >= in->operand_count)
            return sg_maker_refuse(maker, "fewer operands than it needs");
        bool source_sign = is_signed(in->op == SG_OP_cvt ? in->type2 : in->type);
        if (!sg_maker_source(maker, sg_maker_operand(maker, i + 1), form->source[i], source_sign,
                             &places[i]))
            return false;
    }
    struct sg_step *step = sg_maker_form(maker, form);
    step->d = d;
    step->a = places[0];
    step->b = places[1];
    step->c = places[2];
    step->e = in->op == SG_OP_setp ? e : places[3];
    step->choice = form->choice;
    step->second = form->second;
    step->type = form->type;
    step->type2 = form->type2;
    step->rounding = form->rounding;
    step->flags = form->flags;
    sg_maker_flush(maker);
    return true;
}

static bool computed(struct sg_maker *maker) {
    const struct sg_instruction *in = maker->in;
    struct sg_form form;
    if (!sg_maker_find(maker, in, &form))
        return sg_maker_refuse(maker, "not among the instructions that run");
    if (!is_memory(in->op))
        return plain(maker, &form);
    if (in->op == SG_OP_st && in->operation == SG_DO_ASYNC)
        return sg_maker_refuse(maker, "asynchronous stores do not run yet");
    return in->op == SG_OP_atom || in->op == SG_OP_red ? atomic(maker, &form)
                                                       : load_or_store(maker, &form);
}

bool sg_maker_emit(struct sg_maker *maker) {
    const struct sg_instruction *in = maker->in;
    bool ok;
    maker->temporary = 0;
    maker->temporary_count = 0;
    maker->sink_count = 0;
    if (in->unsupported)
        return sg_maker_refuse(maker, in->unsupported);
    if (sg_maker_control(maker, &ok))
        return ok;
    uint32_t guard = SG_NO_STEP;
    if (sg_is_matrix(in->op))
        sg_maker_step(maker, sg_run_converge);
    if (in->guard) {
        guard = sg_maker_here(maker);
        uint32_t number = maker->function->first_register + in->guard - 1;
        struct sg_step *step = sg_maker_step(maker, sg_run_guard);
        step->e = maker->code->register_place[number];
        step->flags = (uint16_t)(SG_STEP_GUARD | (in->guard_negated ? SG_STEP_NOT : 0));
    }
    if (sg_maker_other(maker, &ok) ? !ok : !computed(maker))
        return false;
    if (guard != SG_NO_STEP) {
        sg_maker_step(maker, sg_run_unguard);
        if (!maker->no_memory)
            maker->code->steps[guard].target = sg_maker_here(maker);
    }
    return true;
}
