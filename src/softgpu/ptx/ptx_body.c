/* Bodies of functions: declarations, labels, directives; instructions are in ptx_instruction.c. */
#include "softgpu/ptx/ptx_sink.h"

#include <stdlib.h>
#include <string.h>

/* Scopes of the table of local names; blocks are numbered from NAMED_BLOCKS on. */
enum {
    NAMED_LABEL,
    NAMED_ACTIVE,
    NAMED_RANGE,
    NAMED_NUMBER, /* of declarations, for a sink: of active names, of ranges */
    NAMED_RANGE_NUMBER,
    NAMED_SYMBOL, /* of .global and .const variables: the symbol + 1, of a range the first one's */
    NAMED_BLOCKS
};

/* Values of active names and ranges: how many there are, then space, class and width. */
#define USE_BITS 16

static size_t packed(const struct sg_ptx_variable *variable) {
    const struct sg_ptx_type *type = &variable->type;
    size_t what = 0;
    if (variable->space == SG_SPACE_REG && variable->vector <= 1)
        what = (size_t)type->class << 8 | type->size;
    return (size_t)variable->space << 12 | what;
}

static struct sg_ptx_use unpacked(size_t value) {
    return (struct sg_ptx_use){
        .space = (enum sg_space)(value >> 12 & 15),
        .kind = {.class = (enum sg_ptx_class)(value >> 8 & 15), .width = value & 0xff}};
}

/* ---- local names ----------------------------------------------------------------------------- */

static size_t block(const struct sg_ptx *ptx) {
    return ptx->block_count ? ptx->blocks[ptx->block_count - 1].id : 0;
}

/* Sets a name's value until the block ends. */
static bool shadow(struct sg_ptx *ptx, size_t scope, const struct sg_word *name, size_t value) {
    size_t before;
    if (!sg_names_add(&ptx->locals, scope, name->text, name->length, 0, &before))
        return sg_ptx_no_memory(ptx);
    sg_names_slot(&ptx->locals, scope, name->text, name->length)->value = value;
    if (!ptx->block_count)
        return true;
    struct sg_ptx_shadow *grown = sg_image_grow(ptx->shadows, &ptx->shadow_count, sizeof *grown);
    if (!grown)
        return sg_ptx_no_memory(ptx);
    ptx->shadows = grown;
    grown[ptx->shadow_count - 1] = (struct sg_ptx_shadow){name->text, name->length, scope, before};
    return true;
}

static bool once_in_block(struct sg_ptx *ptx, const struct sg_word *name, size_t kind) {
    size_t found, scope = NAMED_BLOCKS + block(ptx);
    if (!sg_names_add(&ptx->locals, scope, name->text, name->length, kind, &found))
        return sg_ptx_no_memory(ptx);
    sg_names_slot(&ptx->locals, scope, name->text, name->length)->value = kind + 1;
    return found == kind || sg_ptx_wrong(ptx, "'%.*s' is declared twice in a block",
                                         name->length < 80 ? (int)name->length : 80, name->text);
}

/* Of a range, with what its alignment leaves between two; it fits: both factors have 32 bits. */
static uint64_t all_bytes(const struct sg_ptx_variable *variable) {
    uint64_t alignment = variable->alignment;
    uint64_t stride = (variable->size + alignment - 1) / alignment * alignment;
    if (!variable->ranged)
        return variable->size;
    return variable->range ? (variable->range - 1) * stride + variable->size : 0;
}

static void count_memory(struct sg_ptx *ptx, const struct sg_ptx_variable *variable) {
    struct sg_ptx_symbol *function = &ptx->symbols[ptx->body - 1];
    uint64_t alignment = variable->alignment;
    if (variable->space == SG_SPACE_SHARED && variable->linkage != SG_LINK_EXTERN) {
        function->shared = (function->shared + alignment - 1) / alignment * alignment;
        function->shared += all_bytes(variable);
        if (alignment > function->shared_alignment)
            function->shared_alignment = alignment;
    } else if (variable->space == SG_SPACE_LOCAL) {
        unsigned log = (unsigned)__builtin_ctzll(alignment);
        uint64_t *bytes = &function->local[log < 7 ? log : 7];
        *bytes = (*bytes + alignment - 1) / alignment * alignment + all_bytes(variable);
    }
}

