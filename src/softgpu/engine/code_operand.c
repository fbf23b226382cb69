/* Places of operands: registers, constants, special registers; and conversions of width. */
#include "softgpu/engine/code.h"

unsigned sg_width_of_type(unsigned type) {
    unsigned bits = sg_type_bits(type);
    if (type == SG_TYPE_PRED)
        return SG_W_PRED;
    return bits == 0    ? SG_W_NONE
           : bits <= 16 ? SG_W_16
           : bits == 32 ? SG_W_32
           : bits == 64 ? SG_W_64
                        : SG_W_NONE;
}

unsigned sg_width_bytes(unsigned width) {
    static const unsigned char bytes[] = {0, 4, 64, 128, 0};
    return width == SG_W_64 ? 256 : bytes[width];
}

const struct sg_operand *sg_maker_operand(const struct sg_maker *maker, unsigned index) {
    return &maker->program->operands[maker->in->first_operand + index];
}

uint32_t sg_maker_temporary(struct sg_maker *maker, unsigned width) {
    uint32_t at = (maker->temporary + SG_SLOT_LINE - 1) & ~(SG_SLOT_LINE - 1);
    maker->temporary = at + sg_width_bytes(width);
    if (maker->temporary > maker->temporaries)
        maker->temporaries = maker->temporary;
    uint32_t place = SG_PLACE(SG_BASE_REGISTERS, maker->frame + at);
    if (width < SG_W_16)
        return place;
    if (maker->temporary_count < SG_MAKER_TEMPORARIES) /* else code.c refuses the instruction */
        maker->temporary_slots[maker->temporary_count] = place | width;
    maker->temporary_count++;
    return place;
}

static uint32_t special(struct sg_maker *maker, const struct sg_operand *operand, unsigned width) {
    struct sg_code *code = maker->code;
    if (!sg_special_constant(operand->first)) {
        uint32_t place = sg_maker_temporary(maker, width);
        struct sg_step *step = sg_maker_step(maker, sg_run_special);
        step->d = place;
        step->choice = (unsigned char)operand->first;
        step->second = (unsigned char)width;
        return place;
    }
    for (uint32_t i = 0; i < code->special_count; i++) {
        const struct sg_code_special *known = &code->specials[i];
        if (known->special == operand->first && known->part == operand->part &&
            known->value == (uint32_t)operand->value && known->width == width)
            return SG_PLACE(SG_BASE_SPECIALS, known->offset);
    }
    void *specials = code->specials;
    if (!sg_maker_grow(&specials, &code->special_room, code->special_count + 1,
                       sizeof code->specials[0])) {
        maker->no_memory = true;
        return 0;
    }
    code->specials = specials;
    uint32_t at = code->special_bytes;
    code->special_bytes += width == SG_W_PRED ? SG_SLOT_LINE : sg_width_bytes(width);
    code->specials[code->special_count++] =
        (struct sg_code_special){(unsigned char)operand->first, operand->part, (unsigned char)width,
                                 (uint32_t)operand->value, at};
    return SG_PLACE(SG_BASE_SPECIALS, at);
}

static uint32_t frame_address(struct sg_maker *maker, int64_t offset, unsigned width) {
    if (maker->function_index == 0) /* the entry's frame is the first */
        return sg_maker_constant(maker, width, (uint64_t)offset);
    uint32_t place = sg_maker_temporary(maker, width);
    struct sg_step *step = sg_maker_step(maker, sg_run_frame_address);
    step->d = place;
    step->value = offset;
    step->second = (unsigned char)width;
    return place;
}

/* A .samplerref has its initial value: nothing in CUDA's interface sets one. */
static bool sampler(struct sg_maker *maker, uint32_t settings, uint32_t *place) {
    if (!settings)
        return sg_maker_refuse(maker, "a .samplerref without an initial value");
    for (unsigned axis = 0; axis < 3; axis++)
        if (SG_SAMPLER_MODE(settings, axis) == 2)
            return sg_maker_refuse(maker, "a .samplerref with clamp_ogl");
    *place = sg_maker_constant(maker, SG_W_64, SG_SAMPLER_WINDOW | settings);
    return true;
}

static bool variable(struct sg_maker *maker, const struct sg_operand *operand, unsigned width,
                     uint32_t *place) {
    const struct sg_program_variable *what = &maker->program->variables[operand->first];
    int64_t offset = (int64_t)what->offset + operand->value;
    switch (what->place) {
    case SG_PLACE_IMAGE:
        if (width != SG_W_64)
            return sg_maker_refuse(maker, "an address of global memory in 32 bits");
        *place = sg_maker_address_of(maker, operand->first, operand->value);
        return true;
    case SG_PLACE_FRAME:
        *place = frame_address(maker, offset, width);
        return true;
    case SG_PLACE_THREAD: /* the entry's frame is the first */
        *place = sg_maker_constant(maker, width, (uint64_t)offset);
        return true;
    case SG_PLACE_SHARED:
    case SG_PLACE_DYNAMIC_SHARED:
        offset += SG_SHARED_BEGIN;
        __attribute__((fallthrough));
    case SG_PLACE_PARAMETERS:
        if (maker->code->clustered && what->place != SG_PLACE_PARAMETERS)
            *place = special(
                maker, &(struct sg_operand){.first = SG_SPECIAL_SHARED, .value = offset}, width);
        else
            *place = sg_maker_constant(maker, width, (uint64_t)offset);
        return true;
    case SG_PLACE_TEXTURE:
        if (width != SG_W_64)
            return sg_maker_refuse(maker, "a texture or surface in 32 bits");
        if (what->sampler)
            return sampler(maker, what->settings, place);
        *place = sg_maker_address_of(maker, operand->first, operand->value);
        return true;
    default:
        return sg_maker_refuse(maker, "a variable of a kind that does not run yet");
    }
}

