/* Asynchronous copies, mbarriers and clusters: from operands to steps. */
#include "softgpu/engine/async.h"
#include "softgpu/engine/code.h"

/* ---- which programs have them ---------------------------------------------------------------- */

static bool is_asynchronous(const struct sg_instruction *in) {
    switch (in->op) {
    case SG_OP_mapa:
    case SG_OP_getctarank:
    case SG_OP_mbarrier:
        return true;
    case SG_OP_cp:
        return in->operation != SG_DO_BULK_PREFETCH;
    case SG_OP_barrier:
        return in->operation == SG_DO_CLUSTER_ARRIVE || in->operation == SG_DO_CLUSTER_WAIT;
    default:
        return in->space == SG_IN_SHARED_CLUSTER || in->operation == SG_DO_ASYNC;
    }
}

bool sg_program_clustered(const struct sg_program *program) {
    for (size_t i = 0; i < program->instruction_count; i++)
        if (is_asynchronous(&program->instructions[i]))
            return true;
    return false;
}

/* ---- operands -------------------------------------------------------------------------------- */

/* Four words: place, width and space, offset. A variable's own space is more exact than the
 * instruction's. */
static bool where(struct sg_maker *maker, unsigned index, unsigned space, uint32_t *words) {
    const struct sg_operand *operand = sg_maker_operand(maker, index);
    struct sg_maker_address address;
    if (operand->reg == SG_NO_REGISTER && operand->first != SG_NO_VARIABLE)
        space = maker->program->variables[operand->first].space;
    if (!sg_maker_address(maker, operand, space, &address))
        return false;
    space = address.space;
    if (space != SG_IN_SHARED && space != SG_IN_GLOBAL && space != SG_IN_GENERIC)
        return sg_maker_refuse(maker, "an address in this space");
    if (space != SG_IN_SHARED && !address.wide)
        return sg_maker_refuse(maker, "a global or generic address in 32 bits");
    words[0] = address.base;
    words[1] = space << 8 | address.wide;
    words[2] = (uint32_t)address.offset;
    words[3] = (uint32_t)((uint64_t)address.offset >> 32);
    return true;
}

static bool number(struct sg_maker *maker, unsigned index, uint32_t *place) {
    return sg_maker_source(maker, sg_maker_operand(maker, index), SG_W_32, false, place);
}

/* ---- mbarrier -------------------------------------------------------------------------------- */

static bool pending_count(struct sg_maker *maker) {
    uint32_t a, d;
    if (!sg_maker_result(maker, sg_maker_operand(maker, 0), SG_W_32, false, &d) ||
        !sg_maker_source(maker, sg_maker_operand(maker, 1), SG_W_64, false, &a))
        return false;
    struct sg_step *step = sg_maker_step(maker, sg_run_mbarrier_count);
    step->a = a;
    step->d = d;
    sg_maker_flush(maker);
    return true;
}

/* p, [address], state or parity {, time, which is a hint} */
static bool mbarrier_wait(struct sg_maker *maker) {
    const struct sg_instruction *in = maker->in;
    uint32_t words[4], b, d;
    bool parity = in->modifiers & SG_MOD(PARITY);
    if (!where(maker, 1, in->space, words) ||
        !sg_maker_result(maker, sg_maker_operand(maker, 0), SG_W_PRED, false, &d) ||
        !sg_maker_source(maker, sg_maker_operand(maker, 2), parity ? SG_W_32 : SG_W_64, false, &b))
        return false;
    uint32_t list = sg_maker_list(maker, words, 4);
    struct sg_step *step = sg_maker_step(maker, sg_run_mbarrier_wait);
    step->list = list;
    step->b = b;
    step->d = d;
    step->choice = (unsigned char)in->operation;
    step->second = parity;
    return true;
}

