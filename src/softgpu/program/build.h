/* What the parts of the decoder share. Everything outside of this folder uses program.h. */
#ifndef SG_PROGRAM_BUILD_H
#define SG_PROGRAM_BUILD_H

#include "softgpu/program/program.h"
#include "softgpu/ptx/ptx_sink.h"

#define SG_MOST_OPERANDS 16 /* of an instruction, not counting elements of vectors */
#define SG_MOST_ELEMENTS 64 /* of a vector */

/* A name that the current function declares. */
struct sg_build_declaration {
    enum sg_space space;
    unsigned char type, vector; /* of an element */
    unsigned element;           /* bytes, to scale name[4] */
    bool ranged;
    uint32_t variable; /* unless it is a register */
};

struct sg_build_label {
    uint32_t instruction;
    uint32_t targets; /* index of the list that it names + 1; 0: it names none */
    bool prototype;
};

struct sg_build_reference { /* to a label, in the order of the operands that name one */
    const char *name;
    size_t length, block;
};

struct sg_register_slot {
    uint64_t key; /* 0: free */
    uint32_t number;
};

/* One text: the image's own, or one of those that it was linked from. */
struct sg_build_part {
    struct sg_image *own; /* read here and owned, or NULL */
    const struct sg_image *image;
    struct sg_ptx_again *again;
    uint32_t *function_of; /* by symbol: index + 1; 0: not named so far */
    uint32_t *variable_of; /* likewise */
};

struct sg_build {
    const struct sg_image *image;
    struct sg_build_part *parts;
    uint32_t part_count;
    /* The current text, being read (sg_build_use). */
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

    /* The current function; emptied for each. */
    uint32_t function;
    struct sg_build_declaration *declarations;
    size_t declaration_count;
    struct sg_register_slot *registers;
    size_t register_room;
    size_t *parents; /* by block: the enclosing block + 1 */
    size_t block_count;
    size_t block; /* the innermost + 1; 0: outside of all */
    struct sg_build_area {
        uint64_t end;
    } * areas; /* of open blocks: where the calls' parameters ended when the block began */
    size_t area_count;
    uint64_t area_end, area_most, area_alignment;
    struct sg_name_table label_names; /* scope: the block */
    struct sg_build_label *labels;
    size_t label_count;
    struct sg_build_reference *references;
    size_t reference_count;
    struct sg_build_wide { /* a parameter or result that no register holds whole */
        uint32_t variable;
        struct sg_ptx_name name; /* of its register, or registers; no declaration: it has none */
        bool result;
    } * wide;
    size_t wide_count;
    struct sg_build_loaded { /* by the current instruction, from a register of the module */
        uint32_t reg, variable;
    } * loaded;
    size_t loaded_count;
    struct sg_build_module_register {
        uint32_t part, variable;
        size_t symbol;
        uint64_t index;
    } * module_registers;
    size_t module_register_count;
    uint32_t location; /* of the last .loc + 1 */
    size_t first_operand, first_target, first_variable;
};

