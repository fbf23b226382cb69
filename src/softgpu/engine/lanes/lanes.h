/*
 * Building blocks of the interpreter's inner functions: loops over the 32 lanes of a warp that the
 * compiler turns into vector instructions. The files of this folder are compiled once for each
 * level; SG_LEVEL(name) is the level's own name. These are loops over lanes rather than vector
 * types, because an expression can then be any C (fused multiply-add, selections, conversions), and
 * both gcc and clang vectorise a loop of 32 whose elements are known not to overlap.
 */
#ifndef SG_ENGINE_LANES_H
#define SG_ENGINE_LANES_H

#include "softgpu/engine/inside.h"
#include "softgpu/engine/lanes/tags.h"

#include <string.h>

#ifndef SG_LEVEL_SUFFIX
#define SG_LEVEL_SUFFIX generic
#endif
#define SG_LEVEL_PASTE(name, suffix)  name##_##suffix
#define SG_LEVEL_PASTE2(name, suffix) SG_LEVEL_PASTE(name, suffix)
#define SG_LEVEL(name)                SG_LEVEL_PASTE2(name, SG_LEVEL_SUFFIX)

/* Elements of different lanes never overlap, and each lane's are read before they are written. */
#if defined __clang__
#define SG_LOOP                                                                                    \
    _Pragma("clang loop vectorize(assume_safety) interleave(disable)") for (unsigned l = 0;        \
                                                                            l < SG_LANES; l++)
#else
#define SG_LOOP _Pragma("GCC ivdep") for (unsigned l = 0; l < SG_LANES; l++)
#endif

/* Registers are untyped memory. */
typedef uint16_t u16 __attribute__((may_alias));
typedef int16_t s16 __attribute__((may_alias));
typedef uint32_t u32 __attribute__((may_alias));
typedef int32_t s32 __attribute__((may_alias));
typedef uint64_t u64 __attribute__((may_alias));
typedef int64_t s64 __attribute__((may_alias));
typedef float f32 __attribute__((may_alias));
typedef double f64 __attribute__((may_alias));

#define SG_SLOT(warp, place) __builtin_assume_aligned(sg_place(warp, place), 64)

/* Writes the lanes in the mask. Unsigned types, as gcc 12 fails on signed 16-bit ones with AVX-512.
 */
static inline void sg_blend(void *to, const void *from, size_t size, uint32_t mask) {
    if (size == 2) {
        u16 *d = to;
        const u16 *kept = from;
        SG_LOOP {
            d[l] = mask >> l & 1 ? kept[l] : d[l];
        }
    } else if (size == 4) {
        u32 *d = to;
        const u32 *kept = from;
        SG_LOOP {
            d[l] = mask >> l & 1 ? kept[l] : d[l];
        }
    } else {
        u64 *d = to;
        const u64 *kept = from;
        SG_LOOP {
            d[l] = mask >> l & 1 ? kept[l] : d[l];
        }
    }
}

/* How a function writes its result: all lanes at once, or only those that execute. */
#define SG_STORE(TD, EXPRESSION)                                                                   \
    if (warp->mask == SG_ALL) {                                                                    \
        SG_LOOP {                                                                                  \
            d[l] = (TD)(EXPRESSION);                                                               \
        }                                                                                          \
    } else {                                                                                       \
        uint32_t mask_ = warp->mask;                                                               \
        TD kept_[SG_LANES];                                                                        \
        SG_LOOP {                                                                                  \
            kept_[l] = (TD)(EXPRESSION);                                                           \
        }                                                                                          \
        sg_blend(d, kept_, sizeof(TD), mask_);                                                     \
    }                                                                                              \
    return step + 1;

/* ---- tags ------------------------------------------------------------------------------------ */

/* Expands a tag into the lanes of the gang's warps. */
void SG_LEVEL(sg_tag_fill)(struct sg_warp *gang, uint32_t place, unsigned bytes);

/* Before the lanes of a place are read. */
static inline void sg_read(struct sg_warp *gang, uint32_t place, unsigned bytes) {
    if (sg_tag(gang, place)->kind & SG_TAG_NO_DATA)
        SG_LEVEL(sg_tag_fill)(gang, place, bytes);
}

/* Before lanes of a place are written. */
static inline void sg_write(struct sg_warp *gang, uint32_t place, unsigned bytes) {
    struct sg_tag *tag = sg_tag(gang, place);
    if (!gang->whole && tag->kind & SG_TAG_NO_DATA)
        SG_LEVEL(sg_tag_fill)(gang, place, bytes);
    tag->kind = 0;
}

/* The lanes of warp g. */
static inline void *sg_slot_of(const struct sg_warp *gang, unsigned g, uint32_t place) {
    return (unsigned char *)sg_place(gang, place) + (ptrdiff_t)g * gang->stride[place >> 30];
}
#define SG_SLOT_OF(gang, g, place) __builtin_assume_aligned(sg_slot_of(gang, g, place), 64)

