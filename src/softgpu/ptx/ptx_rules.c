/*
 * What an instruction must obey: its modifiers, the types of its registers, the state space of its
 * address, the prototype of what it calls, the device and the version that support it. Each rule
 * refuses what ptxas of CUDA 13.0 refuses, and no more: a text that hardware accepts must never be
 * refused.
 */
#include "softgpu/ptx/ptx.h"

#include <string.h>

/* ---- modifiers ------------------------------------------------------------------------------- */

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

struct sg_ptx_kind sg_ptx_kind_of(const char *name, size_t length) {
    static const struct {
        const char *text;
        struct sg_ptx_kind kind;
    } kinds[] = {
        {".u8", {SG_CLASS_INTEGER, 1}},    {".s8", {SG_CLASS_INTEGER, 1}},
        {".b8", {SG_CLASS_BITS, 1}},       {".u16", {SG_CLASS_INTEGER, 2}},
        {".s16", {SG_CLASS_INTEGER, 2}},   {".b16", {SG_CLASS_BITS, 2}},
        {".u32", {SG_CLASS_INTEGER, 4}},   {".s32", {SG_CLASS_INTEGER, 4}},
        {".b32", {SG_CLASS_BITS, 4}},      {".u64", {SG_CLASS_INTEGER, 8}},
        {".s64", {SG_CLASS_INTEGER, 8}},   {".b64", {SG_CLASS_BITS, 8}},
        {".b128", {SG_CLASS_BITS, 16}},    {".f16", {SG_CLASS_REAL, 2}},
        {".bf16", {SG_CLASS_REAL, 2}},     {".f32", {SG_CLASS_REAL, 4}},
        {".f64", {SG_CLASS_REAL, 8}},      {".f16x2", {SG_CLASS_PAIR, 4}},
        {".bf16x2", {SG_CLASS_PAIR, 4}},   {".u16x2", {SG_CLASS_INTEGER, 4}},
        {".s16x2", {SG_CLASS_INTEGER, 4}}, {".pred", {SG_CLASS_PREDICATE, 1}},
        {".tf32", {SG_CLASS_PAIR, 4}},     {".e4m3x2", {SG_CLASS_PAIR, 2}},
        {".e5m2x2", {SG_CLASS_PAIR, 2}},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strlen(kinds[i].text) == length && memcmp(kinds[i].text, name, length) == 0)
            return kinds[i].kind;
    }
    return (struct sg_ptx_kind){0};
}

#define NOWHERE 64

/* Position in a blank-separated list of names; NOWHERE when absent. */
static unsigned place_in(const char *list, const char *name, size_t length) {
    for (unsigned at = 0; *list && at < NOWHERE; at++) {
        size_t one = strcspn(list, " ");
        if (one == length && memcmp(list, name, length) == 0)
            return at;
        list += one + (list[one] == ' ');
    }
    return NOWHERE;
}

/* Targets of later devices accept more: their texts are linked, but never loaded by sm_90. */
static bool newer_target(const struct sg_ptx *ptx) {
    return ptx->image->target >= 100;
}

/* ptxas accepts these with any opcode, and heeds them only where they mean something. */
static const char unheeded[] =
    "b2 b4x16_p64 b6x16_p32 b8x16 box_dim element_stride elemtype fill_mode finite global_address "
    "global_dim global_stride infinite interleave_layout normal notanumber number rank samplerref "
    "subnormal surfref swizzle_atomicity swizzle_mode texref";

bool sg_ptx_unheeded(const struct sg_ptx_opcode *opcode, const char *name, size_t length) {
    return (!opcode->modifiers || place_in(opcode->modifiers, name, length) == NOWHERE) &&
           place_in(unheeded, name, length) != NOWHERE;
}

/* Flags that ptxas accepts any number of times; all others at most once. */
static const char repeatable[] = "NaN approx cc relu sat shiftamt uni";

/* Sets *known to whether the opcode has this modifier. */
static bool listed(struct sg_ptx *ptx, const struct sg_ptx_opcode *opcode,
                   struct sg_ptx_given *given, bool *known) {
    const char *name = ptx->word.text + 1;
    size_t length = ptx->word.length - 1;
    unsigned at = opcode->modifiers ? place_in(opcode->modifiers, name, length) : NOWHERE;
    *known = at != NOWHERE;
    if (!*known)
        return true;
    bool again = given->seen >> at & 1;
    given->seen |= (uint64_t)1 << at;
    return !again || place_in(repeatable, name, length) != NOWHERE || newer_target(ptx) ||
           sg_ptx_wrong(ptx, "'.%.*s' is given twice", length < 60 ? (int)length : 60, name);
}

