/* Words of PTX: names, dotted words, numbers, strings, operators; comments are blanks. */
#include "softgpu/ptx/ptx.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool digit(char c) {
    return c >= '0' && c <= '9';
}

static bool name_start(char c) {
    return letter(c) || c == '_' || c == '$' || c == '%';
}

static bool name_more(char c) {
    return letter(c) || digit(c) || c == '_' || c == '$';
}

static int hex_digit(char c) {
    if (digit(c))
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static char peek(const struct sg_words *words, size_t ahead) {
    return ahead < (size_t)(words->end - words->at) ? words->at[ahead] : '\0';
}

/* ptxas refuses non-ASCII bytes even in comments and strings. */
static bool ascii(const struct sg_words *words) {
    return (*words->at & 0x80) == 0;
}

/* False at a comment that is unterminated or not ASCII. */
static bool skip_blanks(struct sg_words *words) {
    for (;;) {
        char c = peek(words, 0);
        if (c == '/' && peek(words, 1) == '/') {
            for (; words->at < words->end && *words->at != '\n'; words->at++) {
                if (!ascii(words))
                    return false;
            }
        } else if (c == '/' && peek(words, 1) == '*') {
            words->at += 2;
            while (words->at < words->end && ascii(words) &&
                   !(*words->at == '*' && peek(words, 1) == '/'))
                words->line += *words->at++ == '\n';
            if (words->at == words->end || !ascii(words))
                return false;
            words->at += 2;
        } else if (c == ' ' || (c >= '\t' && c <= '\r')) {
            words->line += c == '\n';
            words->at++;
        } else {
            return true;
        }
    }
}

/* .word, with any ::word after it. */
static void take_dotted(struct sg_words *words) {
    words->at++;
    for (;;) {
        while (name_more(peek(words, 0)))
            words->at++;
        if (peek(words, 0) != ':' || peek(words, 1) != ':' || !name_more(peek(words, 2)))
            return;
        words->at += 2;
    }
}

/* ptxas keeps the lowest 64 bits of a number, as long as the highest one is clear before another
 * digit: 18446744073709551616 is 0, and 0x80000000000000000 is refused. */
static bool take_digits(struct sg_words *words, unsigned base, uint64_t *number) {
    bool fits = true, any = false;
    for (; words->at < words->end; words->at++, any = true) {
        int value = hex_digit(*words->at);
        if (value < 0 || value >= (int)base)
            break;
        fits = fits && *number >> 63 == 0;
        *number = *number * base + (unsigned)value;
    }
    return any && fits;
}

/* 0f and 0d are followed by the bits. */
static enum sg_word_kind take_bits(struct sg_words *words, struct sg_word *word, size_t count) {
    words->at += 2;
    const char *first = words->at;
    if (!take_digits(words, 16, &word->number) || (size_t)(words->at - first) != count)
        return SG_WORD_WRONG;
    word->single = count == 8;
    return SG_WORD_FLOAT;
}

/* Digits with a point or an exponent. */
static bool is_decimal_float(const struct sg_words *words) {
    size_t i = 0;
    while (digit(peek(words, i)))
        i++;
    char c = peek(words, i);
    if (c == '.')
        return !letter(peek(words, i + 1)) || peek(words, i + 1) == 'e' ||
               peek(words, i + 1) == 'E';
    if (c != 'e' && c != 'E')
        return false;
    c = peek(words, i + 1);
    return digit(c) || ((c == '+' || c == '-') && digit(peek(words, i + 2)));
}

static enum sg_word_kind take_decimal_float(struct sg_words *words, struct sg_word *word) {
    char copy[128];
    size_t length = 0;
    const char *first = words->at;
    while (length + 1 < sizeof copy) {
        char c = peek(words, 0);
        bool sign = (c == '+' || c == '-') && words->at > first &&
                    (words->at[-1] == 'e' || words->at[-1] == 'E');
        if (!digit(c) && c != '.' && c != 'e' && c != 'E' && !sign)
            break;
        copy[length++] = c;
        words->at++;
    }
    copy[length] = '\0';
    char *end;
    double value = strtod(copy, &end);
    memcpy(&word->number, &value, sizeof value);
    return *end == '\0' ? SG_WORD_FLOAT : SG_WORD_WRONG;
}

static enum sg_word_kind take_integer(struct sg_words *words, struct sg_word *word) {
    unsigned base = 10;
    char second = peek(words, 1);
    if (peek(words, 0) == '0') {
        if (second == 'x' || second == 'X')
            base = 16;
        else if (second == 'b' || second == 'B')
            base = 2;
        else if (digit(second))
            base = 8;
        words->at += base == 16 || base == 2 ? 2 : base == 8 ? 1 : 0;
    }
    if (!take_digits(words, base, &word->number))
        return SG_WORD_WRONG;
    word->is_signed = word->number <= INT64_MAX;
    if (peek(words, 0) == 'U') {
        word->is_signed = false;
        words->at++;
    }
    return name_more(peek(words, 0)) ? SG_WORD_WRONG : SG_WORD_INTEGER;
}

static enum sg_word_kind take_number(struct sg_words *words, struct sg_word *word) {
    char second = peek(words, 1);
    if (peek(words, 0) == '0' && (second == 'f' || second == 'F'))
        return take_bits(words, word, 8);
    if (peek(words, 0) == '0' && (second == 'd' || second == 'D'))
        return take_bits(words, word, 16);
    return is_decimal_float(words) ? take_decimal_float(words, word) : take_integer(words, word);
}

static enum sg_word_kind take_string(struct sg_words *words) {
    words->at++;
    while (words->at < words->end && *words->at != '"' && *words->at != '\n' && ascii(words))
        words->at +=
            *words->at == '\\' && words->end - words->at > 1 && words->at[1] != '\n' ? 2 : 1;
    if (peek(words, 0) != '"')
        return SG_WORD_WRONG;
    words->at++;
    return SG_WORD_STRING;
}

static enum sg_word_kind take_operator(struct sg_words *words) {
    static const char pairs[][3] = {"<<", ">>", "<=", ">=", "==", "!=", "&&", "||"};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        if (peek(words, 0) == pairs[i][0] && peek(words, 1) == pairs[i][1]) {
            words->at += 2;
            return SG_WORD_OPERATOR;
        }
    }
    return strchr("{}()[]<>,;:=+-*/!~&|^?@", *words->at++) ? SG_WORD_OPERATOR : SG_WORD_WRONG;
}

