/* One instruction: its modifiers and its operands with their brackets. The rules for them are in
 * ptx_rules.c. */
#include "softgpu/ptx/ptx_sink.h"

#include <string.h>

#define BRACKETS 32 /* how deeply the brackets of one instruction may nest */

/* ---- operands -------------------------------------------------------------------------------- */

struct operands {
    struct sg_ptx_given *given;
    char brackets[BRACKETS];
    unsigned depth;
    bool wanted; /* an operand must follow: after a comma, an opening bracket, an operator */
    bool first;  /* it is the first in its brackets */
    bool joined; /* it continues the previous operand: a + 4, p | q */
};

static bool bracket(struct sg_ptx *ptx, struct operands *list, char c) {
    if (c == '(' || c == '[' || c == '{') {
        if (list->depth == BRACKETS)
            return sg_ptx_wrong(ptx, "too many brackets");
        list->given->count += list->depth == 0 && list->wanted;
        list->brackets[list->depth++] = c;
        list->wanted = list->first = true;
        list->joined = false;
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

/* What follows | or an operator belongs to an operand that has already begun. */
static void note_register(struct operands *list, struct sg_ptx_kind kind) {
    if (!list->joined && list->given->count <= SG_PTX_OPERANDS)
        list->given->registers[list->given->count - 1] = kind;
}

static bool name_operand(struct sg_ptx *ptx, struct operands *list) {
    struct sg_ptx_given *given = list->given;
    struct sg_ptx_use use = {0};
    if (!sg_ptx_is(ptx, "_") && !sg_ptx_name_use(ptx, &ptx->word, &use))
        return false;
    if (ptx->telling && !sg_ptx_note_word(ptx, &use))
        return false;
    if (list->depth == 0) {
        note_register(list, use.kind);
        if (use.symbol && !given->target) {
            given->target = use.symbol;
            given->target_at = given->count - 1;
        }
    } else if (list->depth == 1 && list->brackets[0] == '[' && list->first && !given->addressed) {
        given->addressed = true;
        given->address = use;
    }
    return true;
}

static bool operand(struct sg_ptx *ptx, struct operands *list) {
    const struct sg_word *word = &ptx->word;
    struct sg_ptx_given *given = list->given;
    if (word->kind == SG_WORD_DOTTED) /* %v.x, %r.b0 */
        return !list->wanted && !word->apart ? true : sg_ptx_unexpected(ptx, "an operand");
    if (!list->wanted)
        return sg_ptx_unexpected(ptx, "; or ,");
    given->count += list->depth == 0;
    list->wanted = false;
    if (list->depth == 1 && list->brackets[0] == '(' && !list->joined &&
        given->count <= SG_PTX_OPERANDS)
        given->items[given->count - 1]++;
    if (word->kind == SG_WORD_NAME && !name_operand(ptx, list))
        return false;
    list->first = list->joined = false;
    return true;
}

static bool punctuation(struct sg_ptx *ptx, struct operands *list) {
    char c = ptx->word.text[0];
    if (strchr("()[]{}", c))
        return bracket(ptx, list, c);
    if (c == ',' && !list->wanted) {
        list->wanted = true;
        list->first = list->joined = false;
        return true;
    }
    /* Signs and negations begin an operand; other operators stand between two. */
    if (strchr("-+!~", c) && (list->wanted || c == '-' || c == '+')) {
        if (!list->wanted) {
            list->given->sums = true;
            list->given->count -= list->depth == 0;
            list->wanted = list->joined = true;
        }
        return true;
    }
    if (strchr("|*/&^<>?:=", c) && !list->wanted) {
        list->given->count -= list->depth == 0;
        list->wanted = list->joined = true;
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
        if (ptx->telling && good && ptx->word.kind != SG_WORD_NAME)
            good = sg_ptx_note_word(ptx, NULL);
        if (!good || !sg_ptx_next(ptx))
            return false;
    }
    if (list->wanted && list->given->count)
        return sg_ptx_unexpected(ptx, "an operand");
    return (!ptx->telling || sg_ptx_note_word(ptx, NULL)) && sg_ptx_next(ptx);
}

/* ---- the instruction ------------------------------------------------------------------------- */

static bool modifiers(struct sg_ptx *ptx, const struct sg_ptx_opcode *opcode,
                      struct sg_ptx_given *given) {
    if (ptx->word.kind == SG_WORD_DOTTED)
        given->modifiers = ptx->word.text;
    while (ptx->word.kind == SG_WORD_DOTTED) {
        given->modifiers_length = (size_t)(ptx->word.text + ptx->word.length - given->modifiers);
        if (!sg_ptx_check_modifier(ptx, opcode, given))
            return false;
        if (ptx->telling) {
            struct sg_ptx_statement *told = &ptx->telling->statement;
            if (told->modifier_count < SG_PTX_MODIFIERS)
                told->modifiers[told->modifier_count] = ptx->word;
            told->modifier_count++;
        }
        if (!sg_ptx_next(ptx))
            return false;
    }
    return true;
}

bool sg_ptx_instruction(struct sg_ptx *ptx, const struct sg_word *name) {
    const struct sg_ptx_opcode *opcode = sg_ptx_opcode(name->text, name->length);
    struct sg_ptx_given given = {0};
    struct operands list = {.given = &given};
    if (!opcode)
        return sg_ptx_wrong(ptx, "there is no instruction '%.*s'",
                            name->length < 60 ? (int)name->length : 60, name->text);
    if (ptx->telling) {
        ptx->telling->statement.opcode = opcode->name;
        ptx->telling->statement.number = sg_ptx_opcode_number(opcode);
        ptx->telling->statement.line = name->line;
    }
    return modifiers(ptx, opcode, &given) && operands(ptx, &list) &&
           sg_ptx_check_instruction(ptx, opcode, &given) &&
           (!ptx->telling || sg_ptx_tell_instruction(ptx));
}