static bool type_modifier(struct sg_ptx *ptx, const struct sg_ptx_opcode *opcode,
                          struct sg_ptx_given *given) {
    struct sg_ptx_kind kind = sg_ptx_kind_of(ptx->word.text, ptx->word.length);
    if (given->type_count < 2)
        given->types[given->type_count] = kind;
    given->real = given->real || (kind.class == SG_CLASS_REAL && kind.width > 2);
    given->type_count++;
    given->predicate = given->predicate || kind.class == SG_CLASS_PREDICATE;
    /* ptxas accepts .pred beside another type. */
    return !opcode->types || given->predicate || given->type_count <= opcode->types ||
           newer_target(ptx) || sg_ptx_wrong(ptx, "%s takes fewer types", opcode->name);
}

/* Notes what later rules need to know. */
static void note(const struct sg_word *word, struct sg_ptx_given *given) {
    given->rounded = given->rounded || names_rounding(word);
    given->wide = given->wide || sg_word_is(word, ".wide");
    const char *colon = memchr(word->text, ':', word->length);
    struct sg_word space = *word;
    space.length = colon ? (size_t)(colon - word->text) : word->length;
    if (sg_ptx_space(&space) != SG_SPACE_NONE)
        given->space = sg_ptx_space(&space);
}

bool sg_ptx_check_modifier(struct sg_ptx *ptx, const struct sg_ptx_opcode *opcode,
                           struct sg_ptx_given *given) {
    const struct sg_word *word = &ptx->word;
    int length = word->length < 60 ? (int)word->length : 60;
    bool known, ignored;
    if (!sg_ptx_modifier(word->text, word->length))
        return sg_ptx_wrong(ptx, "unknown modifier '%.*s'", length, word->text);
    if (!listed(ptx, opcode, given, &known))
        return false;
    ignored = opcode->modifiers && sg_ptx_unheeded(opcode, word->text + 1, word->length - 1);
    if (!known && !ignored && names_type(word)) /* .f4e of prmt is not a type */
        return type_modifier(ptx, opcode, given);
    if (!known && !ignored && opcode->modifiers && !newer_target(ptx))
        return sg_ptx_wrong(ptx, "%s does not take '%.*s'", opcode->name, length, word->text);
    note(word, given);
    return true;
}

/* ---- registers ------------------------------------------------------------------------------- */

bool sg_ptx_agrees(struct sg_ptx_kind is, struct sg_ptx_kind wanted, bool wider) {
    if (is.class == SG_CLASS_NONE || wanted.class == SG_CLASS_NONE)
        return true;
    /* ptxas accepts .f16x2 as a predicate, too. */
    if (wanted.class == SG_CLASS_PREDICATE)
        return is.class == SG_CLASS_PREDICATE || is.class == SG_CLASS_PAIR;
    if (wanted.class == SG_CLASS_PAIR && is.class == SG_CLASS_PREDICATE)
        return true;
    if (is.class == SG_CLASS_PREDICATE || is.width < wanted.width ||
        (is.width > wanted.width && !wider))
        return false;
    switch (wanted.class) {
    case SG_CLASS_INTEGER:
        return is.class != SG_CLASS_REAL;
    case SG_CLASS_REAL:
        return is.class == SG_CLASS_BITS || (is.class == SG_CLASS_REAL && is.width == wanted.width);
    case SG_CLASS_PAIR:
        return is.class == SG_CLASS_BITS || is.class == SG_CLASS_PAIR;
    default:
        return true;
    }
}

static struct sg_ptx_kind wanted_kind(char letter, const struct sg_ptx_given *given) {
    struct sg_ptx_kind kind = {0};
    switch (letter) {
    case '2':
    case 'y':
        return given->types[1];
    case '1':
    case 'x':
        return given->types[0];
    case 'w':
        kind = given->types[0];
        kind.width *= given->wide ? 2 : 1;
        return kind;
    case 'u':
        return (struct sg_ptx_kind){SG_CLASS_INTEGER, 4};
    case 'p':
        return (struct sg_ptx_kind){SG_CLASS_PREDICATE, 1};
    default:
        return kind;
    }
}

static bool registers(struct sg_ptx *ptx, const struct sg_ptx_opcode *opcode,
                      const struct sg_ptx_given *given) {
    /* With more types than the opcode takes, they describe the operands in another way. */
    if (!opcode->operands || given->type_count > (opcode->types ? opcode->types : 2))
        return true;
    for (size_t i = 0; i < SG_PTX_OPERANDS && i < given->count && opcode->operands[i]; i++) {
        char letter = opcode->operands[i];
        if (!sg_ptx_agrees(given->registers[i], wanted_kind(letter, given),
                           letter == 'x' || letter == 'y'))
            return sg_ptx_wrong(ptx, "operand %zu of %s is not of its type", i + 1, opcode->name);
    }
    return true;
}

