/* Constant expressions of PTX: integers, floats, addresses with an offset. Operators wait on a
 * stack of fixed size, so that no text can make the reader recurse. */
#include "softgpu/ptx/ptx.h"

#include <string.h>

#define DEPTH 64

enum operator_kind {
    OP_OPEN,
    OP_MINUS,
    OP_PLUS,
    OP_NOT,
    OP_COMPLEMENT,
    OP_SIGNED,
    OP_UNSIGNED,
    OP_GENERIC,
    OP_MASK,
    OP_BINARY,
    OP_QUESTION,
    OP_COLON
};

struct operator{
    enum operator_kind kind;
    const char *text;
    size_t length;
    int rank;
    uint64_t mask;
};

struct expression {
    struct sg_ptx *ptx;
    struct sg_ptx_value values[DEPTH];
    struct operator operators[DEPTH];
    size_t value_count, operator_count;
};

static const struct {
    const char *text;
    int rank;
} binary[] = {{"*", 10}, {"/", 10}, {"+", 9},  {"-", 9},  {"<<", 8}, {">>", 8},
              {"<", 7},  {">", 7},  {"<=", 7}, {">=", 7}, {"==", 6}, {"!=", 6},
              {"&", 5},  {"^", 4},  {"|", 3},  {"&&", 2}, {"||", 1}};

/* ---- applying one operator ------------------------------------------------------------------- */

static bool truth(const struct sg_ptx_value *value) {
    return value->kind == SG_VALUE_REAL ? value->real != 0 : value->number != 0;
}

static bool apply_unary(struct expression *e, const struct operator* op) {
    struct sg_ptx_value *value = &e->values[e->value_count - 1];
    bool address = value->kind == SG_VALUE_ADDRESS, real = value->kind == SG_VALUE_REAL;
    switch (op->kind) {
    case OP_GENERIC:
        value->generic = true;
        return address || sg_ptx_wrong(e->ptx, "generic() wants the name of a variable");
    case OP_MASK:
        value->mask = op->mask;
        return address || sg_ptx_wrong(e->ptx, "a mask wants an address");
    case OP_PLUS:
        return true;
    default:
        break;
    }
    if (address)
        return sg_ptx_wrong(e->ptx, "an address takes + and - a number only");
    if (op->kind == OP_MINUS && real)
        value->real = -value->real;
    else if (op->kind == OP_MINUS)
        value->number = 0 - value->number;
    else if (real)
        return sg_ptx_wrong(e->ptx, "the operator wants a whole number");
    else if (op->kind == OP_NOT)
        value->number = !value->number;
    else if (op->kind == OP_COMPLEMENT)
        value->number = ~value->number;
    else
        value->is_signed = op->kind == OP_SIGNED;
    return true;
}

static bool address_arithmetic(struct expression *e, struct sg_ptx_value *left,
                               const struct sg_ptx_value *right, char op) {
    bool swapped = left->kind == SG_VALUE_INTEGER && right->kind == SG_VALUE_ADDRESS && op == '+';
    if (swapped) {
        uint64_t number = left->number;
        *left = *right;
        left->number += number;
        return true;
    }
    if (left->kind != SG_VALUE_ADDRESS || right->kind != SG_VALUE_INTEGER ||
        (op != '+' && op != '-'))
        return sg_ptx_wrong(e->ptx, "an address takes + and - a number only");
    left->number += op == '+' ? right->number : 0 - right->number;
    return true;
}

static bool real_arithmetic(struct expression *e, struct sg_ptx_value *left,
                            const struct sg_ptx_value *right, char op) {
    if (left->kind != SG_VALUE_REAL || right->kind != SG_VALUE_REAL)
        return sg_ptx_wrong(e->ptx, "whole numbers and floats do not mix");
    switch (op) {
    case '+':
        left->real += right->real;
        return true;
    case '-':
        left->real -= right->real;
        return true;
    case '*':
        left->real *= right->real;
        return true;
    case '/':
        left->real /= right->real;
        return true;
    default:
        return sg_ptx_wrong(e->ptx, "the operator wants whole numbers");
    }
}

