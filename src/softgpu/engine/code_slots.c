/* Which registers steps read and write, for gangs, whose registers have tags. */
#include "softgpu/engine/code.h"

#include <stdlib.h>

#define MOST_SLOTS  (1u << 20) /* from here on branches do not list what is live behind them */
#define MOST_BLOCKS 64u        /* between a branch and its join; with more, no tags hold */

static void add_slot(struct sg_maker *maker, uint32_t slot) {
    struct sg_code *code = maker->code;
    if (code->slot_count == code->slot_room) {
        uint32_t room = code->slot_room ? code->slot_room * 2 : 64;
        uint32_t *more = realloc(code->slots, room * sizeof *more);
        if (!more) {
            maker->no_memory = true;
            return;
        }
        code->slots = more;
        code->slot_room = room;
    }
    code->slots[code->slot_count++] = slot;
}

static void add_register(struct sg_maker *maker, uint32_t reg, uint32_t written) {
    if (reg == SG_NO_REGISTER)
        return;
    uint32_t number = maker->function->first_register + reg;
    unsigned type = maker->program->registers[number].type, width = sg_width_of_type(type);
    uint32_t place = maker->code->register_place[number];
    if (place >> 30 == SG_BASE_REGISTERS && width >= SG_W_16)
        add_slot(maker, place | width | written);
    if (width != SG_W_NONE || sg_type_bits(type) != 128)
        return;
    add_slot(maker, place | SG_W_64 | written); /* the low words and the high words */
    add_slot(maker, (place + sg_width_bytes(SG_W_64)) | SG_W_64 | written);
}

static void add_operand(struct sg_maker *maker, const struct sg_operand *operand,
                        uint32_t written) {
    if (operand->kind == SG_OPERAND_REGISTER || operand->kind == SG_OPERAND_ADDRESS)
        add_register(maker, operand->reg, operand->kind == SG_OPERAND_REGISTER ? written : 0);
    if (operand->kind != SG_OPERAND_VECTOR && operand->kind != SG_OPERAND_PAIR)
        return;
    for (uint32_t i = 0; i < operand->count; i++)
        add_operand(maker, &maker->program->operands[operand->first + i], written);
}

/* Records what steps read and write. Results are the first operands, in calls after the target.
 * Steps with a function for gangs do not need this. */
void sg_maker_note_uses(struct sg_maker *maker, uint32_t first) {
    struct sg_code *code = maker->code;
    bool any = false;
    for (uint32_t i = first; i < code->step_count; i++)
        any |= code->steps[i].gang == sg_gang_of(NULL) || code->steps[i].run == sg_run_barrier;
    if (!any || maker->function_index != 0)
        return;
    uint32_t from = code->slot_count;
    unsigned results = maker->in->op == SG_OP_call ? 2 : 1;
    for (unsigned i = 0; i < maker->in->operand_count; i++)
        add_operand(maker, sg_maker_operand(maker, i), i < results ? SG_SLOT_WRITTEN : 0);
    for (unsigned i = 0; i < maker->temporary_count; i++)
        add_slot(maker, maker->temporary_slots[i] | SG_SLOT_WRITTEN);
    for (uint32_t i = first; i < code->step_count; i++) {
        code->steps[i].uses = from;
        code->steps[i].use_count = (uint16_t)(code->slot_count - from);
    }
}

/* Whether a tag of a register holds until lanes that a branch parts have joined again. */
static bool holds(const struct sg_maker *maker, uint32_t join, uint32_t reg) {
    const struct sg_region *region = &maker->region;
    if (!sg_live_in(&maker->live, join, reg))
        return false;
    for (uint32_t i = 0; i < region->count; i++)
        if (sg_live_written(&maker->live, region->blocks[i], reg))
            return false;
    return true;
}

/* Adds those live behind the branch whose tags hold until the join, or the others. */
static void add_live(struct sg_maker *maker, bool hold) {
    const struct sg_liveness *live = &maker->live;
    uint32_t block = maker->in->block, join = maker->program->blocks[block].post_dominator;
    bool few = join != SG_NO_BLOCK && sg_region_find(&maker->region, block, MOST_BLOCKS);
    for (uint32_t i = 0; i < live->count; i++) {
        uint32_t reg = live->registers[i];
        if (sg_live_out(live, block, reg) && (few && holds(maker, join, reg)) == hold)
            add_register(maker, reg, 0);
    }
}

void sg_maker_note_live(struct sg_maker *maker, uint32_t branch) {
    struct sg_code *code = maker->code;
    uint32_t from = code->slot_count;
    if (maker->in->op != SG_OP_bra || !maker->in->guard || maker->function_index != 0)
        return;
    struct sg_step *step = &code->steps[branch];
    step->use_count = SG_ALL_SLOTS;
    if (from >= MOST_SLOTS)
        return;
    add_live(maker, true);
    uint32_t held = code->slot_count - from;
    add_live(maker, false);
    uint32_t count = code->slot_count - from;
    if (count >= SG_ALL_SLOTS)
        return;
    step->uses = from;
    step->use_count = (uint16_t)count;
    step->count = (uint16_t)held;
}

/* All of the entry's, each place once. */
void sg_maker_note_entry(struct sg_maker *maker) {
    const struct sg_program_function *function = maker->function;
    const uint32_t *places = &maker->code->register_place[function->first_register];
    bool *known = calloc(maker->frame / SG_SLOT_LINE + 1, 1);
    maker->no_memory |= !known;
    for (uint32_t i = 0; known && i < function->registers; i++) {
        uint32_t line = (places[i] & SG_OFFSET_MASK) / SG_SLOT_LINE;
        unsigned type = maker->program->registers[function->first_register + i].type;
        if (places[i] >> 30 != SG_BASE_REGISTERS || !line || type == SG_TYPE_PRED || known[line])
            continue; /* a register that nothing uses has no place */
        known[line] = true;
        add_register(maker, i, 0);
    }
    maker->code->entry_slots = maker->code->slot_count;
    free(known);
}
