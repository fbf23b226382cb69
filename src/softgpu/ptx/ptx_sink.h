/*
 * What the reader of PTX tells of one function, in the order of the text, to whoever wants more
 * than that the text is sound. The reader has checked it all before: names are declared, brackets
 * match, operands have the kinds that ptxas takes.
 */
#ifndef SG_PTX_SINK_H
#define SG_PTX_SINK_H

#include "softgpu/ptx/ptx.h"

enum sg_ptx_role { SG_ROLE_LOCAL, SG_ROLE_PARAMETER, SG_ROLE_RESULT };

/* A parameter, result, register or variable of the function; or names of registers: %r<12>. */
struct sg_ptx_declaration {
    enum sg_ptx_role role;
    const struct sg_ptx_variable *variable; /* .dimensions, .size, .alignment are final */
    size_t number;   /* how operands name it: counted from 1 on, in each function */
    uint64_t offset; /* of an entry's parameter: in the launch's buffer */
};

/* What a name in an operand stands for, in the block where it stands. */
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
        SG_PTX_NAME,       /* name, and what is added: name + offset */
        SG_PTX_INTEGER,    /* number */
        SG_PTX_REAL,       /* number: bits of a double, or of a float when it is single */
        SG_PTX_ADDRESS,    /* […] with children */
        SG_PTX_VECTOR,     /* {…} with children */
        SG_PTX_LIST,       /* (…) with children */
        SG_PTX_UNREADABLE, /* nothing that a sink can make sense of */
    } kind;
    bool negated;         /* ! */
    bool is_signed;       /* an integer without U that fits */
    bool single, indexed; /* indexed: name[offset], of an array */
    struct sg_ptx_name name;
    const char *member; /* .x of %v.x, with its point; NULL for none */
    size_t member_length;
    uint64_t number;
    int64_t offset;
    size_t child; /* the first of the children, + 1; 0: none */
    size_t next;  /* among its brothers, + 1; 0: the last */
    size_t other; /* what follows its |: p|q; + 1, or 0 */
    unsigned children;
};

#define SG_PTX_MODIFIERS 24 /* so many are told; of more the statement says that there were */

struct sg_ptx_statement {
    const char *opcode; /* of the table: it lives on */
    size_t number;      /* its row */
    size_t line;
    bool guarded, guard_negated;
    struct sg_ptx_name guard;
    struct sg_word modifiers[SG_PTX_MODIFIERS]; /* with their points */
    size_t modifier_count;                      /* as many as the text has */
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

/* Each returns false when there is no memory, which ends the reading. What it gets, it copies. */
struct sg_ptx_sink {
    void *user;
    bool (*declare)(void *user, const struct sg_ptx_declaration *declaration);
    bool (*block)(void *user, bool opened); /* { and }, those of the body included */
    bool (*label)(void *user, const struct sg_ptx_name *name);
    bool (*instruction)(void *user, const struct sg_ptx_statement *statement);
    bool (*location)(void *user, const struct sg_ptx_loc *location);
    /* .branchtargets, .calltargets, whose name is the label before: begun without a name, then
     * once for each; .callprototype: begun only. */
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

/* What is read again of a text: begun once, for any number of its functions. */
struct sg_ptx_again;
/* The image has an outline. NULL: no memory. */
struct sg_ptx_again *sg_ptx_again_begin(const struct sg_image *image, struct sg_image_log *log);
/* Reads the function whose body the text has. INVALID_PTX or OUT_OF_MEMORY. */
CUresult sg_ptx_again_read(struct sg_ptx_again *again, size_t symbol, struct sg_ptx_sink *sink);
void sg_ptx_again_end(struct sg_ptx_again *again);

/* ---- inside the reader ----------------------------------------------------------------------- */

/* Words of an instruction that is read for a sink, and what is made of them (ptx_operands.c). */
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
/* Of the words that were noted, which are well formed, tells the instruction. */
bool sg_ptx_tell_instruction(struct sg_ptx *ptx);
bool sg_ptx_note_word(struct sg_ptx *ptx, const struct sg_ptx_use *use);
/* The one that was declared last, or, without a name, none. */
bool sg_ptx_tell_declaration(struct sg_ptx *ptx, const struct sg_ptx_variable *variable,
                             enum sg_ptx_role role, uint64_t offset);
struct sg_ptx_outline *sg_ptx_outline_make(const struct sg_ptx *ptx, const char *text);

#endif