/* From here on its name, or its range of names, stands for it. */
static bool activate(struct sg_ptx *ptx, const struct sg_ptx_variable *variable) {
    const uint64_t most = SIZE_MAX >> USE_BITS;
    uint64_t count = !variable->ranged ? 1 : variable->range < most ? variable->range : most;
    return shadow(ptx, variable->ranged ? NAMED_RANGE : NAMED_ACTIVE, &variable->name,
                  (size_t)count << USE_BITS | packed(variable));
}

static bool in_range(struct sg_ptx *ptx, const struct sg_word *name, struct sg_ptx_use *use);

/* Whether a range of this block has the name: %r2 of %r<4>. */
static bool is_of_block(struct sg_ptx *ptx, const struct sg_word *name) {
    struct sg_ptx_use use = {0};
    size_t length = name->length, kind = 0;
    if (!ptx->block_count || !in_range(ptx, name, &use))
        return false;
    while (length > 1 && name->text[length - 1] >= '0' && name->text[length - 1] <= '9')
        if (sg_names_find(&ptx->locals, NAMED_BLOCKS + block(ptx), name->text, --length, &kind) &&
            sg_names_find(&ptx->locals, NAMED_RANGE, name->text, length, &kind))
            return true;
    return false;
}

bool sg_ptx_declare_local(struct sg_ptx *ptx, const struct sg_ptx_variable *variable) {
    const struct sg_word *name = &variable->name;
    if (!variable->ranged && is_of_block(ptx, name))
        return sg_ptx_wrong(ptx, "'%.*s' is declared twice in a block",
                            name->length < 80 ? (int)name->length : 80, name->text);
    if (!once_in_block(ptx, name, 0))
        return false;
    if (ptx->block_count) {
        /* These sums cannot overflow: there are fewer declarations than bytes of text. */
        bool memory = variable->space == SG_SPACE_SHARED || variable->space == SG_SPACE_LOCAL;
        if (memory && all_bytes(variable) > UINT32_MAX)
            return sg_ptx_wrong(ptx, "the variable is too large");
        count_memory(ptx, variable);
    }
    size_t number = ptx->telling ? ++ptx->telling->declared : 0;
    if (number && !shadow(ptx, variable->ranged ? NAMED_RANGE_NUMBER : NAMED_NUMBER, name, number))
        return false;
    if (number && ptx->block_count && !sg_ptx_tell_declaration(ptx, variable, SG_ROLE_LOCAL, 0))
        return false;
    return activate(ptx, variable);
}

bool sg_ptx_declare_own(struct sg_ptx *ptx, const struct sg_ptx_variable *variable, size_t first) {
    return once_in_block(ptx, &variable->name, 0) &&
           shadow(ptx, NAMED_SYMBOL, &variable->name, first + 1) && activate(ptx, variable);
}

static bool tell_block(struct sg_ptx *ptx, bool opened) {
    if (!ptx->telling)
        return true;
    const struct sg_ptx_sink *sink = ptx->telling->sink;
    return sink->block(sink->user, opened) || sg_ptx_no_memory(ptx);
}

static bool open_block(struct sg_ptx *ptx) {
    struct sg_ptx_block *grown = sg_image_grow(ptx->blocks, &ptx->block_count, sizeof *grown);
    if (!grown)
        return sg_ptx_no_memory(ptx);
    ptx->blocks = grown;
    grown[ptx->block_count - 1] = (struct sg_ptx_block){ptx->block_ids++, ptx->shadow_count};
    return tell_block(ptx, true);
}

static bool close_block(struct sg_ptx *ptx) {
    const struct sg_ptx_block *ended = &ptx->blocks[--ptx->block_count];
    while (ptx->shadow_count > ended->first_shadow) {
        const struct sg_ptx_shadow *was = &ptx->shadows[--ptx->shadow_count];
        sg_names_slot(&ptx->locals, was->scope, was->name, was->length)->value = was->value;
    }
    return tell_block(ptx, false);
}

static bool of_module(const struct sg_ptx_use *use) {
    return use->space == SG_SPACE_GLOBAL || use->space == SG_SPACE_CONST;
}

/* What a name that the body declares stands for: `kind` is NAMED_ACTIVE or NAMED_RANGE. */
static struct sg_ptx_use declared(const struct sg_ptx *ptx, size_t kind, const char *name,
                                  size_t length, size_t value, uint64_t index) {
    struct sg_ptx_use use = unpacked(value);
    size_t number = kind == NAMED_RANGE ? NAMED_RANGE_NUMBER : NAMED_NUMBER, first = 0;
    use.index = index;
    if (of_module(&use) && sg_names_find(&ptx->locals, NAMED_SYMBOL, name, length, &first))
        use.symbol = first + (size_t)index;
    else if (ptx->telling)
        sg_names_find(&ptx->locals, number, name, length, &use.declaration);
    return use;
}