/* ---- addresses ------------------------------------------------------------------------------- */

static bool space_matches(enum sg_space is, enum sg_space wanted) {
    if (wanted != SG_SPACE_NONE)
        return is == wanted;
    return is == SG_SPACE_GLOBAL || is == SG_SPACE_SHARED || is == SG_SPACE_LOCAL;
}

/* tex, tld4, txq; suld, suq, sured, sust */
static bool names_textures(const struct sg_ptx_opcode *opcode) {
    return opcode->name[0] == 't' || (memcmp(opcode->name, "su", 2) == 0 && opcode->name[2] != 'b');
}

static bool address(struct sg_ptx *ptx, const struct sg_ptx_opcode *opcode,
                    const struct sg_ptx_given *given) {
    const struct sg_ptx_use *at = &given->address;
    if (at->kind.width == 1 || at->kind.width == 2)
        ptx->tiny_addresses = true;
    if (at->symbol && ptx->symbols[at->symbol - 1].what == SG_SYMBOL_OPAQUE &&
        !names_textures(opcode))
        return sg_ptx_wrong(ptx, "%s takes no texture and no surface", opcode->name);
    bool shared = strcmp(opcode->name, "mbarrier") == 0, other = at->space != SG_SPACE_NONE &&
                                                                 at->space != SG_SPACE_REG &&
                                                                 at->space != SG_SPACE_SHARED;
    if (shared && given->addressed && other)
        return sg_ptx_wrong(ptx, "an mbarrier is in shared memory");
    bool query = strcmp(opcode->name, "txq") == 0 || strcmp(opcode->name, "suq") == 0;
    bool wide = at->space == SG_SPACE_REG && (at->kind.width == 8 || !at->kind.width);
    bool opaque = at->symbol && ptx->symbols[at->symbol - 1].what == SG_SYMBOL_OPAQUE;
    if (query && given->addressed && !wide && !opaque)
        return sg_ptx_wrong(ptx, "%s takes a reference or 64 bits in a register", opcode->name);
    if (given->absolute && given->space != SG_SPACE_LOCAL)
        return sg_ptx_wrong(ptx, "a number is an address of local memory alone");
    if (!opcode->spaces)
        return true;
    if (given->space != SG_SPACE_NONE && !(opcode->spaces >> given->space & 1))
        return sg_ptx_wrong(ptx, "%s is not for this state space", opcode->name);
    if (!given->addressed)
        return true;
    if (at->space != SG_SPACE_NONE && at->space != SG_SPACE_REG)
        return space_matches(at->space, given->space) ||
               sg_ptx_wrong(ptx, "the address is of another state space than %s", opcode->name);
    if (at->kind.class != SG_CLASS_NONE && at->kind.class != SG_CLASS_BITS &&
        at->kind.class != SG_CLASS_INTEGER)
        return sg_ptx_wrong(ptx, "the address is no integer");
    /* In the other spaces any width is accepted. */
    bool whole = given->space == SG_SPACE_NONE || given->space == SG_SPACE_GLOBAL;
    if (whole && at->kind.width == 4 && !ptx->short_address)
        ptx->short_address = ptx->word.line;
    return true;
}

