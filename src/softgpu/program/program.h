/*
 * A kernel of PTX, decoded: the entry and every function it reaches as typed instructions with
 * dense registers, resolved labels, laid-out variables and a control-flow graph. Pure: nothing here
 * knows of contexts, handles or the lock. A program is made once, at a kernel's first use, and is
 * constant from then on, so any number of threads may read it.
 */
#ifndef SG_PROGRAM_PROGRAM_H
#define SG_PROGRAM_PROGRAM_H

#include "softgpu/image/image.h"

/* ---- what an instruction says ---------------------------------------------------------------- */

enum sg_opcode {
#define SG_PTX_OPCODE(name, least, most, flags, types, operands, spaces, sm, version, modifiers)   \
    SG_OP_##name,
#include "softgpu/ptx/ptx_opcodes.def"
#undef SG_PTX_OPCODE
    SG_OP_COUNT
};

enum sg_type {
    SG_TYPE_NONE,
#define SG_PROGRAM_TYPE(name, word, bits) SG_TYPE_##name,
#include "softgpu/program/program_names.def"
    SG_TYPE_COUNT
};

#define SG_PROGRAM_MODIFIER(name, word, bit) SG_MOD_BIT_##name = (bit),
enum sg_modifier_bit {
#include "softgpu/program/program_names.def"
};
/* SG_MOD(FTZ): the bit of .ftz in `modifiers` */
#define SG_MOD(name) ((uint64_t)1 << SG_MOD_BIT_##name)

enum sg_rounding {
    SG_ROUND_NONE,
#define SG_PROGRAM_ROUNDING(name, word) SG_ROUND_##name,
#include "softgpu/program/program_names.def"
    SG_ROUND_COUNT
};

enum sg_compare {
    SG_COMPARE_NONE,
#define SG_PROGRAM_COMPARE(name, word) SG_COMPARE_##name,
#include "softgpu/program/program_names.def"
    SG_COMPARE_COUNT
};

enum sg_boolean {
    SG_BOOLEAN_NONE,
#define SG_PROGRAM_BOOLEAN(name, word) SG_BOOLEAN_##name,
#include "softgpu/program/program_names.def"
    SG_BOOLEAN_COUNT
};

enum sg_semantics {
    SG_SEMANTICS_NONE,
#define SG_PROGRAM_SEMANTICS(name, word) SG_SEMANTICS_##name,
#include "softgpu/program/program_names.def"
    SG_SEMANTICS_COUNT
};

enum sg_scope {
    SG_SCOPE_NONE,
#define SG_PROGRAM_SCOPE(name, word) SG_SCOPE_##name,
#include "softgpu/program/program_names.def"
    SG_SCOPE_COUNT
};

enum sg_state_space {
    SG_IN_NONE, /* the instruction accesses no memory */
#define SG_PROGRAM_SPACE(name, word) SG_IN_##name,
#include "softgpu/program/program_names.def"
    SG_IN_COUNT
};

enum sg_operation {
    SG_DO_NONE,
#define SG_PROGRAM_OPERATION(name, word) SG_DO_##name,
#include "softgpu/program/program_names.def"
    SG_DO_COUNT
};

enum sg_geometry {
    SG_GEOMETRY_NONE,
#define SG_PROGRAM_GEOMETRY(name, word) SG_GEOMETRY_##name,
#include "softgpu/program/program_names.def"
    SG_GEOMETRY_COUNT
};

enum sg_special {
    SG_SPECIAL_NONE,
#define SG_PROGRAM_SPECIAL(name, word) SG_SPECIAL_##name,
#include "softgpu/program/program_names.def"
    SG_SPECIAL_COUNT
};

/* ---- operands -------------------------------------------------------------------------------- */

#define SG_NO_REGISTER  UINT32_MAX
#define SG_NO_VARIABLE  UINT32_MAX
#define SG_NO_BLOCK     UINT32_MAX
#define SG_RETURN_BLOCK (UINT32_MAX - 1)

