/* The reader of PTX text, in parts: words, directives, functions, bodies, values. */
#ifndef SG_PTX_PTX_H
#define SG_PTX_PTX_H

#include "softgpu/image/reader.h"

sg_reader sg_ptx_read; /* text; `bytes` is all of it, without a final zero */

/* ---- words (ptx_words.c) --------------------------------------------------------------------- */

enum sg_word_kind {
    SG_WORD_END,
    SG_WORD_NAME,     /* add, %r1, $L_1, _ */
    SG_WORD_DOTTED,   /* .version, .u32, .shared::cluster */
    SG_WORD_INTEGER,  /* number */
    SG_WORD_FLOAT,    /* number: bits of a double */
    SG_WORD_STRING,   /* with its quotes */
    SG_WORD_OPERATOR, /* one character or two: << >> <= >= == != && || */
    SG_WORD_WRONG     /* not a valid word */
};

struct sg_word {
    enum sg_word_kind kind;
    const char *text;
    size_t length, line;
    uint64_t number;
    bool single;    /* a 32-bit float, 0f...: `number` holds its bits */
    bool is_signed; /* an integer without U that fits */
    bool apart;     /* preceded by blanks or a comment */
};

struct sg_words {
    const char *at, *end;
    size_t line;
};

void sg_words_next(struct sg_words *words, struct sg_word *word);
bool sg_word_is(const struct sg_word *word, const char *text);
bool sg_word_is_any(const struct sg_word *word, const char *list); /* with blanks between */

/* ---- the text as a whole --------------------------------------------------------------------- */

enum sg_space {
    SG_SPACE_NONE,
    SG_SPACE_GLOBAL,
    SG_SPACE_CONST,
    SG_SPACE_SHARED,
    SG_SPACE_LOCAL,
    SG_SPACE_PARAM,
    SG_SPACE_REG,
    SG_SPACE_TEX
};

enum sg_linkage { SG_LINK_OWN, SG_LINK_VISIBLE, SG_LINK_EXTERN, SG_LINK_WEAK, SG_LINK_COMMON };

/* What a register holds, as far as instructions distinguish it. */
enum sg_ptx_class {
    SG_CLASS_NONE,    /* unknown, or not a register: nothing is checked */
    SG_CLASS_BITS,    /* .b32 */
    SG_CLASS_INTEGER, /* .u32, .s32 */
    SG_CLASS_REAL,    /* .f16, .f32 */
    SG_CLASS_PAIR,    /* .f16x2 */
    SG_CLASS_PREDICATE
};
struct sg_ptx_kind {
    enum sg_ptx_class class;
    size_t width; /* in bytes */
};

struct sg_ptx_type {
    const char *name; /* .b32 */
    unsigned size;
    enum sg_ptx_class class;
    bool untyped;               /* .b32: a bit pattern of any kind */
    bool real, predicate, half; /* half: f16 and similar, which take no initial value */
    enum { SG_OPAQUE_NONE, SG_OPAQUE_TEXTURE, SG_OPAQUE_SURFACE, SG_OPAQUE_SAMPLER } opaque;
    uint32_t sampler; /* an initial value of a .samplerref: SG_SAMPLER_…, three bits for each
                         address mode, one for the filter, one for unnormalised coordinates */
};