static bool mbarrier(struct sg_maker *maker) {
    const struct sg_instruction *in = maker->in;
    if (in->operation == SG_DO_PENDING_COUNT)
        return pending_count(maker);
    if (in->operation == SG_DO_TEST_WAIT || in->operation == SG_DO_TRY_WAIT)
        return mbarrier_wait(maker);
    bool answers = in->operation != SG_DO_INIT && in->operation != SG_DO_INVAL &&
                   in->operation != SG_DO_EXPECT_TX && in->operation != SG_DO_COMPLETE_TX;
    uint32_t words[4], b = SG_NOWHERE, d = SG_NOWHERE;
    unsigned at = answers;
    if ((answers && !sg_maker_result(maker, sg_maker_operand(maker, 0), SG_W_64, false, &d)) ||
        !where(maker, at, in->space, words) ||
        (in->operand_count > at + 1 && !number(maker, at + 1, &b)))
        return false;
    uint32_t list = sg_maker_list(maker, words, 4);
    struct sg_step *step = sg_maker_step(maker, sg_run_mbarrier);
    step->list = list;
    step->b = b;
    step->d = d;
    step->choice = (unsigned char)in->operation;
    sg_maker_flush(maker);
    return true;
}

/* ---- copies ---------------------------------------------------------------------------------- */

static bool group(struct sg_maker *maker) {
    const struct sg_instruction *in = maker->in;
    struct sg_step *step = sg_maker_step(maker, sg_run_copy_group);
    step->choice = (unsigned char)in->operation;
    step->second = (in->modifiers & SG_MOD(READ)) != 0;
    step->value = in->operand_count ? sg_maker_operand(maker, 0)->value : 0;
    return true;
}

static bool copy_arrive(struct sg_maker *maker) {
    uint32_t words[4];
    if (!where(maker, 0, maker->in->space, words))
        return false;
    uint32_t list = sg_maker_list(maker, words, 4);
    struct sg_step *step = sg_maker_step(maker, sg_run_copy_arrive);
    step->list = list;
    step->choice = (maker->in->modifiers & SG_MOD(NOINC)) != 0;
    return true;
}

/* cp.async [shared], [global], size {, bytes of the source, or a predicate that ignores it} */
static bool copy(struct sg_maker *maker) {
    const struct sg_instruction *in = maker->in;
    uint32_t words[8], bytes = SG_NOWHERE;
    bool ignore = false;
    if (!where(maker, 0, in->space, words) || !where(maker, 1, in->space2, words + 4))
        return false;
    int64_t size = sg_maker_operand(maker, 2)->value;
    if (size != 4 && size != 8 && size != 16)
        return sg_maker_refuse(maker, "a copy of this size");
    if (in->operand_count > 3) {
        const struct sg_operand *fourth = sg_maker_operand(maker, 3);
        ignore = fourth->type == SG_TYPE_PRED;
        if (!sg_maker_source(maker, fourth, ignore ? SG_W_PRED : SG_W_32, false, &bytes))
            return false;
    }
    uint32_t list = sg_maker_list(maker, words, 8);
    struct sg_step *step = sg_maker_step(maker, sg_run_copy_async);
    step->list = list;
    step->c = bytes;
    step->choice = ignore;
    step->count = (uint16_t)size;
    step->cache = maker->code->caches++;
    return true;
}

/* [to], [from], size {, [mbarrier] {, ranks}} */
static bool bulk(struct sg_maker *maker) {
    const struct sg_instruction *in = maker->in;
    uint32_t words[12] = {0}, size, ranks = SG_NOWHERE;
    bool tells = in->modifiers & SG_MOD(COMPLETE_TX);
    if (in->operation == SG_DO_BULK_PREFETCH) {
        sg_maker_step(maker, sg_run_nothing);
        return true;
    }
    if (in->modifiers & SG_MOD(CP_MASK))
        return sg_maker_refuse(maker, "a mask of bytes needs a device after sm_90");
    if (!where(maker, 0, in->space, words) || !where(maker, 1, in->space2, words + 4) ||
        !number(maker, 2, &size) || (tells && !where(maker, 3, in->space, words + 8)) ||
        (in->operand_count > 4 &&
         !sg_maker_source(maker, sg_maker_operand(maker, 4), SG_W_16, false, &ranks)))
        return false;
    uint32_t list = sg_maker_list(maker, words, 12);
    struct sg_step *step = sg_maker_step(maker, sg_run_bulk);
    step->list = list;
    step->a = size;
    step->b = ranks;
    step->choice =
        (unsigned char)(in->operation == SG_DO_BULK_REDUCE ? in->operation2 : SG_DO_NONE);
    step->type = in->type;
    step->second = tells;
    step->cache = maker->code->caches++;
    return true;
}

