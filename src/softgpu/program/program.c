/* Makes a program: reads the entry, then each function that it reaches, again, and decodes them. */
#include "softgpu/image/float_modes.h"
#include "softgpu/program/build.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK 4096 /* bytes of text allocated at once */

bool sg_build_no_memory(struct sg_build *b) {
    b->no_memory = true;
    return false;
}

/* ---- texts ----------------------------------------------------------------------------------- */

static char *text_room(struct sg_build *b, size_t bytes) {
    if (bytes > b->room_left) {
        struct sg_program *program = b->program;
        size_t size = bytes > CHUNK ? bytes : CHUNK;
        char *chunk = malloc(size);
        char **grown =
            chunk ? sg_image_grow(program->texts, &program->text_count, sizeof *grown) : NULL;
        if (!grown) {
            free(chunk);
            sg_build_no_memory(b);
            return NULL;
        }
        program->texts = grown;
        grown[program->text_count - 1] = chunk;
        b->room = chunk;
        b->room_left = size;
    }
    char *at = b->room;
    b->room += bytes;
    b->room_left -= bytes;
    return at;
}

const char *sg_build_text(struct sg_build *b, const char *text, size_t length) {
    char *copy = text_room(b, length + 1);
    if (!copy)
        return NULL;
    memcpy(copy, text, length);
    copy[length] = '\0';
    return copy;
}

const char *sg_build_format(struct sg_build *b, const char *format, ...) {
    char text[600];
    va_list list;
    va_start(list, format);
    int length = vsnprintf(text, sizeof text, format, list);
    va_end(list);
    size_t kept = length < 0 ? 0 : (size_t)length < sizeof text ? (size_t)length : sizeof text - 1;
    return sg_build_text(b, text, kept);
}

/* ---- what the reader reports ----------------------------------------------------------------- */

static bool on_declare(void *user, const struct sg_ptx_declaration *declaration) {
    return sg_build_declare(user, declaration);
}

static bool on_block(void *user, bool opened) {
    struct sg_build *b = user;
    if (!opened) {
        b->block = b->parents[b->block - 1];
        b->area_end = b->areas[--b->area_count].end;
        return true;
    }
    size_t *parents = sg_image_grow(b->parents, &b->block_count, sizeof *parents);
    if (!parents)
        return sg_build_no_memory(b);
    b->parents = parents;
    parents[b->block_count - 1] = b->block;
    b->block = b->block_count;
    struct sg_build_area *areas = sg_image_grow(b->areas, &b->area_count, sizeof *areas);
    if (!areas)
        return sg_build_no_memory(b);
    b->areas = areas;
    areas[b->area_count - 1].end = b->area_end;
    const struct sg_instruction begins = {.vector = 1};
    return b->block_count > 1 || sg_build_move_wide(b, &begins, false);
}

static bool on_label(void *user, const struct sg_ptx_name *name) {
    struct sg_build *b = user;
    size_t found;
    struct sg_build_label *grown = sg_image_grow(b->labels, &b->label_count, sizeof *grown);
    if (!grown)
        return sg_build_no_memory(b);
    b->labels = grown;
    grown[b->label_count - 1].instruction = (uint32_t)b->program->instruction_count;
    return sg_names_add(&b->label_names, b->block, name->text, name->length, b->label_count - 1,
                        &found) ||
           sg_build_no_memory(b);
}

static bool on_instruction(void *user, const struct sg_ptx_statement *statement) {
    return sg_build_instruction(user, statement);
}

static bool on_location(void *user, const struct sg_ptx_loc *from) {
    struct sg_build *b = user;
    struct sg_program *program = b->program;
    struct sg_program_location *grown =
        sg_image_grow(program->locations, &program->location_count, sizeof *grown);
    if (!grown)
        return sg_build_no_memory(b);
    program->locations = grown;
    grown[program->location_count - 1] = (struct sg_program_location){
        .file = sg_build_file_number(b->part, from->file),
        .line = (uint32_t)from->line,
        .column = (uint32_t)from->column,
        .inlined = from->inlined,
        .inlined_file = sg_build_file_number(b->part, from->inlined_file),
        .inlined_line = (uint32_t)from->inlined_line,
        .inlined_column = (uint32_t)from->inlined_column};
    b->location = (uint32_t)program->location_count;
    return true;
}

static bool begin_list(struct sg_build *b, enum sg_ptx_list list) {
    struct sg_program *program = b->program;
    struct sg_build_label *label = b->label_count ? &b->labels[b->label_count - 1] : NULL;
    if (list == SG_LIST_PROTOTYPE) {
        if (label)
            label->prototype = true;
        return true;
    }
    struct sg_program_targets *grown =
        sg_image_grow(program->targets, &program->target_count, sizeof *grown);
    if (!grown)
        return sg_build_no_memory(b);
    program->targets = grown;
    grown[program->target_count - 1] = (struct sg_program_targets){
        .first = (uint32_t)program->target_list_count, .calls = list == SG_LIST_CALLS};
    if (label)
        label->targets = (uint32_t)program->target_count;
    return true;
}

