/* The place of an instruction in its text and source. */
#include "softgpu/check/check.h"

#include <string.h>

/* The line of the text, without surrounding white space. */
static void take_text(const char *ptx, uint32_t line, char *text, size_t size) {
    for (uint32_t i = 1; ptx && i < line; i++) {
        ptx = strchr(ptx, '\n');
        ptx += ptx != NULL;
    }
    text[0] = '\0';
    if (!ptx || line == 0)
        return;
    ptx += strspn(ptx, " \t");
    size_t length = strcspn(ptx, "\r\n");
    length = length < size ? length : size - 1;
    memcpy(text, ptx, length);
    text[length] = '\0';
}

static const char *function_of(const struct sg_program *program, uint32_t instruction) {
    for (size_t i = 1; i < program->function_count; i++) {
        const struct sg_program_function *one = &program->functions[i];
        if (instruction >= one->first_instruction &&
            instruction - one->first_instruction < one->instructions)
            return one->name;
    }
    return NULL;
}

static void take_source(const struct sg_program *program, uint32_t number,
                        struct sg_hazard_place *place) {
    if (!number || number > program->location_count)
        return;
    const struct sg_program_location *location = &program->locations[number - 1];
    for (size_t i = 0; i < program->file_count; i++)
        if (program->files[i].number == location->file)
            place->file = program->files[i].name;
    place->source_line = location->line;
}

void sg_hazard_place(const struct sg_check_launch *launch, uint32_t instruction,
                     const unsigned block[3], unsigned thread, struct sg_hazard_place *place) {
    const struct sg_program *program = launch->program;
    *place = (struct sg_hazard_place){.kernel = program->name};
    if (instruction < program->instruction_count) {
        place->line = program->instructions[instruction].line;
        place->function = function_of(program, instruction);
        take_text(launch->ptx, place->line, place->text, sizeof place->text);
        take_source(program, program->instructions[instruction].location, place);
    }
    const unsigned *shape = launch->block;
    if (block)
        memcpy(place->block, block, sizeof place->block);
    place->thread[0] = thread % shape[0];
    place->thread[1] = thread / shape[0] % shape[1];
    place->thread[2] = thread / shape[0] / shape[1];
}