enum sg_operand_kind {
    SG_OPERAND_NONE,      /* _, or a result that the instruction does not name */
    SG_OPERAND_REGISTER,  /* `reg`; `negated`: a predicate's complement; `part`: see enum sg_part */
    SG_OPERAND_IMMEDIATE, /* `value`: the bits of its type, integers sign-extended to 64 bits */
    SG_OPERAND_SPECIAL,   /* `first`: enum sg_special; `part`: 1 for .x to 4 for .w; 0 for none, or
                             for all where mov reads a vector */
    SG_OPERAND_ADDRESS,   /* [reg + value], [variable + value] or [value] */
    SG_OPERAND_VARIABLE,  /* the address of variable `first` plus `value`; in a call: its bytes */
    SG_OPERAND_FUNCTION,  /* `first`: index in the program's functions */
    SG_OPERAND_LABEL,     /* `first`: index of an instruction within the function */
    SG_OPERAND_TARGETS,   /* `first`: index in the program's targets, for brx and indirect calls */
    SG_OPERAND_VECTOR,    /* {…} and (…): `count` operands starting at operands[first] */
    SG_OPERAND_PAIR       /* p|q, r|p: operands[first] and the next */
};

struct sg_operand {
    unsigned char kind; /* enum sg_operand_kind */
    bool negated;       /* !p */
    unsigned char part; /* SPECIAL: see above; REGISTER: SG_PART_… */
    unsigned char type; /* enum sg_type of what is read or written; an immediate has its bits */
    uint32_t count;     /* VECTOR and PAIR: number of elements */
    uint32_t reg;       /* the register; ADDRESS: its base, or SG_NO_REGISTER */
    uint32_t first;     /* see the kind; ADDRESS: the variable, or SG_NO_VARIABLE */
    int64_t value;      /* see the kind; ADDRESS and VARIABLE: the offset in bytes */
};

/* Which bytes of a register a video instruction reads or writes; .b3210 and the like are
 * selectors. */
enum sg_part {
    SG_PART_NONE,
    SG_PART_B0,
    SG_PART_B1,
    SG_PART_B2,
    SG_PART_B3,
    SG_PART_H0,
    SG_PART_H1,
    SG_PART_SELECTOR /* `value`: the digits of .b3210 or .h10 as nibbles, 0x3210 */
};

/* ---- instructions ---------------------------------------------------------------------------- */

/*
 * Where the text gives no semantics or scope, PTX's defaults are: weak for ld and st; relaxed at
 * gpu scope for atom and red; acq_rel for fence; sc for membar; release for mbarrier.arrive and
 * acquire for its waits, at cta scope; release for barrier.cluster.arrive and acquire for .wait. A
 * ld or st that has semantics also has a scope.
 *
 * Operands are in the order of the text, results first, with these exceptions. A call has the
 * target (FUNCTION or REGISTER), the results (VECTOR, which may be empty), the arguments (VECTOR)
 * and, if it is indirect, its TARGETS or prototype (NONE); the lists contain VARIABLEs of the
 * frame, REGISTERs and, as arguments, IMMEDIATEs. If the callee is known,
 * the device runtime's functions included, they have the sizes of its parameters and results; for a
 * call through a register only the call itself can compare them. setp, vote and shfl with two
 * results have a PAIR. A vector register becomes a VECTOR of its elements. Optional operands that
 * the text leaves out at the end are missing here too.
 */
struct sg_instruction {
    uint16_t op;                              /* enum sg_opcode */
    uint16_t operation, operation2;           /* enum sg_operation */
    unsigned char type, type2, type3, type4;  /* enum sg_type, in the text's order */
    unsigned char space, space2;              /* enum sg_state_space; for cp: to, from */
    unsigned char rounding, compare, boolean; /* enum sg_rounding, sg_compare, sg_boolean */
    unsigned char semantics, scope;           /* NONE: the text gives none, see above */
    unsigned char vector;                     /* 2, 4, 8; for ldmatrix 1, 2, 4; 1 for a scalar */
    unsigned char geometry;                   /* enum sg_geometry */
    uint16_t shape[3];                        /* m, n, k of a matrix instruction; 0: not given */
    uint64_t modifiers;                       /* SG_MOD(…) */
    uint32_t guard;                           /* predicate register + 1, 0 for none */
    bool guard_negated;                       /* @!p */
    bool backward;                            /* a branch backward, or to itself */
    unsigned char operand_count;
    bool result; /* the first operand is written (in a call: the second); all others are read */
    uint32_t first_operand;
    uint32_t line;           /* in the PTX, counted from 1 */
    uint32_t location;       /* index of the .loc in force + 1, 0 for none */
    uint32_t block;          /* index in the program's blocks */
    const char *unsupported; /* why no engine will run it, or NULL; owned by the program */
};