/* Always false. */
bool sg_build_no_memory(struct sg_build *b);
/* A copy that the program owns; NULL: out of memory. */
const char *sg_build_text(struct sg_build *b, const char *text, size_t length);
const char *sg_build_format(struct sg_build *b, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- parts.c --------------------------------------------------------------------------------- */

/* Reads the texts of the image and finds the entry in one of them, which becomes the current one.
 * NOT_FOUND: none has it. After a failure too, sg_build_parts_end frees what was read. */
CUresult sg_build_parts_begin(struct sg_build *b, const char *entry, size_t *symbol);
void sg_build_parts_end(struct sg_build *b);
void sg_build_use(struct sg_build *b, uint32_t part);
/*
 * Which text defines a symbol of the current text, and the symbol's number there, as a linker would
 * choose. The current text itself if no text defines it.
 */
void sg_build_definer(const struct sg_build *b, size_t symbol, uint32_t *part, size_t *there);
/* What a symbol of the current text is an alias of; itself if it is none. */
size_t sg_build_alias(const struct sg_build *b, size_t symbol);
/* A function's number among those of all texts, the same in each program of an image. */
uint32_t sg_build_ordinal(uint32_t part, size_t symbol);
/* The number of a .file, likewise. */
uint64_t sg_build_file_number(uint32_t part, uint64_t number);

/* The function or variable of a symbol of the module, added if it is new (symbols.c). */
bool sg_build_function(struct sg_build *b, size_t symbol, uint32_t *index);
bool sg_build_variable(struct sg_build *b, size_t symbol, uint32_t *index);
bool sg_build_declare(struct sg_build *b, const struct sg_ptx_declaration *declaration);
/* The register of a declared name; `element` is 0 unless it is a vector. False: out of memory. */
bool sg_build_register(struct sg_build *b, const struct sg_ptx_name *name, unsigned element,
                       uint32_t *number);
/* Offsets of the variables of a function's frame, and of shared memory. */
void sg_build_lay_out_frame(struct sg_build *b);
bool sg_build_lay_out_shared(struct sg_build *b);
/* What the module declares for each thread, at the entry's frame's end: after all functions. */
void sg_build_lay_out_thread(struct sg_build *b);

/*
 * An operand of the text, before its instruction gives it a type (operands.c). *why says what
 * cannot be decoded; false: out of memory. `reg` of an immediate says which kind of literal it was:
 */
enum { SG_RAW_INTEGER, SG_RAW_SINGLE, SG_RAW_DOUBLE };
bool sg_build_operand(struct sg_build *b, const struct sg_ptx_statement *statement,
                      const struct sg_ptx_operand *from, bool label, struct sg_operand *to,
                      const char **why);
bool sg_build_add_operands(struct sg_build *b, const struct sg_operand *operands, size_t count,
                           uint32_t *first);
/* Puts the instruction, with as many operands as it counts, behind the others. */
bool sg_build_append(struct sg_build *b, const struct sg_instruction *in,
                     const struct sg_operand *operands);
/* Converts an immediate to the bits of a type. NULL, or why that is impossible. */
const char *sg_build_immediate(struct sg_operand *operand, unsigned type);

/* The variable that stands for a register of the module: number `index` of a range. */
bool sg_build_module_register(struct sg_build *b, size_t symbol, uint64_t index,
                              uint32_t *variable);
/* A variable of the current function's frame without a name: of a call, or of the function. */
bool sg_build_hidden(struct sg_build *b, uint64_t size, bool of_call, uint32_t *index);

/* A register that no text names. False: out of memory. */
bool sg_build_new_register(struct sg_build *b, unsigned type, uint32_t *number);
/* Instructions that `in` implies (implied.c). Before it: operands that are sums become registers.
 */
bool sg_build_sums(struct sg_build *b, const struct sg_instruction *in, struct sg_operand *operands,
                   unsigned count);
/* Before and after a call: its wide arguments and results become variables. `results` (of
 * SG_MOST_ELEMENTS) has what the results were. */
bool sg_build_before_call(struct sg_build *b, const struct sg_instruction *in,
                          struct sg_operand *operands, struct sg_operand *results);
bool sg_build_after_call(struct sg_build *b, const struct sg_instruction *in,
                         const struct sg_operand *operands, const struct sg_operand *results);
/* A wide parameter or result of the function; at its beginning the parameters are loaded, before
 * each return the results are stored. */
bool sg_build_keep_wide(struct sg_build *b, const struct sg_ptx_declaration *from,
                        uint32_t variable);
bool sg_build_move_wide(struct sg_build *b, const struct sg_instruction *in, bool results);

/* A register of the module: loaded now into one of the function, `reg`. What the instruction then
 * writes is stored behind it. */
bool sg_build_load_module(struct sg_build *b, const struct sg_ptx_name *name, uint32_t *reg);
bool sg_build_store_module(struct sg_build *b);
/* vote and shfl without .sync are among the lanes that are together here: they get that mask. */
bool sg_build_together(struct sg_build *b, struct sg_instruction *in, struct sg_operand *operands);

/* Receives each instruction from the reader (statement.c). */
bool sg_build_instruction(struct sg_build *b, const struct sg_ptx_statement *statement);
/* Modifiers, types and operands by the table of rules (match.c): NULL, or why none fits. */
const char *sg_build_match(struct sg_build *b, const struct sg_ptx_statement *statement,
                           struct sg_instruction *instruction, struct sg_operand *operands);
/* Whether an operand of this operation may be a name that stands for an address (match.c). */
bool sg_build_takes_names(unsigned op);
#define SG_MOST_WORD 56 /* longer than any known modifier */

/* The modifiers of an instruction, with its types apart (modifiers.c). */
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
/* Whether a rule accounts for all of them; *policy: the last operand is a cache policy. */
bool sg_build_modifiers_fit(struct sg_build_words *words, const char *rule,
                            struct sg_instruction *to, bool *policy);
bool sg_build_types_fit(const struct sg_build_words *words, const char *rule,
                        struct sg_instruction *to);
/* Checks what the table cannot express, such as how many registers a matrix takes: NULL, or what is
 * wrong (check.c). */
const char *sg_build_check(const struct sg_program *program,
                           const struct sg_instruction *instruction,
                           const struct sg_operand *operands);

/* Checks the calls of known functions in the whole program (calls.c). */
bool sg_build_check_calls(struct sg_build *b);
/* How deep calls go, in bytes of the stack: once all frames are laid out. */
bool sg_build_measure_calls(struct sg_build *b);

/* Resolves labels and builds the control-flow graph of the current function (flow.c). */
bool sg_build_resolve(struct sg_build *b);
bool sg_build_flow(struct sg_build *b);
/* Makes one instruction of a product and its sum, as ptxas does (contract.c). Afterwards, since it
 * moves instructions, only blocks and operands name them. */
bool sg_build_contract(struct sg_build *b);

unsigned sg_type_of_word(const char *word, size_t length); /* "f32"; SG_TYPE_NONE for any other
                                                              word */

#endif
