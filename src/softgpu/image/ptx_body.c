/*
 * Bodies of functions: declarations, labels, instructions. Of an instruction are checked: the
 * opcode, how many operands it has, brackets, and that each name was declared. Types of operands
 * are not.
 */
#include "softgpu/image/ptx.h"

#include <stdlib.h>
#include <string.h>

/* Scopes of the table of local names; blocks are numbered from NAMED_BLOCKS on. */
enum { NAMED_LABEL, NAMED_ACTIVE, NAMED_RANGE, NAMED_BLOCKS };

#define BRACKETS 32 /* how deep the brackets of one instruction may be */

/* Values of active names and ranges: how many there are, and the width of a register in bytes. */
#define WIDTH_BITS  8
#define WIDTH_OF(n) ((n)&0xff)
#define PREDICATE   0xff
#define NO_REGISTER 0

/* ---- local names
 * -------------------------------------------------------------------------------------- */

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

static void count_memory(struct sg_ptx *ptx, const struct sg_ptx_variable *variable) {
    struct sg_ptx_symbol *function = &ptx->symbols[ptx->body - 1];
    uint64_t alignment = variable->alignment;
    if (variable->space == SG_SPACE_SHARED && variable->linkage != SG_LINK_EXTERN) {
        function->shared = (function->shared + alignment - 1) / alignment * alignment;
        function->shared += variable->size;
        if (alignment > function->shared_alignment)
            function->shared_alignment = alignment;
    } else if (variable->space == SG_SPACE_LOCAL) {
        unsigned log = (unsigned)__builtin_ctzll(alignment);
        uint64_t *bytes = &function->local[log < 7 ? log : 7];
        *bytes = (*bytes + alignment - 1) / alignment * alignment + variable->size;
    }
}

bool sg_ptx_declare_local(struct sg_ptx *ptx, const struct sg_ptx_variable *variable) {
    const struct sg_word *name = &variable->name;
    if (!once_in_block(ptx, name, 0))
        return false;
    if (ptx->block_count) {
        /* No sum of so many can overflow: there are fewer declarations than bytes of text. */
        bool memory = variable->space == SG_SPACE_SHARED || variable->space == SG_SPACE_LOCAL;
        if (memory && variable->size > UINT32_MAX)
            return sg_ptx_wrong(ptx, "the variable is too large");
        count_memory(ptx, variable);
    }
    size_t width = variable->space != SG_SPACE_REG || variable->vector > 1 ? NO_REGISTER
                   : variable->type.predicate                              ? PREDICATE
                                                                           : variable->type.size;
    const uint64_t most = SIZE_MAX >> WIDTH_BITS;
    uint64_t count = !variable->ranged ? 1 : variable->range < most ? variable->range : most;
    return shadow(ptx, variable->ranged ? NAMED_RANGE : NAMED_ACTIVE, name,
                  (size_t)count << WIDTH_BITS | width);
}

static bool open_block(struct sg_ptx *ptx) {
    struct sg_ptx_block *grown = sg_image_grow(ptx->blocks, &ptx->block_count, sizeof *grown);
    if (!grown)
        return sg_ptx_no_memory(ptx);
    ptx->blocks = grown;
    grown[ptx->block_count - 1] = (struct sg_ptx_block){ptx->block_ids++, ptx->shadow_count};
    return true;
}

static void close_block(struct sg_ptx *ptx) {
    const struct sg_ptx_block *ended = &ptx->blocks[--ptx->block_count];
    while (ptx->shadow_count > ended->first_shadow) {
        const struct sg_ptx_shadow *was = &ptx->shadows[--ptx->shadow_count];
        sg_names_slot(&ptx->locals, was->scope, was->name, was->length)->value = was->value;
    }
}

/* %r12 of %r<20>: any split of the digits at the end may be the declared one. */
static bool in_range(struct sg_ptx *ptx, const struct sg_word *name, size_t *width) {
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
            number < range >> WIDTH_BITS) {
            *width = WIDTH_OF(range);
            return true;
        }
        const struct sg_ptx_symbol *symbol = sg_ptx_find(ptx, name->text, length);
        if (symbol && number < symbol->range)
            return true;
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

