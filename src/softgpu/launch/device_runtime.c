#include "softgpu/launch/device_runtime.h"

#include "softgpu/core/config.h"
#include "softgpu/core/watch.h"
#include "softgpu/launch/device_output.h"
#include "softgpu/launch/device_state.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- what a program uses --------------------------------------------------------------------- */

static bool uses(const struct sg_program *program, unsigned runtime) {
    for (size_t i = 0; i < program->function_count; i++)
        if (program->functions[i].runtime == runtime)
            return true;
    return false;
}

CUresult sg_device_runtime_begin(struct sg_context *context, const struct sg_program *program) {
    bool prints = uses(program, SG_RUNTIME_VPRINTF) || uses(program, SG_RUNTIME_ASSERTFAIL);
    bool heap = uses(program, SG_RUNTIME_MALLOC) || uses(program, SG_RUNTIME_ALIGNED_MALLOC) ||
                uses(program, SG_RUNTIME_FREE);
    if (!prints && !heap)
        return CUDA_SUCCESS;
    struct sg_device_state *state = sg_device_state(context);
    if (!state)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (uses(program, SG_RUNTIME_VPRINTF))
        context->limit_fixed[CU_LIMIT_PRINTF_FIFO_SIZE] = true;
    if (!heap)
        return CUDA_SUCCESS;
    CUresult result =
        sg_heap_begin(&state->heap, context->device, context->limits[CU_LIMIT_MALLOC_HEAP_SIZE]);
    if (result == CUDA_SUCCESS)
        context->limit_fixed[CU_LIMIT_MALLOC_HEAP_SIZE] = true;
    return result;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static int add(struct sg_context *context, struct sg_print *print, int result) {
    sg_lock();
    bool kept = sg_output_add(context, print);
    sg_unlock();
    return kept ? result : -2;
}

static void print(struct sg_context *context, struct sg_device_call *call) {
    struct sg_print *made;
    int result = sg_print_record(call, &made);
    if (made)
        result = add(context, made, result);
    call->result = (uint32_t)result;
}

/* The message of an H200: one line for each thread. */
static void assertion(struct sg_context *context, struct sg_device_call *call) {
    char *what = sg_device_string(call, call->argument[0]);
    char *file = sg_device_string(call, call->argument[1]);
    char *function = sg_device_string(call, call->argument[3]);
    char *line = NULL;
    int length = asprintf(&line,
                          "%s:%u: %s: block: [%u,%u,%u], thread: [%u,%u,%u] Assertion `%s` "
                          "failed.\n",
                          file ? file : "?", (unsigned)call->argument[2], function ? function : "?",
                          call->block[0], call->block[1], call->block[2], call->thread[0],
                          call->thread[1], call->thread[2], what ? what : "?");
    struct sg_print *made = length < 0 ? NULL : sg_print_of_text(line);
    if (made)
        add(context, made, 0);
    free(what);
    free(file);
    free(function);
    call->fault = SG_FAULT_ASSERT;
}

static void allocate(struct sg_context *context, struct sg_device_call *call) {
    sg_lock();
    call->result = sg_heap_take(&context->device_state->heap, call->argument[0]);
    sg_unlock();
}

static void allocate_aligned(struct sg_context *context, struct sg_device_call *call) {
    sg_lock();
    call->result =
        sg_heap_take_aligned(&context->device_state->heap, call->argument[0], call->argument[1]);
    sg_unlock();
}

/* As on an H200, freeing a block twice is an error; freeing an address that never was a block is
 * not. */
static void give_back(struct sg_context *context, struct sg_device_call *call) {
    struct sg_device_heap *heap = &context->device_state->heap;
    CUdeviceptr address = call->argument[0];
    uint64_t start, size = 1;
    if (address == 0)
        return;
    sg_lock();
    bool freed = sg_heap_give(heap, address);
    bool twice = !freed && sg_heap_block(heap, address, &start, &size) && size == 0;
    sg_unlock();
    if (twice) {
        call->fault = SG_FAULT_HEAP;
        call->address = address;
    } else if (!freed) {
        sg_log(SG_LOG_WARNING, "free in a kernel: malloc has not returned 0x%llx; nothing is freed",
               (unsigned long long)address);
    }
}

/* Has no effect outside of a graph, and for handles of other graphs. */
static void set_condition(const struct sg_device_runtime *runtime, struct sg_device_call *call) {
    bool set =
        sg_conditions_set(runtime->conditions, call->argument[0], (unsigned)call->argument[1]);
    if (!set)
        sg_log(SG_LOG_WARNING,
               "cudaGraphSetConditional: the kernel's graph has no conditional handle %llu",
               (unsigned long long)call->argument[0]);
}

void sg_device_runtime_call(void *user, struct sg_device_call *call) {
    const struct sg_device_runtime *runtime = user;
    switch (call->function) {
    case SG_RUNTIME_VPRINTF:
        print(runtime->context, call);
        break;
    case SG_RUNTIME_ASSERTFAIL:
        assertion(runtime->context, call);
        break;
    case SG_RUNTIME_MALLOC:
        allocate(runtime->context, call);
        break;
    case SG_RUNTIME_ALIGNED_MALLOC:
        allocate_aligned(runtime->context, call);
        break;
    case SG_RUNTIME_FREE:
        give_back(runtime->context, call);
        break;
    case SG_RUNTIME_GRAPH_SET_CONDITIONAL:
        set_condition(runtime, call);
        break;
    default:
        call->fault = SG_FAULT_INSTRUCTION;
    }
}

/* ---- ends ------------------------------------------------------------------------------------ */

void sg_device_runtime_streams_end(struct sg_context *context) {
    sg_output_flush(context);
}

void sg_device_runtime_memory_end(struct sg_context *context) {
    if (context->device_state)
        sg_heap_end(&context->device_state->heap);
}

void sg_device_runtime_free(struct sg_context *context) {
    sg_output_free(context);
}

void sg_device_runtime_host_function(struct sg_context *context) {
    if (!(atomic_load_explicit(&sg_watched, memory_order_relaxed) & SG_WATCH_OUTPUT))
        return;
    sg_lock();
    sg_output_flush(sg_context_owner(context));
    sg_unlock();
    sg_output_write();
}
