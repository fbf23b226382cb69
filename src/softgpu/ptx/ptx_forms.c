/*
 * The forms of instructions that PTX has: words, types and operands by the table, which the decoder
 * uses as well. Texts have few distinct combinations of words, so that each is looked up in the
 * table once, and then in a table of this text.
 */
#include "softgpu/ptx/ptx.h"

#include <stdlib.h>
#include <string.h>

static const struct form {
    const char *opcode, *modifiers, *types, *operands;
    const char *refused;
} forms[] = {
#define SG_RULE(op, modifiers, types, operands) {#op, modifiers, types, operands, NULL},
#define SG_REFUSED(op, reason)                  {#op, NULL, NULL, NULL, reason},
#define SG_REFUSED_WORD(op, word, reason)       {#op, word, NULL, NULL, reason},
#include "softgpu/ptx/ptx_forms.def"
#undef SG_RULE
#undef SG_REFUSED
#undef SG_REFUSED_WORD
};
#define FORM_COUNT (sizeof forms / sizeof forms[0])

/* ---- words ----------------------------------------------------------------------------------- */

#define MOST_WORDS 24

struct words {
    struct word {
        const char *text; /* without its dot */
        size_t length;
        bool used, unheeded; /* unheeded: it may be there for nothing */
    } each[MOST_WORDS], types[4];
    unsigned count, type_count;
    bool too_many;
};

static bool is(const struct word *word, const char *text, size_t length) {
    /* shared_cluster in the table stands for shared::cluster. */
    size_t at = 0;
    for (size_t i = 0; i < length; i++, at++) {
        if (at >= word->length)
            return false;
        if (word->text[at] == text[i])
            continue;
        if (text[i] != '_' || word->text[at] != ':' || at + 1 >= word->length ||
            word->text[at + 1] != ':')
            return false;
        at++;
    }
    return at == word->length;
}

/* Whether a list a|b|c has it. */
static bool among(const struct word *word, const char *list, size_t length) {
    for (size_t at = 0; at < length;) {
        const char *bar = memchr(list + at, '|', length - at);
        size_t one = bar ? (size_t)(bar - list) - at : length - at;
        if (is(word, list + at, one))
            return true;
        at += one + 1;
    }
    return false;
}

static bool in_list(const char *text, const char *list) {
    const struct word word = {.text = text, .length = strlen(text)};
    return among(&word, list, strlen(list));
}

#define AMONG(word, list) among(word, list, sizeof(list) - 1)

static bool is_type(const struct word *word) {
    return AMONG(word, "pred|b1|b8|b16|b32|b64|b128|u2|u4|u8|u16|u32|u64|s2|s4|s8|s16|s32|s64|f16|"
                       "f16x2|bf16|bf16x2|f32|f32x2|f64|tf32|u16x2|s16x2|e4m3|e5m2|e4m3x2|e5m2x2");
}

/* What ptxas accepts any number of times, and words that it accepts everywhere. */
static bool is_repeated(const struct words *words, const struct word *word) {
    if (!AMONG(word, "NaN|approx|cc|relu|sat|shiftamt|sync|uni"))
        return false;
    for (unsigned i = 0; i < words->count; i++)
        if (words->each[i].length == word->length &&
            memcmp(words->each[i].text, word->text, word->length) == 0)
            return true;
    return false;
}

static void split(const struct sg_ptx_opcode *opcode, const char *at, size_t length,
                  struct words *words) {
    if (!at)
        return;
    const char *end = at + length;
    while ((at = memchr(at, '.', (size_t)(end - at))) != NULL) {
        struct word word = {.text = ++at};
        while (at < end && *at != '.' && *at > ' ' && *at != '/')
            at++;
        word.length = (size_t)(at - word.text);
        if (is_type(&word)) {
            words->too_many = words->too_many || words->type_count == 4;
            if (!words->too_many)
                words->types[words->type_count++] = word;
        } else if (!is_repeated(words, &word)) {
            word.unheeded = sg_ptx_unheeded(opcode, word.text, word.length);
            words->too_many = words->too_many || words->count == MOST_WORDS;
            if (!words->too_many)
                words->each[words->count++] = word;
        }
    }
}

static bool has(const struct words *words, const char *text) {
    for (unsigned i = 0; i < words->count; i++)
        if (is(&words->each[i], text, strlen(text)))
            return true;
    return false;
}

/* ---- words of a form ------------------------------------------------------------------------- */