/* ---- functions and what they have ------------------------------------------------------------ */

struct sg_register {
    unsigned char type; /* enum sg_type as declared; for a vector, of an element */
    const char *name;   /* %r12, %v.x */
};

/* Where a variable's bytes are. */
enum sg_variable_place {
    SG_PLACE_IMAGE,          /* .global, .const: `image` is the index among the image's variables */
    SG_PLACE_SHARED,         /* at `offset` in the block's static shared memory */
    SG_PLACE_DYNAMIC_SHARED, /* extern .shared: at `offset`, after all static variables */
    SG_PLACE_FRAME,          /* at `offset` in the frame of `function` */
    SG_PLACE_PARAMETERS,     /* at `offset` in the launch's parameters */
    SG_PLACE_TEXTURE,        /* .texref, .samplerref, .surfref: by name */
    SG_PLACE_THREAD,         /* .local and .reg of the module: at `offset` in the entry's frame,
                                from every function */
};

struct sg_program_variable {
    const char *name;
    unsigned char place; /* enum sg_variable_place */
    unsigned char space; /* enum sg_state_space; SG_IN_NONE for SG_PLACE_TEXTURE */
    unsigned char type;  /* enum sg_type of an element */
    bool of_call;        /* in a frame: a parameter or result of calls, which may overlap others */
    bool sampler;        /* SG_PLACE_TEXTURE: a .samplerref, with its initial value: */
    uint32_t settings;   /* SG_SAMPLER_SET, modes, filter, coordinates; 0: none given */
    uint32_t function;   /* in a frame: index of the function; UINT32_MAX: the module's */
    uint32_t order;      /* its symbol's number among all of the image, or its function's */
    uint64_t offset, size, alignment;
    uint32_t image;
};

/* Settings of a .samplerref: three bits for each address mode (wrap, mirror, clamp_ogl,
 * clamp_to_edge, clamp_to_border), then these. */
#define SG_SAMPLER_MODE(settings, axis) ((settings) >> 3 * (axis)&7u)
#define SG_SAMPLER_LINEAR               (UINT32_C(1) << 9)
#define SG_SAMPLER_UNNORMALIZED         (UINT32_C(1) << 10)
#define SG_SAMPLER_SET                  (UINT32_C(1) << 31)

/* A parameter or a result, in order. */
struct sg_program_parameter {
    uint32_t variable; /* index; SG_NO_VARIABLE for one in registers */
    uint32_t reg;      /* .reg: the first of `count`; else SG_NO_REGISTER */
    uint32_t count;
};

/* The device runtime's functions, which have no body in any text. */
enum sg_runtime {
    SG_RUNTIME_NONE,
    SG_RUNTIME_VPRINTF,
    SG_RUNTIME_MALLOC,
    SG_RUNTIME_ALIGNED_MALLOC, /* what compilers make of __nv_aligned_device_malloc */
    SG_RUNTIME_FREE,
    SG_RUNTIME_ASSERTFAIL,
    SG_RUNTIME_MEMCPY,
    SG_RUNTIME_MEMSET,
    SG_RUNTIME_GRAPH_SET_CONDITIONAL, /* cudaGraphSetConditional */
    SG_RUNTIME_OTHER                  /* any other cuda…: unknown here, and refused */
};

struct sg_program_function {
    const char *name;
    bool entry, variadic;
    unsigned char runtime; /* enum sg_runtime */
    uint32_t ordinal;      /* number among all functions of the image, the same in each program */
    bool defined;          /* has a body */
    uint32_t first_instruction, instructions; /* none for the runtime's functions */
    uint32_t first_block, blocks;
    uint32_t first_register, registers;   /* operands number registers from 0 in each function */
    uint32_t first_parameter, parameters; /* in the program's parameters */
    uint32_t first_result, results;
    /*
     * Bytes of the thread's stack that a call takes: results and parameters (except the entry's),
     * .local variables, and .param variables of the calls it makes; the entry's also has what the
     * module declares for each thread. `frame_alignment` is a power of two, at least 16.
     */
    uint64_t frame, frame_alignment;
    bool indirect_calls; /* calls through a register */
    bool address_taken;  /* named by something other than a direct call */
};

