/* What the chapter does when contexts end, and what it reports. */
#include "softgpu/core/chapter.h"
#include "softgpu/core/text.h"
#include "softgpu/external/internal.h"

static void end_with_context(struct sg_context *context) {
    sg_external_memory_context_end(context);
    sg_semaphores_context_end(context);
}

static void dump(struct sg_text *text) {
    sg_dump_external_memory(text);
    sg_dump_semaphores(text);
}

/* Whatever is live should have been destroyed. */
static void leaks(struct sg_text *text) {
    sg_text_kind(text, SG_LEAK_MEMORY);
    sg_dump_external_memory(text);
    sg_text_kind(text, SG_LEAK_OTHER);
    sg_dump_semaphores(text);
}

const struct sg_chapter sg_external_chapter = {
    .dump = dump,
    .leaks = leaks,
    .context_end = {[SG_END_EXTERNAL] = end_with_context},
};
