/*
 * Loads and stores. The addresses of a warp are looked at together: contiguous ones are one copy,
 * equal ones one element, and only others go lane by lane.
 */
#include "softgpu/engine/lanes/lanes.h"

/* The bytes of one lane's access, or NULL after a fault. Offsets in shared memory and the like are
 * checked to the byte; global addresses by the step's cached range. */
static inline unsigned char *reach(struct sg_warp *warp, const struct sg_step *step, unsigned space,
                                   unsigned lane, uint64_t address, uint64_t size) {
    switch (space) {
    case SG_IN_SHARED:
        if (size <= warp->shared_size && address <= warp->shared_size - size)
            return warp->shared + address;
        return sg_reach_shared(warp, step, lane, address, size);
    case SG_IN_LOCAL:
    case SG_IN_PARAM_FRAME:
        if (size <= warp->local_size && address <= warp->local_size - size)
            return warp->local + lane * warp->local_size + address;
        return sg_warp_fault(warp, step, SG_FAULT_SPACE, lane, address, size);
    case SG_IN_PARAM: {
        uint64_t room = warp->grid->launch.parameter_bytes;
        if (size <= room && address <= room - size)
            return warp->grid->parameters + address;
        return sg_reach_parameters(warp, step, lane, address, size);
    }
    default: {
        const struct sg_range_cache *cache = &warp->caches[step->cache];
        uint64_t offset = address - cache->low;
        if (size <= cache->length && offset <= cache->length - size)
            return (unsigned char *)(uintptr_t)(address + cache->distance);
        return sg_reach_global(warp, step, lane, address, size);
    }
    }
}

/* Prefetching in loops: from which stride, up to which stride, and how many iterations ahead. */
#define FAR_STRIDE UINT64_C(2048)
#define FARTHEST   UINT64_C(16777216)
#define AHEAD      8

/* The benchmark compiles this file again without bounds checks, to measure their cost. */
#ifdef SG_UNCHECKED
#define SG_OUTSIDE(condition) ((void)(condition), false)
#else
#define SG_OUTSIDE(condition) (condition)
#endif

enum pattern { UNIFORM, CONTIGUOUS, SCATTERED, SLOWLY };
/* Lanes in a row of 16 by 16 threads: half a warp may be contiguous where the whole is not. */
#define HALF (SG_LANES / 2)

/* A range that contains all lanes' accesses: lane l's is at `host` + offset[l]. */
struct view {
    unsigned char *host;
    uint64_t offset[SG_LANES] __attribute__((aligned(64)));
};

/* The range of a state space, or the one that the step has cached. */
static inline unsigned char *range_of(const struct sg_warp *warp, const struct sg_step *step,
                                      unsigned space, uint64_t *low, uint64_t *length) {
    *low = 0;
    switch (space) {
    case SG_IN_SHARED:
        *length = warp->shared_size;
        return warp->shared;
    case SG_IN_LOCAL:
    case SG_IN_PARAM_FRAME:
        *length = 0;
        return NULL;
    case SG_IN_PARAM:
        *length = warp->grid->launch.parameter_bytes;
        return warp->grid->parameters;
    default: {
        const struct sg_range_cache *cache = &warp->caches[step->cache];
        *low = cache->low;
        *length = cache->length;
        return (unsigned char *)(uintptr_t)(cache->low + cache->distance);
    }
    }
}

/* The pattern of the addresses of the lanes in `mask`, in units of `size`. SLOWLY: not all are in
 * the range, or aligned, or may be accessed together. */
