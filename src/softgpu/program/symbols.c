/* Functions, variables and registers: what names stand for, and where their bytes are. */
#include "softgpu/program/build.h"

#include <stdlib.h>
#include <string.h>

/* ---- functions ------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    enum sg_runtime runtime;
} runtime[] = {
    {"vprintf", SG_RUNTIME_VPRINTF},
    {"malloc", SG_RUNTIME_MALLOC},
    {"__cuda_syscall_aligned_malloc", SG_RUNTIME_ALIGNED_MALLOC},
    {"free", SG_RUNTIME_FREE},
    {"__assertfail", SG_RUNTIME_ASSERTFAIL},
    {"memcpy", SG_RUNTIME_MEMCPY},
    {"memset", SG_RUNTIME_MEMSET},
    {"cudaGraphSetConditional", SG_RUNTIME_GRAPH_SET_CONDITIONAL},
};

static unsigned char runtime_of(const struct sg_ptx_symbol *symbol) {
    for (size_t i = 0; i < sizeof runtime / sizeof runtime[0]; i++) {
        if (strlen(runtime[i].name) == symbol->length &&
            memcmp(runtime[i].name, symbol->name, symbol->length) == 0)
            return (unsigned char)runtime[i].runtime;
    }
    size_t skip = symbol->length > 2 && memcmp(symbol->name, "__", 2) == 0 ? 2 : 0;
    const char *name = symbol->name + skip;
    return symbol->length - skip > 4 && memcmp(name, "cuda", 4) == 0 ? SG_RUNTIME_OTHER
                                                                     : SG_RUNTIME_NONE;
}

/* `symbol` is the current text's. */
static bool function_here(struct sg_build *b, size_t symbol, uint32_t *index) {
    symbol = sg_build_alias(b, symbol);
    if (b->function_of[symbol]) {
        *index = b->function_of[symbol] - 1;
        return true;
    }
    struct sg_program *program = b->program;
    const struct sg_ptx_symbol *from = &b->outline->symbols[symbol];
    size_t count = program->function_count;
    struct sg_build_symbol *symbols = sg_image_grow(b->symbol_of, &count, sizeof *symbols);
    if (!symbols)
        return sg_build_no_memory(b);
    b->symbol_of = symbols;
    symbols[count - 1] = (struct sg_build_symbol){b->part, symbol};
    struct sg_program_function *grown =
        sg_image_grow(program->functions, &program->function_count, sizeof *grown);
    if (!grown)
        return sg_build_no_memory(b);
    program->functions = grown;
    *index = (uint32_t)count - 1;
    b->function_of[symbol] = (uint32_t)count;
    grown += *index;
    grown->name = sg_build_text(b, from->name, from->length);
    grown->entry = from->what == SG_SYMBOL_ENTRY;
    grown->variadic = from->variadic;
    grown->runtime = from->start ? SG_RUNTIME_NONE : runtime_of(from);
    grown->ordinal = sg_build_ordinal(b->part, symbol);
    grown->defined = from->start != NULL;
    grown->frame_alignment = 16;
    return grown->name != NULL;
}

bool sg_build_function(struct sg_build *b, size_t symbol, uint32_t *index) {
    uint32_t here = b->part, part;
    size_t there;
    sg_build_definer(b, symbol, &part, &there);
    sg_build_use(b, part);
    bool made = function_here(b, there, index);
    sg_build_use(b, here);
    return made;
}

/* ---- variables ------------------------------------------------------------------------------- */

static struct sg_program_variable *add_variable(struct sg_build *b, const char *name, size_t length,
                                                uint32_t *index) {
    struct sg_program *program = b->program;
    const char *copy = sg_build_text(b, name, length);
    struct sg_program_variable *grown =
        copy ? sg_image_grow(program->variables, &program->variable_count, sizeof *grown) : NULL;
    if (!grown) {
        sg_build_no_memory(b);
        return NULL;
    }
    program->variables = grown;
    *index = (uint32_t)program->variable_count - 1;
    grown[*index].name = copy;
    grown[*index].image = UINT32_MAX;
    return &grown[*index];
}

static unsigned char type_of(const struct sg_ptx_type *type) {
    return type->name ? (unsigned char)sg_type_of_word(type->name + 1, strlen(type->name) - 1)
                      : SG_TYPE_NONE;
}

