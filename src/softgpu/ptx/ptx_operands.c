/* Builds the operands of an instruction for a sink, from words whose order was checked. */
#include "softgpu/ptx/ptx_sink.h"

#include <stdlib.h>
#include <string.h>

struct builder {
    struct sg_ptx *ptx;
    struct sg_ptx_telling *telling;
    size_t at; /* index of the next noted word */
};

struct sg_ptx_name sg_ptx_name_of(const struct sg_word *word, const struct sg_ptx_use *use) {
    return (struct sg_ptx_name){.text = word->text,
                                .length = word->length,
                                .declaration = use->declaration,
                                .index = use->index,
                                .symbol = use->symbol};
}

bool sg_ptx_note_word(struct sg_ptx *ptx, const struct sg_ptx_use *use) {
    struct sg_ptx_telling *telling = ptx->telling;
    struct sg_ptx_noted *grown =
        sg_image_grow(telling->noted, &telling->noted_count, sizeof *grown);
    if (!grown)
        return sg_ptx_no_memory(ptx);
    telling->noted = grown;
    grown[telling->noted_count - 1].word = ptx->word;
    if (use)
        grown[telling->noted_count - 1].use = *use;
    return true;
}

bool sg_ptx_tell_declaration(struct sg_ptx *ptx, const struct sg_ptx_variable *variable,
                             enum sg_ptx_role role, uint64_t offset) {
    const struct sg_ptx_sink *sink = ptx->telling->sink;
    const struct sg_ptx_declaration told = {
        .role = role,
        .variable = variable,
        .number = sg_word_is(&variable->name, "_") ? 0 : ptx->telling->declared,
        .offset = offset};
    return sink->declare(sink->user, &told) || sg_ptx_no_memory(ptx);
}

/* ---- words ----------------------------------------------------------------------------------- */

static const struct sg_word *word(const struct builder *b) {
    return &b->telling->noted[b->at].word; /* the last is the semicolon */
}

static bool is(const struct builder *b, char c) {
    const struct sg_word *now = word(b);
    return now->kind == SG_WORD_OPERATOR && now->length == 1 && now->text[0] == c;
}

/* The word after an operand that stands alone. */
static bool ends(const struct builder *b) {
    return is(b, ',') || is(b, ';') || is(b, ']') || is(b, '}') || is(b, ')') || is(b, '|');
}

static struct sg_ptx_operand *operand_at(const struct builder *b, size_t number) {
    return &b->telling->operands[number - 1];
}

/* The number of a new operand, counted from 1; 0: out of memory. */
static size_t new_operand(struct builder *b) {
    struct sg_ptx_operand *grown =
        sg_image_grow(b->telling->operands, &b->telling->operand_count, sizeof *grown);
    if (!grown) {
        sg_ptx_no_memory(b->ptx);
        return 0;
    }
    b->telling->operands = grown;
    return b->telling->operand_count;
}

/* ---- constants ------------------------------------------------------------------------------- */

/* Reads a constant expression from this word on; false when there is none. */
static bool expression(struct builder *b, struct sg_ptx_value *value) {
    struct sg_ptx *ptx = b->ptx;
    const struct sg_words words = ptx->words;
    const struct sg_word now = ptx->word;
    struct sg_image_log *log = ptx->log, none = {0};
    ptx->log = &none;
    ptx->words.at = word(b)->text;
    ptx->words.line = word(b)->line;
    bool good = sg_ptx_next(ptx) && sg_ptx_value(ptx, value);
    const char *end = ptx->word.text;
    ptx->log = log;
    ptx->result = CUDA_SUCCESS;
    ptx->words = words;
    ptx->word = now;
    while (good && word(b)->text < end)
        b->at++;
    return good && word(b)->text == end;
}

/* Skips what cannot be read, to its end at the same depth. */
static void skip(struct builder *b) {
    for (unsigned depth = 0;
         depth || !(is(b, ',') || is(b, ';') || is(b, ']') || is(b, '}') || is(b, ')'));) {
        depth += is(b, '[') || is(b, '{') || is(b, '(');
        depth -= is(b, ']') || is(b, '}') || is(b, ')');
        b->at++;
    }
}

static void unreadable(struct builder *b, struct sg_ptx_operand *to) {
    to->kind = SG_PTX_UNREADABLE;
    skip(b);
}

static void constant(struct builder *b, struct sg_ptx_operand *to) {
    struct sg_ptx_value value = {0};
    const struct sg_word *first = word(b);
    const struct sg_word *behind = &b->telling->noted[b->at + 1].word;
    bool alone = first->kind == SG_WORD_INTEGER || first->kind == SG_WORD_FLOAT;
    if (alone && behind->kind == SG_WORD_OPERATOR && strchr(",;]})", behind->text[0])) {
        to->kind = first->kind == SG_WORD_INTEGER ? SG_PTX_INTEGER : SG_PTX_REAL;
        to->number = first->number;
        to->is_signed = first->is_signed;
        to->single = first->single;
        b->at++;
    } else if (!expression(b, &value) || value.kind == SG_VALUE_ADDRESS) {
        unreadable(b, to);
    } else {
        to->kind = value.kind == SG_VALUE_INTEGER ? SG_PTX_INTEGER : SG_PTX_REAL;
        to->number = value.number;
        to->is_signed = value.is_signed;
        if (value.kind == SG_VALUE_REAL)
            memcpy(&to->number, &value.real, sizeof to->number);
    }
}

