/* cvt between all types, with rounding, saturation and flushing. */
#include "softgpu/engine/lanes/lanes.h"

#include <math.h>

/* ---- frequent conversions -------------------------------------------------------------------- */

static inline int32_t to_s32(float value) {
    return value != value            ? 0
           : value >= 2147483648.0F  ? INT32_MAX
           : value <= -2147483648.0F ? INT32_MIN
                                     : (int32_t)value;
}
SG_MAP1(f32_from_s32, u32, s32, sg_bits32((float)A))
SG_MAP1(f32_from_u32, u32, u32, sg_bits32((float)A))
SG_MAP1(s32_from_f32, s32, u32, to_s32(sg_float(A)))
SG_MAP1(f32_from_f16, u32, u16, sg_canonical(SG_LEVEL(sg_half_to_float)(A)))

/* NaNs keep the upper bits of their payload if one side is f64 or bf16, as recorded. */
static inline bool is_nan64(uint64_t bits) {
    return (bits & INT64_MAX) > UINT64_C(0x7ff0000000000000);
}
static inline uint32_t nan32_from_64(uint64_t bits) {
    return ((uint32_t)(bits >> 32) & 0x80000000u) | 0x7fc00000u | (uint32_t)(bits >> 29 & 0x3fffff);
}
static inline uint64_t nan64_from_32(uint32_t bits) {
    return (uint64_t)(bits & 0x80000000u) << 32 | UINT64_C(0x7ff8000000000000) |
           (uint64_t)(bits & 0x3fffff) << 29;
}
SG_MAP1(f32_from_f64, u32, u64, is_nan64(A) ? nan32_from_64(A) : sg_bits32((float)sg_double(A)))
SG_MAP1(f64_from_f32, u64, u32,
        (A & 0x7fffffffu) > 0x7f800000u ? nan64_from_32(A) : sg_bits64((double)sg_float(A)))
SG_MAP1(f64_from_s32, u64, s32, sg_bits64((double)A))

/* ---- all conversions ------------------------------------------------------------------------- */

/* A source value: an integer by magnitude and sign, or a float in double (which is exact for
 * all). */
struct number {
    bool floating, negative;
    uint64_t magnitude;
    double value;
    bool single;  /* f32, f16, bf16: decides what NaN becomes */
    uint64_t raw; /* for NaNs: the bits of f64, or those of all others as f32 */
    unsigned char type;
};

static struct number signed_number(int64_t value) {
    return (struct number){.negative = value < 0,
                           .magnitude = value < 0 ? 0 - (uint64_t)value : (uint64_t)value};
}

static struct number floating_number(uint32_t bits, unsigned type) {
    return (struct number){true, false, 0, sg_float(bits), true, bits, (unsigned char)type};
}

static struct number read_number(const struct sg_warp *warp, uint32_t place, unsigned type,
                                 unsigned l, uint32_t flags) {
    const u16 *x = SG_SLOT(warp, place);
    const u32 *y = SG_SLOT(warp, place);
    const u64 *z = SG_SLOT(warp, place);
    switch (type) {
    case SG_TYPE_S8:
        return signed_number((int8_t)x[l]);
    case SG_TYPE_S16:
        return signed_number((int16_t)x[l]);
    case SG_TYPE_S32:
        return signed_number((int32_t)y[l]);
    case SG_TYPE_S64:
        return signed_number((int64_t)z[l]);
    case SG_TYPE_U8:
    case SG_TYPE_B8:
        return (struct number){.magnitude = x[l] & 0xff};
    case SG_TYPE_U16:
    case SG_TYPE_B16:
        return (struct number){.magnitude = x[l]};
    case SG_TYPE_U32:
    case SG_TYPE_B32:
        return (struct number){.magnitude = y[l]};
    case SG_TYPE_F16:
        return floating_number(sg_bits32(SG_LEVEL(sg_half_to_float)(x[l])), type);
    case SG_TYPE_BF16:
        return floating_number((uint32_t)x[l] << 16, type);
    case SG_TYPE_F32:
        return floating_number(flags & SG_STEP_FTZ ? sg_flush_bits(y[l]) : y[l], type);
    case SG_TYPE_F64:
        return (struct number){true, false, 0, sg_double(z[l]), false, z[l], SG_TYPE_F64};
    default:
        return (struct number){.magnitude = z[l]};
    }
}