bool sg_ptx_name_use(struct sg_ptx *ptx, const struct sg_word *name, size_t *width) {
    size_t value = 0;
    *width = NO_REGISTER;
    if (sg_names_find(&ptx->locals, NAMED_ACTIVE, name->text, name->length, &value) && value) {
        *width = WIDTH_OF(value);
        return true;
    }
    if (in_range(ptx, name, width) || sg_ptx_special_register(name->text, name->length) ||
        sg_names_find(&ptx->locals, NAMED_LABEL, name->text, name->length, &value))
        return true;
    const struct sg_ptx_symbol *symbol = sg_ptx_find(ptx, name->text, name->length);
    if (symbol)
        return sg_ptx_uses(ptx, (size_t)(symbol - ptx->symbols));
    struct sg_ptx_reference *grown =
        sg_image_grow(ptx->pending, &ptx->pending_count, sizeof *grown);
    if (!grown)
        return sg_ptx_no_memory(ptx);
    ptx->pending = grown;
    grown[ptx->pending_count - 1] = (struct sg_ptx_reference){name->text, name->length, name->line};
    return true;
}

/* What was not declared before it was named must be a label. */
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

/* ---- operands
 * -------------------------------------------------------------------------------------------- */

struct operands {
    char brackets[BRACKETS];
    unsigned depth;
    unsigned count; /* at the outermost level */
    bool wanted;    /* an operand must come: after a comma, an opening bracket, an operator */
    size_t width;   /* that registers must have, or 0 */
    bool mismatch;  /* one had another */
};

static bool bracket(struct sg_ptx *ptx, struct operands *list, char c) {
    if (c == '(' || c == '[' || c == '{') {
        if (list->depth == BRACKETS)
            return sg_ptx_wrong(ptx, "too many brackets");
        list->count += list->depth == 0 && list->wanted;
        list->brackets[list->depth++] = c;
        list->wanted = true;
        return true;
    }
    char open = c == ')' ? '(' : c == ']' ? '[' : '{';
    if (list->depth == 0 || list->brackets[list->depth - 1] != open)
        return sg_ptx_unexpected(ptx, "the end of the instruction");
    /* () alone may be empty. */
    if (list->wanted && open != '(')
        return sg_ptx_unexpected(ptx, "an operand");
    list->wanted = false;
    list->depth--;
    return true;
}

static bool operand(struct sg_ptx *ptx, struct operands *list) {
    const struct sg_word *word = &ptx->word;
    if (word->kind == SG_WORD_DOTTED) /* %v.x, %r.b0 */
        return !list->wanted && !word->apart ? true : sg_ptx_unexpected(ptx, "an operand");
    if (!list->wanted)
        return sg_ptx_unexpected(ptx, "; or ,");
    list->count += list->depth == 0;
    list->wanted = false;
    size_t width = NO_REGISTER;
    if (word->kind == SG_WORD_NAME && !sg_ptx_is(ptx, "_") && !sg_ptx_name_use(ptx, word, &width))
        return false;
    if (list->depth == 0 && list->width && width != NO_REGISTER && width != list->width)
        list->mismatch = true;
    return true;
}

static bool punctuation(struct sg_ptx *ptx, struct operands *list) {
    char c = ptx->word.text[0];
    if (strchr("()[]{}", c))
        return bracket(ptx, list, c);
    if (c == ',' && !list->wanted) {
        list->wanted = true;
        return true;
    }
    /* Signs and negations begin an operand; the others stand between two. */
    if (strchr("-+!~", c) && (list->wanted || c == '-' || c == '+')) {
        if (!list->wanted) {
            list->count -= list->depth == 0;
            list->wanted = true;
        }
        return true;
    }
    if (strchr("|*/&^<>?:=", c) && !list->wanted) {
        list->count -= list->depth == 0;
        list->wanted = true;
        return true;
    }
    return sg_ptx_unexpected(ptx, "an operand");
}

static bool operands(struct sg_ptx *ptx, struct operands *list) {
    list->wanted = true;
    while (!sg_ptx_is(ptx, ";") || list->depth) {
        bool good = false;
        if (ptx->word.kind == SG_WORD_OPERATOR && !sg_ptx_is(ptx, ";"))
            good = punctuation(ptx, list);
        else if (ptx->word.kind == SG_WORD_END || ptx->word.kind == SG_WORD_STRING ||
                 ptx->word.kind == SG_WORD_OPERATOR)
            good = sg_ptx_unexpected(ptx, "an operand");
        else
            good = operand(ptx, list);
        if (!good || !sg_ptx_next(ptx))
            return false;
    }
    if (list->wanted && list->count)
        return sg_ptx_unexpected(ptx, "an operand");
    return sg_ptx_next(ptx);
}