static inline enum pattern look(const struct sg_warp *warp, const struct sg_step *step,
                                unsigned space, uint32_t mask, const uint64_t *at, uint64_t size,
                                struct view *view) {
    uint64_t low, length;
    view->host = range_of(warp, step, space, &low, &length);
    if (length < size || step->flags & SG_STEP_STRONG)
        return SLOWLY;
    unsigned first = (unsigned)__builtin_ctz(mask);
    uint64_t same = at[first] - low, limit = length - size, base = same - first * size;
    uint64_t apart = 0, differ = 0, odd = 0, out = 0;
    if (mask == SG_ALL) {
        SG_LOOP {
            uint64_t offset = at[l] - low;
            apart |= offset ^ (base + l * size);
            differ |= offset ^ same;
            odd |= at[l];
            out |= offset > limit;
            view->offset[l] = offset;
        }
    } else {
        SG_LOOP {
            /* Other lanes count as at the first one's address. */
            uint64_t offset = (mask >> l & 1 ? at[l] : at[first]) - low;
            apart |= mask >> l & 1 ? offset ^ (base + l * size) : 0;
            differ |= offset ^ same;
            odd |= offset + low;
            out |= offset > limit;
            view->offset[l] = offset;
        }
    }
    if (SG_OUTSIDE(out) || odd & (size - 1))
        return SLOWLY;
    return differ == 0 ? UNIFORM : apart == 0 ? CONTIGUOUS : SCATTERED;
}

static inline void addresses_of(const struct sg_warp *warp, const struct sg_step *step,
                                uint64_t *at) {
    uint64_t offset = (uint64_t)step->value;
    if (step->flags & SG_STEP_WIDE) {
        const u64 *base = SG_SLOT(warp, step->a);
        SG_LOOP {
            at[l] = base[l] + offset;
        }
    } else {
        const u32 *base = SG_SLOT(warp, step->a);
        SG_LOOP {
            at[l] = (uint32_t)(base[l] + (uint32_t)offset);
        }
    }
}

/* The state space of a generic address, and the offset there. */
static unsigned space_of(uint64_t *address) {
    uint64_t window = *address & ~(uint64_t)UINT32_MAX;
    unsigned space = window == SG_SHARED_WINDOW      ? SG_IN_SHARED
                     : window == SG_LOCAL_WINDOW     ? SG_IN_LOCAL
                     : window == SG_PARAMETER_WINDOW ? SG_IN_PARAM
                                                     : SG_IN_GLOBAL;
    if (space != SG_IN_GLOBAL)
        *address &= UINT32_MAX;
    if (space == SG_IN_SHARED)
        *address = sg_shared_offset(*address);
    return space;
}

/* Runs an access for generic addresses, space by space. */
typedef bool access_of(struct sg_warp *warp, const struct sg_step *step, unsigned space,
                       uint32_t mask, const uint64_t *at);
static inline __attribute__((always_inline)) const struct sg_step *
spread(struct sg_warp *warp, const struct sg_step *step, access_of *access) {
    uint64_t at[SG_LANES] __attribute__((aligned(64)));
    addresses_of(warp, step, at);
    if (step->space != SG_IN_GENERIC)
        return access(warp, step, step->space, warp->mask, at) ? step + 1 : NULL;
    uint32_t left = warp->mask;
    unsigned char space[SG_LANES];
    for (unsigned l = 0; l < SG_LANES; l++)
        space[l] = (unsigned char)space_of(&at[l]);
    while (left) {
        unsigned which = space[__builtin_ctz(left)];
        uint32_t lanes = 0;
        for (unsigned l = 0; l < SG_LANES; l++)
            lanes |= (uint32_t)(space[l] == which) << l;
        lanes &= left;
        left &= ~lanes;
        if (!access(warp, step, which, lanes, at))
            return NULL;
    }
    return step + 1;
}

static inline bool aligned(struct sg_warp *warp, const struct sg_step *step, uint32_t mask,
                           const uint64_t *at, uint64_t size) {
    uint64_t bad = 0;
    SG_LOOP {
        bad |= at[l] & ((uint64_t)0 - (mask >> l & 1)) & (size - 1);
    }
    if (!bad)
        return true;
    for (unsigned l = 0; l < SG_LANES; l++)
        if (mask >> l & 1 && at[l] & (size - 1)) {
            sg_warp_fault(warp, step, SG_FAULT_MISALIGNED, l, at[l], size);
            return false;
        }
    return true;
}

/* An element is one host load or store, which does not tear, with the step's memory order. */
#define GET(TM)                                                                                    \
    static inline TM get_##TM(const unsigned char *from, uint32_t flags) {                         \
        TM value;                                                                                  \
        if (flags & SG_STEP_STRONG)                                                                \
            return flags & SG_STEP_ACQUIRE ? __atomic_load_n((const TM *)from, __ATOMIC_ACQUIRE)   \
                                           : __atomic_load_n((const TM *)from, __ATOMIC_RELAXED);  \
        memcpy(&value, from, sizeof value);                                                        \
        return value;                                                                              \
    }