/* Several texts may each have a variable of their own with the same name. */
static uint32_t image_index(const struct sg_build *b, size_t number) {
    const struct sg_image *image = b->image;
    const struct sg_ptx_symbol *symbol = &b->outline->symbols[number];
    bool own = symbol->linkage == SG_LINK_OWN;
    for (size_t i = 0; i < image->variable_count; i++) {
        size_t at = (symbol->index + i) % image->variable_count; /* the outline's own is first */
        const struct sg_image_variable *one = &image->variables[at];
        if (sg_ptx_symbol_is(symbol, number, one->name) &&
            (b->part_count == 1 || (own ? one->part == b->part : one->visible)))
            return (uint32_t)at;
    }
    return UINT32_MAX;
}

/* An external array whose size is said is allocated like any other, if no linker looks for it:
 * ptxas 13.0 counts it among what is static. */
static bool is_dynamic(const struct sg_build *b, const struct sg_ptx_symbol *symbol) {
    return !symbol->defined && (symbol->size == 0 || b->part_count > 1);
}

static bool variable_here(struct sg_build *b, size_t symbol, uint32_t *index) {
    const struct sg_ptx_symbol *from = &b->outline->symbols[symbol];
    if (b->variable_of[symbol]) {
        *index = b->variable_of[symbol] - 1;
        return true;
    }
    struct sg_program_variable *made = add_variable(b, from->name, from->length, index);
    if (!made)
        return false;
    b->variable_of[symbol] = *index + 1;
    made->type = type_of(&from->type);
    made->size = from->size;
    made->alignment = from->alignment ? from->alignment : 1;
    made->function = UINT32_MAX;
    made->order = sg_build_ordinal(b->part, symbol);
    if (from->what == SG_SYMBOL_OPAQUE || from->space == SG_SPACE_TEX) {
        made->place = SG_PLACE_TEXTURE;
        made->sampler = from->type.opaque == SG_OPAQUE_SAMPLER;
        made->settings = made->sampler ? from->type.sampler : 0;
    } else if (from->space == SG_SPACE_LOCAL) {
        made->place = SG_PLACE_THREAD;
        made->space = SG_IN_LOCAL;
    } else if (from->space == SG_SPACE_SHARED) {
        made->place = is_dynamic(b, from) ? SG_PLACE_DYNAMIC_SHARED : SG_PLACE_SHARED;
        made->space = SG_IN_SHARED;
    } else {
        made->place = SG_PLACE_IMAGE;
        made->space = from->space == SG_SPACE_CONST ? SG_IN_CONST : SG_IN_GLOBAL;
        made->image = image_index(b, symbol);
    }
    return true;
}

bool sg_build_variable(struct sg_build *b, size_t symbol, uint32_t *index) {
    uint32_t here = b->part, part;
    size_t there;
    sg_build_definer(b, symbol, &part, &there);
    sg_build_use(b, part);
    bool made = variable_here(b, there, index);
    sg_build_use(b, here);
    return made;
}

/* ---- what a function declares ---------------------------------------------------------------- */

/* Parameters of calls reuse the room of those of blocks that have ended. */
static void place_in_area(struct sg_build *b, struct sg_program_variable *variable) {
    b->area_end = (b->area_end + variable->alignment - 1) & ~(variable->alignment - 1);
    variable->offset = b->area_end;
    b->area_end += variable->size;
    if (b->area_end > b->area_most)
        b->area_most = b->area_end;
    if (variable->alignment > b->area_alignment)
        b->area_alignment = variable->alignment;
}

/* `element`: which one of a range. */
static bool local_variable(struct sg_build *b, const struct sg_ptx_declaration *from,
                           uint64_t element, uint32_t *index) {
    const struct sg_ptx_variable *variable = from->variable;
    struct sg_program_variable *made =
        add_variable(b, variable->name.text, variable->name.length, index);
    if (!made)
        return false;
    if (variable->ranged) {
        const char *name = sg_build_format(
            b, "%.*s%u", variable->name.length < 500 ? (int)variable->name.length : 500,
            variable->name.text, (unsigned)element);
        if (!name)
            return false;
        made->name = name;
    }
    made->type = type_of(&variable->type);
    made->size = variable->size;
    made->alignment = variable->alignment ? variable->alignment : 1;
    made->function = b->function;
    made->order = b->program->functions[b->function].ordinal;
    bool entry = b->program->functions[b->function].entry;
    switch (variable->space) {
    case SG_SPACE_SHARED:
        made->space = SG_IN_SHARED;
        made->place =
            variable->linkage == SG_LINK_EXTERN ? SG_PLACE_DYNAMIC_SHARED : SG_PLACE_SHARED;
        break;
    case SG_SPACE_PARAM:
        made->space = SG_IN_PARAM_FRAME;
        made->place = SG_PLACE_FRAME;
        if (from->role == SG_ROLE_LOCAL) {
            made->of_call = true;
            place_in_area(b, made);
        } else if (entry) {
            made->space = SG_IN_PARAM;
            made->place = SG_PLACE_PARAMETERS;
            made->offset = from->offset;
        }
        break;
    case SG_SPACE_LOCAL:
        made->space = SG_IN_LOCAL;
        made->place = SG_PLACE_FRAME;
        break;
    default: /* .global and .const are the module's, though their names are the body's */
        break;
    }
    return true;
}