/* A named symbol of the module. */
struct sg_ptx_symbol {
    const char *name;
    size_t length;
    enum { SG_SYMBOL_ENTRY, SG_SYMBOL_FUNCTION, SG_SYMBOL_VARIABLE, SG_SYMBOL_OPAQUE } what;
    enum sg_space space;
    enum sg_linkage linkage;
    bool defined;
    bool referenced; /* by a body or an initial value */
    size_t index;    /* of an entry or variable in the image; SIZE_MAX when it is not there */
    size_t line;
    uint64_t size, alignment; /* of a variable in .shared */
    unsigned vector;          /* of a variable: 1, 2, 4 or 8 */
    bool ranged;              /* nothing has this name: `range` others have it and a number */
    uint64_t range;
    size_t first_element; /* the symbol of the first of these; of registers there are none */
    size_t element;       /* of a range: its number + 1, which follows `name` */
    bool own;             /* of a body: no name of the module stands for it */
    size_t last_user;     /* the last body or call graph that named it */
    /* A function: what its body declares, and which symbols it names. */
    uint64_t shared, shared_alignment;
    uint64_t local[8]; /* bytes by log2 of the alignment; the last for all greater ones */
    size_t first_use, use_count;
    uint64_t frame_start; /* in an entry's local memory (ptx_frames.c) */
    size_t callers;       /* whose frames are not laid out yet */
    size_t first_own;     /* the first symbol made for its body's .global and .const variables */
    const char *start;    /* .entry or .func of its body, in the text */
    size_t start_line;
    size_t alias;            /* the symbol that this is another name of, + 1; or 0 */
    struct sg_ptx_type type; /* of a variable */
    bool prototyped;         /* the counts are known */
    bool variadic;           /* the last parameter has no size: any number may follow */
    size_t parameters, results;
};

/* A .file directive. */
struct sg_ptx_source {
    uint64_t number;
    struct sg_word name; /* with its quotes */
};

struct sg_ptx_telling; /* ptx_sink.h */

/* What was found in the table of forms, by an instruction's words (ptx_forms.c). */
struct sg_ptx_combinations {
    struct sg_ptx_combination *slots;
    size_t room, used;
    unsigned short *fitting;
    size_t fitting_count;
};

struct sg_ptx {
    struct sg_words words;
    struct sg_word word; /* the current one, not yet consumed */
    const struct sg_image_options *options;
    struct sg_image_log *log;
    struct sg_image *image;
    CUresult result;         /* the first error */
    bool debug, debug_found; /* .target debug; a section with debug information */
    bool tiny_addresses;     /* an address in a register of 8 or 16 bits was read */
    size_t short_address;    /* line of the first one with 32 bits where 64 are required; 0: none */
    bool independent;        /* texmode_independent: samplers are declared separately */

    struct sg_ptx_symbol *symbols;
    size_t symbol_count;
    struct sg_name_table names; /* scope 0: of the module, to index in symbols */

    /* The body being read. */
    size_t body; /* the symbol + 1, or 0 */
    struct sg_name_table locals;
    struct sg_ptx_reference {
        const char *name;
        size_t length, line;
    } * pending; /* names that may be labels further on */
    size_t pending_count;
    size_t next_own; /* while telling: the symbol of the next .global or .const variable */
    size_t *uses;    /* symbols named by bodies */
    size_t use_count;
    struct sg_ptx_block {
        size_t id, first_shadow;
    } * blocks; /* the open ones */
    size_t block_count, block_ids;
    struct sg_ptx_shadow {
        const char *name;
        size_t length, scope, value;
    } * shadows; /* what to restore when a block ends */
    size_t shadow_count;
    const char *function_start; /* the word .entry or .func */
    size_t function_line;
    struct sg_ptx_source *files; /* of the .file directives */
    size_t file_count;
    struct sg_ptx_combinations combinations;
    struct sg_ptx_telling *telling; /* for a function that is read again; NULL while all is read */
};