/* A name in a list; in one of branch targets a reference, until labels are known. */
static bool on_listed(void *user, enum sg_ptx_list list, const struct sg_ptx_name *name) {
    struct sg_build *b = user;
    struct sg_program *program = b->program;
    struct sg_operand operand = {0};
    const char *why = NULL;
    if (!name)
        return begin_list(b, list);
    const struct sg_ptx_operand from = {.kind = SG_PTX_NAME, .name = *name};
    if (!sg_build_operand(b, NULL, &from, list == SG_LIST_BRANCHES, &operand, &why))
        return false;
    uint32_t *grown =
        sg_image_grow(program->target_list, &program->target_list_count, sizeof *grown);
    if (!grown)
        return sg_build_no_memory(b);
    program->target_list = grown;
    bool right =
        operand.kind == (list == SG_LIST_BRANCHES ? SG_OPERAND_LABEL : SG_OPERAND_FUNCTION);
    grown[program->target_list_count - 1] = right ? operand.first : UINT32_MAX;
    program->targets[program->target_count - 1].count++;
    return true;
}

/* ---- functions ------------------------------------------------------------------------------- */

static void begin_function(struct sg_build *b, uint32_t function) {
    struct sg_program *program = b->program;
    struct sg_program_function *one = &program->functions[function];
    b->function = function;
    b->declaration_count = b->block_count = b->block = b->area_count = 0;
    b->label_count = b->reference_count = b->wide_count = 0;
    b->area_end = b->area_most = b->area_alignment = 0;
    b->location = 0;
    sg_names_clear(&b->label_names);
    if (b->register_room)
        memset(b->registers, 0, b->register_room * sizeof *b->registers);
    b->first_operand = program->operand_count;
    b->first_target = program->target_count;
    b->first_variable = program->variable_count;
    one->first_instruction = (uint32_t)program->instruction_count;
    one->first_block = (uint32_t)program->block_count;
    one->first_register = (uint32_t)program->register_count;
}

/* A body whose end can be reached ends as if with ret. */
static bool final_return(struct sg_build *b) {
    struct sg_program *program = b->program;
    const struct sg_program_function *function = &program->functions[b->function];
    size_t count = program->instruction_count;
    const struct sg_instruction *last =
        count > function->first_instruction ? &program->instructions[count - 1] : NULL;
    bool open = !last || last->guard ||
                (last->op != SG_OP_ret && last->op != SG_OP_exit && last->op != SG_OP_bra &&
                 last->op != SG_OP_brx && last->op != SG_OP_trap);
    for (size_t i = 0; i < b->label_count && !open; i++)
        open = b->labels[i].instruction == count;
    struct sg_instruction ret = {
        .op = SG_OP_ret, .vector = 1, .line = last ? last->line : 0, .location = b->location};
    if (!open)
        return true;
    return sg_build_move_wide(b, &ret, true) && sg_build_append(b, &ret, NULL);
}

static CUresult decode(struct sg_build *b, uint32_t function) {
    struct sg_ptx_sink sink = {b,           on_declare, on_block, on_label, on_instruction,
                               on_location, on_listed};
    const struct sg_build_symbol from = b->symbol_of[function];
    if (!b->program->functions[function].defined)
        return CUDA_SUCCESS;
    sg_build_use(b, from.part);
    begin_function(b, function);
    CUresult result = sg_ptx_again_read(b->again, from.symbol, &sink);
    if (result != CUDA_SUCCESS)
        return b->no_memory ? CUDA_ERROR_OUT_OF_MEMORY : result;
    if (!final_return(b))
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct sg_program_function *one = &b->program->functions[function];
    one->instructions = (uint32_t)b->program->instruction_count - one->first_instruction;
    sg_build_lay_out_frame(b);
    return sg_build_resolve(b) && sg_build_flow(b) && sg_build_contract(b)
               ? CUDA_SUCCESS
               : CUDA_ERROR_OUT_OF_MEMORY;
}

static bool add_part(struct sg_build *b) {
    for (size_t i = 0; i < b->outline->symbol_count; i++) {
        const struct sg_ptx_symbol *symbol = &b->outline->symbols[i];
        uint32_t index;
        if (symbol->what == SG_SYMBOL_FUNCTION && symbol->start && !sg_build_function(b, i, &index))
            return false;
    }
    return true;
}

