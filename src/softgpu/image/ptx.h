/* The reader of PTX text, in parts: words, directives, functions, bodies, values. */
#ifndef SG_IMAGE_PTX_H
#define SG_IMAGE_PTX_H

#include "softgpu/image/reader.h"

/* ---- words (ptx_words.c)
 * -------------------------------------------------------------------------- */

enum sg_word_kind {
    SG_WORD_END,
    SG_WORD_NAME,     /* add, %r1, $L_1, _ */
    SG_WORD_DOTTED,   /* .version, .u32, .shared::cluster */
    SG_WORD_INTEGER,  /* number */
    SG_WORD_FLOAT,    /* number: bits of a double */
    SG_WORD_STRING,   /* with its quotes */
    SG_WORD_OPERATOR, /* one character, or two: << >> <= >= == != && || */
    SG_WORD_WRONG     /* no word at all */
};

struct sg_word {
    enum sg_word_kind kind;
    const char *text;
    size_t length, line;
    uint64_t number;
    bool single;    /* a float of 32 bits, 0f...: `number` are these bits */
    bool is_signed; /* an integer without U that fits */
    bool apart;     /* blanks or a comment before it */
};

struct sg_words {
    const char *at, *end;
    size_t line;
};

void sg_words_next(struct sg_words *words, struct sg_word *word);
bool sg_word_is(const struct sg_word *word, const char *text);

/* ---- the text as a whole
 * ---------------------------------------------------------------------------- */

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

/* Something of the module that has a name. */
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
    uint64_t range;           /* how many registers have the name, with a number behind it */
    size_t last_user;         /* the body or call graph that named it last */
    /* A function: what its body declares, and which symbols it names. */
    uint64_t shared, shared_alignment;
    uint64_t local[8]; /* bytes by log2 of the alignment, the last for all above */
    size_t first_use, use_count;
};

struct sg_ptx {
    struct sg_words words;
    struct sg_word word; /* not yet taken */
    const struct sg_image_options *options;
    struct sg_image_log *log;
    struct sg_image *image;
    CUresult result;         /* the first thing that went wrong */
    bool debug, debug_found; /* .target debug; a section with such information */
    bool independent;        /* texmode_independent: samplers are declared by themselves */

    struct sg_ptx_symbol *symbols;
    size_t symbol_count;
    struct sg_name_table names; /* scope 0: of the module, to index in symbols */

    /* The body that is read. */
    size_t body; /* the symbol + 1, or 0 */
    struct sg_name_table locals;
    struct sg_ptx_reference {
        const char *name;
        size_t length, line;
    } * pending; /* names that may be labels further on */
    size_t pending_count;
    size_t *uses; /* symbols that bodies name */
    size_t use_count;
    struct sg_ptx_block {
        size_t id, first_shadow;
    } * blocks; /* that are open */
    size_t block_count, block_ids;
    struct sg_ptx_shadow {
        const char *name;
        size_t length, scope, value;
    } * shadows; /* what to put back where a block ends */
    size_t shadow_count;
};

/* Takes the word: the next is in ptx->word. False at something that is no word. */
bool sg_ptx_next(struct sg_ptx *ptx);
bool sg_ptx_is(const struct sg_ptx *ptx, const char *text);
/* Takes it when it is there. */
bool sg_ptx_accept(struct sg_ptx *ptx, const char *text);
bool sg_ptx_expect(struct sg_ptx *ptx, const char *text);
bool sg_ptx_integer(struct sg_ptx *ptx, uint64_t *number);
/* Always false; keeps the first message. */
bool sg_ptx_wrong(struct sg_ptx *ptx, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
bool sg_ptx_unexpected(struct sg_ptx *ptx, const char *wanted);
bool sg_ptx_no_memory(struct sg_ptx *ptx);
bool sg_ptx_skip_block(struct sg_ptx *ptx); /* from { to its } */

/* ---- the parts
 * -------------------------------------------------------------------------------------- */

bool sg_ptx_head(struct sg_ptx *ptx); /* .version, .target, .address_size */

struct sg_ptx_type {
    unsigned size;
    bool untyped;               /* .b32: a bit pattern of any kind */
    bool real, predicate, half; /* half: f16 and its like, which take no initial value */
    enum { SG_OPAQUE_NONE, SG_OPAQUE_TEXTURE, SG_OPAQUE_SURFACE, SG_OPAQUE_SAMPLER } opaque;
};
bool sg_ptx_type(const struct sg_word *word, struct sg_ptx_type *type);
enum sg_space sg_ptx_space(const struct sg_word *word);
bool sg_ptx_alignment(struct sg_ptx *ptx, uint64_t *alignment);

#define SG_PTX_DIMENSIONS 16
/* A variable that is being declared. */
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
    uint64_t pieces; /* bytes so far of an address that is given byte by byte */
};

/* After the linking directive: .global ... ; with all its names. */
bool sg_ptx_variables(struct sg_ptx *ptx, enum sg_linkage linkage);
/* .entry and .func, the word not yet taken. */
bool sg_ptx_function(struct sg_ptx *ptx, enum sg_linkage linkage);
/* From { on, which has been taken, to the } that closes it. */
bool sg_ptx_body(struct sg_ptx *ptx);
/* Declares a name in the body that is read, at its scope. */
bool sg_ptx_declare_local(struct sg_ptx *ptx, const struct sg_ptx_variable *variable);
/* *width: bytes of a register, 0xff for a predicate, 0 for what is no single register. */
bool sg_ptx_name_use(struct sg_ptx *ptx, const struct sg_word *name, size_t *width);
bool sg_ptx_uses(struct sg_ptx *ptx, size_t symbol);
/* Sums what entries use, names what is undefined. */
bool sg_ptx_close(struct sg_ptx *ptx);

/* The symbol of this name, made when it is not there. NULL: no memory. */
struct sg_ptx_symbol *sg_ptx_symbol(struct sg_ptx *ptx, const struct sg_word *name, bool *made);
struct sg_ptx_symbol *sg_ptx_find(struct sg_ptx *ptx, const char *name, size_t length);

/* What follows the = of a variable. */
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

/* Opcodes: how many operands they take, whether a type must be named (ptx_opcodes.c). */
struct sg_ptx_opcode {
    const char *name;
    unsigned char least, most;
    bool typed;
    bool rounded; /* of floats, a rounding or .approx must be named */
    bool uniform; /* all operands are of the one type */
};
const struct sg_ptx_opcode *sg_ptx_opcode(const char *name, size_t length);
bool sg_ptx_modifier(const char *name, size_t length); /* .name, .name::name */
bool sg_ptx_special_register(const char *name, size_t length);

#endif