static bool whole_rounding(unsigned rounding) {
    return rounding >= SG_ROUND_RNI && rounding <= SG_ROUND_RPI;
}

static double to_whole(double value, unsigned rounding) {
    switch (rounding) {
    case SG_ROUND_RNI:
        return nearbyint(value);
    case SG_ROUND_RMI:
        return floor(value);
    case SG_ROUND_RPI:
        return ceil(value);
    default:
        return trunc(value);
    }
}

/* Saturates to the type's range. NaN becomes 0, or for f64 and for 64-bit results the top bit. */
static uint64_t to_integer(double value, unsigned bits, bool has_sign, bool single) {
    if (value != value)
        return single && bits != 64 ? 0 : UINT64_C(1) << (bits - 1);
    double most = ldexp(1.0, (int)(has_sign ? bits - 1 : bits)), least = has_sign ? -most : 0;
    uint64_t all = bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
    if (value >= most)
        return has_sign ? all >> 1 : all;
    if (value <= least)
        return has_sign ? (UINT64_C(1) << (bits - 1)) : 0;
    return value < 0 ? (uint64_t)(int64_t)value & all : (uint64_t)value;
}

static uint64_t integer_from_integer(struct number n, unsigned bits, bool has_sign, bool clamp) {
    uint64_t all = bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
    if (clamp) {
        uint64_t most = has_sign ? all >> 1 : all, least = has_sign ? most + 1 : 0;
        if (n.magnitude > (n.negative ? least : most))
            n.magnitude = n.negative ? least : most;
    }
    return (n.negative ? 0 - n.magnitude : n.magnitude) & all;
}

/* An integer as double, rounded to odd if it has more than 53 bits. */
static double odd_double(struct number n) {
    uint64_t m = n.magnitude;
    if (m >> 53 != 0)
        m = (m >> 11 | ((m & 0x7ff) != 0)) << 11;
    double value = (double)m;
    return n.negative ? -value : value;
}

static float to_single(struct number n) {
    if (n.floating)
        return (float)n.value;
    return n.negative ? (float)(int64_t)(0 - n.magnitude) : (float)n.magnitude;
}

static double to_twice(struct number n) {
    if (n.floating)
        return n.value;
    if (!n.magnitude) /* compilers may subtract, which gives -0 when rounding down */
        return 0;
    return n.negative ? (double)(int64_t)(0 - n.magnitude) : (double)n.magnitude;
}

/* The converted NaN: the type's canonical one, or with as much of the payload as fits, as recorded
 * for each pair of types. */
static uint64_t converted_nan(struct number n, unsigned to, unsigned rounding, uint32_t flags) {
    bool ftz = flags & SG_STEP_FTZ, from_64 = n.type == SG_TYPE_F64;
    uint64_t wide = from_64 ? n.raw : nan64_from_32((uint32_t)n.raw);
    uint16_t sign = (uint16_t)(wide >> 63 << 15);
    switch (to) {
    case SG_TYPE_F64:
        return from_64 ? wide | UINT64_C(0x0008000000000000)
               : ftz   ? UINT64_C(0x7fffffffe0000000)
                       : wide;
    case SG_TYPE_F32:
        return from_64                          ? nan32_from_64(wide)
               : n.type == SG_TYPE_BF16 && !ftz ? n.raw
                                                : UINT32_C(0x7fffffff);
    case SG_TYPE_F16:
        return from_64 ? sign | 0x7e00u | (wide >> 42 & 0x1ff) : 0x7fff;
    case SG_TYPE_BF16:
        return from_64 ? sign | 0x7fc0u | (wide >> 45 & 0x3f) : 0x7fff;
    default: /* tf32 */
        return rounding == SG_ROUND_RNA ? n.raw & ~UINT64_C(0x1fff) : 0x7fffe000u;
    }
}