static uint64_t divide(uint64_t left, uint64_t right, bool is_signed) {
    if (!is_signed)
        return left / right;
    /* The one quotient that overflows. */
    if (right == UINT64_MAX)
        return 0 - left;
    return (uint64_t)((int64_t)left / (int64_t)right);
}

static uint64_t shift_right(uint64_t left, uint64_t by, bool is_signed) {
    bool negative = is_signed && left >> 63;
    if (by > 63)
        return negative ? UINT64_MAX : 0;
    uint64_t moved = left >> by;
    return negative && by ? moved | ~(UINT64_MAX >> by) : moved;
}

static bool less(const struct sg_ptx_value *left, const struct sg_ptx_value *right) {
    if (left->is_signed && right->is_signed)
        return (int64_t)left->number < (int64_t)right->number;
    return left->number < right->number;
}

/* < <= > >= == != && ||; false for any other operator. */
static bool compare(const struct sg_ptx_value *left, const struct sg_ptx_value *right,
                    const struct operator* op, bool *outcome) {
    uint64_t l = left->number, r = right->number;
    bool two = op->length == 2, equal = two && op->text[1] == '=';
    if (two && !equal && (op->text[0] == '<' || op->text[0] == '>'))
        return false;
    switch (op->text[0]) {
    case '<':
        *outcome = equal ? !less(right, left) : less(left, right);
        return true;
    case '>':
        *outcome = equal ? !less(left, right) : less(right, left);
        return true;
    case '=':
    case '!':
        *outcome = (l == r) == (op->text[0] == '=');
        return true;
    case '&':
        *outcome = l && r;
        return two;
    case '|':
        *outcome = l || r;
        return two;
    default:
        return false;
    }
}

static bool integer_arithmetic(struct expression *e, struct sg_ptx_value *left,
                               const struct sg_ptx_value *right, const struct operator* op) {
    bool both = left->is_signed && right->is_signed, outcome;
    uint64_t l = left->number, r = right->number;
    if (compare(left, right, op, &outcome)) {
        left->number = outcome;
        left->is_signed = true;
        return true;
    }
    if (op->text[0] == '/' && r == 0)
        return sg_ptx_wrong(e->ptx, "division by zero");
    left->number = op->text[0] == '<'   ? (r > 63 ? 0 : l << r)
                   : op->text[0] == '>' ? shift_right(l, r, left->is_signed)
                   : op->text[0] == '*' ? l * r
                   : op->text[0] == '/' ? divide(l, r, both)
                   : op->text[0] == '+' ? l + r
                   : op->text[0] == '-' ? l - r
                   : op->text[0] == '&' ? (l & r)
                   : op->text[0] == '^' ? (l ^ r)
                                        : (l | r);
    if (op->length == 1)
        left->is_signed = both;
    return true;
}

static bool apply_binary(struct expression *e, const struct operator* op) {
    struct sg_ptx_value *left = &e->values[e->value_count - 2];
    const struct sg_ptx_value *right = left + 1;
    e->value_count--;
    if (left->kind == SG_VALUE_ADDRESS || right->kind == SG_VALUE_ADDRESS)
        return address_arithmetic(e, left, right, op->length == 1 ? op->text[0] : '?');
    if (left->kind == SG_VALUE_REAL || right->kind == SG_VALUE_REAL)
        return real_arithmetic(e, left, right, op->length == 1 ? op->text[0] : '?');
    return integer_arithmetic(e, left, right, op);
}

static bool apply(struct expression *e) {
    struct operator op = e->operators[--e->operator_count];
    size_t wanted = op.kind == OP_COLON ? 3 : op.kind == OP_BINARY ? 2 : 1;
    if (e->value_count < wanted || op.kind == OP_OPEN || op.kind == OP_QUESTION)
        return sg_ptx_unexpected(e->ptx, "a value");
    if (op.kind == OP_BINARY)
        return apply_binary(e, &op);
    if (op.kind != OP_COLON)
        return apply_unary(e, &op);
    struct sg_ptx_value *condition = &e->values[e->value_count - 3];
    *condition = truth(condition) ? condition[1] : condition[2];
    e->value_count -= 2;
    return true;
}

