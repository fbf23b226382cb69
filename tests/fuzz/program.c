/*
 * Kernels of PTX that no compiler wrote, decoded. Whatever the reader takes gives a program that
 * keeps the promises of program.h, or a refusal.
 */
#include "softgpu/program/program.h"
#include "softgpu/ptx/ptx.h"

#include <stdlib.h>
#include <string.h>

#define MOST_ENTRIES 4

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
    }
    check_variables(program, image);
    char *dump = sg_program_dump(program);
    require(dump != NULL);
    free(dump);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char error[100];
    const struct sg_image_options options = {
        .architecture = 90, .suffix = 'a', .newest_ptx = 90, .relocatable = true};
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