/* f32 rounded to ten fraction bits, ties away from zero or to even. */
static uint32_t tensor_float(float value, unsigned rounding) {
    uint32_t bits = sg_bits32(value);
    if ((bits & 0x7f800000u) == 0x7f800000u || rounding == SG_ROUND_RZ)
        return bits & ~0x1fffu;
    uint32_t half = rounding == SG_ROUND_RN ? 0xfffu + (bits >> 13 & 1) : 0x1000u;
    return (bits + half) & ~0x1fffu;
}

static double limited(double value, uint32_t flags) {
    if (flags & SG_STEP_SAT)
        return value > 0 ? (value < 1 ? value : 1) : 0;
    return flags & SG_STEP_RELU && value <= 0 ? 0 : value; /* -0 becomes 0 */
}

static uint64_t converted(struct number n, const struct sg_step *step) {
    unsigned type = step->type, rounding = step->rounding, bits = sg_type_bits(type);
    bool has_sign = type >= SG_TYPE_S8 && type <= SG_TYPE_S64;
    if (type < SG_TYPE_F16) {
        uint64_t result = n.floating
                              ? to_integer(to_whole(n.value, rounding), bits, has_sign, n.single)
                              : integer_from_integer(n, bits, has_sign, step->flags & SG_STEP_SAT);
        return has_sign && bits == 8 ? (uint64_t)(int64_t)(int8_t)result : result;
    }
    if (n.floating) {
        if (whole_rounding(rounding))
            n.value = to_whole(n.value, rounding);
        n.value = limited(n.value, step->flags);
        if (n.value != n.value)
            return converted_nan(n, type, rounding, step->flags);
    }
    switch (type) {
    case SG_TYPE_F16:
        return SG_LEVEL(sg_half_from_double)(
            n.floating ? n.value : limited(odd_double(n), step->flags), rounding);
    case SG_TYPE_BF16:
        return SG_LEVEL(sg_bfloat_from_double)(
            n.floating ? n.value : limited(odd_double(n), step->flags), rounding);
    case SG_TYPE_TF32:
        return tensor_float((float)n.value, rounding);
    case SG_TYPE_F32: {
        float value = (float)limited(to_single(n), step->flags);
        /* Flushes also what rounds up to the smallest normal number only for lack of bits below
         * it. */
        float large = n.floating ? (float)(n.value * 0x1p64) : value;
        bool tiny = n.floating && large < 0x1p-62F && large > -0x1p-62F;
        return step->flags & SG_STEP_FTZ && tiny ? sg_bits32(value) & 0x80000000u
                                                 : sg_bits32(value);
    }
    default: {
        return sg_bits64(limited(to_twice(n), step->flags));
    }
    }
}

static const struct sg_step *any(struct sg_warp *warp, const struct sg_step *step) {
    /* Conversions to whole numbers and to halves have rounding of their own. */
    bool own = whole_rounding(step->rounding) || step->type == SG_TYPE_F16 ||
               step->type == SG_TYPE_BF16 || step->type == SG_TYPE_TF32;
    unsigned before = sg_round_set(own ? SG_ROUND_RN : step->rounding);
    u16 *x = SG_SLOT(warp, step->d);
    u32 *y = SG_SLOT(warp, step->d);
    u64 *z = SG_SLOT(warp, step->d);
    unsigned bits = sg_type_bits(step->type);
    /* .ftz does not flush operands of a conversion to f16, as recorded. */
    uint32_t flags = step->type == SG_TYPE_F16 ? step->flags & ~SG_STEP_FTZ : step->flags;
    for (unsigned l = 0; l < SG_LANES; l++) {
        if (!(warp->mask >> l & 1))
            continue;
        uint64_t result = converted(read_number(warp, step->a, step->type2, l, flags), step);
        if (bits <= 16)
            x[l] = (uint16_t)result;
        else if (bits == 32)
            y[l] = (uint32_t)result;
        else
            z[l] = result;
    }
    sg_round_restore(before);
    return step + 1;
}