static bool is_shape(const struct word *word) {
    return word->length > 3 && word->text[0] == 'm' && word->text[1] >= '0' &&
           word->text[1] <= '9' && memchr(word->text, 'n', word->length);
}

static bool any_value(char field, const struct word *word) {
    switch (field) {
    case 'c':
        return AMONG(word, "eq|ne|lt|le|gt|ge|lo|ls|hi|hs|equ|neu|ltu|leu|gtu|geu|num|nan");
    case 'm':
        return is_shape(word);
    default: /* g: geometries */
        return AMONG(word, "1d|2d|3d|a1d|a2d|cube|acube|2dms|a2dms");
    }
}

static bool is_cache(const struct word *word) {
    return (word->length > 4 &&
            (memcmp(word->text, "L1::", 4) == 0 || memcmp(word->text, "L2::", 4) == 0)) ||
           AMONG(word, "ca|cg|cs|lu|cv|wb|wt");
}

/* One token of a form's modifiers takes the words that it stands for. */
static bool take(struct words *words, const char *token, size_t length) {
    bool optional = token[length - 1] == '?', cache = length == 5 && !memcmp(token, "CACHE", 5);
    if (token[0] == '=')
        return true;
    length -= optional;
    bool choice = !cache && length > 2 && token[1] == ':';
    const char *list = token + (choice ? 2 : token[0] == '.');
    length -= (size_t)(list - token);
    for (unsigned i = 0; i < words->count; i++) {
        struct word *word = &words->each[i];
        if (word->used)
            continue;
        if (cache) {
            word->used = is_cache(word);
        } else if (choice && length == 1 && *list == '*' ? any_value(token[0], word)
                                                         : among(word, list, length)) {
            word->used = true;
            return true;
        }
    }
    return optional || cache;
}

static bool words_fit(struct words *words, const char *form) {
    for (unsigned i = 0; i < words->count; i++)
        words->each[i].used = false;
    while (*form) {
        size_t length = strcspn(form, " ");
        if (length && !take(words, form, length))
            return false;
        form += length + (form[length] == ' ');
    }
    for (unsigned i = 0; i < words->count; i++)
        if (!words->each[i].used && !words->each[i].unheeded)
            return false;
    return true;
}

static bool types_fit(const struct words *words, const char *form) {
    unsigned count = 0;
    while (*form) {
        size_t length = strcspn(form, " ");
        if (length && (count == words->type_count || !among(&words->types[count++], form, length)))
            return false;
        form += length + (form[length] == ' ');
    }
    return count == words->type_count;
}

/* A scope goes with an order, and an order with a scope; in spaces that no other thread reaches,
 * there is none. */
static bool ordered(const struct sg_ptx_opcode *opcode, const struct words *words) {
    bool access = in_list(opcode->name, "ld|st"), order = false, scope = false, own = false;
    unsigned caches = 0;
    for (unsigned i = 0; i < words->count; i++)
        caches += AMONG(&words->each[i], "ca|cg|cs|lu|cv|wb|wt");
    if (caches > 1)
        return false;
    if (!access && !in_list(opcode->name, "mbarrier"))
        return true;
    for (unsigned i = 0; i < words->count; i++) {
        const struct word *word = &words->each[i];
        order = order || AMONG(word, "relaxed|acquire|release");
        scope = scope || AMONG(word, "cta|cluster|gpu|sys");
        own = own || AMONG(word, "param|param_entry|param_func|const");
    }
    bool local = has(words, "local");
    bool elsewhere = local || own || has(words, "shared") || has(words, "shared_cta") ||
                     has(words, "shared_cluster");
    if (has(words, "nc") && (elsewhere || !has(words, "global")))
        return false;
    if (has(words, "mmio") && (elsewhere || !has(words, "relaxed") || !has(words, "sys")))
        return false;
    return order == scope && !((own || local) && order) && !(own && has(words, "volatile"));
}

/* ---- the table of a text --------------------------------------------------------------------- */

struct sg_ptx_combination {
    const struct sg_ptx_opcode *opcode; /* NULL: a free place */
    const char *text;
    size_t length;
    size_t first, count; /* of its forms, in `fitting` */
    struct sg_ptx_kind types[4];
    unsigned char vector; /* .v4 */
    bool policy;          /* the last operand is a cache policy */
    bool wider;           /* registers may be wider than the type */
    bool sink;            /* its result may be _ */
    bool negatable;       /* -r */
    unsigned char strict; /* cvt: bytes of a type whose registers are no wider */
    bool bits;            /* u: any 32 bits */
    bool video;           /* of bytes or halves, which take no constants */
    bool converts;        /* cvt, which reads special registers */
    unsigned char space;  /* that cvta names */
    bool checked;         /* the text's version has it */
    bool open;            /* legal, with operands that are not known here */
};