/* %r12 of %r<20>: any split of the digits at the end may be the declared one. */
static bool in_range(struct sg_ptx *ptx, const struct sg_word *name, struct sg_ptx_use *use) {
    uint64_t number = 0, weight = 1;
    size_t length = name->length;
    for (unsigned digits = 0; digits < 9 && length > 1; digits++) {
        char c = name->text[length - 1];
        size_t range = 0;
        if (c < '0' || c > '9')
            break;
        number += weight * (uint64_t)(c - '0');
        weight *= 10;
        length--;
        if (sg_names_find(&ptx->locals, NAMED_RANGE, name->text, length, &range) &&
            number < range >> USE_BITS) {
            *use = declared(ptx, NAMED_RANGE, name->text, length, range, number);
            return true;
        }
        const struct sg_ptx_symbol *symbol = sg_ptx_find(ptx, name->text, length);
        if (symbol && symbol->ranged && number < symbol->range) {
            bool reg = symbol->space == SG_SPACE_REG;
            use->space = symbol->space;
            use->index = reg ? number : 0;
            use->symbol = reg ? (size_t)(symbol - ptx->symbols) + 1
                              : symbol->first_element + (size_t)number + 1;
            return true;
        }
    }
    return false;
}

bool sg_ptx_uses(struct sg_ptx *ptx, size_t symbol) {
    if (ptx->symbols[symbol].last_user == ptx->body)
        return true;
    ptx->symbols[symbol].last_user = ptx->body;
    ptx->symbols[symbol].referenced = true;
    size_t *grown = sg_image_grow(ptx->uses, &ptx->use_count, sizeof *grown);
    if (!grown)
        return sg_ptx_no_memory(ptx);
    ptx->uses = grown;
    grown[ptx->use_count - 1] = symbol;
    return true;
}

bool sg_ptx_name_use(struct sg_ptx *ptx, const struct sg_word *name, struct sg_ptx_use *use) {
    size_t value = 0;
    *use = (struct sg_ptx_use){0};
    if (sg_names_find(&ptx->locals, NAMED_ACTIVE, name->text, name->length, &value) && value) {
        *use = declared(ptx, NAMED_ACTIVE, name->text, name->length, value, 0);
        return !use->symbol || sg_ptx_uses(ptx, use->symbol - 1);
    }
    if (in_range(ptx, name, use))
        return !use->symbol || sg_ptx_uses(ptx, use->symbol - 1);
    if (sg_ptx_special_register(name->text, name->length))
        return sg_ptx_since_register(ptx, name->text, name->length);
    if (sg_names_find(&ptx->locals, NAMED_LABEL, name->text, name->length, &value))
        return true;
    const struct sg_ptx_symbol *symbol = sg_ptx_find(ptx, name->text, name->length);
    if (symbol && !symbol->ranged) {
        use->symbol = (size_t)(symbol - ptx->symbols) + 1;
        use->space = symbol->what == SG_SYMBOL_VARIABLE ? symbol->space : SG_SPACE_NONE;
        return sg_ptx_uses(ptx, use->symbol - 1);
    }
    struct sg_ptx_reference *grown =
        sg_image_grow(ptx->pending, &ptx->pending_count, sizeof *grown);
    if (!grown)
        return sg_ptx_no_memory(ptx);
    ptx->pending = grown;
    grown[ptx->pending_count - 1] = (struct sg_ptx_reference){name->text, name->length, name->line};
    return true;
}

/* A name that was not declared before its use must be a label. */
static bool settle_names(struct sg_ptx *ptx) {
    for (size_t i = 0; i < ptx->pending_count; i++) {
        const struct sg_ptx_reference *name = &ptx->pending[i];
        size_t value;
        if (!sg_names_find(&ptx->locals, NAMED_LABEL, name->name, name->length, &value)) {
            ptx->word.line = name->line;
            return sg_ptx_wrong(ptx, "'%.*s' was not declared",
                                name->length < 80 ? (int)name->length : 80, name->name);
        }
    }
    ptx->pending_count = 0;
    return true;
}

/* ---- instructions ---------------------------------------------------------------------------- */

