/* Sweeps over the caching resource, on each resource that it may lie over. */
#ifndef FAULT_CACHING_SWEEPS_H
#define FAULT_CACHING_SWEEPS_H

#include "caching_acts.h"

/* ---- The sweeps ------------------------------------------------------------------------------ */

static enum sweep_part part;

static inline void sweep(const char *over, const char *what, int (*act)(void *),
                         void (*undo)(void *), struct subject *subject) {
    char name[96];
    snprintf(name, sizeof name, "%s over %s, %zu bytes", what, over, subject->bytes);
    sweep_run(&(struct sweep){.name = name,
                              .part = part,
                              .act = act,
                              .recover = recover_it,
                              .undo = undo,
                              .may_succeed = true, /* what frees cannot fail for its caller */
                              .lost = quarantined,
                              .explain = last_message,
                              .user = subject});
}

static inline void sweep_all(const char *over, gpumem_resource *upstream) {
    static const size_t sizes[] = {4 * KIB, 5 * MIB};
    struct subject subject = {.upstream = upstream,
                              .cache = make_small_cache(upstream),
                              .stream = NEW_STREAM(),
                              .other = NEW_STREAM()};
    for (size_t i = 0; i < COUNT(sizes); i++) {
        subject.bytes = sizes[i];
        sweep(over, "allocate", allocate_it, free_it, &subject);
        sweep(over, "free", free_after_another_stream, settle, &subject);
        if (i) /* the others do the same with large ones */
            continue;
        sweep(over, "trim", trim_it, settle, &subject);
        sweep(over, "forget", forget_it, settle, &subject);
        sweep(over, "end a thread", end_thread, settle, &subject);
        sweep(over, "capture", capture_it, end_capture, &subject);
        sweep(over, "make and end", make_and_end, settle, &subject);
    }
    settle(NULL);
    DESTROY(subject.stream, subject.other, subject.cache, upstream);
}

static inline void a_cache_over_a_pool_is_all_or_nothing(void **state) {
    sweep_all("a pool", new_own_pool());
}

static inline void a_cache_over_virtual_memory_is_all_or_nothing(void **state) {
    gpumem_resource *resource = NEW_VIRTUAL();
    sweep_all("virtual memory", resource);
}

static inline void a_cache_over_pinned_memory_is_all_or_nothing(void **state) {
    gpumem_resource *resource = NEW_PINNED(.keep_nothing = 1, .slab_bytes = 2 * MIB);
    sweep_all("pinned memory", resource);
}

static inline void a_cache_over_managed_memory_is_all_or_nothing(void **state) {
    gpumem_resource *resource = NEW_MANAGED();
    sweep_all("managed memory", resource);
}

#endif
