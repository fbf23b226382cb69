/* Steps that decide what comes next: branches, guards, calls, exits, traps. */
#include "softgpu/engine/inside.h"

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
    /* Both ways: the lower place goes first. */
    uint32_t others = warp->mask & ~taken;
    bool back = target <= step;
    sg_group_add(warp, back ? others : taken, back ? number_of(warp, step) + 1 : step->target,
                 warp->path);
    warp->mask = back ? taken : others;
    return back ? target : step + 1;
}

/* brx.idx: list: the targets' steps; beyond them the behaviour is undefined, here a fault. */
const struct sg_step *sg_run_indexed(struct sg_warp *warp, const struct sg_step *step) {
    uint32_t taken = sg_taken(warp, step);
    const uint32_t *index = sg_place(warp, step->a);
    const uint32_t *list = warp->grid->code->list + step->list;
    sg_group_add(warp, warp->mask & ~taken, number_of(warp, step) + 1, warp->path);
    while (taken) {
        unsigned first = (unsigned)__builtin_ctz(taken);
        if (index[first] >= step->count)
            return sg_warp_fault(warp, step, SG_FAULT_INSTRUCTION, first, index[first], 0);
        uint32_t lanes = 0;
        for (unsigned l = 0; l < SG_LANES; l++)
            lanes |= (uint32_t)(index[l] == index[first]) << l;
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

const struct sg_step *sg_run_nanosleep(struct sg_warp *warp, const struct sg_step *step) {
    warp->polls = true;
    warp->left = 0; /* it gives way at the next block of instructions */
    return step + 1;
}

const struct sg_step *sg_run_fence(struct sg_warp *warp, const struct sg_step *step) {
    (void)warp;
#ifdef __SANITIZE_THREAD__ /* which does not know fences: an exchange orders as much for it */
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

static size_t bytes_of(unsigned type) {
    unsigned bits = sg_type_bits(type);
    return bits == 1 ? 0 : bits <= 16 ? 2 : bits / 8;
}

/* Copies lanes of registers between two places, of which either may be another frame's. */
static void copy_lanes(unsigned char *to, const unsigned char *from, uint32_t lanes, size_t size) {
    if (size == 0) { /* a predicate */
        uint32_t old, new;
        memcpy(&old, to, sizeof old);
        memcpy(&new, from, sizeof new);
        new = (old & ~lanes) | (new &lanes);
        memcpy(to, &new, sizeof new);
        return;
    }
    for (unsigned l = 0; l < SG_LANES; l++)
        if (lanes >> l & 1)
            memcpy(to + l * size, from + l * size, size);
}

/*
 * Hands values over between a caller and a callee: parameters (into the callee) or results (out of
 * it). `places` are the caller's: of .param a place in its frame, else of a register or constant.
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
        if (parameter->variable != SG_NO_VARIABLE) {
            const struct sg_program_variable *variable = &program->variables[parameter->variable];
            for (unsigned l = 0; l < SG_LANES; l++) {
                if (!(lanes >> l & 1))
                    continue;
                unsigned char *local = warp->local + l * warp->local_size;
                unsigned char *inner = local + callee->frame + variable->offset;
                unsigned char *outer = local + callee->parent->frame + places[i];
                memcpy(into ? inner : outer, into ? outer : inner, variable->size);
            }
            continue;
        }
        uint32_t number = function->first_register + parameter->reg;
        uint32_t inside = code->register_place[number] & SG_OFFSET_MASK;
        unsigned char *inner = warp->registers + callee->registers + inside;
        unsigned char *outer = sg_place(warp, places[i]);
        copy_lanes(into ? inner : outer, into ? outer : inner, lanes,
                   bytes_of(program->registers[number].type));
    }
}

static const struct sg_step *enter(struct sg_warp *warp, const struct sg_step *step, uint32_t lanes,
                                   uint32_t function) {
    const struct sg_code *code = warp->grid->code;
    struct sg_path *path = sg_path_enter(warp, step, function);
    if (!path)
        return NULL;
    path->lanes |= lanes;
    hand_over(warp, path, lanes, code->list + step->list + step->count, true);
    sg_path_use(warp, path);
    warp->mask = lanes;
    return &code->steps[code->functions[function].first_step];
}

/* list: the results' places (`count` of them), then the arguments'. */
const struct sg_step *sg_run_call(struct sg_warp *warp, const struct sg_step *step) {
    uint32_t taken = sg_taken(warp, step);
    if (!taken)
        return step + 1;
    sg_group_add(warp, warp->mask & ~taken, number_of(warp, step) + 1, warp->path);
    return enter(warp, step, taken, (uint32_t)step->value);
}

static uint32_t function_at(const struct sg_code *code, uint64_t address) {
    uint64_t ordinal = (address - SG_FUNCTION_WINDOW) / 16;
    for (uint32_t i = 0; i < code->program->function_count; i++)
        if (code->program->functions[i].ordinal == ordinal && (address & 15) == 0 &&
            code->functions[i].first_step != SG_NO_STEP && i != 0)
            return i;
    return UINT32_MAX;
}

/* Through a register: a group for each function that lanes call; they begin one after the other. */
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
    if (function == UINT32_MAX)
        return sg_warp_fault(warp, step, SG_FAULT_INSTRUCTION, first, address[first], 0);
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
    sg_group_add(warp, warp->mask & ~taken, number_of(warp, step) + 1, path);
    hand_over(warp, path, taken, code->list + call->list, false);
    sg_group_add(warp, taken, path->call + 1, path->parent);
    sg_path_leave(warp, path, taken);
    return sg_group_next(warp);
}
