#include "softgpu/program/uniformity.h"

#include "softgpu/program/liveness.h"
#include "softgpu/program/region.h"

#include <stdlib.h>

struct finding {
    const struct sg_program *program;
    const struct sg_program_function *function;
    struct sg_uniformity *found;
    struct sg_liveness live;
    struct sg_region region;
    bool varies; /* what the instruction at hand writes */
    bool changed;
};

static void vary(struct finding *f, uint32_t reg) {
    f->changed |= !f->found->varies[reg];
    f->found->varies[reg] = true;
}

/* ---- instructions ---------------------------------------------------------------------------- */

/* Special registers that are the same in a block, and stay so. */
static bool special_varies(unsigned special) {
    switch (special) {
    case SG_SPECIAL_NTID:
    case SG_SPECIAL_CTAID:
    case SG_SPECIAL_NCTAID:
    case SG_SPECIAL_NWARPID:
    case SG_SPECIAL_NSMID:
    case SG_SPECIAL_GRIDID:
    case SG_SPECIAL_CLUSTERID:
    case SG_SPECIAL_NCLUSTERID:
    case SG_SPECIAL_CLUSTER_CTAID:
    case SG_SPECIAL_CLUSTER_NCTAID:
    case SG_SPECIAL_CLUSTER_CTARANK:
    case SG_SPECIAL_CLUSTER_NCTARANK:
    case SG_SPECIAL_IS_EXPLICIT_CLUSTER:
    case SG_SPECIAL_TOTAL_SMEM_SIZE:
    case SG_SPECIAL_AGGR_SMEM_SIZE:
    case SG_SPECIAL_DYNAMIC_SMEM_SIZE:
    case SG_SPECIAL_CURRENT_GRAPH_EXEC:
    case SG_SPECIAL_RESERVED_SMEM_OFFSET_BEGIN:
    case SG_SPECIAL_RESERVED_SMEM_OFFSET_END:
    case SG_SPECIAL_RESERVED_SMEM_OFFSET_CAP:
    case SG_SPECIAL_RESERVED_SMEM_OFFSET_0:
    case SG_SPECIAL_RESERVED_SMEM_OFFSET_1:
    case SG_SPECIAL_WARP_SZ:
    case SG_SPECIAL_ENVREG:
        return false;
    default:
        return true;
    }
}

/* Whether results vary although all operands are the same: those of memory that others write, of
 * other lanes, of waits, and what calls give. */
static bool op_varies(const struct sg_instruction *in) {
    switch (in->op) {
    case SG_OP_ld:
        return in->space != SG_IN_PARAM && in->space != SG_IN_CONST;
    case SG_OP_ldu:
    case SG_OP_ldmatrix:
    case SG_OP_movmatrix:
    case SG_OP_atom:
    case SG_OP_shfl:
    case SG_OP_vote:
    case SG_OP_match:
    case SG_OP_redux:
    case SG_OP_activemask:
    case SG_OP_elect:
    case SG_OP_bar:
    case SG_OP_barrier:
    case SG_OP_mbarrier:
    case SG_OP_tex:
    case SG_OP_tld4:
    case SG_OP_suld:
    case SG_OP_mma:
    case SG_OP_wmma:
    case SG_OP_call:
    case SG_OP_alloca:
    case SG_OP_stacksave:
        return true;
    default:
        return false;
    }
}

static void on_register(void *user, uint32_t reg, bool written) {
    struct finding *f = user;
    if (!written)
        f->varies |= f->found->varies[reg];
    else if (f->varies)
        vary(f, reg);
}

static void instruction(struct finding *f, const struct sg_instruction *in) {
    uint32_t code = f->function->registers; /* the condition code's */
    f->varies = op_varies(in);
    for (unsigned i = 0; i < in->operand_count; i++) {
        const struct sg_operand *one = &f->program->operands[in->first_operand + i];
        f->varies |= one->kind == SG_OPERAND_SPECIAL && special_varies(one->first);
    }
    if (in->op == SG_OP_addc || in->op == SG_OP_subc || in->op == SG_OP_madc)
        f->varies |= f->found->varies[code];
    sg_instruction_registers(f->program, in, on_register, f);
    if (f->varies && in->modifiers & SG_MOD(CC))
        vary(f, code);
}