static bool label(struct sg_ptx *ptx, const struct sg_word *name) {
    size_t found;
    if (!once_in_block(ptx, name, 0))
        return false;
    if (!sg_names_add(&ptx->locals, NAMED_LABEL, name->text, name->length, 1, &found))
        return sg_ptx_no_memory(ptx);
    if (ptx->telling) {
        const struct sg_ptx_sink *sink = ptx->telling->sink;
        const struct sg_ptx_name told = {.text = name->text, .length = name->length};
        if (!sink->label(sink->user, &told))
            return sg_ptx_no_memory(ptx);
    }
    return sg_ptx_next(ptx);
}

static bool predicate(struct sg_ptx *ptx) {
    if (!sg_ptx_next(ptx))
        return false;
    bool negated = sg_ptx_is(ptx, "!");
    if (negated && !sg_ptx_next(ptx))
        return false;
    if (ptx->word.kind != SG_WORD_NAME)
        return sg_ptx_unexpected(ptx, "a predicate");
    struct sg_ptx_use use;
    if (!sg_ptx_name_use(ptx, &ptx->word, &use))
        return false;
    if (use.space != SG_SPACE_REG)
        return sg_ptx_unexpected(ptx, "a predicate");
    if (ptx->telling) {
        ptx->telling->statement.guarded = true;
        ptx->telling->statement.guard_negated = negated;
        ptx->telling->statement.guard = sg_ptx_name_of(&ptx->word, &use);
    }
    if (!sg_ptx_next(ptx))
        return false;
    if (!sg_ptx_agrees(use.kind, (struct sg_ptx_kind){SG_CLASS_PREDICATE, 1}, false))
        return sg_ptx_wrong(ptx, "the register is no predicate");
    if (ptx->word.kind != SG_WORD_NAME)
        return sg_ptx_unexpected(ptx, "an instruction");
    struct sg_word name = ptx->word;
    return sg_ptx_next(ptx) && sg_ptx_instruction(ptx, &name);
}

/* ---- directives ------------------------------------------------------------------------------ */

/* .loc_intermediate 1 2 3: a place in what a compiler made on the way */
static bool intermediate(struct sg_ptx *ptx) {
    uint64_t number;
    return sg_ptx_since_directive(ptx, ".loc_intermediate") && sg_ptx_next(ptx) &&
           sg_ptx_integer(ptx, &number) && sg_ptx_integer(ptx, &number) &&
           sg_ptx_integer(ptx, &number);
}

/* .loc 1 2 3 [, function_name NAME [+ n]] [, inlined_at 1 2 3] */
static bool location(struct sg_ptx *ptx) {
    uint64_t number, at[3], from[3] = {0};
    bool is_inlined = false;
    if (!sg_ptx_next(ptx))
        return false;
    for (unsigned i = 0; i < 3; i++) {
        if (!sg_ptx_integer(ptx, &at[i]))
            return false;
    }
    while (sg_ptx_accept(ptx, ",")) {
        bool inlined = sg_ptx_is(ptx, "inlined_at");
        if (!inlined && !sg_ptx_is(ptx, "function_name"))
            return sg_ptx_unexpected(ptx, "function_name or inlined_at");
        if (!sg_ptx_next(ptx))
            return false;
        if (inlined) {
            is_inlined = true;
            for (unsigned i = 0; i < 3; i++)
                if (!sg_ptx_integer(ptx, &from[i]))
                    return false;
        } else if (ptx->word.kind != SG_WORD_NAME || !sg_ptx_next(ptx) ||
                   (sg_ptx_accept(ptx, "+") && !sg_ptx_integer(ptx, &number))) {
            return sg_ptx_unexpected(ptx, "a place in a section");
        }
    }
    if (ptx->result != CUDA_SUCCESS || !ptx->telling)
        return ptx->result == CUDA_SUCCESS;
    const struct sg_ptx_sink *sink = ptx->telling->sink;
    const struct sg_ptx_loc told = {at[0], at[1], at[2], is_inlined, from[0], from[1], from[2]};
    return sink->location(sink->user, &told) || sg_ptx_no_memory(ptx);
}

static bool tell_listed(struct sg_ptx *ptx, enum sg_ptx_list list, const struct sg_ptx_use *use) {
    if (!ptx->telling)
        return true;
    const struct sg_ptx_sink *sink = ptx->telling->sink;
    const struct sg_ptx_name name = use ? sg_ptx_name_of(&ptx->word, use) : (struct sg_ptx_name){0};
    return sink->listed(sink->user, list, use ? &name : NULL) || sg_ptx_no_memory(ptx);
}

