/* Sets an instruction's members from its modifiers and types, by a rule of the table. */
#include "softgpu/program/build.h"

#include <string.h>

/* ---- words ----------------------------------------------------------------------------------- */

static const char *const roundings[] = {
#define SG_PROGRAM_ROUNDING(name, word) #word,
#include "softgpu/program/program_names.def"
    NULL};
static const char *const compares[] = {
#define SG_PROGRAM_COMPARE(name, word) #word,
#include "softgpu/program/program_names.def"
    NULL};
static const char *const booleans[] = {
#define SG_PROGRAM_BOOLEAN(name, word) #word,
#include "softgpu/program/program_names.def"
    NULL};
static const char *const semantics[] = {
#define SG_PROGRAM_SEMANTICS(name, word) #word,
#include "softgpu/program/program_names.def"
    NULL};
static const char *const scopes[] = {
#define SG_PROGRAM_SCOPE(name, word) #word,
#include "softgpu/program/program_names.def"
    "gl", NULL};
static const char *const spaces[] = {
#define SG_PROGRAM_SPACE(name, word) #word,
#include "softgpu/program/program_names.def"
    "shared_cta", "param_entry", "param_func", NULL};
static const char *const operations[] = {
#define SG_PROGRAM_OPERATION(name, word) #word,
#include "softgpu/program/program_names.def"
    NULL};
static const char *const geometries[] = {
#define SG_PROGRAM_GEOMETRY(name, word) #word,
#include "softgpu/program/program_names.def"
    NULL};
static const struct {
    const char *word;
    unsigned bit;
} flags[] = {
#define SG_PROGRAM_MODIFIER(name, word, bit) {#word, (bit)},
#include "softgpu/program/program_names.def"
};

/* Drops the leading dot and writes _ for ::; a word that is too long matches no rule. */
static void plain(const struct sg_word *word, char *to) {
    size_t at = 0;
    for (size_t i = 1; i < word->length && at + 1 < SG_MOST_WORD; i++) {
        bool colons = word->text[i] == ':';
        to[at++] = colons ? '_' : word->text[i];
        i += colons;
    }
    to[at] = '\0';
}

void sg_build_split(const struct sg_ptx_statement *statement, struct sg_build_words *words) {
    words->too_many = statement->modifier_count > SG_PTX_MODIFIERS;
    for (size_t i = 0; i < statement->modifier_count && !words->too_many; i++) {
        const struct sg_word *word = &statement->modifiers[i];
        unsigned type = sg_type_of_word(word->text + 1, word->length - 1);
        if (type == SG_TYPE_NONE)
            plain(word, words->each[words->count++].text);
        else if (words->type_count < 4)
            words->types[words->type_count++] = (unsigned char)type;
        else
            words->too_many = true;
    }
}

/* ---- choices --------------------------------------------------------------------------------- */

/* The position of a text in a list, counted from 1; 0: not found. */
static unsigned place_in(const char *const *list, const char *text, size_t length) {
    for (unsigned i = 0; list[i]; i++) {
        if (strlen(list[i]) == length && memcmp(list[i], text, length) == 0)
            return i + 1;
    }
    return 0;
}

static bool shape(const char *text, uint16_t *to) {
    static const char letters[] = "mnk";
    unsigned at = 0;
    for (; at < 3 && *text == letters[at]; at++) {
        unsigned number = 0;
        for (text++; *text >= '0' && *text <= '9' && number < 1000; text++)
            number = number * 10 + (unsigned)(*text - '0');
        to[at] = (uint16_t)number;
    }
    return at >= 2 && *text == '\0';
}

/* Stores a choice in its member; false: the member has no such value. */
static bool choose(struct sg_instruction *to, char field, const char *text, size_t length,
                   unsigned *layouts) {
    unsigned at = 0;
    switch (field) {
    case 'r':
        to->rounding = (unsigned char)(at = place_in(roundings, text, length));
        return at != 0;
    case 'c':
        to->compare = (unsigned char)(at = place_in(compares, text, length));
        return at != 0;
    case 'b':
        to->boolean = (unsigned char)(at = place_in(booleans, text, length));
        return at != 0;
    case 's':
        to->semantics = (unsigned char)(at = place_in(semantics, text, length));
        return at != 0;
    case 'x':
        at = place_in(scopes, text, length);
        to->scope = (unsigned char)(at == SG_SCOPE_COUNT ? SG_SCOPE_GPU : at);
        return at != 0;
    case 'S':
    case 'T':
        at = place_in(spaces, text, length);
        if (at >= SG_IN_COUNT)
            at = at == SG_IN_COUNT       ? SG_IN_SHARED
                 : at == SG_IN_COUNT + 1 ? SG_IN_PARAM
                                         : SG_IN_PARAM_FRAME;
        *(field == 'S' ? &to->space : &to->space2) = (unsigned char)at;
        return at != 0;
    case 'o':
        to->operation = (uint16_t)(at = place_in(operations, text, length));
        return at != 0;
    case 'p':
        to->operation2 = (uint16_t)(at = place_in(operations, text, length));
        return at != 0;
    case 'g':
        to->geometry = (unsigned char)(at = place_in(geometries, text, length));
        return at != 0;
    case 'v':
        to->vector = (unsigned char)(text[1] - '0');
        return true;
    case 'm':
        return shape(text, to->shape);
    case 'l':
        if (*text == 'c')
            to->modifiers |= *layouts ? SG_MOD(B_COLUMN) : SG_MOD(A_COLUMN);
        ++*layouts;
        return true;
    default:
        return false;
    }
}

