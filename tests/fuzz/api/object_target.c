/*
 * Graphs, captures, programs, arrays, textures and what else refers to memory, with all of
 * memory.
 */
#include "world.h"

static const struct calls *const chapters[] = {
    &graph_calls,  &exec_calls,    &capture_calls, &image_calls,    &kernel_calls,
    &array_calls,  &texture_calls, &managed_calls, &external_calls, &context_calls,
    &memory_calls, &vmm_calls,     &pool_calls,    &copy_calls,     &stream_calls,
    &share_calls,  &graph_calls,   &exec_calls,    &report_calls,
};
const struct target target = {chapters, sizeof chapters / sizeof chapters[0], KINDS};
