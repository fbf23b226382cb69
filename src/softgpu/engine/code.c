/* Compiles a program to code: lays out registers, makes steps function by function, resolves
 * jumps. */
#include "softgpu/engine/code.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Less than the shortest turn that comes again and again: a longer stretch would never begin. */
#define MOST_COUNTED 1024u

bool sg_maker_refuse(struct sg_maker *maker, const char *why) {
    if (!maker->why[0])
        snprintf(maker->why, sizeof maker->why, "%s", why);
    return false;
}

uint32_t sg_maker_here(const struct sg_maker *maker) {
    return maker->code->step_count;
}

/* When out of memory, returns a step that is never run, and sg_code_make fails at its end. */
struct sg_step *sg_maker_step(struct sg_maker *maker, sg_run *run) {
    static _Thread_local struct sg_step nobody;
    struct sg_code *code = maker->code;
    if (code->step_count == code->step_room) {
        uint32_t room = code->step_room ? code->step_room * 2 : 256;
        struct sg_step *more = realloc(code->steps, room * sizeof *more);
        if (!more) {
            maker->no_memory = true;
            return &nobody;
        }
        code->steps = more;
        code->step_room = room;
    }
    struct sg_step *step = &code->steps[code->step_count++];
    *step = (struct sg_step){
        .run = run, .gang = sg_gang_of(run), .instruction = maker->index, .d = SG_NOWHERE};
    return step;
}

struct sg_step *sg_maker_form(struct sg_maker *maker, const struct sg_form *form) {
    struct sg_step *step = sg_maker_step(maker, form->run);
    if (form->gang)
        step->gang = form->run;
    return step;
}

struct sg_step *sg_maker_widen(struct sg_maker *maker, bool is_signed, unsigned from, unsigned to) {
    return sg_maker_form(
        maker, &(struct sg_form){.run = maker->lanes->widen[is_signed][from][to], .gang = true});
}

uint32_t sg_maker_list(struct sg_maker *maker, const uint32_t *places, uint32_t count) {
    struct sg_code *code = maker->code;
    if (code->list_count + count > code->list_room) {
        uint32_t room = (code->list_count + count) * 2;
        uint32_t *more = realloc(code->list, room * sizeof *more);
        if (!more) {
            maker->no_memory = true;
            return 0;
        }
        code->list = more;
        code->list_room = room;
    }
    for (uint32_t i = 0; i < count; i++)
        code->list[code->list_count + i] = places[i];
    code->list_count += count;
    return code->list_count - count;
}

/* ---- layout ---------------------------------------------------------------------------------- */

/* Marks where lanes can arrive from elsewhere: targets of branches, and what follows a control
 * step. */
static void mark_leaders(const struct sg_program *program,
                         const struct sg_program_function *function, bool *leads) {
    uint32_t end = function->first_instruction + function->instructions;
    for (uint32_t i = function->first_instruction; i < end; i++) {
        const struct sg_instruction *in = &program->instructions[i];
        if (!sg_is_control(in->op))
            continue;
        leads[i] = leads[i + 1] = true;
        for (unsigned k = 0; k < in->operand_count; k++) {
            const struct sg_operand *operand = &program->operands[in->first_operand + k];
            if (operand->kind == SG_OPERAND_LABEL)
                leads[operand->first] = true;
            if (operand->kind != SG_OPERAND_TARGETS || in->op != SG_OP_brx)
                continue;
            const struct sg_program_targets *targets = &program->targets[operand->first];
            for (uint32_t t = 0; t < targets->count; t++)
                leads[program->target_list[targets->first + t]] = true;
        }
    }
    leads[function->first_instruction] = true;
}

