/*
 * Kernels of PTX that no compiler wrote, decoded. Whatever the reader takes gives a program that
 * keeps the promises of program.h, or a refusal.
 */
#include "softgpu/program/liveness.h"
#include "softgpu/program/region.h"
#include "softgpu/program/uniformity.h"
#include "softgpu/ptx/ptx.h"

#include <stdlib.h>
#include <string.h>

#define MOST_ENTRIES 4
#define MOST_BLOCKS  200 /* of a function, to be looked at */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool true_here) {
    if (!true_here)
        abort();
}

static void check_operand(const struct sg_program *program,
                          const struct sg_program_function *function, const struct sg_operand *one,
                          unsigned depth) {
    uint32_t end = function->first_instruction + function->instructions;
    require(depth < 8);
    switch (one->kind) {
    case SG_OPERAND_REGISTER:
        require(one->reg < function->registers);
        break;
    case SG_OPERAND_ADDRESS:
        require(one->reg == SG_NO_REGISTER || one->reg < function->registers);
        require(one->first == SG_NO_VARIABLE || one->first < program->variable_count);
        break;
    case SG_OPERAND_VARIABLE:
        require(one->first < program->variable_count);
        break;
    case SG_OPERAND_FUNCTION:
        require(one->first < program->function_count);
        break;
    case SG_OPERAND_LABEL:
        require(one->first >= function->first_instruction && one->first < end);
        break;
    case SG_OPERAND_TARGETS:
        require(one->first < program->target_count);
        break;
    case SG_OPERAND_VECTOR:
    case SG_OPERAND_PAIR:
        require(one->first + (uint64_t)one->count <= program->operand_count);
        for (uint32_t i = 0; i < one->count; i++)
            check_operand(program, function, &program->operands[one->first + i], depth + 1);
        break;
    default:
        require(one->kind == SG_OPERAND_NONE || one->kind == SG_OPERAND_IMMEDIATE ||
                one->kind == SG_OPERAND_SPECIAL);
    }
}

static void check_instruction(const struct sg_program *program,
                              const struct sg_program_function *function,
                              const struct sg_instruction *one) {
    require(one->op < SG_OP_COUNT && one->guard <= function->registers);
    require(one->location <= program->location_count);
    require(!one->unsupported || one->operand_count == 0);
    for (unsigned i = 0; i < one->operand_count; i++)
        check_operand(program, function, &program->operands[one->first_operand + i], 0);
}

/* Blocks follow each other without a gap, and lead to blocks of the same function. */
static void check_blocks(const struct sg_program *program,
                         const struct sg_program_function *function) {
    uint32_t at = function->first_instruction;
    uint32_t end = function->first_block + function->blocks;
    for (uint32_t i = function->first_block; i < end; i++) {
        const struct sg_program_block *block = &program->blocks[i];
        require(block->first == at && block->end > at);
        at = block->end;
        require(block->first_successor + (uint64_t)block->successors <= program->successor_count);
        for (uint32_t j = 0; j < block->successors; j++) {
            uint32_t to = program->successors[block->first_successor + j];
            require(to >= function->first_block && to < end);
        }
        require(block->post_dominator == SG_NO_BLOCK ||
                (block->post_dominator >= function->first_block && block->post_dominator < end &&
                 block->post_dominator != i));
    }
    require(at == function->first_instruction + function->instructions);
}

/* ---- what is live ---------------------------------------------------------------------------- */

struct reader {
    const struct sg_liveness *live;
    uint32_t block;
    bool *written; /* by register: in this block so far, without a guard */
    bool guarded;
};

/* What a block reads before it writes it is live at its beginning. */
static void check_use(void *user, uint32_t reg, bool written) {
    struct reader *reader = user;
    require(written || reader->written[reg] || sg_live_in(reader->live, reader->block, reg));
    reader->written[reg] |= written && !reader->guarded;
}

static void check_block(const struct sg_program *program,
                        const struct sg_program_function *function, struct reader *reader) {
    const struct sg_program_block *block = &program->blocks[reader->block];
    const struct sg_liveness *live = reader->live;
    memset(reader->written, 0, function->registers);
    for (uint32_t i = block->first; i < block->end; i++) {
        reader->guarded = program->instructions[i].guard != 0;
        sg_instruction_registers(program, &program->instructions[i], check_use, reader);
    }
    for (uint32_t i = 0; i < live->count; i++) {
        uint32_t reg = live->registers[i];
        bool out = sg_live_out(live, reader->block, reg);
        for (uint32_t k = 0; k < block->successors; k++)
            require(out || !sg_live_in(live, program->successors[block->first_successor + k], reg));
        require(!out || reader->written[reg] || sg_live_in(live, reader->block, reg));
    }
}