static enum sg_word_kind take(struct sg_words *words, struct sg_word *word) {
    char c = peek(words, 0);
    if (name_start(c)) {
        words->at++;
        while (name_more(peek(words, 0)))
            words->at++;
        return words->at - word->text == 1 && (c == '$' || c == '%') ? SG_WORD_WRONG : SG_WORD_NAME;
    }
    /* .5 is a number, but not after a name: %v.2 is not a number, and tex.2d has one more word. */
    if (c == '.' && (letter(peek(words, 1)) || peek(words, 1) == '_' ||
                     (digit(peek(words, 1)) && !word->apart))) {
        take_dotted(words);
        return SG_WORD_DOTTED;
    }
    if (digit(c) || (c == '.' && digit(peek(words, 1))))
        return take_number(words, word);
    return c == '"' ? take_string(words) : take_operator(words);
}

void sg_words_next(struct sg_words *words, struct sg_word *word) {
    const char *before = words->at;
    bool ended = skip_blanks(words);
    *word = (struct sg_word){.text = words->at, .line = words->line, .apart = words->at != before};
    if (!ended)
        word->kind = SG_WORD_WRONG;
    else if (words->at == words->end)
        word->kind = SG_WORD_END;
    else
        word->kind = take(words, word);
    word->length = (size_t)(words->at - word->text);
}

bool sg_word_is_any(const struct sg_word *word, const char *list) {
    while (*list) {
        size_t length = strcspn(list, " ");
        if (length == word->length && memcmp(list, word->text, length) == 0)
            return true;
        list += length + (list[length] == ' ');
    }
    return false;
}

bool sg_word_is(const struct sg_word *word, const char *text) {
    return word->length == strlen(text) && memcmp(word->text, text, word->length) == 0;
}
