/* Resolves labels to instructions and builds the control-flow graph of a function. */
#include "softgpu/program/build.h"

#include <stdlib.h>
#include <string.h>

/* ---- labels ---------------------------------------------------------------------------------- */

/* The label of this name in the block, or in one that encloses it. */
static const struct sg_build_label *label_of(const struct sg_build *b,
                                             const struct sg_build_reference *reference) {
    size_t found;
    for (size_t block = reference->block; block; block = b->parents[block - 1]) {
        if (sg_names_find(&b->label_names, block, reference->name, reference->length, &found))
            return &b->labels[found];
    }
    return NULL;
}

static bool refuse(struct sg_build *b, struct sg_instruction *one, const char *why) {
    one->operand_count = 0;
    one->unsupported = one->unsupported ? one->unsupported
                                        : sg_build_format(b, "%s: %s", sg_op_name(one->op), why);
    return one->unsupported != NULL;
}

/* Decides what a name that was taken for a label is: a branch target, a list or a prototype. */
static bool settle(struct sg_build *b, struct sg_instruction *one, struct sg_operand *operand) {
    const struct sg_build_label *label = label_of(b, &b->references[operand->first]);
    if (!label)
        return refuse(b, one, "its label is in no block around it");
    if (one->op == SG_OP_bra) {
        operand->first = label->instruction;
        return (!label->targets && !label->prototype) ||
               refuse(b, one, "its label is that of a list");
    }
    bool list = label->targets != 0;
    if (list && b->program->targets[label->targets - 1].calls != (one->op == SG_OP_call))
        return refuse(b, one, "its list is of another kind");
    if (!list && !(one->op == SG_OP_call && label->prototype))
        return refuse(b, one, "its label is not that of a list");
    *operand = (struct sg_operand){.kind = list ? SG_OPERAND_TARGETS : SG_OPERAND_NONE,
                                   .first = list ? label->targets - 1 : 0,
                                   .reg = SG_NO_REGISTER};
    return true;
}

static bool settle_lists(struct sg_build *b) {
    struct sg_program *program = b->program;
    for (size_t i = b->first_target; i < program->target_count; i++) {
        const struct sg_program_targets *list = &program->targets[i];
        for (uint32_t j = list->first; j < list->first + list->count && !list->calls; j++) {
            uint32_t reference = program->target_list[j];
            const struct sg_build_label *label =
                reference == UINT32_MAX ? NULL : label_of(b, &b->references[reference]);
            bool place = label && !label->targets && !label->prototype;
            program->target_list[j] = place ? label->instruction : UINT32_MAX;
        }
    }
    return true;
}

static bool good_list(const struct sg_program *program, const struct sg_instruction *one) {
    if (!one->operand_count)
        return true;
    const struct sg_operand *last = &program->operands[one->first_operand + one->operand_count - 1];
    if (last->kind != SG_OPERAND_TARGETS)
        return true;
    const struct sg_program_targets *list = &program->targets[last->first];
    for (uint32_t i = 0; i < list->count; i++) {
        if (program->target_list[list->first + i] == UINT32_MAX)
            return false;
    }
    return true;
}