/* Lanes leave a region only to its join. */
static void check_region(const struct sg_program *program, struct sg_region *region,
                         uint32_t number) {
    require(sg_region_find(region, number, UINT32_MAX));
    uint32_t join = program->blocks[number].post_dominator;
    for (uint32_t i = 0; i < region->count; i++) {
        const struct sg_program_block *block = &program->blocks[region->blocks[i]];
        require(region->blocks[i] != join);
        for (uint32_t k = 0; k < block->successors; k++) {
            uint32_t to = program->successors[block->first_successor + k];
            require(to == join || region->seen[to - region->function->first_block] == region->walk);
        }
    }
}

/* What is written from something that varies varies. */
struct source {
    const struct sg_uniformity *found;
    bool varies;
};

static void check_variation(void *user, uint32_t reg, bool written) {
    struct source *source = user;
    require(!written || !source->varies || source->found->varies[reg]);
    source->varies |= !written && source->found->varies[reg];
}

static void check_uniformity(const struct sg_program *program,
                             const struct sg_program_function *function) {
    struct sg_uniformity found;
    require(sg_uniformity_find(program, function, &found));
    for (uint32_t i = 0; i < function->instructions; i++) {
        struct source source = {.found = &found};
        sg_instruction_registers(program, &program->instructions[function->first_instruction + i],
                                 check_variation, &source);
    }
    for (uint32_t i = 0; i < function->blocks; i++)
        require(!found.parts[i] || program->blocks[function->first_block + i].successors > 1);
    sg_uniformity_free(&found);
}

static void check_flow(const struct sg_program *program,
                       const struct sg_program_function *function) {
    struct sg_liveness live;
    struct sg_region region;
    struct reader reader = {.live = &live, .written = malloc(function->registers + (size_t)1)};
    require(reader.written && sg_liveness_find(program, function, &live) &&
            sg_region_begin(program, function, &region));
    for (uint32_t i = 0; i < function->blocks && i < MOST_BLOCKS; i++) {
        reader.block = function->first_block + i;
        check_block(program, function, &reader);
        check_region(program, &region, reader.block);
    }
    sg_region_end(&region);
    sg_liveness_free(&live);
    free(reader.written);
}

static void check_variables(const struct sg_program *program, const struct sg_image *image) {
    for (size_t i = 0; i < program->variable_count; i++) {
        const struct sg_program_variable *one = &program->variables[i];
        require(one->alignment && (one->alignment & (one->alignment - 1)) == 0);
        if (one->place == SG_PLACE_SHARED)
            require(one->offset % one->alignment == 0 &&
                    one->offset + one->size <= program->static_shared);
        if (one->place == SG_PLACE_FRAME) {
            const struct sg_program_function *function = &program->functions[one->function];
            require(one->offset % one->alignment == 0 &&
                    one->alignment <= function->frame_alignment &&
                    one->offset + one->size <= function->frame);
        }
        require(one->place != SG_PLACE_IMAGE || one->image == UINT32_MAX ||
                one->image < image->variable_count);
    }
}

static void check(const struct sg_program *program, const struct sg_image *image) {
    require(program->function_count && program->functions[0].entry);
    for (size_t i = 0; i < program->function_count; i++) {
        const struct sg_program_function *function = &program->functions[i];
        uint32_t end = function->first_instruction + function->instructions;
        require(end <= program->instruction_count);
        for (uint32_t j = function->first_instruction; j < end; j++)
            check_instruction(program, function, &program->instructions[j]);
        check_blocks(program, function);
        check_flow(program, function);
        check_uniformity(program, function);
    }
    check_variables(program, image);
    char *dump = sg_program_dump(program);
    require(dump != NULL);
    free(dump);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char error[100];
    const struct sg_image_options options = {
        .architecture = 90, .suffix = 'a', .newest_ptx = SG_PTX_NEWEST, .relocatable = true};
    struct sg_image_log log = {.error = error, .error_size = sizeof error};
    struct sg_image *image = calloc(1, sizeof *image);
    if (sg_ptx_read((struct sg_bytes){data, size}, &options, &log, image) == CUDA_SUCCESS) {
        for (size_t i = 0; i < image->function_count && i < MOST_ENTRIES; i++) {
            struct sg_program *program = NULL;
            CUresult result = sg_program_make(image, image->functions[i].name, &log, &program);
            require((result == CUDA_SUCCESS) == (program != NULL));
            if (program)
                check(program, image);
            sg_program_free(program);
        }
    }
    sg_image_free(image);
    return 0;
}