#define PUT(TM)                                                                                    \
    static inline void put_##TM(unsigned char *to, TM value, uint32_t flags) {                     \
        if (!(flags & SG_STEP_STRONG))                                                             \
            memcpy(to, &value, sizeof value);                                                      \
        else if (flags & SG_STEP_RELEASE)                                                          \
            __atomic_store_n((TM *)to, value, __ATOMIC_RELEASE);                                   \
        else                                                                                       \
            __atomic_store_n((TM *)to, value, __ATOMIC_RELAXED);                                   \
    }
typedef uint8_t m8 __attribute__((may_alias));
typedef int8_t i8 __attribute__((may_alias));
GET(m8)
PUT(m8)
GET(i8)
GET(u16)
PUT(u16)
GET(u32)
PUT(u32)
GET(u64)
PUT(u64)

/* ---- gangs ----------------------------------------------------------------------------------- */

/* An affine access: rows of lanes, in each all the same (s is 0) or contiguous. */
struct rows {
    unsigned char *host; /* of lane 0 */
    int64_t s, t;
};

/* The host bytes of `low`, if all from low to high + size are in the range; else NULL. */
static inline unsigned char *extent(const struct sg_warp *gang, const struct sg_step *step,
                                    uint64_t low, uint64_t high, uint64_t size) {
    unsigned space = step->space;
    if (space == SG_IN_GENERIC) {
        space = space_of(&low);
        if (space_of(&high) != space)
            return NULL;
    }
    uint64_t first, length;
    unsigned char *host = range_of(gang, step, space, &first, &length);
    if (length < size ||
        SG_OUTSIDE(low - first > length - size || high - first > length - size || high < low))
        return NULL;
    return host + (low - first);
}

/* False: the address is not like that, or not wholly in the step's range, or not aligned. */
static inline bool rows_of(const struct sg_warp *gang, const struct sg_step *step, uint64_t size,
                           struct rows *rows) {
    const struct sg_tag *tag = sg_tag(gang, step->a);
    if (!(tag->kind & SG_TAG_KNOWN) || step->count != 1 || step->flags & SG_STEP_STRONG)
        return false;
    bool wide = step->flags & SG_STEP_WIDE;
    uint64_t base = tag->base + (uint64_t)step->value;
    rows->s = wide ? tag->s : (int32_t)tag->s;
    rows->t = wide ? tag->t : (int32_t)tag->t;
    base = wide ? base : (uint32_t)base;
    if ((rows->s | rows->t) == 0
            ? !gang->whole
            : !gang->solid || gang->across < HALF || (rows->s != 0 && rows->s != (int64_t)size) ||
                  rows->t != (int32_t)rows->t)
        return false;
    int64_t x = rows->s * gang->x_most, y = rows->t * gang->y_most;
    uint64_t low = base + (uint64_t)(y < 0 ? y : 0), high = base + (uint64_t)(x + (y > 0 ? y : 0));
    if ((base | (uint64_t)rows->t) & (size - 1))
        return false;
    unsigned char *host = extent(gang, step, low, high, size);
    if (!host)
        return false;
    rows->host = host - (y < 0 ? y : 0);
    return true;
}

/* For loops with strides that the CPU does not predict: prefetches what the next iterations will
 * read. `bytes`: what the whole gang reads, contiguously. */
static inline void expect(const struct sg_warp *gang, const struct sg_step *step,
                          const struct rows *rows, unsigned bytes) {
    if (step->space == SG_IN_SHARED)
        return;
    struct sg_range_cache *cache = &gang->caches[step->cache];
    uint64_t now = (uint64_t)(uintptr_t)rows->host, by = now - cache->last;
    cache->last = now;
    if (by + FAR_STRIDE < 2 * FAR_STRIDE || by + FARTHEST > 2 * FARTHEST)
        return;
    for (unsigned i = 0; i < bytes; i += 64)
        __builtin_prefetch((const void *)(uintptr_t)(now + by * AHEAD + i));
}