bool sg_build_resolve(struct sg_build *b) {
    struct sg_program *program = b->program;
    const struct sg_program_function *function = &program->functions[b->function];
    settle_lists(b);
    for (uint32_t i = 0; i < function->instructions; i++) {
        struct sg_instruction *one = &program->instructions[function->first_instruction + i];
        for (unsigned j = 0; j < one->operand_count; j++) {
            struct sg_operand *operand = &program->operands[one->first_operand + j];
            if (operand->kind == SG_OPERAND_LABEL && !settle(b, one, operand))
                return false;
        }
        if (!good_list(program, one) && !refuse(b, one, "a name of its list is no place to go to"))
            return false;
    }
    return true;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

struct flow {
    struct sg_build *b;
    struct sg_program *program;
    uint32_t first, count;  /* instructions */
    uint32_t *block_of;     /* for each instruction: the block that it begins, + 1 */
    uint32_t *entered_from; /* for each of the function's blocks: the last that leads there, + 1 */
};

static struct sg_instruction *at(const struct flow *f, uint32_t i) {
    return &f->program->instructions[f->first + i];
}

static bool ends_block(const struct sg_instruction *one) {
    return one->op == SG_OP_bra || one->op == SG_OP_brx || one->op == SG_OP_ret ||
           one->op == SG_OP_exit || one->op == SG_OP_trap;
}

/* The instructions that one may jump to. */
static const uint32_t *targets(const struct sg_program *program, const struct sg_instruction *one,
                               uint32_t *count) {
    *count = 0;
    if (!one->operand_count)
        return NULL;
    const struct sg_operand *operands = &program->operands[one->first_operand];
    if (one->op == SG_OP_bra) {
        *count = 1;
        return &operands[0].first;
    }
    if (one->op == SG_OP_brx) {
        const struct sg_program_targets *list = &program->targets[operands[1].first];
        *count = list->count;
        return program->target_list + list->first;
    }
    return NULL;
}

static void mark_leaders(struct flow *f) {
    if (f->count)
        f->block_of[0] = 1;
    for (uint32_t i = 0; i < f->count; i++) {
        struct sg_instruction *one = at(f, i);
        uint32_t count;
        const uint32_t *list = targets(f->program, one, &count);
        for (uint32_t j = 0; j < count; j++) {
            f->block_of[list[j] - f->first] = 1;
            one->backward = one->backward || list[j] <= f->first + i;
        }
        if (ends_block(one) && i + 1 < f->count)
            f->block_of[i + 1] = 1;
    }
}

static bool add_blocks(struct flow *f) {
    struct sg_program *program = f->program;
    for (uint32_t i = 0; i < f->count; i++) {
        if (f->block_of[i]) {
            struct sg_program_block *grown =
                sg_image_grow(program->blocks, &program->block_count, sizeof *grown);
            if (!grown)
                return sg_build_no_memory(f->b);
            program->blocks = grown;
            grown[program->block_count - 1] = (struct sg_program_block){
                .first = f->first + i, .post_dominator = SG_NO_BLOCK, .join = SG_NO_BLOCK};
            f->block_of[i] = (uint32_t)program->block_count;
        }
        program->blocks[program->block_count - 1].end = f->first + i + 1;
        at(f, i)->block = (uint32_t)program->block_count - 1;
    }
    return true;
}

/* Once, however often a list names it. */
static bool add_successor(struct flow *f, struct sg_program_block *block, uint32_t to) {
    struct sg_program *program = f->program;
    const uint32_t mark = (uint32_t)(block - program->blocks) + 1;
    uint32_t *from = &f->entered_from[to - program->functions[f->b->function].first_block];
    if (*from == mark)
        return true;
    *from = mark;
    uint32_t *grown = sg_image_grow(program->successors, &program->successor_count, sizeof *grown);
    if (!grown)
        return sg_build_no_memory(f->b);
    program->successors = grown;
    grown[program->successor_count - 1] = to;
    block->successors++;
    if (program->blocks[to].first < block->end)
        program->blocks[to].loop_header = true;
    return true;
}

static bool link_block(struct flow *f, struct sg_program_block *block) {
    const struct sg_instruction *last = &f->program->instructions[block->end - 1];
    uint32_t count, next = block->end - f->first;
    const uint32_t *list = targets(f->program, last, &count);
    block->first_successor = (uint32_t)f->program->successor_count;
    bool falls = next < f->count && (!ends_block(last) || last->guard);
    if (falls && !add_successor(f, block, f->block_of[next] - 1))
        return false;
    for (uint32_t i = 0; i < count; i++) {
        if (!add_successor(f, block, f->block_of[list[i] - f->first] - 1))
            return false;
    }
    return true;
}

/* ---- post-dominators ------------------------------------------------------------------------- */

struct reverse {
    const struct sg_program *program;
    uint32_t first, count;       /* blocks of the function; `count` is the virtual exit */
    uint32_t *heads, *next, *to; /* edges of the reversed graph */
    uint32_t *order, *rank, *nearest, *stack;
    /* Which blocks lead to the exit: all that end there; those that return; or one. */
    enum { ALL_EXITS, RETURNS, ONE_EXIT } exits;
    uint32_t only;
};

static const struct sg_instruction *last_of(const struct reverse *r, uint32_t one) {
    const struct sg_program_block *block = &r->program->blocks[r->first + one];
    return &r->program->instructions[block->end - 1];
}

static bool leaves(const struct reverse *r, uint32_t one) {
    unsigned op = last_of(r, one)->op;
    bool end = op == SG_OP_exit || op == SG_OP_trap;
    if (r->exits == ONE_EXIT)
        return one == r->only;
    if (r->exits == RETURNS && end)
        return false;
    return end || op == SG_OP_ret || !r->program->blocks[r->first + one].successors;
}

static void add_edge(struct reverse *r, uint32_t from, uint32_t to, uint32_t *used) {
    r->to[*used] = to;
    r->next[*used] = r->heads[from];
    r->heads[from] = ++*used;
}

static void reverse_edges(struct reverse *r) {
    uint32_t used = 0;
    for (uint32_t i = 0; i < r->count; i++) {
        const struct sg_program_block *block = &r->program->blocks[r->first + i];
        for (uint32_t j = 0; j < block->successors; j++)
            add_edge(r, r->program->successors[block->first_successor + j] - r->first, i, &used);
        if (leaves(r, i))
            add_edge(r, r->count, i, &used);
    }
}

/* Numbers blocks in postorder of a walk from the exits; rank 0: reaches no exit. */
static uint32_t walk(struct reverse *r) {
    uint32_t depth = 0, ranked = 0;
    uint32_t *edge = r->nearest; /* not in use yet; here: the next edge of each block */
    memcpy(edge, r->heads, (r->count + 1) * sizeof *edge);
    r->rank[r->count] = UINT32_MAX;
    r->stack[depth++] = r->count;
    while (depth) {
        uint32_t block = r->stack[depth - 1];
        if (!edge[block]) {
            r->order[ranked++] = block;
            r->rank[block] = ranked;
            depth--;
            continue;
        }
        uint32_t to = r->to[edge[block] - 1];
        edge[block] = r->next[edge[block] - 1];
        if (!r->rank[to]) {
            r->rank[to] = UINT32_MAX;
            r->stack[depth++] = to;
        }
    }
    return ranked;
}

static uint32_t meet(const struct reverse *r, uint32_t a, uint32_t b) {
    while (a != b) {
        while (r->rank[a] < r->rank[b])
            a = r->nearest[a];
        while (r->rank[b] < r->rank[a])
            b = r->nearest[b];
    }
    return a;
}

/* Cooper, Harvey and Kennedy's dominator algorithm, on the reversed graph. */
static void post_dominate(struct reverse *r) {
    memset(r->heads, 0, (r->count + (size_t)1) * sizeof *r->heads);
    memset(r->rank, 0, (r->count + (size_t)1) * sizeof *r->rank);
    reverse_edges(r);
    uint32_t ranked = walk(r);
    for (uint32_t i = 0; i <= r->count; i++)
        r->nearest[i] = UINT32_MAX;
    r->nearest[r->count] = r->count;
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = ranked - 1; i-- > 0;) {
            uint32_t one = r->order[i], now = leaves(r, one) ? r->count : UINT32_MAX;
            const struct sg_program_block *block = &r->program->blocks[r->first + one];
            for (uint32_t j = 0; j < block->successors; j++) {
                uint32_t to = r->program->successors[block->first_successor + j] - r->first;
                if (r->nearest[to] != UINT32_MAX)
                    now = now == UINT32_MAX ? to : meet(r, now, to);
            }
            changed = changed || now != r->nearest[one];
            r->nearest[one] = now;
        }
    }
}

