/* What the parts of the decoder share. Nothing here is for others: they see program.h. */
#ifndef SG_PROGRAM_BUILD_H
#define SG_PROGRAM_BUILD_H

#include "softgpu/program/program.h"
#include "softgpu/ptx/ptx_sink.h"

#define SG_MOST_OPERANDS 16 /* of an instruction, the outermost */
#define SG_MOST_ELEMENTS 64 /* of a vector */

/* A name of the function that is read. */
struct sg_build_declaration {
    enum sg_space space;
    unsigned char type, vector; /* of an element */
    unsigned element;           /* bytes, for name[4] */
    bool ranged;
    uint32_t variable; /* what is no register */
};

struct sg_build_label {
    uint32_t instruction;
    uint32_t targets; /* + 1: it names a list; or 0 */
    bool prototype;
};

struct sg_build_reference { /* to a label, in the order of operands that have it */
    const char *name;
    size_t length, block;
};

struct sg_register_slot {
    uint64_t key; /* 0: free */
    uint32_t number;
};

/* One text: the image's, or one of those that it was linked from. */
struct sg_build_part {
    struct sg_image *own; /* what was read here, or NULL */
    const struct sg_image *image;
    struct sg_ptx_again *again;
    uint32_t *function_of; /* of symbols: index + 1; 0 while nothing names them */
    uint32_t *variable_of; /* likewise */
};

struct sg_build {
    const struct sg_image *image;
    struct sg_build_part *parts;
    uint32_t part_count;
    /* The text that is read (sg_build_use). */
    uint32_t part;
    const struct sg_ptx_outline *outline;
    struct sg_ptx_again *again;
    struct sg_image_log *log;
    struct sg_program *program;
    bool no_memory;
    char *room; /* what is left of the last chunk of texts */
    size_t room_left;
    uint32_t *function_of, *variable_of;
    struct sg_build_symbol {
        uint32_t part;
        size_t symbol;
    } * symbol_of; /* of the program's functions */

    /* The function that is read; emptied for each. */
    uint32_t function;
    struct sg_build_declaration *declarations;
    size_t declaration_count;
    struct sg_register_slot *registers;
    size_t register_room;
    size_t *parents; /* of blocks: the block around it + 1 */
    size_t block_count;
    size_t block; /* the innermost, + 1; 0 outside */
    struct sg_build_area {
        uint64_t end;
    } * areas; /* of open blocks: how far the calls' parameters went when they began */
    size_t area_count;
    uint64_t area_end, area_most, area_alignment;
    struct sg_name_table label_names; /* scope: the block */
    struct sg_build_label *labels;
    size_t label_count;
    struct sg_build_reference *references;
    size_t reference_count;
    uint32_t location; /* the last, + 1 */
    size_t first_operand, first_target, first_variable;
};

/* Always false. */
bool sg_build_no_memory(struct sg_build *b);
/* A copy that the program owns; NULL: no memory. */
const char *sg_build_text(struct sg_build *b, const char *text, size_t length);
const char *sg_build_format(struct sg_build *b, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- parts.c --------------------------------------------------------------------------------- */

/* Reads the texts of the image, and finds an entry in one of them, which is then in use.
 * NOT_FOUND. What fails is undone by sg_build_parts_end. */
CUresult sg_build_parts_begin(struct sg_build *b, const char *entry, size_t *symbol);
void sg_build_parts_end(struct sg_build *b);
void sg_build_use(struct sg_build *b, uint32_t part);
/*
 * Which text defines what a symbol of the text in use stands for, and its number there: its own,
 * unless a linker would take another one's. Nobody defines it: its own.
 */
void sg_build_definer(const struct sg_build *b, size_t symbol, uint32_t *part, size_t *there);
/* What a symbol of the text in use is another name of; itself where it is none. */
size_t sg_build_alias(const struct sg_build *b, size_t symbol);
/* Functions of all texts, counted through: the same number in each program of an image. */
uint32_t sg_build_ordinal(uint32_t part, size_t symbol);
/* Numbers of .file, likewise. */
uint64_t sg_build_file_number(uint32_t part, uint64_t number);

/* The function or variable of a symbol of the module, made when it is not there (symbols.c). */
bool sg_build_function(struct sg_build *b, size_t symbol, uint32_t *index);
bool sg_build_variable(struct sg_build *b, size_t symbol, uint32_t *index);
bool sg_build_declare(struct sg_build *b, const struct sg_ptx_declaration *declaration);
/* The register of a declared name; element 0 where it is no vector. False: no memory. */
bool sg_build_register(struct sg_build *b, const struct sg_ptx_name *name, unsigned element,
                       uint32_t *number);
/* Offsets of the variables of a function's frame, and of shared memory. */
void sg_build_lay_out_frame(struct sg_build *b);
void sg_build_lay_out_shared(struct sg_build *b);

/*
 * An operand of the text, without the type that the instruction gives it (operands.c). *why says
 * what cannot be decoded; false: no memory. Immediates keep in `reg` what they were.
 */
enum { SG_RAW_INTEGER, SG_RAW_SINGLE, SG_RAW_DOUBLE };
bool sg_build_operand(struct sg_build *b, const struct sg_ptx_statement *statement,
                      const struct sg_ptx_operand *from, bool label, struct sg_operand *to,
                      const char **why);
bool sg_build_add_operands(struct sg_build *b, const struct sg_operand *operands, size_t count,
                           uint32_t *first);
/* Gives an immediate the bits of a type. NULL, or why it has none. */
const char *sg_build_immediate(struct sg_operand *operand, unsigned type);

/* The sink's instruction (statement.c). */
bool sg_build_instruction(struct sg_build *b, const struct sg_ptx_statement *statement);
/* Modifiers, types and operands by the table of rules (match.c): NULL, or why none fits. */
const char *sg_build_match(struct sg_build *b, const struct sg_ptx_statement *statement,
                           struct sg_instruction *instruction, struct sg_operand *operands);
#define SG_MOST_WORD 56 /* bytes of the longest modifier that is looked at, and more */

/* The modifiers of an instruction, its types by themselves (modifiers.c). */
struct sg_build_words {
    struct {
        char text[SG_MOST_WORD]; /* shared_cluster for .shared::cluster */
        bool used;
    } each[SG_PTX_MODIFIERS];
    size_t count;
    unsigned char types[4];
    unsigned type_count;
    bool too_many;
};
void sg_build_split(const struct sg_ptx_statement *statement, struct sg_build_words *words);
/* Whether a rule uses them up; *policy: the last operand is a cache policy. */
bool sg_build_modifiers_fit(struct sg_build_words *words, const char *rule,
                            struct sg_instruction *to, bool *policy);
bool sg_build_types_fit(const struct sg_build_words *words, const char *rule,
                        struct sg_instruction *to);
/* What the table cannot say: how many registers matrices have, and the like; NULL or why not. */
const char *sg_build_check(const struct sg_program *program,
                           const struct sg_instruction *instruction,
                           const struct sg_operand *operands);

/* Of the whole program, calls of functions that are known (calls.c). */
bool sg_build_check_calls(struct sg_build *b);

/* Labels, and the graph, of the function that was read (flow.c). */
bool sg_build_resolve(struct sg_build *b);
bool sg_build_flow(struct sg_build *b);

unsigned sg_type_of_word(const char *word, size_t length); /* "f32"; SG_TYPE_NONE: no type */

#endif
