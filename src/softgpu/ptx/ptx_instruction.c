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
    bool wanted;  /* an operand must follow: after a comma, an opening bracket, an operator */
    bool first;   /* it is the first in its brackets */
    bool joined;  /* it continues the previous operand: a + 4, p | q */
    bool paired;  /* the operator before it is the | of p | q */
    bool member;  /* a .x was read */
    bool choice;  /* a ? was read, whose : is to come */
    char sign;    /* before it */
    size_t width; /* of the first register in the braces that are open */
    /* What the operand began with. A name may be followed by a sum alone, a bracket by nothing. */
    enum { HEAD_NUMBER, HEAD_NAME, HEAD_BRACKET } head;
};

/* The outermost operand that is being read; NULL: it is beyond those that are checked. */
static struct sg_ptx_shape *shape(const struct operands *list) {
    return list->given->count && list->given->count <= SG_PTX_SHAPES
               ? &list->given->shapes[list->given->count - 1]
               : NULL;
}

static void note_bracket(struct operands *list, char c) {
    struct sg_ptx_shape *of = shape(list);
    list->width = c == '{' ? 0 : list->width;
    if (list->depth || list->joined || !of)
        return;
    if (list->wanted)
        of->what = c == '(' ? SG_SHAPE_LIST : c == '[' ? SG_SHAPE_ADDRESS : SG_SHAPE_VECTOR;
    else
        of->indexed = true;
}

