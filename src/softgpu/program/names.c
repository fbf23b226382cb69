/* Names of opcodes, types and the other parts of instructions. */
#include "softgpu/program/build.h"

#include <string.h>

static const char *const ops[] = {
#define SG_PTX_OPCODE(name, least, most, flags, types, operands, spaces, sm, version, modifiers)   \
#name,
#include "softgpu/ptx/ptx_opcodes.def"
#undef SG_PTX_OPCODE
};

static const struct {
    const char *word;
    unsigned bits;
} types[] = {
    {"", 0},
#define SG_PROGRAM_TYPE(name, word, bits) {#word, (bits)},
#include "softgpu/program/program_names.def"
};

const char *sg_op_name(unsigned op) {
    return op < SG_OP_COUNT ? ops[op] : "";
}

const char *sg_type_name(unsigned type) {
    return type < SG_TYPE_COUNT ? types[type].word : "";
}

unsigned sg_type_bits(unsigned type) {
    return type < SG_TYPE_COUNT ? types[type].bits : 0;
}

unsigned sg_type_of_word(const char *word, size_t length) {
    for (unsigned i = 1; i < SG_TYPE_COUNT; i++) {
        if (strlen(types[i].word) == length && memcmp(types[i].word, word, length) == 0)
            return i;
    }
    return SG_TYPE_NONE;
}
