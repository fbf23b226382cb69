/* The place of an instruction in its text and source. */
#include "softgpu/check/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void sg_ptx_line(const char *ptx, uint32_t line, char *text, size_t size) {
    for (uint32_t i = 1; ptx && i < line; i++) {
        ptx = strchr(ptx, '\n');
        ptx += ptx != NULL;
    }
    size_t used = 0;
    text[0] = '\0';
    if (!ptx || line == 0)
        return;
    for (bool ends = false; !ends && *ptx && used + 1 < size;) {
        ptx += strspn(ptx, used ? " \t\r\n" : " \t");
        size_t length = strcspn(ptx, "\r\n"), room = size - used - 1;
        size_t words = length;
        while (words && (ptx[words - 1] == ' ' || ptx[words - 1] == '\t'))
            words--;
        ends = length == 0 || strcspn(ptx, ";{}") < length;
        words = words < room ? words : room;
        memcpy(text + used, ptx, words);
        used += words;
        ptx += length;
        if (!ends && *ptx && used + 1 < size)
            text[used++] = ' ';
        text[used] = '\0';
    }
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

void sg_program_place(const struct sg_program *program, const char *ptx, uint32_t instruction,
                      struct sg_hazard_place *place) {
    *place = (struct sg_hazard_place){.kernel = program->name};
    if (instruction >= program->instruction_count)
        return;
    place->line = program->instructions[instruction].line;
    place->function = function_of(program, instruction);
    sg_ptx_line(ptx, place->line, place->text, sizeof place->text);
    take_source(program, program->instructions[instruction].location, place);
}

static int add_call(const struct sg_program *program, uint32_t instruction, char *text,
                    size_t size) {
    struct sg_hazard_place place;
    char source[512] = "";
    sg_program_place(program, NULL, instruction, &place);
    if (place.file)
        snprintf(source, sizeof source, "%s:%" PRIu32 ", ", place.file, place.source_line);
    return snprintf(text, size, "  called at %sPTX line %" PRIu32 "%s%s\n", source, place.line,
                    place.function ? ", in function " : "", place.function ? place.function : "");
}

void sg_fault_calls(const struct sg_program *program, const struct sg_grid_fault *fault, char *text,
                    size_t size) {
    size_t used = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < fault->depth && i < SG_FAULT_CALLS && used < size; i++)
        used += (size_t)add_call(program, fault->calls[i], text + used, size - used);
    if (fault->depth > SG_FAULT_CALLS && used < size)
        snprintf(text + used, size - used, "  and so on, in all %" PRIu32 " calls\n", fault->depth);
}

void sg_hazard_place(const struct sg_check_launch *launch, uint32_t instruction,
                     const unsigned block[3], unsigned thread, struct sg_hazard_place *place) {
    sg_program_place(launch->program, launch->ptx, instruction, place);
    const unsigned *shape = launch->block;
    if (block)
        memcpy(place->block, block, sizeof place->block);
    place->thread[0] = thread % shape[0];
    place->thread[1] = thread / shape[0] % shape[1];
    place->thread[2] = thread / shape[0] / shape[1];
}