/* Whether a branch may part lanes that no block has them join. Its ways then end apart. */
static bool some_part(const struct sg_program *program, const struct reverse *r) {
    for (uint32_t i = 0; i < r->count; i++)
        if (program->blocks[r->first + i].successors > 1 && r->nearest[i] >= r->count)
            return true;
    return false;
}

/* Where most lanes come that do not exit before: the last block that ends for all of its lanes. */
static uint32_t main_end(const struct reverse *r) {
    uint32_t found = UINT32_MAX;
    for (uint32_t i = 0; i < r->count; i++)
        if (leaves(r, i) && !last_of(r, i)->guard && last_of(r, i)->op != SG_OP_trap)
            found = i;
    return found;
}

/* Exits are not waited for, so that lanes also join where only those meet that do not exit. */
static void add_joins(struct sg_program *program, struct reverse *r, bool entry) {
    for (uint32_t i = 0; i < r->count; i++)
        program->blocks[r->first + i].join = program->blocks[r->first + i].post_dominator;
    if (!some_part(program, r))
        return;
    r->only = main_end(r);
    r->exits = entry ? ONE_EXIT : RETURNS;
    if (entry && r->only == UINT32_MAX)
        return;
    post_dominate(r);
    for (uint32_t i = 0; i < r->count; i++) {
        struct sg_program_block *block = &program->blocks[r->first + i];
        if (block->join == SG_NO_BLOCK && r->nearest[i] < r->count)
            block->join = r->first + r->nearest[i];
        else if (block->join == SG_NO_BLOCK && r->nearest[i] == r->count && !entry)
            block->join = SG_RETURN_BLOCK;
    }
}