/*
 * Functions of one to four operands; A, B, C and E are the lane's. Each is defined for a warp and
 * for a gang. In a gang it computes with scalars where the rule can, or where all operands are
 * uniform.
 */
#define SG_ANSWER(TD, EXPRESSION)                                                                  \
    TD one_ = (TD)(EXPRESSION);                                                                    \
    sg_tag_even(td_, &one_, sizeof one_);                                                          \
    return step + 1;
#define SG_EACH_WARP(TD, SOURCES, EXPRESSION)                                                      \
    for (unsigned g_ = 0; g_ < count_; g_++) {                                                     \
        TD *d = SG_SLOT_OF(warp, g_, step->d);                                                     \
        SOURCES;                                                                                   \
        if (all_) {                                                                                \
            SG_LOOP {                                                                              \
                d[l] = (TD)(EXPRESSION);                                                           \
            }                                                                                      \
        } else {                                                                                   \
            TD kept_[SG_LANES];                                                                    \
            SG_LOOP {                                                                              \
                kept_[l] = (TD)(EXPRESSION);                                                       \
            }                                                                                      \
            sg_blend(d, kept_, sizeof(TD), warp[g_].mask);                                         \
        }                                                                                          \
    }                                                                                              \
    return step + 1;
#define SG_ONE(T, NAME, TAG)                                                                       \
    T NAME[1];                                                                                     \
    memcpy(NAME, &(TAG)->base, sizeof NAME)

#define SG_MAP1R(NAME, TD, TA, EXPRESSION, RULE)                                                   \
    static const struct sg_step *NAME(struct sg_warp *warp, const struct sg_step *step) {          \
        unsigned count_ = 1;                                                                       \
        bool all_ = warp->mask == SG_ALL;                                                          \
        if (warp->together) {                                                                      \
            struct sg_tag *td_ = sg_tag(warp, step->d);                                            \
            const struct sg_tag *ta_ = sg_tag(warp, step->a);                                      \
            if (warp->whole && ta_->kind & SG_TAG_KNOWN) {                                         \
                if (RULE(warp, td_, ta_))                                                          \
                    return step + 1;                                                               \
                if (sg_even(ta_)) {                                                                \
                    enum { l = 0 };                                                                \
                    SG_ONE(TA, a_, ta_);                                                           \
                    SG_ANSWER(TD, EXPRESSION)                                                      \
                }                                                                                  \
            }                                                                                      \
            sg_read(warp, step->a, sizeof(TA));                                                    \
            sg_write(warp, step->d, sizeof(TD));                                                   \
            count_ = warp->together;                                                               \
            all_ = warp->whole;                                                                    \
        }                                                                                          \
        SG_EACH_WARP(TD, const TA *a_ = SG_SLOT_OF(warp, g_, step->a), EXPRESSION)                 \
    }
#define SG_MAP2R(NAME, TD, TA, TB, EXPRESSION, RULE)                                               \
    static const struct sg_step *NAME(struct sg_warp *warp, const struct sg_step *step) {          \
        unsigned count_ = 1;                                                                       \
        bool all_ = warp->mask == SG_ALL;                                                          \
        if (warp->together) {                                                                      \
            struct sg_tag *td_ = sg_tag(warp, step->d);                                            \
            const struct sg_tag *ta_ = sg_tag(warp, step->a), *tb_ = sg_tag(warp, step->b);        \
            if (warp->whole && ta_->kind & tb_->kind & SG_TAG_KNOWN) {                             \
                if (RULE(warp, td_, ta_, tb_))                                                     \
                    return step + 1;                                                               \
                if (sg_even(ta_) && sg_even(tb_)) {                                                \
                    enum { l = 0 };                                                                \
                    SG_ONE(TA, a_, ta_);                                                           \
                    SG_ONE(TB, b_, tb_);                                                           \
                    SG_ANSWER(TD, EXPRESSION)                                                      \
                }                                                                                  \
            }                                                                                      \
            sg_read(warp, step->a, sizeof(TA));                                                    \
            sg_read(warp, step->b, sizeof(TB));                                                    \
            sg_write(warp, step->d, sizeof(TD));                                                   \
            count_ = warp->together;                                                               \
            all_ = warp->whole;                                                                    \
        }                                                                                          \
        SG_EACH_WARP(TD, const TA *a_ = SG_SLOT_OF(warp, g_, step->a);                             \
                     const TB *b_ = SG_SLOT_OF(warp, g_, step->b), EXPRESSION)                     \
    }