/* ---- the stacks ------------------------------------------------------------------------------ */

static bool push_operator(struct expression *e, struct operator op) {
    if (e->operator_count == DEPTH)
        return sg_ptx_wrong(e->ptx, "the expression is too deep");
    e->operators[e->operator_count++] = op;
    return true;
}

static bool push_value(struct expression *e, struct sg_ptx_value value) {
    if (e->value_count == DEPTH)
        return sg_ptx_wrong(e->ptx, "the expression is too deep");
    e->values[e->value_count++] = value;
    return true;
}

/* Applies the operators that bind at least as strongly as `rank`. */
static bool settle(struct expression *e, int rank) {
    while (e->operator_count && e->operators[e->operator_count - 1].kind != OP_OPEN &&
           e->operators[e->operator_count - 1].kind != OP_QUESTION &&
           e->operators[e->operator_count - 1].rank >= rank) {
        if (!apply(e))
            return false;
    }
    return true;
}

/* Of the body that is being read, or of the module. */
static struct sg_ptx_symbol *named(struct sg_ptx *ptx) {
    struct sg_ptx_use use;
    if (!ptx->body)
        return sg_ptx_find(ptx, ptx->word.text, ptx->word.length);
    return sg_ptx_name_use(ptx, &ptx->word, &use) && use.symbol ? &ptx->symbols[use.symbol - 1]
                                                                : NULL;
}

static bool name_value(struct expression *e) {
    struct sg_ptx *ptx = e->ptx;
    struct sg_ptx_symbol *symbol = named(ptx);
    if (!symbol)
        return sg_ptx_unexpected(ptx, "something that was declared");
    if (symbol->what == SG_SYMBOL_VARIABLE && symbol->space != SG_SPACE_GLOBAL &&
        symbol->space != SG_SPACE_CONST)
        return sg_ptx_unexpected(ptx, "a variable of .global or .const");
    symbol->referenced = true;
    struct sg_ptx_value value = {.kind = SG_VALUE_ADDRESS,
                                 .symbol = (size_t)(symbol - ptx->symbols)};
    return sg_ptx_next(ptx) && push_value(e, value);
}

static bool number_value(struct expression *e) {
    struct sg_ptx *ptx = e->ptx;
    struct sg_ptx_value value = {
        .kind = SG_VALUE_INTEGER, .number = ptx->word.number, .is_signed = ptx->word.is_signed};
    if (ptx->word.kind == SG_WORD_FLOAT && ptx->word.single) {
        uint32_t bits = (uint32_t)ptx->word.number;
        float real;
        memcpy(&real, &bits, sizeof real);
        value.kind = SG_VALUE_REAL;
        value.real = (double)real;
    } else if (ptx->word.kind == SG_WORD_FLOAT) {
        value.kind = SG_VALUE_REAL;
        memcpy(&value.real, &ptx->word.number, sizeof value.real);
    }
    return sg_ptx_next(ptx) && push_value(e, value);
}

/* ( of a cast, of generic(), of a mask, or on its own. */
static bool opened(struct expression *e) {
    struct sg_ptx *ptx = e->ptx;
    if (!sg_ptx_next(ptx))
        return false;
    bool is_signed = sg_ptx_is(ptx, ".s64");
    if (is_signed || sg_ptx_is(ptx, ".u64"))
        return sg_ptx_next(ptx) && sg_ptx_expect(ptx, ")") &&
               push_operator(
                   e, (struct operator){.kind = is_signed ? OP_SIGNED : OP_UNSIGNED, .rank = 11});
    return push_operator(e, (struct operator){.kind = OP_OPEN});
}

/* generic(x) + 4, and not generic(x + 4). */
static bool one_name(struct sg_ptx *ptx) {
    struct sg_words ahead = ptx->words;
    struct sg_word name, end;
    sg_words_next(&ahead, &name);
    sg_words_next(&ahead, &end);
    return (name.kind == SG_WORD_NAME && sg_word_is(&end, ")")) ||
           sg_ptx_wrong(ptx, "generic() wants the name of a variable");
}