static bool add_post_dominators(struct flow *f, const struct sg_program_function *function,
                                size_t edges) {
    struct reverse r = {
        .program = f->program, .first = function->first_block, .count = function->blocks};
    size_t blocks = function->blocks + (size_t)1, all = edges + blocks;
    uint32_t *room = calloc(5 * blocks + 2 * all, sizeof *room);
    if (!room)
        return sg_build_no_memory(f->b);
    r.heads = room;
    r.order = r.heads + blocks;
    r.rank = r.order + blocks;
    r.nearest = r.rank + blocks;
    r.stack = r.nearest + blocks;
    r.next = r.stack + blocks;
    r.to = r.next + all;
    post_dominate(&r);
    for (uint32_t i = 0; i < r.count; i++) {
        if (r.nearest[i] < r.count)
            f->program->blocks[r.first + i].post_dominator = r.first + r.nearest[i];
    }
    add_joins(f->program, &r, f->b->function == 0);
    free(room);
    return true;
}

bool sg_build_flow(struct sg_build *b) {
    struct sg_program *program = b->program;
    struct sg_program_function *function = &program->functions[b->function];
    struct flow f = {.b = b,
                     .program = program,
                     .first = function->first_instruction,
                     .count = function->instructions};
    size_t first_edge = program->successor_count;
    f.block_of = calloc(2 * ((size_t)f.count + 1), sizeof *f.block_of);
    if (!f.block_of)
        return sg_build_no_memory(b);
    f.entered_from = f.block_of + f.count + 1;
    mark_leaders(&f);
    bool good = add_blocks(&f);
    function->blocks = (uint32_t)program->block_count - function->first_block;
    for (uint32_t i = 0; good && i < function->blocks; i++)
        good = link_block(&f, &program->blocks[function->first_block + i]);
    free(f.block_of);
    return good && add_post_dominators(&f, function, program->successor_count - first_edge);
}