#define SG_MAP3R(NAME, TD, TA, TB, TC, EXPRESSION, RULE)                                           \
    static const struct sg_step *NAME(struct sg_warp *warp, const struct sg_step *step) {          \
        unsigned count_ = 1;                                                                       \
        bool all_ = warp->mask == SG_ALL;                                                          \
        if (warp->together) {                                                                      \
            struct sg_tag *td_ = sg_tag(warp, step->d);                                            \
            const struct sg_tag *ta_ = sg_tag(warp, step->a), *tb_ = sg_tag(warp, step->b),        \
                                *tc_ = sg_tag(warp, step->c);                                      \
            if (warp->whole && ta_->kind & tb_->kind & tc_->kind & SG_TAG_KNOWN) {                 \
                if (RULE(warp, td_, ta_, tb_, tc_))                                                \
                    return step + 1;                                                               \
                if (sg_even(ta_) && sg_even(tb_) && sg_even(tc_)) {                                \
                    enum { l = 0 };                                                                \
                    SG_ONE(TA, a_, ta_);                                                           \
                    SG_ONE(TB, b_, tb_);                                                           \
                    SG_ONE(TC, c_, tc_);                                                           \
                    SG_ANSWER(TD, EXPRESSION)                                                      \
                }                                                                                  \
            }                                                                                      \
            sg_read(warp, step->a, sizeof(TA));                                                    \
            sg_read(warp, step->b, sizeof(TB));                                                    \
            sg_read(warp, step->c, sizeof(TC));                                                    \
            sg_write(warp, step->d, sizeof(TD));                                                   \
            count_ = warp->together;                                                               \
            all_ = warp->whole;                                                                    \
        }                                                                                          \
        SG_EACH_WARP(TD, const TA *a_ = SG_SLOT_OF(warp, g_, step->a);                             \
                     const TB *b_ = SG_SLOT_OF(warp, g_, step->b);                                 \
                     const TC *c_ = SG_SLOT_OF(warp, g_, step->c), EXPRESSION)                     \
    }
#define SG_MAP1(NAME, TD, TA, EXPRESSION)     SG_MAP1R(NAME, TD, TA, EXPRESSION, sg_none1)
#define SG_MAP2(NAME, TD, TA, TB, EXPRESSION) SG_MAP2R(NAME, TD, TA, TB, EXPRESSION, sg_none2)
#define SG_MAP3(NAME, TD, TA, TB, TC, EXPRESSION)                                                  \
    SG_MAP3R(NAME, TD, TA, TB, TC, EXPRESSION, sg_none3)
#define A (a_[l])
#define B (b_[l])
#define C (c_[l])

/* ---- bits of floats -------------------------------------------------------------------------- */

static inline uint32_t sg_bits32(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float sg_float(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint64_t sg_bits64(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline double sg_double(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Results in single precision have only one NaN. */
static inline uint32_t sg_canonical(float value) {
    return value != value ? UINT32_C(0x7fffffff) : sg_bits32(value);
}

/* .ftz: a subnormal number becomes a zero with its sign. */
/* Of a contracted fma: 1 for minus the product, 2 for minus the addend. */
static inline unsigned sg_fma_signs(const struct sg_instruction *in) {
    return (in->modifiers & SG_MOD(MINUS_PRODUCT) ? 1 : 0) |
           (in->modifiers & SG_MOD(MINUS_ADDEND) ? 2 : 0);
}
static inline uint32_t sg_flush_bits(uint32_t bits) {
    return (bits & UINT32_C(0x7f800000)) == 0 ? bits & UINT32_C(0x80000000) : bits;
}

static inline float sg_flush(float value) {
    return sg_float(sg_flush_bits(sg_bits32(value)));
}

/* ---- rounding -------------------------------------------------------------------------------- */

/* Sets the CPU's rounding mode and returns the previous one. */
unsigned sg_round_set(unsigned rounding);
void sg_round_restore(unsigned before);

/* ---- half precision: half.c ------------------------------------------------------------------ */

float SG_LEVEL(sg_half_to_float)(uint16_t half);
/* Rounds by enum sg_rounding; from double, so that a result computed there is rounded once. */
uint16_t SG_LEVEL(sg_half_from_double)(double value, unsigned rounding);
uint16_t SG_LEVEL(sg_bfloat_from_double)(double value, unsigned rounding);
/* a * b + c, rounded to odd: correct after another rounding to less than half of double's bits. */
double SG_LEVEL(sg_fma_odd)(double a, double b, double c);

static inline float sg_bfloat_to_float(uint16_t bits) {
    return sg_float((uint32_t)bits << 16);
}

sg_theme SG_LEVEL(sg_theme_integer), SG_LEVEL(sg_theme_wide), SG_LEVEL(sg_theme_bits);
sg_theme SG_LEVEL(sg_theme_float), SG_LEVEL(sg_theme_double), SG_LEVEL(sg_theme_half);
sg_theme SG_LEVEL(sg_theme_compare), SG_LEVEL(sg_theme_convert), SG_LEVEL(sg_theme_approximate);
sg_theme SG_LEVEL(sg_theme_logic), SG_LEVEL(sg_theme_memory), SG_LEVEL(sg_theme_atomic);
sg_theme SG_LEVEL(sg_theme_carry), SG_LEVEL(sg_theme_packed), SG_LEVEL(sg_theme_eight);
sg_theme SG_LEVEL(sg_theme_half_compare), SG_LEVEL(sg_theme_vector_atomic);
sg_theme SG_LEVEL(sg_theme_pack), SG_LEVEL(sg_theme_matrix);

#endif