static inline unsigned char *row_at(const struct sg_warp *gang, const struct rows *rows,
                                    unsigned lane) {
    return rows->host + (int64_t)(lane & (gang->across - 1)) * rows->s +
           (int64_t)(lane >> gang->across_log) * rows->t;
}

static inline void before(struct sg_warp *gang, const struct sg_step *step) {
    sg_read(gang, step->a, step->flags & SG_STEP_WIDE ? 8 : 4);
}

static inline __attribute__((always_inline)) const struct sg_step *
one_by_one(struct sg_warp *gang, const struct sg_step *step, sg_run *run) {
    for (unsigned g = 0; g < gang->together; g++)
        if (gang[g].mask && !run(&gang[g], step)) {
            gang->stop = SG_STOP_FAULT;
            return NULL;
        }
    return step + 1;
}

/* Loads elements TM into registers of TD, at once where possible, else lane by lane. */
/* Half a warp's elements: at once if contiguous or equal, else one by one. */
#define GATHER(TM)                                                                                 \
    static inline void gather_##TM(TM *to, const unsigned char *host, const uint64_t *offset) {    \
        uint64_t apart = 0, differ = 0;                                                            \
        for (unsigned l = 0; l < HALF; l++) {                                                      \
            apart |= offset[l] ^ (offset[0] + l * sizeof(TM));                                     \
            differ |= offset[l] ^ offset[0];                                                       \
        }                                                                                          \
        if (apart == 0) {                                                                          \
            memcpy(to, host + offset[0], HALF * sizeof(TM));                                       \
        } else if (differ == 0) {                                                                  \
            TM value = *(const TM *)(host + offset[0]);                                            \
            for (unsigned l = 0; l < HALF; l++)                                                    \
                to[l] = value;                                                                     \
        } else {                                                                                   \
            for (unsigned l = 0; l < HALF; l++)                                                    \
                to[l] = *(const TM *)(host + offset[l]);                                           \
        }                                                                                          \
    }
GATHER(m8)
GATHER(i8)
GATHER(u16)
GATHER(u32)
GATHER(u64)

/*
 * For the inner loops of tiled kernels: all lanes load one element of shared memory, with 32-bit
 * offsets; each half of the warp is contiguous, or equal, or neither. False: not such an access, or
 * out of bounds, which the general path then handles.
 */
#define TILE(NAME, TM, TD)                                                                         \
    static inline bool NAME##_tile(struct sg_warp *warp, const struct sg_step *step) {             \
        const u32 *base = SG_SLOT(warp, step->a);                                                  \
        TD *d = SG_SLOT(warp, step->d);                                                            \
        uint32_t offset[SG_LANES] __attribute__((aligned(64)));                                    \
        uint32_t more = (uint32_t)step->value, size = sizeof(TM);                                  \
        if (warp->shared_size < size)                                                              \
            return false;                                                                          \
        uint32_t limit = (uint32_t)warp->shared_size - size, odd = 0, out = 0;                     \
        uint32_t low = base[0] + more, high = base[HALF] + more, apart = 0, differ = 0;            \
        SG_LOOP {                                                                                  \
            uint32_t at = base[l] + more, first = l < HALF ? low : high;                           \
            odd |= at & (size - 1);                                                                \
            out |= at > limit;                                                                     \
            differ |= at ^ first;                                                                  \
            apart |= at ^ (first + (l & (HALF - 1)) * size);                                       \
            offset[l] = at;                                                                        \
        }                                                                                          \
        if (odd || SG_OUTSIDE(out))                                                                \
            return false;                                                                          \
        if (differ == 0) {                                                                         \
            TD one = (TD) * (const TM *)(warp->shared + low);                                      \
            TD two = (TD) * (const TM *)(warp->shared + high);                                     \
            SG_LOOP {                                                                              \
                d[l] = l < HALF ? one : two;                                                       \
            }                                                                                      \
        } else if (apart == 0) {                                                                   \
            TM all[SG_LANES];                                                                      \
            memcpy(all, warp->shared + low, HALF * sizeof(TM));                                    \
            memcpy(all + HALF, warp->shared + high, HALF * sizeof(TM));                            \
            SG_LOOP {                                                                              \
                d[l] = (TD)all[l];                                                                 \
            }                                                                                      \
        } else {                                                                                   \
            for (unsigned l = 0; l < SG_LANES; l++)                                                \
                d[l] = (TD) * (const TM *)(warp->shared + offset[l]);                              \
        }                                                                                          \
        return true;                                                                               \
    }