/* A range has a variable for each of its names, one after the other; none is no variable at all. */
static bool local_variables(struct sg_build *b, const struct sg_ptx_declaration *from,
                            uint32_t *first) {
    const struct sg_ptx_variable *variable = from->variable;
    if (!variable->ranged)
        return local_variable(b, from, 0, first);
    for (uint64_t i = 0; i < variable->range; i++) {
        uint32_t index;
        if (!local_variable(b, from, i, &index))
            return false;
        if (i == 0)
            *first = index;
    }
    return true;
}

static bool add_parameter(struct sg_build *b, const struct sg_ptx_declaration *from,
                          uint32_t variable) {
    struct sg_program *program = b->program;
    struct sg_program_function *function = &program->functions[b->function];
    struct sg_program_parameter *grown =
        sg_image_grow(program->parameters, &program->parameter_count, sizeof *grown);
    if (!grown)
        return sg_build_no_memory(b);
    program->parameters = grown;
    grown += program->parameter_count - 1;
    *grown = (struct sg_program_parameter){.variable = variable, .reg = SG_NO_REGISTER, .count = 1};
    /* Results come first, so results and parameters are contiguous. */
    if (from->role == SG_ROLE_RESULT) {
        if (function->results++ == 0)
            function->first_result = (uint32_t)program->parameter_count - 1;
    } else if (function->parameters++ == 0) {
        function->first_parameter = (uint32_t)program->parameter_count - 1;
    }
    if (variable != SG_NO_VARIABLE || !from->number)
        return true;
    const struct sg_ptx_name name = {.text = from->variable->name.text,
                                     .length = from->variable->name.length,
                                     .declaration = from->number};
    unsigned vector = from->variable->vector ? from->variable->vector : 1;
    size_t index = program->parameter_count - 1;
    for (unsigned i = 0; i < vector; i++) {
        uint32_t number = 0;
        if (!sg_build_register(b, &name, i, &number))
            return false;
        if (i == 0)
            program->parameters[index].reg = number;
    }
    program->parameters[index].count = vector;
    return true;
}

bool sg_build_module_register(struct sg_build *b, size_t symbol, uint64_t index,
                              uint32_t *variable) {
    const struct sg_ptx_symbol *from = &b->outline->symbols[symbol];
    for (size_t i = 0; i < b->module_register_count; i++) {
        const struct sg_build_module_register *one = &b->module_registers[i];
        *variable = one->variable;
        if (one->part == b->part && one->symbol == symbol && one->index == index)
            return true;
    }
    struct sg_program_variable *made = add_variable(b, from->name, from->length, variable);
    struct sg_build_module_register *grown =
        made ? sg_image_grow(b->module_registers, &b->module_register_count, sizeof *grown) : NULL;
    if (!grown)
        return sg_build_no_memory(b);
    b->module_registers = grown;
    grown[b->module_register_count - 1] = (struct sg_build_module_register){
        .part = b->part, .variable = *variable, .symbol = symbol, .index = index};
    made->type = type_of(&from->type);
    made->size = made->alignment = from->type.predicate ? 4 : from->type.size;
    made->place = SG_PLACE_THREAD;
    made->space = SG_IN_LOCAL;
    made->function = UINT32_MAX;
    return true;
}

bool sg_build_hidden(struct sg_build *b, uint64_t size, bool of_call, uint32_t *index) {
    struct sg_program_variable *made = add_variable(b, "wide", 4, index);
    if (!made)
        return false;
    made->type = SG_TYPE_B8;
    made->size = size;
    made->alignment = size & (0 - size);
    made->function = b->function;
    made->order = b->program->functions[b->function].ordinal;
    made->space = SG_IN_PARAM_FRAME;
    made->place = SG_PLACE_FRAME;
    made->of_call = of_call;
    if (of_call)
        place_in_area(b, made);
    return true;
}