static bool set_flag(struct sg_instruction *to, const char *text, size_t length) {
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        if (strlen(flags[i].word) == length && memcmp(flags[i].word, text, length) == 0) {
            to->modifiers |= (uint64_t)1 << flags[i].bit;
            return true;
        }
    }
    return false;
}

/* ---- modifiers ------------------------------------------------------------------------------- */

struct matching {
    struct sg_build_words *words;
    struct sg_instruction *to;
    unsigned layouts;
    bool policy; /* the last operand is a cache policy */
};

static bool same(const char *word, const char *text, size_t length) {
    return strlen(word) == length && memcmp(word, text, length) == 0;
}

static bool take_word(struct matching *m, const char *text, size_t length) {
    for (size_t i = 0; i < m->words->count; i++) {
        if (!m->words->each[i].used && same(m->words->each[i].text, text, length))
            return m->words->each[i].used = true;
    }
    return false;
}

static bool any_of(const char *list, size_t length, const char *word) {
    if (length == 1 && *list == '*')
        return true;
    for (size_t at = 0; at < length;) {
        const char *bar = memchr(list + at, '|', length - at);
        size_t one = bar ? (size_t)(bar - list) - at : length - at;
        if (same(word, list + at, one))
            return true;
        at += one + 1;
    }
    return false;
}

static bool take_choice(struct matching *m, char field, const char *list, size_t length) {
    for (size_t i = 0; i < m->words->count; i++) {
        const char *word = m->words->each[i].text;
        if (m->words->each[i].used || !any_of(list, length, word))
            continue;
        if (!choose(m->to, field, word, strlen(word), &m->layouts))
            continue;
        return m->words->each[i].used = true;
    }
    return false;
}

/* Consumes cache operators and priorities, which change no result. */
static void take_cache(struct matching *m) {
    static const char *const all[] = {"ca", "cg", "cs", "lu", "cv", "wb", "wt", NULL};
    for (size_t i = 0; i < m->words->count; i++) {
        const char *word = m->words->each[i].text;
        if (strncmp(word, "L1_", 3) != 0 && strncmp(word, "L2_", 3) != 0 &&
            !place_in(all, word, strlen(word)))
            continue;
        m->words->each[i].used = true;
        m->policy = m->policy || strcmp(word, "L2_cache_hint") == 0;
    }
}

/* One token of a rule's modifiers. */
static bool token(struct matching *m, const char *text, size_t length) {
    bool optional = text[length - 1] == '?';
    length -= optional;
    if (text[0] == '=') {
        return text[1] == 'f' ? set_flag(m->to, text + 3, length - 3)
                              : choose(m->to, text[1], text + 3, length - 3, &m->layouts);
    }
    if (same("CACHE", text, length)) {
        take_cache(m);
        return true;
    }
    bool taken;
    if (text[0] == '.')
        taken = take_word(m, text + 1, length - 1);
    else if (length > 2 && text[1] == ':')
        taken = take_choice(m, text[0], text + 2, length - 2);
    else
        taken = take_word(m, text, length) && set_flag(m->to, text, length);
    return taken || optional;
}

bool sg_build_modifiers_fit(struct sg_build_words *words, const char *rule,
                            struct sg_instruction *to, bool *policy) {
    struct matching matching = {.words = words, .to = to}, *m = &matching;
    for (size_t i = 0; i < words->count; i++)
        words->each[i].used = false;

    while (*rule) {
        size_t length = strcspn(rule, " ");
        if (length && !token(m, rule, length))
            return false;
        rule += length + (rule[length] == ' ');
    }
    for (size_t i = 0; i < words->count; i++) {
        if (!words->each[i].used)
            return false;
    }
    *policy = m->policy;
    return true;
}

/* ---- types ----------------------------------------------------------------------------------- */

bool sg_build_types_fit(const struct sg_build_words *words, const char *rule,
                        struct sg_instruction *to) {
    unsigned char *const members[] = {&to->type, &to->type2, &to->type3, &to->type4};
    unsigned count = 0;
    while (*rule) {
        size_t length = strcspn(rule, " ");
        if (length) {
            if (count == words->type_count ||
                !any_of(rule, length, sg_type_name(words->types[count])))
                return false;
            *members[count] = words->types[count];
            count++;
        }
        rule += length + (rule[length] == ' ');
    }
    return count == words->type_count;
}