/* An address of global memory in 32 bits, which makes the whole text one of the 32-bit ABI. */
static void narrow(struct sg_ptx *ptx, const struct sg_ptx_opcode *opcode,
                   const struct sg_ptx_given *given) {
    bool is_short = strcmp(opcode->name, "cvta") == 0;
    if (strcmp(opcode->name, "mov") == 0 && given->target && !given->sums) {
        const struct sg_ptx_symbol *symbol = &ptx->symbols[given->target - 1];
        is_short = symbol->what == SG_SYMBOL_VARIABLE && symbol->space == SG_SPACE_GLOBAL;
    }
    if (is_short && given->types[0].width == 4 && !ptx->short_address)
        ptx->short_address = ptx->word.line;
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* A function, or a register, which needs a prototype or a list behind its arguments. */
static bool callee(struct sg_ptx *ptx, const struct sg_ptx_given *given) {
    unsigned at = given->shapes[0].what == SG_SHAPE_LIST && given->count > 1;
    const struct sg_ptx_shape *to = &given->shapes[at], *last = &given->shapes[given->count - 1];
    bool known = to->what == SG_SHAPE_NAME && to->function;
    bool through = to->what == SG_SHAPE_REGISTER && to->class != SG_CLASS_REAL &&
                   (to->width == 4 || to->width == 8 || !to->width) && given->count > at + 1 &&
                   last->what == SG_SHAPE_NAME;
    return known || through || sg_ptx_wrong(ptx, "a call of what is no function");
}

static bool call(struct sg_ptx *ptx, const struct sg_ptx_given *given) {
    if (!ptx->telling && given->count <= SG_PTX_SHAPES && !callee(ptx, given))
        return false;
    if (!given->target || given->target_at >= 2)
        return true;
    const struct sg_ptx_symbol *symbol = &ptx->symbols[given->target - 1];
    if (symbol->what == SG_SYMBOL_ENTRY)
        return sg_ptx_wrong(ptx, "an entry cannot be called");
    if (symbol->what != SG_SYMBOL_FUNCTION || !symbol->prototyped || symbol->variadic)
        return true;
    size_t results = given->target_at ? given->items[0] : 0;
    size_t parameters = given->items[given->target_at + 1];
    return (results == symbol->results && parameters == symbol->parameters) ||
           sg_ptx_wrong(ptx, "'%.*s' has other parameters",
                        symbol->length < 80 ? (int)symbol->length : 80, symbol->name);
}

/* ---- the instruction ------------------------------------------------------------------------- */

/* Lanes that run by themselves say which of them take part. */
static bool together(struct sg_ptx *ptx, const struct sg_ptx_opcode *opcode,
                     const struct sg_ptx_given *given) {
    bool warp = strcmp(opcode->name, "vote") == 0 || strcmp(opcode->name, "shfl") == 0;
    if (!warp || ptx->image->target < 70 || ptx->image->ptx_version < 64)
        return true;
    const char *at = given->modifiers;
    size_t length = given->modifiers_length;
    return (at && memmem(at, length, ".sync", 5)) ||
           sg_ptx_wrong(ptx, "%s without .sync is for targets before sm_70", opcode->name);
}

/* Barriers have numbers up to 15, and take whole warps. */
static bool barrier(struct sg_ptx *ptx, const struct sg_ptx_given *given, bool result) {
    const struct sg_ptx_shape *number = &given->shapes[result], *count = number + 1;
    if (given->count > result && number->what == SG_SHAPE_NUMBER &&
        (!number->plain || number->number > 15))
        return sg_ptx_wrong(ptx, "barriers are numbered from 0 to 15");
    bool arrives =
        given->modifiers && memmem(given->modifiers, given->modifiers_length, ".arrive", 7) != NULL;
    if (arrives && given->count > 1 && count->plain && count->number == 0)
        return sg_ptx_wrong(ptx, "bar.arrive needs a number of threads");
    return given->count <= 1u + result || count->what != SG_SHAPE_NUMBER || !count->plain ||
           count->number % 32 == 0 || sg_ptx_wrong(ptx, "a barrier takes a multiple of 32 threads");
}

/* cp.async copies 4, 8 or 16 bytes, past the first cache 16 alone, of which it reads some. */
static bool copied(struct sg_ptx *ptx, const struct sg_ptx_given *given, bool past) {
    const struct sg_ptx_shape *size = &given->shapes[2], *read = &given->shapes[3];
    if (given->count < 3 || !size->plain)
        return true;
    bool good = size->number == 16 || (!past && (size->number == 4 || size->number == 8));
    if (good && given->count > 3 && read->what == SG_SHAPE_NUMBER && read->plain)
        good = read->number <= size->number;
    return good || sg_ptx_wrong(ptx, "cp.async does not copy so many bytes");
}

/* Constants that an instruction takes in a range. */
static bool ranges(struct sg_ptx *ptx, const struct sg_ptx_opcode *opcode,
                   const struct sg_ptx_given *given) {
    static const struct {
        const char *name;
        unsigned char at;
        unsigned short least, most;
    } all[] = {{"applypriority", 1, 128, 128},
               {"discard", 1, 128, 128},
               {"pmevent", 0, 0, 15},
               {"bfe", 2, 0, 255},
               {"bfe", 3, 0, 255},
               {"bfi", 3, 0, 255},
               {"bfi", 4, 0, 255}};
    const char *words = given->modifiers ? given->modifiers : "";
    size_t length = given->modifiers_length;
    bool bar = strcmp(opcode->name, "bar") == 0 || strcmp(opcode->name, "barrier") == 0;
    if (bar)
        return memmem(words, length, ".warp", 5) || memmem(words, length, ".cluster", 8) ||
               barrier(ptx, given, memmem(words, length, ".red", 4) != NULL);
    bool past = memmem(words, length, ".cg", 3) != NULL;
    if (strcmp(opcode->name, "cp") == 0 && (past || memmem(words, length, ".ca", 3)))
        return copied(ptx, given, past);
    for (unsigned i = 0; i < 2 && strcmp(opcode->name, "cp") == 0; i++)
        if (given->count > i && given->shapes[i].what == SG_SHAPE_ADDRESS &&
            !memmem(words, length, ".tensor", 7) &&
            (given->shapes[i].space == SG_SPACE_PARAM || given->shapes[i].space == SG_SPACE_LOCAL ||
             given->shapes[i].space == SG_SPACE_CONST))
            return sg_ptx_wrong(ptx, "cp copies global and shared memory");
    if (strcmp(opcode->name, "cp") == 0 && !memmem(words, length, ".bulk", 5) &&
        !memmem(words, length, "_", 1) && !memmem(words, length, ".mbarrier", 9))
        return sg_ptx_wrong(ptx, "cp.async needs .ca or .cg");
    const struct sg_ptx_shape *last = &given->shapes[2];
    if (strcmp(opcode->name, "alloca") == 0 && given->count > 2 && last->plain &&
        (last->number == 0 || (last->number & (last->number - 1)) != 0))
        return sg_ptx_wrong(ptx, "an alignment is a power of two");
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        const struct sg_ptx_shape *shape = &given->shapes[all[i].at];
        if (all[i].at < given->count && shape->what == SG_SHAPE_NUMBER && shape->plain &&
            (shape->number < all[i].least || shape->number > all[i].most) &&
            strcmp(all[i].name, opcode->name) == 0 && !memmem(words, length, ".mask", 5))
            return sg_ptx_wrong(ptx, "operand %u of %s is not from %u to %u", all[i].at + 1u,
                                opcode->name, all[i].least, all[i].most);
    }
    return true;
}