static bool bracket(struct sg_ptx *ptx, struct operands *list, char c) {
    if (c == '(' || c == '[' || c == '{') {
        if (list->depth == BRACKETS)
            return sg_ptx_wrong(ptx, "too many brackets");
        if (!list->wanted && (c != '[' || list->head != HEAD_NAME))
            return sg_ptx_unexpected(ptx, "; or ,");
        list->given->count += list->depth == 0 && list->wanted;
        note_bracket(list, c);
        list->brackets[list->depth++] = c;
        list->first = list->wanted;
        list->wanted = true;
        list->joined = list->member = false;
        list->sign = '\0';
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
    list->head = open == '(' ? HEAD_NUMBER : HEAD_BRACKET;
    return true;
}

/* What follows | or an operator belongs to an operand that has already begun. */
static void note_register(struct operands *list, struct sg_ptx_kind kind) {
    if (!list->joined && list->given->count <= SG_PTX_OPERANDS)
        list->given->registers[list->given->count - 1] = kind;
}

/* What the special registers of a thread's place had when they had 16 bits is accepted still. */
static unsigned char widths_of(const struct sg_word *name) {
    if (sg_word_is(name, "%is_explicit_cluster"))
        return 1;
    if (sg_word_is(name, "%gridid"))
        return 2 + 4 + 8;
    if (sg_word_is_any(name, "%tid %ntid %ctaid %nctaid"))
        return 2 + 4;
    bool wide = sg_word_is_any(name, "%clock64 %globaltimer %current_graph_exec") ||
                (name->length > 3 && memcmp(name->text + name->length - 3, "_64", 3) == 0);
    return wide ? 8 : 4;
}

/* A name on the outside. */
static void note_name(const struct sg_ptx *ptx, struct operands *list,
                      const struct sg_ptx_use *use) {
    struct sg_ptx_shape *of = shape(list);
    bool reg = use->space == SG_SPACE_REG, sink = sg_ptx_is(ptx, "_");
    if (!of)
        return;
    if (list->joined) {
        of->pair = true;
        of->second = sink || use->kind.class == SG_CLASS_PREDICATE ||
                     (reg && use->kind.class == SG_CLASS_NONE);
        return;
    }
    of->what = sink ? SG_SHAPE_NOTHING : reg ? SG_SHAPE_REGISTER : SG_SHAPE_NAME;
    of->vector = reg && use->kind.width == 0 && !use->symbol;
    of->class = (unsigned char)use->kind.class;
    of->width = (unsigned char)use->kind.width;
    of->negated = list->sign == '!' || list->sign == '-';
    of->space = (unsigned char)use->space;
    if (use->symbol) {
        const struct sg_ptx_symbol *symbol = &ptx->symbols[use->symbol - 1];
        of->opaque = symbol->what == SG_SYMBOL_OPAQUE;
        of->function = symbol->what == SG_SYMBOL_FUNCTION || symbol->what == SG_SYMBOL_ENTRY;
    }
    bool other = sink || use->space != SG_SPACE_NONE || use->symbol;
    if (!other && sg_ptx_special_register(ptx->word.text, ptx->word.length))
        of->what = ptx->word.text[0] == '%' ? SG_SHAPE_SPECIAL : SG_SHAPE_NUMBER;
    of->whole = of->what == SG_SHAPE_NUMBER;
    of->widths = of->what == SG_SHAPE_SPECIAL ? widths_of(&ptx->word) : 0;
    of->triple = of->what == SG_SHAPE_SPECIAL && ptx->word.text[ptx->word.length - 1] == 'd' &&
                 sg_word_is_any(&ptx->word, "%tid %ntid %ctaid %nctaid %clusterid %nclusterid "
                                            "%cluster_ctaid %cluster_nctaid");
    of->label = of->what == SG_SHAPE_NAME && !other;
    if (of->label && !list->given->unknown.text)
        list->given->unknown = ptx->word;
}

/* The name is of a part: v.x */
static bool is_element(const struct sg_ptx *ptx) {
    return ptx->words.at < ptx->words.end && *ptx->words.at == '.';
}

static bool is_constant(const struct sg_ptx *ptx) {
    return sg_ptx_is(ptx, "WARP_SZ");
}

/* A name in braces, wherever these are: registers of one width. */
static bool element(struct sg_ptx *ptx, struct operands *list, const struct sg_ptx_use *use) {
    struct sg_ptx_shape *of = shape(list);
    bool reg = use->space == SG_SPACE_REG, outermost = of && list->depth == 1;
    if (outermost && of->count < UINT8_MAX)
        of->count++;
    if (sg_ptx_is(ptx, "_")) {
        if (outermost)
            of->holes = true;
        return list->depth == 1 || sg_ptx_unexpected(ptx, "a register");
    }
    if (list->sign)
        return sg_ptx_wrong(ptx, "a sign before a register in braces");
    bool special = !reg && use->space == SG_SPACE_NONE && !use->symbol &&
                   sg_ptx_special_register(ptx->word.text, ptx->word.length);
    bool whole = reg && !use->kind.width && !use->symbol && !is_element(ptx);
    if ((!reg && !special) || whole)
        return sg_ptx_unexpected(ptx, "a register");
    if (outermost && is_constant(ptx))
        of->whole = true;
    if (!use->kind.width)
        return true;
    if (!outermost && list->depth == 2 && list->brackets[0] == '[' && use->kind.width != 4)
        return sg_ptx_wrong(ptx, "a coordinate that has no 32 bits");
    if (outermost && !of->width) {
        of->class = (unsigned char)use->kind.class;
        of->width = (unsigned char)use->kind.width;
    }
    if (outermost) {
        of->reals |= use->kind.class == SG_CLASS_REAL;
        of->integers |= use->kind.class == SG_CLASS_INTEGER;
    }
    if (use->kind.class == SG_CLASS_PREDICATE) /* ptxas takes it beside any integer */
        return true;
    if (list->width && list->width != use->kind.width)
        return sg_ptx_wrong(ptx, "registers of different widths in braces");
    list->width = use->kind.width;
    return true;
}

static bool base(struct sg_ptx *ptx, const struct sg_ptx_use *use) {
    size_t width = use->kind.width;
    enum sg_ptx_class class = use->kind.class;
    bool reg = use->space == SG_SPACE_REG;
    if (reg && ((!width && !use->symbol && !is_element(ptx)) || width > 8 ||
                class == SG_CLASS_PREDICATE || class == SG_CLASS_REAL || class == SG_CLASS_PAIR))
        return sg_ptx_wrong(ptx, "the address is no integer");
    if (use->symbol && (ptx->symbols[use->symbol - 1].what == SG_SYMBOL_FUNCTION ||
                        ptx->symbols[use->symbol - 1].what == SG_SYMBOL_ENTRY))
        return sg_ptx_wrong(ptx, "the address of a function");
    return reg || use->space != SG_SPACE_NONE || use->symbol ||
           sg_ptx_unexpected(ptx, "an address");
}

static bool name_operand(struct sg_ptx *ptx, struct operands *list) {
    struct sg_ptx_given *given = list->given;
    struct sg_ptx_use use = {0};
    if (list->joined && !list->paired && !is_constant(ptx))
        return sg_ptx_unexpected(ptx, "a number");
    if ((list->paired && list->sign) || (list->sign == '2' && !is_constant(ptx)))
        return sg_ptx_unexpected(ptx, "a name");
    if (!sg_ptx_is(ptx, "_") && !sg_ptx_name_use(ptx, &ptx->word, &use))
        return false;
    if (list->sign == '!' && use.kind.class != SG_CLASS_NONE &&
        !sg_ptx_agrees(use.kind, (struct sg_ptx_kind){SG_CLASS_PREDICATE, 1}, false))
        return sg_ptx_wrong(ptx, "! before a register that is no predicate");
    if (ptx->telling && !sg_ptx_note_word(ptx, &use))
        return false;
    bool address = list->depth && list->brackets[list->depth - 1] == '[' && list->first;
    bool braces = list->depth && list->brackets[list->depth - 1] == '{' && !list->joined;
    if (address && is_constant(ptx))
        given->absolute = true;
    else if (address && !base(ptx, &use))
        return false;
    if (braces && !element(ptx, list, &use))
        return false;
    if (list->depth == 0) {
        note_register(list, use.kind);
        note_name(ptx, list, &use);
        if (use.symbol && !given->target) {
            given->target = use.symbol;
            given->target_at = given->count - 1;
        }
    } else if (list->depth == 1 && address && shape(list)) {
        shape(list)->space = (unsigned char)use.space;
        shape(list)->width = (unsigned char)use.kind.width;
        shape(list)->opaque = use.symbol && ptx->symbols[use.symbol - 1].what == SG_SYMBOL_OPAQUE;
    }
    if (list->depth == 1 && address && !given->addressed) {
        given->addressed = true;
        given->address = use;
    }
    return true;
}

/* A constant: on the outside, or in braces there. */
static void note_number(const struct sg_ptx *ptx, struct operands *list) {
    const struct sg_word *word = &ptx->word;
    struct sg_ptx_shape *of = shape(list);
    bool braces = list->depth == 1 && list->brackets[0] == '{', real = word->kind == SG_WORD_FLOAT;
    if (!of || list->depth > braces)
        return;
    if (list->joined) {
        of->plain = false;
        return;
    }
    of->real = of->real || real;
    of->single = of->single || word->single;
    of->whole = of->whole || !real;
    of->count = (unsigned char)(of->count + (braces && of->count < UINT8_MAX));
    if (braces)
        return;
    of->what = SG_SHAPE_NUMBER;
    of->plain = !real && (!list->sign || list->sign == '-');
    bool great = word->number > UINT32_MAX || (list->sign && word->number);
    of->number = great ? UINT32_MAX : (uint32_t)word->number;
}

/* .x to .w, .r to .a; of video instructions .b0, .h1, .b3210. */
static bool is_member(const struct sg_word *word) {
    if (word->length == 2)
        return strchr("xyzwrgba", word->text[1]) != NULL;
    bool good = word->length < 7 && (word->text[1] == 'b' || word->text[1] == 'h');
    for (size_t i = 2; good && i < word->length; i++)
        good = word->text[i] >= '0' && word->text[i] <= '7';
    return good;
}

static bool operand(struct sg_ptx *ptx, struct operands *list) {
    const struct sg_word *word = &ptx->word;
    struct sg_ptx_given *given = list->given;
    if (word->kind == SG_WORD_DOTTED) { /* %v.x, %r.b0 */
        const struct sg_ptx_shape *of = list->depth == 0 ? shape(list) : NULL;
        bool good = !list->wanted && !word->apart && list->head == HEAD_NAME && !list->member &&
                    is_member(word) && (!of || of->what != SG_SHAPE_NAME);
        list->member = true;
        if (good && list->depth == 0 && shape(list)) {
            shape(list)->vector = false;
            shape(list)->member = true;
        }
        return good || sg_ptx_unexpected(ptx, "an operand");
    }
    if (!list->wanted)
        return sg_ptx_unexpected(ptx, "; or ,");
    given->count += list->depth == 0;
    list->wanted = false;
    if (list->depth == 1 && list->brackets[0] == '(' && !list->joined &&
        given->count <= SG_PTX_OPERANDS)
        given->items[given->count - 1]++;
    if (word->kind == SG_WORD_NAME && !name_operand(ptx, list))
        return false;
    if (word->kind == SG_WORD_FLOAT && list->joined && list->depth &&
        list->brackets[list->depth - 1] == '[')
        return sg_ptx_unexpected(ptx, "a whole number");
    if (word->kind != SG_WORD_NAME) {
        note_number(ptx, list);
        given->absolute = given->absolute ||
                          (list->first && list->depth && list->brackets[list->depth - 1] == '[');
    }
    if (!list->joined || list->paired)
        list->head = word->kind == SG_WORD_NAME && !is_constant(ptx) ? HEAD_NAME : HEAD_NUMBER;
    list->first = list->joined = list->paired = list->member = false;
    list->sign = '\0';
    return true;
}

/* An operator between two: a name takes + and |, which make no constant of it. */
static bool joins(struct sg_ptx *ptx, struct operands *list, char c) {
    bool constant = list->head == HEAD_NUMBER, sum = c == '+' && list->head == HEAD_NAME;
    if (!constant && !sum && (c != '|' || ptx->word.length > 1))
        return sg_ptx_unexpected(ptx, "; or ,");
    if (c == ':' && !list->choice)
        return sg_ptx_unexpected(ptx, "; or ,");
    list->choice = c == '?' || (list->choice && c != ':');
    list->paired = !constant && c == '|';
    list->given->sums = list->given->sums || c == '+' || c == '-';
    if (sum && list->depth == 0 && shape(list))
        shape(list)->sum = true;
    list->given->count -= list->depth == 0;
    list->wanted = list->joined = true;
    if (sum)
        list->head = HEAD_NUMBER;

    return true;
}

static bool punctuation(struct sg_ptx *ptx, struct operands *list) {
    char c = ptx->word.text[0];
    if (strchr("()[]{}", c))
        return bracket(ptx, list, c);
    if (c == ',' && !list->wanted && !list->choice) {
        if (list->depth == 1 && list->brackets[0] == '[' && shape(list))
            shape(list)->count = 1; /* more than an address */
        list->wanted = true;
        list->first = list->joined = list->paired = list->choice = false;
        list->sign = '\0';
        return true;
    }
    /* Signs and negations begin an operand; other operators stand between two. */
    if (list->wanted && ptx->word.length == 1 && strchr("-+!~", c)) {
        list->sign = list->sign ? '2' : c; /* two stand before constants alone */
        return true;
    }
    return !list->wanted && strchr("-+|*/&^<>?:=!", c) ? joins(ptx, list, c)
                                                       : sg_ptx_unexpected(ptx, "an operand");
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
    if (list->choice)
        return sg_ptx_unexpected(ptx, ":");
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
