/* Matrix instructions: a step with the places of all their registers. */
#include "softgpu/engine/code.h"
#include "softgpu/engine/matrix.h"

#define MOST_PLACES 40

bool sg_is_matrix(unsigned op) {
    return op == SG_OP_mma || op == SG_OP_wmma || op == SG_OP_ldmatrix || op == SG_OP_stmatrix ||
           op == SG_OP_movmatrix;
}

struct places {
    uint32_t each[MOST_PLACES], count;
};

/* The registers of one operand. */
static bool fragment(struct sg_maker *maker, unsigned index, bool result, unsigned width,
                     struct places *places) {
    const struct sg_operand *operand = sg_maker_operand(maker, index);
    const struct sg_operand *each = &maker->program->operands[operand->first];
    for (uint32_t i = 0; i < operand->count; i++) {
        if (places->count == MOST_PLACES)
            return sg_maker_refuse(maker, "more registers than any matrix has");
        uint32_t *place = &places->each[places->count++];
        if (result ? !sg_maker_result(maker, &each[i], width, false, place)
                   : !sg_maker_source(maker, &each[i], width, false, place))
            return false;
    }
    return true;
}

static unsigned width_of(const struct sg_instruction *in) {
    return in->type == SG_TYPE_F64 ? SG_W_64 : SG_W_32;
}

/* list: the registers of D, A, B, C, and for sparse ones the metadata's. */
static bool multiply(struct sg_maker *maker) {
    const struct sg_instruction *in = maker->in;
    struct places places = {.count = 0};
    struct sg_form form;
    uint32_t words;
    if (!sg_maker_find(maker, in, &form))
        return sg_maker_refuse(maker, "not among the instructions that run");
    for (unsigned i = 0; i < 4; i++)
        if (!fragment(maker, i, i == 0, width_of(in), &places))
            return false;
    if (in->modifiers & SG_MOD(SPARSE)) {
        if (!sg_maker_source(maker, sg_maker_operand(maker, 4), SG_W_32, false, &words))
            return false;
        places.each[places.count++] = words;
    }
    uint32_t list = sg_maker_list(maker, places.each, places.count);
    struct sg_step *step = sg_maker_form(maker, &form);
    step->list = list;
    step->count = (uint16_t)places.count;
    step->rounding = in->rounding;
    if (in->modifiers & SG_MOD(SPARSE))
        step->choice = (unsigned char)sg_maker_operand(maker, 5)->value;
    sg_maker_flush(maker);
    return true;
}

/* Between memory and registers: a, value: the address; b: the stride; list: the registers. */
static bool transfer(struct sg_maker *maker, sg_run *run, bool load) {
    const struct sg_instruction *in = maker->in;
    struct places places = {.count = 0};
    struct sg_maker_address address;
    uint32_t stride = SG_NOWHERE;
    if (!fragment(maker, load ? 0 : 1, load, width_of(in), &places) ||
        !sg_maker_address(maker, sg_maker_operand(maker, load ? 1 : 0), maker->in->space,
                          &address) ||
        (in->operand_count > 2 &&
         !sg_maker_source(maker, sg_maker_operand(maker, 2), SG_W_32, false, &stride)))
        return false;
    uint32_t list = sg_maker_list(maker, places.each, places.count);
    struct sg_step *step = sg_maker_step(maker, run);
    step->a = address.base;
    step->b = stride;
    step->value = address.offset;
    step->space = address.space;
    step->flags = address.wide ? SG_STEP_WIDE : 0;
    step->list = list;
    step->count = (uint16_t)places.count;
    step->cache = maker->code->caches++;
    sg_maker_flush(maker);
    return true;
}

static bool exchange(struct sg_maker *maker) {
    uint32_t d, a;
    if (!sg_maker_result(maker, sg_maker_operand(maker, 0), SG_W_32, false, &d) ||
        !sg_maker_source(maker, sg_maker_operand(maker, 1), SG_W_32, false, &a))
        return false;
    struct sg_step *step = sg_maker_step(maker, sg_run_movmatrix);
    step->d = d;
    step->a = a;
    sg_maker_flush(maker);
    return true;
}

bool sg_maker_matrix(struct sg_maker *maker) {
    switch (maker->in->op) {
    case SG_OP_ldmatrix:
        return transfer(maker, sg_run_ldmatrix, true);
    case SG_OP_stmatrix:
        return transfer(maker, sg_run_stmatrix, false);
    case SG_OP_movmatrix:
        return exchange(maker);
    case SG_OP_mma:
        return multiply(maker);
    default:
        break;
    }
    if (maker->in->operation == SG_DO_MMA)
        return multiply(maker);
    bool store = maker->in->operation == SG_DO_STORE_D;
    return transfer(maker, store ? sg_run_wmma_store : sg_run_wmma_load, !store);
}
