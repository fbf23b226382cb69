/* Compiling a program to code: what the files code_*.c share. */
#ifndef SG_ENGINE_CODE_H
#define SG_ENGINE_CODE_H

#include "softgpu/engine/inside.h"
#include "softgpu/program/liveness.h"
#include "softgpu/program/region.h"

#define SG_MAKER_SINKS       16
#define SG_MAKER_TEMPORARIES 128

/* A result that must be converted to a register of another width. */
struct sg_sink {
    uint32_t from, to;
    unsigned char from_width, to_width;
    bool is_signed;
};

/* code_constant.c: those that code has. */
struct sg_known_constant;
struct sg_constants {
    struct sg_known_constant *table;
    uint32_t room, count;
};

struct sg_maker {
    struct sg_code *code;
    const struct sg_program *program;
    const struct sg_lanes *lanes;
    const struct sg_program_function *function;
    const struct sg_instruction *in;
    uint32_t function_index, index;
    uint32_t frame;     /* bytes of registers, not counting temporaries */
    uint32_t temporary; /* bytes that this instruction uses */
    uint32_t temporaries;
    uint32_t temporary_slots[SG_MAKER_TEMPORARIES]; /* of this instruction: place and width */
    unsigned temporary_count;
    uint32_t kept; /* where the function saves the end of its caller's alloca, or SG_NOWHERE */
    struct sg_sink sinks[SG_MAKER_SINKS];
    unsigned sink_count;
    struct sg_constants constants;
    struct sg_liveness live; /* the function's */
    struct sg_region region;
    bool *aliased; /* by instruction: it needs no step; NULL: all need one */
    bool unalias;  /* an alias was written: compile again without aliases */
    bool no_memory;
    /* Empty: all can run so far. The longest name of an instruction fits, and a reason. */
    char why[384];
};

/* Records why an instruction cannot run; the first reason counts. Returns false. */
bool sg_maker_refuse(struct sg_maker *maker, const char *why);

/* A new, cleared step for the instruction; its address is valid until the next one is made. */
struct sg_step *sg_maker_step(struct sg_maker *maker, sg_run *run);
/* A step for a theme's form; and one that converts lanes to another width. */
struct sg_step *sg_maker_form(struct sg_maker *maker, const struct sg_form *form);
struct sg_step *sg_maker_widen(struct sg_maker *maker, bool is_signed, unsigned from, unsigned to);
/* code_watch.c: in watched code, adds steps around the access that is the last step, and before a
 * fence. size: bytes of a lane's access; kind: enum sg_watched_kind. */
void sg_maker_watch_access(struct sg_maker *maker, unsigned kind, uint64_t size);
void sg_maker_watch_fence(struct sg_maker *maker);
/* The index of the next step. */
uint32_t sg_maker_here(const struct sg_maker *maker);
uint32_t sg_maker_list(struct sg_maker *maker, const uint32_t *places, uint32_t count);

/* ---- code_operand.c -------------------------------------------------------------------------- */

const struct sg_operand *sg_maker_operand(const struct sg_maker *maker, unsigned index);
uint32_t sg_maker_temporary(struct sg_maker *maker, unsigned width);
/* Where an operand can be read in this width; makes the steps that convert it. */
bool sg_maker_source(struct sg_maker *maker, const struct sg_operand *operand, unsigned width,
                     bool is_signed, uint32_t *place);
/* Where a result of this width can be written; sg_maker_flush then moves it to its register. */
bool sg_maker_result(struct sg_maker *maker, const struct sg_operand *operand, unsigned width,
                     bool is_signed, uint32_t *place);
void sg_maker_flush(struct sg_maker *maker);
/* The address of a load, store or atomic operation: its base, offset and space into `step_…`. Of
 * shared memory the sum is an offset from SG_SHARED_BEGIN on. */
struct sg_maker_address {
    uint32_t base;
    int64_t offset;
    unsigned char space;
    bool wide;
};
bool sg_maker_address(struct sg_maker *maker, const struct sg_operand *operand, unsigned space,
                      struct sg_maker_address *address);
