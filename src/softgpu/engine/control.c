/* Steps that decide what comes next: branches, guards, calls, exits, traps. */
#include "softgpu/engine/inside.h"
#include "softgpu/engine/stack.h"
#include "softgpu/engine/watching.h"

#include <stdatomic.h>
#include <string.h>

static uint32_t number_of(const struct sg_warp *warp, const struct sg_step *step) {
    return (uint32_t)(step - warp->grid->code->steps);
}

const struct sg_step *sg_run_branch(struct sg_warp *warp, const struct sg_step *step) {
    const struct sg_step *target = &warp->grid->code->steps[step->target];
    uint32_t taken = sg_taken(warp, step);
    if (taken == warp->mask)
        return target;
    if (!taken)
        return step + 1;
    /* Lanes diverge: the lower step goes first. */
    uint32_t others = warp->mask & ~taken;
    bool back = target <= step;
    sg_join_branch(warp, step);
    sg_group_add(warp, back ? others : taken, back ? number_of(warp, step) + 1 : step->target,
                 warp->path);
    warp->mask = back ? taken : others;
    return back ? target : step + 1;
}

/* brx.idx: list: the targets' steps; an index beyond them is undefined behaviour, here a fault. */
const struct sg_step *sg_run_indexed(struct sg_warp *warp, const struct sg_step *step) {
    uint32_t taken = sg_taken(warp, step);
    const uint32_t *index = sg_place(warp, step->a);
    const uint32_t *list = warp->grid->code->list + step->list;
    const uint32_t all = warp->mask;
    sg_group_add(warp, all & ~taken, number_of(warp, step) + 1, warp->path);
    while (taken) {
        unsigned first = (unsigned)__builtin_ctz(taken);
        if (index[first] >= step->target)
            return sg_warp_fault(warp, step, SG_FAULT_INSTRUCTION, first, index[first], 0);
        uint32_t lanes = 0;
        for (unsigned l = 0; l < SG_LANES; l++)
            lanes |= (uint32_t)(index[l] == index[first]) << l;
        if (all & ~lanes)
            sg_join_branch(warp, step);
        sg_group_add(warp, taken & lanes, list[index[first]], warp->path);
        taken &= ~lanes;
    }
    return sg_group_next(warp);
}

const struct sg_step *sg_run_guard(struct sg_warp *warp, const struct sg_step *step) {
    uint32_t taken = sg_taken(warp, step);
    if (!taken)
        return &warp->grid->code->steps[step->target];
    warp->unguarded = warp->mask;
    warp->mask = taken;
    return step + 1;
}

const struct sg_step *sg_run_unguard(struct sg_warp *warp, const struct sg_step *step) {
    warp->mask = warp->unguarded;
    return step + 1;
}

const struct sg_step *sg_run_nothing(struct sg_warp *warp, const struct sg_step *step) {
    (void)warp;
    return step + 1;
}

const struct sg_step *sg_run_fence(struct sg_warp *warp, const struct sg_step *step) {
    (void)warp;
#ifdef __SANITIZE_THREAD__ /* which does not support fences: an exchange orders as much for it */
    static atomic_uint everywhere;
    atomic_fetch_add(&everywhere, 0);
#else
    atomic_thread_fence(memory_order_seq_cst);
#endif
    return step + 1;
}

static const struct sg_step *stop(struct sg_warp *warp, const struct sg_step *step,
                                  enum sg_fault_kind kind) {
    uint32_t taken = sg_taken(warp, step);
    if (!taken)
        return step + 1;
    return sg_warp_fault(warp, step, kind, (unsigned)__builtin_ctz(taken), 0, 0);
}

const struct sg_step *sg_run_trap(struct sg_warp *warp, const struct sg_step *step) {
    return stop(warp, step, SG_FAULT_TRAP);
}

const struct sg_step *sg_run_brkpt(struct sg_warp *warp, const struct sg_step *step) {
    return stop(warp, step, SG_FAULT_BREAKPOINT);
}