static size_t hash(const struct sg_ptx_opcode *opcode, const char *text, size_t length) {
    uint64_t sum = (uintptr_t)opcode ^ length;
    while (length) {
        uint64_t part = 0;
        size_t step = length < 8 ? length : 8;
        memcpy(&part, text, step);
        sum = (sum ^ part) * 0x9e3779b97f4a7c15u;
        sum ^= sum >> 29;
        text += step;
        length -= step;
    }
    return (size_t)(sum ^ sum >> 17);
}

static struct sg_ptx_combination *place(const struct sg_ptx_combinations *table,
                                        const struct sg_ptx_opcode *opcode, const char *text,
                                        size_t length) {
    size_t at = hash(opcode, text, length);
    struct sg_ptx_combination *found;
    do {
        found = &table->slots[at++ & (table->room - 1)];
    } while (found->opcode && (found->opcode != opcode || found->length != length ||
                               (length && memcmp(found->text, text, length) != 0)));
    return found;
}

static bool make_room(struct sg_ptx_combinations *table) {
    if (2 * table->used < table->room)
        return true;
    struct sg_ptx_combinations grown = *table;
    grown.room = table->room ? 2 * table->room : 128;
    grown.slots = calloc(grown.room, sizeof *grown.slots);
    if (!grown.slots)
        return false;
    for (size_t i = 0; i < table->room; i++) {
        const struct sg_ptx_combination *one = &table->slots[i];
        if (one->opcode)
            *place(&grown, one->opcode, one->text, one->length) = *one;
    }
    free(table->slots);
    *table = grown;
    return true;
}

void sg_ptx_forms_clear(struct sg_ptx_combinations *table) {
    free(table->slots);
    free(table->fitting);
}