/* A call through a register may reach any function of the texts. */
static bool add_all(struct sg_build *b) {
    for (uint32_t i = 0; i < b->part_count; i++) {
        if (!b->parts[i].image)
            continue;
        sg_build_use(b, i);
        if (!add_part(b))
            return false;
    }
    return true;
}

static CUresult decode_all(struct sg_build *b) {
    CUresult result = CUDA_SUCCESS;
    bool all = false;
    for (size_t i = 0; result == CUDA_SUCCESS && i < b->program->function_count; i++) {
        result = decode(b, (uint32_t)i);
        if (result == CUDA_SUCCESS && !all && b->program->functions[i].indirect_calls) {
            all = true;
            result = add_all(b) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
        }
    }
    return result;
}

/* ---- the program ----------------------------------------------------------------------------- */

static bool keep_files_of_part(struct sg_build *b) {
    struct sg_program *program = b->program;
    for (size_t i = 0; i < b->outline->file_count; i++) {
        const struct sg_ptx_file *from = &b->outline->files[i];
        const char *name = sg_build_text(b, from->name, from->length);
        struct sg_program_file *grown =
            name ? sg_image_grow(program->files, &program->file_count, sizeof *grown) : NULL;
        if (!grown)
            return sg_build_no_memory(b);
        program->files = grown;
        grown[program->file_count - 1] =
            (struct sg_program_file){sg_build_file_number(b->part, from->number), name};
    }
    return true;
}

static bool keep_files(struct sg_build *b) {
    for (uint32_t i = 0; i < b->part_count; i++) {
        if (!b->parts[i].image)
            continue;
        sg_build_use(b, i);
        if (!keep_files_of_part(b))
            return false;
    }
    return true;
}

static void note_unsupported(struct sg_program *program) {
    for (size_t i = 0; i < program->instruction_count; i++) {
        if (program->instructions[i].unsupported) {
            program->unsupported = program->instructions[i].unsupported;
            program->unsupported_line = program->instructions[i].line;
            return;
        }
    }
}

static CUresult make(struct sg_build *b, const char *entry) {
    size_t symbol;
    uint32_t index;
    CUresult result = sg_build_parts_begin(b, entry, &symbol);
    if (result != CUDA_SUCCESS)
        return result;
    if (!sg_build_function(b, symbol, &index) || !keep_files(b))
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = decode_all(b);
    if (result != CUDA_SUCCESS)
        return result;
    sg_build_lay_out_thread(b);
    if (!sg_build_check_calls(b) || !sg_build_measure_calls(b) || !sg_build_lay_out_shared(b))
        return CUDA_ERROR_OUT_OF_MEMORY;
    b->program->name = b->program->functions[0].name;
    note_unsupported(b->program);
    return CUDA_SUCCESS;
}

/* Allocates even empty arrays where pointers into them are computed. */
static struct sg_program *begin(void) {
    struct sg_program *program = calloc(1, sizeof *program);
    if (!program)
        return NULL;
    program->registers = malloc(sizeof *program->registers);
    program->operands = malloc(sizeof *program->operands);
    program->parameters = malloc(sizeof *program->parameters);
    program->target_list = malloc(sizeof *program->target_list);
    if (program->registers && program->operands && program->parameters && program->target_list)
        return program;
    sg_program_free(program);
    return NULL;
}

static void end_build(struct sg_build *b) {
    sg_build_parts_end(b);
    free(b->symbol_of);
    free(b->declarations);
    free(b->registers);
    free(b->parents);
    free(b->areas);
    free(b->labels);
    free(b->references);
    free(b->wide);
    free(b->loaded);
    free(b->module_registers);
    sg_names_clear(&b->label_names);
}

CUresult sg_program_make(const struct sg_image *image, const char *entry, struct sg_image_log *log,
                         struct sg_program **program) {
    if (!image->ptx && !image->part_count)
        return CUDA_ERROR_INVALID_VALUE;
    struct sg_build b = {.image = image, .log = log};
    b.program = begin();
    fenv_t own;
    sg_float_modes_set(&own);
    CUresult result = b.program ? make(&b, entry) : CUDA_ERROR_OUT_OF_MEMORY;
    sg_float_modes_restore(&own);
    end_build(&b);
    if (result != CUDA_SUCCESS) {
        sg_program_free(b.program);
        return result;
    }
    *program = b.program;
    return CUDA_SUCCESS;
}

void sg_program_free(struct sg_program *program) {
    if (!program)
        return;
    for (size_t i = 0; i < program->text_count; i++)
        free(program->texts[i]);
    free(program->texts);
    free(program->functions);
    free(program->instructions);
    free(program->operands);
    free(program->registers);
    free(program->variables);
    free(program->parameters);
    free(program->blocks);
    free(program->successors);
    free(program->targets);
    free(program->target_list);
    free(program->locations);
    free(program->files);
    free(program);
}