static bool make_function(struct sg_maker *maker, const bool *leads) {
    struct sg_code *code = maker->code;
    const struct sg_program_function *function = maker->function;
    if (maker->function_index == 0 && maker->aliased)
        sg_maker_alias(maker); /* those need no place in the frame */
    sg_maker_lay_out(maker);
    if (maker->function_index == 0)
        sg_maker_note_entry(maker);
    if (maker->no_memory)
        return true;
    uint32_t end = function->first_instruction + function->instructions;
    uint32_t leader = SG_NO_STEP, counted = 0;
    code->functions[maker->function_index].first_step = sg_maker_here(maker);
    sg_maker_stack_begin(maker);
    for (uint32_t i = function->first_instruction; i < end; i++) {
        maker->index = i;
        maker->in = &maker->program->instructions[i];
        code->step_of[i] = sg_maker_here(maker);
        if (leads[i]) {
            if (leader != SG_NO_STEP)
                code->steps[leader].value = counted < MOST_COUNTED ? counted : MOST_COUNTED;
            leader = sg_maker_here(maker);
            counted = 1;
            sg_maker_step(maker, sg_run_leader);
        }
        if (code->counted)
            sg_maker_count(maker);
        uint32_t first = sg_maker_here(maker);
        if (maker->aliased && maker->aliased[i])
            continue;
        if (maker->in->op == SG_OP_ret)
            sg_maker_stack_end(maker, maker->in);
        if (!sg_maker_emit(maker))
            return false;
        if (maker->temporary_count > SG_MAKER_TEMPORARIES)
            return sg_maker_refuse(maker, "more operands than the engine has room for");
        sg_maker_note_uses(maker, first);
        if (maker->no_memory)
            return true;
        sg_maker_note_live(maker, first);
        counted++;
    }
    /* A body whose end is reached returns. */
    if (leader != SG_NO_STEP)
        code->steps[leader].value = counted < MOST_COUNTED ? counted : MOST_COUNTED;
    code->step_of[end] = sg_maker_here(maker);
    sg_maker_step(maker, sg_run_leader)->value = 1;
    sg_maker_stack_end(maker, NULL);
    sg_maker_step(maker, sg_run_return);
    code->functions[maker->function_index].frame =
        ((maker->frame + maker->temporaries + 255) & ~255u) + 256;
    return true;
}

/* The step where lanes join that a branch parts. */
static uint32_t join_of(const struct sg_code *code, const struct sg_step *branch) {
    const struct sg_program *program = code->program;
    uint32_t block = program->instructions[branch->instruction].block;
    uint32_t join = program->blocks[block].join;
    return join == SG_NO_BLOCK       ? SG_NO_STEP
           : join == SG_RETURN_BLOCK ? SG_RETURN_STEP
                                     : code->step_of[program->blocks[join].first];
}

/* Lanes that come to the end of a kernel do not wait there: barriers count those that have not
 * exited. */
static bool ends(const struct sg_code *code, const struct sg_step *branch) {
    const struct sg_program *program = code->program;
    const struct sg_program_block *block =
        &program->blocks[program->instructions[branch->instruction].block];
    if (block->join == SG_NO_BLOCK || block->join == SG_RETURN_BLOCK)
        return block->join == SG_NO_BLOCK;
    const struct sg_instruction *in = &program->instructions[program->blocks[block->join].first];
    bool entry = block->join < program->functions[0].first_block + program->functions[0].blocks;
    return !in->guard && (in->op == SG_OP_exit || (in->op == SG_OP_ret && entry));
}

static void resolve_jumps(struct sg_code *code) {
    for (uint32_t i = 0; i < code->step_count; i++) {
        struct sg_step *step = &code->steps[i];
        if (step->run == sg_run_branch || step->run == sg_run_indexed)
            step->value = join_of(code, step);
        if (step->run == sg_run_branch || step->run == sg_run_indexed)
            step->choice = ends(code, step) ? SG_JOIN_NEVER : 0;
        if (step->run == sg_run_branch)
            step->target = code->step_of[step->target];
        for (uint32_t k = 0; step->run == sg_run_indexed && k < step->target; k++)
            code->list[step->list + k] = code->step_of[code->list[step->list + k]];
    }
}

/* ---- the whole ------------------------------------------------------------------------------- */

static bool make_all(struct sg_maker *maker, bool *leads) {
    const struct sg_program *program = maker->program;
    for (uint32_t f = 0; f < program->function_count; f++) {
        maker->function = &program->functions[f];
        maker->function_index = f;
        maker->code->functions[f].first_step = SG_NO_STEP;
        if (maker->function->instructions == 0)
            continue;
        /* The end of a function is the next one's first instruction, so leaders are marked per
         * function. */
        memset(leads, 0, program->instruction_count + 1);
        mark_leaders(program, maker->function, leads);
        if (!make_function(maker, leads))
            return false;
    }
    return true;
}