/* The first of an opcode, or where it would be: the table is sorted by them. */
static size_t first_form(const char *name) {
    size_t low = 0, high = FORM_COUNT;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(forms[middle].opcode, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void find(struct sg_ptx_combinations *table, struct words *words,
                 struct sg_ptx_combination *to, bool *no_memory) {
    const char *name = to->opcode->name;
    for (size_t i = first_form(name);
         i < FORM_COUNT && strcmp(forms[i].opcode, name) == 0 && !to->open; i++) {
        if (forms[i].refused) {
            to->open = !forms[i].modifiers || has(words, forms[i].modifiers);
            continue;
        }
        if (!words_fit(words, forms[i].modifiers) || !types_fit(words, forms[i].types))
            continue;
        unsigned short *grown = sg_image_grow(table->fitting, &table->fitting_count, sizeof *grown);
        if (!grown) {
            *no_memory = true;
            return;
        }
        table->fitting = grown;
        grown[table->fitting_count - 1] = (unsigned short)i;
        to->count++;
    }
}

/* cvt takes registers that are wider than a type, but not for bf16 and for packed types. */
static unsigned char strict(const struct sg_ptx_opcode *opcode, const struct words *words) {
    unsigned char width = 0;
    for (unsigned i = 0; i < words->type_count && in_list(opcode->name, "cvt"); i++) {
        if (AMONG(&words->types[i], "bf16|e4m3x2|e5m2x2"))
            width = 2;
        else if (AMONG(&words->types[i], "bf16x2|tf32"))
            width = width ? width : 4;
    }
    return width;
}

static bool without_predicates(struct words *words) {
    unsigned kept = 0;
    for (unsigned i = 0; i < words->type_count; i++)
        if (!AMONG(&words->types[i], "pred"))
            words->types[kept++] = words->types[i];
    words->type_count = kept;
    return kept > 0;
}

/* Vectors of more than 128 bits are of targets from sm_100 on. */
static bool narrow(const struct sg_ptx_combination *one) {
    return !in_list(one->opcode->name, "atom|ld|ldu|mov|red|st") ||
           (size_t)one->vector * one->types[0].width <= 16;
}

static struct sg_ptx_combination *combination(struct sg_ptx *ptx,
                                              const struct sg_ptx_opcode *opcode,
                                              const struct sg_ptx_given *given) {
    struct sg_ptx_combinations *table = &ptx->combinations;
    if (!make_room(table)) {
        sg_ptx_no_memory(ptx);
        return NULL;
    }
    struct sg_ptx_combination *found =
        place(table, opcode, given->modifiers, given->modifiers_length);
    if (found->opcode)
        return found;
    struct words words = {0};
    bool no_memory = false;
    split(opcode, given->modifiers, given->modifiers_length, &words);
    *found = (struct sg_ptx_combination){
        .opcode = opcode,
        .text = given->modifiers,
        .length = given->modifiers_length,
        .first = table->fitting_count,
        .vector = has(&words, "v2")   ? 2
                  : has(&words, "v4") ? 4
                  : has(&words, "v8") ? 8
                                      : 1,
        .wider = in_list(opcode->name, "cvt|ld|ldu|st|suld|sured|sust"),
        .sink = in_list(opcode->name, "atom|elect|lop3|match|"
                                      "mbarrier|setp|shfl"),
        .negatable = in_list(opcode->name, "vmad"),
        .bits = in_list(opcode->name, "fns|shfl"),
        .video = opcode->name[0] == 'v' && strpbrk(opcode->name, "24"),
        .strict = strict(opcode, &words),
        .converts = in_list(opcode->name, "cvt"),
        .space = in_list(opcode->name, "cvta") ? (unsigned char)given->space
                                               : (unsigned char)SG_SPACE_NONE,
        .policy = has(&words, "L2::cache_hint")};
    table->used++;
    for (unsigned i = 0; i < words.type_count; i++)
        found->types[i] = sg_ptx_kind_of(words.types[i].text - 1, words.types[i].length + 1);
    if (!words.too_many && ordered(opcode, &words) && narrow(found))
        find(table, &words, found, &no_memory);
    /* ptxas accepts .pred beside other types, where it means nothing. */
    bool idle = (opcode->modifiers || in_list(opcode->name, "atom|red")) && given->predicate &&
                words.type_count > 1 && !in_list(opcode->name, "and|mov|not|or|selp|xor");
    if (!found->count && !found->open && idle && without_predicates(&words))
        find(table, &words, found, &no_memory);
    return no_memory ? (sg_ptx_no_memory(ptx), NULL) : found;
}

/* ---- operands -------------------------------------------------------------------------------- */

static struct sg_ptx_kind kind(unsigned class, size_t width) {
    return (struct sg_ptx_kind){(enum sg_ptx_class) class, width};
}

/* The type that a letter of a form stands for; none: it is not compared. */
static struct sg_ptx_kind type_of(char letter, const struct sg_ptx_combination *one) {
    switch (letter) {
    case 'd':
    case '1':
    case 'D':
    case 'V':
        return one->types[0];
    case '2':
        return one->types[1];
    case '3':
        return one->types[2];
    case 'W':
    case 'w':
        return kind(one->types[0].class, 2 * one->types[0].width);
    case 'X':
        return kind(SG_CLASS_BITS, 4);
    case 'Q':
    case 'q':
        return kind(SG_CLASS_BITS, 8);
    case 'h':
        return kind(SG_CLASS_BITS, 2);
    case 'f':
        return kind(SG_CLASS_REAL, 4);
    case 'p':
    case 'P':
    case 'x':
        return kind(SG_CLASS_PREDICATE, 1);
    case 'u':
        return kind(one->bits ? SG_CLASS_BITS : SG_CLASS_INTEGER, 4);
    case 'U':
    case 'i':
    case 'v': /* of video instructions */
    case 'a':
    case 's':
    case 'b':
    case 'S':
    case 'e':
    case 'E':
    case 'c':
    case 'g':
        return kind(SG_CLASS_INTEGER, 4);
    default:
        return kind(SG_CLASS_NONE, 0);
    }
}

/* A constant of a type: whole ones are no floats, and floats no integers. */
static bool constant(const struct sg_ptx_shape *shape, struct sg_ptx_kind type) {
    bool real = type.class == SG_CLASS_REAL || type.class == SG_CLASS_PAIR;
    if (real && type.width > 2 && type.class == SG_CLASS_REAL)
        return !shape->whole;
    bool bits = type.class == SG_CLASS_BITS && type.width == (shape->single ? 4 : 8);
    return !real && (!shape->real || bits || type.class == SG_CLASS_NONE);
}

static bool agrees(const struct sg_ptx_shape *shape, struct sg_ptx_kind type,
                   const struct sg_ptx_combination *one) {
    bool strict = one->strict && (type.class == SG_CLASS_PAIR || type.width == one->strict);
    bool wider = one->wider && !strict;
    return sg_ptx_agrees(kind(shape->class, shape->width), type, wider);
}

/* In braces; bits go with either. */
static bool mixed(const struct sg_ptx_shape *shape) {
    return shape->reals && shape->integers;
}

static bool vector(char letter, const struct sg_ptx_shape *shape, struct sg_ptx_kind type,
                   const struct sg_ptx_combination *one) {
    if (shape->vector)
        return true;
    if (mixed(shape))
        return false;
    if (shape->what == SG_SHAPE_VECTOR && (one->vector == 1 || shape->count == one->vector))
        return letter == 'D' ? !shape->whole && !shape->real && agrees(shape, type, one)
                             : !shape->holes && agrees(shape, type, one) &&
                                   (!shape->whole || constant(shape, type));
    return false;
}

static bool written(char letter, const struct sg_ptx_shape *shape,
                    const struct sg_ptx_combination *one) {
    struct sg_ptx_kind type = type_of(letter, one);
    bool pairs = letter == 'x' || letter == 'X';
    if (shape->negated || (shape->pair && (!pairs || !shape->second)))
        return false;
    if (shape->what == SG_SHAPE_NOTHING)
        return one->sink && (letter != 'X' || shape->pair);
    return shape->what == SG_SHAPE_REGISTER && !shape->vector && agrees(shape, type, one);
}

static bool read(char letter, const struct sg_ptx_shape *shape,
                 const struct sg_ptx_combination *one) {
    struct sg_ptx_kind type = type_of(letter, one);
    bool predicate = letter == 'P', negatable = predicate || one->negatable;
    if ((shape->negated && !negatable) || shape->pair)
        return false;
    switch ((int)shape->what) {
    case SG_SHAPE_REGISTER:
        return !shape->vector && agrees(shape, type, one);
    case SG_SHAPE_NUMBER:
        if (one->video)
            return false;
        return predicate ? !shape->real : constant(shape, type);
    case SG_SHAPE_LIST: /* (3) */
        return true;
    case SG_SHAPE_NAME: /* a sum of a variable's address is computed; a name alone is not read */
        return (shape->sum || shape->function) && !shape->label && !one->video &&
               (type.class == SG_CLASS_INTEGER || type.class == SG_CLASS_BITS || shape->function);
    case SG_SHAPE_SPECIAL: /* cvt makes integers of them */
        return letter == '2' && one->converts && !one->strict && type.class == SG_CLASS_INTEGER &&
               one->types[0].class == SG_CLASS_INTEGER && type.width <= shape->widths;
    default:
        return false;
    }
}

/* What mov reads of a special register. */
static bool special(const struct sg_ptx_shape *shape, const struct sg_ptx_combination *one) {
    struct sg_ptx_kind type = one->types[0];
    bool bits = type.class == SG_CLASS_INTEGER || type.class == SG_CLASS_BITS;
    return shape->triple == (shape->member == (one->vector == 1)) && shape->widths & type.width &&
           (bits ? type.width > 1 : type.class == SG_CLASS_PREDICATE);
}

/* A register, or a variable, in its own space where cvta names one. */
static bool addressed(const struct sg_ptx_shape *shape, const struct sg_ptx_combination *one) {
    if (shape->what == SG_SHAPE_NAME)
        return !shape->label && (!one->space || one->space == shape->space);
    return shape->what == SG_SHAPE_NUMBER || shape->what == SG_SHAPE_LIST ||
           (shape->what == SG_SHAPE_REGISTER && !shape->vector && !shape->negated &&
            shape->class != SG_CLASS_REAL && shape->class != SG_CLASS_PREDICATE &&
            shape->width != 1 && shape->width != 2);
}

static bool fits(char letter, const struct sg_ptx_shape *shape,
                 const struct sg_ptx_combination *one) {
    struct sg_ptx_kind type = type_of(letter, one);
    switch (letter) {
    case 'd':
    case 'U':
    case 'Q':
    case 'W':
    case 'p':
    case 'x':
    case 'X':
        return written(letter, shape, one);
    case 'v':
        return shape->what == SG_SHAPE_NOTHING || written(letter, shape, one);
    case 'D':
    case 'V':
        return vector(letter, shape, type, one) ||
               (one->vector == 1 &&
                (letter == 'D' ? written('d', shape, one) : read('1', shape, one)));
    case 'A':
        return (shape->what == SG_SHAPE_ADDRESS && !shape->count) || shape->indexed;
    case 'K':
    case 'k':
        return shape->vector ||
               (shape->what == SG_SHAPE_VECTOR && (letter == 'K' || !shape->holes));
    case 'H':
        return shape->what == SG_SHAPE_ADDRESS && (shape->opaque || shape->width == 8 ||
                                                   (!shape->width && shape->space == SG_SPACE_REG));
    case 'G':
        if (shape->what == SG_SHAPE_VECTOR &&
            ((one->vector == 1 && shape->count > 1) || shape->whole || shape->real))
            return false;
        return shape->vector || !shape->pair || shape->second;
    case 'R':
        return !shape->holes;
    case 'N':
        return shape->what == SG_SHAPE_VECTOR ? !shape->whole && !shape->real && !mixed(shape)
                                              : shape->vector || written('d', shape, one);
    case 'm':
    case 'n':
        return shape->what != SG_SHAPE_ADDRESS && shape->what != SG_SHAPE_NOTHING &&
               !shape->holes && !shape->label &&
               (shape->what != SG_SHAPE_SPECIAL || special(shape, one)) && !mixed(shape) &&
               (!shape->opaque ||
                (one->types[0].width == 8 && one->types[0].class == SG_CLASS_INTEGER)) &&
               (shape->what != SG_SHAPE_NUMBER || letter == 'n' || constant(shape, one->types[0]));
    case 'L':
    case 'T':
        return shape->label || (shape->what == SG_SHAPE_NAME && shape->space == SG_SPACE_NONE);
    case 'i':
        return (shape->what == SG_SHAPE_NUMBER && !shape->real) || shape->what == SG_SHAPE_LIST;
    case 'y':
        return addressed(shape, one);
    default:
        return read(letter, shape, one);
    }
}

static bool operands_fit(const char *form, const struct sg_ptx_given *given,
                         const struct sg_ptx_combination *one) {
    unsigned count = given->count - (one->policy && given->count), at = 0;
    bool optional = false;
    if (one->policy && count < given->count && count < SG_PTX_SHAPES &&
        !fits('q', &given->shapes[count], one))
        return false;
    for (; *form; form++) {
        if (*form == '?')
            optional = true;
        else if (at == count)
            return optional;
        else if (at < SG_PTX_SHAPES && !fits(*form, &given->shapes[at], one))
            return false;
        else
            at++;
    }
    return at == count;
}

/* ---- the instruction ------------------------------------------------------------------------- */

bool sg_ptx_check_words(struct sg_ptx *ptx, const struct sg_ptx_opcode *opcode,
                        struct sg_ptx_given *given) {
    static const char call[] = "call";
    /* Forms of later targets are not in the table: their texts are linked, and never loaded. */
    if (ptx->image->target > 90)
        return sg_ptx_since_modifiers(ptx, opcode, given);
    struct sg_ptx_combination *one = combination(ptx, opcode, given);
    if (!one)
        return false;
    if (!one->checked && !sg_ptx_since_modifiers(ptx, opcode, given))
        return false;
    one->checked = true;
    given->combination = (size_t)(one - ptx->combinations.slots) + 1;
    return one->count || one->open || strcmp(opcode->name, call) == 0 ||
           sg_ptx_wrong(ptx, "there is no %s%.*s", opcode->name,
                        one->length < 120 ? (int)one->length : 120, one->text ? one->text : "");
}

bool sg_ptx_check_operands(struct sg_ptx *ptx, const struct sg_ptx_opcode *opcode,
                           const struct sg_ptx_given *given) {
    const struct sg_ptx_combination *one =
        given->combination ? &ptx->combinations.slots[given->combination - 1] : NULL;
    if (!one || !one->count || one->open)
        return true;
    for (size_t i = 0; i < one->count; i++)
        if (operands_fit(forms[ptx->combinations.fitting[one->first + i]].operands, given, one))
            return true;
    if (given->unknown.text) {
        ptx->word.line = given->unknown.line;
        return sg_ptx_wrong(ptx, "'%.*s' was not declared, or is no operand here",
                            given->unknown.length < 80 ? (int)given->unknown.length : 80,
                            given->unknown.text);
    }
    return sg_ptx_wrong(ptx, "%s%.*s does not take such operands", opcode->name,
                        one->length < 120 ? (int)one->length : 120, one->text ? one->text : "");
}