/* Where bits are lost a rounding is named; by mad.f32 as well since a version after 3.0. */
static bool rounds(struct sg_ptx *ptx, const struct sg_ptx_opcode *opcode,
                   const struct sg_ptx_given *given) {
    const struct sg_ptx_kind *to = &given->types[0], *from = &given->types[1];
    if (given->rounded)
        return true;
    bool narrower = to->class == SG_CLASS_REAL && from->class == SG_CLASS_REAL &&
                    from->width > to->width && strcmp(opcode->name, "cvt") == 0;
    bool product = given->real && strcmp(opcode->name, "mad") == 0 &&
                   (to->width == 8 || (ptx->image->ptx_version > 30 && ptx->image->target >= 20));
    return (!narrower && !product) || sg_ptx_wrong(ptx, "%s needs a rounding", opcode->name);
}

static bool known_here(struct sg_ptx *ptx, const struct sg_ptx_opcode *opcode) {
    if (ptx->image->target < opcode->sm)
        return sg_ptx_wrong(ptx, "%s needs target sm_%d", opcode->name, opcode->sm);
    if (ptx->image->ptx_version < opcode->version)
        return sg_ptx_wrong(ptx, "%s came with version %d.%d", opcode->name, opcode->version / 10,
                            opcode->version % 10);
    return true;
}

bool sg_ptx_check_instruction(struct sg_ptx *ptx, const struct sg_ptx_opcode *opcode,
                              struct sg_ptx_given *given) {
    if (opcode->flags & SG_PTX_TYPED && !given->type_count)
        return sg_ptx_wrong(ptx, "%s needs a type", opcode->name);
    if (opcode->flags & SG_PTX_ROUNDED && given->real && !given->rounded)
        return sg_ptx_wrong(ptx, "%s of floats needs a rounding, or .approx", opcode->name);
    if (given->count < opcode->least || given->count > opcode->most)
        return sg_ptx_wrong(ptx, "%s does not take %u operands", opcode->name, given->count);
    narrow(ptx, opcode, given);
    return known_here(ptx, opcode) && together(ptx, opcode, given) &&
           (ptx->telling || sg_ptx_check_words(ptx, opcode, given)) &&
           registers(ptx, opcode, given) && address(ptx, opcode, given) &&
           (ptx->telling || sg_ptx_check_operands(ptx, opcode, given)) &&
           (ptx->telling || (ranges(ptx, opcode, given) && rounds(ptx, opcode, given))) &&
           (strcmp(opcode->name, "call") != 0 || call(ptx, given));
}
