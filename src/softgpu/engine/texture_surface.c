/*
 * suld, sust and sured: texels of a surface without a sampler. The first coordinate is in bytes,
 * except for the formatted forms (.p), where it is in texels and values are converted to the
 * surface's format.
 */
#include "softgpu/engine/texture_inside.h"

#include <math.h>
#include <string.h>

struct access {
    struct sg_sampling s; /* first, so that texels are accessed in the same way */
    const struct sg_instruction *in;
    const uint32_t *list;
    unsigned size; /* bytes */
    bool formatted;
};

/* ---- where ----------------------------------------------------------------------------------- */

/* Whether an access of `size` is within `count`; with `clamp` it is moved there. */
static bool within(int64_t *at, int64_t size, int64_t count, bool clamp) {
    if (size > count)
        return false;
    if (*at >= 0 && *at <= count - size)
        return true;
    *at = *at < 0 ? 0 : (count - size) / size * size;
    return clamp;
}

enum found { FOUND, OUTSIDE, FAULT };

static enum found place_of(struct access *a, int64_t at[3]) {
    const struct sg_texture_level *level = &a->s.image->levels[0];
    struct sg_texture_shape shape = sg_texture_shape(a->s.step->choice);
    bool clamp = a->in->operation2 == SG_DO_CLAMP, good = true;
    int64_t unit = a->formatted ? a->s.image->element : 1;
    const uint32_t *coordinates = &a->list[SG_AT_COORDINATE];
    int64_t c[4] = {0};
    for (unsigned i = 0; i < (unsigned)shape.axes + shape.layered; i++)
        c[i] = (int32_t)sg_lane_32(a->s.warp, coordinates[i], a->s.lane);
    at[0] = c[shape.layered] * unit;
    at[1] = shape.axes > 1 ? c[shape.layered + 1] : 0;
    at[2] = shape.layered ? c[0] : shape.axes > 2 ? c[2] : 0;
    if (at[0] % a->size != 0) {
        sg_warp_fault(a->s.warp, a->s.step, SG_FAULT_MISALIGNED, a->s.lane, (uint64_t)at[0],
                      a->size);
        return FAULT;
    }
    good &= within(&at[0], a->size, (int64_t)level->width * a->s.image->element, clamp);
    good &= within(&at[1], 1, level->height, clamp);
    good &= within(&at[2], 1, level->depth, clamp);
    if (good || a->in->operation2 == SG_DO_ZERO)
        return good ? FOUND : OUTSIDE;
    sg_warp_fault(a->s.warp, a->s.step, SG_FAULT_SURFACE, a->s.lane, (uint64_t)at[0], a->size);
    return FAULT;
}

/* ---- bytes of registers ---------------------------------------------------------------------- */

static unsigned register_bytes(unsigned bytes) {
    return bytes == 1 ? 2 : bytes;
}

static void load(struct access *a, const unsigned char *from, unsigned bytes) {
    for (unsigned i = 0; i < a->s.step->count; i++) {
        uint64_t value = 0;
        if (from)
            memcpy(&value, from + i * bytes, bytes); /* little-endian */
        unsigned wide = register_bytes(bytes);
        unsigned char *to = sg_place(a->s.warp, a->list[SG_AT_VALUE + i]);
        memcpy(to + a->s.lane * wide, &value, wide);
    }
}

static uint64_t stored(const struct access *a, unsigned element, unsigned bytes) {
    uint64_t value = 0;
    unsigned wide = register_bytes(bytes);
    const unsigned char *from = sg_place(a->s.warp, a->list[SG_AT_VALUE + element]);
    memcpy(&value, from + a->s.lane * wide, wide);
    return value;
}

static void store(const struct access *a, unsigned char *to, unsigned bytes) {
    for (unsigned i = 0; i < a->s.step->count; i++) {
        uint64_t value = stored(a, i, bytes);
        memcpy(to + i * bytes, &value, bytes);
    }
}

/* ---- formatted stores ------------------------------------------------------------------------ */

static double limited(double value, double least, double most) {
    return value > most ? most : value >= least ? value : value < least ? least : 0;
}

/* A register's value as a channel's bits: integers saturate, fractions are truncated, as
 * recorded. */
static uint32_t converted(const struct sg_texture *image, uint32_t value) {
    unsigned bits = image->bits;
    double most = (double)((UINT64_C(1) << bits) - 1);
    double signed_most = (double)((UINT64_C(1) << (bits - 1)) - 1);
    switch (image->form) {
    case SG_TEXEL_UINT:
        return (uint32_t)limited(value, 0, most);
    case SG_TEXEL_SINT:
        return (uint32_t)(int32_t)limited((int32_t)value, -signed_most - 1, signed_most);
    case SG_TEXEL_FLOAT:
        return bits == 16 ? sg_half_of(sg_float_of(value)) : value;
    case SG_TEXEL_SNORM:
        return (uint32_t)(int32_t)(limited((double)sg_float_of(value), -1, 1) * signed_most);
    default:
        return (uint32_t)(limited((double)sg_float_of(value), 0, 1) * most);
    }
}

/* Three parts of 10 bits and one of 2. */
static void store_1010102(const struct access *a, unsigned char *to) {
    uint32_t word = 0;
    for (unsigned c = 0; c < 4 && c < a->s.step->count; c++) {
        double part = limited((double)sg_float_of((uint32_t)stored(a, c, 4)), 0, 1);
        word |= (uint32_t)(part * (c < 3 ? 1023 : 3)) << 10 * c;
    }
    memcpy(to, &word, sizeof word);
}