/* cvt.f16x2.f32 d, a, b: a becomes the upper half. */
static const struct sg_step *packed(struct sg_warp *warp, const struct sg_step *step) {
    u32 *d = SG_SLOT(warp, step->d);
    const u32 *a = SG_SLOT(warp, step->a), *b = SG_SLOT(warp, step->b);
    for (unsigned l = 0; l < SG_LANES; l++) {
        if (!(warp->mask >> l & 1))
            continue;
        double high = limited(sg_float(a[l]), step->flags);
        double low = limited(sg_float(b[l]), step->flags);
        d[l] = step->choice
                   ? (uint32_t)SG_LEVEL(sg_bfloat_from_double)(high, step->rounding) << 16 |
                         SG_LEVEL(sg_bfloat_from_double)(low, step->rounding)
                   : (uint32_t)SG_LEVEL(sg_half_from_double)(high, step->rounding) << 16 |
                         SG_LEVEL(sg_half_from_double)(low, step->rounding);
    }
    return step + 1;
}

static unsigned width_of(unsigned type) {
    unsigned bits = sg_type_bits(type);
    return bits <= 16 ? SG_W_16 : bits == 32 ? SG_W_32 : bits == 64 ? SG_W_64 : SG_W_NONE;
}

static bool is_number(unsigned type) {
    return (type >= SG_TYPE_B8 && type <= SG_TYPE_B64) ||
           (type >= SG_TYPE_U8 && type <= SG_TYPE_F16) || type == SG_TYPE_BF16 ||
           type == SG_TYPE_F32 || type == SG_TYPE_F64 || type == SG_TYPE_TF32;
}

/* ---- between the widths of registers --------------------------------------------------------- */

SG_MAP1(u16_u32, u32, u16, A)
SG_MAP1(u16_u64, u64, u16, A)
SG_MAP1R(u32_u64, u64, u32, A, sg_widened_u)
SG_MAP1(s16_s32, s32, s16, A)
SG_MAP1(s16_s64, s64, s16, A)
SG_MAP1R(s32_s64, s64, s32, A, sg_widened_s)
SG_MAP1R(u32_u16, u16, u32, A, sg_same)
SG_MAP1R(u64_u16, u16, u64, A, sg_same)
SG_MAP1R(u64_u32, u32, u64, A, sg_same)

SG_MAP1R(u16_u16, u16, u16, A, sg_same)
SG_MAP1R(u32_u32, u32, u32, A, sg_same)
SG_MAP1R(u64_u64, u64, u64, A, sg_same)

/* Integers of register width: only the source's sign matters. */
static sg_run *between_integers(unsigned to, unsigned from) {
    static sg_run *const by[2][3][3] = {
        {{u16_u16, u16_u32, u16_u64}, {u32_u16, u32_u32, u32_u64}, {u64_u16, u64_u32, u64_u64}},
        {{u16_u16, s16_s32, s16_s64}, {u32_u16, u32_u32, s32_s64}, {u64_u16, u64_u32, u64_u64}}};
    unsigned bits_from = sg_type_bits(from), bits_to = sg_type_bits(to);
    if (to >= SG_TYPE_F16 || from >= SG_TYPE_F16 || bits_from < 16 || bits_to < 16)
        return NULL;
    bool has_sign = from >= SG_TYPE_S8 && from <= SG_TYPE_S64;
    return by[has_sign][bits_from / 32][bits_to / 32];
}