/* ---- instructions
 * ---------------------------------------------------------------------------------------- */

/* .u32, .bf16x2, .s16x2, .e4m3x4, .pred: instructions know more types than variables. */
static bool names_type(const struct sg_word *word) {
    const char *text = word->text + 1;
    size_t length = word->length - 1;
    if (length > 2 &&
        (memcmp(text, "bf", 2) == 0 || memcmp(text, "tf", 2) == 0 || memcmp(text, "ue", 2) == 0))
        text++;
    return sg_word_is(word, ".pred") ||
           (length > 1 && strchr("busfe", text[0]) && text[1] >= '0' && text[1] <= '9');
}

static bool names_rounding(const struct sg_word *word) {
    static const char *const all[] = {".rn", ".rz", ".rm", ".rp", ".approx", ".full"};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (sg_word_is(word, all[i]))
            return true;
    }
    return false;
}

/* Bytes of .u32, .f16x2, .pred; 0 of what is no such type. */
static size_t width_of(const struct sg_word *word) {
    const char *at = word->text + 1, *end = word->text + word->length;
    size_t bits = 0, times = 0;
    if (sg_word_is(word, ".pred"))
        return PREDICATE;
    at += at < end && end - at > 2 && at[0] == 'b' && at[1] == 'f' ? 2 : 1;
    for (; at < end && *at >= '0' && *at <= '9' && bits < 1000; at++)
        bits = 10 * bits + (size_t)(*at - '0');
    if (at < end && *at == 'x')
        for (at++; at < end && *at >= '0' && *at <= '9' && times < 100; at++)
            times = 10 * times + (size_t)(*at - '0');
    return at == end ? bits * (times ? times : 1) / 8 : 0;
}

struct modifiers {
    bool typed, real, rounded;
    size_t width;   /* of the only type */
    unsigned types; /* how many there are */
};

static bool modifiers(struct sg_ptx *ptx, struct modifiers *given) {
    while (ptx->word.kind == SG_WORD_DOTTED) {
        if (names_type(&ptx->word)) {
            given->typed = true;
            given->types++;
            given->width = width_of(&ptx->word);
        }
        given->real = given->real || sg_ptx_is(ptx, ".f32") || sg_ptx_is(ptx, ".f64");
        given->rounded = given->rounded || names_rounding(&ptx->word);
        if (!sg_ptx_modifier(ptx->word.text, ptx->word.length))
            return sg_ptx_wrong(ptx, "unknown modifier '%.*s'",
                                ptx->word.length < 60 ? (int)ptx->word.length : 60, ptx->word.text);
        if (!sg_ptx_next(ptx))
            return false;
    }
    return true;
}

static bool instruction(struct sg_ptx *ptx, const struct sg_word *name) {
    const struct sg_ptx_opcode *opcode = sg_ptx_opcode(name->text, name->length);
    struct modifiers given = {0};
    if (!opcode)
        return sg_ptx_wrong(ptx, "there is no instruction '%.*s'",
                            name->length < 60 ? (int)name->length : 60, name->text);
    if (!modifiers(ptx, &given))
        return false;
    if (opcode->typed && !given.typed)
        return sg_ptx_wrong(ptx, "%s needs a type", opcode->name);
    if (opcode->rounded && given.real && !given.rounded)
        return sg_ptx_wrong(ptx, "%s of floats needs a rounding, or .approx", opcode->name);
    struct operands list = {.width = opcode->uniform && given.types == 1 ? given.width : 0};
    if (!operands(ptx, &list))
        return false;
    if (list.mismatch)
        return sg_ptx_wrong(ptx, "an operand of %s is not as wide as its type", opcode->name);
    if (list.count < opcode->least || list.count > opcode->most)
        return sg_ptx_wrong(ptx, "%s does not take %u operands", opcode->name, list.count);
    return true;
}

static bool label(struct sg_ptx *ptx, const struct sg_word *name) {
    size_t found;
    if (!once_in_block(ptx, name, 0))
        return false;
    if (!sg_names_add(&ptx->locals, NAMED_LABEL, name->text, name->length, 1, &found))
        return sg_ptx_no_memory(ptx);
    return sg_ptx_next(ptx);
}