/* Converts a value to another width. */
static uint32_t widened(struct sg_maker *maker, uint32_t from, unsigned has, unsigned wants,
                        bool is_signed) {
    uint32_t place = sg_maker_temporary(maker, wants);
    struct sg_step *step = sg_maker_widen(maker, is_signed, has, wants);
    step->a = from;
    step->d = place;
    return place;
}

static bool of_register(struct sg_maker *maker, const struct sg_operand *operand, unsigned width,
                        bool is_signed, uint32_t *place) {
    uint32_t number = maker->function->first_register + operand->reg;
    unsigned has = sg_width_of_type(maker->program->registers[number].type);
    *place = maker->code->register_place[number];
    if (operand->part != SG_PART_NONE)
        return sg_maker_refuse(maker, "a part of a register");
    if (has == SG_W_NONE)
        return sg_maker_refuse(maker, "registers of 128 bits do not run yet");
    if ((has == SG_W_PRED) != (width == SG_W_PRED))
        return sg_maker_refuse(maker, "a predicate where a number is expected, or a number where "
                                      "a predicate is");
    if (width == SG_W_PRED && operand->negated) {
        struct sg_instruction not = {.op = SG_OP_not, .type = SG_TYPE_PRED};
        struct sg_form form = {0};
        sg_maker_find(maker, &not, &form);
        uint32_t from = *place;
        *place = sg_maker_temporary(maker, SG_W_PRED);
        /* For all lanes: the instruction may have a guard, but this step has not. */
        struct sg_step *step = sg_maker_form(maker, &form);
        step->a = from;
        step->d = *place;
    } else if (has != width) {
        *place = widened(maker, *place, has, width, is_signed);
    }
    return true;
}

bool sg_maker_source(struct sg_maker *maker, const struct sg_operand *operand, unsigned width,
                     bool is_signed, uint32_t *place) {
    switch (operand->kind) {
    case SG_OPERAND_REGISTER:
        return of_register(maker, operand, width, is_signed, place);
    case SG_OPERAND_IMMEDIATE:
        *place = sg_maker_constant(maker, width, (uint64_t)operand->value);
        return true;
    case SG_OPERAND_SPECIAL:
        *place = special(maker, operand, width);
        return true;
    case SG_OPERAND_VARIABLE:
        return variable(maker, operand, width, place);
    case SG_OPERAND_FUNCTION:
        *place = sg_maker_constant(
            maker, width, SG_FUNCTION_ADDRESS(maker->program->functions[operand->first].ordinal));
        return width == SG_W_64 || sg_maker_refuse(maker, "a function's address in 32 bits");
    default:
        return sg_maker_refuse(maker, "an operand of a kind that does not run yet");
    }
}

bool sg_maker_result(struct sg_maker *maker, const struct sg_operand *operand, unsigned width,
                     bool is_signed, uint32_t *place) {
    *place = SG_NOWHERE;
    if (operand->kind == SG_OPERAND_NONE)
        return true;
    if (operand->kind != SG_OPERAND_REGISTER || operand->part != SG_PART_NONE)
        return sg_maker_refuse(maker, "a result of a kind that does not run yet");
    uint32_t number = maker->function->first_register + operand->reg;
    unsigned has = sg_width_of_type(maker->program->registers[number].type);
    uint32_t to = maker->code->register_place[number];
    maker->unalias |= to >> 30 != SG_BASE_REGISTERS;
    if (has == SG_W_NONE)
        return sg_maker_refuse(maker, "registers of 128 bits do not run yet");
    if (has == width) {
        *place = to;
        return true;
    }
    if (has == SG_W_PRED || width == SG_W_PRED || maker->sink_count == SG_MAKER_SINKS)
        return sg_maker_refuse(maker, "a result that its register does not hold");
    *place = sg_maker_temporary(maker, width);
    maker->sinks[maker->sink_count++] =
        (struct sg_sink){*place, to, (unsigned char)width, (unsigned char)has, is_signed};
    return true;
}

void sg_maker_flush(struct sg_maker *maker) {
    for (unsigned i = 0; i < maker->sink_count; i++) {
        const struct sg_sink *sink = &maker->sinks[i];
        struct sg_step *step =
            sg_maker_widen(maker, sink->is_signed, sink->from_width, sink->to_width);
        step->a = sink->from;
        step->d = sink->to;
    }
    maker->sink_count = 0;
}

static unsigned char space_of(unsigned space) {
    return space == SG_IN_CONST            ? SG_IN_GLOBAL
           : space == SG_IN_NONE           ? SG_IN_GENERIC
           : space == SG_IN_SHARED_CLUSTER ? SG_IN_SHARED
                                           : (unsigned char)space;
}

bool sg_maker_address(struct sg_maker *maker, const struct sg_operand *operand, unsigned space,
                      struct sg_maker_address *address) {
    *address = (struct sg_maker_address){.offset = operand->value, .space = space_of(space)};
    if (address->space == SG_IN_SHARED)
        address->offset -= SG_SHARED_BEGIN;
    if (operand->reg != SG_NO_REGISTER) {
        uint32_t number = maker->function->first_register + operand->reg;
        unsigned has = sg_width_of_type(maker->program->registers[number].type);
        address->base = maker->code->register_place[number];
        address->wide = has == SG_W_64;
        if (has != SG_W_64 && has != SG_W_32)
            return sg_maker_refuse(maker, "an address in a register of this width");
        return true;
    }
    address->wide = true;
    if (operand->first == SG_NO_VARIABLE) {
        address->base = sg_maker_constant(maker, SG_W_64, 0);
        return true;
    }
    struct sg_operand base = *operand;
    base.value = 0;
    return variable(maker, &base, SG_W_64, &address->base);
}
