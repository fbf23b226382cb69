/* Devices and contexts in the state dump and the leak report. */
#include "softgpu/context/lifetime.h"
#include "softgpu/core/chapter.h"
#include "softgpu/core/text.h"

#include <stdlib.h>

struct list {
    struct sg_context **contexts;
    size_t count, most;
};

static void add(uint64_t handle, void *object, void *user) {
    (void)handle;
    struct sg_context *context = object;
    struct list *list = user;
    if (!context->alive)
        return;
    if (list->count < list->most)
        list->contexts[list->count] = context;
    list->count++;
}

static int by_id(const void *left, const void *right) {
    uint64_t a = (*(struct sg_context *const *)left)->id;
    uint64_t b = (*(struct sg_context *const *)right)->id;
    return a < b ? -1 : a > b;
}

/* All live context objects, in order of id; at most `most` are stored in `contexts` (which may be
 * NULL). Returns how many there are. */
static size_t list_alive(struct sg_context **contexts, size_t most) {
    struct list list = {.contexts = contexts, .most = contexts ? most : 0};
    sg_handle_each(SG_KIND_CONTEXT, add, &list);
    if (contexts)
        qsort(contexts, list.count < most ? list.count : most, sizeof *contexts, by_id);
    return list.count;
}

/* Calls `visit` with each live context and its number, counted from 1 in order of creation. */
static void each(struct sg_text *text,
                 void (*visit)(struct sg_text *, size_t, struct sg_context *)) {
    size_t count = list_alive(NULL, 0);
    struct sg_context **contexts = malloc((count ? count : 1) * sizeof *contexts);
    if (!contexts) {
        sg_text_line(text, "contexts: out of memory");
        return;
    }
    list_alive(contexts, count);
    for (size_t i = 0; i < count; i++)
        visit(text, i + 1, contexts[i]);
    free(contexts);
}

static unsigned count_peers(const struct sg_context *context) {
    unsigned count = 0;
    struct sg_context *all[64];
    size_t alive = list_alive(all, 64);
    for (size_t i = 0; i < alive && i < 64; i++)
        count += all[i]->device != context->device && sg_context_may_access(context, all[i]);
    return count;
}

static const char *kind(const struct sg_context *context) {
    return context->primary ? "primary" : context->owner ? "green" : "created";
}

static void dump(struct sg_text *text, size_t number, struct sg_context *context) {
    const struct sg_thread *thread = sg_thread();
    unsigned on_stack = 0;
    for (int i = 0; i < thread->depth; i++)
        on_stack += thread->stack[i] == context;
    sg_text_line(
        text, "context %zu device %d %s uses %u flags 0x%x sticky %d peers %u on-stack %u%s",
        number, context->device, kind(context), context->uses, context->flags, (int)context->sticky,
        count_peers(context), on_stack, context == sg_context_peek_part() ? " current" : "");
    if (context->cache_config != CU_FUNC_CACHE_PREFER_NONE)
        sg_text_line(text, "context %zu cache %d", number, (int)context->cache_config);
    for (int i = 0; i < CU_LIMIT_MAX; i++)
        if (context->limits[i] != sg_device(context->device)->context.limits[i])
            sg_text_line(text, "context %zu limit %d %zu", number, i, context->limits[i]);
}

static void dump_all(struct sg_text *text) {
    for (int i = 0; i < sg_device_count(); i++) {
        const struct sg_device *device = sg_device(i);
        sg_text_line(text, "device %d %s pci %s memory %llu primary-flags 0x%x", i, device->name,
                     device->pci, (unsigned long long)device->limit, device->primary_flags);
    }
    each(text, dump);
}

static void leak(struct sg_text *text, size_t number, struct sg_context *context) {
    /* A primary context belongs to its device: an application that retains it until it exits, as
     * libraries do, has not leaked it. */
    if (context->primary)
        return;
    sg_text_handle(text, context->handle, context->owner);
    sg_text_line(text, "context %zu: %s on device %d, not destroyed", number, kind(context),
                 context->device);
}

static void leaks(struct sg_text *text) {
    each(text, leak);
}

const struct sg_chapter sg_context_chapter = {.dump = dump_all, .leaks = leaks};