static struct sg_code *code_new(const struct sg_program *program, enum sg_level level,
                                unsigned kinds) {
    struct sg_code *code = calloc(1, sizeof *code);
    if (!code)
        return NULL;
    code->program = program;
    code->level = level;
    code->watched = kinds & SG_CODE_WATCHED;
    code->counted = kinds & SG_CODE_COUNTED;
    code->clustered = sg_program_clustered(program);
    code->step_of = calloc(program->instruction_count + 1, sizeof *code->step_of);
    code->register_place = calloc(program->register_count + 1, sizeof *code->register_place);
    code->functions = calloc(program->function_count + 1, sizeof *code->functions);
    /* Pointers into these are computed even if they are empty. */
    code->list = malloc(sizeof *code->list);
    code->slots = malloc(sizeof *code->slots);
    if (code->step_of && code->register_place && code->functions && code->list && code->slots)
        return code;
    sg_code_free(code);
    return NULL;
}

/* `flags`: room for two per instruction. */
static CUresult make_once(const struct sg_program *program, enum sg_level level, bool *flags,
                          unsigned kinds, bool aliases, struct sg_code **result,
                          struct sg_maker *maker) {
    struct sg_code *code = code_new(program, level, kinds);
    if (!code)
        return CUDA_ERROR_OUT_OF_MEMORY;
    size_t count = program->instruction_count + 1;
    memset(flags, 0, 2 * count * sizeof *flags);
    *maker = (struct sg_maker){.code = code,
                               .program = program,
                               .lanes = sg_level_lanes(level),
                               .aliased = aliases ? flags + count : NULL};
    bool can = make_all(maker, flags);
    if (can && !maker->no_memory) {
        sg_maker_constant(maker, SG_W_64, 0); /* never empty */
        resolve_jumps(code);
        code->given_up = calloc(code->step_count / 32 + 1, sizeof *code->given_up);
        maker->no_memory = !code->given_up;
    }
    sg_constants_free(&maker->constants);
    sg_liveness_free(&maker->live);
    sg_region_end(&maker->region);
    if (can && !maker->no_memory && !maker->unalias) {
        *result = code;
        return CUDA_SUCCESS;
    }
    sg_code_free(code);
    return can || maker->no_memory ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_NOT_SUPPORTED;
}

static CUresult make(const struct sg_program *program, enum sg_level level, unsigned kinds,
                     struct sg_code **result, struct sg_maker *maker) {
    bool *flags = malloc(2 * (program->instruction_count + 1) * sizeof *flags);
    *maker = (struct sg_maker){.no_memory = !flags};
    if (!flags)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult made = make_once(program, level, flags, kinds, true, result, maker);
    if (made != CUDA_SUCCESS && maker->unalias && !maker->no_memory)
        made = make_once(program, level, flags, kinds, false, result, maker);
    free(flags);
    return made;
}

CUresult sg_code_make(const struct sg_program *program, enum sg_level level, unsigned kinds,
                      struct sg_code **code) {
    struct sg_maker maker;
    return make(program, level, kinds, code, &maker);
}

bool sg_engine_can(const struct sg_program *program, char *why, size_t size) {
    struct sg_maker maker;
    struct sg_code *code;
    CUresult result = make(program, SG_LEVEL_GENERIC, 0, &code, &maker);
    if (result == CUDA_SUCCESS) {
        sg_code_free(code);
        return true;
    }
    if (result == CUDA_ERROR_NOT_SUPPORTED)
        snprintf(why, size, "line %u: %s%s%s: %s", maker.in->line, sg_op_name(maker.in->op),
                 maker.in->type ? "." : "", sg_type_name(maker.in->type), maker.why);
    else
        snprintf(why, size, "out of memory");
    return false;
}

void sg_code_free(struct sg_code *code) {
    if (!code)
        return;
    free(code->steps);
    free(code->list);
    free(code->step_of);
    free(code->register_place);
    free(code->functions);
    free(code->constants);
    free(code->patches);
    free(code->specials);
    free(code->slots);
    free(code->given_up);
    free(code);
}