unsigned sg_width_of_type(unsigned type);
unsigned sg_width_bytes(unsigned width);

/* ---- code_constant.c ------------------------------------------------------------------------- */

/* The same value in all lanes. */
uint32_t sg_maker_constant(struct sg_maker *maker, unsigned width, uint64_t value);
/* The same in all lanes: a parameter of the entry, or an address, `offset` behind a variable's. */
uint32_t sg_maker_parameter(struct sg_maker *maker, unsigned width, int64_t offset);
uint32_t sg_maker_address_of(struct sg_maker *maker, uint32_t variable, int64_t offset);
void sg_constants_free(struct sg_constants *known);
/* Room for as many as are wanted, each of that size. */
bool sg_maker_grow(void **memory, uint32_t *room, uint32_t wanted, size_t size);

/* ---- code_registers.c ------------------------------------------------------------------------ */

/* Places of the function's registers, except for aliases of constants, and its liveness. Each frame
 * has the condition code first, then predicates, then the rest. */
void sg_maker_lay_out(struct sg_maker *maker);

/* ---- code_slots.c ---------------------------------------------------------------------------- */

/* The entry's registers, each place once: the first of the code's slots. */
void sg_maker_note_entry(struct sg_maker *maker);
/* What the steps of the instruction read and write, from step `first` on. */
void sg_maker_note_uses(struct sg_maker *maker, uint32_t first);
/* What is live behind a branch, which is the step's alone: first those whose tags hold until the
 * lanes that it parts have joined again. */
void sg_maker_note_live(struct sg_maker *maker, uint32_t branch);

/* ---- code_alias.c ---------------------------------------------------------------------------- */

/* Finds registers of the entry that are aliases of constants. */
void sg_maker_alias(struct sg_maker *maker);
/* Whether cvta leaves the address unchanged. */
bool sg_maker_windowless(const struct sg_instruction *in);
/* The place of the parameter that a scalar load reads, if it is known at this point. */
bool sg_maker_parameter_of(struct sg_maker *maker, unsigned width, uint32_t *place);

/* ---- code_emit.c, code_control.c, code_matrix.c ---------------------------------------------- */

bool sg_maker_find(const struct sg_maker *maker, const struct sg_instruction *in,
                   struct sg_form *form);
/* Makes the steps of one instruction; false: it cannot run. */
bool sg_maker_emit(struct sg_maker *maker);
/* Whether the instruction is control flow; *ok then says whether its steps were made. */
bool sg_maker_control(struct sg_maker *maker, bool *ok);
/* Likewise for mov of parts, cvta, isspacep, and instructions without an effect here. */
bool sg_maker_other(struct sg_maker *maker, bool *ok);
/* Matrix instructions, .sync.aligned: after a step that waits for the whole warp. */
bool sg_maker_matrix(struct sg_maker *maker);
bool sg_is_matrix(unsigned op);
/* code_async.c: copies that complete later, mbarriers, clusters. */
bool sg_maker_async(struct sg_maker *maker, bool *ok);
/* Whether a program has any of those. */
bool sg_program_clustered(const struct sg_program *program);
bool sg_is_control(unsigned op);
/* As sg_maker_other: code_vector.c, code_compound.c, code_video.c, code_stack.c. */
bool sg_maker_vector(struct sg_maker *maker, bool *ok);
bool sg_maker_compound(struct sg_maker *maker, bool *ok);
bool sg_maker_video(struct sg_maker *maker, bool *ok);
bool sg_maker_stack(struct sg_maker *maker, bool *ok);
/* At a function's beginning, and before each return: `in` is the instruction, or NULL at the
 * function's end. */
void sg_maker_stack_begin(struct sg_maker *maker);
void sg_maker_stack_end(struct sg_maker *maker, const struct sg_instruction *ret);
/* code_texture.c: textures, surfaces, and queries about them. False: it cannot run. */
bool sg_maker_texture(struct sg_maker *maker);
/* code_count.c: in counted code, before each instruction. */
void sg_maker_count(struct sg_maker *maker);

#endif