static bool prefix(struct expression *e, bool *more) {
    static const struct {
        const char *text;
        enum operator_kind kind;
    } unary[] = {{"-", OP_MINUS}, {"+", OP_PLUS}, {"!", OP_NOT}, {"~", OP_COMPLEMENT}};
    struct sg_ptx *ptx = e->ptx;
    *more = true;
    if (sg_ptx_is(ptx, "("))
        return opened(e);
    for (size_t i = 0; i < sizeof unary / sizeof unary[0]; i++) {
        if (sg_ptx_is(ptx, unary[i].text))
            return sg_ptx_next(ptx) &&
                   push_operator(e, (struct operator){.kind = unary[i].kind, .rank = 11});
    }
    struct sg_words ahead = ptx->words;
    struct sg_word next;
    sg_words_next(&ahead, &next);
    bool open = sg_word_is(&next, "(");
    if (sg_ptx_is(ptx, "generic") && open)
        return sg_ptx_next(ptx) && one_name(ptx) &&
               push_operator(e, (struct operator){.kind = OP_GENERIC, .rank = 11});
    if (ptx->word.kind == SG_WORD_INTEGER && open) {
        uint64_t mask = ptx->word.number;
        return sg_ptx_next(ptx) &&
               push_operator(e, (struct operator){.kind = OP_MASK, .rank = 11, .mask = mask});
    }
    *more = false;
    if (ptx->word.kind == SG_WORD_NAME)
        return name_value(e);
    if (ptx->word.kind == SG_WORD_INTEGER || ptx->word.kind == SG_WORD_FLOAT)
        return number_value(e);
    return sg_ptx_unexpected(ptx, "a value");
}

/* Pops to the matching (; the operator before it, such as generic, then has high rank. */
static bool closed(struct expression *e, bool *ours) {
    if (!settle(e, 0))
        return false;
    *ours = e->operator_count > 0;
    if (!*ours)
        return true;
    if (e->operators[e->operator_count - 1].kind != OP_OPEN)
        return sg_ptx_unexpected(e->ptx, ":");
    e->operator_count--;
    return sg_ptx_next(e->ptx) && settle(e, 11);
}

static bool conditional(struct expression *e, bool question) {
    if (question)
        return settle(e, 1) && sg_ptx_next(e->ptx) &&
               push_operator(e, (struct operator){.kind = OP_QUESTION});
    if (!settle(e, 0))
        return false;
    if (!e->operator_count || e->operators[e->operator_count - 1].kind != OP_QUESTION)
        return sg_ptx_unexpected(e->ptx, "the end of the value");
    e->operators[e->operator_count - 1] = (struct operator){.kind = OP_COLON, .rank = 0};
    return sg_ptx_next(e->ptx);
}

/* What follows a value; *ended when it does not continue the expression. */
static bool infix(struct expression *e, bool *ended) {
    struct sg_ptx *ptx = e->ptx;
    *ended = false;
    while (sg_ptx_is(ptx, ")")) {
        bool ours;
        if (!closed(e, &ours))
            return false;
        if (!ours) {
            *ended = true;
            return true;
        }
    }
    if (sg_ptx_is(ptx, "?") || sg_ptx_is(ptx, ":"))
        return conditional(e, sg_ptx_is(ptx, "?"));
    for (size_t i = 0; i < sizeof binary / sizeof binary[0]; i++) {
        if (!sg_ptx_is(ptx, binary[i].text))
            continue;
        struct operator op = {OP_BINARY, ptx->word.text, ptx->word.length, binary[i].rank, 0};
        return settle(e, op.rank) && sg_ptx_next(ptx) && push_operator(e, op);
    }
    *ended = true;
    return true;
}

bool sg_ptx_value(struct sg_ptx *ptx, struct sg_ptx_value *value) {
    struct expression e = {.ptx = ptx};
    for (bool ended = false; !ended;) {
        bool more = true;
        while (more) {
            if (!prefix(&e, &more))
                return false;
        }
        if (!infix(&e, &ended))
            return false;
    }
    if (!settle(&e, 0))
        return false;
    if (e.operator_count || e.value_count != 1)
        return sg_ptx_unexpected(ptx, "the end of the value");
    *value = e.values[0];
    return true;
}
