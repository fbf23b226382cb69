/* What the whole chapter gives to the ends of contexts and to the reports. */
#include "softgpu/external/internal.h"

void sg_external_context_end(struct sg_context *context) {
    sg_external_memory_context_end(context);
    sg_semaphores_context_end(context);
}

void sg_dump_external(struct sg_text *text) {
    sg_dump_external_memory(text);
    sg_dump_semaphores(text);
}

/* What is live is what should have been destroyed. */
void sg_leaks_external(struct sg_text *text) {
    sg_dump_external(text);
}