static bool predicate(struct sg_ptx *ptx) {
    if (!sg_ptx_next(ptx) || (sg_ptx_is(ptx, "!") && !sg_ptx_next(ptx)))
        return false;
    if (ptx->word.kind != SG_WORD_NAME)
        return sg_ptx_unexpected(ptx, "a predicate");
    size_t width;
    if (!sg_ptx_name_use(ptx, &ptx->word, &width) || !sg_ptx_next(ptx))
        return false;
    if (width != NO_REGISTER && width != PREDICATE)
        return sg_ptx_wrong(ptx, "the register is no predicate");
    if (ptx->word.kind != SG_WORD_NAME)
        return sg_ptx_unexpected(ptx, "an instruction");
    struct sg_word name = ptx->word;
    return sg_ptx_next(ptx) && instruction(ptx, &name);
}

/* ---- directives
 * ------------------------------------------------------------------------------------------ */

/* .loc 1 2 3 [, function_name NAME [+ n]] [, inlined_at 1 2 3] */
static bool location(struct sg_ptx *ptx) {
    uint64_t number;
    if (!sg_ptx_next(ptx))
        return false;
    for (unsigned i = 0; i < 3; i++) {
        if (!sg_ptx_integer(ptx, &number))
            return false;
    }
    while (sg_ptx_accept(ptx, ",")) {
        bool inlined = sg_ptx_is(ptx, "inlined_at");
        if (!inlined && !sg_ptx_is(ptx, "function_name"))
            return sg_ptx_unexpected(ptx, "function_name or inlined_at");
        if (!sg_ptx_next(ptx))
            return false;
        if (inlined) {
            for (unsigned i = 0; i < 3; i++)
                if (!sg_ptx_integer(ptx, &number))
                    return false;
        } else if (ptx->word.kind != SG_WORD_NAME || !sg_ptx_next(ptx) ||
                   (sg_ptx_accept(ptx, "+") && !sg_ptx_integer(ptx, &number))) {
            return sg_ptx_unexpected(ptx, "a place in a section");
        }
    }
    return ptx->result == CUDA_SUCCESS;
}

/* Lists of names and texts that end with a semicolon: .pragma, .branchtargets, .calltargets. */
static bool listed(struct sg_ptx *ptx, bool names) {
    do {
        if (!sg_ptx_next(ptx))
            return false;
        if (ptx->word.kind != (names ? SG_WORD_NAME : SG_WORD_STRING))
            return sg_ptx_unexpected(ptx, names ? "a name" : "a text in quotes");
        size_t width;
        if (names && !sg_ptx_name_use(ptx, &ptx->word, &width))
            return false;
        if (!sg_ptx_next(ptx))
            return false;
    } while (sg_ptx_is(ptx, ","));
    return sg_ptx_expect(ptx, ";");
}

/* .callprototype: its parameters have names of no meaning. */
static bool prototype(struct sg_ptx *ptx) {
    while (!sg_ptx_is(ptx, ";")) {
        if (ptx->word.kind == SG_WORD_END || sg_ptx_is(ptx, "{") || sg_ptx_is(ptx, "}"))
            return sg_ptx_unexpected(ptx, ";");
        if (!sg_ptx_next(ptx))
            return false;
    }
    return sg_ptx_next(ptx);
}

static bool directive(struct sg_ptx *ptx) {
    if (sg_ptx_is(ptx, ".loc"))
        return location(ptx);
    if (sg_ptx_is(ptx, ".pragma"))
        return listed(ptx, false);
    if (sg_ptx_is(ptx, ".branchtargets") || sg_ptx_is(ptx, ".calltargets"))
        return listed(ptx, true);
    if (sg_ptx_is(ptx, ".callprototype"))
        return prototype(ptx);
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
    return sg_ptx_is(ptx, ":") ? label(ptx, &name) : instruction(ptx, &name);
}

bool sg_ptx_body(struct sg_ptx *ptx) {
    if (!open_block(ptx))
        return false;
    while (ptx->block_count) {
        bool good;
        if (sg_ptx_is(ptx, "{")) {
            good = open_block(ptx) && sg_ptx_next(ptx);
        } else if (sg_ptx_is(ptx, "}")) {
            close_block(ptx);
            good = sg_ptx_next(ptx);
        } else {
            good = statement(ptx);
        }
        if (!good)
            return false;
    }
    return settle_names(ptx);
}