/* Lists of names and texts that end with a semicolon: .pragma, .branchtargets, .calltargets. */
static bool listed(struct sg_ptx *ptx, bool names) {
    enum sg_ptx_list list = sg_ptx_is(ptx, ".branchtargets") ? SG_LIST_BRANCHES : SG_LIST_CALLS;
    if (names && !tell_listed(ptx, list, NULL))
        return false;
    do {
        if (!sg_ptx_next(ptx))
            return false;
        if (ptx->word.kind != (names ? SG_WORD_NAME : SG_WORD_STRING))
            return sg_ptx_unexpected(ptx, names ? "a name" : "a text in quotes");
        struct sg_ptx_use use;
        if (names && (!sg_ptx_name_use(ptx, &ptx->word, &use) || !tell_listed(ptx, list, &use)))
            return false;
        if (!sg_ptx_next(ptx))
            return false;
    } while (sg_ptx_is(ptx, ","));
    return sg_ptx_expect(ptx, ";");
}

/* .callprototype: the names of its parameters have no meaning. */
static bool prototype(struct sg_ptx *ptx) {
    if (!tell_listed(ptx, SG_LIST_PROTOTYPE, NULL))
        return false;
    while (!sg_ptx_is(ptx, ";")) {
        if (ptx->word.kind == SG_WORD_END || sg_ptx_is(ptx, "{") || sg_ptx_is(ptx, "}"))
            return sg_ptx_unexpected(ptx, ";");
        if ((sg_ptx_is(ptx, ".abi_preserve") && !sg_ptx_since_directive(ptx, ".abi_preserve")) ||
            (sg_ptx_is(ptx, ".abi_preserve_control") &&
             !sg_ptx_since_directive(ptx, ".abi_preserve_control")) ||
            !sg_ptx_next(ptx))
            return false;
    }
    return sg_ptx_next(ptx);
}

static bool directive(struct sg_ptx *ptx) {
    if (sg_ptx_is(ptx, ".loc"))
        return location(ptx);
    if (sg_ptx_is(ptx, ".loc_intermediate"))
        return intermediate(ptx);
    if (sg_ptx_is(ptx, ".pragma"))
        return listed(ptx, false);
    if (sg_ptx_is(ptx, ".branchtargets"))
        return sg_ptx_since_directive(ptx, ".branchtargets") && listed(ptx, true);
    if (sg_ptx_is(ptx, ".calltargets"))
        return sg_ptx_since_directive(ptx, ".calltargets") && listed(ptx, true);
    if (sg_ptx_is(ptx, ".callprototype"))
        return sg_ptx_since_directive(ptx, ".callprototype") && prototype(ptx);
    enum sg_linkage linkage = SG_LINK_OWN;
    if (sg_ptx_is(ptx, ".extern")) {
        linkage = SG_LINK_EXTERN;
        if (!sg_ptx_next(ptx))
            return false;
    }
    if (sg_ptx_space(&ptx->word) != SG_SPACE_NONE)
        return sg_ptx_variables(ptx, linkage);
    return sg_ptx_unexpected(ptx, "an instruction or a declaration");
}

static bool statement(struct sg_ptx *ptx) {
    if (ptx->word.kind == SG_WORD_DOTTED)
        return directive(ptx);
    if (sg_ptx_is(ptx, "@"))
        return predicate(ptx);
    if (ptx->word.kind != SG_WORD_NAME)
        return sg_ptx_unexpected(ptx, "an instruction");
    struct sg_word name = ptx->word;
    if (!sg_ptx_next(ptx))
        return false;
    return sg_ptx_is(ptx, ":") ? label(ptx, &name) : sg_ptx_instruction(ptx, &name);
}

bool sg_ptx_body(struct sg_ptx *ptx) {
    if (!open_block(ptx))
        return false;
    while (ptx->block_count) {
        bool good;
        if (sg_ptx_is(ptx, "{")) {
            good = open_block(ptx) && sg_ptx_next(ptx);
        } else if (sg_ptx_is(ptx, "}")) {
            good = close_block(ptx) && sg_ptx_next(ptx);
        } else {
            good = statement(ptx);
        }
        if (!good)
            return false;
    }
    return settle_names(ptx);
}
