/*
 * Copies of mapped memory beside a model of it: any offset, size and alignment, by every plan that
 * makes a difference; beside cmocka's headers and library_test.h. The library's inside is needed.
 */
#ifndef TESTS_MAPPED_COPIES_H
#define TESTS_MAPPED_COPIES_H

#include "library_test.h"

#include "mapped/engine.h"

#define COPIES_ROOM  ((size_t)192 * KIB) /* of the memory that is copied to and from */
#define COPIES_GUARD 128                 /* bytes before and behind what is read */

struct copies {
    void *target; /* a buffer, or a view of one */
    gpumem_status (*write)(void *target, size_t offset, const void *data, size_t bytes);
    gpumem_status (*read)(void *target, size_t offset, void *data, size_t bytes);
    gpumem_buffer *buffer; /* the memory of it, as the device has it */
    struct gm_engine *engine;
    unsigned char *model, *pageable, *pinned;
    gpumem_resource *pinning;
    gpumem_buffer *pinned_buffer;
    uint64_t seed;
};

/* xorshift64* */
static inline uint64_t copies_random(struct copies *c, uint64_t below) {
    c->seed ^= c->seed >> 12;
    c->seed ^= c->seed << 25;
    c->seed ^= c->seed >> 27;
    return (c->seed * 0x2545f4914f6cdd1du >> 17) % below;
}

static inline gpumem_status copies_write_buffer(void *target, size_t offset, const void *data,
                                                size_t bytes) {
    return gpumem_mapped_write(target, offset, data, bytes);
}

static inline gpumem_status copies_read_buffer(void *target, size_t offset, void *data,
                                               size_t bytes) {
    return gpumem_mapped_read(target, offset, data, bytes);
}

/* `buffer` has COPIES_ROOM bytes. */
static inline void copies_begin(struct copies *c, gpumem_buffer *buffer, struct gm_engine *engine) {
    *c = (struct copies){.target = buffer,
                         .write = copies_write_buffer,
                         .read = copies_read_buffer,
                         .buffer = buffer,
                         .engine = engine,
                         .seed = 88172645463325252u};
    const size_t room = COPIES_ROOM + 2 * COPIES_GUARD + 64;
    c->model = calloc(1, COPIES_ROOM);
    c->pageable = calloc(1, room);
    assert_non_null(c->model);
    assert_non_null(c->pageable);
    c->pinning = NEW_PINNED();
    c->pinned_buffer = NEW_BUFFER(c->pinning, room);
    c->pinned = gpumem_buffer_host_pointer(c->pinned_buffer);
    OK(fill_now(buffer, 0, COPIES_ROOM, 0, NULL));
}

static inline void copies_end(struct copies *c) {
    DESTROY(c->pinned_buffer, c->pinning);
    free(c->pageable);
    free(c->model);
}

/* The device has what the model has. */
static inline void copies_compare(struct copies *c, const char *what) {
    unsigned char *all = malloc(COPIES_ROOM);
    assert_non_null(all);
    OK(read_now(c->buffer, 0, all, COPIES_ROOM, NULL));
    for (size_t i = 0; i < COPIES_ROOM; i++)
        if (all[i] != c->model[i])
            fail_msg("%s: the device has %d at %zu, not %d", what, all[i], i, c->model[i]);
    free(all);
}

static inline void copies_one_write(struct copies *c, unsigned char *host, size_t offset,
                                    size_t bytes) {
    for (size_t i = 0; i < bytes; i++)
        host[i] = (unsigned char)copies_random(c, 256);
    OK(c->write(c->target, offset, host, bytes));
    memcpy(c->model + offset, host, bytes);
    memset(host, 0xee, bytes); /* the caller's again */
}

static inline void copies_one_read(struct copies *c, unsigned char *host, size_t offset,
                                   size_t bytes, const char *what) {
    memset(host - COPIES_GUARD, 0xa5, bytes + 2 * (size_t)COPIES_GUARD);
    OK(c->read(c->target, offset, host, bytes));
    for (size_t i = 0; i < bytes; i++)
        if (host[i] != c->model[offset + i])
            fail_msg("%s: read %zu bytes at %zu: %d at %zu, not %d", what, bytes, offset, host[i],
                     i, c->model[offset + i]);
    for (size_t i = 1; i <= COPIES_GUARD; i++)
        if (host[-(ptrdiff_t)i] != 0xa5 || host[bytes + i - 1] != 0xa5)
            fail_msg("%s: read %zu bytes at %zu: what lies beside them changed", what, bytes,
                     offset);
}

/* Sizes of all orders, offsets and host addresses of every alignment. */
static inline void copies_many(struct copies *c, size_t count, const char *what) {
    for (size_t i = 0; i < count; i++) {
        size_t order = (size_t)1 << copies_random(c, 18);
        size_t bytes = copies_random(c, order + 1);
        size_t offset = copies_random(c, COPIES_ROOM - bytes + 1);
        unsigned char *host = copies_random(c, 2) ? c->pinned : c->pageable;
        host += COPIES_GUARD + copies_random(c, 64);
        if (copies_random(c, 2))
            copies_one_write(c, host, offset, bytes);
        else
            copies_one_read(c, host, offset, bytes, what);
    }
    copies_compare(c, what);
}

/* ---- Plans ----------------------------------------------------------------------------------- */

static inline struct gm_copy_plan copies_plan(enum gm_copy_kernel kernel, uint64_t pinned,
                                              uint64_t pageable) {
    bool stores = gm_copy_kernel_can(kernel, GM_COPY_STORE);
    bool loads = gm_copy_kernel_can(kernel, GM_COPY_LOAD);
    return (struct gm_copy_plan){
        .classes = {{.bytes = 64, .store = GM_COPY_PLAIN, .load = GM_COPY_PLAIN},
                    {.bytes = UINT64_MAX,
                     .store = stores ? kernel : GM_COPY_PLAIN,
                     .load = loads ? kernel : GM_COPY_PLAIN}},
        .class_count = 2,
        .store = {pinned, pageable},
        .load = {pinned, pageable},
    };
}

static inline void copies_use(struct copies *c, enum gm_copy_kernel kernel, uint64_t pinned,
                              uint64_t pageable) {
    const struct gm_copy_plan plan = copies_plan(kernel, pinned, pageable);
    OK(gm_plans_take(c->engine->plans, &plan, GPUMEM_MEASURED_HERE));
}

/* By each kernel of this CPU alone, then by plans that cut over. */
static inline void copies_by_all_plans(struct copies *c, size_t count) {
    static const uint64_t cutovers[][2] = {
        {1, 1}, {4096, 4096}, {100, GM_COPY_NEVER}, {GM_COPY_NEVER, 100}, {64, 8192}, {8192, 64}};
    for (int k = 0; k < GM_COPY_KERNEL_COUNT; k++) {
        enum gm_copy_kernel kernel = (enum gm_copy_kernel)k;
        if (!gm_copy_kernel_can(kernel, GM_COPY_STORE) && !gm_copy_kernel_can(kernel, GM_COPY_LOAD))
            continue;
        copies_use(c, kernel, GM_COPY_NEVER, GM_COPY_NEVER);
        copies_many(c, count, gm_copy_kernel_name(kernel));
    }
    for (size_t i = 0; i < COUNT(cutovers); i++) {
        char what[80];
        snprintf(what, sizeof what, "cut-overs %llu and %llu", (unsigned long long)cutovers[i][0],
                 (unsigned long long)cutovers[i][1]);
        copies_use(c, GM_COPY_PLAIN, cutovers[i][0], cutovers[i][1]);
        copies_many(c, count, what);
    }
}

#endif