static sg_run *usual(const struct sg_instruction *in) {
    if (in->modifiers & (SG_MOD(FTZ) | SG_MOD(SAT) | SG_MOD(RELU)))
        return NULL;
    unsigned to = in->type, from = in->type2, r = in->rounding;
    if (to == SG_TYPE_F32 && from == SG_TYPE_F32 && r == SG_ROUND_NONE)
        return u32_u32; /* only here NaNs keep their payload */
    if (to == SG_TYPE_F64 && from == SG_TYPE_F64 && r == SG_ROUND_NONE)
        return u64_u64;
    if (between_integers(to, from))
        return between_integers(to, from);
    bool nearest = r == SG_ROUND_NONE || r == SG_ROUND_RN;
    if (to == SG_TYPE_F32 && nearest)
        return from == SG_TYPE_S32   ? f32_from_s32
               : from == SG_TYPE_U32 ? f32_from_u32
               : from == SG_TYPE_F16 ? f32_from_f16
               : from == SG_TYPE_F64 ? f32_from_f64
                                     : NULL;
    if (to == SG_TYPE_F64 && nearest)
        return from == SG_TYPE_F32 ? f64_from_f32 : from == SG_TYPE_S32 ? f64_from_s32 : NULL;
    return to == SG_TYPE_S32 && from == SG_TYPE_F32 && r == SG_ROUND_RZI ? s32_from_f32 : NULL;
}

bool SG_LEVEL(sg_theme_convert)(const struct sg_instruction *in, struct sg_form *form) {
    if (in->op != SG_OP_cvt || (in->modifiers & SG_MOD(SATFINITE)) || in->rounding == SG_ROUND_RS ||
        in->operation != SG_DO_NONE)
        return false;
    form->rounding = in->rounding;
    form->type = in->type;
    form->type2 = in->type2;
    form->flags = (uint16_t)((in->modifiers & SG_MOD(FTZ) ? SG_STEP_FTZ : 0) |
                             (in->modifiers & SG_MOD(SAT) ? SG_STEP_SAT : 0) |
                             (in->modifiers & SG_MOD(RELU) ? SG_STEP_RELU : 0));
    if ((in->type == SG_TYPE_F16X2 || in->type == SG_TYPE_BF16X2) && in->type2 == SG_TYPE_F32) {
        form->run = packed;
        form->choice = in->type == SG_TYPE_BF16X2;
        form->dest = form->source[0] = form->source[1] = SG_W_32;
        return true;
    }
    if (!is_number(in->type) || !is_number(in->type2))
        return false;
    form->dest = (unsigned char)width_of(in->type);
    form->source[0] = (unsigned char)width_of(in->type2);
    form->run = usual(in);
    form->gang = form->run != NULL;
    if (!form->run)
        form->run = any;
    return true;
}

static sg_theme *const themes[] = {
    SG_LEVEL(sg_theme_carry),         SG_LEVEL(sg_theme_logic),
    SG_LEVEL(sg_theme_integer),       SG_LEVEL(sg_theme_wide),
    SG_LEVEL(sg_theme_bits),          SG_LEVEL(sg_theme_float),
    SG_LEVEL(sg_theme_double),        SG_LEVEL(sg_theme_half),
    SG_LEVEL(sg_theme_approximate),   SG_LEVEL(sg_theme_compare),
    SG_LEVEL(sg_theme_convert),       SG_LEVEL(sg_theme_memory),
    SG_LEVEL(sg_theme_atomic),        SG_LEVEL(sg_theme_packed),
    SG_LEVEL(sg_theme_eight),         SG_LEVEL(sg_theme_half_compare),
    SG_LEVEL(sg_theme_vector_atomic), SG_LEVEL(sg_theme_pack),
    SG_LEVEL(sg_theme_matrix),        NULL};

const struct sg_lanes SG_LEVEL(sg_lanes) = {
    .themes = themes,
    .widen = {{[SG_W_16] = {[SG_W_32] = u16_u32, [SG_W_64] = u16_u64},
               [SG_W_32] = {[SG_W_16] = u32_u16, [SG_W_64] = u32_u64},
               [SG_W_64] = {[SG_W_16] = u64_u16, [SG_W_32] = u64_u32}},
              {[SG_W_16] = {[SG_W_32] = s16_s32, [SG_W_64] = s16_s64},
               [SG_W_32] = {[SG_W_16] = u32_u16, [SG_W_64] = s32_s64},
               [SG_W_64] = {[SG_W_16] = u64_u16, [SG_W_32] = u64_u32}}},
    .fill = SG_LEVEL(sg_tag_fill)};