/* Consumes the word; the next is then in ptx->word. False if that is not a valid word. */
bool sg_ptx_next(struct sg_ptx *ptx);
bool sg_ptx_is(const struct sg_ptx *ptx, const char *text);
/* Consumes the word if it matches. */
bool sg_ptx_accept(struct sg_ptx *ptx, const char *text);
bool sg_ptx_expect(struct sg_ptx *ptx, const char *text);
bool sg_ptx_integer(struct sg_ptx *ptx, uint64_t *number);
/* Always returns false; only the first message is kept. */
bool sg_ptx_wrong(struct sg_ptx *ptx, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
bool sg_ptx_unexpected(struct sg_ptx *ptx, const char *wanted);
bool sg_ptx_no_memory(struct sg_ptx *ptx);
bool sg_ptx_skip_block(struct sg_ptx *ptx); /* from { to the matching } */

/* ---- the parts ------------------------------------------------------------------------------- */

bool sg_ptx_head(struct sg_ptx *ptx); /* .version, .target, .address_size */

bool sg_ptx_type(const struct sg_word *word, struct sg_ptx_type *type);
enum sg_space sg_ptx_space(const struct sg_word *word);
bool sg_ptx_alignment(struct sg_ptx *ptx, uint64_t *alignment);

#define SG_PTX_DIMENSIONS 16
/* A variable being declared. */
struct sg_ptx_variable {
    enum sg_space space;
    enum sg_linkage linkage;
    struct sg_ptx_type type;
    struct sg_word name;
    uint64_t alignment; /* as given; 0: the type's */
    unsigned vector;    /* 1, 2, 4, 8 */
    bool managed;
    uint64_t extents[SG_PTX_DIMENSIONS + 1]; /* the last may be the vector's */
    unsigned dimensions;
    bool open;   /* name[] */
    bool ranged; /* %r<n> */
    uint64_t range;
    uint64_t size;
    unsigned char *initial;
    uint64_t initial_size;
    struct sg_relocation *relocations;
    size_t relocation_count;
    uint64_t pieces; /* bytes so far of an address given byte by byte */
};

/* After the linking directive: .global ... ; with all its names. */
bool sg_ptx_variables(struct sg_ptx *ptx, enum sg_linkage linkage);
/* .entry and .func, which is still the current word. */
bool sg_ptx_function(struct sg_ptx *ptx, enum sg_linkage linkage);
/* From after the {, which is consumed, to the } that closes it. */
bool sg_ptx_body(struct sg_ptx *ptx);
/* Declares a name in the body being read, in its current scope. */
bool sg_ptx_declare_local(struct sg_ptx *ptx, const struct sg_ptx_variable *variable);
/* The same of a .global or .const variable, whose symbols are from `first` on. */
bool sg_ptx_declare_own(struct sg_ptx *ptx, const struct sg_ptx_variable *variable, size_t first);
/* What a name in a body refers to. */
struct sg_ptx_use {
    size_t declaration; /* in a body that is read for a sink; else 0 */
    uint64_t index;
    struct sg_ptx_kind kind; /* of a register that is not a vector */
    enum sg_space space;     /* of a variable, a parameter or a register */
    size_t symbol;           /* of the module, + 1; 0 for others */
};
bool sg_ptx_name_use(struct sg_ptx *ptx, const struct sg_word *name, struct sg_ptx_use *use);
/* From after the opcode to after the semicolon (ptx_instruction.c). */
bool sg_ptx_instruction(struct sg_ptx *ptx, const struct sg_word *name);
bool sg_ptx_uses(struct sg_ptx *ptx, size_t symbol);
/* Sums what entries use and lists what is undefined. */
bool sg_ptx_close(struct sg_ptx *ptx);
/*
 * What ptxas 13.0 rounds a kernel's static shared memory up to: 16, or the strictest alignment,
 * where the text declares arrays of dynamic shared memory, whether the kernel uses one or not; 1
 * where it declares none.
 */
uint64_t sg_ptx_shared_unit(const struct sg_ptx_symbol *symbols, size_t count);
/*
 * Bytes of local memory for an entry, the first of those visited, and all that it calls; `own` is
 * its own, by log2 of the alignment, and `queue` has room for those visited (ptx_frames.c).
 */
uint64_t sg_ptx_local_bytes(struct sg_ptx *ptx, const uint64_t *own, const size_t *visited,
                            size_t count, size_t *queue);

/* The symbol of this name, created if absent. NULL: out of memory. */
struct sg_ptx_symbol *sg_ptx_symbol(struct sg_ptx *ptx, const struct sg_word *name, bool *made);
struct sg_ptx_symbol *sg_ptx_find(struct sg_ptx *ptx, const char *name, size_t length);
/* A symbol that is not found by its name: of a body, or an element of a range. */
struct sg_ptx_symbol *sg_ptx_nameless(struct sg_ptx *ptx, const struct sg_word *name);
/* What the image calls it, a name of its own; the caller frees it. NULL: out of memory. */
char *sg_ptx_symbol_text(struct sg_ptx *ptx, size_t symbol);
/* Whether the image calls symbol number `symbol` so. */
bool sg_ptx_symbol_is(const struct sg_ptx_symbol *of, size_t symbol, const char *text);

#define SG_SAMPLER_GIVEN (UINT32_C(1) << 31)
/* What follows the = of a variable; of a .texref, .samplerref or .surfref (ptx_opaque.c). */
bool sg_ptx_opaque_initial(struct sg_ptx *ptx, struct sg_ptx_variable *variable);
bool sg_ptx_initial(struct sg_ptx *ptx, struct sg_ptx_variable *variable);

/* A constant expression. */
struct sg_ptx_value {
    enum { SG_VALUE_INTEGER, SG_VALUE_REAL, SG_VALUE_ADDRESS } kind;
    uint64_t number; /* or the addend */
    double real;
    bool is_signed, generic;
    size_t symbol;
    uint64_t mask; /* 0xFF00(x); 0 when not given */
};
bool sg_ptx_value(struct sg_ptx *ptx, struct sg_ptx_value *value);

/* ---- instructions ---------------------------------------------------------------------------- */

enum {
    SG_PTX_TYPED = 1,  /* a type is required */
    SG_PTX_ROUNDED = 2 /* floats require a rounding or .approx */
};

/* What an opcode takes (ptx_opcodes.c); zero and NULL mean not checked. */
struct sg_ptx_opcode {
    const char *name;
    unsigned char least, most, flags;
    unsigned char types; /* how many types may be named */
    /*
     * A letter for the register of each operand: 1 and 2 for the first and second type named, x and
     * y for these or wider, w for the first or, with .wide, twice as wide, u for 32 bits, p for a
     * predicate, - for anything.
     */
    const char *operands;
    const char *modifiers;     /* those allowed beside types, each at most once */
    unsigned char spaces;      /* sets of SG_SPACE_... that its addresses can be in */
    unsigned char sm, version; /* the first that support it */
};
const struct sg_ptx_opcode *sg_ptx_opcode(const char *name, size_t length);
size_t sg_ptx_opcode_number(const struct sg_ptx_opcode *opcode); /* its row in ptx_opcodes.def */
bool sg_ptx_modifier(const char *name, size_t length);           /* .name, .name::name */

#define SG_PTX_OPERANDS 6 /* how many are checked */
#define SG_PTX_SHAPES   12

/* What an operand looks like. */
struct sg_ptx_shape {
    enum __attribute__((packed)) {
        SG_SHAPE_NAME, /* of a variable, a function, a label */
        SG_SHAPE_REGISTER,
        SG_SHAPE_SPECIAL,
        SG_SHAPE_NUMBER,
        SG_SHAPE_NOTHING, /* _ */
        SG_SHAPE_ADDRESS, /* […] */
        SG_SHAPE_VECTOR,  /* {…} */
        SG_SHAPE_LIST     /* (…) */
    } what;
    unsigned char class, width;    /* of a register, or of the first in {…}: struct sg_ptx_kind */
    unsigned char count;           /* of what is in {…} */
    unsigned char space;           /* of a variable, or of one whose address it is */
    unsigned char widths;          /* of a special register: bytes, added up; 1: a predicate */
    bool vector : 1;               /* a register that is one */
    bool indexed : 1;              /* name[…] */
    bool real : 1;                 /* a constant of floating point, also one of those in {…} */
    bool single : 1;               /* 0f… */
    bool member : 1, triple : 1;   /* %tid.x; a special register of three numbers */
    bool whole : 1;                /* a constant that is none, likewise */
    bool negated : 1;              /* ! before a name */
    bool holes : 1;                /* _ in {…} */
    bool reals : 1, integers : 1;  /* registers of these classes in it */
    bool pair : 1;                 /* a|b */
    bool second : 1;               /* b is a predicate, or _ */
    bool sum : 1;                  /* name + 4 */
    bool function : 1, opaque : 1; /* what the name is of */
    bool label : 1;                /* a name of nothing that was declared */
    bool plain : 1;                /* `number` is all of it */
    uint32_t number;               /* at most UINT32_MAX */
};

/* What was read of one instruction. */
struct sg_ptx_given {
    unsigned type_count;
    struct sg_ptx_kind types[2];         /* the first ones */
    bool real, rounded, wide, predicate; /* what the modifiers name */
    enum sg_space space;
    uint64_t seen;         /* which of the opcode's modifiers were seen */
    const char *modifiers; /* all of them, in the text: .rn.f32; NULL: none */
    size_t modifiers_length;
    unsigned count; /* of operands */
    struct sg_ptx_kind registers[SG_PTX_OPERANDS];
    bool absolute; /* an address begins with a number */
    struct sg_ptx_shape shapes[SG_PTX_SHAPES];
    struct sg_word unknown;        /* the first name that may be a label, or be declared nowhere */
    size_t combination;            /* its place in the text's table + 1; 0: it is in none */
    size_t items[SG_PTX_OPERANDS]; /* in an operand that is a list in parentheses */
    size_t target;                 /* symbol of the first operand that is a name, + 1 */
    unsigned target_at;            /* that operand's position */
    bool sums;                     /* there is a sum: r + 4 */
    bool addressed;                /* there is an address that begins with a name */
    struct sg_ptx_use address;
};

/* The combinations of words that the text has (ptx_forms.c). */
struct sg_ptx_combination;
void sg_ptx_forms_clear(struct sg_ptx_combinations *table);
/* Whether the text's version has these words; and whether a form of the table has the words and
 * types, and then these operands. */
bool sg_ptx_check_words(struct sg_ptx *ptx, const struct sg_ptx_opcode *opcode,
                        struct sg_ptx_given *given);
bool sg_ptx_check_operands(struct sg_ptx *ptx, const struct sg_ptx_opcode *opcode,
                           const struct sg_ptx_given *given);
/* Modifiers that ptxas accepts with any opcode, and heeds only where they mean something. */
bool sg_ptx_unheeded(const struct sg_ptx_opcode *opcode, const char *name, size_t length);
/* .b32: the type by which registers are distinguished. */
struct sg_ptx_kind sg_ptx_kind_of(const char *name, size_t length);

/* The rules for instructions (ptx_rules.c). */
bool sg_ptx_agrees(struct sg_ptx_kind is, struct sg_ptx_kind wanted, bool wider);
/* Checks one modifier, the current word. */
bool sg_ptx_check_modifier(struct sg_ptx *ptx, const struct sg_ptx_opcode *opcode,
                           struct sg_ptx_given *given);
bool sg_ptx_check_instruction(struct sg_ptx *ptx, const struct sg_ptx_opcode *opcode,
                              struct sg_ptx_given *given);

bool sg_ptx_special_register(const char *name, size_t length);

/*
 * False, and an error: the text's version is older than a modifier of the instruction, than a
 * special register, than a directive (ptx_since.c).
 */
bool sg_ptx_since_modifiers(struct sg_ptx *ptx, const struct sg_ptx_opcode *opcode,
                            const struct sg_ptx_given *given);
bool sg_ptx_since_register(struct sg_ptx *ptx, const char *name, size_t length);
bool sg_ptx_since_directive(struct sg_ptx *ptx, const char *name);

#endif
