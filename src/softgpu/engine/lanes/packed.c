/* Packed 16-bit integers, min and max with .relu, and fns. */
#include "softgpu/engine/lanes/lanes.h"

/* Adds both halves without a carry between them: the highest bits are added separately. */
static inline uint32_t add_both(uint32_t a, uint32_t b) {
    return ((a & 0x7fff7fffu) + (b & 0x7fff7fffu)) ^ ((a ^ b) & 0x80008000u);
}

#define LOW_U(x)        ((uint32_t)(uint16_t)(x))
#define HIGH_U(x)       ((x) >> 16)
#define LOW_S(x)        ((int32_t)(int16_t)(uint16_t)(x))
#define HIGH_S(x)       ((int32_t)(x) >> 16)
#define BOTH(high, low) ((uint32_t)(high) << 16 | ((uint32_t)(low)&0xffff))
#define LESS(x, y)      ((x) < (y) ? (x) : (y))
#define MORE(x, y)      ((x) > (y) ? (x) : (y))
SG_MAP2(add_2, u32, u32, u32, add_both(A, B))
SG_MAP2(min_u, u32, u32, u32, BOTH(LESS(HIGH_U(A), HIGH_U(B)), LESS(LOW_U(A), LOW_U(B))))
SG_MAP2(max_u, u32, u32, u32, BOTH(MORE(HIGH_U(A), HIGH_U(B)), MORE(LOW_U(A), LOW_U(B))))
SG_MAP2(min_s, u32, u32, u32, BOTH(LESS(HIGH_S(A), HIGH_S(B)), LESS(LOW_S(A), LOW_S(B))))
SG_MAP2(max_s, u32, u32, u32, BOTH(MORE(HIGH_S(A), HIGH_S(B)), MORE(LOW_S(A), LOW_S(B))))
SG_MAP2(min_s_relu, u32, u32, u32,
        BOTH(MORE(LESS(HIGH_S(A), HIGH_S(B)), 0), MORE(LESS(LOW_S(A), LOW_S(B)), 0)))
SG_MAP2(max_s_relu, u32, u32, u32,
        BOTH(MORE(MORE(HIGH_S(A), HIGH_S(B)), 0), MORE(MORE(LOW_S(A), LOW_S(B)), 0)))
SG_MAP2(min_relu, s32, s32, s32, MORE(LESS(A, B), 0))
SG_MAP2(max_relu, s32, s32, s32, MORE(MORE(A, B), 0))

/* The position of the nth set bit of a mask, from a base upwards, or downwards for negative n. For
 * the lowest n, which has no positive counterpart, an H200 answers 0, whatever the rest is. */
static uint32_t nth_set(uint32_t mask, uint32_t base, int32_t n) {
    if (n == INT32_MIN)
        return 0;
    if (base > 31)
        return UINT32_MAX;
    if (n == 0)
        return mask >> base & 1 ? base : UINT32_MAX;
    uint32_t left = n > 0 ? (uint32_t)n - 1 : (uint32_t) - (n + 1);
    for (int at = (int)base; at >= 0 && at<32; at += n> 0 ? 1 : -1) {
        if (!(mask >> at & 1))
            continue;
        if (left-- == 0)
            return (uint32_t)at;
    }
    return UINT32_MAX;
}

static const struct sg_step *fns(struct sg_warp *warp, const struct sg_step *step) {
    const u32 *a = SG_SLOT(warp, step->a), *b = SG_SLOT(warp, step->b);
    const u32 *c = SG_SLOT(warp, step->c);
    u32 *d = SG_SLOT(warp, step->d);
    for (unsigned l = 0; l < SG_LANES; l++)
        if (warp->mask >> l & 1)
            d[l] = nth_set(a[l], b[l], (int32_t)c[l]);
    return step + 1;
}

static sg_run *which(const struct sg_instruction *in) {
    bool relu = (in->modifiers & SG_MOD(RELU)) != 0, most = in->op == SG_OP_max;
    bool both_u = in->type == SG_TYPE_U16X2, both_s = in->type == SG_TYPE_S16X2;
    if (in->op == SG_OP_add)
        return (both_u || both_s) && !(in->modifiers & (SG_MOD(SAT) | SG_MOD(CC))) ? add_2 : NULL;
    if (in->op != SG_OP_min && in->op != SG_OP_max)
        return NULL;
    if (both_u)
        return relu ? NULL : most ? max_u : min_u;
    if (both_s)
        return relu ? (most ? max_s_relu : min_s_relu) : most ? max_s : min_s;
    return in->type == SG_TYPE_S32 && relu ? (most ? max_relu : min_relu) : NULL;
}

bool SG_LEVEL(sg_theme_packed)(const struct sg_instruction *in, struct sg_form *form) {
    bool find = in->op == SG_OP_fns;
    form->run = find ? fns : which(in);
    form->dest = form->source[0] = form->source[1] = SG_W_32;
    form->source[2] = find ? SG_W_32 : SG_W_NONE;
    return form->run != NULL;
}
