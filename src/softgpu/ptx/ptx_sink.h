/*
 * What the reader of PTX reports about one function, in the order of the text, to a user who needs
 * more than the knowledge that the text is valid. The reader has already checked it: names are
 * declared, brackets match, operands have the kinds that ptxas accepts.
 */
#ifndef SG_PTX_SINK_H
#define SG_PTX_SINK_H

#include "softgpu/ptx/ptx.h"

enum sg_ptx_role { SG_ROLE_LOCAL, SG_ROLE_PARAMETER, SG_ROLE_RESULT };

/* A parameter, result, register or variable of the function, or a range of names: %r<12>. */
struct sg_ptx_declaration {
    enum sg_ptx_role role;
    const struct sg_ptx_variable *variable; /* .dimensions, .size, .alignment are final */
    size_t number;   /* how operands refer to it: counted from 1 in each function */
    uint64_t offset; /* of an entry's parameter: in the launch buffer */
};

/* What a name in an operand refers to, in the block where it occurs. */
struct sg_ptx_name {
    const char *text;
    size_t length;
    size_t declaration; /* its number, or 0 */
    uint64_t index;     /* 12 of %r12, when %r<…> was declared */
    size_t symbol;      /* of the module, + 1; or 0. With neither: a special register or a label */
};

struct sg_ptx_operand {
    enum {
        SG_PTX_SINK,       /* _ */
        SG_PTX_NAME,       /* name and what is added: name + offset */
        SG_PTX_INTEGER,    /* number */
        SG_PTX_REAL,       /* number: bits of a double, or of a float if single */
        SG_PTX_ADDRESS,    /* […] with children */
        SG_PTX_VECTOR,     /* {…} with children */
        SG_PTX_LIST,       /* (…) with children */
        SG_PTX_UNREADABLE, /* nothing that a sink can interpret */
    } kind;
    bool negated;         /* ! */
    bool minus;           /* - before a name */
    bool is_signed;       /* an integer without U that fits */
    bool single, indexed; /* indexed: name[offset], of an array */
    struct sg_ptx_name name;
    const char *member; /* .x of %v.x, with its dot; NULL for none */
    size_t member_length;
    uint64_t number;
    int64_t offset;
    size_t child; /* the first of the children, + 1; 0: none */
    size_t next;  /* the next sibling + 1; 0: the last */
    size_t other; /* what follows its |: p|q; + 1, or 0 */
    unsigned children;
};

#define SG_PTX_MODIFIERS 24 /* at most this many are reported; the statement has the full count */

struct sg_ptx_statement {
    const char *opcode; /* from the table, which is static */
    size_t number;      /* its row */
    size_t line;
    bool guarded, guard_negated;
    struct sg_ptx_name guard;
    struct sg_word modifiers[SG_PTX_MODIFIERS]; /* with their dots */
    size_t modifier_count;                      /* the number in the text */
    const struct sg_ptx_operand *operands;
    size_t first; /* the first of the outermost operands, + 1; 0: none */
    unsigned operand_count;
};

struct sg_ptx_loc {
    uint64_t file, line, column;
    bool inlined;
    uint64_t inlined_file, inlined_line, inlined_column;
};

enum sg_ptx_list { SG_LIST_BRANCHES, SG_LIST_CALLS, SG_LIST_PROTOTYPE };

/* Each returns false when out of memory, which ends the reading, and copies what it keeps. */
struct sg_ptx_sink {
    void *user;
    bool (*declare)(void *user, const struct sg_ptx_declaration *declaration);
    bool (*block)(void *user, bool opened); /* { and }, including those of the body */
    bool (*label)(void *user, const struct sg_ptx_name *name);
    bool (*instruction)(void *user, const struct sg_ptx_statement *statement);
    bool (*location)(void *user, const struct sg_ptx_loc *location);
    /* .branchtargets and .calltargets, named by the label before them: called without a name, then
     * once for each name; .callprototype: called only without a name. */
    bool (*listed)(void *user, enum sg_ptx_list list, const struct sg_ptx_name *name);
};

/* ---- where the functions of a text are ------------------------------------------------------- */

/* One block of memory, kept with the image. Names and places point into the image's text. */
struct sg_ptx_outline {
    int architecture; /* for which the text was read */
    const struct sg_ptx_symbol *symbols;
    size_t symbol_count;
    struct sg_name_table names;
    const struct sg_ptx_file {
        uint64_t number;
        const char *name; /* without quotes */
        size_t length;
    } * files;
    size_t file_count;
};

/* Rereading parts of a text: begun once, for any number of its functions. */
struct sg_ptx_again;
/* The image must have an outline. NULL: out of memory. */
struct sg_ptx_again *sg_ptx_again_begin(const struct sg_image *image, struct sg_image_log *log);
/* Reads a function whose body is in the text. INVALID_PTX or OUT_OF_MEMORY. */
CUresult sg_ptx_again_read(struct sg_ptx_again *again, size_t symbol, struct sg_ptx_sink *sink);
void sg_ptx_again_end(struct sg_ptx_again *again);

/* ---- inside the reader ----------------------------------------------------------------------- */

/* Words of an instruction that is read for a sink, and what becomes of them (ptx_operands.c). */
struct sg_ptx_noted {
    struct sg_word word;
    struct sg_ptx_use use; /* of a name */
};
struct sg_ptx_telling {
    struct sg_ptx_sink *sink;
    size_t declared; /* so far */
    struct sg_ptx_noted *noted;
    size_t noted_count;
    struct sg_ptx_operand *operands;
    size_t operand_count;
    struct sg_ptx_statement statement;
};

struct sg_ptx_name sg_ptx_name_of(const struct sg_word *word, const struct sg_ptx_use *use);
/* Reports the instruction made of the noted words, which are well formed. */
bool sg_ptx_tell_instruction(struct sg_ptx *ptx);
bool sg_ptx_note_word(struct sg_ptx *ptx, const struct sg_ptx_use *use);
/* Reports the last declaration, with the number 0 if its name is _. */
bool sg_ptx_tell_declaration(struct sg_ptx *ptx, const struct sg_ptx_variable *variable,
                             enum sg_ptx_role role, uint64_t offset);
struct sg_ptx_outline *sg_ptx_outline_make(const struct sg_ptx *ptx, const char *text);

#endif
