/*
 * Places of a function's registers. Compilers name a register for each value, so most are live for
 * a few instructions only. Those that are never live at the same time share a place, if they have
 * the same width (tags have one): frames are then smaller, and stay in the CPU's caches. A register
 * occupies its place from the first to the last instruction, in the order of the text, at which it
 * is live. An instruction's results never share a place with its operands, as some are made of
 * several steps, and some are executed again.
 */
#include "softgpu/engine/code.h"

#include <stdlib.h>
#include <string.h>

#define NOBODY UINT32_MAX

struct range {
    uint32_t first, last; /* instructions; NOBODY: none */
    uint32_t next;        /* that begins at the same one, or that ends there, or is free */
};

struct layout {
    struct sg_maker *maker;
    struct range *ranges;  /* by register */
    uint32_t *begin, *end; /* by instruction: the first register that begins, that ends there */
    uint32_t free[SG_W_64 + 1], at;
    uint32_t index; /* the instruction being looked at */
};

static bool shares(const struct sg_maker *maker, uint32_t reg) {
    uint32_t number = maker->function->first_register + reg;
    return maker->code->register_place[number] >> 30 == SG_BASE_REGISTERS &&
           sg_width_of_type(maker->program->registers[number].type) >= SG_W_16;
}

static void extend(struct layout *l, uint32_t reg, uint32_t index) {
    struct range *range = &l->ranges[reg];
    if (range->first == NOBODY || index < range->first)
        range->first = index;
    if (range->last == NOBODY || index > range->last)
        range->last = index;
}

static void named(void *user, uint32_t reg, bool written) {
    struct layout *l = user;
    (void)written;
    extend(l, reg, l->index);
}

/* Registers that are live across blocks. */
static void extend_across(struct layout *l, const struct sg_liveness *live) {
    const struct sg_program *program = l->maker->program;
    const struct sg_program_function *function = l->maker->function;
    for (uint32_t b = function->first_block; b < function->first_block + function->blocks; b++) {
        const struct sg_program_block *block = &program->blocks[b];
        for (uint32_t i = 0; i < live->count; i++) {
            uint32_t reg = live->registers[i];
            if (sg_live_in(live, b, reg))
                extend(l, reg, block->first - function->first_instruction);
            if (sg_live_out(live, b, reg))
                extend(l, reg, block->end - 1 - function->first_instruction);
        }
    }
}

static void find_ranges(struct layout *l, const struct sg_liveness *live) {
    const struct sg_program *program = l->maker->program;
    const struct sg_program_function *function = l->maker->function;
    for (l->index = 0; l->index < function->instructions; l->index++)
        sg_instruction_registers(
            program, &program->instructions[function->first_instruction + l->index], named, l);
    extend_across(l, live);
    /* What may be read before it is written shares no place: such a read gives the same however
     * warps run. */
    for (uint32_t i = 0; i < live->count && function->blocks; i++)
        if (sg_live_in(live, function->first_block, live->registers[i]))
            extend(l, live->registers[i], function->instructions - 1);
    /* All parameters are written when the function begins. */
    for (uint32_t i = 0; i < function->parameters; i++) {
        const struct sg_program_parameter *one =
            &program->parameters[function->first_parameter + i];
        for (uint32_t k = 0; one->reg != SG_NO_REGISTER && k < one->count; k++)
            extend(l, one->reg + k, 0);
    }
}

static uint32_t new_place(struct layout *l, unsigned bytes) {
    uint32_t at = (l->at + SG_SLOT_LINE - 1) & ~(SG_SLOT_LINE - 1);
    l->at = at + bytes;
    return SG_PLACE(SG_BASE_REGISTERS, at);
}

/* Gives places to the registers that begin at an instruction, and frees those that end there. */
static void place_at(struct layout *l, uint32_t index) {
    const struct sg_maker *maker = l->maker;
    uint32_t *places = &maker->code->register_place[maker->function->first_register];
    const struct sg_register *registers =
        &maker->program->registers[maker->function->first_register];
    for (uint32_t reg = l->begin[index], next; reg != NOBODY; reg = next) {
        unsigned width = sg_width_of_type(registers[reg].type);
        uint32_t from = l->free[width], last = l->ranges[reg].last;
        next = l->ranges[reg].next;
        places[reg] = from == NOBODY ? new_place(l, sg_width_bytes(width)) : places[from];
        if (from != NOBODY)
            l->free[width] = l->ranges[from].next;
        l->ranges[reg].next = l->end[last];
        l->end[last] = reg;
    }
    for (uint32_t reg = l->end[index], next; reg != NOBODY; reg = next) {
        unsigned width = sg_width_of_type(registers[reg].type);
        next = l->ranges[reg].next;
        l->ranges[reg].next = l->free[width];
        l->free[width] = reg;
    }
}

static void place_shared(struct layout *l) {
    const struct sg_program_function *function = l->maker->function;
    for (uint32_t i = 0; i < function->instructions; i++)
        l->begin[i] = l->end[i] = NOBODY;
    for (unsigned width = 0; width <= SG_W_64; width++)
        l->free[width] = NOBODY;
    for (uint32_t reg = function->registers; reg-- > 0;) {
        struct range *range = &l->ranges[reg];
        if (range->first == NOBODY || !shares(l->maker, reg))
            continue;
        range->next = l->begin[range->first];
        l->begin[range->first] = reg;
    }
    for (uint32_t i = 0; i < function->instructions; i++)
        place_at(l, i);
}

/* The condition code and predicates, which are small; registers of 128 bits, and of no width. */
static void place_others(struct layout *l) {
    const struct sg_maker *maker = l->maker;
    const struct sg_program_function *function = maker->function;
    const struct sg_register *registers = &maker->program->registers[function->first_register];
    uint32_t *places = &maker->code->register_place[function->first_register];
    l->at = 4;
    for (uint32_t i = 0; i < function->registers; i++)
        if (registers[i].type == SG_TYPE_PRED) {
            places[i] = SG_PLACE(SG_BASE_REGISTERS, l->at);
            l->at += 4;
        }
    for (uint32_t i = 0; i < function->registers; i++)
        if (sg_width_of_type(registers[i].type) == SG_W_NONE)
            places[i] = new_place(l, sg_type_bits(registers[i].type) == 128 ? 512 : 256);
}

void sg_maker_lay_out(struct sg_maker *maker) {
    const struct sg_program_function *function = maker->function;
    struct layout l = {.maker = maker};
    size_t instructions = function->instructions + (size_t)1;
    sg_liveness_free(&maker->live);
    sg_region_end(&maker->region);
    size_t room = (function->registers + (size_t)1) * sizeof *l.ranges;
    l.ranges = malloc(room);
    l.begin = malloc(2 * instructions * sizeof *l.begin);
    if (l.ranges && l.begin && sg_liveness_find(maker->program, function, &maker->live) &&
        sg_region_begin(maker->program, function, &maker->region)) {
        memset(l.ranges, 0xff, room); /* NOBODY */
        l.end = l.begin + instructions;
        find_ranges(&l, &maker->live);
        place_others(&l);
        place_shared(&l);
        maker->frame = (l.at + SG_SLOT_LINE - 1) & ~(SG_SLOT_LINE - 1);
        maker->temporaries = 0;
    } else {
        maker->no_memory = true;
    }
    free(l.ranges);
    free(l.begin);
}