/* ---- names ----------------------------------------------------------------------------------- */

static bool offset_of(struct builder *b, struct sg_ptx_operand *to) {
    struct sg_ptx_value value = {0};
    if (!expression(b, &value) || value.kind != SG_VALUE_INTEGER)
        return false;
    to->offset = (int64_t)value.number;
    return true;
}

/* name, name.x, name + 4, name[4] */
static void name(struct builder *b, struct sg_ptx_operand *to) {
    bool good = true;
    to->kind = sg_word_is(word(b), "_") ? SG_PTX_SINK : SG_PTX_NAME;
    to->name = sg_ptx_name_of(word(b), &b->telling->noted[b->at].use);
    b->at++;
    if (word(b)->kind == SG_WORD_DOTTED) {
        to->member = word(b)->text;
        to->member_length = word(b)->length;
        b->at++;
    }
    if (is(b, '+')) {
        b->at++;
        good = offset_of(b, to);
    } else if (is(b, '-')) {
        good = offset_of(b, to);
    } else if (is(b, '[')) {
        b->at++;
        to->indexed = true;
        good = offset_of(b, to) && is(b, ']');
        b->at += good;
    }
    if (!good || !ends(b))
        unreadable(b, to);
}

/* ---- brackets -------------------------------------------------------------------------------- */

static size_t operand(struct builder *b, unsigned depth);

static bool children(struct builder *b, size_t parent, unsigned depth) {
    size_t last = 0;
    b->at++;
    while (!is(b, ']') && !is(b, '}') && !is(b, ')')) {
        size_t child = operand(b, depth + 1);
        if (!child)
            return false;
        if (last)
            operand_at(b, last)->next = child;
        else
            operand_at(b, parent)->child = child;
        operand_at(b, parent)->children++;
        last = child;
        b->at += is(b, ',');
    }
    b->at++;
    return true;
}

static bool bracketed(struct builder *b, size_t made, unsigned depth) {
    operand_at(b, made)->kind = is(b, '[')   ? SG_PTX_ADDRESS
                                : is(b, '{') ? SG_PTX_VECTOR
                                             : SG_PTX_LIST;
    if (!children(b, made, depth))
        return false;
    if (!ends(b))
        unreadable(b, operand_at(b, made));
    return true;
}

/* Lists occur only in calls; a bracket inside another operand begins an expression. */
static bool begins_bracket(const struct builder *b, unsigned depth) {
    return is(b, '[') || is(b, '{') || (is(b, '(') && depth == 0);
}

static size_t operand(struct builder *b, unsigned depth) {
    size_t made = new_operand(b);
    if (!made)
        return 0;
    struct sg_ptx_operand *to = operand_at(b, made);
    if (is(b, '!')) {
        to->negated = true;
        b->at++;
    } else if (is(b, '-') && b->telling->noted[b->at + 1].word.kind == SG_WORD_NAME) {
        to->minus = true;
        b->at++;
    }
    if (begins_bracket(b, depth)) {
        if (!bracketed(b, made, depth))
            return 0;
    } else if (word(b)->kind == SG_WORD_NAME) {
        name(b, to);
    } else {
        constant(b, to);
    }
    if (!is(b, '|'))
        return made;
    b->at++;
    size_t other = operand(b, depth);
    if (other)
        operand_at(b, made)->other = other;
    return other ? made : 0;
}

/* ---- the instruction ------------------------------------------------------------------------- */

static bool build(struct builder *b, struct sg_ptx_statement *statement) {
    size_t last = 0;
    while (!is(b, ';')) {
        size_t made = operand(b, 0);
        if (!made)
            return false;
        if (last)
            operand_at(b, last)->next = made;
        else
            statement->first = made;
        statement->operand_count++;
        last = made;
        /* Not the start of any operand: only where a word was unreadable. */
        if (is(b, ',') || !is(b, ';'))
            b->at++;
    }
    return true;
}

bool sg_ptx_tell_instruction(struct sg_ptx *ptx) {
    struct sg_ptx_telling *telling = ptx->telling;
    struct sg_ptx_statement *statement = &telling->statement;
    struct builder b = {.ptx = ptx, .telling = telling};
    const struct sg_ptx_sink *sink = telling->sink;
    telling->operand_count = 0;
    bool good = build(&b, statement);
    if (good) {
        statement->operands = telling->operands;
        good = sink->instruction(sink->user, statement) || sg_ptx_no_memory(ptx);
    }
    telling->noted_count = 0;
    *statement = (struct sg_ptx_statement){0};
    return good;
}