/* A parameter or result in registers that one of 64 bits does not hold. */
static bool is_wide(const struct sg_ptx_declaration *from) {
    const struct sg_ptx_variable *variable = from->variable;
    return from->role != SG_ROLE_LOCAL && variable->space == SG_SPACE_REG &&
           (variable->vector > 1 || variable->type.size > 8);
}

bool sg_build_declare(struct sg_build *b, const struct sg_ptx_declaration *from) {
    const struct sg_ptx_variable *variable = from->variable;
    uint32_t index = SG_NO_VARIABLE;
    if (variable->space != SG_SPACE_REG && !local_variables(b, from, &index))
        return false;
    if (from->number) {
        struct sg_build_declaration *grown =
            sg_image_grow(b->declarations, &b->declaration_count, sizeof *grown);
        if (!grown)
            return sg_build_no_memory(b);
        b->declarations = grown;
        unsigned vector = variable->vector ? variable->vector : 1;
        grown[b->declaration_count - 1] =
            (struct sg_build_declaration){.space = variable->space,
                                          .type = type_of(&variable->type),
                                          .vector = (unsigned char)vector,
                                          .element = variable->type.size * vector,
                                          .ranged = variable->ranged,
                                          .variable = index};
    }
    if (is_wide(from) &&
        (!sg_build_hidden(b,
                          (uint64_t)variable->type.size * (variable->vector ? variable->vector : 1),
                          false, &index) ||
         !sg_build_keep_wide(b, from, index)))
        return false;
    return from->role == SG_ROLE_LOCAL || add_parameter(b, from, index);
}

/* ---- registers ------------------------------------------------------------------------------- */

static struct sg_register_slot *slot_of(const struct sg_build *b, uint64_t key) {
    size_t at = (size_t)(key * 0x9e3779b97f4a7c15u >> 20) & (b->register_room - 1);
    while (b->registers[at].key && b->registers[at].key != key)
        at = (at + 1) & (b->register_room - 1);
    return &b->registers[at];
}

static bool register_room(struct sg_build *b, size_t used) {
    if (2 * (used + 1) < b->register_room)
        return true;
    const struct sg_register_slot *old = b->registers;
    size_t room = b->register_room;
    struct sg_register_slot *next = calloc(room ? 2 * room : 64, sizeof *next);
    if (!next)
        return sg_build_no_memory(b);
    b->registers = next;
    b->register_room = room ? 2 * room : 64;
    for (size_t i = 0; i < room; i++) {
        if (old[i].key)
            *slot_of(b, old[i].key) = old[i];
    }
    free((void *)(uintptr_t)old);
    return true;
}

bool sg_build_register(struct sg_build *b, const struct sg_ptx_name *name, unsigned element,
                       uint32_t *number) {
    struct sg_program *program = b->program;
    struct sg_program_function *function = &program->functions[b->function];
    const struct sg_build_declaration *declared = &b->declarations[name->declaration - 1];
    uint64_t key = (uint64_t)name->declaration << 33 | name->index << 3 | element;
    if (!register_room(b, function->registers))
        return false;
    struct sg_register_slot *slot = slot_of(b, key);
    if (!slot->key) {
        struct sg_register *grown =
            sg_image_grow(program->registers, &program->register_count, sizeof *grown);
        if (!grown)
            return sg_build_no_memory(b);
        program->registers = grown;
        grown += program->register_count - 1;
        grown->type = declared->type;
        grown->name = declared->vector > 1
                          ? sg_build_format(b, "%.*s.%c", (int)name->length, name->text,
                                            element < 4 ? "xyzw"[element] : '?')
                          : sg_build_text(b, name->text, name->length);
        if (!grown->name)
            return false;
        *slot = (struct sg_register_slot){key, function->registers++};
    }
    *number = slot->number;
    return true;
}

/* ---- places ---------------------------------------------------------------------------------- */

/* Gives variables from `first` on their offsets, the strictest alignment first, and returns the
 * end. */
