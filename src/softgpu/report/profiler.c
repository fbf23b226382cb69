/* Profile collection: a state of each context. No tool of softgpu collects profiles. */
#include "softgpu/context/context.h"
#include "softgpu/core/calls.h"
#include "softgpu/core/text.h"
#include "softgpu/report/report.h"

static CUresult switch_to(bool on) {
    struct sg_context *context;
    CUresult result = sg_context_current(&context);
    if (result == CUDA_SUCCESS)
        context->profiled = on;
    return result;
}

/* As on H200, neither minds being called twice. */
CUresult sg_cuProfilerStart(void) {
    return switch_to(true);
}

CUresult sg_cuProfilerStop(void) {
    return switch_to(false);
}

void sg_dump_profiler(struct sg_text *text) {
    const struct sg_context *context = sg_context_peek();
    if (context && context->alive && context->profiled)
        sg_text_line(text, "profiler on in the current context");
}