#define LOAD_SLOWLY(NAME, TM, TD)                                                                  \
    static bool NAME##_slowly(struct sg_warp *warp, const struct sg_step *step, unsigned space,    \
                              uint32_t mask, const uint64_t *at) {                                 \
        uint64_t size = sizeof(TM) * step->count;                                                  \
        const uint32_t *list = warp->grid->code->list + step->list;                                \
        if (!aligned(warp, step, mask, at, size))                                                  \
            return false;                                                                          \
        for (uint32_t left = mask; left; left &= left - 1) {                                       \
            unsigned l = (unsigned)__builtin_ctz(left);                                            \
            const unsigned char *from = reach(warp, step, space, l, at[l], size);                  \
            if (!from)                                                                             \
                return false;                                                                      \
            for (unsigned i = 0; i < step->count; i++) {                                           \
                TD *d = SG_SLOT(warp, list[i]);                                                    \
                d[l] = (TD)get_##TM(from + i * sizeof(TM), step->flags);                           \
            }                                                                                      \
        }                                                                                          \
        warp->polls |= (step->flags & SG_STEP_STRONG) != 0;                                        \
        return true;                                                                               \
    }
#define LOAD(NAME, TM, TD)                                                                         \
    static inline bool NAME##_lanes(struct sg_warp *warp, const struct sg_step *step,              \
                                    unsigned space, uint32_t mask, const uint64_t *at) {           \
        uint64_t size = sizeof(TM) * step->count;                                                  \
        struct view view;                                                                          \
        enum pattern pattern = look(warp, step, space, mask, at, size, &view);                     \
        if (pattern == CONTIGUOUS && mask == SG_ALL && step->count == 1) {                         \
            TM all[SG_LANES];                                                                      \
            TD *d = SG_SLOT(warp, step->d);                                                        \
            memcpy(all, view.host + view.offset[0], sizeof all);                                   \
            SG_LOOP {                                                                              \
                d[l] = (TD)all[l];                                                                 \
            }                                                                                      \
            return true;                                                                           \
        }                                                                                          \
        if (pattern == SLOWLY)                                                                     \
            return NAME##_slowly(warp, step, space, mask, at);                                     \
        const uint32_t *list = warp->grid->code->list + step->list;                                \
        for (unsigned i = 0; i < step->count; i++) {                                               \
            const unsigned char *from = view.host + i * sizeof(TM);                                \
            TD *d = SG_SLOT(warp, list[i]), kept[SG_LANES];                                        \
            if (pattern == UNIFORM) {                                                              \
                TD value = (TD) * (const TM *)(from + view.offset[0]);                             \
                SG_LOOP {                                                                          \
                    kept[l] = value;                                                               \
                }                                                                                  \
            } else if (pattern == SCATTERED) {                                                     \
                TM some[SG_LANES];                                                                 \
                gather_##TM(some, from, view.offset);                                              \
                gather_##TM(some + HALF, from, view.offset + HALF);                                \
                SG_LOOP {                                                                          \
                    kept[l] = (TD)some[l];                                                         \
                }                                                                                  \
            } else {                                                                               \
                for (unsigned l = 0; l < SG_LANES; l++)                                            \
                    kept[l] = (TD) * (const TM *)(from + view.offset[l]);                          \
            }                                                                                      \
            sg_blend(d, kept, sizeof(TD), mask);                                                   \
        }                                                                                          \
        return true;                                                                               \
    }                                                                                              \
    static const struct sg_step *NAME##_warp(struct sg_warp *warp, const struct sg_step *step) {   \
        if (step->space == SG_IN_SHARED && step->count == 1 && warp->mask == SG_ALL &&             \
            !(step->flags & (SG_STEP_WIDE | SG_STEP_STRONG)) && NAME##_tile(warp, step))           \
            return step + 1;                                                                       \
        return spread(warp, step, NAME##_lanes);                                                   \
    }                                                                                              \
    static inline void NAME##_part(TD *d, const unsigned char *from, unsigned lanes, bool same) {  \
        if (same) {                                                                                \
            TD one = (TD) * (const TM *)from;                                                      \
            for (unsigned l = 0; l < lanes; l++)                                                   \
                d[l] = one;                                                                        \
        } else if (sizeof(TD) == sizeof(TM)) {                                                     \
            memcpy(d, from, lanes * sizeof(TM));                                                   \
        } else {                                                                                   \
            TM all[SG_LANES];                                                                      \
            memcpy(all, from, lanes * sizeof(TM));                                                 \
            for (unsigned l = 0; l < lanes; l++)                                                   \
                d[l] = (TD)all[l];                                                                 \
        }                                                                                          \
    }                                                                                              \
    static const struct sg_step *NAME(struct sg_warp *warp, const struct sg_step *step) {          \
        struct rows rows;                                                                          \
        if (!warp->together)                                                                       \
            return NAME##_warp(warp, step);                                                        \
        if (!rows_of(warp, step, sizeof(TM), &rows)) {                                             \
            before(warp, step);                                                                    \
            for (unsigned i = 0; i < step->count; i++)                                             \
                sg_write(warp, warp->grid->code->list[step->list + i], sizeof(TD));                \
            return one_by_one(warp, step, NAME##_warp);                                            \
        }                                                                                          \
        if ((rows.s | rows.t) == 0) {                                                              \
            TD one = (TD) * (const TM *)rows.host;                                                 \
            sg_tag_even(sg_tag(warp, step->d), &one, sizeof one);                                  \
            return step + 1;                                                                       \
        }                                                                                          \
        sg_write(warp, step->d, sizeof(TD));                                                       \
        if (rows.s)                                                                                \
            expect(warp, step, &rows, warp->together *SG_LANES * sizeof(TM));                      \
        for (unsigned g = 0; g < warp->together; g++) {                                            \
            TD *d = SG_SLOT_OF(warp, g, step->d);                                                  \
            if (warp->across == HALF) {                                                            \
                NAME##_part(d, row_at(warp, &rows, g *SG_LANES), HALF, !rows.s);                   \
                NAME##_part(d + HALF, row_at(warp, &rows, g * SG_LANES + HALF), HALF, !rows.s);    \
            } else {                                                                               \
                NAME##_part(d, row_at(warp, &rows, g *SG_LANES), SG_LANES, !rows.s);               \
            }                                                                                      \
        }                                                                                          \
        return step + 1;                                                                           \
    }
LOAD_SLOWLY(load_u8, m8, u16)
TILE(load_u8, m8, u16)
LOAD(load_u8, m8, u16)
LOAD_SLOWLY(load_s8, i8, s16)
TILE(load_s8, i8, s16)
LOAD(load_s8, i8, s16)
LOAD_SLOWLY(load_16, u16, u16)
TILE(load_16, u16, u16)
LOAD(load_16, u16, u16)
LOAD_SLOWLY(load_32, u32, u32)
TILE(load_32, u32, u32)
LOAD(load_32, u32, u32)
LOAD_SLOWLY(load_64, u64, u64)
TILE(load_64, u64, u64)
LOAD(load_64, u64, u64)

#define STORE(NAME, TM, TS)                                                                        \
    static inline bool NAME##_lanes(struct sg_warp *warp, const struct sg_step *step,              \
                                    unsigned space, uint32_t mask, const uint64_t *at) {           \
        uint64_t size = sizeof(TM) * step->count;                                                  \
        const uint32_t *list = warp->grid->code->list + step->list;                                \
        struct view view;                                                                          \
        enum pattern pattern = look(warp, step, space, mask, at, size, &view);                     \
        if (pattern == CONTIGUOUS && mask == SG_ALL && step->count == 1) {                         \
            const TS *from = SG_SLOT(warp, step->b);                                               \
            TM all[SG_LANES];                                                                      \
            SG_LOOP {                                                                              \
                all[l] = (TM)from[l];                                                              \
            }                                                                                      \
            memcpy(view.host + view.offset[0], all, sizeof all);                                   \
            return true;                                                                           \
        }                                                                                          \
        if (pattern != SLOWLY) {                                                                   \
            for (unsigned i = 0; i < step->count; i++) {                                           \
                const TS *from = SG_SLOT(warp, list[i]);                                           \
                for (uint32_t left = mask; left; left &= left - 1) {                               \
                    unsigned l = (unsigned)__builtin_ctz(left);                                    \
                    *(TM *)(view.host + view.offset[l] + i * sizeof(TM)) = (TM)from[l];            \
                }                                                                                  \
            }                                                                                      \
            return true;                                                                           \
        }                                                                                          \
        if (!aligned(warp, step, mask, at, size))                                                  \
            return false;                                                                          \
        for (uint32_t left = mask; left; left &= left - 1) {                                       \
            unsigned l = (unsigned)__builtin_ctz(left);                                            \
            unsigned char *to = reach(warp, step, space, l, at[l], size);                          \
            if (!to)                                                                               \
                return false;                                                                      \
            for (unsigned i = 0; i < step->count; i++) {                                           \
                const TS *from = SG_SLOT(warp, list[i]);                                           \
                put_##TM(to + i * sizeof(TM), (TM)from[l], step->flags);                           \
            }                                                                                      \
        }                                                                                          \
        return true;                                                                               \
    }                                                                                              \
    static const struct sg_step *NAME##_warp(struct sg_warp *warp, const struct sg_step *step) {   \
        return spread(warp, step, NAME##_lanes);                                                   \
    }                                                                                              \
    static inline void NAME##_part(unsigned char *to, const TS *from, unsigned lanes) {            \
        TM all[SG_LANES] = {0};                                                                    \
        if (sizeof(TS) == sizeof(TM)) {                                                            \
            memcpy(to, from, lanes * sizeof(TM));                                                  \
            return;                                                                                \
        }                                                                                          \
        for (unsigned l = 0; l < lanes; l++)                                                       \
            all[l] = (TM)from[l];                                                                  \
        memcpy(to, all, lanes * sizeof(TM));                                                       \
    }                                                                                              \
    static const struct sg_step *NAME(struct sg_warp *warp, const struct sg_step *step) {          \
        struct rows rows;                                                                          \
        if (!warp->together)                                                                       \
            return NAME##_warp(warp, step);                                                        \
        for (unsigned i = 0; i < step->count; i++)                                                 \
            sg_read(warp, warp->grid->code->list[step->list + i], sizeof(TS));                     \
        if (!rows_of(warp, step, sizeof(TM), &rows) || rows.s == 0) {                              \
            before(warp, step);                                                                    \
            return one_by_one(warp, step, NAME##_warp);                                            \
        }                                                                                          \
        for (unsigned g = 0; g < warp->together; g++) {                                            \
            const TS *from = SG_SLOT_OF(warp, g, step->b);                                         \
            if (warp->across == HALF) {                                                            \
                NAME##_part(row_at(warp, &rows, g *SG_LANES), from, HALF);                         \
                NAME##_part(row_at(warp, &rows, g *SG_LANES + HALF), from + HALF, HALF);           \
            } else {                                                                               \
                NAME##_part(row_at(warp, &rows, g *SG_LANES), from, SG_LANES);                     \
            }                                                                                      \
        }                                                                                          \
        return step + 1;                                                                           \
    }
STORE(store_8, m8, u16)
STORE(store_16, u16, u16)
STORE(store_32, u32, u32)
STORE(store_64, u64, u64)

bool SG_LEVEL(sg_theme_memory)(const struct sg_instruction *in, struct sg_form *form) {
    bool load = in->op == SG_OP_ld || in->op == SG_OP_ldu;
    form->gang = true;
    if (!load && in->op != SG_OP_st)
        return false;
    unsigned width;
    switch (sg_type_bits(in->type)) {
    case 8:
        form->run = !load ? store_8 : in->type == SG_TYPE_S8 ? load_s8 : load_u8;
        width = SG_W_16;
        break;
    case 16:
        form->run = load ? load_16 : store_16;
        width = SG_W_16;
        break;
    case 32:
        form->run = load ? load_32 : store_32;
        width = SG_W_32;
        break;
    case 64:
        form->run = load ? load_64 : store_64;
        width = SG_W_64;
        break;
    default:
        return false;
    }
    if (load)
        form->dest = (unsigned char)width;
    else
        form->source[1] = (unsigned char)width;
    return true;
}