/* A basic block of a function: instructions `first` to `end` - 1. */
struct sg_program_block {
    uint32_t first, end;
    uint32_t first_successor, successors; /* in the program's successors: indices of blocks */
    uint32_t post_dominator; /* the nearest block on every path to an exit; SG_NO_BLOCK: none */
    /* Where lanes join that part behind it: the post-dominator, or, where there is none, the
     * nearest block on every path to where the function ends, for those that do not exit before.
     * SG_RETURN_BLOCK is behind the call, and SG_NO_BLOCK means that none join. */
    uint32_t join;
    bool loop_header; /* a back edge leads here */
};

struct sg_program_targets { /* .branchtargets: instructions; .calltargets: functions */
    uint32_t first, count;  /* in the program's target list */
    bool calls;
};

struct sg_program_file {
    uint64_t number; /* as .loc names it */
    const char *name;
};

struct sg_program_location {
    uint64_t file; /* number */
    uint32_t line, column;
    bool inlined; /* and from where: */
    uint64_t inlined_file;
    uint32_t inlined_line, inlined_column;
};

struct sg_program {
    const char *name; /* of the entry, which is functions[0] */
    struct sg_program_function *functions;
    size_t function_count;
    struct sg_instruction *instructions; /* of all functions, one after another */
    size_t instruction_count;
    struct sg_operand *operands;
    size_t operand_count;
    struct sg_register *registers;
    size_t register_count;
    struct sg_program_variable *variables;
    size_t variable_count;
    struct sg_program_parameter *parameters; /* and results */
    size_t parameter_count;
    struct sg_program_block *blocks;
    size_t block_count;
    uint32_t *successors;
    size_t successor_count;
    struct sg_program_targets *targets;
    size_t target_count;
    uint32_t *target_list;
    size_t target_list_count;
    struct sg_program_location *locations;
    size_t location_count;
    struct sg_program_file *files;
    size_t file_count;
    uint64_t static_shared;            /* bytes per block, of what the entry reaches */
    uint64_t dynamic_shared_offset;    /* where extern .shared begins */
    uint64_t dynamic_shared_alignment; /* the strictest alignment among these */
    const char *unsupported; /* of the first instruction that has one; NULL: all can run */
    uint32_t unsupported_line;
    char **texts; /* names and reasons, owned */
    size_t text_count;
};

/*
 * Decodes an entry of an image of PTX. An instruction that cannot be decoded exactly is no failure:
 * its `unsupported` says why. Errors: INVALID_VALUE, the image has no text; NOT_FOUND, no such
 * entry; INVALID_PTX, with a message in the log, the text contradicts itself in a way that only
 * decoding notices; OUT_OF_MEMORY. *program is set on success only. The program keeps copies and
 * may outlive the image. The image is only read, so several threads may do this at once.
 */
CUresult sg_program_make(const struct sg_image *image, const char *entry, struct sg_image_log *log,
                         struct sg_program **program);
/* NULL is allowed. */
void sg_program_free(struct sg_program *program);

/*
 * The ordinals that functions have in each program of an image, by their names: what initial values
 * of variables hold of them. INVALID_VALUE: the image has no text; as sg_program_make for others.
 * The image must outlive it.
 */
struct sg_function_names;
CUresult sg_function_names_begin(const struct sg_image *image, struct sg_function_names **names);
/* As text number `part` of the image names it (0 where there is one); false: there is no function
 * of this name with a body. From one thread at a time. */
bool sg_function_ordinal(struct sg_function_names *names, unsigned part, const char *name,
                         uint32_t *ordinal);
/* NULL is allowed. */
void sg_function_names_end(struct sg_function_names *names);

/*
 * The registers that an instruction names, one call for each: first those that it reads, its guard
 * included, then those that it writes. A guarded write leaves a lane's old value where the guard is
 * false.
 */
typedef void sg_register_use(void *user, uint32_t reg, bool written);
void sg_instruction_registers(const struct sg_program *program,
                              const struct sg_instruction *instruction, sg_register_use *use,
                              void *user);

/* Names for reports: "add", "f32"; "" for none. */
const char *sg_op_name(unsigned op);
const char *sg_type_name(unsigned type);
unsigned sg_type_bits(unsigned type);
/* The whole program as text, for tests and reports; the caller frees it. NULL: out of memory. */
char *sg_program_dump(const struct sg_program *program);

#endif