/* [to], value or vector, [mbarrier] */
static bool store(struct sg_maker *maker) {
    const struct sg_instruction *in = maker->in;
    const struct sg_operand *value = sg_maker_operand(maker, 1);
    const struct sg_operand *each =
        value->kind == SG_OPERAND_VECTOR ? &maker->program->operands[value->first] : value;
    uint32_t words[8 + 4], count = value->kind == SG_OPERAND_VECTOR ? value->count : 1;
    if (count > 4)
        return sg_maker_refuse(maker, "a vector of more than four elements");
    if (!where(maker, 0, in->space, words) || !where(maker, 2, in->space, words + 4))
        return false;
    for (uint32_t i = 0; i < count; i++)
        if (!sg_maker_source(maker, &each[i], sg_width_of_type(in->type), false, &words[8 + i]))
            return false;
    uint32_t list = sg_maker_list(maker, words, 8 + count);
    struct sg_step *step = sg_maker_step(maker, sg_run_store_async);
    step->list = list;
    step->count = (uint16_t)count;
    step->type = in->type;
    step->choice = (unsigned char)(in->op == SG_OP_red ? in->operation2 : SG_DO_NONE);
    return true;
}

/* ---- clusters -------------------------------------------------------------------------------- */

static bool rank(struct sg_maker *maker) {
    const struct sg_instruction *in = maker->in;
    bool map = in->op == SG_OP_mapa, generic = in->space != SG_IN_SHARED_CLUSTER;
    const struct sg_operand *from = sg_maker_operand(maker, 1);
    unsigned width = sg_width_of_type(in->type);
    uint32_t a, b = 0, d;
    if (generic && width != SG_W_64)
        return sg_maker_refuse(maker, "a generic address in 32 bits");
    if (!sg_maker_result(maker, sg_maker_operand(maker, 0), map ? width : SG_W_32, false, &d) ||
        !sg_maker_source(maker, from, width, false, &a) || (map && !number(maker, 2, &b)))
        return false;
    struct sg_step *step = sg_maker_step(maker, map ? sg_run_mapa : sg_run_getctarank);
    step->a = a;
    step->b = b;
    step->d = d;
    step->second = width == SG_W_64;
    step->choice = generic;
    sg_maker_flush(maker);
    return true;
}

bool sg_maker_async(struct sg_maker *maker, bool *ok) {
    const struct sg_instruction *in = maker->in;
    switch (in->op) {
    case SG_OP_mbarrier:
        *ok = mbarrier(maker);
        return true;
    case SG_OP_mapa:
    case SG_OP_getctarank:
        *ok = rank(maker);
        return true;
    case SG_OP_st:
    case SG_OP_red:
        if (in->operation != SG_DO_ASYNC)
            return false;
        *ok = store(maker);
        return true;
    case SG_OP_cp:
        *ok = in->operation == SG_DO_ASYNC             ? copy(maker)
              : in->operation == SG_DO_MBARRIER_ARRIVE ? copy_arrive(maker)
              : in->operation == SG_DO_BULK || in->operation == SG_DO_BULK_REDUCE ||
                      in->operation == SG_DO_BULK_PREFETCH
                  ? bulk(maker)
                  : group(maker);
        return true;
    default:
        return false;
    }
}