const struct sg_step *sg_run_exit(struct sg_warp *warp, const struct sg_step *step) {
    uint32_t taken = sg_taken(warp, step);
    if (!taken)
        return step + 1;
    uint32_t others = warp->mask & ~taken;
    sg_warp_exit(warp, taken);
    if (!others)
        return sg_group_next(warp);
    warp->mask = others;
    return step + 1;
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* One side's place of a parameter or result: bytes in each lane's local memory, or a register.
 * Neither: a discarded result. */
struct side {
    unsigned char *memory; /* of lane 0; the next lane's is `apart` bytes on */
    unsigned char *reg;
    uint64_t apart, size;
    unsigned width; /* of the register in bytes, 0 for a predicate */
};

static unsigned width_of(unsigned type) {
    unsigned bits = sg_type_bits(type);
    return type == SG_TYPE_PRED ? 0 : bits <= 16 ? 2 : bits / 8;
}

static uint64_t lane_of(const struct side *side, unsigned l) {
    uint64_t value = 0;
    if (side->memory)
        memcpy(&value, side->memory + l * side->apart, side->size < 8 ? side->size : 8);
    else if (side->reg && side->width == 0)
        value = *(const uint32_t *)(const void *)side->reg >> l & 1;
    else if (side->reg)
        memcpy(&value, side->reg + (size_t)l * side->width, side->width);
    return value;
}

static void lane_set(const struct side *side, unsigned l, uint64_t value) {
    if (side->memory) {
        memcpy(side->memory + l * side->apart, &value, side->size < 8 ? side->size : 8);
    } else if (side->reg && side->width == 0) {
        uint32_t *all = (uint32_t *)(void *)side->reg;
        *all = (*all & ~(UINT32_C(1) << l)) | (uint32_t)(value & 1) << l;
    } else if (side->reg) {
        memcpy(side->reg + (size_t)l * side->width, &value, side->width);
    }
}

static void carry_over(const struct side *to, const struct side *from, uint32_t lanes) {
    for (unsigned l = 0; l < SG_LANES; l++) {
        if (!(lanes >> l & 1))
            continue;
        if (to->memory && from->memory)
            memcpy(to->memory + l * to->apart, from->memory + l * from->apart,
                   to->size < from->size ? to->size : from->size);
        else
            lane_set(to, l, lane_of(from, l));
    }
}

/*
 * Passes values between caller and callee: parameters (to the callee) or results (from it).
 * `places` are the caller's: SG_PLACE_OF_FRAME for .param in its frame, else those of a register or
 * constant. Either side can have a parameter in a register while the other has it in memory.
 */
static void hand_over(struct sg_warp *warp, const struct sg_path *callee, uint32_t lanes,
                      const uint32_t *places, bool into) {
    const struct sg_code *code = warp->grid->code;
    const struct sg_program *program = code->program;
    const struct sg_program_function *function = &program->functions[callee->function];
    uint32_t count = into ? function->parameters : function->results;
    const struct sg_program_parameter *parameter =
        &program->parameters[into ? function->first_parameter : function->first_result];
    sg_path_use(warp, callee->parent);
    for (uint32_t i = 0; i < count; i++, parameter++) {
        struct side inner = {.apart = warp->local_size}, outer = inner;
        if (parameter->variable != SG_NO_VARIABLE) {
            const struct sg_program_variable *variable = &program->variables[parameter->variable];
            inner.memory = warp->local + callee->frame + variable->offset;
            inner.size = variable->size;
        } else {
            uint32_t number = function->first_register + parameter->reg;
            inner.reg = warp->registers + callee->registers +
                        (code->register_place[number] & SG_OFFSET_MASK);
            inner.width = width_of(program->registers[number].type);
            inner.size = inner.width;
        }
        outer.size = inner.size;
        outer.width = inner.reg ? inner.width : inner.size <= 2 ? 2 : (unsigned)inner.size;
        if (places[i] >> 30 != SG_BASE_NOWHERE)
            outer.reg = sg_place(warp, places[i]);
        else if (places[i] != SG_NOWHERE)
            outer.memory = warp->local + callee->parent->frame + SG_FRAME_OFFSET(places[i]);
        carry_over(into ? &inner : &outer, into ? &outer : &inner, lanes);
    }
}

static const struct sg_step *enter(struct sg_warp *warp, const struct sg_step *step, uint32_t lanes,
                                   uint32_t function) {
    const struct sg_code *code = warp->grid->code;
    struct sg_path *path = sg_path_enter(warp, step, function);
    if (!path)
        return NULL;
    path->lanes |= lanes;
    uint64_t end = path->frame + code->program->functions[function].frame;
    unsigned lane;
    if (code->allocates && !sg_stack_holds(warp, lanes, end, &lane))
        return sg_warp_fault(warp, step, SG_FAULT_STACK, lane, end, 0);
    hand_over(warp, path, lanes, code->list + step->list + step->count, true);
    sg_path_use(warp, path);
    sg_watch_enters(warp, lanes);
    warp->mask = lanes;
    return &code->steps[code->functions[function].first_step];
}

/* list: the results' places (`count` of them), then the arguments'. */
const struct sg_step *sg_run_call(struct sg_warp *warp, const struct sg_step *step) {
    uint32_t taken = sg_taken(warp, step);
    if (!taken)
        return step + 1;
    if (taken != warp->mask)
        sg_join_at(warp, warp->mask, number_of(warp, step) + 1, warp->path);
    sg_group_add(warp, warp->mask & ~taken, number_of(warp, step) + 1, warp->path);
    return enter(warp, step, taken, (uint32_t)step->value);
}

/* Whether these are the sizes of a function's parameters, or results. */
static bool same_sizes(const struct sg_program *program, const struct sg_program_function *function,
                       const struct sg_program_parameter *each, uint32_t count,
                       const uint32_t *sizes) {
    for (uint32_t i = 0; i < count; i++) {
        uint64_t bytes;
        if (each[i].variable != SG_NO_VARIABLE) {
            bytes = program->variables[each[i].variable].size;
        } else {
            unsigned type = program->registers[function->first_register + each[i].reg].type;
            bytes = type == SG_TYPE_PRED ? 0 : sg_type_bits(type) / 8;
        }
        if (bytes != sizes[i])
            return false;
    }
    return true;
}

/* Only a call through a register can differ from its target: no check of the text covers it. */
static bool fits(const struct sg_code *code, const struct sg_step *step, uint32_t target) {
    const struct sg_program *program = code->program;
    const struct sg_program_function *function = &program->functions[target];
    const uint32_t *sizes = code->list + step->list + step->count + step->choice;
    return function->results == step->count && function->parameters == step->choice &&
           same_sizes(program, function, &program->parameters[function->first_result], step->count,
                      sizes) &&
           same_sizes(program, function, &program->parameters[function->first_parameter],
                      step->choice, sizes + step->count);
}

static uint32_t function_at(const struct sg_code *code, uint64_t address) {
    uint64_t ordinal = (address - SG_FUNCTION_WINDOW) / 16;
    for (uint32_t i = 0; i < code->program->function_count; i++)
        if (code->program->functions[i].ordinal == ordinal && (address & 15) == 0 &&
            code->functions[i].first_step != SG_NO_STEP && i != 0)
            return i;
    return UINT32_MAX;
}

/* A call through a register: makes a group for each function that lanes call. */
const struct sg_step *sg_run_indirect(struct sg_warp *warp, const struct sg_step *step) {
    uint32_t taken = sg_taken(warp, step), here = number_of(warp, step);
    if (!taken)
        return step + 1;
    const uint64_t *address = sg_place(warp, step->a);
    unsigned first = (unsigned)__builtin_ctz(taken);
    uint32_t lanes = 0;
    for (unsigned l = 0; l < SG_LANES; l++)
        lanes |= (uint32_t)(address[l] == address[first]) << l;
    uint32_t function = function_at(warp->grid->code, address[first]);
    if (function == UINT32_MAX || !fits(warp->grid->code, step, function))
        return sg_warp_fault(warp, step, address[first] % 16 ? SG_FAULT_PC : SG_FAULT_INSTRUCTION,
                             first, address[first], 0);
    if (warp->mask & ~(taken & lanes))
        sg_join_at(warp, warp->mask, here + 1, warp->path);
    sg_group_add(warp, warp->mask & ~taken, here + 1, warp->path);
    sg_group_add(warp, taken & ~lanes, here, warp->path);
    return enter(warp, step, taken & lanes, function);
}

const struct sg_step *sg_run_return(struct sg_warp *warp, const struct sg_step *step) {
    struct sg_path *path = warp->path;
    if (!path->parent)
        return sg_run_exit(warp, step);
    uint32_t taken = sg_taken(warp, step);
    if (!taken)
        return step + 1;
    const struct sg_code *code = warp->grid->code;
    const struct sg_step *call = &code->steps[path->call];
    if (taken != warp->mask)
        sg_join_at(warp, warp->mask, SG_RETURN_STEP, path);
    sg_group_add(warp, warp->mask & ~taken, number_of(warp, step) + 1, path);
    hand_over(warp, path, taken, code->list + call->list, false);
    sg_group_add(warp, taken, path->call + 1, path->parent);
    sg_path_leave(warp, path, taken);
    return sg_group_next(warp);
}
