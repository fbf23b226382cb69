/* Bits: logic, shifts, fields, counts, permutations. */
#include "softgpu/engine/lanes/lanes.h"

#define LOGIC(BITS)                                                                                \
    SG_MAP2(and_##BITS, u##BITS, u##BITS, u##BITS, A &B)                                           \
    SG_MAP2(or_##BITS, u##BITS, u##BITS, u##BITS, A | B)                                           \
    SG_MAP2(xor_##BITS, u##BITS, u##BITS, u##BITS, A ^ B)                                          \
    SG_MAP1(not_##BITS, u##BITS, u##BITS, ~A)                                                      \
    SG_MAP1(cnot_##BITS, u##BITS, u##BITS, A == 0)                                                 \
    /* Shift counts are clamped to the width. */                                                   \
    SG_MAP2R(shl_##BITS, u##BITS, u##BITS, u32, B >= BITS ? 0 : A << (B & (BITS - 1)),             \
             sg_shift_##BITS)                                                                      \
    SG_MAP2(shr_u##BITS, u##BITS, u##BITS, u32, B >= BITS ? 0 : A >> (B & (BITS - 1)))             \
    SG_MAP2(shr_s##BITS, s##BITS, s##BITS, u32, A >> (B >= BITS ? BITS - 1 : B))
LOGIC(16)
/* Arithmetic in both compilers. */
/* cppcheck-suppress shiftTooManyBitsSigned */
LOGIC(32)
/* cppcheck-suppress shiftTooManyBitsSigned */
LOGIC(64)

static inline uint32_t count32(uint32_t x) {
    x = x - (x >> 1 & 0x55555555u);
    x = (x & 0x33333333u) + (x >> 2 & 0x33333333u);
    return ((x + (x >> 4)) & 0x0f0f0f0fu) * 0x01010101u >> 24;
}
static inline uint32_t leading32(uint32_t x) {
    return x ? (uint32_t)__builtin_clz(x) : 32;
}
static inline uint32_t leading64(uint64_t x) {
    return x ? (uint32_t)__builtin_clzll(x) : 64;
}
static inline uint32_t reverse32(uint32_t x) {
    x = (x >> 1 & 0x55555555u) | (x & 0x55555555u) << 1;
    x = (x >> 2 & 0x33333333u) | (x & 0x33333333u) << 2;
    x = (x >> 4 & 0x0f0f0f0fu) | (x & 0x0f0f0f0fu) << 4;
    return x >> 24 | (x >> 8 & 0xff00u) | (x & 0xff00u) << 8 | x << 24;
}
/* The position of the highest bit that differs from the sign; -1: none. `shift`: its distance from
 * the top. */
static inline uint32_t find(uint64_t x, unsigned bits, bool has_sign, bool shift) {
    if (has_sign && x >> (bits - 1) & 1)
        x = ~x;
    x &= bits == 32 ? UINT32_MAX : UINT64_MAX;
    if (x == 0)
        return UINT32_MAX;
    uint32_t at = 63 - leading64(x);
    return shift ? bits - 1 - at : at;
}
SG_MAP1(popc_32, u32, u32, count32(A))
SG_MAP1(popc_64, u32, u64, count32((uint32_t)A) + count32((uint32_t)(A >> 32)))
SG_MAP1(clz_32, u32, u32, leading32(A))
SG_MAP1(clz_64, u32, u64, leading64(A))
SG_MAP1(brev_32, u32, u32, reverse32(A))
SG_MAP1(brev_64, u64, u64, (uint64_t)reverse32((uint32_t)A) << 32 | reverse32((uint32_t)(A >> 32)))
SG_MAP1(bfind_32, u32, u32, find(A, 32, step->choice & 1, step->choice & 2))
SG_MAP1(bfind_64, u32, u64, find(A, 64, step->choice & 1, step->choice & 2))

/* Fields: with 32 bits, position and length are the low 8 bits of their operands; with 64 bits the
 * whole operands, as recorded: ptxas builds those from shifts, which clamp at the width. */
static inline uint32_t field_number(uint32_t value, unsigned bits) {
    return bits == 32 ? value & 0xff : value > 64 ? 64 : value;
}
static inline uint64_t extract(uint64_t value, uint32_t at, uint32_t length, unsigned bits,
                               bool has_sign) {
    at = field_number(at, bits);
    length = field_number(length, bits);
    uint64_t all = bits == 32 ? UINT32_MAX : UINT64_MAX;
    if (length == 0)
        return 0;
    uint32_t top = at + length - 1 < bits - 1 ? at + length - 1 : bits - 1;
    bool sign = has_sign && (value >> top & 1);
    uint64_t kept = at >= bits ? 0 : value >> at;
    uint64_t field = length >= bits ? all : ((uint64_t)1 << length) - 1;
    uint32_t there = at >= bits ? 0 : bits - at; /* bits of the field inside the value */
    uint64_t real = there >= bits ? all : ((uint64_t)1 << there) - 1;
    uint64_t valid = field & real;
    return ((kept & valid) | (sign ? ~valid : 0)) & all;
}
static inline uint64_t insert(uint64_t from, uint64_t into, uint32_t at, uint32_t length,
                              unsigned bits) {
    at = field_number(at, bits);
    length = field_number(length, bits);
    if (at >= bits || length == 0)
        return into;
    uint64_t field = length >= 64 ? UINT64_MAX : ((uint64_t)1 << length) - 1;
    return (into & ~(field << at)) | (from & field) << at;
}
SG_MAP3(bfe_u32, u32, u32, u32, u32, extract(A, B, C, 32, false))
SG_MAP3(bfe_s32, u32, u32, u32, u32, extract(A, B, C, 32, true))
SG_MAP3(bfe_u64, u64, u64, u32, u32, extract(A, B, C, 64, false))
SG_MAP3(bfe_s64, u64, u64, u32, u32, extract(A, B, C, 64, true))

#define INSERT(BITS)                                                                               \
    static const struct sg_step *bfi_##BITS(struct sg_warp *warp, const struct sg_step *step) {    \
        u##BITS *d = SG_SLOT(warp, step->d);                                                       \
        const u##BITS *a_ = SG_SLOT(warp, step->a), *b_ = SG_SLOT(warp, step->b);                  \
        const u32 *c_ = SG_SLOT(warp, step->c), *e_ = SG_SLOT(warp, step->e);                      \
        SG_STORE(u##BITS, insert(A, B, C, e_[l], BITS))                                            \
    }
INSERT(32)
INSERT(64)

static inline uint32_t mask_of(uint32_t at, uint32_t length, bool wrap) {
    at = wrap ? at & 31 : at;
    length = wrap ? length & 31 : length;
    uint64_t field = length >= 32 ? UINT32_MAX : ((uint64_t)1 << length) - 1;
    return at >= 32 ? 0 : (uint32_t)(field << at);
}
SG_MAP2(bmsk, u32, u32, u32, mask_of(A, B, step->choice))
static inline uint32_t extended(uint32_t value, uint32_t bits, bool wrap, bool has_sign) {
    bits = wrap ? bits & 31 : bits;
    if (bits == 0)
        return 0;
    if (bits >= 32)
        return value;
    uint32_t up = value << (32 - bits);
    return has_sign ? (uint32_t)((int32_t)up >> (32 - bits)) : up >> (32 - bits);
}
SG_MAP2(szext, u32, u32, u32, extended(A, B, step->choice & 1, step->choice & 2))

/* Funnel shifts: a is the lower, b the upper word. */
static inline uint32_t funnel_left(uint32_t a, uint32_t b, uint32_t by) {
    return (uint32_t)(((uint64_t)b << 32 | a) << by >> 32);
}
static inline uint32_t funnel_right(uint32_t a, uint32_t b, uint32_t by) {
    return (uint32_t)(((uint64_t)b << 32 | a) >> by);
}
SG_MAP3(shf_l_wrap, u32, u32, u32, u32, funnel_left(A, B, C & 31))
SG_MAP3(shf_r_wrap, u32, u32, u32, u32, funnel_right(A, B, C & 31))
SG_MAP3(shf_l_clamp, u32, u32, u32, u32, funnel_left(A, B, C > 32 ? 32 : C))
SG_MAP3(shf_r_clamp, u32, u32, u32, u32, funnel_right(A, B, C > 32 ? 32 : C))

/* lop3: each bit of the result is the table's bit that the three operand bits select. */
static inline uint32_t lookup(uint32_t a, uint32_t b, uint32_t c, uint32_t table) {
    uint32_t result = 0;
    for (unsigned i = 0; i < 8; i++) {
        uint32_t use = 0 - (table >> i & 1);
        result |= use & (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
    }
    return result;
}
static const struct sg_step *lop3(struct sg_warp *warp, const struct sg_step *step) {
    u32 *d = SG_SLOT(warp, step->d);
    const u32 *a_ = SG_SLOT(warp, step->a), *b_ = SG_SLOT(warp, step->b);
    const u32 *c_ = SG_SLOT(warp, step->c), *e_ = SG_SLOT(warp, step->e);
    uint32_t table = e_[0];
    SG_STORE(u32, lookup(A, B, C, table))
}

/* prmt: a nibble selects a byte of b:a; its bit 3 replicates the byte's sign. */
static inline uint32_t select_byte(uint32_t a, uint32_t b, uint32_t which, bool sign) {
    uint32_t byte = (uint32_t)(((uint64_t)b << 32 | a) >> (8 * (which & 7))) & 0xff;
    return sign ? (byte >> 7) * 0xff : byte;
}
static inline uint32_t permute(uint32_t a, uint32_t b, uint32_t c, unsigned mode) {
    uint32_t result = 0;
    for (unsigned i = 0; i < 4; i++) {
        uint32_t which = c & 3;
        switch (mode) {
        case SG_DO_F4E:
            which += i;
            break;
        case SG_DO_B4E:
            which = (which - i) & 7;
            break;
        case SG_DO_RC8:
            break;
        case SG_DO_ECL:
            which = which > i ? which : i;
            break;
        case SG_DO_ECR:
            which = which < i ? which : i;
            break;
        case SG_DO_RC16:
            which = (which & 1) * 2 + (i & 1);
            break;
        default:
            which = c >> (4 * i) & 15;
        }
        result |= select_byte(a, b, which, mode == SG_DO_NONE && which & 8) << (8 * i);
    }
    return result;
}
SG_MAP3(prmt, u32, u32, u32, u32, permute(A, B, C, SG_DO_NONE))
SG_MAP3(prmt_mode, u32, u32, u32, u32, permute(A, B, C, step->choice))

struct row {
    unsigned char op, sources, second; /* width of the other sources; 0: the same */
    bool count;                        /* the result has 32 bits, whatever the type */
    sg_run *by[3];
};
static const struct row rows[] = {
    {SG_OP_and, 2, 0, false, {and_16, and_32, and_64}},
    {SG_OP_or, 2, 0, false, {or_16, or_32, or_64}},
    {SG_OP_xor, 2, 0, false, {xor_16, xor_32, xor_64}},
    {SG_OP_not, 1, 0, false, {not_16, not_32, not_64}},
    {SG_OP_cnot, 1, 0, false, {cnot_16, cnot_32, cnot_64}},
    {SG_OP_shl, 2, SG_W_32, false, {shl_16, shl_32, shl_64}},
    {SG_OP_popc, 1, 0, true, {NULL, popc_32, popc_64}},
    {SG_OP_clz, 1, 0, true, {NULL, clz_32, clz_64}},
    {SG_OP_brev, 1, 0, false, {NULL, brev_32, brev_64}},
    {SG_OP_bfind, 1, 0, true, {NULL, bfind_32, bfind_64}},
    {SG_OP_bmsk, 2, 0, false, {NULL, bmsk, NULL}},
    {SG_OP_szext, 2, 0, false, {NULL, szext, NULL}},
    {SG_OP_lop3, 4, 0, false, {NULL, lop3, NULL}},
    {SG_OP_prmt, 3, 0, false, {NULL, prmt, NULL}},
};

static bool fill(struct sg_form *form, sg_run *run, unsigned dest, unsigned first, unsigned others,
                 unsigned count) {
    form->run = run;
    form->gang = run != bfi_32 && run != bfi_64 && run != lop3; /* these are not made by SG_MAP */
    form->dest = (unsigned char)dest;
    form->source[0] = (unsigned char)first;
    for (unsigned i = 1; i < count; i++)
        form->source[i] = (unsigned char)others;
    return run != NULL;
}

static bool shifted(const struct sg_instruction *in, struct sg_form *form, unsigned at,
                    bool has_sign) {
    static sg_run *const shr[2][3] = {{shr_u16, shr_u32, shr_u64}, {shr_s16, shr_s32, shr_s64}};
    static sg_run *const bfe[2][3] = {{NULL, bfe_u32, bfe_u64}, {NULL, bfe_s32, bfe_s64}};
    unsigned width = SG_W_16 + at;
    if (in->op == SG_OP_shr)
        return fill(form, shr[has_sign][at], width, width, SG_W_32, 2);
    if (in->op == SG_OP_bfe)
        return fill(form, bfe[has_sign][at], width, width, SG_W_32, 3);
    if (in->op == SG_OP_bfi) {
        fill(form, at == 1 ? bfi_32 : bfi_64, width, width, SG_W_32, 4);
        form->source[1] = (unsigned char)width;
        return at != 0;
    }
    bool left = (in->modifiers & SG_MOD(LEFT)) != 0, wrap = (in->modifiers & SG_MOD(WRAP)) != 0;
    return in->op == SG_OP_shf && at == 1 &&
           fill(form,
                left   ? (wrap ? shf_l_wrap : shf_l_clamp)
                : wrap ? shf_r_wrap
                       : shf_r_clamp,
                SG_W_32, SG_W_32, SG_W_32, 3);
}

bool SG_LEVEL(sg_theme_bits)(const struct sg_instruction *in, struct sg_form *form) {
    unsigned bits = sg_type_bits(in->type);
    bool has_sign = in->type >= SG_TYPE_S8 && in->type <= SG_TYPE_S64;
    if (bits < 16 || bits > 64 || in->type >= SG_TYPE_F16)
        return false;
    unsigned at = bits == 16 ? 0 : bits == 32 ? 1 : 2, width = SG_W_16 + at;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].op != in->op)
            continue;
        if (in->op == SG_OP_lop3 && in->boolean)
            return false; /* with a predicate as second result: not yet */
        bool wrap = (in->modifiers & SG_MOD(WRAP)) != 0;
        form->choice =
            (unsigned char)(in->op == SG_OP_bmsk    ? wrap
                            : in->op == SG_OP_szext ? wrap | has_sign << 1
                            : in->op == SG_OP_bfind
                                ? has_sign | ((in->modifiers & SG_MOD(SHIFTAMT)) != 0) << 1
                                : 0);
        sg_run *run = rows[i].by[at];
        if (in->op == SG_OP_prmt && in->operation) {
            form->choice = (unsigned char)in->operation;
            run = prmt_mode;
        }
        return fill(form, run, rows[i].count ? SG_W_32 : width, width,
                    rows[i].second ? rows[i].second : width, rows[i].sources);
    }
    return shifted(in, form, at, has_sign);
}