/* ---- branches -------------------------------------------------------------------------------- */

static void on_index(void *user, uint32_t reg, bool written) {
    struct finding *f = user;
    f->varies |= !written && f->found->varies[reg];
}

/* What is written on one of the ways, and lives longer than its block, may depend on the way. */
static void part(struct finding *f, uint32_t block) {
    f->found->parts[block - f->function->first_block] = f->changed = true;
    sg_region_find(&f->region, block, UINT32_MAX);
    for (uint32_t i = 0; i < f->region.count; i++)
        for (uint32_t k = 0; k < f->live.count; k++) {
            uint32_t reg = f->live.registers[k], at = f->region.blocks[i];
            if (sg_live_written(&f->live, at, reg) && sg_live_out(&f->live, at, reg))
                vary(f, reg);
        }
}

static void block(struct finding *f, uint32_t number) {
    const struct sg_program_block *one = &f->program->blocks[number];
    for (uint32_t i = one->first; i < one->end; i++)
        instruction(f, &f->program->instructions[i]);
    if (one->successors < 2 || f->found->parts[number - f->function->first_block])
        return;
    f->varies = false;
    sg_instruction_registers(f->program, &f->program->instructions[one->end - 1], on_index, f);
    if (f->varies)
        part(f, number);
}

/* ---- the whole ------------------------------------------------------------------------------- */

static void find(struct finding *f) {
    const struct sg_program_function *function = f->function;
    for (uint32_t i = 0; i < function->parameters; i++) { /* an entry's are never in registers */
        const struct sg_program_parameter *one =
            &f->program->parameters[function->first_parameter + i];
        for (uint32_t k = 0; one->reg != SG_NO_REGISTER && k < one->count; k++)
            vary(f, one->reg + k);
    }
    do {
        f->changed = false;
        for (uint32_t b = 0; b < function->blocks; b++)
            block(f, function->first_block + b);
    } while (f->changed);
}

bool sg_uniformity_find(const struct sg_program *program,
                        const struct sg_program_function *function,
                        struct sg_uniformity *uniformity) {
    struct finding f = {.program = program, .function = function, .found = uniformity};
    *uniformity = (struct sg_uniformity){0};
    uniformity->varies = calloc(function->registers + (size_t)1, sizeof *uniformity->varies);
    uniformity->parts = calloc(function->blocks + (size_t)1, sizeof *uniformity->parts);
    bool good =
        uniformity->varies && uniformity->parts && sg_liveness_find(program, function, &f.live);
    if (good && sg_region_begin(program, function, &f.region))
        find(&f);
    else
        good = false;
    sg_region_end(&f.region);
    sg_liveness_free(&f.live);
    if (!good)
        sg_uniformity_free(uniformity);
    return good;
}

void sg_uniformity_free(struct sg_uniformity *uniformity) {
    free(uniformity->varies);
    free(uniformity->parts);
    *uniformity = (struct sg_uniformity){0};
}

static const struct sg_program_function *function_at(const struct sg_program *program,
                                                     uint32_t block) {
    const struct sg_program_function *one = program->functions;
    while (block - one->first_block >= one->blocks)
        one++;
    return one;
}

uint32_t sg_parting_branch(const struct sg_program *program, uint32_t instruction) {
    uint32_t at = program->instructions[instruction].block, found = SG_NO_BRANCH;
    uint32_t least = UINT32_MAX;
    const struct sg_program_function *function = function_at(program, at);
    struct sg_uniformity uniformity;
    struct sg_region region;
    if (!sg_uniformity_find(program, function, &uniformity))
        return SG_NO_BRANCH;
    if (!sg_region_begin(program, function, &region)) {
        sg_uniformity_free(&uniformity);
        return SG_NO_BRANCH;
    }
    for (uint32_t b = 0; b < function->blocks; b++) {
        if (!uniformity.parts[b])
            continue;
        sg_region_find(&region, function->first_block + b, UINT32_MAX);
        if (region.seen[at - function->first_block] == region.walk && region.count < least) {
            least = region.count;
            found = program->blocks[function->first_block + b].end - 1;
        }
    }
    sg_region_end(&region);
    sg_uniformity_free(&uniformity);
    return found;
}