static void store_formatted(const struct access *a, unsigned char *to) {
    const struct sg_texture *image = a->s.image;
    if (image->form == SG_TEXEL_1010102) {
        store_1010102(a, to);
        return;
    }
    for (unsigned c = 0; c < image->channels; c++) {
        uint32_t value = c < a->s.step->count ? (uint32_t)stored(a, c, 4) : 0;
        value = c < a->s.step->count ? converted(image, value) : 0;
        memcpy(to + c * image->bits / 8, &value, image->bits / 8);
    }
}

/* ---- reductions ------------------------------------------------------------------------------ */

static uint64_t reduced(unsigned operation, bool has_sign, unsigned bytes, uint64_t old,
                        uint64_t with) {
    bool less = bytes == 4 ? (has_sign ? (int32_t)old < (int32_t)with : old < with)
                           : (has_sign ? (int64_t)old < (int64_t)with : old < with);
    switch (operation) {
    case SG_DO_ADD:
        return old + with;
    case SG_DO_MIN:
        return less ? old : with;
    case SG_DO_MAX:
        return less ? with : old;
    case SG_DO_AND:
        return old & with;
    default:
        return old | with;
    }
}

static void reduce(const struct access *a, unsigned char *at) {
    unsigned type = a->s.step->type, operation = a->in->operation;
    bool has_sign = type == SG_TYPE_S32 || type == SG_TYPE_S64 ||
                    (a->formatted && a->s.image->form == SG_TEXEL_SINT);
    uint64_t with = stored(a, 0, a->size);
    if (a->size == 4) {
        uint32_t *word = (uint32_t *)(void *)at, old = __atomic_load_n(word, __ATOMIC_RELAXED);
        while (!__atomic_compare_exchange_n(word, &old,
                                            (uint32_t)reduced(operation, has_sign, 4, old, with),
                                            false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            ;
        return;
    }
    uint64_t *word = (uint64_t *)(void *)at, old = __atomic_load_n(word, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(word, &old, reduced(operation, has_sign, 8, old, with),
                                        false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

/* ---- all lanes ------------------------------------------------------------------------------- */

/* False: the warp has faulted. */
static bool prepared(struct access *a) {
    const struct sg_step *step = a->s.step;
    uint64_t handle = ((const uint64_t *)sg_place(a->s.warp, a->list[SG_AT_HANDLE]))[a->s.lane];
    a->s.image = a->s.sampler = sg_texture_find(a->s.warp, step, a->s.lane, handle, true);
    if (a->s.image && sg_texture_is_nothing(a->s.image))
        return true;
    if (!a->s.image || !sg_texture_fits(a->s.warp, step, a->s.lane, handle, a->s.image))
        return false;
    const char *why = NULL;
    unsigned bytes = sg_type_bits(step->type) / 8;
    bool store_p = a->in->operation == SG_DO_SURFACE_P;
    a->formatted = store_p || a->in->modifiers & SG_MOD(SAMPLES);
    a->size = store_p ? a->s.image->element : bytes * step->count;
    if (a->s.image->form >= SG_TEXEL_BC1 && a->formatted)
        why = "formatted access to compressed texels";
    else if (a->s.image->form == SG_TEXEL_1010102 && a->formatted && !store_p)
        why = "a reduction of packed texels";
    else if (!store_p && a->formatted && a->s.image->element != bytes)
        why = "a reduction of another size than the surface's texels";
    if (why)
        sg_texture_fault(a->s.warp, step, a->s.lane, handle, why);
    return why == NULL;
}

/* One lane's access, at its coordinates or (`outside`) nowhere. */
static void access_one(struct access *a, const int64_t at[3], bool outside) {
    const struct sg_texture_level *level = &a->s.image->levels[0];
    unsigned bytes = sg_type_bits(a->s.step->type) / 8;
    unsigned char *host = outside ? NULL
                                  : sg_texel_bytes(&a->s, level, (uint64_t)at[0], (uint64_t)at[1],
                                                   (uint64_t)at[2], a->size);
    if (a->s.failed)
        return;
    if (a->in->op == SG_OP_suld)
        load(a, host, bytes);
    else if (!host)
        return; /* nothing to change */
    else if (a->in->op == SG_OP_sured)
        reduce(a, host);
    else if (a->formatted)
        store_formatted(a, host);
    else
        store(a, host, bytes);
}

const struct sg_step *sg_run_surface(struct sg_warp *warp, const struct sg_step *step) {
    for (uint32_t left = warp->mask; left; left &= left - 1) {
        struct access one = {
            .s = {.warp = warp,
                  .step = step,
                  .lane = (unsigned)__builtin_ctz(left),
                  .resident = true},
            .in = &warp->grid->code->program->instructions[step->instruction],
            .list = warp->grid->code->list + step->list,
        };
        int64_t at[3];
        if (!prepared(&one))
            return NULL;
        if (sg_texture_is_nothing(one.s.image)) {
            if (one.in->op == SG_OP_suld)
                load(&one, NULL, sg_type_bits(step->type) / 8);
            continue;
        }
        enum found found = place_of(&one, at);
        if (found == FAULT)
            return NULL;
        access_one(&one, at, found == OUTSIDE);
        if (one.s.failed)
            return NULL;
    }
    return step + 1;
}