static uint64_t lay_out(struct sg_program *program, enum sg_variable_place place, size_t first,
                        uint64_t *alignment) {
    uint64_t end = 0;
    for (unsigned log = 31; log-- > 0;) {
        for (size_t i = first; i < program->variable_count; i++) {
            struct sg_program_variable *one = &program->variables[i];
            if (one->place != place || one->alignment != (uint64_t)1 << log || one->of_call)
                continue;
            end = (end + one->alignment - 1) & ~(one->alignment - 1);
            one->offset = end;
            end += one->size;
            if (one->alignment > *alignment)
                *alignment = one->alignment;
        }
    }
    return end;
}

static uint64_t rounded(uint64_t bytes, uint64_t alignment) {
    return (bytes + alignment - 1) & ~(alignment - 1);
}

void sg_build_lay_out_frame(struct sg_build *b) {
    struct sg_program *program = b->program;
    struct sg_program_function *function = &program->functions[b->function];
    uint64_t alignment = b->area_alignment > 16 ? b->area_alignment : 16;
    uint64_t end = lay_out(program, SG_PLACE_FRAME, b->first_variable, &alignment);
    uint64_t area = rounded(end, b->area_alignment ? b->area_alignment : 1);
    for (size_t i = b->first_variable; i < program->variable_count; i++) {
        if (program->variables[i].of_call)
            program->variables[i].offset += area;
    }
    function->frame_alignment = alignment;
    function->frame = rounded(area + b->area_most, alignment);
}

void sg_build_lay_out_thread(struct sg_build *b) {
    struct sg_program *program = b->program;
    struct sg_program_function *entry = &program->functions[0];
    uint64_t alignment = entry->frame_alignment, end = 0;
    end = lay_out(program, SG_PLACE_THREAD, 0, &alignment);
    uint64_t first = rounded(entry->frame, alignment);
    for (size_t i = 0; i < program->variable_count; i++)
        if (program->variables[i].place == SG_PLACE_THREAD)
            program->variables[i].offset += first;
    if (end)
        entry->frame = rounded(first + end, alignment);
    entry->frame_alignment = alignment;
}

/* As ptxas 13.0 has them: the entry's, the module's, then other functions', each in the order of
 * the text. */
static unsigned kind_of(const struct sg_program_variable *one) {
    return one->function == 0 ? 0 : one->function == UINT32_MAX ? 1 : 2;
}

static int in_order(const void *left, const void *right) {
    const struct sg_program_variable *a = *(struct sg_program_variable *const *)left;
    const struct sg_program_variable *b = *(struct sg_program_variable *const *)right;
    unsigned first = kind_of(a), second = kind_of(b);
    if (first != second)
        return first < second ? -1 : 1;
    if (a->order != b->order)
        return a->order < b->order ? -1 : 1;
    return a < b ? -1 : a > b; /* of one function: in the order of the text, too */
}

static bool lay_out_static(struct sg_build *b) {
    struct sg_program *program = b->program;
    struct sg_program_variable **all = calloc(program->variable_count + 1, sizeof(void *));
    size_t count = 0;
    if (!all)
        return sg_build_no_memory(b);
    for (size_t i = 0; i < program->variable_count; i++)
        if (program->variables[i].place == SG_PLACE_SHARED)
            all[count++] = &program->variables[i];
    qsort(all, count, sizeof(void *), in_order);
    uint64_t end = 0;
    for (size_t i = 0; i < count; i++) {
        all[i]->offset = rounded(end, all[i]->alignment);
        end = all[i]->offset + all[i]->size;
    }
    if (b->part_count == 1)
        end = rounded(end, sg_ptx_shared_unit(b->outline->symbols, b->outline->symbol_count));
    program->static_shared = end;
    free(all);
    return true;
}

bool sg_build_lay_out_shared(struct sg_build *b) {
    struct sg_program *program = b->program;
    uint64_t dynamic = 16;
    if (!lay_out_static(b))
        return false;
    for (size_t i = 0; i < program->variable_count; i++) {
        const struct sg_program_variable *one = &program->variables[i];
        if (one->place == SG_PLACE_DYNAMIC_SHARED && one->alignment > dynamic)
            dynamic = one->alignment;
    }
    program->dynamic_shared_alignment = dynamic;
    program->dynamic_shared_offset = rounded(program->static_shared, dynamic);
    for (size_t i = 0; i < program->variable_count; i++) {
        if (program->variables[i].place == SG_PLACE_DYNAMIC_SHARED)
            program->variables[i].offset = program->dynamic_shared_offset;
    }
    return true;
}
